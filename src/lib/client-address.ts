/** Where a request came from, as far as the proxies in front can be believed. */
import type { IncomingMessage } from "node:http";
import { isIPv4 } from "node:net";
import ipaddr from "ipaddr.js";

/** The socket's own address, or the hop that the outermost trusted proxy saw (docs/spec/rate-limits.md#client-address). */
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

// Whom an address stands for where requests are counted.

/**
 * An IPv4 address as it is, also when it is written as IPv6. Of an IPv6 address the first 64 bits: one customer of a provider
 * has at least that many to choose from. Text that is no address stands for itself.
 */
export function addressGroupOf(address: string): string {
  if (!address.includes(":")) return address;
  // As Node has the address of whoever comes over IPv4 to a server that listens at `::`.
  if (address.startsWith(MAPPED) && isIPv4(address.slice(MAPPED.length))) return address.slice(MAPPED.length);
  if (!ipaddr.IPv6.isValid(address)) return address;
  const parsed = ipaddr.IPv6.parse(address);
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString();
  return `${parsed.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(":")}::/64`;
}
