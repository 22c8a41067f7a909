/** Headers of limits of requests and tokens, in the form that clients of OpenAI read. */
import type { OutgoingHttpHeaders } from "node:http";
import type { NotedRate } from "../lib/request-note.js";

export function rateHeaders(rates: readonly NotedRate[]): OutgoingHttpHeaders {
  const headers: Record<string, string> = {};
  for (const { kind, limit, remaining, resetMs } of rates) {
    const end = kind === "requests" ? "Requests" : "Tokens";
    headers[`X-RateLimit-Limit-${end}`] = String(limit);
    headers[`X-RateLimit-Remaining-${end}`] = String(remaining);
    headers[`X-RateLimit-Reset-${end}`] = toDuration(resetMs);
  }
  return headers;
}

/** As in `6m0s`, `1.5s` and `20ms`. */
export function toDuration(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.ceil(milliseconds)}ms`;
  const seconds = Math.ceil(milliseconds / 1_000);
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60];
  if (hours > 0) return `${hours}h${minutes}m${seconds % 60}s`;
  return minutes > 0 ? `${minutes}m${seconds % 60}s` : `${seconds}s`;
}
