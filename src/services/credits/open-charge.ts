import { AppError, serviceUnavailable } from "../../errors.js";
import { larger, smaller } from "../../lib/money.js";
import { tokensOf } from "../../lib/usage.js";
import { EXTEND_AT_PERCENT, METER_NOTE_MS } from "../../limits.js";
import { holdable, type LeasedAmount, type LedgerOutcome, type LedgerRecord } from "../../store/ledger.js";
import type { GenerationLimits } from "../usage-limits/generation-limits.js";
import type { ChargeRequest, Settlement } from "./charge-request.js";
import type { HeldBudget } from "./held-budget.js";
import { AMOUNT_MAX, sizeHold } from "./hold-size.js";
import type { KnownBalances } from "./known-balances.js";
import type { Reservation } from "./lease.js";
import type { Leases } from "./leases.js";
import { isRefused, toRefusal } from "./refusals.js";
import type { RefusedFunds } from "./refused-funds.js";
import type { Settler } from "./settler.js";

/** Concurrent generations may take the credits of an enlarged lease. */
const LEASE_ATTEMPTS_MAX = 3;
const HELD = Promise.resolve();

export class OpenCharge {
  /** Rejects with INSUFFICIENT_BALANCE, KEY_BUDGET_EXHAUSTED or SERVICE_UNAVAILABLE. */
  readonly held: Promise<void>;
  /** It is reserved from a lease, or free. */
  readonly isHeld: boolean;
  private heldNanocredits = 0n;
  /** Null: a separate hold. */
  private reservation: Reservation | null = null;
  private extension: Promise<void> | null = null;
  private refusal: AppError | null = null;
  private notedAt = Date.now();
  private concluded = false;
  /** The part of the hold that was granted while the database was unavailable, and must be requested again. */
  private trusted = 0n;

  constructor(
    private readonly settler: Settler,
    private readonly known: KnownBalances,
    private readonly funds: RefusedFunds,
    private readonly request: ChargeRequest,
    /** Null when none is due. */
    refill: Promise<void> | null,
    /** Null: no limit. */
    private readonly bound: HeldBudget | null,
    private readonly leases: Leases,
    /** Null: no limit that renews concerns it. */
    private readonly limits: GenerationLimits | null = null,
  ) {
    const begun = settler.isUnavailable ? null : (limits?.begin() ?? null);
    this.isHeld = !settler.isUnavailable && begun === null && (request.isFree || (refill === null && this.reserve()));
    if (this.isHeld && refill === null) {
      this.held = HELD;
      return;
    }
    // Known balances include tier credits, which paid-only work cannot draw.
    const isKnown = refill === null && !(request.paidOnly && request.most !== undefined);
    this.heldNanocredits = request.isFree ? 0n : this.sizeFor((isKnown ? known.freeOf(this.fundIds) : null) ?? 0n);
    const begin = () => (request.isFree ? this.requireDatabase() : this.obtain());
    const waits = begun && refill ? Promise.all([begun, refill]) : (begun ?? refill);
    this.held = waits ? waits.then(begin) : begin();
    // The opener handles a rejection later; until then it must not count as unhandled.
    this.held.catch(() => undefined);
  }

  /** It is settled or released, or about to be. */
  get isConcluded(): boolean {
    return this.concluded;
  }

  get isCommitted(): boolean {
    return this.held === HELD;
  }

  /** The most that the request allows to be charged; null: the cost. */
  get chargeMost(): bigint | null {
    return this.bound?.chargeMost ?? null;
  }

  /** See `HeldBudget`. */
  get settleMost(): bigint | null {
    return this.bound?.settleMost ?? null;
  }

  /** A cost beyond the hold must be covered before it is settled. */
  isUncovered(costNanocredits: bigint): boolean {
    return this.limits?.hasBudget === true && costNanocredits > this.heldNanocredits;
  }

  /** All that the request allows to be charged is held. */
  get isAtMaxCost(): boolean {
    const { chargeMost } = this;
    return chargeMost !== null && this.heldNanocredits >= chargeMost;
  }

  /** Final when `held` has resolved. */
  get heldAmount(): bigint {
    return this.heldNanocredits;
  }

  /** The meter was last stored over a second ago. */
  get isNoteDue(): boolean {
    return Date.now() - this.notedAt >= METER_NOTE_MS;
  }

  /**
   * Reports the cost delivered so far; with `isCapped` the hold covers all that can come, so it is not extended. Resolves with the error
   * that must stop the stream, or null: at once within the hold, else after the extension.
   */
  async meter(costNanocredits: bigint, isCapped: boolean, record: () => LedgerRecord): Promise<AppError | null> {
    if (this.request.isFree) return null;
    this.note(this.chargeable(costNanocredits), isCapped, record);
    while (this.extension && costNanocredits >= this.heldNanocredits) {
      await this.extension;
      // A slow database would otherwise get the same request repeatedly.
      if (this.refusal) break;
      this.note(this.chargeable(costNanocredits), isCapped, record);
    }
    return costNanocredits >= this.heldNanocredits ? this.refusal : null;
  }

  /** Resolves once the charge is committed or spooled. */
  async settle(costNanocredits: bigint, recorded: LedgerRecord): Promise<Settlement> {
    this.conclude();
    const preparation = this.bound?.prepareFor(costNanocredits) ?? null;
    if (preparation) await preparation;
    const record = this.limits?.settling(recorded, preparation !== null) ?? recorded;
    const amount = smaller(smaller(costNanocredits, AMOUNT_MAX), this.settleMost ?? AMOUNT_MAX);
    // Before any wait, so that no other generation can use the same part of the limit.
    this.bound?.takeFor(amount);
    if (this.extension) await this.extension;
    let charged = amount;
    let isSpooled = false;
    try {
      const lease = this.payByLease(amount) ?? (await this.coverBeyond(amount, record));
      const { id, accountId, apiKeyId } = this.identity;
      const { paidOnly } = this.request;
      const outcome = await this.settler.submit({ kind: "settle", id, accountId, apiKeyId, amount, paidOnly, record, lease });
      charged = outcome.charged;
      isSpooled = outcome.isUncommitted === true;
      return { chargedNanocredits: charged, meterSource: outcome.meterSource ?? "pack" };
    } finally {
      this.bound?.leave(charged, isSpooled);
      this.limits?.end(tokensOf(record.usage), isSpooled);
    }
  }

  /** Extends the hold to the cost, as far as credits and budgets go, for a charge that is cut to its hold. Never rejects. */
  async cover(costNanocredits: bigint, record: LedgerRecord): Promise<void> {
    if (this.request.isFree) return;
    if (this.extension) await this.extension;
    const cost = smaller(costNanocredits, AMOUNT_MAX);
    const lacks = () => cost > this.heldNanocredits;
    const extend = () => this.extend(cost - this.heldNanocredits, this.chargeable(cost), record).catch(() => undefined);
    if (lacks()) await extend();
    // The rest may be in leases.
    if (lacks()) await this.leases.recall(this.request.payer.accountId).then(extend, () => undefined);
  }

  async release(wasCalled = false): Promise<void> {
    this.conclude();
    if (this.request.isFree) return this.limits?.fail(wasCalled);
    if (this.extension) await this.extension;
    try {
      if (this.releaseReserved()) return;
      const isHeld = await this.held.then(
        () => true,
        () => false,
      );
      if (this.releaseReserved()) return;
      if (isHeld) await this.settler.submit({ kind: "release", ...this.identity });
    } finally {
      this.bound?.leave(0n);
      this.limits?.fail(wasCalled);
    }
  }

  private get identity(): { id: string; accountId: string; apiKeyId: string | null } {
    const { generationId, payer } = this.request;
    return { id: generationId, accountId: payer.accountId, apiKeyId: payer.apiKeyId };
  }

  /** What recovery may charge if the process dies: never beyond a limit that renews. */
  private chargeable(costNanocredits: bigint): bigint {
    return this.limits?.hasBudget ? smaller(costNanocredits, this.heldNanocredits) : costNanocredits;
  }

  private get fundIds(): readonly string[] {
    const { accountId, apiKeyId, hasBudget } = this.request.payer;
    return hasBudget && apiKeyId ? [accountId, apiKeyId] : [accountId];
  }

  private sizeFor(free: bigint): bigint {
    return sizeHold(this.request, this.bound, free);
  }

  /** False: there is no lease, or too little in it. */
  private reserve(): boolean {
    const { needsOwnHold, payer, paidOnly, most } = this.request;
    const lease = needsOwnHold ? null : this.leases.find(payer);
    // With tier credits in the lease, the available bought credits are unknown.
    if (!lease || (paidOnly && most !== undefined && lease.free.tier > 0n)) return false;
    const size = this.sizeFor(lease.holdable);
    if (this.bound && !this.bound.take(size)) return false;
    const reservation = lease.reserve(size, paidOnly);
    if (reservation === null) {
      this.bound?.leave(0n);
      return false;
    }
    this.leases.replenish(lease, this.largest);
    this.reservation = reservation;
    this.heldNanocredits = size;
    return true;
  }

  /** Holds by a new or enlarged lease, or separately. */
  private async obtain(): Promise<void> {
    const { leases } = this;
    const { payer, needsOwnHold, paidOnly } = this.request;
    for (let attempt = 0; !needsOwnHold && !this.settler.isUnavailable && attempt < LEASE_ATTEMPTS_MAX; attempt += 1) {
      const isThere = await leases.acquire(payer, this.largest);
      if (this.reserve()) return;
      if (!isThere || paidOnly || this.bound) break;
    }
    const preparation = leases.prepareExactHold(payer.accountId);
    if (preparation) await preparation;
    await this.hold();
  }

  private get largest(): bigint {
    const { estimate, most } = this.request;
    return most === undefined ? estimate : larger(estimate, most);
  }

  /** Undefined without a reservation. */
  private payByLease(amount: bigint): LeasedAmount | undefined {
    const { reservation } = this;
    if (reservation === null) return undefined;
    if (amount === 0n) {
      reservation.release();
      this.reservation = null;
      return undefined;
    }
    const paid = reservation.pay(amount) ?? undefined;
    if (paid) this.reservation = null;
    return paid;
  }

  /** For a cost beyond the hold: the rest may be in leases, which are recalled first. */
  private async coverBeyond(amount: bigint, record: LedgerRecord): Promise<undefined> {
    if (this.request.isFree || amount <= this.heldNanocredits) return;
    const more = amount - this.heldNanocredits;
    const { paidOnly } = this.request;
    try {
      await this.moveOut(amount, record);
      await this.settler.submit({ kind: "extend", ...this.identity, amount: more, paidOnly, metered: amount, record });
    } catch {
      // Delivered work is charged even beyond the hold.
    }
  }

  /** Converts the reservation to a separate hold, from which recovery settles the generation if the process dies. */
  private async moveOut(metered: bigint, record: LedgerRecord): Promise<void> {
    const { reservation } = this;
    if (reservation === null) return;
    const { paidOnly } = this.request;
    const lease = reservation.move();
    this.reservation = null;
    try {
      const outcome = await this.settler.submit({
        kind: "move",
        ...this.identity,
        amount: reservation.amount,
        paidOnly,
        lease,
        metered,
        record,
      });
      if (isRefused(outcome)) throw await this.refusalOf(outcome, reservation.amount, true);
    } catch (error) {
      // Refused for another reason than a lost lease, so nothing changed.
      if (!(error instanceof AppError)) {
        reservation.moveBack();
        this.reservation = reservation;
      }
      throw error;
    }
  }

  private releaseReserved(): boolean {
    const { reservation } = this;
    reservation?.release();
    this.reservation = null;
    return reservation !== null;
  }

  private async hold(): Promise<void> {
    const { paidOnly, record } = this.request;
    if (this.limits) this.heldNanocredits = this.sizeFor(0n);
    const estimate = this.heldNanocredits;
    const hold = { kind: "hold", ...this.identity, amount: estimate, paidOnly, record } as const;
    await this.bound?.takeInTime(estimate);
    this.known.expectHold(this.fundIds, estimate);
    try {
      const outcome = await this.settler.submit(hold);
      if (isRefused(outcome)) throw await this.refusalOf(outcome, estimate, false);
      await this.growWithin(holdable(outcome) + estimate);
    } catch (error) {
      this.bound?.leave(0n);
      throw error;
    } finally {
      this.known.forgetHold(this.fundIds, estimate);
    }
  }

  /** Adds to the hold; releases the part of the limit taken beyond that. */
  private grant(granted: bigint, taken: bigint): void {
    this.heldNanocredits += granted;
    // During a settlement the limit keeps all of it until the charge is known.
    this.bound?.endExtension(this.concluded ? taken : granted, taken);
  }

  /** Grows the hold to the size for the available credits. A refusal leaves it unchanged. */
  private async growWithin(free: bigint): Promise<void> {
    const size = this.sizeFor(free);
    if (size <= this.heldNanocredits) return;
    const { paidOnly, record } = this.request;
    const wanted = size - this.heldNanocredits;
    const amount = this.bound?.takeUpTo(wanted) ?? wanted;
    const extension = this.settler.submit({ kind: "extend", ...this.identity, amount, paidOnly, metered: 0n, record });
    const outcome = await extension.catch(() => null);
    if (outcome?.isUncommitted) this.trusted += amount;
    this.grant(outcome?.outcome === "ok" ? amount : 0n, amount);
  }

  /** Free work is recorded too, so it also needs the database. */
  private async requireDatabase(): Promise<void> {
    this.settler.assertAvailable();
  }

  /** Extends a hold that runs low, and stores the stream's position once a second. */
  private note(metered: bigint, isCapped: boolean, record: () => LedgerRecord): void {
    if (this.extension) return;
    const isNearlyUsed = !isCapped && metered * 100n >= this.heldNanocredits * EXTEND_AT_PERCENT;
    const isDue = this.isNoteDue;
    if (!isDue && (!isNearlyUsed || this.refusal)) return;
    // Doubling bounds the number of extensions for streams of any length.
    const amount = isNearlyUsed ? smaller(larger(this.heldNanocredits, metered), AMOUNT_MAX) : 0n;
    if (!isDue && this.bound === null && this.reservation?.grow(amount)) {
      this.heldNanocredits += amount;
      return;
    }
    this.notedAt = Date.now();
    this.extension = this.extend(amount, metered, record())
      // The settler has logged the ledger's error. The stream continues within its hold.
      .catch((error: unknown) => {
        this.refusal = serviceUnavailable("No more credits could be set aside for this answer.", { cause: error });
      })
      .finally(() => {
        this.extension = null;
      });
  }

  /**
   * Extends by the amount, or by the available credits. Also requests the part granted while the database was unavailable, and removes it
   * if refused: a session must not continue on credits that were never held.
   */
  private async extend(amount: bigint, metered: bigint, record: LedgerRecord): Promise<void> {
    const { paidOnly } = this.request;
    if (this.reservation) {
      await this.moveOut(metered, record);
      if (amount === 0n) return;
    }
    const ask = (more: bigint) => this.settler.submit({ kind: "extend", ...this.identity, amount: more, paidOnly, metered, record });
    const taken = this.bound ? await this.bound.beginExtension(amount) : amount;
    const wanted = this.trusted + taken;
    let granted = 0n;
    try {
      let outcome = await ask(wanted);
      const left = holdable(outcome);
      const isCut = isRefused(outcome) && left > 0n && left < wanted;
      if (isCut) outcome = await ask(left);
      const given = isRefused(outcome) ? 0n : isCut ? left : wanted;
      granted = given - this.trusted;
      this.trusted = outcome.isUncommitted ? given : 0n;
      const isBound = taken === 0n && amount > 0n && !isRefused(outcome);
      this.refusal = isRefused(outcome) ? await this.refusalOf(outcome, wanted, true) : (isBound && this.bound?.exhausted(amount)) || null;
    } finally {
      this.grant(granted, taken);
    }
  }

  private refusalOf(outcome: LedgerOutcome, amount: bigint, isMore: boolean): Promise<AppError> {
    return toRefusal(outcome, { amount, isMore }, this.request, this.funds);
  }

  private conclude(): void {
    if (this.concluded) throw new Error(`Generation ${this.request.generationId} was settled or released twice`);
    this.concluded = true;
  }
}
