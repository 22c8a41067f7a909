/** What this process may charge against one limit without asking the database (docs/decisions/usage-limits.md). */
import type { CallerLimit } from "../../context.js";

/** The limit as of the last claim. */
export interface KnownLimit {
  /** The amount in force, with a raise. */
  readonly size: bigint;
  /** By usage rows of the window. */
  readonly spent: bigint;
  /** What other processes may still charge. */
  readonly claimed: bigint;
  /** The part of it that no generation held when they last said so, the first of them at `oldestAt`. */
  readonly idle: bigint;
  readonly oldestAt: number | null;
  /** Of this claim. Both are milliseconds since 1970 by the database's clock. */
  readonly lookedAt: number;
  /** When more may be there, in milliseconds since 1970. Null: when a generation ends. */
  readonly renewsAt: number | null;
  /** Held by no process. */
  readonly outside: bigint;
}

export class LimitClaim {
  /** May be held. */
  free = 0n;
  /** By generations. */
  held = 0n;
  /** Charged on disk while the database is unavailable, so that no usage row counts it yet. */
  spooled = 0n;
  /** Counted in no usage row, and to be counted with the next claim. */
  used = 0n;
  /** Null: the database was not asked yet. */
  known: KnownLimit | null = null;
  /** The limit was deleted: it refuses nothing. */
  isGone = false;
  /** Free amounts end then, because a raise does. Milliseconds since 1970. */
  freeUntil: number | null = null;
  /** The most to claim beside used amounts, doubled each time that it is used up quickly. */
  room = 0n;
  roomTaken = 0n;
  takenAt = 0;
  usedAt = 0;
  isClaiming = false;
  /** Claims nothing beyond need before this time, because another process needs the rest. */
  pausedUntil = 0;
  /** The smallest amount that was refused since the last release here, and until when the refusal stands without asking again. */
  refused: { readonly amount: bigint; readonly until: number } | null = null;
  /** Amounts that wait for a claim. */
  readonly waiting = new Set<bigint[]>();
  private readonly changes = new Set<() => void>();

  constructor(readonly limit: CallerLimit) {}

  /** What the process must keep beside free amounts. */
  get inUse(): bigint {
    return this.held + this.spooled + this.used;
  }

  /** The account, as events name it. */
  get accountName(): string {
    return this.limit.accountId ?? "";
  }

  /** All or nothing. `now`: milliseconds since 1970. */
  take(amount: bigint, now: number): boolean {
    this.usedAt = now;
    this.dropExpired(now);
    if (amount > this.free && !this.isGone) return false;
    this.free -= amount;
    this.held += amount;
    return true;
  }

  /** The free amount, with what a claim may add, as far as known. */
  get left(): bigint {
    if (this.isGone || this.known === null) return ENDLESS;
    const left = this.free + this.known.outside;
    return left > 0n ? left : 0n;
  }

  /** Releases a taken amount; the charged part is in usage rows from now on, or with `isUse` is counted with the next claim. */
  conclude(taken: bigint, charged: bigint, isUse = false): void {
    this.held -= taken;
    if (isUse) this.used += charged;
    this.free += taken - charged;
    if (this.free < 0n) this.free = 0n;
    this.refused = null;
    if (this.changes.size > 0) for (const notify of this.changes) notify();
  }

  /** Resolves at the next release here, or after that time. */
  async changed(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.changes.delete(done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.changes.add(done);
    });
  }

  private dropExpired(now: number): void {
    if (this.freeUntil === null || now < this.freeUntil) return;
    this.freeUntil = null;
    this.free = 0n;
  }
}

/** No limit is known: more than any hold. */
export const ENDLESS = 2n ** 62n;
