/**
 * Spend of all accounts in a month (UTC), by account, key or model, for operators (docs/spec/usage.md#spend). Sums of the roll-ups by day,
 * with the rows that are not rolled up yet, in one statement.
 */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { wrongField } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import type { Database } from "../../store/database.js";
import { Prisma } from "../../store/generated/prisma/client.js";
import { requireOperator } from "../access/permissions.js";
import { BY_ACCOUNT, BY_KEY, BY_MODEL, NO_KEY } from "./usage-roll-ups.js";

export const SPEND_GROUPINGS = ["account", "key", "model"] as const;
export type SpendGrouping = (typeof SPEND_GROUPINGS)[number];

export const SPEND_ORDERS = ["cost", "requests", "input_tokens", "output_tokens", "name"] as const;
export type SpendOrder = (typeof SPEND_ORDERS)[number];

/** Unspecified: groups of one answer. */
export const SPEND_GROUPS_MAX = 1_000;
export const SPEND_GROUPS_DEFAULT = 100;
/** Unspecified: groups of one table, which is held in memory. */
export const SPEND_TABLE_ROWS_MAX = 50_000;

/** Years of four digits that the database can store. */
const MONTH_PATTERN = /^2\d{3}-(?:0[1-9]|1[0-2])$/;

export const spendInput = z.strictObject({
  by: z.enum(SPEND_GROUPINGS),
  month: z.string().regex(MONTH_PATTERN, "must be a month such as 2026-11").nullish(),
  accountId: z.uuid().nullish(),
  order: z.enum(SPEND_ORDERS).default("cost"),
  isAscending: z.boolean().default(false),
  first: z.int().min(1).max(SPEND_GROUPS_MAX).default(SPEND_GROUPS_DEFAULT),
});
export type SpendQuery = z.output<typeof spendInput>;

export interface SpendSums {
  readonly requests: number;
  /** Generations that failed through no fault of the caller. */
  readonly failedRequests: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly costNanocredits: bigint;
}

/** One group; fields that are not grouped by are null. */
export interface SpendRow extends SpendSums {
  /** By account and by key. */
  readonly accountId: string | null;
  readonly handle: string | null;
  readonly email: string | null;
  /** Null by key: requests by sessions. */
  readonly apiKeyId: string | null;
  readonly apiKeyName: string | null;
  readonly model: string | null;
}

export interface Spend {
  /** YYYY-MM. */
  readonly month: string;
  readonly by: SpendGrouping;
  readonly rows: readonly SpendRow[];
  /** The number of groups, including those not in `rows`. */
  readonly groups: number;
  /** Sums over all groups. */
  readonly total: SpendSums;
}

interface Row extends Omit<SpendRow, keyof SpendSums> {
  readonly requests: bigint;
  readonly failures: bigint;
  readonly input: bigint;
  readonly output: bigint;
  readonly cost: bigint;
  readonly groups: bigint;
  readonly allRequests: bigint;
  readonly allFailures: bigint;
  readonly allInput: bigint;
  readonly allOutput: bigint;
  readonly allCost: bigint;
}

const LEVELS: Readonly<Record<SpendGrouping, number>> = { account: BY_ACCOUNT, key: BY_KEY, model: BY_MODEL };
const ORDERS: Readonly<Record<SpendOrder, Prisma.Sql>> = {
  cost: Prisma.sql`s.cost`,
  requests: Prisma.sql`s.requests`,
  input_tokens: Prisma.sql`s.input`,
  output_tokens: Prisma.sql`s.output`,
  name: Prisma.sql`lower(coalesce(k.name, a.handle, s.model))`,
};
const NOTHING: SpendSums = { requests: 0, failedRequests: 0, inputTokens: 0, outputTokens: 0, costNanocredits: 0n };

export class SpendReports {
  constructor(
    private readonly database: Pick<Database, "prisma">,
    private readonly clock: Clock,
  ) {}

  /** Reads the groups of a month; of the present one by default. */
  async read(ctx: RequestContext, query: SpendQuery): Promise<Spend> {
    requireOperator(ctx);
    return this.sumUp(query, query.first);
  }

  /** Reads all groups of a month, for a table. Rejects with BAD_REQUEST beyond SPEND_TABLE_ROWS_MAX: a cut table would look complete. */
  async readAll(ctx: RequestContext, query: SpendQuery): Promise<Spend> {
    requireOperator(ctx);
    const spend = await this.sumUp(query, SPEND_TABLE_ROWS_MAX);
    if (spend.groups <= SPEND_TABLE_ROWS_MAX) return spend;
    throw wrongField("by", `has ${spend.groups} groups, and a table ${SPEND_TABLE_ROWS_MAX} at most: ask for one account, or by MODEL`);
  }

  private async sumUp({ by, month: asked, accountId, order, isAscending }: SpendQuery, first: number): Promise<Spend> {
    const month = asked ?? this.clock.now().toISOString().slice(0, 7);
    const direction = isAscending ? Prisma.sql`ASC` : Prisma.sql`DESC`;
    const rows = await this.database.prisma.$queryRaw<Row[]>`
      WITH sums AS (${sumsOf(by, boundsOf(month), accountId ?? null)})
      SELECT s.account_id::text AS "accountId", a.handle, a.email, nullif(s.api_key_id, ${NO_KEY}::uuid)::text AS "apiKeyId",
        k.name AS "apiKeyName", s.model, s.requests, s.failures, s.input, s.output, s.cost, count(*) OVER () AS groups,
        (sum(s.requests) OVER ())::bigint AS "allRequests", (sum(s.failures) OVER ())::bigint AS "allFailures",
        (sum(s.input) OVER ())::bigint AS "allInput", (sum(s.output) OVER ())::bigint AS "allOutput", (sum(s.cost) OVER ())::bigint AS "allCost"
      FROM sums s LEFT JOIN account a ON a.id = s.account_id LEFT JOIN api_key k ON k.id = s.api_key_id
      WHERE s.requests > 0 OR s.failures > 0
      ORDER BY ${ORDERS[order]} ${direction} NULLS LAST, s.cost DESC, s.account_id, s.api_key_id, s.model
      LIMIT ${first}`;
    const [top] = rows;
    return { month, by, rows: rows.map(toRow), groups: Number(top?.groups ?? 0n), total: top ? toTotal(top) : NOTHING };
  }
}

interface Bounds {
  readonly from: Date;
  readonly to: Date;
}

function boundsOf(month: string): Bounds {
  const [year, number] = month.split("-").map(Number) as [number, number];
  return { from: new Date(Date.UTC(year, number - 1)), to: new Date(Date.UTC(year, number)) };
}

/** Each account's days are read by the primary key: no index finds those of all accounts. */
function sumsOf(by: SpendGrouping, { from, to }: Bounds, accountId: string | null): Prisma.Sql {
  const groups = Prisma.sql`${by === "model" ? Prisma.sql`NULL::uuid` : Prisma.sql`account_id`} AS account_id,
    ${by === "key" ? Prisma.sql`api_key_id` : Prisma.sql`NULL::uuid`} AS api_key_id,
    ${by === "model" ? Prisma.sql`model` : Prisma.sql`NULL::text`} AS model`;
  const ofAccount = accountId === null ? Prisma.empty : Prisma.sql`WHERE a.id = ${accountId}::uuid`;
  const unrolledOf = accountId === null ? Prisma.empty : Prisma.sql`AND account_id = ${accountId}::uuid`;
  return Prisma.sql`
    SELECT ${groups},
      coalesce(sum(requests) FILTER (WHERE outcome <> 'failed'), 0)::bigint AS requests,
      coalesce(sum(requests) FILTER (WHERE outcome = 'failed'), 0)::bigint AS failures,
      sum(input_tokens)::bigint AS input, sum(output_tokens)::bigint AS output, sum(cost_nanocredits)::bigint AS cost
    FROM (
      SELECT r.* FROM account a CROSS JOIN LATERAL (
        SELECT d.account_id, d.api_key_id, d.model, d.outcome, d.requests, d.input_tokens, d.output_tokens, d.cost_nanocredits
        FROM usage_day_rollup d
        WHERE d.account_id = a.id AND d.level = ${LEVELS[by]} AND d.start >= ${from} AND d.start < ${to}) r ${ofAccount}
      UNION ALL
      SELECT account_id, coalesce(api_key_id, ${NO_KEY}::uuid), model, outcome, requests::bigint, requests * input_tokens,
        requests * output_tokens, requests * cost_nanocredits
      FROM usage_unrolled() WHERE at >= ${from} AND at < ${to} ${unrolledOf}
    ) part
    GROUP BY 1, 2, 3`;
}

function toRow({ requests, failures, input, output, cost, ...row }: Row): SpendRow {
  const { accountId, handle, email, apiKeyId, apiKeyName, model } = row;
  return { accountId, handle, email, apiKeyId, apiKeyName, model, ...toSums(requests, failures, input, output, cost) };
}

function toTotal({ allRequests, allFailures, allInput, allOutput, allCost }: Row): SpendSums {
  return toSums(allRequests, allFailures, allInput, allOutput, allCost);
}

function toSums(requests: bigint, failures: bigint, input: bigint, output: bigint, costNanocredits: bigint): SpendSums {
  return {
    requests: Number(requests),
    failedRequests: Number(failures),
    inputTokens: Number(input),
    outputTokens: Number(output),
    costNanocredits,
  };
}
