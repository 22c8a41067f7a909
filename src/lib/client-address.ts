/** The address of a request's client, as far as proxies are trusted. */
import type { IncomingMessage } from "node:http";
import { isIPv4 } from "node:net";
import ipaddr from "ipaddr.js";

/** The socket's own address, or the hop seen by the outermost trusted proxy (docs/spec/rate-limits.md#client-address). */
export function clientAddressOf(request: IncomingMessage, trustedHops: number): string {
  if (trustedHops === 0) return request.socket.remoteAddress ?? "";
  const forwarded = String(request.headers["x-forwarded-for"] ?? "");
  const hops = [
    ...forwarded
      .split(",")
      .map((hop) => hop.trim())
      .filter((hop) => hop !== ""),
    request.socket.remoteAddress ?? "",
  ];
  return hops[Math.max(0, hops.length - 1 - trustedHops)] ?? "";
}

const MAPPED = "::ffff:";

// Groups addresses for counting.

/**
 * An IPv4 address as it is, also when mapped to IPv6. The first 64 bits of an IPv6 address, because one customer of a provider has at least
 * that many addresses. Other text is its own group.
 */
export function addressGroupOf(address: string): string {
  if (!address.includes(":")) return address;
  // Node's form of IPv4 clients at a server that listens at `::`.
  if (address.startsWith(MAPPED) && isIPv4(address.slice(MAPPED.length))) return address.slice(MAPPED.length);
  if (!ipaddr.IPv6.isValid(address)) return address;
  const parsed = ipaddr.IPv6.parse(address);
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString();
  return `${parsed.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(":")}::/64`;
}
