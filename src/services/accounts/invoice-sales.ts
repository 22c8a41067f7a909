/** Credits that an operator sells on an invoice, and the money that comes for them later (docs/spec/credits.md#invoices). */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { conflict, notFound } from "../../errors.js";
import { createId } from "../../lib/ids.js";
import { formatNanocredits } from "../../lib/money.js";
import { type Database, lockAccountRow } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { Ledger } from "../../store/ledger.js";
import { requireOperator } from "../access/permissions.js";
import { recordAct } from "../audit/audit-log.js";
import { positiveCredits } from "../credits/credits-amount.js";
import type { Leases } from "../credits/leases.js";
import { storableText } from "../requests/input.js";
import { bookOnce, findEarlier, isBooked, isTaken } from "./chosen-ids.js";
import { GRANT_NOTE_CHARS_MAX } from "./limits.js";

const note = storableText.max(GRANT_NOTE_CHARS_MAX).nullish();

export const sellCreditsInput = z.strictObject({
  accountId: z.uuid(),
  bucket: z.enum(["crypto", "pack"]),
  credits: positiveCredits,
  /** Such as the number of the invoice. */
  note,
  /** Sales with the same id are booked once. */
  saleId: z.uuid().nullish(),
});
export type SellCreditsInput = z.output<typeof sellCreditsInput>;

export const recordPaymentInput = z.strictObject({
  accountId: z.uuid(),
  credits: positiveCredits,
  note,
  /** Payments with the same id are booked once. */
  paymentId: z.uuid().nullish(),
});
export type RecordPaymentInput = z.output<typeof recordPaymentInput>;

export class InvoiceSales {
  constructor(
    private readonly database: Database,
    private readonly ledger: Pick<Ledger, "sellOnInvoice" | "bookPayment">,
    private readonly events: Events,
    private readonly leases: Pick<Leases, "recall">,
  ) {}

  /** Adds credits that count as bought, and books that their money is owed. Rejects with NOT_FOUND, or CONFLICT for an id of another booking. */
  async sell(ctx: RequestContext, { accountId, bucket, credits, note: text = null, saleId }: SellCreditsInput): Promise<void> {
    requireOperator(ctx);
    const sale = { id: saleId ?? createId(), accountId, bucket, amount: credits, note: text };
    await bookOnce(this.database, "sale", async (transaction) => {
      await lockAccountRow(transaction, accountId);
      if ((await transaction.account.count({ where: { id: accountId, deletion: null } })) === 0) throw notFound("account");
      const earlier = await findEarlier(transaction, { ...sale, kind: "purchase", name: "sale" });
      if (earlier && earlier.amountNanocredits !== credits) throw isTaken("sale");
      if (earlier) return;
      if (!(await this.ledger.sellOnInvoice(sale, transaction))) throw isTaken("sale");
      const after = { bucket, credits: formatNanocredits(credits) };
      await recordAct(transaction, ctx, { act: "sell_credits", accountId, objectId: sale.id, after, reason: text });
    });
    // A lease may have been drawn from other buckets than the next one will be.
    await this.leases.recall(accountId);
    this.events.publish("balance-changed", { accountId });
  }

  /** Books money for credits that were sold on an invoice. Rejects with NOT_FOUND, or CONFLICT when less is owed. */
  async recordPayment(ctx: RequestContext, { accountId, credits, note: text = null, paymentId }: RecordPaymentInput): Promise<void> {
    requireOperator(ctx);
    const id = paymentId ?? createId();
    await bookOnce(this.database, "payment", async (transaction) => {
      await lockAccountRow(transaction, accountId);
      if ((await transaction.account.count({ where: { id: accountId } })) === 0) throw notFound("account");
      const isRepeated = await isBooked(transaction, { id, kind: "payment", accountId });
      const booked = await this.ledger.bookPayment({ id, accountId, amount: credits, note: text }, transaction);
      if (booked === null) throw conflict("The account owes less than that.");
      if (isRepeated) return;
      const after = { credits: formatNanocredits(booked) };
      await recordAct(transaction, ctx, { act: "record_payment", accountId, objectId: id, after, reason: text });
    });
  }
}
