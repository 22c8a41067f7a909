/** Addresses: base URLs, and the gateway's own. */
import type { IncomingHttpHeaders } from "node:http";
import { isIPv6 } from "node:net";

/** The gateway's addresses, without a slash at the end. */
export interface Addresses {
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly mediaUrl: string;
}

/**
 * Parses an http or https base URL, and removes its trailing slash. Null for anything else, and for one with credentials, query or
 * fragment.
 */
export function parseBaseUrl(text: string): string | null {
  if (!URL.canParse(text)) return null;
  const url = new URL(text);
  const isPlain = /^https?:$/.test(url.protocol) && !url.username && !url.password && !/[?#\s]/.test(text);
  return isPlain ? withoutTrailing(text, "/") : null;
}

// Compares a request's Host header with one of the gateway's hosts.

/** `host` is in lower case, with its port unless that is the scheme's default; without a port it matches any. */
export function isAtHost({ host: stated }: Pick<IncomingHttpHeaders, "host">, host: string): boolean {
  const requestedHost = stated?.toLowerCase();
  return requestedHost === host || (!host.includes(":") && requestedHost?.replace(/:\d+$/, "") === host);
}

/** As a bare address and in a URL's form, in lower case. */
const LOOPBACK_HOSTNAME = /^(?:localhost|127(?:\.\d{1,3}){3}|::1|\[::1\]|\[::ffff:7f[0-9a-f]{2}:[0-9a-f]{1,4}\])$/;

/** True for `localhost` and for loopback addresses. */
export function isLoopbackHostname(hostname: string): boolean {
  return LOOPBACK_HOSTNAME.test(hostname);
}

// The address on this machine of a server that listens at `address`.

/** Without a slash at the end. Node's servers at `::` also accept IPv4, independent of the system default. */
export function loopbackUrl(address: string, port: number): string {
  if (address === "0.0.0.0" || address === "::") return `http://127.0.0.1:${port}`;
  return `http://${isIPv6(address) ? `[${address}]` : address}:${port}`;
}

/** `"a//"` without trailing `"/"` is `"a"`. The pattern `/\/+$/` would be quadratic over a long run that is not at the end. */
export function withoutTrailing(text: string, characters: string): string {
  let end = text.length;
  while (end > 0 && characters.includes(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
}
