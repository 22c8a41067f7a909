/** The interface of payment processors: the pages on which people pay, and the money that goes back. */
import type { Money } from "./money.js";

export interface RequestedCheckout {
  /** The top-up's id, by which the processor reports its payment. */
  readonly topUpId: string;
  readonly accountId: string;
  readonly price: Money;
  readonly expiresAt: Date;
}

export interface Checkout {
  /** The processor's id. */
  readonly reference: string;
  /** The page on which a person pays. It is a credential of its own. */
  readonly url: string;
}

export interface PaymentProcessor {
  /** As stored with each top-up. */
  readonly name: string;
  /** Rejects with UPSTREAM_ERROR while the processor cannot be reached. */
  openCheckout(requested: RequestedCheckout): Promise<Checkout>;
  /** Pays `price` back to the payer. Repeated calls with the same id pay once. */
  refund(refundId: string, reference: string, price: Money): Promise<void>;
}
