/**
 * Applies reports of payment processors: each event once by its id, and each effect once by its object, so that events may arrive
 * doubled, reordered and late. A report that contradicts its top-up is refused and logged, and credits nothing.
 *
 * 1. The signature is checked by the processor.
 * 2. An event that was dealt with is answered at once.
 * 3. The report is booked. Failures of the database or processor reject, and the processor sends the event again.
 * 4. The event is recorded with its result.
 */
import type { Logger } from "pino";
import { invalidInput } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { isUuid } from "../../lib/ids.js";
import type { Database } from "../../store/database.js";
import type { TopUpModel } from "../../store/generated/prisma/models.js";
import { type BookingResult, type TopUpBooking, toPaidTopUp } from "./booking.js";
import { PAYMENT_EVENT_DAYS, SIGNATURE_AGE_SECONDS_MAX } from "./limits.js";
import type { PaymentProcessor, PaymentReport } from "./processor.js";
import { readStripeEvent, stripeEvent } from "./stripe-events.js";
import type { StripeProcessor } from "./stripe-processor.js";

export type ReportResult = BookingResult | "ignored";

export interface PaymentReportsDependencies {
  readonly database: Pick<Database, "prisma">;
  readonly booking: TopUpBooking;
  /** Null: events of Stripe are not taken. */
  readonly stripe: StripeProcessor | null;
  readonly clock: Clock;
  readonly log: Logger;
  /** An automatic payment failed. */
  readonly onUnpaid: (topUpId: string, reason: string) => Promise<void>;
  readonly onDispute: (topUp: { readonly id: string; readonly accountId: string }) => Promise<void>;
}

const DAY_MS = 24 * 60 * 60 * 1_000;

/** Removes events that no processor sends again. */
export function paymentSweep({ prisma }: Pick<Database, "prisma">, clock: Clock): { sweep(): Promise<number> } {
  return {
    sweep: async () => {
      const before = new Date(clock.now().getTime() - PAYMENT_EVENT_DAYS * DAY_MS);
      return (await prisma.paymentEvent.deleteMany({ where: { at: { lt: before } } })).count;
    },
  };
}

export class PaymentReports {
  constructor(private readonly deps: PaymentReportsDependencies) {}

  /** Whether Stripe may send events here. */
  get takesStripe(): boolean {
    return this.deps.stripe !== null;
  }

  /** Rejects with BAD_REQUEST when the signature is missing, wrong or too old, or the event is none. */
  async takeStripeEvent(body: string, signature: string): Promise<ReportResult> {
    const { stripe, clock } = this.deps;
    const verified = stripe && (await stripe.verify(body, signature, clock.now(), SIGNATURE_AGE_SECONDS_MAX));
    if (!verified) throw invalidInput("The Stripe-Signature header does not fit the body, or is too old.");
    const parsed = stripeEvent.safeParse(verified);
    if (!parsed.success) throw invalidInput("The body is not an event of Stripe.");
    const { id, type } = parsed.data;
    return this.once(stripe, id, type, () => {
      try {
        return readStripeEvent(parsed.data);
      } catch (error) {
        throw invalidInput(
          `The object of the event ${type} is not as Stripe writes it: ${error instanceof Error ? error.name : "unknown"}.`,
        );
      }
    });
  }

  private async once(from: PaymentProcessor, eventId: string, type: string, read: () => PaymentReport | null): Promise<ReportResult> {
    const { database, log, clock } = this.deps;
    const { paymentEvent } = database.prisma;
    const processor = from.name;
    const earlier = await paymentEvent.findUnique({ where: { processor_eventId: { processor, eventId } } });
    if (earlier) return "unchanged";
    const report = read();
    const { result, topUpId } = report === null ? { result: "ignored" as const, topUpId: null } : await this.bookReport(from, report);
    await paymentEvent.createMany({ data: { processor, eventId, type, topUpId, result, at: clock.now() }, skipDuplicates: true });
    const line = { event: "payment-reported", processor, paymentEvent: eventId, type, topUpId, result };
    if (result === "refused") log.warn(line, "a payment event contradicts its top-up: nothing was credited; compare it at the processor");
    else if (result === "booked") log.info(line, "a payment event was booked");
    return result;
  }

  private async bookReport(from: PaymentProcessor, report: PaymentReport): Promise<{ result: ReportResult; topUpId: string | null }> {
    if (report.kind === "paid" || report.kind === "unpaid") {
      const { prisma } = this.deps.database;
      const row = isUuid(report.topUpId) ? await prisma.topUp.findUnique({ where: { id: report.topUpId, processor: from.name } }) : null;
      if (!row) return { result: "refused", topUpId: null };
      const result = report.kind === "paid" ? await this.pay(row, report) : await this.end(row, report);
      return { result, topUpId: row.id };
    }
    if (report.kind === "fee") {
      const { name: processor } = from;
      const where = { processor, reference: report.payment, nextAt: { not: null } };
      await this.deps.database.prisma.paymentFee.updateMany({ where, data: { nextAt: this.deps.clock.now() } });
      return { result: "ignored", topUpId: null };
    }
    const row = await this.paidTopUp(from, report.payment);
    if (row === null) return { result: "ignored", topUpId: null };
    if (row === "refused") return { result: "refused", topUpId: null };
    return { result: await this.reverse(from, row, report), topUpId: row.id };
  }

  private async pay(row: TopUpModel, report: PaymentReport & { kind: "paid" }): Promise<ReportResult> {
    // The payment of a checkout is reported by its checkout.
    if (report.reference === null && !row.isAutomatic) return "ignored";
    if (report.reference !== null && row.reference !== null && report.reference !== row.reference) return "refused";
    if (report.accountId !== null && report.accountId !== row.accountId) return "refused";
    if (report.customer !== null && (await this.isOfAnother(row, report.customer))) return "refused";
    const { cents, currency, payment, reference, chargedCents } = report;
    return this.deps.booking.bookPayment(row.processor, { topUpId: row.id, cents, currency, payment, reference, chargedCents });
  }

  private async isOfAnother({ accountId, processor }: TopUpModel, customer: string): Promise<boolean> {
    const { paymentCustomer } = this.deps.database.prisma;
    const known = await paymentCustomer.findUnique({ where: { processor_reference: { processor, reference: customer } } });
    return known !== null && known.accountId !== accountId;
  }

  private async end(row: TopUpModel, { reference, reason }: PaymentReport & { kind: "unpaid" }): Promise<ReportResult> {
    if (reference === null && !row.isAutomatic) return "ignored";
    if (reference !== null && row.reference !== null && reference !== row.reference) return "refused";
    if (row.status !== "open") return "unchanged";
    if (row.isAutomatic) {
      await this.deps.onUnpaid(row.id, reason ?? "The payment failed.");
      return "booked";
    }
    return (await this.deps.booking.cancel(row.processor, row.id, reason)) ? "booked" : "unchanged";
  }

  /** The top-up of a payment. Its own report may come later than that of a refund: then the processor knows more. Null: not ours. */
  private async paidTopUp(from: PaymentProcessor, payment: string): Promise<TopUpModel | "refused" | null> {
    const { topUp } = this.deps.database.prisma;
    const known = await topUp.findUnique({ where: { processor_paymentReference: { processor: from.name, paymentReference: payment } } });
    if (known) return known;
    const found = await from.findPayment(payment);
    if (!found) return null;
    const row = isUuid(found.topUpId) ? await topUp.findUnique({ where: { id: found.topUpId, processor: from.name } }) : null;
    if (!row || !found.isPaid || found.chargedCents < row.amountCents) return "refused";
    if (found.accountId !== null && found.accountId !== row.accountId) return "refused";
    const { chargedCents, currency } = found;
    const booked = await this.deps.booking.bookPayment(from.name, {
      topUpId: row.id,
      cents: row.amountCents,
      currency,
      payment,
      chargedCents,
    });
    if (booked === "refused") return "refused";
    const now = await topUp.findUniqueOrThrow({ where: { id: row.id } });
    // It was paid by another payment.
    return now.paymentReference === payment ? now : "refused";
  }

  private async reverse(from: PaymentProcessor, row: TopUpModel, report: ClaimReport): Promise<ReportResult> {
    const { booking, onDispute, database } = this.deps;
    if (report.currency !== row.currency) return "refused";
    if (report.kind === "refunded") {
      const charged = row.chargedCents ?? row.amountCents;
      if (report.chargedCents !== charged) return "refused";
      return booking.bookClaims(row.id, await from.listRefunds(toPaidTopUp(row)), { lists: true });
    }
    const { claim } = report;
    if (claim.kind === "dispute" && !claim.isVoid) {
      const known = { topUpId: row.id, kind: claim.kind, reference: claim.reference };
      // Before it is booked: a process that is killed in between repeats both.
      const isKnown = (await database.prisma.topUpClaim.count({ where: known })) > 0;
      if (!isKnown) await onDispute(row);
    }
    return booking.bookClaims(row.id, [claim]);
  }
}

type ClaimReport = Exclude<PaymentReport, { kind: "paid" | "unpaid" | "fee" }>;
