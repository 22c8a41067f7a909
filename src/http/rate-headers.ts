/** Headers of limits of requests and tokens, in the form that clients of OpenAI read. */
import type { OutgoingHttpHeaders } from "node:http";
import type { NotedRate } from "../lib/request-note.js";

export function rateHeaders(rates: readonly NotedRate[]): OutgoingHttpHeaders {
  const [first, second] = rates;
  if (first === undefined) return {};
  return second === undefined ? headersOf(first) : Object.assign(headersOf(first), headersOf(second));
}

/** Object literals, because adding properties one by one is slow. */
function headersOf({ kind, limit, remaining, resetMs }: NotedRate): OutgoingHttpHeaders {
  const reset = toDuration(resetMs);
  if (kind === "requests") {
    return {
      "X-RateLimit-Limit-Requests": String(limit),
      "X-RateLimit-Remaining-Requests": String(remaining),
      "X-RateLimit-Reset-Requests": reset,
    };
  }
  return {
    "X-RateLimit-Limit-Tokens": String(limit),
    "X-RateLimit-Remaining-Tokens": String(remaining),
    "X-RateLimit-Reset-Tokens": reset,
  };
}

/** As in `6m0s`, `1.5s` and `20ms`. */
export function toDuration(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.ceil(milliseconds)}ms`;
  const seconds = Math.ceil(milliseconds / 1_000);
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60];
  if (hours > 0) return `${hours}h${minutes}m${seconds % 60}s`;
  return minutes > 0 ? `${minutes}m${seconds % 60}s` : `${seconds}s`;
}
