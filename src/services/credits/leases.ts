/**
 * Leases: a process sets a sum of an account's credits aside once, durably, and grants holds out of it in its memory
 * (docs/decisions/leases.md).
 *
 * 1. There is one for each key that asks, or for the account where a session does. It begins with room for LEASE_ESTIMATES holds like the one
 *    that asks, grows while it is used up within a second, and is never more than a quarter of what is free. Who has less than that allows has none.
 * 2. What is reserved and what is paid is decided here, at once. The database is told of what is paid with the usage row.
 * 3. What is not needed is given back after LEASE_IDLE_MS, when anybody asks for it (`lease-wanted`), and when the process stops.
 * 4. A lease is good as long as its process is: one that has not been able to say that it lives grants nothing out of it.
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
import { Lease, type LeasePayer, Purse } from "./lease.js";

/** Accounts of which it is remembered that their leases were just asked for. */
const WANTED_MAX = 10_000;
const WANTED_AGAIN_MS = 100;
const RECALL_LOOK_MS = 10;
/** One that is used up as fast as this is made twice as large. */
const DOUBLED_WITHIN_MS = 1_000;
/** Of PostgreSQL: the dearest model's estimate is within it, and 64 of them are not. No account has so much. */
const BIGINT_MAX = 2n ** 63n - 1n;

export interface LeaseDependencies {
  readonly ledger: LeaseLedger;
  /** What people ask to see goes through it: it never delays a charge. */
  readonly database: Pick<Database, "prisma" | "isExclusive">;
  readonly processId: string;
  readonly events: Events;
  readonly log: Logger;
}

export class Leases {
  /** By key, or by account where a session pays. */
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

  /** Generations of this process that are held out of leases. */
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

  /** This process has just said that it lives. */
  noteAlive(): void {
    this.aliveAt = Date.now();
  }

  /** One that holds can be granted out of; null when there is none just now. */
  find(payer: LeasePayer): Lease | null {
    const lease = this.byPayer.get(keyOf(payer));
    const now = Date.now();
    if (!lease || now < lease.pausedUntil || !this.mayGrant(now)) return null;
    lease.pausedUntil = 0;
    return lease;
  }

  /** Beside the traffic, when more than half of it is used. `amount` is what a hold of it takes. */
  replenish(lease: Lease, amount: bigint): void {
    if (lease.turn || lease.free.total * 2n >= lease.roomTaken || Date.now() < lease.restsUntil) return;
    void this.inTurn(lease, () => this.take(lease, amount));
  }

  /** Makes a lease or makes it larger, so that it has room for such holds. False: it has not, and what is to be held goes without it. */
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
   * Before something is held of the account without a lease: what leases of this process have paid is folded, so that a balance that falls too
   * low is seen, and what they have of the tier and of crypto, which charges draw first, is given back. Never rejects. Null: there is nothing to
   * be done.
   */
  makeWay(accountId: string): Promise<void> | null {
    const drawnFirst = this.leasesOf(accountId).filter(({ free }) => free.tier > 0n || free.crypto > 0n);
    return drawnFirst.length > 0 || this.isUnfolded(accountId) ? this.giveAndFold(accountId, drawnFirst) : null;
  }

  private async giveAndFold(accountId: string, leases: readonly Lease[]): Promise<void> {
    await Promise.all(leases.map((lease) => this.give(lease)));
    // A database that is away refuses the hold.
    if (this.isUnfolded(accountId)) await this.fold([accountId]).catch(() => undefined);
  }

  /** Somebody is refused what leases of the account may have: every process gives back what it does not need. */
  want(accountId: string): void {
    if (this.wanted.has(accountId)) return;
    this.wanted.set(accountId, true);
    this.deps.events.publish("lease-wanted", { accountId });
  }

  /** As `want`; resolves when it has been given back, or after a bounded time. */
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

  /** What leases of these accounts have paid leaves the accounts' buckets and the keys' budgets. Before either is read. False: they had paid nothing. */
  async fold(accountIds: readonly string[]): Promise<boolean> {
    const { database } = this.deps;
    const due = database.isExclusive ? accountIds.filter((id) => this.isUnfolded(id)) : accountIds;
    if (due.length === 0) return false;
    // What is committed from here on may come too late for it.
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

  /** What of an account's held credits no generation has reserved, in any process. */
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

  /** Of a key's held credits, or of what a session holds. */
  freeOf(payer: LeasePayer): bigint {
    return this.byPayer.get(keyOf(payer))?.free.total ?? 0n;
  }

  /** Told of every operation that was committed. */
  committed(operation: LedgerOperation, outcome: LedgerOutcome): void {
    if ((operation.kind !== "settle" && operation.kind !== "move") || operation.lease === undefined) return;
    const lease = this.byId.get(operation.lease.leaseId);
    if (!lease) return;
    if (operation.kind === "settle") lease.isUnfolded = true;
    lease.unconfirmed.subtract(operation.lease);
    lease.reservations -= 1;
    if (outcome.isLeaseLost) this.lose(lease);
  }

  /** Gives back what nobody needs any more. What is still reserved is found by whoever recovers this process's holds. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.sweeping.close();
    await Promise.all([...this.byId.values()].map((lease) => this.give(lease)));
  }

  /** Not when it is closed, nor when it may be taken for dead. */
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

  /** How many leases other processes have of the account whose size they have not changed since then, by the database's clock; null: now. */
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
    lease.free = new Purse();
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

  /** One statement at a time about a lease: what each says is relative to what the one before has left. */
  private inTurn(lease: Lease, work: () => Promise<void>): Promise<void> {
    const turn = (lease.turn ?? Promise.resolve()).then(work).catch((error: unknown) => {
      // What the database has made of it is found out when the lease is given back.
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
    // Twice what it was granted, not what it asked for: an account that has no more would otherwise be asked for ever larger sums.
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
      const needed = new Purse();
      needed.add(lease.reserved);
      needed.add(lease.unconfirmed);
      lease.free = new Purse();
      if (lease.isThere) {
        lease.isUnfolded = false;
        const available = await this.deps.ledger.give(lease.id, needed);
        if (available === null) return this.lose(lease);
        lease.outside = holdable(available);
        // Who waits for it is told of nothing else.
        if (lease.pausedUntil > 0) this.deps.events.publish("balance-changed", { accountId: lease.payer.accountId });
      }
      lease.isThere = needed.total > 0n;
      if (!lease.isThere && Date.now() >= lease.pausedUntil) this.forget(lease);
    });
  }

  private async sweep(): Promise<void> {
    const now = Date.now();
    const idle = [...this.byId.values()].filter((lease) => now - lease.usedAt >= LEASE_IDLE_MS && now >= lease.restsUntil && !lease.turn);
    // One that is needed still is given back again only when there is something to give.
    await Promise.all(idle.map((lease) => (lease.free.total > 0n || lease.reserved.total === 0n ? this.give(lease) : undefined)));
  }
}

/** Whose lease it is, of those of its account. */
function keyOf({ accountId, apiKeyId }: LeasePayer): string {
  return apiKeyId ?? accountId;
}
