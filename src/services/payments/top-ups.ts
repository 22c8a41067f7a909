/** Credits that people buy (docs/spec/top-ups.md): a checkout, its payment, and refunds. */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { conflict, notFound, serviceUnavailable, wrongField } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { createId, isUuid } from "../../lib/ids.js";
import { formatNanocredits } from "../../lib/money.js";
import { COUNT_TAKE, newestFirst, type Page, type PageRequest, toPage } from "../../lib/pagination.js";
import type { SalesSettings } from "../../lib/settings.js";
import { type Database, lockName } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { TopUpModel } from "../../store/generated/prisma/models.js";
import { isOperator, requireKeyManager, requireOperator, requirePermission } from "../access/permissions.js";
import { mapEvents, queueOf } from "../accounts/live.js";
import { recordAct } from "../audit/audit-log.js";
import { positiveCredits } from "../credits/credits-amount.js";
import { storableText } from "../requests/input.js";
import { type ReportedPayment, type TopUpBooking, toPaidTopUp } from "./booking.js";
import { ALL_REFUNDS } from "./claims.js";
import { CHECKOUT_SECONDS, OPEN_CHECKOUTS_MAX, REFUND_REASON_CHARS_MAX } from "./limits.js";
import { isInCents, priceOf } from "./money.js";
import type { PaymentProcessor } from "./processor.js";

/** The bounds of an amount are configured: `assertSold` checks them. */
export const createCheckoutInput = z.strictObject({
  credits: positiveCredits.refine(isInCents, "must have at most 2 decimals").meta({
    ...{ anyOf: undefined, type: "number", exclusiveMinimum: 0 },
    description: "Credits to buy, with at most 2 decimals. The gateway's operator sets the least and the most.",
  }),
  currency: z
    .string()
    .max(10)
    .nullish()
    .describe("The currency of the gateway, in which the price is: ISO 4217, in lower case. Another one is refused."),
});
export type CreateCheckoutInput = z.output<typeof createCheckoutInput>;

export const refundTopUpInput = z.strictObject({
  topUpId: z.uuid(),
  reason: storableText.max(REFUND_REASON_CHARS_MAX).nullish(),
});
export type RefundTopUpInput = z.output<typeof refundTopUpInput>;

export type TopUpRow = TopUpModel;

/** The state of a top-up, as shown. */
export type TopUpState = "open" | "expired" | "paid" | "refunded" | "disputed" | "cancelled" | "failed";

export interface OpenedCheckout {
  readonly topUp: TopUpModel;
  /** Secret to the payer. */
  readonly url: string;
}

export interface TopUpsDependencies {
  readonly database: Database;
  readonly booking: TopUpBooking;
  readonly events: Events;
  readonly clock: Clock;
  /** Null: credits cannot be bought. */
  readonly processor: PaymentProcessor | null;
  readonly sales: SalesSettings;
  /** The dashboard's page of credits at the caller's own host. */
  readonly creditsUrl: (ctx: RequestContext | null) => string;
}

export class TopUps {
  constructor(private readonly deps: TopUpsDependencies) {}

  /** Whether credits can be bought on this gateway. */
  get isOffered(): boolean {
    return this.deps.processor !== null;
  }

  /** Opens the page of the processor on which a person pays. Rejects with CONFLICT when too many of the account are open. */
  async createCheckout(ctx: RequestContext, { credits, currency: stated }: CreateCheckoutInput): Promise<OpenedCheckout> {
    const { accountId } = requireKeyManager(ctx);
    const { database, booking, clock, sales, creditsUrl } = this.deps;
    const processor = this.processor();
    assertSold(sales, "credits", credits);
    if (stated != null && stated !== sales.currency)
      throw wrongField("currency", `must be ${sales.currency}, the currency of this gateway`);
    const price = priceOf(credits, sales.currency);
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
    const automatic = await database.prisma.autoTopUp.findUnique({ where: { accountId }, select: { isEnabled: true } });
    try {
      const { reference, url } = await processor.openCheckout({
        ...{ topUpId: row.id, accountId, price, credits: formatNanocredits(credits), expiresAt },
        keepsMethod: automatic?.isEnabled ?? false,
        returnUrl: creditsUrl(ctx),
      });
      const topUp = await database.prisma.topUp.update({ where: { id: row.id }, data: { reference } });
      return { topUp, url };
    } catch (error) {
      // A payment that is reported all the same still counts.
      await booking.cancel(processor.name, row.id, "The checkout could not be opened.");
      throw error;
    }
  }

  /** Rejects with SERVICE_UNAVAILABLE. */
  private processor(): PaymentProcessor {
    const { processor } = this.deps;
    if (!processor) throw serviceUnavailable("Credits cannot be bought on this gateway: no payment processor is configured.");
    return processor;
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

  stateOf({ status, expiresAt, amountCents, refundedCents, disputedCents, isAutomatic, failure }: TopUpModel): TopUpState {
    if (status === "open") return !isAutomatic && expiresAt <= this.deps.clock.now() ? "expired" : "open";
    if (status === "cancelled") return failure === null ? "cancelled" : "failed";
    if (disputedCents > 0n) return "disputed";
    return refundedCents >= amountCents ? "refunded" : "paid";
  }

  /** Pays all of a top-up back that is not paid back yet. Rejects with CONFLICT when nothing is left, or it is not paid. */
  async refund(ctx: RequestContext, { topUpId, reason = null }: RefundTopUpInput): Promise<TopUpModel> {
    requireOperator(ctx);
    const { database, processor, booking } = this.deps;
    const row = await database.prisma.topUp.findUnique({ where: { id: topUpId } });
    if (!row) throw notFound("top-up");
    if (row.status !== "paid") throw conflict("This top-up is not paid: there is nothing to pay back.");
    if (row.disputedCents > 0n) throw conflict("This top-up is disputed: the processor decides whether it is paid back.");
    if (row.refundedCents >= row.amountCents) throw conflict("This top-up was paid back before.");
    if (processor?.name !== row.processor)
      throw conflict(`This top-up was paid at ${row.processor}, which is not configured any more: pay it back there.`);
    const paid = toPaidTopUp(row);
    // By the refunds so far, which no repetition changes: a failed one is no reason to refuse another.
    await processor.refund(`${topUpId}-${await booking.countRefunds(topUpId)}`, paid);
    await booking.bookClaims(topUpId, await processor.listRefunds(paid), {
      ...{ note: reason, lists: true },
      record: (transaction, credits) =>
        recordAct(transaction, ctx, { act: "refund_top_up", accountId: row.accountId, objectId: topUpId, after: { credits }, reason }),
    });
    const now = await database.prisma.topUp.findUniqueOrThrow({ where: { id: topUpId } });
    if (now.refundedCents === row.refundedCents)
      throw conflict("The payer's bank did not take the money back: the processor has it again. Pay it back in another way.");
    return now;
  }

  /** As TopUpBooking's. False: it is refused. */
  async bookPayment(processor: string, payment: ReportedPayment): Promise<boolean> {
    return (await this.deps.booking.bookPayment(processor, payment)) !== "refused";
  }

  /** Ends an open checkout without a payment. */
  cancel(processor: string, topUpId: string): Promise<boolean> {
    return this.deps.booking.cancel(processor, topUpId);
  }

  /** Books that `cents` of the charged amount are paid back in all. */
  async bookRefund(topUpId: string, cents: bigint, note: string | null): Promise<void> {
    await this.deps.booking.bookClaims(topUpId, [{ kind: "refund", reference: ALL_REFUNDS, cents, isVoid: false }], { note });
  }
}

/** Throws BAD_REQUEST naming the field for an amount that is not sold. */
export function assertSold({ least, most }: SalesSettings, field: string, nanocredits: bigint): void {
  if (nanocredits >= least && nanocredits <= most) return;
  throw wrongField(field, `must be from ${formatNanocredits(least)} to ${formatNanocredits(most)}`);
}
