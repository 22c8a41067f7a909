/**
 * What the last commits said that accounts and keys can still hold. Only a hint, to decide whether an upstream call may
 * start beside its hold's commit: the database decides whether the hold stands.
 */
import { LRUCache } from "lru-cache";
import { COMFORT_FACTOR } from "../../limits.js";

const ENTRIES_MAX = 100_000;

interface KnownFunds {
  available: bigint;
  /** Holds that were asked for since `available` was learned. */
  pending: bigint;
}

export class KnownBalances {
  private readonly funds = new LRUCache<string, KnownFunds>({ max: ENTRIES_MAX });

  /** True while the owner of every id can hold ten times the amount. An unknown one cannot. */
  isComfortable(ids: readonly string[], amount: bigint): boolean {
    return ids.every((id) => {
      const known = this.funds.get(id);
      return known !== undefined && known.available - known.pending >= amount * COMFORT_FACTOR;
    });
  }

  expectHold(ids: readonly string[], amount: bigint): void {
    for (const id of ids) {
      const known = this.funds.get(id);
      if (known) known.pending += amount;
    }
  }

  /** A hold was decided, either way. */
  forgetHold(ids: readonly string[], amount: bigint): void {
    for (const id of ids) {
      const known = this.funds.get(id);
      if (known) known.pending = known.pending > amount ? known.pending - amount : 0n;
    }
  }

  learn(id: string, available: bigint): void {
    const known = this.funds.get(id);
    if (known) known.available = available;
    else this.funds.set(id, { available, pending: 0n });
  }
}
