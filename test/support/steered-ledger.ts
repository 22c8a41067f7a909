/** A real ledger that a test steers: its flushes are recorded, can be held back, and can get lost on the way. */

import { type LeaseRequest, type Ledger, type LedgerOperation, LedgerUnavailable } from "../../src/store/ledger.js";

export interface SteeredLedger extends Ledger {
  /** The operations of each flush that was tried, in order. */
  readonly batches: readonly (readonly LedgerOperation[])[];
  /** Each request for a lease or for more of it, in order. */
  readonly takes: readonly LeaseRequest[];
  /** The most flushes that were under way at once. */
  readonly concurrencyMax: () => number;
  /** Flushes wait, from now on. Resolves when one does. */
  pause(): Promise<void>;
  resume(): void;
  /**
   * From the next flush on, or from a later one: `network` keeps flushes from the database; `answer` lets the first be
   * committed and loses its answer. Lasts until healed.
   */
  lose(what: "network" | "answer", options?: { readonly afterFlushes: number }): void;
  heal(): void;
}

export function steer(real: Ledger): SteeredLedger {
  const batches: LedgerOperation[][] = [];
  const takes: LeaseRequest[] = [];
  let underWay = 0;
  let concurrencyMax = 0;
  let gate: { readonly opened: Promise<void>; readonly open: () => void; readonly announce: () => void } | null = null;
  let lost: "network" | "answer" | null = null;
  let flushesBeforeLoss = 0;
  return {
    batches,
    takes,
    concurrencyMax: () => concurrencyMax,
    grant: (grant, within) => real.grant(grant, within),
    withdraw: (withdrawal, within) => real.withdraw(withdrawal, within),
    purchase: (purchase, within) => real.purchase(purchase, within),
    refund: (refund, within) => real.refund(refund, within),
    restore: (restoration, within) => real.restore(restoration, within),
    soldLeft: (accountId, bucket, within) => real.soldLeft(accountId, bucket, within),
    forfeitOfDeleted: (id, accountId, within) => real.forfeitOfDeleted(id, accountId, within),
    sellOnInvoice: (sale, within) => real.sellOnInvoice(sale, within),
    bookPayment: (payment, within) => real.bookPayment(payment, within),
    bookFee: (fee, within) => real.bookFee(fee, within),
    expire: (id, grantId) => real.expire(id, grantId),
    mature: (accountId, before) => real.mature(accountId, before),
    convertEarnings: (use, within) => real.convertEarnings(use, within),
    payOut: (use, within) => real.payOut(use, within),
    reverseEarnings: (reversal, within) => real.reverseEarnings(reversal, within),
    refill: (refill) => real.refill(refill),
    setTier: (change, within) => real.setTier(change, within),
    leases: {
      ...real.leases,
      take: (request) => {
        takes.push(request);
        return lost === null ? real.leases.take(request) : Promise.reject(new LedgerUnavailable("lost on the way"));
      },
      give: (leaseId, needed) =>
        lost === null ? real.leases.give(leaseId, needed) : Promise.reject(new LedgerUnavailable("lost on the way")),
    },
    async flush(operations) {
      underWay += 1;
      concurrencyMax = Math.max(concurrencyMax, underWay);
      try {
        gate?.announce();
        await gate?.opened;
        batches.push([...operations]);
        if (lost === null || flushesBeforeLoss-- > 0) return await real.flush(operations);
        if (lost === "answer") await real.flush(operations);
        lost = "network";
        throw new LedgerUnavailable("lost on the way");
      } finally {
        underWay -= 1;
      }
    },
    pause: () => {
      const opened = defer();
      const waiting = defer();
      gate = { opened: opened.promise, open: opened.resolve, announce: waiting.resolve };
      return waiting.promise;
    },
    resume: () => {
      gate?.open();
      gate = null;
    },
    lose: (what, { afterFlushes } = { afterFlushes: 0 }) => {
      lost = what;
      flushesBeforeLoss = afterFlushes;
    },
    heal: () => {
      lost = null;
    },
  };
}

function defer(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
