/** Usage in sum: requests, costs, tokens, times and failures by hour or day, model, key, status and modality (docs/spec/usage.md#summary). */
import type { RequestContext } from "../../context.js";
import { wrongField } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { USAGE_DAYS_DEFAULT } from "../../limits.js";
import type { Database } from "../../store/database.js";
import type { Modality, UsageStatus } from "../../store/generated/prisma/enums.js";
import { readableBy } from "./usage.js";
import { scopeOf, type UsageFilter, type UsageScope } from "./usage-filter.js";
import { quantileOf, readHistogram, readRollUps, readRows, type UsageGrouping, type UsageRange, type UsageSums } from "./usage-roll-ups.js";

/** Unspecified: how far a summary reaches, in days, and one by the hour. */
export const USAGE_SUMMARY_DAYS_MAX = 366;
export const USAGE_SUMMARY_HOURLY_DAYS_MAX = 31;
/** Unspecified: groups of one summary. */
export const USAGE_GROUPS_MAX = 1_000;
export const USAGE_GROUPS_DEFAULT = 100;
/** Unspecified: rows that are read one by one, where no roll-up can answer. */
export const USAGE_SUMMED_ROWS_MAX = 50_000;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export interface UsageTimes {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/** What is grouped by is told; the rest of the five is null. */
export interface UsageGroup {
  /** Where the hour or the day begins, UTC. */
  readonly from: Date | null;
  readonly model: string | null;
  readonly apiKeyId: string | null;
  readonly modality: Modality | null;
  readonly status: UsageStatus | null;
  /** Generations that were charged, or would have been but for their price. */
  readonly requests: number;
  readonly costNanocredits: bigint;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** In milliseconds, to 5%. */
  readonly responseTimeMs: UsageTimes | null;
  readonly timeToFirstTokenMs: UsageTimes | null;
  /** Generations that failed by no fault of the caller's, and so cost nothing and are not among the requests. */
  readonly failedRequests: number;
  /** Failed ones of all; null where the question leaves them out, and of nothing. */
  readonly errorRate: number | null;
}

export interface UsageSummaryQuery {
  readonly filter?: UsageFilter | undefined;
  readonly groupBy: readonly UsageGrouping[];
  /** How many groups at most: the most expensive ones. */
  readonly first?: number | undefined;
  /** Of that key alone. The calling key's own needs no permission. */
  readonly apiKeyId?: string | undefined;
}

export class UsageSummaries {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  /** By time first, and then the most expensive one first. */
  async summary(ctx: RequestContext, query: UsageSummaryQuery): Promise<UsageGroup[]> {
    const accountId = readableBy(ctx, query.apiKeyId);
    const groupBy = new Set(query.groupBy);
    if (groupBy.size < query.groupBy.length) throw wrongField("groupBy", "holds something twice");
    if (groupBy.has("hour") && groupBy.has("day")) throw wrongField("groupBy", "is by HOUR or by DAY, not by both");
    const first = query.first ?? USAGE_GROUPS_DEFAULT;
    if (first < 1 || first > USAGE_GROUPS_MAX) throw wrongField("first", `must be from 1 to ${USAGE_GROUPS_MAX}`);
    const scope = await scopeOf(this.database, accountId, query.filter, query.apiKeyId);
    const range = this.rangeOf(scope, groupBy);
    const isOfRows = scope.minCost !== undefined || scope.id !== undefined;
    if (scope.minCost !== undefined && scope.id === undefined) await this.assertFew(scope, range);
    const sums = await (isOfRows ? readRows : readRollUps)(this.database, scope, range, groupBy, first);
    const groups = sums.map((row) => toGroup(row, !isOfRows && !groupBy.has("status") && scope.statuses === undefined));
    return groupBy.has("hour") || groupBy.has("day") ? groups.sort((one, other) => Number(one.from) - Number(other.from)) : groups;
  }

  /** Without a beginning, the hour that lies 30 days before the end. */
  private rangeOf({ from, to }: UsageScope, groupBy: ReadonlySet<UsageGrouping>): UsageRange {
    const end = to ?? this.clock.now();
    const range = { from: from ?? new Date(Math.floor(end.getTime() / HOUR_MS) * HOUR_MS - USAGE_DAYS_DEFAULT * DAY_MS), to: to ?? null };
    const days = (end.getTime() - range.from.getTime()) / DAY_MS;
    const daysMax = groupBy.has("hour") ? USAGE_SUMMARY_HOURLY_DAYS_MAX : USAGE_SUMMARY_DAYS_MAX;
    if (days > daysMax)
      throw wrongField("from", `may lie ${daysMax} days before the end of a summary${groupBy.has("hour") ? " by the hour" : ""} at most`);
    return range;
  }

  /** Costs of single rows are in no roll-up, how many rows there are is. */
  private async assertFew({ minCost: _, ...scope }: UsageScope, range: UsageRange): Promise<void> {
    const [sums] = await readRollUps(this.database, scope, range, new Set(), 1);
    if ((sums?.requests ?? 0n) <= USAGE_SUMMED_ROWS_MAX) return;
    throw wrongField(
      "minCost",
      `can be summed up of ${USAGE_SUMMED_ROWS_MAX} rows at most: ask for a shorter time, or for fewer keys or models`,
    );
  }
}

function toGroup(sums: UsageSums, tellsFailures: boolean): UsageGroup {
  const { start, model, apiKeyId, modality, status, costNanocredits } = sums;
  const [requests, failures] = [Number(sums.requests), Number(sums.failures)];
  return {
    ...{ from: start, model, apiKeyId, modality, status, requests, costNanocredits },
    inputTokens: Number(sums.inputTokens),
    outputTokens: Number(sums.outputTokens),
    responseTimeMs: toTimes(sums.responseTimes),
    timeToFirstTokenMs: toTimes(sums.firstTokenTimes),
    failedRequests: failures,
    errorRate: tellsFailures && requests + failures > 0 ? failures / (requests + failures) : null,
  };
}

function toTimes(digits: string): UsageTimes | null {
  const counts = readHistogram(digits);
  const at = (share: number) => quantileOf(counts, share);
  const [p50, p95, p99] = [at(0.5), at(0.95), at(0.99)];
  return p50 === null || p95 === null || p99 === null ? null : { p50, p95, p99 };
}
