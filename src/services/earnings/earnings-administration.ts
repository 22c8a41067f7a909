/** Earnings for operators (docs/spec/earnings.md#operators): payouts, taking back, linked accounts, and unusual patterns. */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { notFound } from "../../errors.js";
import { createId } from "../../lib/ids.js";
import { formatNanocredits } from "../../lib/money.js";
import { requireOperator } from "../access/permissions.js";
import { bookOnce, isBooked } from "../accounts/chosen-ids.js";
import { recordAct } from "../audit/audit-log.js";
import { positiveCredits } from "../credits/credits-amount.js";
import { storableText } from "../requests/input.js";
import { type Earnings, type EarningsDependencies, lessHasMatured } from "./earnings.js";
import {
  EARNING_FLAGS_MAX,
  EARNINGS_NOTE_CHARS_MAX,
  FLAGGED_NANOCREDITS_MIN,
  FLAGGED_PAYER_PERCENT,
  FLAGGED_REQUESTS_PER_MINUTE,
  FLAGGED_RISE_FACTOR,
  LINKED_ACCOUNTS_MAX,
} from "./limits.js";

const note = storableText.max(EARNINGS_NOTE_CHARS_MAX).nullish();

export const recordPayoutInput = z.strictObject({
  accountId: z.uuid(),
  credits: positiveCredits,
  note,
  /** Payouts with the same id are booked once. */
  payoutId: z.uuid().nullish(),
});
export type RecordPayoutInput = z.output<typeof recordPayoutInput>;

export const reverseEarningsInput = z.strictObject({
  /** Whose charges they are of. */
  payerId: z.uuid(),
  /** Who earned them; absent: everybody. */
  earnerId: z.uuid().nullish(),
  reason: note,
});
export type ReverseEarningsInput = z.output<typeof reverseEarningsInput>;

export const linkAccountsInput = z.strictObject({
  accountIds: z
    .array(z.uuid())
    .min(2)
    .max(LINKED_ACCOUNTS_MAX)
    .refine((ids) => new Set(ids).size === ids.length, "must not name an account twice"),
  reason: note,
});
export type LinkAccountsInput = z.output<typeof linkAccountsInput>;

/** An account that is owed earnings. Amounts in nanocredits. */
export interface OwedEarnings {
  readonly accountId: string;
  readonly handle: string;
  readonly available: bigint;
  readonly pending: bigint;
}

/**
 * one_payer: most of a day's earnings came from one account. rise: a day's earnings are far above those of the week before. high_rate: one
 * account made very many requests to one model, or through one app, within a minute.
 */
export type EarningFlagReason = "one_payer" | "rise" | "high_rate";

export interface EarningFlag {
  readonly reason: EarningFlagReason;
  /** The earner. */
  readonly accountId: string;
  readonly handle: string;
  /** The payer, for one_payer and high_rate. */
  readonly payerId: string | null;
  /** The canonical ID of the model, or the ID of the app key, for high_rate. */
  readonly source: string | null;
  readonly day: Date;
  /** For high_rate, both of its busiest minute. */
  readonly nanocredits: bigint;
  readonly requests: number;
}

export class EarningsAdministration {
  constructor(
    private readonly deps: EarningsDependencies,
    private readonly earnings: Pick<Earnings, "summary">,
  ) {}

  /** Accounts that are owed earnings, the largest available sums first. */
  async owed(ctx: RequestContext, first: number): Promise<readonly OwedEarnings[]> {
    requireOperator(ctx);
    return this.deps.database.prisma.$queryRaw<OwedEarnings[]>`
      SELECT a.id AS "accountId", a.handle, a.earned_nanocredits AS available, coalesce(p.pending, 0)::bigint AS pending
      FROM account a
      LEFT JOIN (SELECT d.account_id, sum(d.nanocredits) AS pending FROM earning_daily d WHERE d.matured_at IS NULL GROUP BY 1) p ON p.account_id = a.id
      WHERE a.earned_nanocredits <> 0 OR p.pending <> 0
      ORDER BY a.earned_nanocredits DESC, a.id LIMIT ${first}`;
  }

  /**
   * Books that matured earnings were paid out in money. Returns the nanocredits, the first time for a repeated id. Rejects with NOT_FOUND, or
   * CONFLICT when less has matured.
   */
  async recordPayout(ctx: RequestContext, { accountId, credits, note: text = null, payoutId }: RecordPayoutInput): Promise<bigint> {
    requireOperator(ctx);
    const { database, ledger } = this.deps;
    const { available } = await this.earnings.summary(ctx, accountId);
    const id = payoutId ?? createId();
    const paid = await bookOnce(database, "payout", async (transaction) => {
      const isRepeated = await isBooked(transaction, { id, kind: "payout", accountId });
      const amount = await ledger.payOut({ id, accountId, amount: credits, note: text }, transaction);
      if (amount === null || isRepeated) return amount;
      const after = { credits: formatNanocredits(amount) };
      await recordAct(transaction, ctx, { act: "record_payout", accountId, objectId: id, after, reason: text });
      return amount;
    });
    if (paid === null) throw lessHasMatured(available);
    return paid;
  }

  /** Takes back all earnings from a payer's charges that have not matured. Returns the nanocredits. Rejects with NOT_FOUND. */
  async reverse(ctx: RequestContext, { payerId, earnerId = null, reason = null }: ReverseEarningsInput): Promise<bigint> {
    requireOperator(ctx);
    const { database, ledger } = this.deps;
    const id = createId();
    return database.prisma.$transaction(async (transaction) => {
      if ((await transaction.account.count({ where: { id: payerId } })) === 0) throw notFound("account");
      const taken = await ledger.reverseEarnings({ id, payerId, earnerId, note: reason }, transaction);
      const after = { credits: formatNanocredits(taken), ...(earnerId !== null && { earnerId }) };
      await recordAct(transaction, ctx, { act: "reverse_earnings", accountId: payerId, objectId: id, after, reason });
      return taken;
    });
  }

  /** States that accounts are of one person: they earn nothing from each other from now on. Rejects with NOT_FOUND. */
  async link(ctx: RequestContext, { accountIds, reason = null }: LinkAccountsInput): Promise<readonly string[]> {
    requireOperator(ctx);
    const ids = [...accountIds].sort();
    return this.deps.database.prisma.$transaction(async (transaction) => {
      const rows = await transaction.$queryRaw<{ readonly id: string; readonly groupId: string | null }[]>`
        SELECT id, earning_group_id AS "groupId" FROM account WHERE id = ANY (${ids}::uuid[]) ORDER BY id FOR NO KEY UPDATE`;
      if (rows.length < ids.length) throw notFound("account");
      const groups = rows.flatMap(({ groupId }) => groupId ?? []);
      const groupId = groups[0] ?? createId();
      const where = { OR: [{ id: { in: ids } }, { earningGroupId: { in: groups } }] };
      await transaction.account.updateMany({ where, data: { earningGroupId: groupId } });
      const linked = await transaction.account.findMany({
        where: { earningGroupId: groupId },
        select: { id: true },
        orderBy: { id: "asc" },
      });
      const all = linked.map(({ id }) => id);
      await recordAct(transaction, ctx, { act: "link_accounts", objectId: groupId, after: { linked: all }, reason });
      return all;
    });
  }

  /** Ends the links of an account. Rejects with NOT_FOUND. */
  async unlink(ctx: RequestContext, accountId: string): Promise<void> {
    requireOperator(ctx);
    await this.deps.database.prisma.$transaction(async (transaction) => {
      const { count } = await transaction.account.updateMany({ where: { id: accountId }, data: { earningGroupId: null } });
      if (count === 0) throw notFound("account");
      await recordAct(transaction, ctx, { act: "unlink_account", accountId });
    });
  }

  /** Patterns of the last seven days that may be farming: the largest sums first. */
  async flags(ctx: RequestContext): Promise<readonly EarningFlag[]> {
    requireOperator(ctx);
    return this.deps.database.prisma.$queryRaw<EarningFlag[]>`
      WITH minutes AS MATERIALIZED (
        SELECT e.account_id, e.payer_id, e.day, e.source, date_trunc('minute', e.created_at) AS minute,
          sum(e.nanocredits - e.reversed_nanocredits) AS amount, count(*) AS requests
        FROM earning e JOIN (SELECT DISTINCT account_id FROM earning_daily WHERE matured_at IS NULL) open ON open.account_id = e.account_id
        WHERE e.created_at > now() - interval '8 days' GROUP BY 1, 2, 3, 4, 5
      ), recent AS (
        SELECT m.account_id, m.payer_id, m.day, sum(m.amount) AS amount, sum(m.requests) AS requests FROM minutes m GROUP BY 1, 2, 3
      ), days AS (
        SELECT r.account_id, r.day, sum(r.amount) AS amount, sum(r.requests) AS requests FROM recent r GROUP BY 1, 2
      ), flag AS (
        SELECT 'one_payer' AS reason, r.account_id, r.payer_id, NULL AS source, r.day, r.amount, r.requests
        FROM recent r JOIN days d ON d.account_id = r.account_id AND d.day = r.day
        WHERE r.amount >= ${FLAGGED_NANOCREDITS_MIN} AND r.amount * 100 >= d.amount * ${FLAGGED_PAYER_PERCENT}
        UNION ALL
        SELECT 'rise', d.account_id, NULL, NULL, d.day, d.amount, d.requests
        FROM days d WHERE d.amount >= ${FLAGGED_NANOCREDITS_MIN} AND d.amount > ${FLAGGED_RISE_FACTOR} * (
          SELECT coalesce(sum(b.nanocredits), 0) / 7 FROM earning_daily b WHERE b.account_id = d.account_id AND b.day < d.day AND b.day >= d.day - 7)
          AND EXISTS (SELECT FROM earning_daily b WHERE b.account_id = d.account_id AND b.day < d.day AND b.day >= d.day - 7)
        UNION ALL
        SELECT * FROM (
          SELECT DISTINCT ON (m.account_id, m.payer_id, m.source, m.day) 'high_rate', m.account_id, m.payer_id, m.source, m.day, m.amount, m.requests
          FROM minutes m WHERE m.requests >= ${FLAGGED_REQUESTS_PER_MINUTE}
          ORDER BY m.account_id, m.payer_id, m.source, m.day, m.requests DESC) busiest
      )
      SELECT f.reason, f.account_id AS "accountId", a.handle, f.payer_id AS "payerId", f.source, f.day, f.amount::bigint AS nanocredits, f.requests::integer AS requests
      FROM flag f JOIN account a ON a.id = f.account_id ORDER BY f.amount DESC, f.account_id, f.day LIMIT ${EARNING_FLAGS_MAX}`;
  }
}
