/**
 * Stripe (docs/decisions/stripe.md): Checkout, the Customer Portal, refunds, invoices, and payments by a saved method. Its package is loaded
 * when it is first needed.
 */
import type Stripe from "stripe";
import { conflict, upstreamFailed } from "../../errors.js";
import type { StripeSettings } from "../../lib/settings.js";
import type { Database } from "../../store/database.js";
import { boundedFetch } from "./bounded-fetch.js";
import type { Claim } from "./claims.js";
import { PROCESSOR_RETRIES, PROCESSOR_TIMEOUT_MS, REFUNDS_MAX, STRIPE_PROCESSOR } from "./limits.js";
import type {
  ChargeResult,
  Checkout,
  FeeSubject,
  Invoice,
  KnownPayment,
  PaidTopUp,
  PaymentProcessor,
  ProcessorFee,
  RequestedCharge,
  RequestedCheckout,
} from "./processor.js";
import { codeOf, isMissing, isOfType, isStripeError, type StripeFailure } from "./stripe-errors.js";
import { toRefundClaim } from "./stripe-events.js";
import { chargeByInvoice } from "./stripe-invoices.js";

export interface StripeProcessorDependencies {
  readonly database: Pick<Database, "prisma">;
  readonly settings: StripeSettings;
}

export class StripeProcessor implements PaymentProcessor {
  readonly name = STRIPE_PROCESSOR;
  readonly hasPortal = true;
  readonly canCharge = true;
  private client: Promise<Stripe> | null = null;

  constructor(private readonly deps: StripeProcessorDependencies) {}

  openCheckout(requested: RequestedCheckout): Promise<Checkout> {
    const { topUpId, accountId } = requested;
    return this.call(async (stripe) => {
      const open = async (customer: string, attempt: number) =>
        stripe.checkout.sessions.create(this.checkoutParams(requested, customer), {
          idempotencyKey: attempt === 0 ? `checkout-${topUpId}` : `checkout-${topUpId}-${attempt}`,
        });
      const session = await open(await this.customerOf(stripe, accountId), 0).catch(async (error: unknown) => {
        if (!isMissing(error, "customer")) throw error;
        // It was deleted at Stripe.
        await this.deps.database.prisma.paymentCustomer.deleteMany({ where: { accountId, processor: this.name } });
        return open(await this.customerOf(stripe, accountId), 1);
      });
      if (!isWebAddress(session.url)) throw upstreamFailed("The payment processor opened a checkout without a page. Try again.");
      return { reference: session.id, url: session.url };
    });
  }

  private checkoutParams({ topUpId, accountId, price, credits, expiresAt, keepsMethod, returnUrl }: RequestedCheckout, customer: string) {
    const { hasAutomaticTax, hasInvoices } = this.deps.settings;
    const metadata = { top_up_id: topUpId, account_id: accountId };
    return {
      mode: "payment",
      customer,
      client_reference_id: topUpId,
      line_items: [
        {
          quantity: 1,
          price_data: {
            currency: price.currency,
            unit_amount: Number(price.cents),
            product_data: { name: `${credits} credits` },
            ...(hasAutomaticTax && { tax_behavior: "exclusive" as const }),
          },
        },
      ],
      metadata,
      payment_intent_data: { metadata, ...(keepsMethod && { setup_future_usage: "off_session" as const }) },
      // The payment must be in the currency of the price.
      adaptive_pricing: { enabled: false },
      ...(hasAutomaticTax && { automatic_tax: { enabled: true }, customer_update: { address: "auto" as const } }),
      ...(hasInvoices && { invoice_creation: { enabled: true, invoice_data: { metadata } } }),
      expires_at: Math.floor(expiresAt.getTime() / 1_000),
      success_url: withParameter(returnUrl, "paid", topUpId),
      cancel_url: withParameter(returnUrl, "cancelled", topUpId),
    } satisfies Stripe.Checkout.SessionCreateParams;
  }

  refund(refundId: string, { topUpId, payment }: PaidTopUp): Promise<void> {
    if (payment === null) throw conflict("The payment is not known yet. Try again in a moment, or pay it back at Stripe.");
    return this.call(async (stripe) => {
      try {
        const metadata = { top_up_id: topUpId };
        // Without an amount: the rest.
        await stripe.refunds.create({ payment_intent: payment, metadata }, { idempotencyKey: `refund-${refundId}` });
      } catch (error) {
        const code = codeOf(error);
        if (code === "charge_already_refunded") return;
        if (code === "charge_disputed") throw conflict("The payment is disputed: it cannot be paid back while the dispute is open.");
        throw error;
      }
    });
  }

  listRefunds({ payment }: PaidTopUp): Promise<readonly Claim[]> {
    if (payment === null) return Promise.resolve([]);
    return this.call(async (stripe) => {
      const claims: Claim[] = [];
      // A payment has few.
      for await (const { id, amount, status } of stripe.refunds.list({ payment_intent: payment, limit: 100 })) {
        claims.push(toRefundClaim({ id, amount: BigInt(amount), status }));
        if (claims.length === REFUNDS_MAX) break;
      }
      return claims;
    });
  }

  findCharge({ topUpId, accountId }: Pick<RequestedCharge, "topUpId" | "accountId">): Promise<ChargeResult | null> {
    return this.call(async (stripe) => {
      const customer = await this.knownCustomerOf(accountId);
      return customer === null ? null : findIntent(stripe, customer, topUpId);
    });
  }

  charge({ topUpId, accountId, price, credits }: RequestedCharge): Promise<ChargeResult> {
    return this.call(async (stripe): Promise<ChargeResult> => {
      const customer = await this.customerOf(stripe, accountId);
      const method = await methodOf(stripe, customer);
      if (method === null) return { outcome: "failed", reason: "No payment method is saved: buy credits once, or add one." };
      try {
        if (this.deps.settings.hasAutomaticTax)
          return await chargeByInvoice(stripe, { topUpId, accountId, price, credits, customer, method });
        const intent = await stripe.paymentIntents.create(
          {
            ...{ amount: Number(price.cents), currency: price.currency, customer, payment_method: method },
            ...{ off_session: true, confirm: true, description: `${credits} credits` },
            metadata: { top_up_id: topUpId, account_id: accountId },
          },
          { idempotencyKey: `charge-${topUpId}` },
        );
        return toChargeResult(intent);
      } catch (error) {
        if (isOfType(error, "StripeCardError")) return { outcome: "failed", reason: reasonOf(error) };
        if (!isOfType(error, "StripeIdempotencyError")) throw error;
        // Charged before, with another payment method.
        return (await findIntent(stripe, customer, topUpId)) ?? { outcome: "failed", reason: "The payment failed." };
      }
    });
  }

  findPayment(payment: string): Promise<KnownPayment | null> {
    return this.call(async (stripe) => {
      try {
        const intent = await stripe.paymentIntents.retrieve(payment);
        const { metadata, status, amount_received, currency } = intent;
        if (metadata.top_up_id === undefined) return null;
        const { top_up_id: topUpId, account_id: accountId = null } = metadata;
        const result = toChargeResult(intent);
        const failure = result.outcome === "failed" ? result.reason : null;
        return { topUpId, accountId, payment, isPaid: status === "succeeded", failure, chargedCents: BigInt(amount_received), currency };
      } catch (error) {
        if (isMissing(error)) return null;
        throw error;
      }
    });
  }

  findFees = ({ kind, reference }: FeeSubject): Promise<readonly ProcessorFee[] | null> =>
    this.call(async (stripe) => {
      if (kind === "dispute") {
        const { balance_transactions: movements } = await stripe.disputes.retrieve(reference);
        return movements.length === 0 ? null : movements.map(toFee);
      }
      const { latest_charge: charge } = await stripe.paymentIntents.retrieve(reference, { expand: ["latest_charge.balance_transaction"] });
      const movement = charge === null || typeof charge === "string" ? null : charge.balance_transaction;
      return movement === null || typeof movement === "string" ? null : [toFee(movement)];
    });

  openPortal(accountId: string, returnUrl: string): Promise<string> {
    return this.call(async (stripe) => {
      const customer = await this.customerOf(stripe, accountId);
      return (await stripe.billingPortal.sessions.create({ customer, return_url: returnUrl })).url;
    });
  }

  listInvoices(accountId: string, first: number): Promise<readonly Invoice[]> {
    return this.call(async (stripe) => {
      const known = await this.knownCustomerOf(accountId);
      if (known === null) return [];
      const { data } = await stripe.invoices.list({ customer: known, limit: first });
      return data.map((invoice) => ({
        id: invoice.id,
        number: invoice.number ?? invoice.id,
        status: (invoice.status ?? "draft") as Invoice["status"],
        amountCents: BigInt(invoice.total),
        currency: invoice.currency,
        issuedAt: new Date(invoice.created * 1_000),
        url: invoice.hosted_invoice_url ?? null,
        pdfUrl: invoice.invoice_pdf ?? null,
      }));
    });
  }

  /** Checks the signature. Returns the parsed body; null: no secret signed it, or too long ago. */
  async verify(body: string, signature: string, now: Date, ageSecondsMax: number): Promise<unknown> {
    const stripe = await this.open();
    for (const secret of this.deps.settings.webhookSecrets) {
      try {
        return stripe.webhooks.constructEvent(body, signature, secret, ageSecondsMax, undefined, now.getTime());
      } catch {
        // Another secret may have signed it.
      }
    }
    return null;
  }

  private async knownCustomerOf(accountId: string): Promise<string | null> {
    const { paymentCustomer } = this.deps.database.prisma;
    const known = await paymentCustomer.findUnique({ where: { accountId_processor: { accountId, processor: this.name } } });
    return known?.reference ?? null;
  }

  private async customerOf(stripe: Stripe, accountId: string): Promise<string> {
    const known = await this.knownCustomerOf(accountId);
    if (known !== null) return known;
    const { prisma } = this.deps.database;
    const account = await prisma.account.findUniqueOrThrow({ where: { id: accountId }, select: { email: true, name: true, handle: true } });
    // Without a key of the account: Stripe repeats a failure to all requests of the same key for a day. One of two customers stays unused.
    const customer = await stripe.customers.create({
      metadata: { account_id: accountId },
      name: account.name ?? account.handle,
      ...(account.email !== null && { email: account.email }),
    });
    if (typeof customer.id !== "string") throw upstreamFailed("The payment processor made a customer without an ID. Try again.");
    const data = { accountId, processor: this.name, reference: customer.id };
    await prisma.paymentCustomer.createMany({ data, skipDuplicates: true });
    return (await this.knownCustomerOf(accountId)) ?? customer.id;
  }

  /** Rejects with UPSTREAM_ERROR for failures of Stripe, and of the gateway's own key. */
  private async call<Result>(work: (stripe: Stripe) => Promise<Result>): Promise<Result> {
    const stripe = await this.open();
    try {
      return await work(stripe);
    } catch (error) {
      throw isStripeError(error) ? toUpstreamError(error) : error;
    }
  }

  private open(): Promise<Stripe> {
    this.client ??= this.load().catch((error: unknown) => {
      this.client = null;
      throw error;
    });
    return this.client;
  }

  private async load(): Promise<Stripe> {
    const { default: StripeClient } = await import("stripe");
    const { secretKey, apiUrl } = this.deps.settings;
    const url = apiUrl === null ? null : new URL(apiUrl);
    return new StripeClient(secretKey, {
      ...{ timeout: PROCESSOR_TIMEOUT_MS, maxNetworkRetries: PROCESSOR_RETRIES, telemetry: false },
      httpClient: StripeClient.createFetchHttpClient(boundedFetch),
      ...(url && {
        host: url.hostname,
        port: url.port || (url.protocol === "http:" ? 80 : 443),
        protocol: url.protocol === "http:" ? "http" : "https",
      }),
    });
  }
}

/** The default of the person, else the newest. */
async function methodOf(stripe: Stripe, customer: string): Promise<string | null> {
  const found = await stripe.customers.retrieve(customer);
  if (found.deleted) return null;
  const chosen = found.invoice_settings.default_payment_method;
  if (chosen) return typeof chosen === "string" ? chosen : chosen.id;
  return (await stripe.customers.listPaymentMethods(customer, { limit: 1 })).data[0]?.id ?? null;
}

function toFee({ fee, amount, currency }: Stripe.BalanceTransaction): ProcessorFee {
  return { feeCents: BigInt(fee), grossCents: BigInt(amount), currency };
}

async function findIntent(stripe: Stripe, customer: string, topUpId: string): Promise<ChargeResult | null> {
  const { data } = await stripe.paymentIntents.list({ customer, limit: 100 });
  const found = data.find(({ metadata }) => metadata.top_up_id === topUpId);
  return found ? toChargeResult(found) : null;
}

function toChargeResult({ id: payment, status, amount_received: received, last_payment_error: error }: Stripe.PaymentIntent): ChargeResult {
  if (status === "succeeded") return { outcome: "paid", payment, chargedCents: BigInt(received) };
  if (status === "processing") return { outcome: "pending", payment };
  return { outcome: "failed", reason: error?.message ?? "The bank asks for a confirmation: buy credits once yourself." };
}

/** Stripe writes it for the payer. */
function reasonOf({ message }: StripeFailure): string {
  return message.slice(0, 500);
}

const REFUSALS: ReadonlySet<string> = new Set(["StripeAuthenticationError", "StripePermissionError", "StripeInvalidRequestError"]);

function toUpstreamError(error: StripeFailure): Error {
  if (REFUSALS.has(error.type)) {
    const message = "The payment processor refused the gateway's request: its operator must look into the log. Nothing was charged.";
    return upstreamFailed(message, { cause: error });
  }
  return upstreamFailed("The payment processor cannot be reached. Nothing is lost: try again in a moment.", { cause: error });
}

/** A person's browser opens it. */
function isWebAddress(url: string | null): url is string {
  return typeof url === "string" && URL.canParse(url) && ["https:", "http:"].includes(new URL(url).protocol);
}

function withParameter(url: string, name: string, value: string): string {
  const target = new URL(url);
  target.searchParams.set(name, value);
  return target.href;
}
