/**
 * Requests, errors, credits and times of all accounts for operators: of the last hour by the minute, as the processes of this gateway have
 * counted them in memory, and of the last day by the hour, from the roll-ups of all gateways.
 */
import type { RequestContext } from "../../context.js";
import type { Clock } from "../../lib/clock.js";
import type { Database } from "../../store/database.js";
import { requireOperator } from "../access/permissions.js";
import { BY_ACCOUNT, readHistogram } from "../usage/usage-roll-ups.js";
import { timesOf, type UsageTimes } from "../usage/usage-summaries.js";
import { type RecentTrafficCounts, TRAFFIC_MINUTES } from "./recent-traffic.js";

/** Unspecified: hours reported, the current one included. */
export const TRAFFIC_HOURS = 24;

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

export interface TrafficStep {
  readonly from: Date;
  /** Answered generations. */
  readonly requests: number;
  readonly nanocredits: bigint;
  /** Requests that failed with a status from 400 to 499, and from 500. */
  readonly clientErrors: number;
  readonly serverErrors: number;
}

export interface Traffic extends Omit<TrafficStep, "from"> {
  readonly from: Date;
  readonly steps: readonly TrafficStep[];
  /** In milliseconds, to 5%; null without requests. */
  readonly responseTimeMs: UsageTimes | null;
  readonly timeToFirstTokenMs: UsageTimes | null;
}

interface HourRow {
  readonly start: Date;
  readonly requests: bigint;
  readonly cost: bigint;
  readonly responseTimes: string;
  readonly firstTokenTimes: string;
}

interface ErrorRow {
  readonly start: Date;
  readonly client: bigint;
  readonly server: bigint;
}

export class GatewayTraffic {
  constructor(
    private readonly database: Pick<Database, "prisma">,
    private readonly clock: Clock,
  ) {}

  /** The last hour by the minute. `counts`: sums over the processes of this gateway. */
  async lastHour(ctx: RequestContext, counts: RecentTrafficCounts): Promise<Traffic> {
    requireOperator(ctx);
    const first = (counts.until + 1 - TRAFFIC_MINUTES) * MINUTE_MS;
    const errors = await this.errorsSince(new Date(first), MINUTE_MS);
    const steps = Array.from({ length: TRAFFIC_MINUTES }, (_, index) => {
      const from = first + index * MINUTE_MS;
      const nanocredits = BigInt(Math.round(counts.nanocredits[index] ?? 0));
      return { from: new Date(from), requests: counts.requests[index] ?? 0, nanocredits, ...errorsOf(errors.get(from)) };
    });
    return toTraffic(steps, counts.responseTimes, counts.firstTokenTimes);
  }

  /** The last 24 hours by the hour (UTC). Each account's hours are read by the primary key: no index finds those of all accounts. */
  async lastDay(ctx: RequestContext): Promise<Traffic> {
    requireOperator(ctx);
    const first = (Math.floor(this.clock.now().getTime() / HOUR_MS) + 1 - TRAFFIC_HOURS) * HOUR_MS;
    const from = new Date(first);
    const [rows, errors] = await Promise.all([this.hoursSince(from), this.errorsSince(from, HOUR_MS)]);
    const byHour = new Map(rows.map((row) => [row.start.getTime(), row]));
    const steps = Array.from({ length: TRAFFIC_HOURS }, (_, index) => {
      const start = first + index * HOUR_MS;
      const row = byHour.get(start);
      const amounts = { requests: Number(row?.requests ?? 0n), nanocredits: row?.cost ?? 0n };
      return { from: new Date(start), ...amounts, ...errorsOf(errors.get(start)) };
    });
    return toTraffic(steps, addUp(rows.map((row) => row.responseTimes)), addUp(rows.map((row) => row.firstTokenTimes)));
  }

  private hoursSince(from: Date): Promise<HourRow[]> {
    return this.database.prisma.$queryRaw<HourRow[]>`
      SELECT start, sum(requests)::bigint AS requests, sum(cost_nanocredits)::bigint AS cost, sum(response_times)::text AS "responseTimes",
        sum(first_token_times)::text AS "firstTokenTimes"
      FROM (
        SELECT r.* FROM account a CROSS JOIN LATERAL (
          SELECT h.start, h.requests, h.cost_nanocredits, h.response_times, h.first_token_times
          FROM usage_hour_rollup h
          WHERE h.account_id = a.id AND h.level = ${BY_ACCOUNT} AND h.start >= ${from} AND h.outcome <> 'failed') r
        UNION ALL
        SELECT date_trunc('hour', at, 'UTC'), requests::bigint, requests * cost_nanocredits,
          coalesce(requests * usage_time_digit(response_time_ms), 0), coalesce(requests * usage_time_digit(time_to_first_token_ms), 0)
        FROM usage_unrolled() WHERE at >= ${from} AND outcome <> 'failed'
      ) part
      GROUP BY start`;
  }

  /** By the start of the step. Failures that the log left out count as well. */
  private async errorsSince(from: Date, stepMs: number): Promise<ReadonlyMap<number, ErrorRow>> {
    const unit = stepMs === HOUR_MS ? "hour" : "minute";
    const rows = await this.database.prisma.$queryRaw<ErrorRow[]>`
      SELECT date_trunc(${unit}, timestamp, 'UTC') AS start,
        coalesce(sum(1 + left_out) FILTER (WHERE status < 500), 0)::bigint AS client,
        coalesce(sum(1 + left_out) FILTER (WHERE status >= 500), 0)::bigint AS server
      FROM failed_request WHERE timestamp >= ${from} GROUP BY 1`;
    return new Map(rows.map((row) => [row.start.getTime(), row]));
  }
}

function errorsOf(row: ErrorRow | undefined) {
  return { clientErrors: Number(row?.client ?? 0n), serverErrors: Number(row?.server ?? 0n) };
}

function toTraffic(steps: readonly TrafficStep[], responseTimes: readonly number[], firstTokenTimes: readonly number[]): Traffic {
  const sumOf = (read: (step: TrafficStep) => number) => steps.reduce((sum, step) => sum + read(step), 0);
  return {
    from: steps[0]?.from ?? new Date(0),
    steps,
    requests: sumOf((step) => step.requests),
    nanocredits: steps.reduce((sum, step) => sum + step.nanocredits, 0n),
    clientErrors: sumOf((step) => step.clientErrors),
    serverErrors: sumOf((step) => step.serverErrors),
    responseTimeMs: timesOf(responseTimes),
    timeToFirstTokenMs: timesOf(firstTokenTimes),
  };
}

function addUp(histograms: readonly string[]): number[] {
  const sums: number[] = [];
  for (const digits of histograms) {
    for (const [bucket, counted] of readHistogram(digits).entries()) sums[bucket] = (sums[bucket] ?? 0) + counted;
  }
  return Array.from(sums, (counted) => counted ?? 0);
}
