/**
 * The ledger as plain arithmetic on maps, written from its rules and not from its SQL: the available amount is always
 * computed from balances and open holds. The property test compares the database with it, outcome by outcome and row by
 * row.
 */
import type {
  BucketName,
  Grant,
  LedgerOperation,
  LedgerOutcome,
  LedgerOutcomeName,
  MoveOperation,
  TierChange,
  TierOutcome,
  TierRefill,
} from "../../src/store/ledger.js";

const DRAW_ORDER: readonly BucketName[] = ["tier", "crypto", "pack"];

type Parts = Record<BucketName, bigint>;

interface ModelHold {
  readonly accountId: string;
  readonly apiKeyId: string | null;
  readonly paidOnly: boolean;
  readonly parts: Parts;
  metered: bigint;
}

export interface ModelUsage {
  readonly accountId: string;
  readonly apiKeyId: string | null;
  readonly cost: bigint;
  readonly writtenOff: bigint;
  readonly source: BucketName;
  readonly paid: Parts;
  readonly isRecovered: boolean;
  /** What a correction of it has changed. */
  readonly correction: { readonly paid: Parts; readonly writtenOff: bigint } | null;
}

interface ModelTier {
  readonly tier: string | null;
  readonly resetsAt: Date | null;
}

/** What knows nothing of leases. */
export type HeldOperation = Exclude<LedgerOperation, MoveOperation>;

export class LedgerModel {
  readonly balances = new Map<string, Parts>();
  readonly tiers = new Map<string, ModelTier>();
  /** What the tier bucket gained or lost, by transaction. */
  readonly refills = new Map<string, bigint>();
  /** Null: no budget. */
  readonly budgets = new Map<string, bigint | null>();
  private readonly lineages = new Map<string, readonly string[]>();
  readonly holds = new Map<string, ModelHold>();
  readonly usage = new Map<string, ModelUsage>();
  /** What all tier buckets have spent. */
  tierSpent = 0n;
  private readonly grants = new Set<string>();

  /** `freeSpendCap` is what all tier buckets together may spend; null: as much as there is. */
  constructor(readonly freeSpendCap: bigint | null = null) {}

  addAccount(id: string): void {
    this.balances.set(id, noParts());
    this.tiers.set(id, { tier: null, resetsAt: null });
  }

  addKey(id: string, budget: bigint | null, parentId: string | null = null): void {
    this.budgets.set(id, budget);
    this.lineages.set(id, [id, ...(parentId === null ? [] : this.lineageOf(parentId))]);
  }

  /** The key and all that it descends from. */
  private lineageOf(id: string): readonly string[] {
    return this.lineages.get(id) ?? [id];
  }

  grant({ id, accountId, bucket, amount }: Grant): boolean {
    if (this.grants.has(id)) return false;
    this.grants.add(id);
    this.balanceOf(accountId)[bucket] += amount;
    return true;
  }

  refill({ id, accountId, tier, amount, asOf, nextReset }: TierRefill): TierOutcome {
    const known = this.tiers.get(accountId);
    if (!known) return missingTier();
    if (known.tier !== tier) return this.tierOutcome(accountId, "tier_changed", 0n);
    const isDue = known.resetsAt === null ? nextReset !== null : known.resetsAt <= asOf;
    if (!isDue) return this.tierOutcome(accountId, "not_due", 0n);
    const held = this.heldOf(accountId).tier;
    this.tiers.set(accountId, { tier, resetsAt: nextReset });
    return this.tierOutcome(accountId, "refilled", this.setTierBucket(id, accountId, amount > held ? amount : held));
  }

  setTier({ id, accountId, tier, amount, nextReset }: TierChange): TierOutcome {
    const known = this.tiers.get(accountId);
    if (!known) return missingTier();
    if (known.tier === tier) return this.tierOutcome(accountId, "unchanged", 0n);
    const has = this.balanceOf(accountId).tier;
    this.tiers.set(accountId, { tier, resetsAt: nextReset ?? known.resetsAt });
    return this.tierOutcome(accountId, "set", this.setTierBucket(id, accountId, nextReset !== null && amount > has ? amount : has));
  }

  private setTierBucket(id: string, accountId: string, target: bigint): bigint {
    const balance = this.balanceOf(accountId);
    const change = target - balance.tier;
    balance.tier = target;
    if (change !== 0n) this.refills.set(id, change);
    return change;
  }

  private tierOutcome(accountId: string, outcome: TierOutcome["outcome"], change: bigint): TierOutcome {
    const { tier = null, resetsAt = null } = this.tiers.get(accountId) ?? {};
    return { outcome, change, tier, resetsAt, available: total(this.freeOf(accountId)) };
  }

  /** Within an account, key by key, those that descend from others first; within a key, what frees money comes before what takes it. */
  flush(operations: readonly HeldOperation[]): LedgerOutcome[] {
    const outcomes = new Map<HeldOperation, LedgerOutcome>();
    const rank = { settle: 1, recover: 1, release: 1, extend: 2, hold: 3 };
    const isRoot = ({ apiKeyId }: HeldOperation) => Number(apiKeyId === null || this.lineageOf(apiKeyId).length === 1);
    const inOrder = operations.toSorted(
      (a, b) =>
        compare(a.accountId, b.accountId) ||
        isRoot(a) - isRoot(b) ||
        compare(a.apiKeyId ?? "", b.apiKeyId ?? "") ||
        rank[a.kind] - rank[b.kind], // toSorted is stable
    );
    for (const operation of inOrder) outcomes.set(operation, this.apply(operation));
    return operations.map((operation) => outcomes.get(operation) as LedgerOutcome);
  }

  heldOf(accountId: string): Parts {
    const held = noParts();
    for (const hold of this.holds.values()) if (hold.accountId === accountId) addTo(held, hold.parts);
    return held;
  }

  /** By the key and by all that descend from it. */
  keyHeld(apiKeyId: string): bigint {
    return sum([...this.holds.values()].filter((hold) => this.isOf(hold, apiKeyId)).map((hold) => total(hold.parts)));
  }

  keySpent(apiKeyId: string): bigint {
    return sum([...this.usage.values()].filter((usage) => this.isOf(usage, apiKeyId)).map((usage) => usage.cost));
  }

  private isOf(one: ModelHold | ModelUsage, apiKeyId: string): boolean {
    return one.apiKeyId !== null && this.lineageOf(one.apiKeyId).includes(apiKeyId);
  }

  private apply(operation: HeldOperation): LedgerOutcome {
    if (!this.balances.has(operation.accountId)) return this.outcome(operation, "missing");
    switch (operation.kind) {
      case "release":
        return this.outcome(operation, this.holds.delete(operation.id) ? "ok" : "missing");
      case "settle":
      case "recover":
        return this.settle(operation);
      case "hold":
        if (this.usage.has(operation.id)) return this.outcome(operation, "duplicate");
        if (this.holds.has(operation.id)) return this.outcome(operation, "ok");
        return this.setAside(operation);
      case "extend":
        if (!this.holds.has(operation.id)) return this.outcome(operation, "missing");
        return this.setAside(operation);
    }
  }

  private settle(operation: LedgerOperation & { kind: "settle" | "recover" }): LedgerOutcome {
    const { id, accountId, apiKeyId, amount, paidOnly, kind } = operation;
    const heldTier = this.holds.get(id)?.parts.tier ?? 0n;
    this.holds.delete(id);
    const before = this.usage.get(id);
    if (before?.isRecovered && kind === "settle") return this.correct(operation, before, heldTier);
    if (before) return this.outcome(operation, "duplicate", { charged: before.cost, meterSource: before.source });
    const { paid, writtenOff } = this.charge(operation, amount, heldTier);
    const cost = total(paid);
    this.pay(accountId, paid);
    const source = cost > 0n ? largest(paid) : firstFilled(this.balanceOf(accountId), paidOnly);
    this.usage.set(id, { accountId, apiKeyId, cost, writtenOff, source, paid, isRecovered: kind === "recover", correction: null });
    return this.outcome(operation, "ok", { charged: cost, writtenOff, meterSource: source });
  }

  /** The real settlement of a recovered generation. */
  private correct(operation: LedgerOperation & { kind: "settle" | "recover" }, before: ModelUsage, heldTier: bigint): LedgerOutcome {
    const { id, accountId, apiKeyId, amount, paidOnly } = operation;
    const due = amount - before.cost - before.writtenOff;
    const change = due >= 0n ? this.charge(operation, due, heldTier) : giveBack(before, -due);
    this.pay(accountId, change.paid);
    const parts = { ...before.paid };
    addTo(parts, change.paid);
    const cost = total(parts);
    const source = cost > 0n ? largest(parts) : firstFilled(this.balanceOf(accountId), paidOnly);
    this.usage.set(id, { ...before, apiKeyId, cost, source, isRecovered: false, correction: change });
    return this.outcome(operation, "corrected", { charged: cost, writtenOff: change.writtenOff, meterSource: source });
  }

  /** The held or spendable part of the tier comes first; more of it comes last, when no other bucket has credits. */
  private charge(
    { accountId, apiKeyId, paidOnly }: LedgerOperation & { kind: "settle" | "recover" },
    due: bigint,
    heldTier: bigint,
  ): { paid: Parts; writtenOff: bigint } {
    const free = this.freeOf(accountId);
    const spendable = this.holdableOf(accountId).tier;
    const first = smallest(free.tier, spendable > heldTier ? spendable : heldTier);
    const { parts: paid, missing } = draw({ ...free, tier: first }, smallest(due, this.keyFree(apiKeyId)), paidOnly);
    if (!paidOnly) paid.tier += smallest(missing, free.tier - first);
    return { paid, writtenOff: due - total(paid) };
  }

  private pay(accountId: string, paid: Parts): void {
    const balance = this.balanceOf(accountId);
    for (const bucket of DRAW_ORDER) balance[bucket] -= paid[bucket];
    this.tierSpent += paid.tier;
  }

  /** A new hold, or more of one that is there. */
  private setAside(operation: LedgerOperation & { kind: "hold" | "extend" }): LedgerOutcome {
    const { id, accountId, apiKeyId, amount, paidOnly } = operation;
    const open = this.holds.get(id);
    if (open && operation.kind === "extend" && operation.metered > open.metered) open.metered = operation.metered;
    const keyFree = this.keyFree(apiKeyId);
    if (amount > 0n && keyFree !== null && keyFree < amount) {
      const isContended = operation.kind === "hold" && (this.keyLeft(apiKeyId) ?? 0n) >= amount;
      return this.outcome(operation, "key_budget_exhausted", { isContended });
    }
    const { parts, missing } = draw(this.holdableOf(accountId), amount, paidOnly);
    if (missing > 0n) {
      if (!paidOnly && total(this.freeOf(accountId)) >= amount) return this.outcome(operation, "free_spend_exhausted");
      const isContended = operation.kind === "hold" && draw(this.balanceOf(accountId), amount, paidOnly).missing === 0n;
      return this.outcome(operation, "insufficient_balance", { isContended });
    }
    if (open) addTo(open.parts, parts);
    else this.holds.set(id, { accountId, apiKeyId, paidOnly, parts, metered: 0n });
    return this.outcome(operation, "ok");
  }

  private outcome(operation: LedgerOperation, outcome: LedgerOutcomeName, more: Partial<LedgerOutcome> = {}): LedgerOutcome {
    const isKnown = this.balances.has(operation.accountId);
    return {
      outcome,
      isContended: false,
      charged: 0n,
      writtenOff: 0n,
      meterSource: null,
      available: isKnown ? total(this.holdableOf(operation.accountId)) : 0n,
      keyAvailable: isKnown ? this.keyFree(operation.apiKeyId) : null,
      ...more,
    };
  }

  private balanceOf(accountId: string): Parts {
    const balance = this.balances.get(accountId);
    if (!balance) throw new Error(`no account ${accountId}`);
    return balance;
  }

  private freeOf(accountId: string): Parts {
    const free = { ...this.balanceOf(accountId) };
    const held = this.heldOf(accountId);
    for (const bucket of DRAW_ORDER) free[bucket] -= held[bucket];
    return free;
  }

  /** The available credits, as far as the cap on all tiers allows. */
  private holdableOf(accountId: string): Parts {
    const free = this.freeOf(accountId);
    if (this.freeSpendCap === null) return free;
    const left = this.freeSpendCap - this.tierSpent - sum([...this.holds.values()].map(({ parts }) => parts.tier));
    return { ...free, tier: smallest(free.tier, left > 0n ? left : 0n) };
  }

  /** The smallest available amount among the budgets that the key draws on. */
  private keyFree(apiKeyId: string | null): bigint | null {
    return this.leastOf(apiKeyId, (id, budget) => budget - this.keySpent(id) - this.keyHeld(id));
  }

  private keyLeft(apiKeyId: string | null): bigint | null {
    return this.leastOf(apiKeyId, (id, budget) => budget - this.keySpent(id));
  }

  private leastOf(apiKeyId: string | null, amountOf: (id: string, budget: bigint) => bigint): bigint | null {
    const lineage = apiKeyId === null ? [] : this.lineageOf(apiKeyId);
    return lineage.reduce<bigint | null>((least, id) => {
      const budget = this.budgets.get(id) ?? null;
      return budget === null ? least : smallest(amountOf(id, budget), least);
    }, null);
  }
}

function missingTier(): TierOutcome {
  return { outcome: "missing", change: 0n, tier: null, resetsAt: null, available: 0n };
}

/** In the opposite order of drawing; written-off amounts come first. */
function giveBack(from: ModelUsage, amount: bigint): { paid: Parts; writtenOff: bigint } {
  const paid = noParts();
  const forgiven = smallest(amount, from.writtenOff);
  let left = amount - forgiven;
  for (const bucket of DRAW_ORDER.toReversed()) {
    const back = smallest(left, from.paid[bucket]);
    paid[bucket] -= back;
    left -= back;
  }
  return { paid, writtenOff: -forgiven };
}

function draw(from: Parts, amount: bigint, paidOnly: boolean): { parts: Parts; missing: bigint } {
  const parts = noParts();
  let missing = amount;
  for (const bucket of DRAW_ORDER) {
    if (bucket === "tier" && paidOnly) continue;
    parts[bucket] = smallest(missing, from[bucket]);
    missing -= parts[bucket];
  }
  return { parts, missing };
}

function largest(parts: Parts): BucketName {
  return DRAW_ORDER.reduce((best, bucket) => (parts[bucket] > parts[best] ? bucket : best));
}

function firstFilled(balance: Parts, paidOnly: boolean): BucketName {
  return DRAW_ORDER.find((bucket) => balance[bucket] > 0n && !(bucket === "tier" && paidOnly)) ?? "pack";
}

function noParts(): Parts {
  return { tier: 0n, crypto: 0n, pack: 0n };
}

function addTo(target: Parts, more: Parts): void {
  for (const bucket of DRAW_ORDER) target[bucket] += more[bucket];
}

export function total(parts: Parts): bigint {
  return parts.tier + parts.crypto + parts.pack;
}

function sum(amounts: readonly bigint[]): bigint {
  return amounts.reduce((all, amount) => all + amount, 0n);
}

function smallest(amount: bigint, limit: bigint | null): bigint {
  return limit !== null && limit < amount ? limit : amount;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
