/**
 * Activity of models in the last day: requests of all accounts, their latency and the share that succeeded. Read from the roll-ups by hour,
 * so the last seconds are missing. Says nothing about single accounts.
 */
import { LRUCache } from "lru-cache";
import { entriesMax } from "../../lib/bounded.js";
import type { Clock } from "../../lib/clock.js";
import type { Database } from "../../store/database.js";
import { ACTIVITY_HOURS, ACTIVITY_KEPT_MAX, ACTIVITY_KEPT_MS, ACTIVITY_ROWS_MAX } from "./limits.js";
import { BY_MODEL } from "./usage-roll-ups.js";
import { toTimes, type UsageTimes } from "./usage-summaries.js";

export interface ModelActivity {
  /** Start of the first hour, UTC: later than a day ago for a model with more rows than are read. */
  readonly from: Date;
  /** Charged generations, and those whose price is 0. */
  readonly requests: number;
  /** Generations that failed through no fault of the caller. */
  readonly failedRequests: number;
  /** Share of `requests` in both; null without either. */
  readonly successRate: number | null;
  /** In milliseconds, to 5%. */
  readonly responseTimeMs: UsageTimes | null;
  readonly timeToFirstTokenMs: UsageTimes | null;
}

interface Sums {
  readonly model: string;
  readonly from: Date;
  readonly rows: bigint;
  readonly requests: bigint;
  readonly failures: bigint;
  readonly responseTimes: string;
  readonly firstTokenTimes: string;
}

interface Kept {
  readonly readAt: number;
  readonly activity: ModelActivity;
}

const HOUR_MS = 3_600_000;

export class ModelActivities {
  private readonly kept = new LRUCache<string, Kept>(entriesMax(ACTIVITY_KEPT_MAX));

  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  /** By canonical id. The caller has already decided that these models may be shown. */
  async activityOf(ids: readonly string[]): Promise<ReadonlyMap<string, ModelActivity>> {
    const now = this.clock.now().getTime();
    const isFresh = (id: string) => now - (this.kept.get(id)?.readAt ?? Number.NEGATIVE_INFINITY) < ACTIVITY_KEPT_MS;
    const stale = ids.filter((id) => !isFresh(id));
    const known = new Map(ids.flatMap((id) => (isFresh(id) ? [[id, this.kept.get(id)?.activity] as const] : [])));
    const read = stale.length === 0 ? new Map<string, ModelActivity>() : await this.read(stale, now);
    for (const [id, activity] of read) this.kept.set(id, { readAt: now, activity });
    return new Map(ids.flatMap((id) => toEntry(id, known.get(id) ?? read.get(id))));
  }

  private async read(ids: readonly string[], now: number): Promise<ReadonlyMap<string, ModelActivity>> {
    const from = new Date(Math.floor(now / HOUR_MS) * HOUR_MS - (ACTIVITY_HOURS - 1) * HOUR_MS);
    const found = await this.database.prisma.$queryRaw<Sums[]>`
      SELECT asked.model, min(start) AS "from", count(*) AS rows,
        coalesce(sum(requests) FILTER (WHERE outcome <> 'failed'), 0)::bigint AS requests,
        coalesce(sum(requests) FILTER (WHERE outcome = 'failed'), 0)::bigint AS failures,
        sum(response_times)::text AS "responseTimes", sum(first_token_times)::text AS "firstTokenTimes"
      FROM unnest(${[...ids]}::text[]) AS asked(model)
      CROSS JOIN LATERAL (
        SELECT * FROM usage_hour_rollup r WHERE level = ${BY_MODEL} AND r.model = asked.model AND start >= ${from}
        ORDER BY start DESC LIMIT ${ACTIVITY_ROWS_MAX}
      ) hour GROUP BY asked.model`;
    const sums = new Map(found.map((each) => [each.model, each]));
    return new Map(ids.map((id) => [id, toActivity(sums.get(id), from)]));
  }
}

function toActivity(sums: Sums | undefined, from: Date): ModelActivity {
  if (!sums) return { from, requests: 0, failedRequests: 0, successRate: null, responseTimeMs: null, timeToFirstTokenMs: null };
  const [requests, failedRequests] = [Number(sums.requests), Number(sums.failures)];
  const all = requests + failedRequests;
  return {
    from: Number(sums.rows) < ACTIVITY_ROWS_MAX ? from : sums.from,
    ...{ requests, failedRequests },
    successRate: all > 0 ? requests / all : null,
    responseTimeMs: toTimes(sums.responseTimes),
    timeToFirstTokenMs: toTimes(sums.firstTokenTimes),
  };
}

function toEntry(id: string, activity: ModelActivity | undefined): readonly (readonly [string, ModelActivity])[] {
  return activity ? [[id, activity]] : [];
}
