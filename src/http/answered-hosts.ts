/**
 * The hosts that a gateway on the loopback answers to (docs/spec/http.md#hosts). A page of another site reaches it where the name of that
 * site is made to lead to this machine (DNS rebinding), and is one of the gateway's own pages to the browser then: only the Host header
 * tells the two apart.
 */
import type { IncomingMessage } from "node:http";
import { AppError } from "../errors.js";
import { isLoopbackHostname, withoutTrailing } from "../lib/urls.js";

/** Host headers that are known to be good. Ports make them many. */
const KNOWN_MAX = 64;
/** What a URL would take for the end of its host. */
const NO_HOST = /[/?#@\\\s]/;

export class AnsweredHosts {
  private readonly known = new Set<string>();

  /** `hostnames`: of the configured addresses, as URLs write them. Null: every host is answered. */
  constructor(private readonly hostnames: ReadonlySet<string> | null) {}

  /** True for a request without a host: browsers always state one. */
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

  /** The host of a target in absolute form counts beside the header (RFC 9112, 3.2.2). */
  private isGoodTarget(target: string): boolean {
    return !URL.canParse(target) || this.isGood(new URL(target).host);
  }
}

/** In lower case, an address in its usual form, and without the dot that ends a full name. Null for what is no host. */
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
