/**
 * Books payments, refunds and disputes, each once, however often, late and in any order they are reported. The row of
 * the account is locked meanwhile.
 */
import { createHash } from "node:crypto";
import type { Clock } from "../../lib/clock.js";
import { createId, isUuid } from "../../lib/ids.js";
import { formatNanocredits } from "../../lib/money.js";
import { type Database, type DatabaseClient, lockAccountRow, lockName } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { TopUpModel } from "../../store/generated/prisma/models.js";
import type { Ledger } from "../../store/ledger.js";
import type { Leases } from "../credits/leases.js";
import { CREDITS_WEBHOOK, DEVELOPMENT_PROCESSOR, DISPUTE_ID_CHARS_MAX } from "./limits.js";

/** unchanged: it was booked before. refused: it contradicts the top-up. */
export type BookingResult = "booked" | "unchanged" | "refused";

export interface ReportedPayment {
  readonly topUpId: string;
  readonly cents: bigint;
  readonly currency: string;
  /** The processor's id of the payment. */
  readonly payment?: string | null;
  /** With taxes. */
  readonly chargedCents?: bigint;
}

export interface BookingDependencies {
  readonly database: Database;
  readonly ledger: Pick<Ledger, "purchase" | "refund">;
  readonly leases: Pick<Leases, "recall">;
  readonly events: Events;
  readonly clock: Clock;
}

type Transaction = Parameters<Parameters<DatabaseClient["$transaction"]>[0]>[0];
type Recorder = (transaction: Pick<DatabaseClient, "auditEntry">, credits: string) => Promise<void>;

export class TopUpBooking {
  constructor(private readonly deps: BookingDependencies) {}

  /** refused: there is no such top-up of that processor, or another amount was paid, or the payment is that of another top-up. */
  async bookPayment(
    processor: string,
    { topUpId, cents, currency, payment = null, chargedCents }: ReportedPayment,
  ): Promise<BookingResult> {
    const { database, ledger, leases, events, clock } = this.deps;
    const { prisma } = database;
    const known = isUuid(topUpId) ? await prisma.topUp.findUnique({ where: { id: topUpId, processor } }) : null;
    if (!known || known.amountCents !== cents || known.currency !== currency) return "refused";
    if (payment !== null) {
      const other = await prisma.topUp.findFirst({ where: { processor, paymentReference: payment }, select: { id: true } });
      if (other && other.id !== topUpId) return "refused";
    }
    const { accountId, nanocredits } = known;
    const isNew = await prisma.$transaction(async (transaction) => {
      await lockAccountRow(transaction, accountId);
      const row = await transaction.topUp.findUniqueOrThrow({ where: { id: topUpId } });
      if (row.status === "paid") return false;
      const receiptNumber = processor === DEVELOPMENT_PROCESSOR ? await nextReceiptNumber(transaction) : null;
      const paid = { paidAt: clock.now(), failure: null, paymentReference: payment, chargedCents: chargedCents ?? null, receiptNumber };
      await transaction.topUp.update({ where: { id: topUpId }, data: { status: "paid", ...paid } });
      await concludeAttempt(transaction, accountId, topUpId);
      return ledger.purchase({ id: topUpId, accountId, bucket: bucketOf(processor), amount: nanocredits, note: null }, transaction);
    });
    if (!isNew) return "unchanged";
    // A lease may have been drawn from other buckets than the next one will be.
    await leases.recall(accountId);
    events.publish("balance-changed", { accountId });
    events.publish("top-up-completed", { accountId, topUpId });
    return "booked";
  }

  /** Ends an open checkout without a payment. False: it is not open. */
  async cancel(processor: string, topUpId: string, failure: string | null = null): Promise<boolean> {
    const { count } = await this.deps.database.prisma.topUp.updateMany({
      where: { id: topUpId, processor, status: "open" },
      data: { status: "cancelled", failure },
    });
    return count > 0;
  }

  /** Books that `cents` of a top-up's amount are paid back in all. Amounts below an earlier one change nothing. */
  async bookRefund(topUpId: string, cents: bigint, note: string | null, record?: Recorder): Promise<BookingResult> {
    return this.reverse(topUpId, async (transaction, row) => {
      const most = row.amountCents - row.disputedCents;
      const total = cents > most ? most : cents;
      if (total <= row.refundedCents) return false;
      const id = createId();
      const amount = creditsOf(row, row.disputedCents + total) - creditsOf(row, row.disputedCents + row.refundedCents);
      await transaction.topUp.update({ where: { id: topUpId }, data: { refundedCents: total } });
      const taken = await this.take(id, row, amount, note, transaction);
      await transaction.topUpReversal.create({
        data: {
          ...reversal(id, row, "refund", null, this.deps.clock.now()),
          amountCents: total - row.refundedCents,
          nanocredits: amount,
          movedNanocredits: taken,
        },
      });
      await record?.(transaction, formatNanocredits(amount));
      return true;
    });
  }

  /** Takes the credits of a disputed amount, once for each dispute. A dispute that is known to be won takes nothing. */
  async bookDispute(topUpId: string, dispute: string, cents: bigint): Promise<BookingResult> {
    if (dispute.length > DISPUTE_ID_CHARS_MAX || cents <= 0n) return "refused";
    const result = await this.reverse(topUpId, async (transaction, row) => {
      const earlier = await transaction.topUpReversal.findFirst({ where: { topUpId, reference: dispute } });
      const most = row.amountCents - row.refundedCents - row.disputedCents;
      const part = cents > most ? most : cents;
      if (earlier || part <= 0n) return false;
      const gone = row.refundedCents + row.disputedCents;
      const amount = creditsOf(row, gone + part) - creditsOf(row, gone);
      const id = bookingId(`${row.processor} dispute ${dispute} of ${topUpId}`);
      await transaction.topUp.update({ where: { id: topUpId }, data: { disputedCents: row.disputedCents + part } });
      const taken = await this.take(id, row, amount, `dispute ${dispute}`, transaction);
      await transaction.topUpReversal.create({
        data: {
          ...reversal(id, row, "dispute", dispute, this.deps.clock.now()),
          amountCents: part,
          nanocredits: amount,
          movedNanocredits: taken,
        },
      });
      return true;
    });
    return result;
  }

  /**
   * Returns the credits that a dispute took, once. Credits that were spent before it stay written off: the account has had them. A dispute
   * that is not known yet will take nothing.
   */
  async bookDisputeWon(topUpId: string, dispute: string): Promise<BookingResult> {
    if (dispute.length > DISPUTE_ID_CHARS_MAX) return "refused";
    return this.reverse(topUpId, async (transaction, row) => {
      const earlier = await transaction.topUpReversal.findMany({ where: { topUpId, reference: dispute } });
      if (earlier.some(({ kind }) => kind === "dispute_won")) return false;
      const lost = earlier.find(({ kind }) => kind === "dispute");
      const id = bookingId(`${row.processor} dispute ${dispute} of ${topUpId} won`);
      const [amountCents, nanocredits, moved] = lost ? [lost.amountCents, lost.nanocredits, lost.movedNanocredits] : [0n, 0n, 0n];
      if (lost) await transaction.topUp.update({ where: { id: topUpId }, data: { disputedCents: row.disputedCents - amountCents } });
      if (moved > 0n) {
        const { accountId, processor } = row;
        const purchase = { id, accountId, bucket: bucketOf(processor), amount: moved, note: `dispute ${dispute} won` } as const;
        await this.deps.ledger.purchase(purchase, transaction);
      }
      await transaction.topUpReversal.create({
        data: { ...reversal(id, row, "dispute_won", dispute, this.deps.clock.now()), amountCents, nanocredits, movedNanocredits: moved },
      });
      return lost !== undefined;
    });
  }

  /** `book` returns false when nothing changed. */
  private async reverse(topUpId: string, book: (transaction: Transaction, row: TopUpModel) => Promise<boolean>): Promise<BookingResult> {
    const { database, leases, events } = this.deps;
    const known = await database.prisma.topUp.findUnique({ where: { id: topUpId }, select: { accountId: true, status: true } });
    if (known?.status !== "paid") return "refused";
    const { accountId } = known;
    // Credits of a lease are held until it is recalled.
    await leases.recall(accountId);
    const isChanged = await database.prisma.$transaction(async (transaction) => {
      await lockAccountRow(transaction, accountId);
      return book(transaction, await transaction.topUp.findUniqueOrThrow({ where: { id: topUpId } }));
    });
    if (!isChanged) return "unchanged";
    events.publish("balance-changed", { accountId });
    events.publish("top-up-changed", { accountId, topUpId });
    return "booked";
  }

  private take(
    id: string,
    { accountId, processor }: TopUpModel,
    amount: bigint,
    note: string | null,
    within: Transaction,
  ): Promise<bigint> {
    return this.deps.ledger.refund({ id, accountId, bucket: bucketOf(processor), amount, note }, within);
  }
}

/** Credits of the first `cents` of a top-up's amount, so that parts sum up to the whole. */
function creditsOf({ nanocredits, amountCents }: TopUpModel, cents: bigint): bigint {
  return (nanocredits * cents) / amountCents;
}

/** Credits that a top-up has lost to refunds. */
export function refundedNanocredits(row: TopUpModel): bigint {
  return creditsOf(row, row.refundedCents);
}

/** Credits that a top-up has lost to disputes that are open or lost. */
export function disputedNanocredits(row: TopUpModel): bigint {
  return creditsOf(row, row.refundedCents + row.disputedCents) - creditsOf(row, row.refundedCents);
}

function bucketOf(processor: string): "crypto" | "pack" {
  return processor === CREDITS_WEBHOOK ? "crypto" : "pack";
}

function reversal(
  id: string,
  { id: topUpId, accountId }: TopUpModel,
  kind: "refund" | "dispute" | "dispute_won",
  reference: string | null,
  createdAt: Date,
) {
  return { id, topUpId, accountId, kind, reference, createdAt };
}

/** The next attempt may begin at once. */
async function concludeAttempt(transaction: Transaction, accountId: string, topUpId: string): Promise<void> {
  await transaction.autoTopUp.updateMany({
    where: { accountId, attemptId: topUpId },
    data: { attemptId: null, nextAt: null, failures: 0, problem: null, gaveUpAt: null },
  });
}

/** Without gaps. Held until the transaction ends. */
async function nextReceiptNumber(transaction: Transaction): Promise<number> {
  await lockName(transaction, "receipt numbers");
  const { _max } = await transaction.topUp.aggregate({ _max: { receiptNumber: true } });
  return (_max.receiptNumber ?? 0) + 1;
}

/** The same for the same name: a UUID of version 8 (RFC 9562 5.8). */
export function bookingId(name: string): string {
  const hash = createHash("sha256").update(name).digest("hex");
  const variant = "89ab"[Number.parseInt(hash[16] ?? "0", 16) % 4];
  return `${hash.slice(0, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-${variant}${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
}
