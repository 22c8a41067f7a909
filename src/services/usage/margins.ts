/**
 * Margins for operators (docs/spec/usage.md#margins): credits charged less the operator's cost, by model, upstream and day. Read from the
 * usage rows of each account by its index, since the roll-ups have no upstream.
 */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { wrongField } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import type { Database } from "../../store/database.js";
import { Prisma } from "../../store/generated/prisma/client.js";
import { requireOperator } from "../access/permissions.js";

export const MARGIN_GROUPINGS = ["model", "upstream", "day"] as const;
export type MarginGrouping = (typeof MARGIN_GROUPINGS)[number];

/** Unspecified: the longest range, because every row in it is read. */
export const MARGIN_DAYS_MAX = 92;
export const MARGIN_DAYS_DEFAULT = 30;
/** Unspecified: groups of one answer. */
export const MARGIN_GROUPS_MAX = 10_000;
export const MARGIN_GROUPS_DEFAULT = 100;

const DAY_MS = 24 * 60 * 60 * 1000;

export const marginInput = z.strictObject({
  /** Empty: one group of all. */
  by: z
    .array(z.enum(MARGIN_GROUPINGS))
    .max(MARGIN_GROUPINGS.length)
    .refine((by) => new Set(by).size === by.length, "must not name a dimension twice"),
  /** Inclusive. */
  from: z.date().nullish(),
  /** Exclusive; now by default. */
  to: z.date().nullish(),
  first: z.int().min(1).max(MARGIN_GROUPS_MAX).default(MARGIN_GROUPS_DEFAULT),
});
export type MarginQuery = z.output<typeof marginInput>;

/** One group; fields that are not grouped by are null. Amounts in nanocredits. */
export interface MarginRow {
  /** The model that served. */
  readonly model: string | null;
  /** Null also for rows from before upstreams were recorded. */
  readonly upstream: string | null;
  /** YYYY-MM-DD, UTC. */
  readonly day: string | null;
  readonly requests: number;
  /** Requests of which the operator's cost is unknown. */
  readonly unknownRequests: number;
  /** Charged for all requests. */
  readonly costNanocredits: bigint;
  /** The operator's cost of the requests of which it is known. */
  readonly upstreamCostNanocredits: bigint;
  /** Charged for these requests, less their cost; may be negative. */
  readonly marginNanocredits: bigint;
}

interface Row {
  readonly model: string | null;
  readonly upstream: string | null;
  readonly day: string | null;
  readonly requests: bigint;
  readonly unknown: bigint;
  readonly cost: bigint;
  readonly upstreamCost: bigint;
  readonly margin: bigint;
}

export class Margins {
  constructor(
    private readonly database: Pick<Database, "prisma">,
    private readonly clock: Clock,
  ) {}

  /** The largest charges first. Rejects with BAD_REQUEST for a range that is too long. */
  async read(ctx: RequestContext, { by, from: asked, to: end, first }: MarginQuery): Promise<readonly MarginRow[]> {
    requireOperator(ctx);
    const to = end ?? this.clock.now();
    const from = asked ?? new Date(to.getTime() - MARGIN_DAYS_DEFAULT * DAY_MS);
    if (from > to) throw wrongField("from", "must not be later than `to`");
    if (to.getTime() - from.getTime() > MARGIN_DAYS_MAX * DAY_MS)
      throw wrongField("from", `must be at most ${MARGIN_DAYS_MAX} days before \`to\``);
    const rows = await this.database.prisma.$queryRaw<Row[]>`
      SELECT ${by.includes("model") ? Prisma.sql`u.model_used` : Prisma.sql`NULL::text`} AS model,
        ${by.includes("upstream") ? Prisma.sql`u.upstream` : Prisma.sql`NULL::text`} AS upstream,
        ${by.includes("day") ? Prisma.sql`to_char(u.timestamp AT TIME ZONE 'UTC', 'YYYY-MM-DD')` : Prisma.sql`NULL::text`} AS day,
        count(*) AS requests, count(*) FILTER (WHERE u.upstream_cost_nanocredits IS NULL) AS unknown,
        coalesce(sum(u.cost_nanocredits), 0)::bigint AS cost, coalesce(sum(u.upstream_cost_nanocredits), 0)::bigint AS "upstreamCost",
        coalesce(sum(u.cost_nanocredits - u.upstream_cost_nanocredits), 0)::bigint AS margin
      FROM account a CROSS JOIN LATERAL (
        SELECT r.* FROM usage_record r WHERE r.account_id = a.id AND r.timestamp >= ${from} AND r.timestamp < ${to}) u
      GROUP BY 1, 2, 3
      HAVING count(*) > 0
      ORDER BY cost DESC, requests DESC, 1, 2, 3
      LIMIT ${first}`;
    return rows.map(({ requests, unknown, cost, upstreamCost, margin, ...group }) => ({
      ...group,
      requests: Number(requests),
      unknownRequests: Number(unknown),
      costNanocredits: cost,
      upstreamCostNanocredits: upstreamCost,
      marginNanocredits: margin,
    }));
  }
}
