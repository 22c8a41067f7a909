/**
 * Credits available to accounts and keys, as of this process's last commits. Only a hint for the size of a hold: the database decides.
 *
 * Other processes spend the same credits. The entry of an account, including budgets of its keys, is dropped on their events, and expires
 * after a second if events may be missed. This process's commits renew it.
 */
import { LRUCache } from "lru-cache";
import { entriesMax } from "../../lib/bounded.js";
import { KNOWN_BALANCE_MS } from "../../limits.js";

const ENTRIES_MAX = 100_000;

interface KnownFunds {
  readonly available: bigint;
  /** The turn of the read, in the common order of reads and drops. */
  readonly turn: number;
}

export class KnownBalances {
  private readonly funds: LRUCache<string, KnownFunds>;
  /** By account: the turn of the last drop. Entries of before expire sooner than this. */
  private readonly drops: LRUCache<string, number>;
  /** Requested holds that are undecided. */
  private readonly pending = new Map<string, bigint>();
  private turn = 0;

  constructor(believedMs = KNOWN_BALANCE_MS) {
    this.funds = new LRUCache({ ...entriesMax(ENTRIES_MAX), ttl: believedMs });
    this.drops = new LRUCache({ ...entriesMax(ENTRIES_MAX), ttl: believedMs });
  }

  /** Credits available to every id after pending holds; the first id is the account's. Null when one is unknown. */
  freeOf(ids: readonly string[]): bigint | null {
    const droppedAt = this.drops.get(ids[0] ?? "") ?? -1;
    let least: bigint | null = null;
    for (const id of ids) {
      const known = this.funds.get(id);
      if (known === undefined || known.turn <= droppedAt) return null;
      const free = known.available - (this.pending.get(id) ?? 0n);
      if (least === null || free < least) least = free;
    }
    return least;
  }

  expectHold(ids: readonly string[], amount: bigint): void {
    for (const id of ids) this.pending.set(id, (this.pending.get(id) ?? 0n) + amount);
  }

  forgetHold(ids: readonly string[], amount: bigint): void {
    for (const id of ids) {
      const left = (this.pending.get(id) ?? 0n) - amount;
      if (left > 0n) this.pending.set(id, left);
      else this.pending.delete(id);
    }
  }

  learn(id: string, available: bigint): void {
    this.funds.set(id, { available, turn: ++this.turn });
  }

  /** Another process has changed the account's or a key's available credits. */
  drop(accountId: string): void {
    this.drops.set(accountId, ++this.turn);
  }
}
