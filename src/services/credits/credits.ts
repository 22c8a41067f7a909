/**
 * Credits: what a generation may spend, and what it has spent (docs/architecture.md#a-generation-end-to-end).
 *
 * 1. `open` sets the estimated cost aside, after a refill of the account's tier when one is due. A caller with plenty goes on at
 *    once; any other waits for the commit.
 * 2. `meter` is told of what has been delivered; at 80% of the hold it asks for more, and each second it writes down where
 *    the stream stands, so that a killed process is settled at what it delivered.
 * 3. `settle` charges the real cost, or `release` nothing. Exactly one of them, once.
 *
 * Free work (an amount of 0 at free rates) has no hold: only its usage row is written.
 */
import type { AgentRun, KeyCaller, SessionCaller } from "../../context.js";
import { type AppError, serviceUnavailable } from "../../errors.js";
import { EXTEND_AT_PERCENT, METER_NOTE_MS } from "../../limits.js";
import type { Events } from "../../store/events.js";
import {
  type BucketName,
  isSettlement,
  type LedgerOperation,
  type LedgerOutcome,
  type LedgerOutcomeName,
  type LedgerRecord,
} from "../../store/ledger.js";
import type { KnownBalances } from "./known-balances.js";
import { toRefusal } from "./refusals.js";
import type { RefusedFunds } from "./refused-funds.js";
import { type RunBudget, RunBudgets } from "./run-budgets.js";
import type { Settler } from "./settler.js";
import type { TierRefills } from "./tiers.js";

/** The ledger's columns end at 2^63; no honest charge comes near. A hold of this much is refused by any balance. */
const AMOUNT_MAX = 2n ** 62n;
/** What a whole answer of unstated length may hold of what is free, one in this many (docs/spec/credits.md#holds). */
const FREE_SHARE = 10n;

/** Who pays. */
export interface Payer {
  readonly accountId: string;
  readonly apiKeyId: string | null;
  /** The key has a budget of its own, or draws on another's. */
  readonly hasBudget: boolean;
  /** May be told what the account has. Absent: may not. An agent at work is told nothing of its caller's money: it is somebody else's. */
  readonly seesBalance?: boolean | undefined;
  /** An agent asks for it, within the bound of its run. */
  readonly run?: AgentRun | null;
}

export function payerOf(caller: KeyCaller | SessionCaller): Payer {
  const { accountId, run = null } = caller;
  if (caller.kind !== "key") return { accountId, apiKeyId: null, hasBudget: false, seesBalance: run === null, run };
  return {
    accountId,
    apiKeyId: caller.apiKeyId,
    hasBudget: caller.hasBudget,
    seesBalance: run === null && caller.permissions.has("balance"),
    run,
  };
}

export interface ChargeRequest {
  /** Made by the server, unique: the hold's, the charge's and the usage row's id. */
  readonly generationId: string;
  readonly payer: Payer;
  /** Nanocredits: what is held at least. */
  readonly estimate: bigint;
  /** Nanocredits: what is held instead where an agent's run has no more left of its bound. Absent: the estimate. */
  readonly least?: bigint | undefined;
  /** Nanocredits: up to this a tenth of what is free is held where that is more than the estimate. Absent: the estimate is held. */
  readonly most?: bigint | undefined;
  /** Draws crypto and pack, never tier. */
  readonly paidOnly: boolean;
  readonly isFree: boolean;
  readonly record: LedgerRecord;
}

export interface Settlement {
  readonly chargedNanocredits: bigint;
  readonly meterSource: BucketName;
}

export class Credits {
  private readonly runBudgets = new RunBudgets();

  constructor(
    private readonly settler: Settler,
    private readonly known: KnownBalances,
    private readonly refills: Pick<TierRefills, "refillIfDue">,
    private readonly funds: RefusedFunds,
  ) {}

  open(request: ChargeRequest): OpenCharge {
    // The database is not asked while it is known to be away: the hold is refused for that.
    const refill = this.settler.isUnavailable ? null : this.refills.refillIfDue(request.payer.accountId);
    const { run } = request.payer;
    const bound = run && !request.isFree ? this.runBudgets.of(run) : null;
    return new OpenCharge(this.settler, this.known, this.funds, request, refill, bound);
  }
}

export class OpenCharge {
  /** Resolves when the hold is committed; rejects with INSUFFICIENT_BALANCE, KEY_BUDGET_EXHAUSTED or SERVICE_UNAVAILABLE. */
  readonly held: Promise<void>;
  /** The upstream may be called before `held` resolves. */
  readonly isComfortable: boolean;
  private heldNanocredits: bigint;
  private extension: Promise<void> | null = null;
  private refusal: AppError | null = null;
  private notedAt = Date.now();
  private concluded = false;
  /** Of what is held, what counts against the bound of an agent's run. */
  private bounded = 0n;
  /** Of what is held, what was granted on trust while the database was away: it is asked for again. */
  private trusted = 0n;

  constructor(
    private readonly settler: Settler,
    private readonly known: KnownBalances,
    private readonly funds: RefusedFunds,
    private readonly request: ChargeRequest,
    /** Of the tier bucket, and under way; nothing is held before it. Null when none is due. */
    refill: Promise<void> | null,
    /** Of the agent's run that asks; null: no agent does. */
    private readonly bound: RunBudget | null,
  ) {
    // Of what is free, what is known counts tier credits too, which may not be what this draws.
    const isKnown = refill === null && !(request.paidOnly && request.most !== undefined);
    this.heldNanocredits = request.isFree ? 0n : this.sizeFor((isKnown ? known.freeOf(this.fundIds) : null) ?? 0n);
    this.isComfortable = request.isFree || (isKnown && known.isComfortable(this.fundIds, this.heldNanocredits) && this.fitsBound());
    const begin = () => (request.isFree ? this.requireDatabase() : this.hold());
    this.held = refill ? refill.then(begin) : begin();
    // The one who opened looks at it when it is time; until then a refusal is not an unhandled rejection.
    this.held.catch(() => undefined);
  }

  /** It has been settled or released, or is being. */
  get isConcluded(): boolean {
    return this.concluded;
  }

  /** Final when `held` has resolved, and from the start when the charge is comfortable. */
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
    if (this.extension) await this.extension;
    const { paidOnly } = this.request;
    const amount = smaller(costNanocredits, AMOUNT_MAX);
    let charged = amount;
    try {
      const outcome = await this.settler.submit({ kind: "settle", ...this.identity, amount, paidOnly, record });
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
    await this.extension;
    try {
      if (this.settler.withdrawHold(this.request.generationId)) return;
      const isHeld = await this.held.then(
        () => true,
        () => false,
      );
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
    const { estimate, most, least = estimate } = this.request;
    const left = this.bound === null ? null : this.bound.left + this.bounded;
    const share = (left === null ? free : smaller(free, left)) / FREE_SHARE;
    const usual = left !== null && left < estimate ? larger(left, least) : estimate;
    return smaller(most === undefined ? usual : larger(usual, smaller(most, share)), AMOUNT_MAX);
  }

  private async hold(): Promise<void> {
    const { paidOnly, record } = this.request;
    const estimate = this.heldNanocredits;
    const hold = { kind: "hold", ...this.identity, amount: estimate, paidOnly, record } as const;
    if (this.bound && !this.fitsBound()) {
      await this.bound.takeInTime(estimate);
      this.bounded = estimate;
    }
    this.known.expectHold(this.fundIds, estimate);
    try {
      const outcome = await this.settler.submit(hold);
      if (isRefused(outcome)) throw await this.refusalOf(outcome, estimate, false);
      if (!this.isComfortable) await this.growWithin(leftOf(outcome) + estimate);
    } catch (error) {
      if (this.bound) this.leaveBound(0n);
      throw error;
    } finally {
      this.known.forgetHold(this.fundIds, estimate);
    }
  }

  /** What is to be held has been taken of the run's bound, now if it was not before. */
  private fitsBound(): boolean {
    if (this.bound === null || this.bounded > 0n) return true;
    if (!this.bound.take(this.heldNanocredits)) return false;
    this.bounded = this.heldNanocredits;
    return true;
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
    this.bounded += granted;
    this.bound.conclude(taken - granted, 0n);
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
    if (!this.isNoteDue && (!isNearlyUsed || this.refusal)) return;
    this.notedAt = Date.now();
    // Doubling keeps the number of extensions of a stream of any length small.
    const amount = isNearlyUsed ? smaller(larger(this.heldNanocredits, metered), AMOUNT_MAX) : 0n;
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
    const ask = (more: bigint) => this.settler.submit({ kind: "extend", ...this.identity, amount: more, paidOnly, metered, record });
    const taken = this.bound?.takeUpTo(amount) ?? amount;
    const wanted = this.trusted + taken;
    let granted = 0n;
    try {
      let outcome = await ask(wanted);
      const left = leftOf(outcome);
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

/**
 * Keeps what is known of balances up to date, by what is committed here and what other processes tell of, and tells listeners what was
 * charged; `ownEvents` are told to this process alone.
 */
export function createCommitListener(
  known: KnownBalances,
  events: Events,
  ownEvents?: Events,
): (operation: LedgerOperation, outcome: LedgerOutcome) => void {
  events.listenToOthers("balance-changed", ({ accountId }) => known.drop(accountId));
  return (operation, outcome) => {
    known.learn(operation.accountId, outcome.available);
    if (operation.apiKeyId && outcome.keyAvailable !== null) known.learn(operation.apiKeyId, outcome.keyAvailable);
    const isDone = outcome.outcome === "ok" || outcome.outcome === "corrected";
    if (!isDone || !(isSettlement(operation) || operation.kind === "release")) return;
    const { accountId } = operation;
    if (isSettlement(operation)) {
      const recorded = { accountId, usageId: operation.id };
      events.publish("usage-recorded", recorded);
      ownEvents?.publish("usage-recorded", recorded);
    }
    // A hold of another process may wait for what a release has freed. Free work, which held nothing, is not told of.
    const isMoved = operation.kind === "release" || outcome.charged > 0n || outcome.outcome === "corrected";
    if (isMoved) events.publish("balance-changed", { accountId });
  };
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

/** What the account, and the key where it has a budget, can still hold. */
function leftOf({ available, keyAvailable }: LedgerOutcome): bigint {
  return keyAvailable === null ? available : smaller(available, keyAvailable);
}

function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
