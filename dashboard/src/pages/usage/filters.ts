/** Filters in the query of the address: `key`, `model`, `modality`, `status`, `from`, `to`, `q`; and the order: `sort`. */
import type { FeedRecordFragment, UsageFilter, UsageOrder, UsageOrderField, UsageStatus } from "../../client/generated/graphql.js";
import { DAY_MS } from "../../ui/days.js";
import { toModality } from "../../ui/modalities.js";
import type { Times } from "../../ui/stacks.js";

const HOUR_MS = 3_600_000;
/** Default of the GraphQL API. */
const DAYS_DEFAULT = 30;
/** Longest range with a chart by hour. */
const HOURLY_DAYS_MAX = 3;

/** Values of `from` that are relative to now. */
export const SPANS: ReadonlyMap<string, { readonly label: string; readonly ms: number }> = new Map([
  ["1h", { label: "Last hour", ms: HOUR_MS }],
  ["24h", { label: "Last 24 hours", ms: DAY_MS }],
  ["7d", { label: "Last 7 days", ms: 7 * DAY_MS }],
  ["30d", { label: "Last 30 days", ms: DAYS_DEFAULT * DAY_MS }],
  ["90d", { label: "Last 90 days", ms: 90 * DAY_MS }],
]);
export const SPAN_DEFAULT = "30d";

export const STATUSES: ReadonlyMap<UsageStatus, string> = new Map([
  ["OK", "Completed"],
  ["CANCELLED", "Cancelled"],
]);

export const FILTER_NAMES = ["key", "model", "modality", "status", "from", "to", "q"] as const;
export type FilterName = (typeof FILTER_NAMES)[number];

/** Columns that sort, by their names in the address. */
export const SORTS: ReadonlyMap<string, UsageOrderField> = new Map([
  ["time", "TIMESTAMP"],
  ["tokens", "TOKENS"],
  ["duration", "RESPONSE_TIME"],
  ["credits", "COST"],
]);

/** `sort` has a column's name, with `-` before it for descending order. */
export function readOrder(query: URLSearchParams): UsageOrder {
  const sort = query.get("sort") ?? "";
  const field = SORTS.get(sort.replace(/^-/, ""));
  return field ? { field, direction: sort.startsWith("-") ? "DESC" : "ASC" } : { field: "TIMESTAMP", direction: "DESC" };
}

export interface AppliedFilters {
  readonly filter: UsageFilter;
  readonly order: UsageOrder;
  /** In milliseconds since 1970. */
  readonly from: number;
  /** In milliseconds since 1970, null for now. */
  readonly to: number | null;
}

/** Ignores invalid values. `now` is the time at which the page was opened, which keeps the query stable. */
export function readFilters(query: URLSearchParams, now: number): AppliedFilters {
  const text = (name: FilterName) => query.get(name)?.trim() || undefined;
  const key = text("key");
  const model = text("model");
  const modality = toModality(query.get("modality"));
  const status = [...STATUSES.keys()].find((known) => known === query.get("status"));
  const search = text("q");
  const to = momentOf(query.get("to"));
  const from = SPANS.has(query.get("from") ?? "") ? null : momentOf(query.get("from"));
  const span = SPANS.get(query.get("from") ?? SPAN_DEFAULT)?.ms ?? DAYS_DEFAULT * DAY_MS;
  // Whole days in UTC, today included, as on the overview.
  const ahead = span > DAY_MS ? DAY_MS : HOUR_MS;
  const since = from ?? (to ?? Math.ceil(now / ahead) * ahead) - span;
  return {
    from: since,
    to,
    order: readOrder(query),
    filter: {
      from: new Date(since).toISOString(),
      ...(to !== null && { to: new Date(to).toISOString() }),
      ...(key !== undefined && { apiKeyIds: [key] }),
      ...(model !== undefined && { modelIds: [model] }),
      ...(modality !== undefined && { modalities: [modality] }),
      ...(status !== undefined && { statuses: [status] }),
      ...(search !== undefined && { search }),
    },
  };
}

function momentOf(text: string | null): number | null {
  const moment = Date.parse(text ?? "");
  return Number.isNaN(moment) ? null : moment;
}

/** Days and hours are in UTC, as in the ledger. */
export function timesOf({ from, to }: AppliedFilters, now: number): Times & { readonly isHourly: boolean } {
  const end = to ?? now;
  const isHourly = end - from <= HOURLY_DAYS_MAX * DAY_MS;
  const step = isHourly ? HOUR_MS : DAY_MS;
  const first = Math.floor(from / step) * step;
  return { first, step, count: Math.max(1, Math.min(Math.ceil((end - first) / step), 400)), isHourly };
}

/**
 * Whether a live record matches the filters. It follows the search of the gateway: part of a model id or key name, or a full request id.
 * `keyRestId` is the REST id of the selected key, null while unknown.
 */
export function matchesFilters(record: FeedRecordFragment, { filter, from, to }: AppliedFilters, keyRestId: string | null): boolean {
  const moment = Date.parse(record.timestamp);
  const search = filter.search?.toLowerCase();
  return (
    moment >= from &&
    (to === null || moment < to) &&
    (!filter.apiKeyIds || (keyRestId !== null && record.apiKeyId === keyRestId)) &&
    (!filter.modelIds || filter.modelIds[0] === record.modelId) &&
    (!filter.modalities || filter.modalities[0] === record.modality) &&
    (!filter.statuses || filter.statuses[0] === record.status) &&
    (search === undefined ||
      record.modelId.toLowerCase().includes(search) ||
      (record.apiKeyName?.toLowerCase().includes(search) ?? false) ||
      record.restId === search)
  );
}
