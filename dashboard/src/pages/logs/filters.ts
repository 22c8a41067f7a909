/** Filters of the logs. They are in the address, so that a list can be shared and the back button undoes them. */
import type { GenerationErrorCode, RequestFilter, RequestOutcome } from "../../client/generated/graphql.js";
import { DAY_MS } from "../../ui/days.js";

export const FILTER_NAMES = ["q", "status", "code", "key", "model", "from", "day"] as const;
export type FilterName = (typeof FILTER_NAMES)[number];

const HOUR_MS = 3_600_000;
export const SPANS: ReadonlyMap<string, { readonly label: string; readonly milliseconds: number }> = new Map([
  ["1h", { label: "Last hour", milliseconds: HOUR_MS }],
  ["24h", { label: "Last 24 hours", milliseconds: 24 * HOUR_MS }],
  ["7d", { label: "Last 7 days", milliseconds: 7 * 24 * HOUR_MS }],
  ["30d", { label: "Last 30 days", milliseconds: 30 * 24 * HOUR_MS }],
]);
export const SPAN_DEFAULT = "30d";

export const STATUSES: ReadonlyMap<string, { readonly label: string; readonly outcome: RequestOutcome }> = new Map([
  ["ok", { label: "Succeeded", outcome: "OK" }],
  ["failed", { label: "Failed", outcome: "FAILED" }],
  ["4xx", { label: "4xx", outcome: "CLIENT_ERROR" }],
  ["5xx", { label: "5xx", outcome: "SERVER_ERROR" }],
]);

/** Codes of refused and failed requests, the most common first. */
export const CODES: ReadonlyMap<string, GenerationErrorCode> = new Map(
  (
    [
      "BAD_REQUEST",
      "INSUFFICIENT_BALANCE",
      "KEY_BUDGET_EXHAUSTED",
      "MAX_COST_EXCEEDED",
      "RATE_LIMITED",
      "FORBIDDEN",
      "NOT_FOUND",
      "CONTENT_BLOCKED",
      "CONFLICT",
      "PAYLOAD_TOO_LARGE",
      "UNSUPPORTED_MEDIA_TYPE",
      "UPSTREAM_ERROR",
      "UPSTREAM_TIMEOUT",
      "SERVICE_UNAVAILABLE",
      "INTERNAL_ERROR",
    ] as const
  ).map((code) => [code, code]),
);

/** The UTC day of the parameter `day`, such as `2026-11-03`; null: none, or no day. */
export function readDay(query: URLSearchParams): { readonly from: Date; readonly to: Date } | null {
  const text = query.get("day") ?? "";
  const from = new Date(`${text}T00:00:00Z`);
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text) || Number.isNaN(from.getTime())) return null;
  return { from, to: new Date(from.getTime() + DAY_MS) };
}

/** Unknown values of the address are ignored. A day takes precedence over a span. */
export function readFilter(query: URLSearchParams, now: number): RequestFilter {
  const outcome = STATUSES.get(query.get("status") ?? "")?.outcome;
  const code = CODES.get(query.get("code") ?? "");
  const [id, key, model] = ["q", "key", "model"].map((name) => query.get(name)?.trim() || null);
  const span = SPANS.get(query.get("from") ?? "");
  const day = readDay(query);
  return {
    ...(id && { requestId: id }),
    ...(outcome && { outcomes: [outcome] }),
    ...(code && { codes: [code] }),
    ...(key && { apiKeyIds: [key] }),
    ...(model && { modelIds: [model] }),
    ...(day
      ? { from: day.from.toISOString(), to: day.to.toISOString() }
      : span && { from: new Date(now - span.milliseconds).toISOString() }),
  };
}
