/**
 * A payment by a saved method with Stripe's automatic tax: an invoice of one line, which Stripe taxes and charges
 * (https://docs.stripe.com/tax/invoicing). Each step has a key of its own, so that a repeated call continues where the first one ended.
 *
 * 1. The invoice and its line are made, and finalized: Stripe computes the tax by the customer's address.
 * 2. Its payment intent gets the metadata of the top-up, by which its events are known.
 * 3. It is paid. One that is not paid is voided, so that it cannot be paid later.
 */
import type Stripe from "stripe";
import type { ChargeResult, RequestedCharge } from "./processor.js";
import { codeOf, isOfType } from "./stripe-errors.js";

export interface InvoiceCharge extends RequestedCharge {
  readonly customer: string;
  readonly method: string;
}

const ADDRESS_UNKNOWN = "The tax cannot be computed, because your address is not known: buy credits once yourself.";

/** Rejects with the package's errors; a declined card is an error too. */
export async function chargeByInvoice(
  stripe: Stripe,
  { topUpId, accountId, price, credits, customer, method }: InvoiceCharge,
): Promise<ChargeResult> {
  const step = (name: string) => ({ idempotencyKey: `charge-${topUpId}-${name}` });
  const metadata = { top_up_id: topUpId, account_id: accountId };
  const { id: invoice } = await stripe.invoices.create(
    {
      ...{ customer, currency: price.currency, metadata, automatic_tax: { enabled: true } },
      ...{ collection_method: "charge_automatically", auto_advance: false, pending_invoice_items_behavior: "exclude" },
    },
    step("invoice"),
  );
  const line = {
    amount: Number(price.cents),
    currency: price.currency,
    description: `${credits} credits`,
    tax_behavior: "exclusive",
  } as const;
  await stripe.invoiceItems.create({ customer, invoice, ...line }, step("line"));
  const finalized = await finalize(stripe, invoice, step("finalize"));
  // Stripe switches the tax off where it does not know the address.
  if (finalized?.automatic_tax.status !== "complete") {
    await discard(stripe, invoice, finalized !== null);
    return { outcome: "failed", reason: ADDRESS_UNKNOWN };
  }
  const { data: payments } = await stripe.invoicePayments.list({ invoice, limit: 10 });
  const payment = toId(payments[0]?.payment.payment_intent);
  if (payment === null) throw new Error(`The invoice ${invoice} has no payment intent`);
  await stripe.paymentIntents.update(payment, { metadata: { ...metadata, price_cents: price.cents.toString() } }, step("metadata"));
  try {
    const paid = await stripe.invoices.pay(invoice, { payment_method: method, off_session: true }, step("pay"));
    return paid.status === "paid" ? { outcome: "paid", payment, chargedCents: BigInt(paid.total) } : { outcome: "pending", payment };
  } catch (error) {
    if (isOfType(error, "StripeCardError")) await discard(stripe, invoice, true);
    throw error;
  }
}

/** Null: Stripe does not know the customer's address. */
async function finalize(stripe: Stripe, invoice: string, options: { readonly idempotencyKey: string }): Promise<Stripe.Invoice | null> {
  try {
    return await stripe.invoices.finalizeInvoice(invoice, { auto_advance: false }, options);
  } catch (error) {
    if (codeOf(error) === "customer_tax_location_invalid") return null;
    throw error;
  }
}

/** The payment has failed all the same when Stripe refuses: a call before may have ended the invoice. */
async function discard(stripe: Stripe, invoice: string, isFinal: boolean): Promise<void> {
  await (isFinal ? stripe.invoices.voidInvoice(invoice) : stripe.invoices.del(invoice)).catch(() => undefined);
}

function toId(reference: string | { readonly id: string } | undefined): string | null {
  return typeof reference === "string" ? reference : (reference?.id ?? null);
}
