/** Headers of limits of requests and tokens, in the form that clients of OpenAI read. */
import type { OutgoingHttpHeaders } from "node:http";
import type { NotedRate } from "../lib/request-note.js";

/** At most one of each kind. Object literals, because adding properties one by one is slow. */
export function rateHeaders(rates: readonly NotedRate[]): OutgoingHttpHeaders {
  const [first, second] = rates;
  if (first === undefined) return {};
  if (second === undefined) return first.kind === "requests" ? headersOfRequests(first) : headersOfTokens(first);
  const [requests, tokens] = first.kind === "requests" ? [first, second] : [second, first];
  return {
    "X-RateLimit-Limit-Requests": String(requests.limit),
    "X-RateLimit-Remaining-Requests": String(requests.remaining),
    "X-RateLimit-Reset-Requests": toDuration(requests.resetMs),
    "X-RateLimit-Limit-Tokens": String(tokens.limit),
    "X-RateLimit-Remaining-Tokens": String(tokens.remaining),
    "X-RateLimit-Reset-Tokens": toDuration(tokens.resetMs),
  };
}

function headersOfRequests({ limit, remaining, resetMs }: NotedRate): OutgoingHttpHeaders {
  return {
    "X-RateLimit-Limit-Requests": String(limit),
    "X-RateLimit-Remaining-Requests": String(remaining),
    "X-RateLimit-Reset-Requests": toDuration(resetMs),
  };
}

function headersOfTokens({ limit, remaining, resetMs }: NotedRate): OutgoingHttpHeaders {
  return {
    "X-RateLimit-Limit-Tokens": String(limit),
    "X-RateLimit-Remaining-Tokens": String(remaining),
    "X-RateLimit-Reset-Tokens": toDuration(resetMs),
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
