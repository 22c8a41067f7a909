/** Tiers: their credits and boundaries, and refills of the bucket (docs/spec/credits.md#tiers). Boundaries are in UTC. */
import { LRUCache } from "lru-cache";
import type { Logger } from "pino";
import { invalidInput, serviceUnavailable } from "../../errors.js";
import { entriesMax } from "../../lib/bounded.js";
import type { Clock } from "../../lib/clock.js";
import { createId } from "../../lib/ids.js";
import type { Tier } from "../../lib/settings.js";
import { TIER_STANDING_CACHE_MS, TIER_STANDINGS_MAX } from "../../limits.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { Ledger, TierOutcome, TransactionQueries } from "../../store/ledger.js";
import type { KnownBalances } from "./known-balances.js";
import type { Leases } from "./leases.js";

/** Null without a boundary. */
export interface TierGift {
  readonly amount: bigint;
  readonly nextReset: Date | null;
}

export interface TierRefill {
  /** The bucket's content after a refill. */
  readonly nanocredits: bigint;
  readonly period: NonNullable<Tier["period"]>;
}

const NOTHING: TierGift = { amount: 0n, nextReset: null };

export class Tiers {
  private readonly byName: ReadonlyMap<string, Tier>;

  constructor(tiers: readonly Tier[]) {
    this.byName = new Map(tiers.map((tier) => [tier.name, tier]));
  }

  get names(): readonly string[] {
    return [...this.byName.keys()];
  }

  /** Unspecified: a tier that is no longer configured gives nothing. */
  giftOf(name: string | null, now: Date): TierGift {
    const tier = name === null ? undefined : this.byName.get(name);
    if (!tier || tier.period === null) return NOTHING;
    return { amount: tier.nanocredits, nextReset: nextBoundary(tier.period, now) };
  }

  isRefilled(name: string | null): boolean {
    return this.refillOf(name) !== null;
  }

  /** Null without refills. */
  refillOf(name: string | null): TierRefill | null {
    const tier = name === null ? undefined : this.byName.get(name);
    return tier?.period == null ? null : { nanocredits: tier.nanocredits, period: tier.period };
  }

  /** Throws BAD_REQUEST listing the tiers. */
  assertKnown(name: string): void {
    if (this.byName.has(name)) return;
    throw invalidInput(`There is no tier ${JSON.stringify(name)}. The tiers are: ${this.names.join(", ")}.`, "tier");
  }
}

/** Weeks begin on Monday. */
export function nextBoundary(period: NonNullable<Tier["period"]>, now: Date): Date {
  const [year, month, day] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()];
  switch (period) {
    case "hour":
      return new Date(Date.UTC(year, month, day, now.getUTCHours() + 1));
    case "day":
      return new Date(Date.UTC(year, month, day + 1));
    case "week":
      return new Date(Date.UTC(year, month, day + daysToMonday(now.getUTCDay())));
    case "month":
      return new Date(Date.UTC(year, month + 1));
  }
}

/** From 1 to 7. */
function daysToMonday(day: number): number {
  return ((7 - day) % 7) + 1;
}

// Refills: a tier's bucket is refilled when its account is next read, and before a hold; no timer is involved (docs/spec/credits.md#tiers).
//
// 1. An account is due when its boundary has passed, or when its tier refills and it has no boundary yet.
// 2. The ledger decides under the account's lock, once per boundary, independent of this process's cache.
// 3. The boundary of an account is cached for a few seconds, and set by every read of the account (each look-up of a key is one), so
//    that a generation needs no query.

export interface TierStanding {
  readonly id: string;
  readonly tier: string | null;
  readonly tierResetsAt: Date | null;
}

export interface TierBuckets extends TierStanding {
  readonly tierNanocredits: bigint;
  readonly tierHeldNanocredits: bigint;
}

/** Runs a change, in a transaction with other rows when it is given one. */
export type Commit = (change: (within?: TransactionQueries) => Promise<TierOutcome>) => Promise<TierOutcome>;

export interface TierRefillDependencies {
  readonly tiers: Tiers;
  readonly ledger: Ledger;
  readonly leases: Pick<Leases, "recall">;
  readonly database: Database;
  readonly known: KnownBalances;
  readonly events: Events;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Retries of a refill when the account's tier changes meanwhile. */
const TIER_CHANGES_MAX = 3;

export class TierRefills {
  private readonly standings = new LRUCache<string, TierStanding>({ ...entriesMax(TIER_STANDINGS_MAX), ttl: TIER_STANDING_CACHE_MS });
  /** By account: a burst of requests after a boundary makes one refill. */
  private readonly pending = new Map<string, Promise<void>>();

  constructor(private readonly deps: TierRefillDependencies) {}

  learn({ id, tier, tierResetsAt }: TierStanding): void {
    this.standings.set(id, { id, tier, tierResetsAt });
  }

  /** Call before a hold. Null when nothing is due, the usual case; rejects with SERVICE_UNAVAILABLE. */
  refillIfDue(accountId: string): Promise<void> | null {
    const standing = this.standings.get(accountId);
    if (standing && !this.isDue(standing)) return null;
    return this.once(accountId, () => this.catchUp(accountId, standing));
  }

  /** For an account that was just read: true when a refill was made and the read is stale. Rejects as above. */
  async bringUpToDate(account: TierStanding): Promise<boolean> {
    if (!this.isDue(account)) {
      this.learn(account);
      return false;
    }
    await this.once(account.id, () => this.refill(account));
    return true;
  }

  /** The account after a due refill, without writing anything. */
  preview<Account extends TierBuckets>(account: Account): Account {
    if (!this.isDue(account)) return account;
    const { amount, nextReset } = this.deps.tiers.giftOf(account.tier, this.deps.clock.now());
    const { tierHeldNanocredits: held } = account;
    return { ...account, tierNanocredits: amount > held ? amount : held, tierResetsAt: nextReset };
  }

  /** Null for a tier without refills. */
  nextResetOf({ tier, tierResetsAt }: Omit<TierStanding, "id">): Date | null {
    return this.deps.tiers.isRefilled(tier) ? tierResetsAt : null;
  }

  /** False for an unknown account. `commit` runs the change in a transaction. */
  async setTier(account: TierStanding, tier: string | null, commit: Commit = (change) => change()): Promise<boolean> {
    // The rest of a past period does not count as balance.
    await this.bringUpToDate(account);
    await this.deps.leases.recall(account.id);
    const gift = this.deps.tiers.giftOf(tier, this.deps.clock.now());
    const change = { id: createId(), accountId: account.id, tier, ...gift };
    const outcome = await commit((within) => this.deps.ledger.setTier(change, within));
    this.conclude(account.id, outcome);
    return outcome.outcome !== "missing";
  }

  private isDue({ tier, tierResetsAt }: TierStanding): boolean {
    // Without a boundary, a tier that refills has never done so.
    if (tierResetsAt === null) return this.deps.tiers.isRefilled(tier);
    return tierResetsAt <= this.deps.clock.now();
  }

  private once(accountId: string, work: () => Promise<void>): Promise<void> {
    const running = this.pending.get(accountId);
    if (running) return running;
    const started = work()
      .catch((error: unknown) => {
        this.deps.log.error({ err: error, accountId }, "an account could not be refilled");
        throw serviceUnavailable("The account's credits could not be refilled. Nothing was charged. Try again in a moment.", {
          cause: error,
        });
      })
      .finally(() => this.pending.delete(accountId));
    this.pending.set(accountId, started);
    return started;
  }

  private async catchUp(accountId: string, standing: TierStanding | undefined): Promise<void> {
    if (standing) return this.refill(standing);
    const select = { id: true, tier: true, tierResetsAt: true };
    const account = await this.deps.database.prisma.account.findUnique({ where: { id: accountId }, select });
    if (!account) return;
    if (this.isDue(account)) await this.refill(account);
    else this.learn(account);
  }

  private async refill(account: TierStanding): Promise<void> {
    let { tier } = account;
    // A refill removes no held credits, and leased ones count as held.
    await this.deps.leases.recall(account.id);
    for (let attempt = 0; attempt < TIER_CHANGES_MAX; attempt += 1) {
      const asOf = this.deps.clock.now();
      const gift = this.deps.tiers.giftOf(tier, asOf);
      const outcome = await this.deps.ledger.refill({ id: createId(), accountId: account.id, tier, ...gift, asOf });
      this.conclude(account.id, outcome);
      if (outcome.outcome !== "tier_changed") return;
      tier = outcome.tier;
    }
  }

  private conclude(accountId: string, { outcome, change, tier, resetsAt, available }: TierOutcome): void {
    if (outcome === "missing") return;
    this.learn({ id: accountId, tier, tierResetsAt: resetsAt });
    this.deps.known.learn(accountId, available);
    if (change !== 0n) this.deps.events.publish("balance-changed", { accountId });
  }
}
