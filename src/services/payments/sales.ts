/** Sales by day for operators (docs/spec/top-ups.md#sales): purchases, refunds and disputes, each on the day on which it was booked. */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { wrongField } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import type { Database } from "../../store/database.js";
import { requireOperator } from "../access/permissions.js";

/** Unspecified: the longest range. */
export const SALES_DAYS_MAX = 366;
export const SALES_DAYS_DEFAULT = 30;

const DAY_MS = 24 * 60 * 60 * 1000;

export const salesInput = z.strictObject({
  /** Inclusive. */
  from: z.date().nullish(),
  /** Exclusive; now by default. */
  to: z.date().nullish(),
});
export type SalesQuery = z.output<typeof salesInput>;

/** One day, processor and currency. Amounts in nanocredits and hundredths of the currency, without taxes. */
export interface SalesRow {
  /** YYYY-MM-DD, UTC. */
  readonly day: string;
  readonly processor: string;
  readonly currency: string;
  readonly purchases: number;
  /** Of the purchases. */
  readonly automatic: number;
  readonly soldNanocredits: bigint;
  readonly soldCents: bigint;
  readonly refunds: number;
  readonly refundedCents: bigint;
  readonly disputes: number;
  readonly disputedCents: bigint;
  readonly disputesWon: number;
  readonly wonCents: bigint;
  /** Refunds whose money came back. */
  readonly refundsFailed: number;
  readonly failedCents: bigint;
  /** Of refunds and disputes: credits that were spent before. */
  readonly writtenOffNanocredits: bigint;
  /** Of won disputes and failed refunds: credits that were written off, and are paid after all. */
  readonly reversedNanocredits: bigint;
}

export class Sales {
  constructor(
    private readonly database: Pick<Database, "prisma">,
    private readonly clock: Clock,
  ) {}

  /** Newest day first. Rejects with BAD_REQUEST for a range that is too long. */
  async read(ctx: RequestContext, { from: asked, to: end }: SalesQuery): Promise<readonly SalesRow[]> {
    requireOperator(ctx);
    const to = end ?? this.clock.now();
    const from = asked ?? new Date(to.getTime() - SALES_DAYS_DEFAULT * DAY_MS);
    if (from > to) throw wrongField("from", "must not be later than `to`");
    if (to.getTime() - from.getTime() > SALES_DAYS_MAX * DAY_MS)
      throw wrongField("from", `must be at most ${SALES_DAYS_MAX} days before \`to\``);
    return this.database.prisma.$queryRaw<SalesRow[]>`
      SELECT to_char(s.at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, s.processor, s.currency,
        count(*) FILTER (WHERE s.kind = 'purchase')::int AS purchases, count(*) FILTER (WHERE s.kind = 'purchase' AND s.is_automatic)::int AS automatic,
        coalesce(sum(s.nanocredits) FILTER (WHERE s.kind = 'purchase'), 0)::bigint AS "soldNanocredits",
        coalesce(sum(s.cents) FILTER (WHERE s.kind = 'purchase'), 0)::bigint AS "soldCents",
        count(*) FILTER (WHERE s.kind = 'refund')::int AS refunds, coalesce(sum(s.cents) FILTER (WHERE s.kind = 'refund'), 0)::bigint AS "refundedCents",
        count(*) FILTER (WHERE s.kind = 'dispute')::int AS disputes, coalesce(sum(s.cents) FILTER (WHERE s.kind = 'dispute'), 0)::bigint AS "disputedCents",
        count(*) FILTER (WHERE s.kind = 'dispute_won')::int AS "disputesWon", coalesce(sum(s.cents) FILTER (WHERE s.kind = 'dispute_won'), 0)::bigint AS "wonCents",
        count(*) FILTER (WHERE s.kind = 'refund_failed')::int AS "refundsFailed", coalesce(sum(s.cents) FILTER (WHERE s.kind = 'refund_failed'), 0)::bigint AS "failedCents",
        coalesce(sum(s.lost) FILTER (WHERE s.kind IN ('refund', 'dispute')), 0)::bigint AS "writtenOffNanocredits",
        coalesce(sum(s.lost) FILTER (WHERE s.kind IN ('refund_failed', 'dispute_won')), 0)::bigint AS "reversedNanocredits"
      FROM (
        SELECT paid_at AS at, processor, currency, 'purchase' AS kind, is_automatic, nanocredits, amount_cents AS cents, 0 AS lost
        FROM top_up WHERE status = 'paid' AND paid_at >= ${from} AND paid_at < ${to}
        UNION ALL
        SELECT r.created_at, t.processor, t.currency, r.kind::text, t.is_automatic, r.nanocredits, r.amount_cents, r.nanocredits - r.moved_nanocredits
        FROM top_up_reversal r JOIN top_up t ON t.id = r.top_up_id WHERE r.created_at >= ${from} AND r.created_at < ${to}
      ) s
      GROUP BY 1, 2, 3 ORDER BY 1 DESC, 2, 3`;
  }
}
