/** What one generation may spend: out of a lease, or by a hold of its own, from its opening to its charge. */

import { AppError, serviceUnavailable } from "../../errors.js";
import { larger, smaller } from "../../lib/money.js";
import { EXTEND_AT_PERCENT, METER_NOTE_MS } from "../../limits.js";
import { holdable, type LeasedAmount, type LedgerOutcome, type LedgerOutcomeName, type LedgerRecord } from "../../store/ledger.js";
import type { ChargeRequest, Settlement } from "./charge-request.js";
import type { KnownBalances } from "./known-balances.js";
import type { Reservation } from "./lease.js";
import type { Leases } from "./leases.js";
import { toRefusal } from "./refusals.js";
import type { RefusedFunds } from "./refused-funds.js";
import type { Settler } from "./settler.js";
import type { SpendingBudget } from "./spending-budgets.js";

/** The ledger's columns end at 2^63; no honest charge comes near. A hold of this much is refused by any balance. */
const AMOUNT_MAX = 2n ** 62n;
/** What a whole answer of unstated length may hold of what is free, one in this many (docs/spec/credits.md#holds). */
const FREE_SHARE = 10n;
/** Others may have what a lease was made larger by. */
const LEASE_ATTEMPTS_MAX = 3;
const HELD = Promise.resolve();

export class OpenCharge {
  /** Resolves when the hold is committed; rejects with INSUFFICIENT_BALANCE, KEY_BUDGET_EXHAUSTED or SERVICE_UNAVAILABLE. */
  readonly held: Promise<void>;
  /** Nothing has to be waited for: it is held out of a lease, or it is free. */
  readonly isHeld: boolean;
  private heldNanocredits = 0n;
  /** What is held is this, of a lease. Null: it has a hold of its own. */
  private reservation: Reservation | null = null;
  private extension: Promise<void> | null = null;
  private refusal: AppError | null = null;
  private notedAt = Date.now();
  private concluded = false;
  /** Of what is held, what counts against the bound of a run or a request. */
  private bounded = 0n;
  /** Taken of that bound for an extension that is under way. */
  private bounding = 0n;
  /** Of what is held, what was granted on trust while the database was away: it is asked for again. */
  private trusted = 0n;

  constructor(
    private readonly settler: Settler,
    private readonly known: KnownBalances,
    private readonly funds: RefusedFunds,
    private readonly request: ChargeRequest,
    /** Of the tier bucket, and under way; nothing is held before it. Null when none is due. */
    refill: Promise<void> | null,
    /** Of the agent's run that asks, or of a request that states what it may cost; null: neither is there. */
    private readonly bound: SpendingBudget | null,
    private readonly leases: Leases,
  ) {
    this.isHeld = !settler.isUnavailable && (request.isFree || (refill === null && this.reserve()));
    if (this.isHeld && refill === null) {
      this.held = HELD;
      return;
    }
    // Of what is free, what is known counts tier credits too, which may not be what this draws.
    const isKnown = refill === null && !(request.paidOnly && request.most !== undefined);
    this.heldNanocredits = request.isFree ? 0n : this.sizeFor((isKnown ? known.freeOf(this.fundIds) : null) ?? 0n);
    const begin = () => (request.isFree ? this.requireDatabase() : this.obtain());
    this.held = refill ? refill.then(begin) : begin();
    // The one who opened looks at it when it is time; until then a refusal is not an unhandled rejection.
    this.held.catch(() => undefined);
  }

  /** It has been settled or released, or is being. */
  get isConcluded(): boolean {
    return this.concluded;
  }

  /** `held` has resolved from the start. */
  get isCommitted(): boolean {
    return this.held === HELD;
  }

  /** What its request allows to be charged for it; null: what it costs. */
  get chargeMost(): bigint | null {
    return this.bound?.chargeMost(this.bounded + this.bounding) ?? null;
  }

  /** Final when `held` has resolved. */
  get heldAmount(): bigint {
    return this.heldNanocredits;
  }

  /** A second has passed since the meter was written down. */
  get isNoteDue(): boolean {
    return Date.now() - this.notedAt >= METER_NOTE_MS;
  }

  /**
   * Tells what has been delivered so far; `isCapped` says that the hold covers all that can come, so that no more is asked
   * for. Resolves with why the stream must stop, or null: at once while its hold is not used up, else when it is known
   * whether more is granted.
   */
  async meter(costNanocredits: bigint, isCapped: boolean, record: () => LedgerRecord): Promise<AppError | null> {
    if (this.request.isFree) return null;
    this.note(costNanocredits, isCapped, record);
    while (this.extension && costNanocredits >= this.heldNanocredits) {
      await this.extension;
      // That was the answer to this very question: a database that takes its time would else be asked for ever.
      if (this.refusal) break;
      this.note(costNanocredits, isCapped, record);
    }
    return costNanocredits >= this.heldNanocredits ? this.refusal : null;
  }

  /** Charges the cost and writes the usage row; resolves once that is committed, or spooled. */
  async settle(costNanocredits: bigint, record: LedgerRecord): Promise<Settlement> {
    this.conclude();
    const amount = smaller(costNanocredits, AMOUNT_MAX);
    // Before anything is waited for: what this is charged cannot be charged to another generation of the same bound.
    if (this.bound && amount > this.bounded + this.bounding) this.bounded += this.bound.takeUpTo(amount - this.bounded - this.bounding);
    if (this.extension) await this.extension;
    const { paidOnly } = this.request;
    let charged = amount;
    try {
      const lease = this.payByLease(amount) ?? (await this.coverBeyond(amount, record));
      const { id, accountId, apiKeyId } = this.identity;
      const outcome = await this.settler.submit({ kind: "settle", id, accountId, apiKeyId, amount, paidOnly, record, lease });
      charged = outcome.charged;
      return { chargedNanocredits: charged, meterSource: outcome.meterSource ?? "pack" };
    } finally {
      if (this.bound) this.leaveBound(charged);
    }
  }

  /** Nothing is charged and nothing recorded. */
  async release(): Promise<void> {
    this.conclude();
    if (this.request.isFree) return;
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
      if (this.bound) this.leaveBound(0n);
    }
  }

  private get identity(): { id: string; accountId: string; apiKeyId: string | null } {
    const { generationId, payer } = this.request;
    return { id: generationId, accountId: payer.accountId, apiKeyId: payer.apiKeyId };
  }

  private get fundIds(): readonly string[] {
    const { accountId, apiKeyId, hasBudget } = this.request.payer;
    return hasBudget && apiKeyId ? [accountId, apiKeyId] : [accountId];
  }

  /** What is to be held of so much that is free, within the run's bound. */
  private sizeFor(free: bigint): bigint {
    const { estimate, most, least = estimate, freeMax } = this.request;
    const left = this.bound === null ? null : this.bound.left + this.bounded;
    const spendable = freeMax === undefined ? free : smaller(free, freeMax);
    const share = (left === null ? spendable : smaller(spendable, left)) / FREE_SHARE;
    const usual = left !== null && left < estimate ? larger(left, least) : estimate;
    return smaller(most === undefined ? usual : larger(usual, smaller(most, share)), AMOUNT_MAX);
  }

  /** At once, out of a lease. False: there is none, or not enough of it. */
  private reserve(): boolean {
    const { isLasting, payer, paidOnly, most } = this.request;
    const lease = isLasting ? null : this.leases.find(payer);
    // How much is free of what was bought is not known beside credits of the tier.
    if (!lease || (paidOnly && most !== undefined && lease.free.tier > 0n)) return false;
    const size = this.sizeFor(lease.holdable);
    if (this.bound && !this.bound.take(size)) return false;
    const reservation = lease.reserve(size, paidOnly);
    if (reservation === null) {
      this.bound?.conclude(size, 0n);
      return false;
    }
    this.leases.replenish(lease, this.largest);
    this.reservation = reservation;
    this.heldNanocredits = size;
    if (this.bound) this.bounded = size;
    return true;
  }

  /** Out of a lease that has yet to be made, or made larger; or by itself. */
  private async obtain(): Promise<void> {
    const { leases } = this;
    const { payer, isLasting, paidOnly } = this.request;
    for (let attempt = 0; !isLasting && !this.settler.isUnavailable && attempt < LEASE_ATTEMPTS_MAX; attempt += 1) {
      const isThere = await leases.acquire(payer, this.largest);
      if (this.reserve()) return;
      if (!isThere || paidOnly || this.bound) break;
    }
    const way = leases.makeWay(payer.accountId);
    if (way) await way;
    await this.hold();
  }

  /** The most that may be held at first. */
  private get largest(): bigint {
    const { estimate, most } = this.request;
    return most === undefined ? estimate : larger(estimate, most);
  }

  /** What of the lease pays for all of it; undefined where it has no part in it. */
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

  /** It costs more than is held: the rest may be leased by somebody, who is asked for it first. */
  private async coverBeyond(amount: bigint, record: LedgerRecord): Promise<undefined> {
    if (this.request.isFree || amount <= this.heldNanocredits) return;
    const more = amount - this.heldNanocredits;
    const { paidOnly } = this.request;
    try {
      await this.moveOut(amount, record);
      await this.settler.submit({ kind: "extend", ...this.identity, amount: more, paidOnly, metered: amount, record });
    } catch {
      // What was delivered is charged whatever is held for it.
    }
  }

  /** What is reserved of a lease becomes a hold of its own, from which a dead process's generation is settled. */
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
      // Refused by itself, and not because the lease is gone: it is as it was.
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
    const estimate = this.heldNanocredits;
    const hold = { kind: "hold", ...this.identity, amount: estimate, paidOnly, record } as const;
    if (this.bound) {
      await this.bound.takeInTime(estimate);
      this.bounded = estimate;
    }
    this.known.expectHold(this.fundIds, estimate);
    try {
      const outcome = await this.settler.submit(hold);
      if (isRefused(outcome)) throw await this.refusalOf(outcome, estimate, false);
      await this.growWithin(holdable(outcome) + estimate);
    } catch (error) {
      if (this.bound) this.leaveBound(0n);
      throw error;
    } finally {
      this.known.forgetHold(this.fundIds, estimate);
    }
  }

  /** Once: what was taken of the run's bound is given back, but for what is charged. */
  private leaveBound(charged: bigint): void {
    this.bound?.conclude(this.bounded, charged);
    this.bounded = 0n;
  }

  /** So much more is held; what was taken of the run's bound beyond that is given back. */
  private grant(granted: bigint, taken: bigint): void {
    this.heldNanocredits += granted;
    if (!this.bound) return;
    this.bounding = 0n;
    // What is being charged keeps all of it until the charge is known.
    const kept = this.concluded ? taken : granted;
    this.bounded += kept;
    this.bound.conclude(taken - kept, 0n);
  }

  /** Now that it is known what is free. Whoever is refused goes on with what is held. */
  private async growWithin(free: bigint): Promise<void> {
    const size = this.sizeFor(free);
    if (size <= this.heldNanocredits) return;
    const { paidOnly, record } = this.request;
    const wanted = size - this.heldNanocredits;
    const amount = this.bound?.takeUpTo(wanted) ?? wanted;
    const asked = this.settler.submit({ kind: "extend", ...this.identity, amount, paidOnly, metered: 0n, record });
    const outcome = await asked.catch(() => null);
    if (outcome?.isUncommitted) this.trusted += amount;
    this.grant(outcome?.outcome === "ok" ? amount : 0n, amount);
  }

  /** Free work is recorded too, so it needs the database as any other does. */
  private async requireDatabase(): Promise<void> {
    this.settler.assertAvailable();
  }

  /** Asks for more when the hold runs low, and else writes down once a second where the stream stands. */
  private note(metered: bigint, isCapped: boolean, record: () => LedgerRecord): void {
    if (this.extension) return;
    const isNearlyUsed = !isCapped && metered * 100n >= this.heldNanocredits * EXTEND_AT_PERCENT;
    const isDue = this.isNoteDue;
    if (!isDue && (!isNearlyUsed || this.refusal)) return;
    // Doubling keeps the number of extensions of a stream of any length small.
    const amount = isNearlyUsed ? smaller(larger(this.heldNanocredits, metered), AMOUNT_MAX) : 0n;
    if (!isDue && this.bound === null && this.reservation?.grow(amount)) {
      this.heldNanocredits += amount;
      return;
    }
    this.notedAt = Date.now();
    this.extension = this.extend(amount, metered, record())
      // What the ledger finds impossible has been logged by the settler. The stream goes on with what it holds.
      .catch((error: unknown) => {
        this.refusal = serviceUnavailable("No more credits could be set aside for this answer.", { cause: error });
      })
      .finally(() => {
        this.extension = null;
      });
  }

  /**
   * By that much, or by what there is. What was granted on trust is asked for with it, and taken back where it is refused: a session
   * that outlives the database's absence must not go on with what nobody has set aside.
   */
  private async extend(amount: bigint, metered: bigint, record: LedgerRecord): Promise<void> {
    const { paidOnly } = this.request;
    if (this.reservation) {
      await this.moveOut(metered, record);
      if (amount === 0n) return;
    }
    const ask = (more: bigint) => this.settler.submit({ kind: "extend", ...this.identity, amount: more, paidOnly, metered, record });
    const taken = this.bound?.takeUpTo(amount) ?? amount;
    if (this.bound) this.bounding = taken;
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

const REFUSALS: ReadonlySet<LedgerOutcomeName> = new Set([
  "insufficient_balance",
  "free_spend_exhausted",
  "key_budget_exhausted",
  "duplicate",
] satisfies LedgerOutcomeName[]);

function isRefused({ outcome }: LedgerOutcome): boolean {
  return REFUSALS.has(outcome);
}
