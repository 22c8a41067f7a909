/**
 * The hosts that a gateway on the loopback answers to (docs/spec/http.md#hosts). With DNS rebinding, a page of another site points its own
 * name at this machine, and the browser then treats gateway and page as one origin: only the Host header distinguishes them.
 */
import type { IncomingMessage } from "node:http";
import { AppError } from "../errors.js";
import { isLoopbackHostname, withoutTrailing } from "../lib/urls.js";

/** Host headers known to be good; each port is one more. */
const KNOWN_MAX = 64;
/** Characters at which a URL would end its host. */
const NO_HOST = /[/?#@\\\s]/;

export class AnsweredHosts {
  private readonly known = new Set<string>();

  /** `hostnames`: of the configured addresses, in a URL's form. Null: any host. */
  constructor(private readonly hostnames: ReadonlySet<string> | null) {}

  /** True for a request without a host: browsers always send one. */
  answer({ headers: { host = "" }, url = "" }: Pick<IncomingMessage, "headers" | "url">): boolean {
    if (this.hostnames === null) return true;
    return (this.known.has(host) || this.isGood(host)) && (url.startsWith("/") || this.isGoodTarget(url));
  }

  private isGood(host: string): boolean {
    if (host === "") return true;
    const hostname = hostnameOf(host);
    const isGood = hostname !== null && (isLoopbackHostname(hostname) || this.hostnames?.has(hostname) === true);
    if (isGood && this.known.size < KNOWN_MAX) this.known.add(host);
    return isGood;
  }

  /** The host of an absolute target counts beside the header (RFC 9112, 3.2.2). */
  private isGoodTarget(target: string): boolean {
    return !URL.canParse(target) || this.isGood(new URL(target).host);
  }
}

/** Normalizes a host: lower case, an address in its usual form, no trailing dot. Null when invalid. */
function hostnameOf(host: string): string | null {
  const address = `http://${host}`;
  return NO_HOST.test(host) || !URL.canParse(address) ? null : withoutTrailing(new URL(address).hostname, ".");
}

export function misdirected(): AppError {
  return new AppError(
    "MISDIRECTED_REQUEST",
    "This gateway answers at localhost, at loopback addresses and at the hosts of BASE_URL, AUTH_URL and MEDIA_URL. Set BASE_URL to the address that it is to be reached at.",
  );
}
