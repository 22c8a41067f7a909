/**
 * Leases: a process sets credits of an account aside once, durably, and grants holds from them in memory
 * (docs/decisions/leases.md).
 *
 * 1. There is one lease per key, or per account for sessions. It begins with room for LEASE_ESTIMATES holds like the
 *    first one, doubles when it is used up within a second, and never exceeds a quarter of the available credits. An
 *    account with less than that gets no lease.
 * 2. Reservations and payments are decided here, at once. The database gets a payment with its usage row.
 * 3. Unused credits are released after LEASE_IDLE_MS, when another payer needs them (`lease-wanted`), and when the
 *    process stops.
 * 4. A lease is valid as long as its process: a process that cannot write its heartbeat grants nothing from leases.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import type { Logger } from "pino";
import { entriesMax } from "../../lib/bounded.js";
import { larger, smaller } from "../../lib/money.js";
import { Repeated } from "../../lib/repeated.js";
import {
  HEARTBEAT_DEAD_MS,
  LEASE_ESTIMATES,
  LEASE_ESTIMATES_LEAST,
  LEASE_IDLE_MS,
  LEASE_PAUSE_MS,
  LEASE_RECALL_MS,
  LEASE_SWEEP_MS,
} from "../../limits.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import { holdable, type LeaseLedger, type LedgerOperation, type LedgerOutcome } from "../../store/ledger.js";
import { BucketBalances, Lease, type LeasePayer } from "./lease.js";

const WANTED_MAX = 10_000;
const WANTED_AGAIN_MS = 100;
const RECALL_LOOK_MS = 10;
/** A lease that is used up faster than this is doubled. */
const DOUBLED_WITHIN_MS = 1_000;
/** PostgreSQL's maximum: the most expensive model's estimate is below it, 64 of them are not. No account has that much. */
const BIGINT_MAX = 2n ** 63n - 1n;

export interface LeaseDependencies {
  readonly ledger: LeaseLedger;
  /** The pool for queries that never delay charges. */
  readonly database: Pick<Database, "prisma" | "isExclusive">;
  readonly processId: string;
  readonly events: Events;
  readonly log: Logger;
}

export class Leases {
  private readonly byPayer = new Map<string, Lease>();
  private readonly byId = new Map<string, Lease>();
  private readonly byAccount = new Map<string, Set<Lease>>();
  private readonly wanted = new LRUCache<string, true>({ ...entriesMax(WANTED_MAX), ttl: WANTED_AGAIN_MS });
  private readonly sweeping: Repeated;
  private aliveAt = Date.now();
  private isClosed = false;

  constructor(private readonly deps: LeaseDependencies) {
    deps.events.listen("lease-wanted", ({ accountId }) => void this.giveAll(accountId));
    this.sweeping = new Repeated(() => this.sweep(), deps.log, "leases could not be given back; that is repeated").every(LEASE_SWEEP_MS);
  }

  get openReservations(): number {
    let count = 0;
    for (const lease of this.byId.values()) count += lease.reservations;
    return count;
  }

  get count(): number {
    return this.byId.size;
  }

  get ids(): readonly string[] {
    return [...this.byId.keys()];
  }

  noteAlive(): void {
    this.aliveAt = Date.now();
  }

  /** Null when no lease may grant holds now. */
  find(payer: LeasePayer): Lease | null {
    const lease = this.byPayer.get(keyOf(payer));
    const now = Date.now();
    if (!lease || now < lease.pausedUntil || !this.mayGrant(now)) return null;
    lease.pausedUntil = 0;
    return lease;
  }

  /** Enlarges it in the background when more than half is used. `amount` is the size of a hold. */
  replenish(lease: Lease, amount: bigint): void {
    if (lease.turn || lease.free.total * 2n >= lease.roomTaken || Date.now() < lease.restsUntil) return;
    void this.inTurn(lease, () => this.take(lease, amount));
  }

  /** Makes or enlarges a lease for such holds. False: not possible, so the hold is made without it. */
  async acquire(payer: LeasePayer, amount: bigint): Promise<boolean> {
    const lease = this.byPayer.get(keyOf(payer)) ?? this.make(payer);
    const now = Date.now();
    if (now < lease.restsUntil || now < lease.pausedUntil || !this.mayGrant(now)) return false;
    if (lease.free.total >= amount) return true;
    lease.waiting += amount;
    try {
      await (lease.turn ?? this.inTurn(lease, () => this.take(lease, amount)));
    } finally {
      lease.waiting -= amount;
    }
    return lease.free.total >= amount;
  }

  /**
   * Prepares a hold without a lease: folds payments of this process's leases, so that a low balance is noticed, and releases their tier and
   * crypto credits, which charges draw first. Never rejects. Null: nothing to do.
   */
  prepareExactHold(accountId: string): Promise<void> | null {
    const drawnFirst = this.leasesOf(accountId).filter(({ free }) => free.tier > 0n || free.crypto > 0n);
    return drawnFirst.length > 0 || this.isUnfolded(accountId) ? this.giveAndFold(accountId, drawnFirst) : null;
  }

  private async giveAndFold(accountId: string, leases: readonly Lease[]): Promise<void> {
    await Promise.all(leases.map((lease) => this.give(lease)));
    // The hold is refused if the database is unavailable.
    if (this.isUnfolded(accountId)) await this.fold([accountId]).catch(() => undefined);
  }

  /** Requests leased credits of the account: every process releases the unused ones. */
  want(accountId: string): void {
    if (this.wanted.has(accountId)) return;
    this.wanted.set(accountId, true);
    this.deps.events.publish("lease-wanted", { accountId });
  }

  /** As `want`; resolves when they were released, or after a bounded time. */
  async recall(accountId: string): Promise<void> {
    const { database, events } = this.deps;
    if (database.isExclusive) return this.giveAll(accountId);
    const { count, at } = await this.countOthers(accountId, null);
    if (count === 0) return this.giveAll(accountId);
    events.publish("lease-wanted", { accountId });
    await this.giveAll(accountId);
    const until = Date.now() + LEASE_RECALL_MS;
    while (Date.now() < until && (await this.countOthers(accountId, at)).count > 0) {
      await sleep(RECALL_LOOK_MS);
    }
  }

  /** Subtracts payments of these accounts' leases from buckets and budgets, before either is read. False: there were none. */
  async fold(accountIds: readonly string[]): Promise<boolean> {
    const { database } = this.deps;
    const due = database.isExclusive ? accountIds.filter((id) => this.isUnfolded(id)) : accountIds;
    if (due.length === 0) return false;
    // Payments committed from here on may miss this fold.
    const unfolded = due.flatMap((id) => this.leasesOf(id).filter(({ isUnfolded }) => isUnfolded));
    for (const lease of unfolded) lease.isUnfolded = false;
    try {
      const [row] = await database.prisma.$queryRaw<{ folded: boolean }[]>`SELECT credit_fold(${due}::uuid[]) AS folded`;
      return row?.folded ?? false;
    } catch (error) {
      for (const lease of unfolded) lease.isUnfolded = true;
      throw error;
    }
  }

  /** Held credits of the account that no generation has reserved, in any process. */
  async unreservedOf(accountId: string): Promise<bigint> {
    const own = this.leasesOf(accountId);
    if (this.deps.database.isExclusive) return own.reduce((total, { free, unconfirmed }) => total + free.total + unconfirmed.total, 0n);
    const reserved = own.reduce((total, lease) => total + lease.reserved.total, 0n);
    const { _sum: left } = await this.deps.database.prisma.creditLease.aggregate({
      where: { accountId },
      _sum: { tierNanocredits: true, cryptoNanocredits: true, packNanocredits: true },
    });
    const unreserved = (left.tierNanocredits ?? 0n) + (left.cryptoNanocredits ?? 0n) + (left.packNanocredits ?? 0n) - reserved;
    return unreserved > 0n ? unreserved : 0n;
  }

  freeOf(payer: LeasePayer): bigint {
    return this.byPayer.get(keyOf(payer))?.free.total ?? 0n;
  }

  committed(operation: LedgerOperation, outcome: LedgerOutcome): void {
    if ((operation.kind !== "settle" && operation.kind !== "move") || operation.lease === undefined) return;
    const lease = this.byId.get(operation.lease.leaseId);
    if (!lease) return;
    if (operation.kind === "settle") lease.isUnfolded = true;
    lease.unconfirmed.subtract(operation.lease);
    lease.reservations -= 1;
    if (outcome.isLeaseLost) this.lose(lease);
  }

  /** Releases all unused credits. The recovery of this process's holds finds reserved ones. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.sweeping.close();
    await Promise.all([...this.byId.values()].map((lease) => this.give(lease)));
  }

  /** Not after closing, nor when the process may be considered dead. */
  private mayGrant(now: number): boolean {
    return !this.isClosed && now - this.aliveAt <= HEARTBEAT_DEAD_MS / 2;
  }

  private leasesOf(accountId: string): Lease[] {
    return [...(this.byAccount.get(accountId) ?? [])];
  }

  private isUnfolded(accountId: string): boolean {
    return this.leasesOf(accountId).some((lease) => lease.isUnfolded);
  }

  private isForgotten(lease: Lease): boolean {
    return !this.byId.has(lease.id);
  }

  /** Number of other processes' leases of the account that have not changed since then, by the database's clock; null: now. */
  private async countOthers(accountId: string, since: string | null): Promise<{ readonly count: number; readonly at: string }> {
    const { database, processId } = this.deps;
    const [row] = await database.prisma.$queryRaw<{ count: number; at: string }[]>`
      SELECT now()::text AS at, count(l.id)::integer AS count FROM (SELECT 1) one
      LEFT JOIN credit_lease l
        ON l.account_id = ${accountId}::uuid AND l.process_id <> ${processId}::uuid AND l.sized_at < coalesce(${since}::timestamptz, now())`;
    return row ?? { count: 0, at: "" };
  }

  private make(payer: LeasePayer): Lease {
    const lease = new Lease({ accountId: payer.accountId, apiKeyId: payer.apiKeyId }, (spare) => void this.give(spare));
    this.byPayer.set(keyOf(payer), lease);
    this.byId.set(lease.id, lease);
    const ofAccount = this.byAccount.get(payer.accountId) ?? new Set();
    this.byAccount.set(payer.accountId, ofAccount.add(lease));
    return lease;
  }

  private lose(lease: Lease): void {
    const { accountId } = lease.payer;
    this.deps.log.warn({ leaseId: lease.id, accountId }, "a lease is gone from the database; its work goes on without it");
    lease.free = new BucketBalances();
    this.forget(lease);
  }

  private forget(lease: Lease): void {
    const { payer } = lease;
    const { accountId } = payer;
    this.byId.delete(lease.id);
    if (this.byPayer.get(keyOf(payer)) === lease) this.byPayer.delete(keyOf(payer));
    const ofAccount = this.byAccount.get(accountId);
    ofAccount?.delete(lease);
    if (ofAccount?.size === 0) this.byAccount.delete(accountId);
  }

  /** One statement per lease at a time, because each is relative to the one before. */
  private inTurn(lease: Lease, work: () => Promise<void>): Promise<void> {
    const turn = (lease.turn ?? Promise.resolve()).then(work).catch((error: unknown) => {
      // Releasing the lease shows whether the statement was committed.
      lease.isUnfolded = true;
      this.deps.log.warn({ err: error, leaseId: lease.id }, "a lease could not be changed");
      lease.restsUntil = Date.now() + LEASE_PAUSE_MS;
    });
    const done = turn.finally(() => {
      if (lease.turn === done) lease.turn = null;
    });
    lease.turn = done;
    return done;
  }

  private async take(lease: Lease, amount: bigint): Promise<void> {
    if (this.isForgotten(lease)) return;
    const now = Date.now();
    const isHot = now - lease.takenAt < DOUBLED_WITHIN_MS;
    const wasThere = lease.isThere;
    // Twice the granted room, not the requested one: an account without more would otherwise be asked for ever larger amounts.
    const wanted = isHot ? larger(lease.room, lease.roomTaken * 2n) : lease.room;
    lease.room = larger(wanted, larger(amount * LEASE_ESTIMATES, lease.waiting * 2n));
    lease.takenAt = now;
    lease.usedAt = now;
    lease.isThere = true;
    const { accountId, apiKeyId } = lease.payer;
    const inUse = lease.reserved.total + lease.unconfirmed.total;
    const least = smaller(inUse + amount * LEASE_ESTIMATES_LEAST, BIGINT_MAX);
    const target = smaller(inUse + lease.room, BIGINT_MAX);
    lease.isUnfolded = false;
    const taken = await this.deps.ledger.take({ id: lease.id, accountId, apiKeyId, target, least, isReliedOn: wasThere });
    if (taken === null) return this.lose(lease);
    const { granted, ...available } = taken;
    lease.free.add(granted);
    lease.outside = holdable(available);
    lease.roomTaken = lease.free.total;
    const isGranted = granted.tier + granted.crypto + granted.pack > 0n;
    lease.isThere = wasThere || isGranted;
    if (!isGranted) lease.restsUntil = now + LEASE_PAUSE_MS;
  }

  private async giveAll(accountId: string): Promise<void> {
    const pausedUntil = Date.now() + LEASE_PAUSE_MS;
    const leases = this.leasesOf(accountId);
    for (const lease of leases) lease.pausedUntil = pausedUntil;
    await Promise.all(leases.map((lease) => this.give(lease)));
  }

  private give(lease: Lease): Promise<void> {
    if (lease.isGiving && lease.turn) return lease.turn;
    lease.isGiving = true;
    return this.inTurn(lease, async () => {
      lease.isGiving = false;
      if (this.isForgotten(lease)) return;
      const needed = new BucketBalances();
      needed.add(lease.reserved);
      needed.add(lease.unconfirmed);
      lease.free = new BucketBalances();
      if (lease.isThere) {
        lease.isUnfolded = false;
        const available = await this.deps.ledger.give(lease.id, needed);
        if (available === null) return this.lose(lease);
        lease.outside = holdable(available);
        // Other waiting payers get no other event.
        if (lease.pausedUntil > 0) this.deps.events.publish("balance-changed", { accountId: lease.payer.accountId });
      }
      lease.isThere = needed.total > 0n;
      if (!lease.isThere && Date.now() >= lease.pausedUntil) this.forget(lease);
    });
  }

  private async sweep(): Promise<void> {
    const now = Date.now();
    const idle = [...this.byId.values()].filter((lease) => now - lease.usedAt >= LEASE_IDLE_MS && now >= lease.restsUntil && !lease.turn);
    // A lease in use is released again only when it has something to release.
    await Promise.all(idle.map((lease) => (lease.free.total > 0n || lease.reserved.total === 0n ? this.give(lease) : undefined)));
  }
}

/** Its key among leases of the account. */
function keyOf({ accountId, apiKeyId }: LeasePayer): string {
  return apiKeyId ?? accountId;
}
