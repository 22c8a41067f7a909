/**
 * Books payments, refunds and disputes, each once, however often, late and in any order they are reported. The row of
 * the account is locked meanwhile.
 */
import type { Clock } from "../../lib/clock.js";
import { createId, isUuid } from "../../lib/ids.js";
import { formatNanocredits, smaller } from "../../lib/money.js";
import { type Database, type DatabaseClient, lockAccountRow, lockName } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { TopUpModel } from "../../store/generated/prisma/models.js";
import type { Ledger } from "../../store/ledger.js";
import type { Leases } from "../credits/leases.js";
import { queueForAccount } from "../webhooks/account-messages.js";
import { ALL_REFUNDS, after, type Claim, type ClaimedCents, type ClaimStep, stepsTo } from "./claims.js";
import { expectFee } from "./fees.js";
import { CLAIM_ID_CHARS_MAX, CREDITS_WEBHOOK, DEVELOPMENT_PROCESSOR, STRIPE_PROCESSOR } from "./limits.js";
import { completedMessage, failedMessage, reversedMessage } from "./messages.js";
import type { PaidTopUp } from "./processor.js";

/** unchanged: it was booked before. refused: it contradicts the top-up. */
export type BookingResult = "booked" | "unchanged" | "refused";

export interface ReportedPayment {
  readonly topUpId: string;
  readonly cents: bigint;
  readonly currency: string;
  /** The processor's id of the payment. */
  readonly payment?: string | null;
  /** Its id of the checkout. */
  readonly reference?: string | null;
  /** With taxes. */
  readonly chargedCents?: bigint;
}

export interface BookingDependencies {
  readonly database: Database;
  readonly ledger: Pick<Ledger, "purchase" | "refund" | "restore" | "soldLeft" | "forfeitOfDeleted">;
  readonly leases: Pick<Leases, "recall">;
  readonly events: Events;
  readonly clock: Clock;
}

type Transaction = Parameters<Parameters<DatabaseClient["$transaction"]>[0]>[0];
type Recorder = (transaction: Pick<DatabaseClient, "auditEntry">, credits: string) => Promise<void>;

export class TopUpBooking {
  constructor(private readonly deps: BookingDependencies) {}

  /**
   * refused: there is no such top-up of that processor, or another amount was paid, or the payment is that of another top-up, or another
   * payment paid this one.
   */
  async bookPayment(
    processor: string,
    { topUpId, cents, currency, payment = null, reference = null, chargedCents }: ReportedPayment,
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
    const result = await prisma.$transaction(async (transaction): Promise<BookingResult> => {
      await lockAccountRow(transaction, accountId);
      const row = await transaction.topUp.findUniqueOrThrow({ where: { id: topUpId } });
      if (row.status === "paid") {
        if (payment === null || payment === row.paymentReference) return "unchanged";
        if (row.paymentReference !== null) return "refused";
        await transaction.topUp.update({ where: { id: topUpId }, data: { paymentReference: payment } });
        await this.expectFee(transaction, row, "payment", payment, row.chargedCents ?? cents);
        return "unchanged";
      }
      const receiptNumber = processor === DEVELOPMENT_PROCESSOR ? await nextReceiptNumber(transaction) : null;
      const references = { paymentReference: payment, reference: row.reference ?? reference };
      const paid = { paidAt: clock.now(), failure: null, chargedCents: chargedCents ?? null, receiptNumber, ...references };
      await transaction.topUp.update({ where: { id: topUpId }, data: { status: "paid", ...paid } });
      if (payment !== null) await this.expectFee(transaction, row, "payment", payment, chargedCents ?? cents);
      await concludeAttempt(transaction, accountId, topUpId);
      await ledger.purchase({ id: topUpId, accountId, bucket: bucketOf(processor), amount: nanocredits, note: null }, transaction);
      await ledger.forfeitOfDeleted(createId(), accountId, transaction);
      await queueForAccount(transaction, accountId, completedMessage(row, paid.paidAt), paid.paidAt);
      return "booked";
    });
    if (result !== "booked") return result;
    // A lease may have been drawn from other buckets than the next one will be.
    await leases.recall(accountId);
    events.publish("balance-changed", { accountId });
    events.publish("top-up-completed", { accountId, topUpId });
    return "booked";
  }

  /** Ends an open checkout without a payment. False: it is not open. */
  async cancel(processor: string, topUpId: string, failure: string | null = null): Promise<boolean> {
    const { database, clock } = this.deps;
    return database.prisma.$transaction(async (transaction) => {
      const where = { id: topUpId, processor, status: "open" } as const;
      const [row] = await transaction.topUp.updateManyAndReturn({ where, data: { status: "cancelled", failure } });
      const now = clock.now();
      if (row && failure !== null) await queueForAccount(transaction, row.accountId, failedMessage(row, failure, now), now);
      return row !== undefined;
    });
  }

  /**
   * Notes refunds and disputes of a paid top-up, and books the changes that follow from all of them. Credits that were spent are written off; money that
   * comes back reverses that first, and the account gets the rest. `lists`: the refunds are all that there are.
   */
  async bookClaims(topUpId: string, claims: readonly Claim[], { note = null, lists = false, record }: ClaimOptions = {}) {
    if (claims.some(({ reference, cents }) => reference.length > CLAIM_ID_CHARS_MAX || cents <= 0n)) return "refused";
    return this.reverse(topUpId, async (transaction, row) => {
      for (const { kind, reference, cents, isVoid } of claims) {
        await noteClaim(transaction, { topUpId, kind, reference, cents, isVoid });
        if (kind === "dispute") await this.expectFee(transaction, row, kind, reference, cents);
      }
      // Of a processor without ids, the one claim is the list.
      if (lists && claims.every(({ reference }) => reference !== ALL_REFUNDS)) {
        const where = { topUpId, kind: "refund", reference: ALL_REFUNDS } as const;
        await transaction.topUpClaim.updateMany({ where, data: { isVoid: true } });
      }
      const steps = stepsTo(row, await transaction.topUpClaim.findMany({ where: { topUpId } }));
      let state: ClaimedCents = row;
      for (const step of steps) {
        const [before, reached] = [lossOf(row, state), after(state, step)];
        const change = lossOf(row, reached) - before;
        const reference = claims.length === 1 ? (claims[0]?.reference ?? null) : null;
        const credits = change < 0n ? -change : change;
        await this.bookStep(transaction, row, { ...step, credits, lost: before + change, reference, note });
        state = reached;
      }
      const { refundedCents, disputedCents } = state;
      if (steps.length === 0) return false;
      if (steps.some(({ kind }) => kind === "dispute")) await stopAutoTopUps(transaction, row.accountId, this.deps.clock.now());
      await transaction.topUp.update({ where: { id: topUpId }, data: { refundedCents, disputedCents } });
      const change = lossOf(row, state) - lossOf(row, row);
      await record?.(transaction, formatNanocredits(change < 0n ? 0n : change));
      return true;
    });
  }

  private async expectFee(
    transaction: Transaction,
    { id: topUpId, processor }: TopUpModel,
    kind: "payment" | "dispute",
    reference: string,
    cents: bigint,
  ): Promise<void> {
    if (processor !== STRIPE_PROCESSOR) return;
    await expectFee(transaction, { processor, reference, kind, topUpId, cents }, this.deps.clock.now());
  }

  /** Refunds of a top-up that are known, failed ones included. */
  countRefunds(topUpId: string): Promise<number> {
    return this.deps.database.prisma.topUpClaim.count({ where: { topUpId, kind: "refund" } });
  }

  private async bookStep(
    transaction: Transaction,
    row: TopUpModel,
    { kind, cents, credits, lost, reference, note: given }: BookedStep,
  ): Promise<void> {
    const { ledger, clock } = this.deps;
    const { id: topUpId, accountId, processor } = row;
    const isReturn = kind === "refund_failed" || kind === "dispute_won";
    const id = createId();
    const bucket = bucketOf(processor);
    const note = given ?? (reference ? `${kind} ${reference}` : kind);
    const booking = { id, accountId, bucket, amount: credits, note } as const;
    let moved: bigint;
    let sold: bigint;
    if (isReturn) {
      const { writtenOff, sold: taken } = await lostOf(transaction, topUpId);
      const covered = smaller(credits, writtenOff);
      moved = credits - covered;
      sold = smaller(moved, taken);
      await ledger.restore({ ...booking, covered, sold }, transaction);
      await ledger.forfeitOfDeleted(createId(), accountId, transaction);
    } else {
      const left = await ledger.soldLeft(accountId, bucket, transaction);
      moved = await ledger.refund(booking, transaction);
      sold = smaller(moved, left);
    }
    const now = clock.now();
    await queueForAccount(transaction, accountId, reversedMessage(row, { id, kind, nanocredits: credits, moved, lost }, now), now);
    await transaction.topUpReversal.create({
      data: {
        ...{ id, topUpId, accountId, kind, reference: reference || null, amountCents: cents },
        ...{ nanocredits: credits, movedNanocredits: moved, soldNanocredits: sold, createdAt: now },
      },
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
}

interface ClaimOptions {
  readonly note?: string | null;
  readonly lists?: boolean;
  readonly record?: Recorder;
}

interface BookedStep extends ClaimStep {
  /** More than 0. */
  readonly credits: bigint;
  /** Credits that the top-up has lost after it. */
  readonly lost: bigint;
  readonly reference: string | null;
  readonly note: string | null;
}

/** Void stays void, and an amount never shrinks: reports may come in any order. */
async function noteClaim(transaction: Transaction, claim: Claim & { readonly topUpId: string }): Promise<void> {
  const { topUpId, kind, reference, cents, isVoid } = claim;
  const topUpId_kind_reference = { topUpId, kind, reference };
  const known = await transaction.topUpClaim.findUnique({ where: { topUpId_kind_reference } });
  if (!known) await transaction.topUpClaim.create({ data: claim });
  else if (isVoid !== known.isVoid || cents > known.cents) {
    const data = { isVoid: isVoid || known.isVoid, cents: cents > known.cents ? cents : known.cents };
    await transaction.topUpClaim.update({ where: { topUpId_kind_reference }, data });
  }
}

/** What a top-up has lost and not got back: credits that were written off, and sold ones that were taken. */
async function lostOf(transaction: Transaction, topUpId: string) {
  const rows = await transaction.topUpReversal.findMany({ where: { topUpId } });
  let writtenOff = 0n;
  let sold = 0n;
  for (const { kind, nanocredits, movedNanocredits, soldNanocredits } of rows) {
    const sign = kind === "refund" || kind === "dispute" ? 1n : -1n;
    writtenOff += sign * (nanocredits - movedNanocredits);
    sold += sign * soldNanocredits;
  }
  return { writtenOff, sold };
}

/** Credits that a top-up has lost. */
function lossOf(row: TopUpModel, { refundedCents, disputedCents }: ClaimedCents): bigint {
  return creditsOf(row, refundedCents + disputedCents);
}

export function toPaidTopUp({ id: topUpId, reference, paymentReference: payment, chargedCents, amountCents }: TopUpModel): PaidTopUp {
  return { topUpId, reference, payment, chargedCents: chargedCents ?? amountCents };
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

/** The next attempt may begin at once. */
async function concludeAttempt(transaction: Transaction, accountId: string, topUpId: string): Promise<void> {
  const where = { accountId, attemptId: topUpId };
  await transaction.autoTopUp.updateMany({ where: { ...where, gaveUpAt: null }, data: { failures: 0, problem: null } });
  await transaction.autoTopUp.updateMany({ where, data: { attemptId: null, nextAt: null } });
}

/** The same payment method may be the next one to be disputed. */
async function stopAutoTopUps(transaction: Transaction, accountId: string, now: Date): Promise<void> {
  const where = { accountId, isEnabled: true, gaveUpAt: null };
  await transaction.autoTopUp.updateMany({ where, data: { gaveUpAt: now, nextAt: null, problem: DISPUTED } });
}

const DISPUTED = "A payment of this account is disputed. Save the settings again to continue.";

/** Without gaps. Held until the transaction ends. */
async function nextReceiptNumber(transaction: Transaction): Promise<number> {
  await lockName(transaction, "receipt numbers");
  const { _max } = await transaction.topUp.aggregate({ _max: { receiptNumber: true } });
  return (_max.receiptNumber ?? 0) + 1;
}
