/** Where a request came from, as far as the proxies in front can be believed. */
import type { IncomingMessage } from "node:http";

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
