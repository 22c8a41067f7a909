/**
 * One generation, whatever it makes: set aside, tried, metered, charged and told in a receipt. Nothing else opens, extends, settles or
 * releases a charge.
 *
 * 1. `hold` sets aside what the plan expects. A caller with plenty does not wait for its commit.
 * 2. `attempt` calls the candidates in turn, until one answers.
 * 3. `meter` notes what has been delivered, and asks for more when the hold runs low.
 * 4. `settle` charges what was metered, or `release` nothing. Whichever comes first counts, whatever fails in between.
 * 5. `end`, always.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { MaxCost } from "../../context.js";
import { type AppError, upstreamFailed } from "../../errors.js";
import { createId } from "../../lib/ids.js";
import { NO_USAGE } from "../../lib/usage.js";
import type { LedgerRecord } from "../../store/ledger.js";
import type { HourlyHold } from "../access/rate-limits.js";
import type { Model } from "../catalog/model.js";
import { type BillableQuantities, costOf, cutToCost, type RateCard } from "../catalog/pricing.js";
import type { ChargeRequest } from "../credits/charge-request.js";
import { type Payer, payerOf } from "../credits/charge-request.js";
import type { Credits } from "../credits/credits.js";
import type { OpenCharge } from "../credits/open-charge.js";
import { servable } from "../safety/features.js";
import type { Admission, GenerationTask } from "./admission.js";
import { CallerGone, Cancellation, type RunningGenerations } from "./cancellation.js";
import { type HealthReporter, mayFallBack, noteFailure, toCallerError } from "./failures.js";
import { BOUNDED_WARNING } from "./plausible.js";
import { joinWarnings, NO_WARNINGS, type Receipt, type UsageSource } from "./receipt.js";
import { type Progress, toCourse, toLedgerRecord, underWay } from "./usage-row.js";

export interface GenerationPlan extends GenerationTask {
  /** In nanocredits; see ChargeRequest. */
  readonly hold: Pick<ChargeRequest, "estimate" | "least" | "most">;
}

export interface Answered<Answer> {
  /** The one that answered. */
  readonly model: Model;
  readonly answer: Answer;
}

export interface RunDependencies {
  readonly credits: Credits;
  readonly admission: Admission;
  readonly healthReporter: HealthReporter;
  readonly running: RunningGenerations;
  /** A generation's total, in milliseconds. */
  readonly totalMs: number;
}

export interface RunOptions {
  /** What ends it; unless stated, the caller's leaving. */
  readonly signal?: AbortSignal;
  readonly totalMs?: number;
  readonly isStreamed?: boolean;
}

/** What is charged for. */
export interface Metered {
  readonly quantities: BillableQuantities;
  readonly source: UsageSource;
  /** What the upstream reported, where that was more than is plausible. */
  readonly reported?: BillableQuantities | undefined;
}

/** How a generation ended that is to be charged. */
export interface Outcome extends Metered, Pick<Receipt, "status" | "warnings" | "cancelPolicy" | "isCut"> {
  /** The one that answered. */
  readonly model: Model;
  /** The gateway's own guess, or more than was paid for: cut to the hold whoever answered. */
  readonly isCappedToHold?: boolean;
}

/** A generation that is answered whole. */
export interface WholeWork<Answer> {
  readonly call: (model: Model, run: GenerationRun) => Promise<Answer>;
  /** The hold is committed. What this throws is the caller's, and nothing is charged. */
  readonly meter: (answered: Answered<Answer>, run: GenerationRun) => WholeMetered | Promise<WholeMetered>;
  /** The hold is committed; the upstream is called when this resolves. Without it, a caller with plenty does not wait for the hold. */
  readonly onHeld?: ((cancellation: Cancellation) => Promise<void>) | undefined;
}

export interface WholeResult<Answer> {
  readonly answer: Answer;
  readonly receipt: Receipt;
  /** What it was charged for: the amounts of the receipt, and those that a usage row has no column for. */
  readonly charged: BillableQuantities;
}

export type WholeMetered = Metered & Pick<Outcome, "warnings" | "isCut">;

export class GenerationRun {
  readonly cancellation: Cancellation;
  /** From the request to the first token or byte that goes on; null for an answer that comes whole. */
  firstByteMs: number | null = null;
  /** Once it is charged. */
  receipt: Receipt | null = null;
  private charged: BillableQuantities = NO_USAGE;
  private charge: OpenCharge | null = null;
  /** What is held of a publishable key's hourly credits. */
  private hourly: HourlyHold | null = null;
  private calledAt: number | null = null;
  private upstreamMs = 0;
  /** An upstream did not answer, and the caller was not to blame. */
  private hasFailed = false;

  constructor(
    readonly plan: GenerationPlan,
    private readonly deps: RunDependencies,
    { signal, totalMs = deps.totalMs, isStreamed = false }: RunOptions = {},
  ) {
    const { request } = plan;
    this.cancellation = new Cancellation(signal ?? request.leaving ?? request.signal, totalMs, isStreamed);
    if (plan.limitedAs !== null) this.hourly = deps.admission.hourlyHold(plan, totalMs);
    deps.running.begin(this.cancellation);
  }

  /** From the hold to the end. Resolves when the charge is committed, whether or not its caller is still there. */
  async answer<Answer>({ call, meter, onHeld }: WholeWork<Answer>): Promise<WholeResult<Answer>> {
    const { cancellation, plan } = this;
    try {
      const waiting = this.hold(onHeld !== undefined);
      if (waiting) await waiting;
      if (onHeld) {
        await this.committed();
        await onHeld(cancellation);
      }
      // What an upstream has begun is paid for, so it is finished whoever waits. Nobody pays for what is free.
      if (!plan.isFree) cancellation.outlast(Number.POSITIVE_INFINITY);
      const answered = await this.attempt((model) => call(model, this));
      this.noteSuccess(answered.model);
      if (!this.openCharge.isCommitted) await this.openCharge.held;
      const metering = meter(answered, this);
      const { quantities, source, reported, warnings, isCut } = metering instanceof Promise ? await metering : metering;
      const status = cancellation.isCallerGone ? "cancelled" : "ok";
      const cancelPolicy = plan.isFree ? "stop" : "finish";
      const { model } = answered;
      const receipt = await this.settle({ quantities, source, reported, warnings, isCut, model, status, cancelPolicy });
      return { answer: answered.answer, receipt, charged: this.charged };
    } catch (error) {
      await this.release();
      throw this.told(error);
    } finally {
      this.end();
    }
  }

  /**
   * `isLasting`: it outlives this process. Null: an upstream may be called; else resolves when it may. Rejects with INSUFFICIENT_BALANCE,
   * KEY_BUDGET_EXHAUSTED, SERVICE_UNAVAILABLE or RATE_LIMITED.
   */
  hold(isLasting = false): Promise<void> | null {
    const charge = openCharge(this.deps, this.plan, isLasting);
    this.charge = charge;
    const { hourly } = this;
    if (hourly !== null) return charge.held.then(() => hourly.begin(charge.heldAmount));
    return charge.isHeld ? null : charge.held;
  }

  /** Resolves when what is set aside is committed; rejects as `hold` does. */
  committed(): Promise<void> {
    return this.openCharge.held;
  }

  get heldNanocredits(): bigint {
    return this.openCharge.heldAmount;
  }

  /** It has been charged or released, or is being. */
  get isConcluded(): boolean {
    return this.charge?.isConcluded ?? false;
  }

  /** A second has passed since the meter was written down. */
  get isNoteDue(): boolean {
    return this.openCharge.isNoteDue;
  }

  /**
   * Rejects with what the caller is told of the first failure, which is that of the model that was asked for: it is what a repetition
   * meets first, and a fallback that finds the request wanting says nothing about that model. What ends all of it from here, such as the
   * time that is up, is told instead. A fallback's own fallbacks are not followed, and nobody else is asked for a caller who has gone.
   */
  async attempt<Answer>(call: (model: Model) => Promise<Answer>): Promise<Answered<Answer>> {
    const { plan, cancellation } = this;
    const failures: unknown[] = [];
    this.noteCalled();
    for (const model of servable(plan.candidates, plan.safety?.applied)) {
      try {
        if (plan.request.hasLargeInput) await nextTurn();
        const answer = await call(model);
        this.noteUpstream();
        return { model, answer };
      } catch (error) {
        failures.push(toCallerError(error, model));
        this.noteFailure(model, error);
        if (cancellation.aborted || cancellation.isCallerGone || !mayFallBack(error)) break;
      }
    }
    throw cancellation.aborted ? failures.at(-1) : failures[0];
  }

  /** An upstream is at work from now on. */
  noteCalled(): void {
    this.calledAt = performance.now();
  }

  /** An upstream has just said something, or has been waited for until now. */
  noteUpstream(): void {
    if (this.calledAt !== null) this.upstreamMs = performance.now() - this.calledAt;
  }

  /** What goes on is the first of it. */
  noteFirstByte(): void {
    this.firstByteMs ??= performance.now() - this.plan.startedAt;
  }

  /** One of the candidates has given its whole answer. */
  noteSuccess(model: Model): void {
    if (model.isCommunity) this.deps.healthReporter.succeeded(this.plan.caller, model);
  }

  /** One of them has not. */
  noteFailure(model: Model, error: unknown): void {
    const isFault = noteFailure(this.deps.healthReporter, this.plan.caller, model, error, this.cancellation);
    this.hasFailed ||= isFault;
  }

  /**
   * Tells what has been delivered so far; `isCapped`: no more is asked for. `costNanocredits` may be more than `soFar` costs, by what the
   * upstream is at work on. Resolves with why it must stop, or null.
   */
  meter(model: Model, costNanocredits: bigint, isCapped: boolean, soFar: () => BillableQuantities): Promise<AppError | null> {
    const record = () => this.recordOf(underWay(model.id, soFar(), this.firstByteMs));
    this.hourly?.extendTo(this.openCharge.heldAmount);
    return this.openCharge.meter(costNanocredits, isCapped, record);
  }

  /** Resolves when the charge is committed. An account's upstream is never paid beyond the hold, whatever it reports. */
  async settle(outcome: Outcome): Promise<Receipt> {
    const { plan, deps, firstByteMs } = this;
    const { model, status, warnings, isCut = false, cancelPolicy } = outcome;
    const { rates } = plan.model;
    const charge = this.openCharge;
    const heldNanocredits = charge.heldAmount;
    const { chargeMost } = charge;
    const isCapped = outcome.isCappedToHold || model.isCommunity;
    const held = isCapped ? this.capped(outcome, rates, heldNanocredits) : outcome;
    const { quantities, source } = chargeMost === null ? held : capToHold(held, rates, chargeMost);
    const isBounded = source === "bounded";
    if (isBounded) this.noteBounded(outcome, quantities);
    this.charged = quantities;
    const course = toCourse(heldNanocredits, this.upstreamMs, performance.now() - plan.startedAt);
    const record = this.recordOf({ modelUsed: model.id, usage: quantities, usageSource: source, status, firstByteMs, course });
    const settlement = await charge.settle(costOf(quantities, rates), record);
    this.receipt = {
      generationId: plan.generationId,
      model: plan.model.id,
      modelUsed: model.id,
      usage: record.usage,
      usageSource: source,
      status,
      costNanocredits: settlement.chargedNanocredits,
      childCostNanocredits: deps.admission.childCosts.of(plan.model, plan.generationId),
      heldNanocredits,
      meterSource: settlement.meterSource,
      gatewayMs: Math.max(0, performance.now() - plan.startedAt - this.upstreamMs),
      upstreamMs: this.upstreamMs,
      responseMs: record.responseTimeMs,
      firstTokenMs: firstByteMs,
      warnings: warningsFor(plan.notes, warnings, isBounded),
      isCut,
      cancelPolicy,
      safety: plan.safety,
    };
    this.hourly?.conclude(settlement.chargedNanocredits);
    deps.admission.concluded(plan, this.receipt);
    return this.receipt;
  }

  /** What an account's upstream reports beyond the hold is more than is plausible. */
  private capped(outcome: Outcome, rates: RateCard, heldNanocredits: bigint): Metered {
    const capped = capToHold(outcome, rates, heldNanocredits);
    const isReport = outcome.source === "provider" && outcome.model.isCommunity;
    return isReport && capped.quantities !== outcome.quantities ? { ...capped, source: "bounded" } : capped;
  }

  private noteBounded({ model, quantities, reported = quantities }: Outcome, charged: BillableQuantities): void {
    this.deps.healthReporter.usageBounded(model, { generationId: this.plan.generationId, reported, charged });
  }

  /** Nothing was delivered, so nothing is charged and nothing recorded. Does nothing once it is charged or released. */
  async release(): Promise<void> {
    if (this.charge && !this.charge.isConcluded) await this.charge.release();
  }

  /** Where the time has gone until now, in milliseconds, while an upstream is at work. */
  timing(): Pick<Receipt, "gatewayMs" | "upstreamMs"> {
    const now = performance.now();
    const upstreamMs = this.calledAt === null ? 0 : now - this.calledAt;
    return { gatewayMs: now - this.plan.startedAt - upstreamMs, upstreamMs };
  }

  /** The failure as its caller is told it. */
  told(error: unknown): unknown {
    return error instanceof CallerGone ? upstreamFailed("The caller left before the answer came.", { cause: error }) : error;
  }

  end(): void {
    if (this.hasFailed && this.receipt === null) this.deps.healthReporter.generationFailed(this.plan.caller, this.plan.model);
    this.hasFailed = false;
    this.hourly?.conclude(0n);
    this.cancellation.dispose();
    this.deps.running.end(this.cancellation);
  }

  private get openCharge(): OpenCharge {
    if (!this.charge) throw new Error(`Nothing was held for generation ${this.plan.generationId}`);
    return this.charge;
  }

  private recordOf(progress: Progress) {
    return toLedgerRecord(this.plan, progress);
  }
}

function warningsFor(notes: readonly string[], warnings: readonly string[], isBounded: boolean): readonly string[] {
  if (isBounded) return joinWarnings([BOUNDED_WARNING], notes, warnings);
  return notes.length + warnings.length === 0 ? NO_WARNINGS : joinWarnings(notes, warnings);
}

/**
 * Rejects as a hold of the plan does, and holds nothing: before the gateway does work of its own to find out what the generation will
 * cost.
 */
export async function assertPayable(deps: Pick<RunDependencies, "credits" | "admission">, plan: GenerationPlan): Promise<void> {
  const charge = openCharge(deps, { ...plan, generationId: createId() });
  try {
    if (!charge.isHeld) await charge.held;
  } finally {
    await charge.release();
  }
}

function openCharge(
  { credits, admission }: Pick<RunDependencies, "credits" | "admission">,
  plan: GenerationPlan,
  isLasting = false,
): OpenCharge {
  return credits.open(new PlannedCharge(plan, isLasting, admission.hourlyCreditsMax(plan)));
}

/** A class for its getter: see docs/decisions/garbage.md. */
class PlannedCharge implements ChargeRequest {
  readonly generationId: string;
  readonly payer: Payer;
  readonly estimate: bigint;
  readonly most: bigint | undefined;
  readonly paidOnly: boolean;
  readonly isFree: boolean;
  readonly maxCost: MaxCost | undefined;

  constructor(
    private readonly plan: GenerationPlan,
    readonly isLasting: boolean,
    readonly freeMax: bigint | undefined,
  ) {
    this.generationId = plan.generationId;
    this.payer = payerOf(plan.caller);
    this.estimate = plan.hold.estimate;
    this.most = plan.hold.most;
    this.paidOnly = plan.model.paidOnly;
    this.isFree = plan.isFree;
    this.maxCost = plan.request.maxCost;
  }

  get least(): bigint | undefined {
    return this.plan.hold.least;
  }

  get record(): LedgerRecord {
    return toLedgerRecord(this.plan, underWay(this.plan.model.id));
  }
}

/**
 * The same when it costs no more than `heldNanocredits`. Else every amount is cut in one proportion, and is the gateway's estimate: a usage
 * row shows what was charged for, so what was reported is cut and not only its price.
 */
export function capToHold({ quantities, source }: Metered, rates: RateCard, heldNanocredits: bigint): Metered {
  const cut = cutToCost(quantities, rates, heldNanocredits);
  return { quantities: cut, source: cut !== quantities && source === "provider" ? "estimated" : source };
}
