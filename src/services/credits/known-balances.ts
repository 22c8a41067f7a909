/**
 * What the last commits of this process said that accounts and keys can still hold. Only a hint, to size
 * a hold: the database decides whether it stands.
 *
 * Other processes spend the same money. What is known of an account, its keys' budgets included, is dropped when one of them tells of
 * a change, and is believed for a second where that is not heard. This process's own commits renew it.
 */
import { LRUCache } from "lru-cache";
import { entriesMax } from "../../lib/bounded.js";
import { KNOWN_BALANCE_MS } from "../../limits.js";

const ENTRIES_MAX = 100_000;

interface KnownFunds {
  readonly available: bigint;
  /** When it was learned, in the order of all that is learned and dropped. */
  readonly turn: number;
}

export class KnownBalances {
  private readonly funds: LRUCache<string, KnownFunds>;
  /** By account: the turn of the last drop. What was known before it has expired by itself when this does. */
  private readonly drops: LRUCache<string, number>;
  /** Holds that were asked for and are not decided yet. */
  private readonly pending = new Map<string, bigint>();
  private turn = 0;

  constructor(believedMs = KNOWN_BALANCE_MS) {
    this.funds = new LRUCache({ ...entriesMax(ENTRIES_MAX), ttl: believedMs });
    this.drops = new LRUCache({ ...entriesMax(ENTRIES_MAX), ttl: believedMs });
  }

  /** What the owner of every id can still hold after what is being held; the first id is the account's. Null when that of one is unknown. */
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

  /** A hold was decided, either way. */
  forgetHold(ids: readonly string[], amount: bigint): void {
    for (const id of ids) {
      const left = (this.pending.get(id) ?? 0n) - amount;
      if (left > 0n) this.pending.set(id, left);
      else this.pending.delete(id);
    }
  }

  /** Told of what a commit of this process has left. */
  learn(id: string, available: bigint): void {
    this.funds.set(id, { available, turn: ++this.turn });
  }

  /** Another process has changed what the account or a key of it can hold. */
  drop(accountId: string): void {
    this.drops.set(accountId, ++this.turn);
  }
}
