/**
 * Reads the roll-ups of usage (docs/decisions/usage-roll-ups.md): grouped sums over an account's rows in a time range.
 *
 * 1. Whole weeks come from their roll-up, whole days before and after them from that by day, whole hours from that by hour.
 * 2. Parts of the first and last hour come from the rows.
 * 3. Rows not yet rolled up are added. One statement reads all of it, so that each generation counts once.
 */
import type { Database } from "../../store/database.js";
import { Prisma } from "../../store/generated/prisma/client.js";
import type { Modality, UsageStatus } from "../../store/generated/prisma/enums.js";
import { ofKeys, type UsageScope } from "./usage-filter.js";

export const USAGE_GROUPINGS = ["hour", "day", "model", "key", "status", "modality"] as const;
export type UsageGrouping = (typeof USAGE_GROUPINGS)[number];

/** Exclusive at its end; null: up to the newest. */
export interface UsageRange {
  readonly from: Date;
  readonly to: Date | null;
}

export interface UsageSums {
  readonly start: Date | null;
  readonly apiKeyId: string | null;
  readonly model: string | null;
  readonly modality: Modality | null;
  readonly status: UsageStatus | null;
  readonly requests: bigint;
  readonly failures: bigint;
  readonly costNanocredits: bigint;
  readonly inputTokens: bigint;
  readonly outputTokens: bigint;
  /** Histograms; null where not requested. */
  readonly responseTimes: string | null;
  readonly firstTokenTimes: string | null;
}

/** Histograms to sum up, each a number of a thousand digits: only on request. */
export interface UsageHistograms {
  readonly responseTimes: boolean;
  readonly firstTokenTimes: boolean;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const WEEK_MS = 7 * DAY_MS;
/** Weeks begin on Mondays. */
const FIRST_WEEK = Date.UTC(1970, 0, 5);
/** Later than every row, writable by every database, and the start of a week. */
const NEVER = new Date(Date.UTC(9999, 0, 4));
/** The key of requests by sessions. */
export const NO_KEY = "00000000-0000-0000-0000-000000000000";
/** Levels of roll-ups (docs/decisions/usage-roll-ups.md), which add up. */
export const BY_ACCOUNT = 0;
export const BY_KEY = 1;
export const BY_MODEL = 2;
const BY_WEEK = 4;

const SUMMED = Prisma.sql`start, api_key_id, model, modality, outcome, requests, cost_nanocredits, input_tokens, output_tokens,
  response_times, first_token_times`;

/** The most groups: in all, or per key, when also grouped by key. */
export type GroupLimit = { readonly groups: number } | { readonly groupsOfKey: number };

export interface UsageQuestion {
  readonly range: UsageRange;
  readonly groupBy: ReadonlySet<UsageGrouping>;
  readonly limit: GroupLimit;
  readonly histograms?: UsageHistograms;
}

/** Reads sums, the most expensive groups first. For a scope with `minCost` or `id` use `readRows`. */
export function readRollUps(database: Database, scope: UsageScope, question: UsageQuestion): Promise<UsageSums[]> {
  const { range, groupBy } = question;
  const byKey = groupBy.has("key") || scope.apiKeyIds !== undefined || scope.either !== undefined;
  const byModel = groupBy.has("model") || scope.models !== undefined || scope.either !== undefined;
  const level = BY_ACCOUNT + (byKey ? BY_KEY : 0) + (byModel ? BY_MODEL : 0);
  const { accountId } = scope;
  const { weeks, days, hours, edges, failedHour } = split(range, groupBy);
  const rolled = (table: Prisma.Sql, { from, to }: Between, unit = 0) =>
    Prisma.sql`SELECT ${SUMMED} FROM ${table} WHERE account_id = ${accountId}::uuid AND level = ${level + unit} AND start >= ${from} AND start < ${to}`;
  const failed = failedHour && { from: failedHour, to: new Date(failedHour.getTime() + 1) };
  const whole = [...weeks, ...days, ...hours];
  const within = (between: Between) => Prisma.sql`(start >= ${between.from} AND start < ${between.to})`;
  const parts = [
    ...weeks.map((between) => rolled(Prisma.sql`usage_day_rollup`, between, BY_WEEK)),
    ...days.map((between) => rolled(Prisma.sql`usage_day_rollup`, between)),
    ...hours.map((between) => rolled(Prisma.sql`usage_hour_rollup`, between)),
    ...(failed ? [Prisma.sql`${rolled(Prisma.sql`usage_hour_rollup`, failed)} AND outcome = 'failed'`] : []),
    ...edges.map(({ from, to }) => rowsWhere(accountId, Prisma.sql`timestamp >= ${from} AND timestamp < ${to}`)),
    Prisma.sql`SELECT * FROM (
      SELECT date_trunc('hour', at, 'UTC') AS start, coalesce(api_key_id, ${NO_KEY}::uuid) AS api_key_id, model, modality, outcome,
        requests::bigint AS requests, requests * cost_nanocredits AS cost_nanocredits, requests * input_tokens AS input_tokens,
        requests * output_tokens AS output_tokens, requests * usage_time_digit(response_time_ms) AS response_times,
        requests * usage_time_digit(time_to_first_token_ms) AS first_token_times
      FROM usage_unrolled() WHERE account_id = ${accountId}::uuid) unrolled
      WHERE ${anyOf([...whole.map(within), ...(failed ? [Prisma.sql`(${within(failed)} AND outcome = 'failed')`] : [])])}`,
  ];
  return readGroups(database, scope, parts, question);
}

/** Counts all generations in the range, ignoring `minCost` and `id`. */
export async function countIn(database: Database, scope: UsageScope, range: UsageRange): Promise<number> {
  const [sums] = await readRollUps(database, scope, { range, groupBy: new Set(), limit: { groups: 1 } });
  return Number(sums?.requests ?? 0n);
}

/** The same per key that has rows. */
export async function countsOfKeys(
  database: Database,
  scope: UsageScope,
  apiKeyIds: readonly string[],
  range: UsageRange,
): Promise<ReadonlyMap<string, number>> {
  const question = { range, groupBy: new Set(["key"] as const), limit: { groups: apiKeyIds.length } };
  const counts = await readRollUps(database, ofKeys(scope, apiKeyIds), question);
  return new Map(counts.map(({ apiKeyId, requests }) => [apiKeyId as string, Number(requests)]));
}

/** Sums over single rows, for conditions that roll-ups do not have. */
export function readRows(database: Database, scope: UsageScope, question: UsageQuestion): Promise<UsageSums[]> {
  const { id, minCost } = scope;
  const { from, to } = question.range;
  const cost = minCost === undefined ? Prisma.empty : Prisma.sql` AND cost_nanocredits >= ${minCost}`;
  const alone = id === undefined ? Prisma.empty : Prisma.sql` AND id = ${id}::uuid`;
  const rows = rowsWhere(scope.accountId, Prisma.sql`timestamp >= ${from} AND timestamp < ${to ?? NEVER}${cost}${alone}`);
  return readGroups(database, scope, [rows], question);
}

/** Usage rows in the shape of a roll-up by hour. */
function rowsWhere(accountId: string, condition: Prisma.Sql): Prisma.Sql {
  return Prisma.sql`
    SELECT date_trunc('hour', timestamp, 'UTC') AS start, coalesce(api_key_id, ${NO_KEY}::uuid) AS api_key_id, model, modality,
      status::text::"UsageOutcome" AS outcome, 1::bigint AS requests, cost_nanocredits,
      input_text_tokens::bigint + input_cached_tokens + input_cache_write_tokens + input_audio_tokens + input_image_tokens AS input_tokens,
      output_text_tokens::bigint + output_reasoning_tokens + output_audio_tokens + output_image_tokens AS output_tokens,
      usage_time_digit(response_time_ms) AS response_times, usage_time_digit(time_to_first_token_ms) AS first_token_times
    FROM usage_record WHERE account_id = ${accountId}::uuid AND ${condition}`;
}

const NO_HISTOGRAMS: UsageHistograms = { responseTimes: false, firstTokenTimes: false };

function readGroups(
  database: Database,
  scope: UsageScope,
  parts: readonly Prisma.Sql[],
  { groupBy, limit, histograms = NO_HISTOGRAMS }: UsageQuestion,
): Promise<UsageSums[]> {
  const nothing = (type: Prisma.Sql) => Prisma.sql`NULL::${type}`;
  const when = (grouping: UsageGrouping, column: Prisma.Sql, type = Prisma.sql`text`) => (groupBy.has(grouping) ? column : nothing(type));
  const sumWhen = (isWanted: boolean, column: Prisma.Sql) =>
    isWanted ? Prisma.sql`coalesce(sum(${column}), 0)` : nothing(Prisma.sql`numeric`);
  const start = groupBy.has("hour") ? Prisma.sql`start` : Prisma.sql`date_trunc('day', start, 'UTC')`;
  const hasTime = groupBy.has("hour") || groupBy.has("day");
  const { apiKeyIds, models, modalities, statuses, either } = scope;
  const conditions = [
    ...(apiKeyIds ? [Prisma.sql`api_key_id = ANY (${[...apiKeyIds]}::uuid[])`] : []),
    ...(models ? [Prisma.sql`model = ANY (${[...models]}::text[])`] : []),
    ...(modalities ? [Prisma.sql`modality::text = ANY (${[...modalities]}::text[])`] : []),
    ...(statuses ? [Prisma.sql`outcome::text = ANY (${[...statuses]}::text[])`] : []),
    ...(groupBy.has("status") ? [Prisma.sql`outcome <> 'failed'`] : []),
    ...(either ? [Prisma.sql`(model = ANY (${[...either.models]}::text[]) OR api_key_id = ANY (${[...either.apiKeyIds]}::uuid[]))`] : []),
  ];
  const ofKey = "groupsOfKey" in limit ? Prisma.sql`PARTITION BY api_key_id` : Prisma.empty;
  // The statement has each column, grouped or not; without groups it returns one row. Texts are converted in the result, not for each row
  // that is read.
  return database.prisma.$queryRaw<UsageSums[]>`
    SELECT start, nullif(api_key_id, ${NO_KEY}::uuid)::text AS "apiKeyId", model, modality::text, outcome::text AS status, requests, failures,
      cost AS "costNanocredits", input AS "inputTokens", output AS "outputTokens", response_times::text AS "responseTimes",
      first_token_times::text AS "firstTokenTimes"
    FROM (
      SELECT *, row_number() OVER (${ofKey} ORDER BY cost DESC, requests DESC, start, api_key_id, model, modality, outcome) AS place
      FROM (
        SELECT ${hasTime ? start : nothing(Prisma.sql`timestamptz`)} AS start,
          ${when("key", Prisma.sql`api_key_id`, Prisma.sql`uuid`)} AS api_key_id,
          ${when("model", Prisma.sql`model`)} AS model,
          ${when("modality", Prisma.sql`modality`)} AS modality,
          ${when("status", Prisma.sql`outcome`)} AS outcome,
          coalesce(sum(requests) FILTER (WHERE outcome <> 'failed'), 0)::bigint AS requests,
          coalesce(sum(requests) FILTER (WHERE outcome = 'failed'), 0)::bigint AS failures,
          coalesce(sum(cost_nanocredits), 0)::bigint AS cost,
          coalesce(sum(input_tokens), 0)::bigint AS input,
          coalesce(sum(output_tokens), 0)::bigint AS output,
          ${sumWhen(histograms.responseTimes, Prisma.sql`response_times`)} AS response_times,
          ${sumWhen(histograms.firstTokenTimes, Prisma.sql`first_token_times`)} AS first_token_times
        FROM (${Prisma.join(parts, " UNION ALL ")}) part
        ${conditions.length === 0 ? Prisma.empty : Prisma.sql`WHERE ${Prisma.join(conditions, " AND ")}`}
        ${groupBy.size === 0 ? Prisma.empty : Prisma.sql`GROUP BY 1, 2, 3, 4, 5`}
      ) sums ${groupBy.size === 0 ? Prisma.empty : Prisma.sql`WHERE requests > 0 OR failures > 0`}
    ) placed WHERE place <= ${"groupsOfKey" in limit ? limit.groupsOfKey : limit.groups} ORDER BY place`;
}

function anyOf(conditions: readonly Prisma.Sql[]): Prisma.Sql {
  return conditions.length === 0 ? Prisma.sql`false` : Prisma.sql`(${Prisma.join([...conditions], " OR ")})`;
}

interface Between {
  readonly from: Date;
  readonly to: Date;
}

interface Split {
  readonly weeks: readonly Between[];
  readonly days: readonly Between[];
  readonly hours: readonly Between[];
  /** Parts of hours. */
  readonly edges: readonly Between[];
  /** The hour that the range ends within: its failures are not divided by time. */
  readonly failedHour: Date | null;
}

/** Splits the range into the largest units within it, but none larger than the grouping. */
function split({ from, to }: UsageRange, groupBy: ReadonlySet<UsageGrouping>): Split {
  const end = to ?? NEVER;
  const [byHour, edges] = whole({ from, to: end }, HOUR_MS);
  const lastHour = down(end, HOUR_MS);
  const failedHour = lastHour < end && lastHour >= up(from, HOUR_MS) ? lastHour : null;
  if (byHour === null || groupBy.has("hour")) return { weeks: [], days: [], hours: byHour ? [byHour] : [], edges, failedHour };
  const [byDay, hours] = whole(byHour, DAY_MS);
  if (byDay === null || groupBy.has("day")) return { weeks: [], days: byDay ? [byDay] : [], hours, edges, failedHour };
  const [byWeek, days] = whole(byDay, WEEK_MS);
  return { weeks: byWeek ? [byWeek] : [], days, hours, edges, failedHour };
}

/** Splits a range into whole units and the parts before and after them. */
function whole({ from, to }: Between, unitMs: number): [Between | null, readonly Between[]] {
  const [first, last] = [up(from, unitMs), down(to, unitMs)];
  return first < last ? [{ from: first, to: last }, [...between(from, first), ...between(last, to)]] : [null, between(from, to)];
}

function between(from: Date, to: Date): Between[] {
  return from < to ? [{ from, to }] : [];
}

function up(time: Date, unitMs: number): Date {
  return new Date(Math.ceil((time.getTime() - FIRST_WEEK) / unitMs) * unitMs + FIRST_WEEK);
}

function down(time: Date, unitMs: number): Date {
  return new Date(Math.floor((time.getTime() - FIRST_WEEK) / unitMs) * unitMs + FIRST_WEEK);
}

/** The format of the function usage_time_digit: twelve digits per bucket, the last one that of 0 ms. */
const COUNT_DIGITS = 12;
const BUCKET_GROWTH = 1.1;

const DIGIT_ZERO = "0".charCodeAt(0);

/** Reads the counts of all buckets. A summary reads hundreds of histograms, so it goes digit by digit without substrings. */
export function readHistogram(digits: string): number[] {
  const counts: number[] = [];
  for (let end = digits.length; end > 0; end -= COUNT_DIGITS) {
    let count = 0;
    for (let place = Math.max(0, end - COUNT_DIGITS); place < end; place += 1) count = 10 * count + digits.charCodeAt(place) - DIGIT_ZERO;
    counts.push(count);
  }
  return counts;
}

/** Quantiles in milliseconds for ascending `shares`, to 5%; null without counts. */
export function quantilesOf(counts: readonly number[], shares: readonly number[]): number[] | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let [bucket, reached] = [0, counts[0] ?? 0];
  return shares.map((share) => {
    const wanted = Math.max(1, Math.ceil(total * share));
    while (reached < wanted) {
      bucket += 1;
      reached += counts[bucket] ?? total;
    }
    return bucket === 0 ? 0 : Math.round((2 * BUCKET_GROWTH ** (bucket - 1)) / (BUCKET_GROWTH + 1));
  });
}
