/**
 * Claims of this process on limits (docs/decisions/usage-limits.md).
 *
 * 1. A process claims a part of a limit, durably, and grants generations their holds from it in memory. The claims of all processes
 *    and the usage rows of the window together are never more than the limit.
 * 2. A charge that is committed moves from the claim to the usage rows, so that a claim is exact again with its next statement.
 * 3. Free amounts are given back after CLAIM_IDLE_MS, when another process needs them (`usage-limit-wanted`), and when the process stops.
 * 4. Claims of a dead process end, but for its holds. A process that cannot write its heartbeat grants nothing.
 */
import type { Logger } from "pino";
import type { CallerLimit } from "../../context.js";
import type { Clock } from "../../lib/clock.js";
import { larger } from "../../lib/money.js";
import { Repeated } from "../../lib/repeated.js";
import { CONTENDED_HOLD_WAIT_MS, HEARTBEAT_DEAD_MS } from "../../limits.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import { LimitClaim } from "./claim.js";
import type { LimitAlerts } from "./limit-alerts.js";
import {
  CLAIM_DOUBLED_MS,
  CLAIM_HELD_LOOK_MS,
  CLAIM_IDLE_MS,
  CLAIM_PAUSE_MS,
  CLAIM_RECALL_LOOK_MS,
  CLAIM_RECALL_MS,
  CLAIM_REFUSED_MS,
  CLAIM_ROOM,
  CLAIM_SWEEP_MS,
} from "./limits.js";

export interface ClaimDependencies {
  readonly database: Pick<Database, "prisma">;
  readonly processId: string;
  readonly events: Events;
  readonly clock: Clock;
  readonly log: Logger;
  /** Reports percentages of limits; absent: nothing does. */
  readonly alerts?: Pick<LimitAlerts, "noteSpent" | "close">;
}

interface ClaimRow {
  readonly id: string;
  readonly granted: bigint;
  readonly size: bigint;
  readonly spent: bigint;
  readonly claimed: bigint;
  readonly idle: bigint;
  readonly oldest: Date | null;
  readonly looked: Date;
  readonly renews: Date | null;
  readonly raised: Date | null;
}

/** A process whose heartbeat is older grants nothing, before others take it for dead. */
const PAUSED_MS = HEARTBEAT_DEAD_MS / 2;

/** What one claim asks for. */
interface Wish {
  readonly claim: LimitClaim;
  readonly keeps: bigint;
  readonly used: bigint;
  readonly wait: bigint;
  readonly room: bigint;
}

export class LimitClaims {
  private readonly byId = new Map<string, LimitClaim>();
  /** Settlements on disk, by generation. */
  private readonly spooled = new Map<string, () => void>();
  private pending = new Set<LimitClaim>();
  private current: Promise<void> = Promise.resolve();
  private next: Promise<void> | null = null;
  private readonly sweeping: Repeated;
  private aliveAt = Date.now();
  private isClosed = false;

  constructor(private readonly deps: ClaimDependencies) {
    deps.events.listen("usage-limit-wanted", ({ limitId }) => this.give(limitId));
    deps.events.listen("usage-limits-changed", ({ accountId }) => this.giveAll(accountId));
    this.sweeping = new Repeated(() => this.sweep(), deps.log, "claims on limits could not be given back; that is repeated").every(
      CLAIM_SWEEP_MS,
    );
  }

  get count(): number {
    return this.byId.size;
  }

  /** The heartbeat was written. After a pause this process may have been taken for dead, and its claims granted to others. */
  noteAlive(): void {
    if (this.isPaused) for (const claim of this.byId.values()) this.drop(claim);
    this.aliveAt = Date.now();
  }

  get now(): number {
    return this.deps.clock.now().getTime();
  }

  of(limit: CallerLimit): LimitClaim {
    const known = this.byId.get(limit.id);
    if (known) return known;
    const claim = new LimitClaim(limit);
    this.byId.set(limit.id, claim);
    return claim;
  }

  /** At once, or not at all. Claims more in the background when less than half is left. */
  take(claim: LimitClaim, amount: bigint, now = this.now): boolean {
    if (!this.mayGrant || !claim.take(amount, now)) return false;
    const isStale = claim.free * 2n < claim.roomTaken || (claim.known?.renewsAt ?? now + 1) <= now;
    if (isStale && !claim.isClaiming) void this.claim(claim).catch(() => undefined);
    return true;
  }

  /**
   * Takes `most`, or what there is if that is at least `least`. Resolves with the amount taken; 0: refused, after it has waited for other
   * processes to give back, and, with `isPatient`, for generations to end. Rejects when the database cannot be asked.
   */
  async acquire(claim: LimitClaim, least: bigint, most: bigint, isPatient: boolean): Promise<bigint> {
    if (this.mustRefuse(claim, least)) return 0n;
    const until = Date.now() + (isPatient ? CONTENDED_HOLD_WAIT_MS : CLAIM_RECALL_MS);
    const waiting = [most];
    let askedAt: number | null = null;
    claim.waiting.add(waiting);
    try {
      for (;;) {
        await this.claim(claim);
        if (this.mayGrant && claim.take(most, this.now)) return most;
        const { known } = claim;
        if (known === null || Date.now() >= until || !this.mayGrant) break;
        askedAt ??= known.lookedAt;
        const isElsewhere = known.claimed > 0n && (known.idle > 0n || (known.oldestAt ?? 0) <= askedAt);
        const isSpent = least > known.size - known.spent;
        if (isSpent || (!isElsewhere && (!isPatient || claim.free >= least))) break;
        if (isElsewhere) this.deps.events.publish("usage-limit-wanted", { accountId: claim.accountName, limitId: claim.limit.id });
        await claim.changed(isElsewhere ? CLAIM_RECALL_LOOK_MS : CLAIM_HELD_LOOK_MS);
        if (this.mayGrant && claim.take(most, this.now)) return most;
      }
      const { free } = claim;
      if (this.mayGrant && free >= least && claim.take(free, this.now)) return free;
      const isSpent = claim.known !== null && least > claim.known.size - claim.known.spent;
      if (isSpent) claim.refused = { amount: least, until: Date.now() + CLAIM_REFUSED_MS };
      return 0n;
    } finally {
      claim.waiting.delete(waiting);
    }
  }

  /** The charge is on disk until `committed` is called with the generation's id. */
  keepSpooled(generationId: string, claim: LimitClaim, charged: bigint): void {
    claim.spooled += charged;
    const before = this.spooled.get(generationId);
    this.spooled.set(generationId, () => {
      claim.spooled -= charged;
      before?.();
    });
  }

  committed(generationId: string): void {
    if (this.spooled.size === 0) return;
    this.spooled.get(generationId)?.();
    this.spooled.delete(generationId);
  }

  /** Resolves with the limit as the database has it now, with exact claims of this process. */
  async look(limit: CallerLimit): Promise<LimitClaim> {
    const claim = this.of(limit);
    await this.claim(claim);
    return claim;
  }

  /** Counts its use at once, as it is more than was claimed. */
  report(claim: LimitClaim): void {
    void this.claim(claim).catch(() => undefined);
  }

  noteSpent(claim: LimitClaim): void {
    this.deps.alerts?.noteSpent(claim.limit);
  }

  /** Gives all free amounts back; other processes count held ones until this one counts as dead. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.sweeping.close();
    await this.deps.alerts?.close();
    for (const claim of this.byId.values()) this.drop(claim);
    if (this.pending.size > 0) await this.flushPending().catch(() => undefined);
  }

  /** Not after closing, nor when the process may be considered dead. */
  private get mayGrant(): boolean {
    return !this.isClosed && !this.isPaused;
  }

  private get isPaused(): boolean {
    return Date.now() - this.aliveAt > PAUSED_MS;
  }

  private mustRefuse({ refused }: LimitClaim, amount: bigint): boolean {
    return refused !== null && amount >= refused.amount && Date.now() < refused.until;
  }

  private giveAll(accountId: string): void {
    for (const { limit } of this.byId.values()) if ((limit.accountId ?? "") === accountId) this.give(limit.id);
  }

  private give(limitId: string): void {
    const claim = this.byId.get(limitId);
    if (!claim) return;
    claim.pausedUntil = Date.now() + CLAIM_PAUSE_MS;
    claim.refused = null;
    this.drop(claim);
    void this.claim(claim).catch(() => undefined);
  }

  private drop(claim: LimitClaim): void {
    if (claim.known === null) return;
    claim.free = 0n;
    claim.roomTaken = 0n;
    this.pending.add(claim);
  }

  private async sweep(): Promise<void> {
    const { now } = this;
    for (const claim of this.byId.values()) {
      if (claim.used > 0n && !claim.isClaiming) await this.claim(claim);
      if (now - claim.usedAt < CLAIM_IDLE_MS || claim.waiting.size > 0) continue;
      if (claim.free > 0n || (claim.known !== null && claim.inUse === 0n)) {
        this.drop(claim);
        await this.claim(claim);
      }
      if (claim.inUse === 0n && claim.free === 0n && claim.waiting.size === 0) this.byId.delete(claim.limit.id);
    }
  }

  /** One statement at a time, for all limits that are asked for meanwhile. */
  private claim(claim: LimitClaim): Promise<void> {
    this.pending.add(claim);
    claim.isClaiming = true;
    this.next ??= this.current
      .catch(() => undefined)
      .then(() => {
        this.next = null;
        this.current = this.flushPending();
        return this.current;
      });
    return this.next;
  }

  private async flushPending(): Promise<void> {
    const claims = [...this.pending];
    this.pending = new Set();
    const wishes = claims.map((claim) => this.wishOf(claim));
    try {
      await this.flush(wishes);
    } finally {
      for (const claim of claims) claim.isClaiming = false;
    }
  }

  private async flush(wishes: readonly Wish[]): Promise<void> {
    const { database, processId, clock } = this.deps;
    const sentAt = Date.now();
    const column = (read: (wish: Wish) => bigint) => wishes.map((wish) => read(wish).toString());
    const rows = await database.prisma.$queryRaw<ClaimRow[]>`
      SELECT * FROM usage_limit_claim(${processId}::uuid, ${clock.now()}::timestamptz, ${HEARTBEAT_DEAD_MS / 1000}::integer,
        ${wishes.map(({ claim }) => claim.limit.id)}::uuid[], ${column(({ keeps }) => keeps)}::bigint[],
        ${column(({ claim, used }) => claim.inUse - used)}::bigint[], ${column(({ wait }) => wait)}::bigint[],
        ${column(({ room }) => room)}::bigint[], ${column(({ used }) => used)}::bigint[])`;
    const byId = new Map(rows.map((row) => [row.id, row]));
    const isLate = Date.now() - sentAt > PAUSED_MS;
    for (const wish of wishes) this.answered(wish, byId.get(wish.claim.limit.id), isLate);
  }

  private wishOf(claim: LimitClaim): Wish {
    const now = Date.now();
    let wait = 0n;
    for (const [amount = 0n] of claim.waiting) wait += amount;
    const { used } = claim;
    const keeps = claim.inUse - used + claim.free;
    wait = larger(wait - claim.free, 0n);
    const isPaused = now < claim.pausedUntil || this.isClosed || (wait === 0n && claim.roomTaken === 0n);
    if (isPaused) return { claim, keeps, used, wait, room: 0n };
    const isHot = now - claim.takenAt < CLAIM_DOUBLED_MS;
    claim.room = larger(isHot ? larger(claim.room, claim.roomTaken * 2n) : claim.room, wait * CLAIM_ROOM);
    claim.takenAt = now;
    return { claim, keeps, used, wait, room: claim.room };
  }

  /** `isLate`: others may have been granted the same part since. */
  private answered({ claim, keeps, used }: Wish, row: ClaimRow | undefined, isLate: boolean): void {
    claim.used -= used;
    if (!row) {
      claim.isGone = true;
      return;
    }
    const { size, spent, claimed, idle, oldest, looked, renews, raised } = row;
    const granted = isLate ? 0n : row.granted;
    claim.free += granted;
    claim.roomTaken = claim.free;
    claim.freeUntil = raised === null ? null : raised.getTime();
    const outside = size - spent - claimed - keeps - granted;
    const times = { oldestAt: oldest?.getTime() ?? null, lookedAt: looked.getTime(), renewsAt: renews?.getTime() ?? null };
    claim.known = { size, spent, claimed, idle, ...times, outside: larger(outside, 0n) };
  }
}
