/**
 * Refunds and disputes of a top-up, as facts that no order of reports changes: each is known by the processor's id, and a void one stays
 * void. The bookings follow from all of them together.
 */
import { smaller } from "../../lib/money.js";
import { priceShare } from "./money.js";

/** The refunds of a processor without ids: all together. */
export const ALL_REFUNDS = "";

/** A refund or dispute, as its processor reported it. */
export interface Claim {
  readonly kind: "refund" | "dispute";
  /** The processor's id. */
  readonly reference: string;
  /** Of the charged amount, with taxes. */
  readonly cents: bigint;
  /** The refund failed, or the dispute was won. */
  readonly isVoid: boolean;
}

/** Cents of a top-up's amount, without taxes. */
export interface ClaimedCents {
  readonly refundedCents: bigint;
  readonly disputedCents: bigint;
}

export interface ClaimedTopUp extends ClaimedCents {
  readonly amountCents: bigint;
  readonly chargedCents: bigint | null;
}

/** A change of a top-up's loss. */
export interface ClaimStep {
  readonly kind: "refund" | "refund_failed" | "dispute" | "dispute_won";
  /** More than 0. */
  readonly cents: bigint;
}

/**
 * The steps from the booked amounts to those of the claims, returns first. A top-up loses at most its amount; claims above it wait until
 * another one is void.
 */
export function stepsTo(topUp: ClaimedTopUp, claims: readonly Claim[]): readonly ClaimStep[] {
  const { amountCents: amount, chargedCents, refundedCents, disputedCents } = topUp;
  const charged = chargedCents ?? amount;
  const wanted = (kind: Claim["kind"]) => {
    const cents = claims.reduce((sum, claim) => (claim.kind === kind && !claim.isVoid ? sum + claim.cents : sum), 0n);
    return priceShare(cents, charged, amount);
  };
  const [refunds, disputes] = [wanted("refund"), wanted("dispute")];
  const kept = { refunded: smaller(refundedCents, refunds), disputed: smaller(disputedCents, disputes) };
  const moreRefunded = smaller(refunds - kept.refunded, amount - kept.refunded - kept.disputed);
  const moreDisputed = smaller(disputes - kept.disputed, amount - kept.refunded - kept.disputed - moreRefunded);
  const steps: readonly ClaimStep[] = [
    { kind: "refund_failed", cents: refundedCents - kept.refunded },
    { kind: "dispute_won", cents: disputedCents - kept.disputed },
    { kind: "refund", cents: moreRefunded },
    { kind: "dispute", cents: moreDisputed },
  ];
  return steps.filter(({ cents }) => cents > 0n);
}

/** The loss of a top-up after a step. */
export function after({ refundedCents, disputedCents }: ClaimedCents, { kind, cents }: ClaimStep): ClaimedCents {
  switch (kind) {
    case "refund":
      return { refundedCents: refundedCents + cents, disputedCents };
    case "refund_failed":
      return { refundedCents: refundedCents - cents, disputedCents };
    case "dispute":
      return { refundedCents, disputedCents: disputedCents + cents };
    case "dispute_won":
      return { refundedCents, disputedCents: disputedCents - cents };
  }
}
