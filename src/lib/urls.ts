/** Addresses: those that paths are appended to, and the gateway's own. */
import type { IncomingHttpHeaders } from "node:http";
import { isIPv6 } from "node:net";

/** Where the gateway is reached, without a slash at the end. */
export interface Addresses {
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly mediaUrl: string;
}

/**
 * An http or https address that paths are appended to, without a slash at its end. Null for anything else, and for one
 * with credentials, query or fragment.
 */
export function parseBaseUrl(text: string): string | null {
  if (!URL.canParse(text)) return null;
  const url = new URL(text);
  const isPlain = /^https?:$/.test(url.protocol) && !url.username && !url.password && !/[?#\s]/.test(text);
  return isPlain ? withoutTrailing(text, "/") : null;
}

// Which of the gateway's hosts a request was sent to, by its Host header.

/** `host`: in lower case, with its port unless that is the scheme's own; without one, any port is meant. */
export function isAtHost({ host: stated }: Pick<IncomingHttpHeaders, "host">, host: string): boolean {
  const asked = stated?.toLowerCase();
  return asked === host || (!host.includes(":") && asked?.replace(/:\d+$/, "") === host);
}

/** As a bare address and as a URL writes it, in lower case. */
const LOOPBACK_HOSTNAME = /^(?:localhost|127(?:\.\d{1,3}){3}|::1|\[::1\]|\[::ffff:7f[0-9a-f]{2}:[0-9a-f]{1,4}\])$/;

/** True for `localhost` and for addresses that lead to this machine alone. */
export function isLoopbackHostname(hostname: string): boolean {
  return LOOPBACK_HOSTNAME.test(hostname);
}

// Where a server that listens at an address of this machine is reached from this machine.

/** Without a slash at the end. Node's servers at `::` take IPv4 too, whatever the system's default is. */
export function loopbackUrl(address: string, port: number): string {
  if (address === "0.0.0.0" || address === "::") return `http://127.0.0.1:${port}`;
  return `http://${isIPv6(address) ? `[${address}]` : address}:${port}`;
}

/** `"a//"` without trailing `"/"` is `"a"`. A pattern such as `/\/+$/` says the same, and takes quadratic time over a long run that is not the last. */
export function withoutTrailing(text: string, characters: string): string {
  let end = text.length;
  while (end > 0 && characters.includes(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
}
