/**
 * Usage summaries: requests, costs, tokens, times and failures by hour or day, model, key, status and modality
 * (docs/spec/usage.md#summary).
 */
import type { RequestContext } from "../../context.js";
import { type AppError, wrongField } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { eachOf, groupBy as groupItems } from "../../lib/collections.js";
import { USAGE_DAYS_DEFAULT } from "../../limits.js";
import type { Database } from "../../store/database.js";
import type { Modality, UsageStatus } from "../../store/generated/prisma/enums.js";
import { requireAccount } from "../access/permissions.js";
import { areReadTogether, readableBy } from "./usage.js";
import { ofKeys, scopeOf, type UsageFilter, type UsageScope } from "./usage-filter.js";
import {
  countIn,
  countsOfKeys,
  quantilesOf,
  readHistogram,
  readRollUps,
  readRows,
  type UsageGrouping,
  type UsageHistograms,
  type UsageRange,
  type UsageSums,
} from "./usage-roll-ups.js";

/** Unspecified: the longest range of a summary, in days, and of one by the hour. */
export const USAGE_SUMMARY_DAYS_MAX = 366;
export const USAGE_SUMMARY_HOURLY_DAYS_MAX = 31;
/** Unspecified: groups of one summary. */
export const USAGE_GROUPS_MAX = 1_000;
export const USAGE_GROUPS_DEFAULT = 100;
/** Unspecified: rows read one by one, where no roll-up has the answer. */
export const USAGE_SUMMED_ROWS_MAX = 50_000;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const BOTH_HISTOGRAMS: UsageHistograms = { responseTimes: true, firstTokenTimes: true };
const SHARES = [0.5, 0.95, 0.99];
const NOTHING: UsageSums = {
  ...{ start: null, apiKeyId: null, model: null, modality: null, status: null },
  ...{ requests: 0n, failures: 0n, costNanocredits: 0n, inputTokens: 0n, outputTokens: 0n, responseTimes: null, firstTokenTimes: null },
};

export interface UsageTimes {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/** One group; fields that are not grouped by are null. */
export interface UsageGroup {
  /** Start of the hour or day, UTC. */
  readonly from: Date | null;
  readonly model: string | null;
  readonly apiKeyId: string | null;
  readonly modality: Modality | null;
  readonly status: UsageStatus | null;
  /** Charged generations, and those whose price is 0. */
  readonly requests: number;
  readonly costNanocredits: bigint;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** In milliseconds, to 5%. */
  readonly responseTimeMs: UsageTimes | null;
  readonly timeToFirstTokenMs: UsageTimes | null;
  /** Generations that failed through no fault of the caller; they cost nothing and are not in `requests`. */
  readonly failedRequests: number;
  /** Share of failed generations; null where the filter excludes them, and without generations. */
  readonly errorRate: number | null;
}

export interface UsageSummaryQuery {
  readonly filter?: UsageFilter | undefined;
  readonly groupBy: readonly UsageGrouping[];
  /** The most groups: the most expensive ones. */
  readonly first?: number | undefined;
  /** Only that key. The calling key's own needs no permission. */
  readonly apiKeyId?: string | undefined;
  /** An account, for operators; default: the caller's own. */
  readonly accountId?: string | undefined;
  /** Histograms to read; both by default. The others are null. */
  readonly histograms?: UsageHistograms | undefined;
}

export class UsageSummaries {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  /** Sorted by time, then most expensive first. */
  async summary(ctx: RequestContext, query: UsageSummaryQuery): Promise<UsageGroup[]> {
    const accountId = readableBy(ctx, query.apiKeyId, query.accountId);
    const { first, ...wanted } = toSummaryRequest(query);
    const { scope, range } = await this.scopeOf(accountId, query, wanted.groupBy);
    if (isCountedFirst(scope) && (await countIn(this.database, scope, range)) > USAGE_SUMMED_ROWS_MAX) throw tooManyToSum();
    const sums = await reading(scope)(this.database, scope, { ...wanted, range, limit: { groups: first } });
    return toGroups(sums, scope, wanted.groupBy);
  }

  /** The summary of each key, or its refusal. */
  async summariesOfKeys(
    ctx: RequestContext,
    apiKeyIds: readonly string[],
    query: Omit<UsageSummaryQuery, "apiKeyId">,
  ): Promise<ReadonlyMap<string, UsageGroup[] | Error>> {
    if (!areReadTogether(ctx, apiKeyIds)) return eachOf(apiKeyIds, (apiKeyId) => this.summary(ctx, { ...query, apiKeyId }));
    const { groupBy, first, histograms } = toSummaryRequest(query);
    const { scope, range } = await this.scopeOf(requireAccount(ctx).accountId, query, groupBy);
    const counts = isCountedFirst(scope) ? await countsOfKeys(this.database, scope, apiKeyIds, range) : new Map<string, number>();
    const isFew = (id: string) => (counts.get(id) ?? 0) <= USAGE_SUMMED_ROWS_MAX;
    const ofFew = ofKeys(scope, apiKeyIds.filter(isFew));
    const question = { range, groupBy: new Set([...groupBy, "key"] as const), limit: { groupsOfKey: first }, histograms };
    const sums = await reading(scope)(this.database, ofFew, question);
    const byKey = groupItems(sums, ({ apiKeyId }) => apiKeyId);
    const groupsOf = (id: string) => {
      const own = byKey.get(id) ?? (groupBy.size === 0 ? [NOTHING] : []);
      return toGroups(groupBy.has("key") ? own : own.map((row) => ({ ...row, apiKeyId: null })), scope, groupBy);
    };
    return new Map(apiKeyIds.map((id) => [id, isFew(id) ? groupsOf(id) : tooManyToSum()]));
  }

  private async scopeOf(
    accountId: string,
    { filter, apiKeyId }: UsageSummaryQuery,
    groupBy: ReadonlySet<UsageGrouping>,
  ): Promise<{ readonly scope: UsageScope; readonly range: UsageRange }> {
    const scope = await scopeOf(this.database, accountId, filter, apiKeyId);
    return { scope, range: this.rangeOf(scope, groupBy) };
  }

  /** Default start: the hour 30 days before the end. */
  private rangeOf({ from, to }: UsageScope, groupBy: ReadonlySet<UsageGrouping>): UsageRange {
    const end = to ?? this.clock.now();
    const range = { from: from ?? new Date(Math.floor(end.getTime() / HOUR_MS) * HOUR_MS - USAGE_DAYS_DEFAULT * DAY_MS), to: to ?? null };
    const days = (end.getTime() - range.from.getTime()) / DAY_MS;
    const daysMax = groupBy.has("hour") ? USAGE_SUMMARY_HOURLY_DAYS_MAX : USAGE_SUMMARY_DAYS_MAX;
    if (days > daysMax)
      throw wrongField("from", `may lie ${daysMax} days before the end of a summary${groupBy.has("hour") ? " by the hour" : ""} at most`);
    return range;
  }
}

function toSummaryRequest({ groupBy: names, first = USAGE_GROUPS_DEFAULT, histograms = BOTH_HISTOGRAMS }: UsageSummaryQuery) {
  const groupBy = new Set(names);
  if (groupBy.size < names.length) throw wrongField("groupBy", "holds something twice");
  if (groupBy.has("hour") && groupBy.has("day")) throw wrongField("groupBy", "is by HOUR or by DAY, not by both");
  if (first < 1 || first > USAGE_GROUPS_MAX) throw wrongField("first", `must be from 1 to ${USAGE_GROUPS_MAX}`);
  return { groupBy, first, histograms };
}

/** Roll-ups have no costs of single rows, but they count rows. */
function isCountedFirst({ minCost, id }: UsageScope): boolean {
  return minCost !== undefined && id === undefined;
}

function isOfRows({ minCost, id }: UsageScope): boolean {
  return minCost !== undefined || id !== undefined;
}

function reading(scope: UsageScope): typeof readRollUps {
  return isOfRows(scope) ? readRows : readRollUps;
}

function tooManyToSum(): AppError {
  return wrongField(
    "minCost",
    `can be summed up of ${USAGE_SUMMED_ROWS_MAX} rows at most: ask for a shorter time, or for fewer keys or models`,
  );
}

function toGroups(sums: readonly UsageSums[], scope: UsageScope, groupBy: ReadonlySet<UsageGrouping>): UsageGroup[] {
  const groups = sums.map((row) => toGroup(row, !isOfRows(scope) && !groupBy.has("status") && scope.statuses === undefined));
  return groupBy.has("hour") || groupBy.has("day") ? groups.sort((one, other) => Number(one.from) - Number(other.from)) : groups;
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

/** Percentiles of a stored histogram; null without counts. */
export function toTimes(digits: string | null): UsageTimes | null {
  return digits === null ? null : timesOf(readHistogram(digits));
}

/** Percentiles of counts by bucket; null without counts. */
export function timesOf(counts: readonly number[]): UsageTimes | null {
  const times = quantilesOf(counts, SHARES);
  if (times === null) return null;
  const [p50 = 0, p95 = 0, p99 = 0] = times;
  return { p50, p95, p99 };
}
