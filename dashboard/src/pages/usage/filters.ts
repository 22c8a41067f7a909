/** What the page is asked for, as it stands in the address's query: `key`, `model`, `modality`, `status`, `from`, `to`, `q`. */
import type { FeedRecordFragment, UsageFilter, UsageStatus } from "../../client/generated/graphql.js";
import { DAY_MS } from "../../ui/days.js";
import { toModality } from "../../ui/modalities.js";
import type { Times } from "../../ui/stacks.js";

const HOUR_MS = 3_600_000;
/** As far back as the gateway looks unless told. */
const DAYS_DEFAULT = 30;
/** As many days at most are shown by the hour. */
const HOURLY_DAYS_MAX = 3;

/** How far back, as `from` may say instead of a moment. */
export const SPANS: ReadonlyMap<string, { readonly label: string; readonly ms: number }> = new Map([
  ["1h", { label: "The last hour", ms: HOUR_MS }],
  ["24h", { label: "The last 24 hours", ms: DAY_MS }],
  ["7d", { label: "The last 7 days", ms: 7 * DAY_MS }],
  ["30d", { label: "The last 30 days", ms: DAYS_DEFAULT * DAY_MS }],
  ["90d", { label: "The last 90 days", ms: 90 * DAY_MS }],
]);
export const SPAN_DEFAULT = "30d";

export const STATUSES: ReadonlyMap<UsageStatus, string> = new Map([
  ["OK", "Whole"],
  ["CANCELLED", "Broken off"],
]);

export const FILTER_NAMES = ["key", "model", "modality", "status", "from", "to", "q"] as const;
export type FilterName = (typeof FILTER_NAMES)[number];

export interface Asked {
  readonly filter: UsageFilter;
  /** In milliseconds since 1970; without an end, up to now. */
  readonly from: number;
  readonly to: number | null;
}

/** What cannot be is as if it were not there. `now`: when the page was opened, so that one question stays the same. */
export function readFilters(query: URLSearchParams, now: number): Asked {
  const text = (name: FilterName) => query.get(name)?.trim() || undefined;
  const key = text("key");
  const model = text("model");
  const modality = toModality(query.get("modality"));
  const status = [...STATUSES.keys()].find((known) => known === query.get("status"));
  const search = text("q");
  const to = momentOf(query.get("to"));
  const from = SPANS.has(query.get("from") ?? "") ? null : momentOf(query.get("from"));
  const span = SPANS.get(query.get("from") ?? SPAN_DEFAULT)?.ms ?? DAYS_DEFAULT * DAY_MS;
  const since = from ?? (to ?? Math.ceil(now / HOUR_MS) * HOUR_MS) - span;
  return {
    from: since,
    to,
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

/** Days and hours are those of UTC, as in the books. */
export function timesOf({ from, to }: Asked, now: number): Times & { readonly isHourly: boolean } {
  const end = to ?? now;
  const isHourly = end - from <= HOURLY_DAYS_MAX * DAY_MS;
  const step = isHourly ? HOUR_MS : DAY_MS;
  const first = Math.floor(from / step) * step;
  return { first, step, count: Math.max(1, Math.min(Math.ceil((end - first) / step), 400)), isHourly };
}

/**
 * Whether what the gateway tells of is what is asked for, by the rule that it has itself (a part of the model's id or of the key's name;
 * a whole id). `keyRestId`: of the key asked for, null while it is not known.
 */
export function isAskedFor(record: FeedRecordFragment, { filter, from, to }: Asked, keyRestId: string | null): boolean {
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
