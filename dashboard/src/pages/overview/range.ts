/** Time ranges of the Overview, and the variables of its query. */
import { DAY_MS, daysAgo } from "../../ui/days.js";

/** Covers this month and the last one on every day of the month. */
const DAYS_FETCHED = 62;

export const HOUR_MS = 3_600_000;

export interface RangeShown {
  readonly label: string;
  readonly step: number;
  readonly count: number;
}

export const RANGE_DEFAULT = "30d";
export const RANGES: ReadonlyMap<string, RangeShown> = new Map([
  ["24h", { label: "24 hours", step: HOUR_MS, count: 24 }],
  ["7d", { label: "7 days", step: DAY_MS, count: 7 }],
  [RANGE_DEFAULT, { label: "30 days", step: DAY_MS, count: 30 }],
  ["90d", { label: "90 days", step: DAY_MS, count: 90 }],
]);

/** The current hour or day is the last one of the range. */
export const startOf = ({ step, count }: RangeShown) => (Math.floor(Date.now() / step) - count + 1) * step;

export function readRange(query: URLSearchParams): string {
  const range = query.get("range") ?? "";
  return RANGES.has(range) ? range : RANGE_DEFAULT;
}

export function variablesOf(range: string) {
  const shown = RANGES.get(range);
  const iso = (days: number) => daysAgo(days).toISOString();
  return {
    from: iso(DAYS_FETCHED - 1),
    recent: shown ? new Date(startOf(shown)).toISOString() : iso(29),
    today: iso(0),
    groupBy: [shown?.step === HOUR_MS ? ("HOUR" as const) : ("DAY" as const), "MODEL" as const],
  };
}
