/** Earnings as their owner sees and uses them (docs/spec/earnings.md). Payers are not named. */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { conflict, notFound } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { createId, isUuid, namedId } from "../../lib/ids.js";
import { formatNanocredits } from "../../lib/money.js";
import { COUNT_TAKE, newestFirst, type Page, type PageRequest, toPage } from "../../lib/pagination.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { EarningDailyModel, EarningModel } from "../../store/generated/prisma/models.js";
import type { Ledger } from "../../store/ledger.js";
import { requireKeyManager, requireOperator, requirePermission } from "../access/permissions.js";
import { bookOnce, isBooked } from "../accounts/chosen-ids.js";
import { mapEvents, queueOf } from "../accounts/live.js";
import { positiveCredits } from "../credits/credits-amount.js";
import { EARNING_DAYS_DEFAULT, EARNING_DAYS_MAX, MATURITY_DAYS } from "./limits.js";

const DAY_MS = 86_400_000;

export const convertEarningsInput = z.strictObject({
  credits: positiveCredits,
  /** Conversions with the same id are made once. */
  conversionId: z.uuid().nullish(),
});
export type ConvertEarningsInput = z.output<typeof convertEarningsInput>;

export const earningDays = z.int().min(1).max(EARNING_DAYS_MAX).default(EARNING_DAYS_DEFAULT);

export type EarningRow = EarningModel;
export type EarningDayRow = EarningDailyModel;

/** In nanocredits. */
export interface EarningsSummary {
  /** Cannot be used yet. */
  readonly pending: bigint;
  /** Can be converted, or is paid out by the operator. */
  readonly available: bigint;
  readonly converted: bigint;
  readonly paidOut: bigint;
  /** Taken back before it matured. */
  readonly reversed: bigint;
}

export interface EarningsDependencies {
  readonly database: Database;
  readonly ledger: Pick<Ledger, "convertEarnings" | "payOut" | "reverseEarnings">;
  readonly events: Events;
  readonly clock: Clock;
}

export class Earnings {
  constructor(private readonly deps: EarningsDependencies) {}

  /** The own account needs the permission for its balance; operators may read any. Rejects with NOT_FOUND. */
  async summary(ctx: RequestContext, accountId: string): Promise<EarningsSummary> {
    assertMayRead(ctx, accountId);
    const [row] = await this.deps.database.prisma.$queryRaw<EarningsSummary[]>`
      SELECT a.earned_nanocredits AS available,
        coalesce((SELECT sum(d.nanocredits) FROM earning_daily d WHERE d.account_id = a.id AND d.matured_at IS NULL), 0)::bigint AS pending,
        coalesce((SELECT sum(d.reversed_nanocredits) FROM earning_daily d WHERE d.account_id = a.id), 0)::bigint AS reversed,
        coalesce(-sum(l.amount_nanocredits) FILTER (WHERE l.kind = 'conversion'), 0)::bigint AS converted,
        coalesce(-sum(l.amount_nanocredits) FILTER (WHERE l.kind = 'payout'), 0)::bigint AS "paidOut"
      FROM account a
      LEFT JOIN ledger_entry l ON l.account_id = a.id AND l.book = 'earnings' AND l.kind IN ('conversion', 'payout')
      WHERE a.id = ${accountId}::uuid GROUP BY a.id`;
    if (!row) throw notFound("account");
    return row;
  }

  /** Lists shares, newest first. Permissions as of `summary`. */
  async list(ctx: RequestContext, accountId: string, page: PageRequest): Promise<Page<EarningRow>> {
    assertMayRead(ctx, accountId);
    const { earning } = this.deps.database.prisma;
    const { where: older, ...query } = newestFirst(page);
    const rows = await earning.findMany({ where: { AND: [{ accountId }, older] }, ...query });
    return toPage(rows, page, () => earning.count({ where: { accountId }, take: COUNT_TAKE }));
  }

  /** Returns shares of the caller's own by id. */
  async getMany(ctx: RequestContext, ids: readonly string[]): Promise<EarningRow[]> {
    const { accountId } = requirePermission(ctx, "balance");
    return this.deps.database.prisma.earning.findMany({ where: { id: { in: ids.filter(isUuid) }, accountId } });
  }

  /** Earnings by day (UTC), kind and source, newest first. Permissions as of `summary`. */
  async daily(ctx: RequestContext, accountId: string, days: number): Promise<EarningDayRow[]> {
    assertMayRead(ctx, accountId);
    const today = Math.floor(this.deps.clock.now().getTime() / DAY_MS) * DAY_MS;
    const day = { gte: new Date(today - (days - 1) * DAY_MS) };
    return this.deps.database.prisma.earningDaily.findMany({
      where: { accountId, day },
      orderBy: [{ day: "desc" }, { kind: "asc" }, { source: "asc" }],
    });
  }

  /** Yields each share of the account once its charge is committed. */
  recorded(ctx: RequestContext): AsyncIterableIterator<EarningRow> {
    const { accountId } = requirePermission(ctx, "balance");
    const { events, database } = this.deps;
    const queue = queueOf(events, ctx, "earning-recorded", accountId);
    return mapEvents(queue, ({ generationId, share: kind }) =>
      database.prisma.earning.findUnique({ where: { generationId_kind: { generationId, kind }, accountId } }),
    );
  }

  /**
   * Turns matured earnings into credits of the pack bucket. Returns the nanocredits, the first time for a repeated id. Rejects with CONFLICT
   * when less has matured.
   */
  async convert(ctx: RequestContext, { credits, conversionId }: ConvertEarningsInput): Promise<bigint> {
    const { accountId } = requireKeyManager(ctx);
    const { database, ledger, events } = this.deps;
    const converted = await bookOnce(database, "conversion", async (transaction) => {
      const id = await this.bookingIdOf(transaction, accountId, conversionId);
      return ledger.convertEarnings({ id, accountId, amount: credits, note: null }, transaction);
    });
    if (converted === null) throw lessHasMatured((await this.summary(ctx, accountId)).available);
    events.publish("balance-changed", { accountId });
    return converted;
  }

  /**
   * An id of the account's own for the chosen one: a charge whose generation has the chosen id could not be booked beside the conversion.
   * Rejects with CONFLICT when the chosen id belongs to another booking.
   */
  private async bookingIdOf(rows: Parameters<typeof isBooked>[0], accountId: string, chosen: string | null | undefined): Promise<string> {
    if (chosen == null) return createId();
    // Earlier conversions have the chosen id itself.
    if (await isBooked(rows, { id: chosen, kind: "conversion", accountId })) return chosen;
    return namedId(`conversion ${chosen} of ${accountId}`);
  }
}

/** When the shares of a charge can be used: at the start of the day (UTC) after seven whole days. */
export function maturesAt({ day }: { readonly day: Date }): Date {
  return new Date(day.getTime() + (MATURITY_DAYS + 1) * DAY_MS);
}

export function lessHasMatured(available: bigint): Error {
  return conflict(`Only ${formatNanocredits(available)} credits of earnings have matured: use that much or less.`);
}

function assertMayRead(ctx: RequestContext, accountId: string): void {
  if (requirePermission(ctx, "balance").accountId !== accountId) requireOperator(ctx);
}
