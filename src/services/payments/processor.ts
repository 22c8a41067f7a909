/** The interface of payment processors: the pages on which people pay, the money that goes back, and reports of both. */
import type { Claim } from "./claims.js";
import type { Money } from "./money.js";

export interface RequestedCheckout {
  /** The top-up's id, by which the processor reports its payment. */
  readonly topUpId: string;
  readonly accountId: string;
  readonly price: Money;
  readonly credits: string;
  readonly expiresAt: Date;
  /** The payment method is kept for payments without the person. */
  readonly keepsMethod: boolean;
  /** Where the person continues. */
  readonly returnUrl: string;
}

export interface Checkout {
  /** The processor's id. */
  readonly reference: string;
  /** The page on which a person pays. It is a credential of its own. */
  readonly url: string;
}

export interface PaidTopUp {
  readonly topUpId: string;
  /** The processor's id of the checkout, where there is one. */
  readonly reference: string | null;
  /** The processor's id of the payment. */
  readonly payment: string | null;
  /** With taxes. */
  readonly chargedCents: bigint;
}

export interface RequestedCharge {
  readonly topUpId: string;
  readonly accountId: string;
  readonly price: Money;
  readonly credits: string;
}

export type ChargeResult =
  | { readonly outcome: "paid"; readonly payment: string | null; readonly chargedCents: bigint }
  /** It is decided later, and reported. */
  | { readonly outcome: "pending"; readonly payment: string | null }
  /** `reason`: for the payer. */
  | { readonly outcome: "failed"; readonly reason: string };

export interface Invoice {
  readonly id: string;
  readonly number: string;
  readonly status: "draft" | "open" | "paid" | "void" | "uncollectible";
  readonly amountCents: bigint;
  readonly currency: string;
  readonly issuedAt: Date;
  /** A page for people. It is a credential of its own. */
  readonly url: string | null;
  readonly pdfUrl: string | null;
}

/** A movement of the processor's account, and the fee that the processor took for it. */
export interface ProcessorFee {
  /** Below 0: it came back. */
  readonly feeCents: bigint;
  /** The movement without the fee, in the same currency. */
  readonly grossCents: bigint;
  /** That of the processor's account. */
  readonly currency: string;
}

/** A payment, as the processor has it. */
export interface KnownPayment {
  readonly topUpId: string;
  readonly accountId: string | null;
  readonly payment: string;
  readonly isPaid: boolean;
  /** In words for the payer. Null: it is paid, or not decided. */
  readonly failure: string | null;
  /** With taxes. */
  readonly chargedCents: bigint;
  readonly currency: string;
}

/** What a processor reports. Reports may be repeated, reordered, late, and about payments of others. */
export type PaymentReport =
  | {
      readonly kind: "paid";
      readonly topUpId: string;
      readonly accountId: string | null;
      /** Null: a payment without a checkout. */
      readonly reference: string | null;
      readonly payment: string | null;
      readonly customer: string | null;
      /** Without taxes. */
      readonly cents: bigint;
      readonly chargedCents: bigint;
      readonly currency: string;
    }
  /** The checkout ended, or the payment failed. */
  | { readonly kind: "unpaid"; readonly topUpId: string; readonly reference: string | null; readonly reason: string | null }
  /** The fee of a payment may be known. */
  | { readonly kind: "fee"; readonly payment: string }
  /** The refunds of a payment changed: the processor lists them. */
  | { readonly kind: "refunded"; readonly payment: string; readonly chargedCents: bigint; readonly currency: string }
  /** `claim`: of the charged amount. */
  | { readonly kind: "claimed"; readonly payment: string; readonly claim: Claim; readonly currency: string };

export interface FeeSubject {
  readonly kind: "payment" | "dispute";
  /** The processor's id. */
  readonly reference: string;
}

export interface PaymentProcessor {
  /** As stored with each top-up. */
  readonly name: string;
  readonly hasPortal: boolean;
  /** Whether a saved payment method can be charged. */
  readonly canCharge: boolean;
  /** All reject with UPSTREAM_ERROR while the processor cannot be reached; repeated calls with the same id do the same once. */
  openCheckout(requested: RequestedCheckout): Promise<Checkout>;
  /** Pays the rest of a payment back. */
  refund(refundId: string, topUp: PaidTopUp): Promise<void>;
  /** All refunds of a payment, failed ones included. */
  listRefunds(topUp: PaidTopUp): Promise<readonly Claim[]>;
  /** Charges the saved payment method. */
  charge(requested: RequestedCharge): Promise<ChargeResult>;
  /** The result of an earlier charge of a top-up. Null: it was never charged. */
  findCharge(requested: Pick<RequestedCharge, "topUpId" | "accountId">): Promise<ChargeResult | null>;
  /** Null: there is none, or it is of others. */
  findPayment(payment: string): Promise<KnownPayment | null>;
  /** The fees of a payment or dispute. Its result is null while they are not known. Null: there are none. */
  readonly findFees: ((of: FeeSubject) => Promise<readonly ProcessorFee[] | null>) | null;
  /** The address of the page on which a person manages payment methods. Rejects with CONFLICT when there is none. */
  openPortal(accountId: string, returnUrl: string): Promise<string>;
  /** Newest first. */
  listInvoices(accountId: string, first: number): Promise<readonly Invoice[]>;
}
