/** Credits that people buy (docs/spec/top-ups.md): a checkout, its payment, and refunds. */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { conflict, notFound, serviceUnavailable } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { createId, isUuid } from "../../lib/ids.js";
import { formatNanocredits } from "../../lib/money.js";
import { COUNT_TAKE, newestFirst, type Page, type PageRequest, toPage } from "../../lib/pagination.js";
import { type Database, type DatabaseClient, lockAccountRow, lockName } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { TopUpModel } from "../../store/generated/prisma/models.js";
import type { Ledger } from "../../store/ledger.js";
import { isOperator, requireKeyManager, requireOperator, requirePermission } from "../access/permissions.js";
import { mapEvents, queueOf } from "../accounts/live.js";
import { recordAct } from "../audit/audit-log.js";
import { creditsAmount } from "../credits/credits-amount.js";
import type { Leases } from "../credits/leases.js";
import { storableText } from "../requests/input.js";
import { CHECKOUT_SECONDS, OPEN_CHECKOUTS_MAX, REFUND_REASON_CHARS_MAX, TOP_UP_CREDITS_MAX, TOP_UP_CREDITS_MIN } from "./limits.js";
import { isInCents, priceOf } from "./money.js";
import type { PaymentProcessor } from "./processor.js";

const NANO = 10n ** 9n;
const isBuyable = (nanocredits: bigint) =>
  nanocredits >= BigInt(TOP_UP_CREDITS_MIN) * NANO && nanocredits <= BigInt(TOP_UP_CREDITS_MAX) * NANO;

export const createCheckoutInput = z.strictObject({
  credits: creditsAmount
    .refine(isBuyable, `must be from ${TOP_UP_CREDITS_MIN} to ${TOP_UP_CREDITS_MAX}`)
    .refine(isInCents, "must have at most 2 decimals")
    .meta({
      ...{ anyOf: undefined, type: "number", minimum: TOP_UP_CREDITS_MIN, maximum: TOP_UP_CREDITS_MAX },
      description: "Credits to buy, with at most 2 decimals.",
    }),
});
export type CreateCheckoutInput = z.output<typeof createCheckoutInput>;

export const refundTopUpInput = z.strictObject({
  topUpId: z.uuid(),
  reason: storableText.max(REFUND_REASON_CHARS_MAX).nullish(),
});
export type RefundTopUpInput = z.output<typeof refundTopUpInput>;

export type TopUpRow = TopUpModel;

/** The state of a top-up, as shown. */
export type TopUpState = "open" | "expired" | "paid" | "refunded" | "cancelled";

export interface OpenedCheckout {
  readonly topUp: TopUpModel;
  /** Secret to the payer. */
  readonly url: string;
}

export interface TopUpsDependencies {
  readonly database: Database;
  readonly ledger: Pick<Ledger, "purchase" | "refund">;
  readonly leases: Pick<Leases, "recall">;
  readonly events: Events;
  readonly clock: Clock;
  /** Null: credits cannot be bought. */
  readonly processor: PaymentProcessor | null;
}

export class TopUps {
  constructor(private readonly deps: TopUpsDependencies) {}

  /** Whether credits can be bought on this gateway. */
  get isOffered(): boolean {
    return this.deps.processor !== null;
  }

  /** Opens the page of the processor on which a person pays. Rejects with CONFLICT when too many of the account are open. */
  async createCheckout(ctx: RequestContext, { credits }: CreateCheckoutInput): Promise<OpenedCheckout> {
    const { accountId } = requireKeyManager(ctx);
    const { database, clock, processor } = this.deps;
    if (!processor) throw serviceUnavailable("Credits cannot be bought on this gateway: no payment processor is configured.");
    const price = priceOf(credits);
    const createdAt = clock.now();
    const expiresAt = new Date(createdAt.getTime() + CHECKOUT_SECONDS * 1_000);
    const row = await database.prisma.$transaction(async (transaction) => {
      // Two concurrent requests must not both open the last one allowed.
      await lockName(transaction, `checkouts of ${accountId}`);
      const open = await transaction.topUp.count({ where: { accountId, status: "open", expiresAt: { gt: createdAt } } });
      if (open >= OPEN_CHECKOUTS_MAX)
        throw conflict(`At most ${OPEN_CHECKOUTS_MAX} checkouts are open at once: pay one, or wait until one ends.`);
      const { cents: amountCents, currency } = price;
      const data = { accountId, processor: processor.name, nanocredits: credits, currency, amountCents, createdAt, expiresAt };
      return transaction.topUp.create({ data: { id: createId(), ...data } });
    });
    const { reference, url } = await processor.openCheckout({ topUpId: row.id, accountId, price, expiresAt });
    const topUp = await database.prisma.topUp.update({ where: { id: row.id }, data: { reference } });
    return { topUp, url };
  }

  /** Lists top-ups, newest first. The own account needs the permission for its balance; operators may read any. */
  async list(ctx: RequestContext, accountId: string, page: PageRequest): Promise<Page<TopUpModel>> {
    if (requirePermission(ctx, "balance").accountId !== accountId) requireOperator(ctx);
    const { topUp } = this.deps.database.prisma;
    const { where: older, ...query } = newestFirst(page);
    const rows = await topUp.findMany({ where: { AND: [{ accountId }, older] }, ...query });
    return toPage(rows, page, () => topUp.count({ where: { accountId }, take: COUNT_TAKE }));
  }

  /** Returns top-ups by id. The own account needs the permission for its balance; operators may read any. */
  async getMany(ctx: RequestContext, ids: readonly string[]): Promise<TopUpModel[]> {
    const { accountId } = requirePermission(ctx, "balance");
    return this.deps.database.prisma.topUp.findMany({ where: { id: { in: ids.filter(isUuid) }, ...(!isOperator(ctx) && { accountId }) } });
  }

  async get(ctx: RequestContext, id: string): Promise<TopUpModel> {
    const [row] = await this.getMany(ctx, [id]);
    if (!row) throw notFound("top-up");
    return row;
  }

  /** Yields the id of each top-up of the account once it is paid. */
  completed(ctx: RequestContext): AsyncIterableIterator<{ readonly topUpId: string }> {
    const { accountId } = requirePermission(ctx, "balance");
    return mapEvents(queueOf(this.deps.events, ctx, "top-up-completed", accountId), async ({ topUpId }) => ({ topUpId }));
  }

  stateOf({ status, expiresAt, amountCents, refundedCents }: TopUpModel): TopUpState {
    if (status === "open") return expiresAt <= this.deps.clock.now() ? "expired" : "open";
    return status === "paid" && refundedCents >= amountCents ? "refunded" : status;
  }

  /** Pays all of a top-up back that is not paid back yet. Rejects with CONFLICT when nothing is left, or it is not paid. */
  async refund(ctx: RequestContext, { topUpId, reason = null }: RefundTopUpInput): Promise<TopUpModel> {
    requireOperator(ctx);
    const { database, processor } = this.deps;
    const row = await database.prisma.topUp.findUnique({ where: { id: topUpId } });
    if (!row) throw notFound("top-up");
    if (row.status !== "paid" || row.reference === null) throw conflict("This top-up is not paid: there is nothing to pay back.");
    if (row.refundedCents >= row.amountCents) throw conflict("This top-up was paid back before.");
    if (processor?.name !== row.processor)
      throw conflict(`This top-up was paid at ${row.processor}, which is not configured any more: pay it back there.`);
    const { amountCents, refundedCents, currency, reference } = row;
    await processor.refund(`${topUpId}-${refundedCents}`, reference, { cents: amountCents - refundedCents, currency });
    await this.bookRefund(topUpId, amountCents, reason, (transaction, credits) =>
      recordAct(transaction, ctx, { act: "refund_top_up", accountId: row.accountId, objectId: topUpId, after: { credits }, reason }),
    );
    return database.prisma.topUp.findUniqueOrThrow({ where: { id: topUpId } });
  }

  /**
   * Books a payment that the processor reports. Repeated, late and reordered reports book once. False: there is no such top-up of that
   * processor, or another amount was paid.
   */
  async bookPayment(
    processor: string,
    { topUpId, cents, currency }: { readonly topUpId: string; readonly cents: bigint; readonly currency: string },
  ): Promise<boolean> {
    const { database, ledger, leases, events, clock } = this.deps;
    const known = isUuid(topUpId) ? await database.prisma.topUp.findUnique({ where: { id: topUpId, processor } }) : null;
    if (!known || known.amountCents !== cents || known.currency !== currency) return false;
    const { accountId, nanocredits } = known;
    const isNew = await database.prisma.$transaction(async (transaction) => {
      await lockAccountRow(transaction, accountId);
      const { count } = await transaction.topUp.updateMany({
        where: { id: topUpId, status: { not: "paid" } },
        data: { status: "paid", paidAt: clock.now() },
      });
      if (count === 0) return false;
      return ledger.purchase({ id: topUpId, accountId, bucket: "pack", amount: nanocredits, note: null }, transaction);
    });
    if (!isNew) return true;
    // A lease may have been drawn from other buckets than the next one will be.
    await leases.recall(accountId);
    events.publish("balance-changed", { accountId });
    events.publish("top-up-completed", { accountId, topUpId });
    return true;
  }

  /** Ends an open checkout without a payment. */
  async cancel(processor: string, topUpId: string): Promise<boolean> {
    const { count } = await this.deps.database.prisma.topUp.updateMany({
      where: { id: topUpId, processor, status: "open" },
      data: { status: "cancelled" },
    });
    return count > 0;
  }

  /** Books that `cents` of a top-up are paid back in all. Amounts below an earlier one change nothing. */
  async bookRefund(
    topUpId: string,
    cents: bigint,
    note: string | null,
    record?: (transaction: Pick<DatabaseClient, "auditEntry">, credits: string) => Promise<void>,
  ): Promise<void> {
    const { database, ledger, leases, events } = this.deps;
    const { accountId } = await database.prisma.topUp.findUniqueOrThrow({ where: { id: topUpId } });
    // Credits of a lease are held until it is recalled.
    await leases.recall(accountId);
    await database.prisma.$transaction(async (transaction) => {
      await lockAccountRow(transaction, accountId);
      const { amountCents, refundedCents, nanocredits } = await transaction.topUp.findUniqueOrThrow({ where: { id: topUpId } });
      const total = cents > amountCents ? amountCents : cents;
      if (total <= refundedCents) return;
      const shareOf = (part: bigint) => (nanocredits * part) / amountCents;
      const amount = shareOf(total) - shareOf(refundedCents);
      await transaction.topUp.update({ where: { id: topUpId }, data: { refundedCents: total } });
      await ledger.refund({ id: createId(), accountId, bucket: "pack", amount, note }, transaction);
      await record?.(transaction, formatNanocredits(amount));
    });
    events.publish("balance-changed", { accountId });
  }
}

/** The credits of a top-up that were taken back. */
export function refundedNanocredits({ nanocredits, amountCents, refundedCents }: TopUpModel): bigint {
  return amountCents === 0n ? 0n : (nanocredits * refundedCents) / amountCents;
}
