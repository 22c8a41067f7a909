/**
 * Stripe's events as reports (https://docs.stripe.com/api/events/types). Reads only the needed fields, since Stripe adds others at any time.
 * Which events: docs/spec/top-ups.md#stripe.
 */
import * as z from "zod";
import type { Claim } from "./claims.js";
import type { PaymentReport } from "./processor.js";

const id = z.string().min(1).max(255);
const cents = z.int().transform(BigInt);
/** An id, or the expanded object. */
const reference = z.union([id, z.object({ id }).transform((object) => object.id)]).nullish();
const currency = z.string().max(3);
const metadata = z
  .object({
    ...{ top_up_id: z.string().optional().catch(undefined), account_id: z.string().optional().catch(undefined) },
    /** Of a payment with taxes. */
    price_cents: z
      .string()
      .regex(/^\d{1,15}$/)
      .transform(BigInt)
      .optional()
      .catch(undefined),
  })
  .nullish()
  .catch(null);

export const stripeEvent = z.object({
  id,
  type: z.string().max(255),
  /** Of a connected account: not ours. */
  account: z.string().nullish(),
  data: z.object({ object: z.unknown() }),
});
export type StripeEvent = z.output<typeof stripeEvent>;

const session = z.object({
  id,
  mode: z.string().nullish(),
  client_reference_id: z.string().nullish(),
  payment_status: z.string(),
  payment_intent: reference,
  customer: reference,
  amount_subtotal: cents.nullish(),
  amount_total: cents.nullish(),
  currency: currency.nullish(),
  metadata,
});

const intent = z.object({
  id,
  amount_received: cents.nullish(),
  currency,
  customer: reference,
  metadata,
  last_payment_error: z.object({ message: z.string().nullish() }).nullish(),
});

const charge = z.object({ payment_intent: reference, amount: cents, currency });
const updatedCharge = z.object({ payment_intent: reference, balance_transaction: reference });
const refund = z.object({ id, payment_intent: reference, amount: cents, currency, status: z.string().nullish() });
const dispute = z.object({ id, payment_intent: reference, amount: cents, currency, status: z.string() });

/** Null: an event that says nothing about a top-up of this gateway. Throws a ZodError for an object that is not as Stripe writes it. */
export function readStripeEvent({ type, account, data: { object } }: StripeEvent): PaymentReport | null {
  if (account != null) return null;
  switch (type) {
    case "checkout.session.completed":
    case "checkout.session.async_payment_succeeded":
      return paidCheckout(session.parse(object));
    case "checkout.session.async_payment_failed":
      return unpaidCheckout(session.parse(object), "The payment failed at the bank.");
    case "checkout.session.expired":
      return unpaidCheckout(session.parse(object), null);
    case "payment_intent.succeeded":
      return paidIntent(intent.parse(object));
    case "payment_intent.payment_failed":
      return unpaidIntent(intent.parse(object));
    case "charge.refunded": {
      const { payment_intent: payment, amount, currency: paidIn } = charge.parse(object);
      return payment == null ? null : { kind: "refunded", payment, chargedCents: amount, currency: paidIn };
    }
    case "charge.updated": {
      const { payment_intent: payment, balance_transaction: movement } = updatedCharge.parse(object);
      return payment == null || movement == null ? null : { kind: "fee", payment };
    }
    case "refund.created":
    case "refund.updated":
    case "refund.failed":
    case "charge.refund.updated": {
      const found = refund.parse(object);
      const { payment_intent: payment, currency: paidIn } = found;
      return payment == null ? null : { kind: "claimed", payment, claim: toRefundClaim(found), currency: paidIn };
    }
    case "charge.dispute.created":
    case "charge.dispute.funds_withdrawn":
    case "charge.dispute.funds_reinstated":
    case "charge.dispute.closed":
      return readDispute(type, dispute.parse(object));
    default:
      return null;
  }
}

function paidCheckout(found: z.output<typeof session>): PaymentReport | null {
  const topUpId = found.metadata?.top_up_id ?? found.client_reference_id ?? null;
  if (topUpId === null || (found.mode ?? "payment") !== "payment") return null;
  // A transfer that takes days is not paid when the checkout completes.
  if (found.payment_status !== "paid") return null;
  const total = found.amount_total ?? 0n;
  const subtotal = found.amount_subtotal ?? total;
  return {
    kind: "paid",
    topUpId,
    accountId: found.metadata?.account_id ?? null,
    reference: found.id,
    payment: found.payment_intent ?? null,
    customer: found.customer ?? null,
    // A discount makes the payment smaller than the price.
    cents: total < subtotal ? total : subtotal,
    chargedCents: total,
    currency: found.currency ?? "",
  };
}

function unpaidCheckout(found: z.output<typeof session>, reason: string | null): PaymentReport | null {
  const topUpId = found.metadata?.top_up_id ?? found.client_reference_id ?? null;
  return topUpId === null ? null : { kind: "unpaid", topUpId, reference: found.id, reason };
}

/** Those of checkouts have the same metadata: `PaymentReports` takes only payments of top-ups without a checkout. */
function paidIntent({ metadata: stated, id: payment, amount_received: received, currency: paidIn, customer }: z.output<typeof intent>) {
  if (stated?.top_up_id === undefined) return null;
  const amount = received ?? 0n;
  const report = { kind: "paid", topUpId: stated.top_up_id, accountId: stated.account_id ?? null, reference: null, payment } as const;
  const price = stated.price_cents ?? amount;
  return { ...report, customer: customer ?? null, cents: price < amount ? price : amount, chargedCents: amount, currency: paidIn };
}

function unpaidIntent({ metadata: stated, last_payment_error: error }: z.output<typeof intent>): PaymentReport | null {
  if (stated?.top_up_id === undefined) return null;
  return { kind: "unpaid", topUpId: stated.top_up_id, reference: null, reason: error?.message ?? "The payment failed." };
}

/** The bank did not take the money back, or the refund was ended before: Stripe returned it. */
const VOID_REFUNDS: ReadonlySet<string> = new Set(["failed", "canceled"]);

export function toRefundClaim({ id: number, amount, status }: { id: string; amount: bigint; status?: string | null | undefined }): Claim {
  return { kind: "refund", reference: number, cents: amount, isVoid: VOID_REFUNDS.has(status ?? "") };
}

function readDispute(type: string, found: z.output<typeof dispute>): PaymentReport | null {
  const { id: number, payment_intent: payment, amount, currency: paidIn, status } = found;
  if (payment == null) return null;
  const isReturned = type === "charge.dispute.funds_reinstated";
  // An inquiry, or a dispute that was prevented: no money has moved.
  if (!isReturned && type !== "charge.dispute.funds_withdrawn" && (status.startsWith("warning_") || status === "prevented")) return null;
  const isVoid = isReturned || (status === "won" && type !== "charge.dispute.funds_withdrawn");
  return { kind: "claimed", payment, claim: { kind: "dispute", reference: number, cents: amount, isVoid }, currency: paidIn };
}
