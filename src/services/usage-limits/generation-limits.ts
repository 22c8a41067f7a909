/** The limits of one generation: begun before its hold, ended after its charge. Its credits are a budget of its hold. */
import type { CallerLimit } from "../../context.js";
import type { AppError } from "../../errors.js";
import { smaller } from "../../lib/money.js";
import type { RequestNote } from "../../lib/request-note.js";
import type { LedgerRecord } from "../../store/ledger.js";
import { ENDLESS, type LimitClaim } from "./claim.js";
import type { LimitClaims } from "./claims.js";
import { ratesOf } from "./rates.js";
import { limitExceeded } from "./refusals.js";

export interface LimitedGeneration {
  readonly generationId: string;
  readonly limits: readonly CallerLimit[];
  /** The canonical id of the requested model, which its usage row names. */
  readonly model: string;
  /** Canonical ids of further models that the caller named. */
  readonly otherModels: readonly string[];
  /** Nanocredits: the usual hold, and the least that it can do with. */
  readonly estimate: bigint;
  readonly least: bigint;
  /** Expected tokens. */
  readonly tokens: number;
  readonly isFree: boolean;
  /** Made by an agent for its caller, whose call of the agent is the one under way. */
  readonly isOfAgent: boolean;
  /** Gets its rates. */
  readonly note?: Pick<RequestNote, "rates"> | undefined;
}

/** The share (1/n) of the rest of a limit that an answer without a stated length may hold. */
const SHARE = 10n;

interface Unit {
  readonly claim: LimitClaim;
  readonly wanted: bigint;
  taken: bigint;
}

export class GenerationLimits {
  private readonly credits: LimitClaim[] = [];
  private readonly units: Unit[] = [];
  /** Taken from each limit of credits, and not drawn by the hold yet. */
  private reserved = 0n;
  /** The canonical id of the model that served. */
  private served: string | null = null;
  private isEnded = false;

  constructor(
    private readonly claims: LimitClaims,
    private readonly generation: LimitedGeneration,
  ) {
    const { limits, model, otherModels, isFree, isOfAgent, tokens } = generation;
    for (const limit of limits) {
      if (limit.model !== null && limit.model !== model && !otherModels.includes(limit.model)) continue;
      const { metric } = limit;
      if (metric === "credits") {
        if (!isFree) this.credits.push(claims.of(limit));
      } else if (metric !== "concurrency" || !isOfAgent) {
        this.units.push({ claim: claims.of(limit), wanted: metric === "tokens" ? BigInt(Math.max(1, tokens)) : 1n, taken: 0n });
      }
    }
  }

  /** No limit concerns it. */
  get isEmpty(): boolean {
    return this.credits.length === 0 && this.units.length === 0;
  }

  /** The charge is about to be settled. `isLater`: more was claimed since its record, maybe of a window that has begun since. */
  settling(record: LedgerRecord, isLater: boolean): LedgerRecord {
    this.served = record.modelUsed;
    return isLater ? { ...record, timestamp: new Date(this.claims.now).toISOString() } : record;
  }

  get hasBudget(): boolean {
    return this.credits.length > 0;
  }

  /** Null: within all limits. Else resolves when it is; rejects with RATE_LIMITED, KEY_BUDGET_EXHAUSTED or INSUFFICIENT_BALANCE. */
  begin(): Promise<void> | null {
    const { now } = this.claims;
    for (const unit of this.units) {
      if (!this.claims.take(unit.claim, unit.wanted, now)) return this.beginSlowly();
      unit.taken = unit.wanted;
    }
    const { estimate } = this.generation;
    if (this.credits.length > 0) {
      if (!this.takeAll(estimate, now)) return this.beginSlowly();
      this.reserved = estimate;
    }
    this.noteRates(now);
    return null;
  }

  /** `charged`: the hold's charge is committed, or on disk only (`isSpooled`). Once. */
  conclude(taken: bigint, charged: bigint, isSpooled = false): void {
    for (const claim of this.credits) this.count(claim, taken, this.concerns(claim) ? charged : 0n, isSpooled);
  }

  /** Releases what the hold did not draw, and counts the usage row, which may be on disk only (`isSpooled`). */
  end(tokens: number, isSpooled = false): void {
    this.endWith((claim, { metric }) => {
      if (metric === "concurrency" || !this.concerns(claim)) return 0n;
      return metric === "tokens" ? BigInt(tokens) : 1n;
    }, isSpooled);
  }

  /** Releases everything but, after an upstream was called (`wasCalled`), the request. */
  fail(wasCalled: boolean): void {
    this.endWith((_claim, { metric }) => (wasCalled && metric === "requests" ? 1n : 0n), false, true);
  }

  private endWith(countOf: (claim: LimitClaim, limit: CallerLimit) => bigint, isSpooled: boolean, hasNoRow = false): void {
    if (this.isEnded) return;
    this.isEnded = true;
    for (const claim of this.credits) claim.conclude(this.reserved, 0n);
    this.reserved = 0n;
    for (const unit of this.units) {
      const { claim, taken } = unit;
      unit.taken = 0n;
      this.count(claim, taken, taken === 0n ? 0n : countOf(claim, claim.limit), isSpooled, hasNoRow);
    }
  }

  /** By the usage row, if the limit counts it there. */
  private count(claim: LimitClaim, taken: bigint, counted: bigint, isSpooled: boolean, hasNoRow = false): void {
    const { accountId, model } = claim.limit;
    const isUse = hasNoRow || accountId === null || (model !== null && model !== this.generation.model);
    if (isSpooled && counted > 0n && !isUse) this.claims.keepSpooled(this.generation.generationId, claim, counted);
    claim.conclude(taken, counted, isUse);
    if (isUse && counted > taken) this.claims.report(claim);
    if (counted > 0n) this.claims.noteSpent(claim);
  }

  /** Of several models that the caller named, only the requested one and that which served are counted. */
  private concerns({ limit }: LimitClaim): boolean {
    return limit.model === null || limit.model === this.generation.model || limit.model === this.served;
  }

  // The budget of the hold.

  get left(): bigint {
    return this.reserved + this.credits.reduce((least, { left }) => smaller(least, left), ENDLESS);
  }

  get share(): bigint {
    return smaller(this.left / SHARE, this.reserved + this.freeNow);
  }

  take(amount: bigint): boolean {
    const more = amount - this.reserved;
    if (more > 0n && !this.takeAll(more)) return false;
    this.reserved = more > 0n ? 0n : -more;
    return true;
  }

  takeUpTo(amount: bigint): bigint {
    const taken = smaller(amount, this.reserved + this.freeNow);
    return this.take(taken) ? taken : 0n;
  }

  async takeInTime(amount: bigint): Promise<void> {
    const more = amount - this.reserved;
    if (more > 0n) await this.acquire(more, more);
    this.reserved -= amount;
  }

  /** Tries to have that much for `takeUpTo`. Never rejects. Null: it is there. */
  prepare(amount: bigint): Promise<void> | null {
    const more = amount - this.reserved - this.freeNow;
    if (more <= 0n) return null;
    const wanted = amount - this.reserved;
    return this.acquire(1n, wanted, false).catch(() => undefined);
  }

  exhausted(amount: bigint): AppError {
    const [first, ...others] = this.credits;
    const tightest = others.reduce((one, other) => (other.left < (one?.left ?? ENDLESS) ? other : one), first);
    if (!tightest) throw new Error("No limit of credits concerns this generation");
    return limitExceeded(tightest, amount, this.claims.now);
  }

  /** The cut of answers at `max_cost` is not for limits. */
  chargeMost(): null {
    return null;
  }

  settleMost(taken: bigint): bigint {
    return taken + this.reserved + this.freeNow;
  }

  private get freeNow(): bigint {
    return this.credits.reduce((least, { free, isGone }) => (isGone ? least : smaller(least, free > 0n ? free : 0n)), ENDLESS);
  }

  private takeAll(amount: bigint, now = this.claims.now): boolean {
    for (const [index, claim] of this.credits.entries()) {
      if (this.claims.take(claim, amount, now)) continue;
      for (const before of this.credits.slice(0, index)) before.conclude(amount, 0n);
      return false;
    }
    return true;
  }

  private noteRates(now = this.claims.now): void {
    const { note } = this.generation;
    if (note) note.rates = ratesOf(this.units, now) ?? note.rates;
  }

  private async beginSlowly(): Promise<void> {
    try {
      // In the order of ids, so that generations that wait for each other's limits do not wait in a circle.
      for (const unit of this.units) {
        if (unit.taken === 0n) unit.taken = await this.acquireUnit(unit);
      }
      const { estimate, least } = this.generation;
      if (this.credits.length > 0) await this.acquire(least, estimate);
    } catch (error) {
      this.fail(false);
      throw error;
    } finally {
      this.noteRates();
    }
  }

  private async acquireUnit({ claim, wanted }: Unit): Promise<bigint> {
    const { size = wanted } = claim.known ?? (await this.claims.look(claim.limit)).known ?? {};
    // A request beyond the whole limit gets through when nothing else is counted.
    const amount = smaller(wanted, size > 0n ? size : 1n);
    const taken = this.claims.take(claim, amount) ? amount : await this.claims.acquire(claim, amount, amount, false);
    if (taken === 0n) throw limitExceeded(claim, amount, this.claims.now);
    return taken;
  }

  /** Adds between `least` and `most` to the reserved amount, the same of each limit. */
  private async acquire(least: bigint, most: bigint, isPatient = true): Promise<void> {
    const takenOf: [LimitClaim, bigint][] = [];
    let amount = most;
    try {
      for (const claim of this.credits) {
        const taken = this.claims.take(claim, amount)
          ? amount
          : await this.claims.acquire(claim, smaller(least, amount), amount, isPatient);
        if (taken === 0n && amount > 0n) throw limitExceeded(claim, least, this.claims.now);
        takenOf.push([claim, taken]);
        amount = taken;
      }
    } catch (error) {
      for (const [claim, taken] of takenOf) claim.conclude(taken, 0n);
      throw error;
    }
    for (const [claim, taken] of takenOf) claim.conclude(taken - amount, 0n);
    this.reserved += amount;
  }
}
