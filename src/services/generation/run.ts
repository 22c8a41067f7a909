/**
 * One generation of any modality: held, attempted, metered, charged, with a receipt. No other code opens, extends, settles or releases a
 * charge.
 *
 * 1. `hold` holds the plan's estimate. A caller with plenty of credits does not wait for the commit.
 * 2. `attempt` calls the candidates in turn, until one answers.
 * 3. `meter` stores the delivered output, and extends the hold when it runs low.
 * 4. `settle` charges the metered usage, or `release` nothing. The first of them counts.
 * 5. `end`, always.
 */
import { runIdsOf } from "../../context.js";
import { type AppError, upstreamFailed } from "../../errors.js";
import { NO_USAGE } from "../../lib/usage.js";
import type { HourlyHold } from "../access/rate-limits.js";
import { atPrice, type BillableQuantities, costOf, type RateCard } from "../catalog/pricing.js";
import type { Credits } from "../credits/credits.js";
import type { OpenCharge } from "../credits/open-charge.js";
import { RUN_APPROVAL_WAIT_MS } from "../runs/limits.js";
import type { RunApprovals } from "../runs/run-approvals.js";
import { servable } from "../safety/features.js";
import type { Admission } from "./admission.js";
import { type Answered, attemptInTurn, type CallCandidate, type Hedge } from "./attempt.js";
import { CallerGone, Cancellation, type RunningGenerations } from "./cancellation.js";
import { marginIn } from "./earners.js";
import { type HealthReporter, noteFailure } from "./failures.js";
import { capToHold, type Metered } from "./metered.js";
import { chargedRates, type GenerationPlan, openCharge } from "./planned-charge.js";
import { inputTokensOf, outputTokensOf, warningsFor } from "./plausible.js";
import { giveQuote, refusedWithQuote } from "./quote.js";
import type { Receipt } from "./receipt.js";
import { Attempts } from "./routing/attempts.js";
import { type Candidate, operatorCostOf } from "./routing/candidate.js";
import { isWatched } from "./routing/router.js";
import { type Progress, toCourse, toLedgerRecord, toRecordedRoute, underWay } from "./usage-row.js";

export interface RunDependencies {
  readonly credits: Credits;
  readonly admission: Admission;
  readonly healthReporter: HealthReporter;
  readonly running: RunningGenerations;
  readonly approvals: Pick<RunApprovals, "holdInTime">;
  readonly totalMs: number;
}

export interface RunOptions {
  /** Ends the generation; default: the client's disconnect. */
  readonly signal?: AbortSignal;
  readonly totalMs?: number;
  readonly isStreamed?: boolean;
}

/** `model` and `route` are those that answered. */
export interface Outcome extends Metered, Candidate, Pick<Receipt, "status" | "warnings" | "cancelPolicy" | "isCut" | "cut"> {
  /** An estimate of ours, or more than was paid for: cut to the hold for every model. */
  readonly isCappedToHold?: boolean;
}

export interface WholeWork<Answer> {
  readonly call: (candidate: Candidate, run: GenerationRun) => Promise<Answer>;
  /** Called after the hold is committed. An error is the caller's, and nothing is charged. */
  readonly meter: (answered: Answered<Answer>, run: GenerationRun) => WholeMetered | Promise<WholeMetered>;
  /**
   * Called after the hold is committed; the upstream is called once it resolves. Absent: a caller with plenty of credits does not wait for
   * the hold.
   */
  readonly onHeld?: ((cancellation: Cancellation) => Promise<void>) | undefined;
}

export interface WholeResult<Answer> {
  readonly answer: Answer;
  readonly receipt: Receipt;
  /** The charged amounts: those of the receipt, and those without a column in a usage row. */
  readonly charged: BillableQuantities;
}

export type WholeMetered = Metered & Pick<Outcome, "warnings" | "isCut" | "cut">;

export class GenerationRun {
  readonly cancellation: Cancellation;
  /** Null for a whole answer. */
  firstByteMs: number | null = null;
  receipt: Receipt | null = null;
  private charged: BillableQuantities = NO_USAGE;
  private charge: OpenCharge | null = null;
  private hourly: HourlyHold | null = null;
  private calledAt: number | null = null;
  private upstreamMs = 0;
  readonly attempts: Attempts;
  private readonly totalMs: number;
  /** An upstream failed through no fault of the caller. */
  private hasFailed = false;

  constructor(
    readonly plan: GenerationPlan,
    private readonly deps: RunDependencies,
    { signal, totalMs = deps.totalMs, isStreamed = false }: RunOptions = {},
  ) {
    this.totalMs = totalMs;
    const { request } = plan;
    this.attempts = new Attempts(deps.admission.router);
    this.cancellation = new Cancellation(
      signal ?? request.leaving ?? request.signal,
      totalMs,
      isStreamed,
      plan.caller.accountId,
      runIdsOf(plan.caller),
    );
    if (plan.limitedAs !== null) this.hourly = deps.admission.hourlyHold(plan, totalMs);
    deps.running.begin(this.cancellation);
  }

  /** From hold to end. Resolves when the charge is committed, even after a disconnect. */
  async answer<Answer>({ call, meter, onHeld }: WholeWork<Answer>): Promise<WholeResult<Answer>> {
    const { cancellation, plan } = this;
    try {
      const waiting = this.hold(onHeld !== undefined);
      if (waiting) await waiting;
      if (onHeld) {
        await this.committed();
        await onHeld(cancellation);
      }
      // Work that an upstream has begun is paid for, so it is finished after a disconnect. Free work is not.
      if (!plan.isFree) cancellation.outlast(Number.POSITIVE_INFINITY);
      const answered = await this.attempt((candidate) => call(candidate, this));
      this.noteSuccess(answered);
      if (!this.openCharge.isCommitted) await this.openCharge.held;
      const metering = meter(answered, this);
      const { quantities, source, reported, counted, warnings, isCut, cut } = metering instanceof Promise ? await metering : metering;
      const status = cancellation.isCallerGone ? "cancelled" : "ok";
      const cancelPolicy = plan.isFree ? "stop" : "finish";
      const { model, route } = answered;
      const receipt = await this.settle({
        quantities,
        source,
        reported,
        counted,
        warnings,
        isCut,
        cut,
        model,
        route,
        status,
        cancelPolicy,
      });
      return { answer: answered.answer, receipt, charged: this.charged };
    } catch (error) {
      await this.release();
      throw this.toCallerError(error);
    } finally {
      this.end();
    }
  }

  /**
   * `isLasting`: outlives this process. Null: an upstream may be called; else resolves when it may. Rejects with INSUFFICIENT_BALANCE,
   * KEY_BUDGET_EXHAUSTED, SERVICE_UNAVAILABLE or RATE_LIMITED.
   */
  hold(isLasting = false): Promise<void> | null {
    if (this.plan.request.quoting) giveQuote(this.plan, this.plan.request.quoting);
    const charge = openCharge(this.deps, this.plan, isLasting);
    this.charge = charge;
    const { hourly } = this;
    if (hourly !== null) return refusedWithQuote(charge.held, this.plan).then(() => hourly.begin(charge.heldAmount));
    if (charge.isHeld) return null;
    const held = runIdsOf(this.plan.caller) === undefined ? charge.held : this.heldOrApproved(charge, isLasting);
    return refusedWithQuote(held, this.plan);
  }

  /** A call at the limit of its run waits while the payer is asked. */
  private async heldOrApproved(charge: OpenCharge, isLasting: boolean): Promise<void> {
    try {
      await charge.held;
    } catch (refusal) {
      this.cancellation.restart(this.totalMs + RUN_APPROVAL_WAIT_MS);
      await this.deps.approvals.holdInTime(this.plan.caller, refusal, this.cancellation, () => this.holdAgain(isLasting));
      this.cancellation.restart(this.totalMs);
    }
  }

  private async holdAgain(isLasting: boolean): Promise<void> {
    await this.openCharge.release();
    const charge = openCharge(this.deps, this.plan, isLasting);
    this.charge = charge;
    await charge.held;
  }

  /** Rejects as `hold` does. */
  committed(): Promise<void> {
    return this.openCharge.held;
  }

  get heldNanocredits(): bigint {
    return this.openCharge.heldAmount;
  }

  /** See `OpenCharge`. */
  get chargeMost(): bigint | null {
    return this.openCharge.chargeMost;
  }

  /** See `OpenCharge`. */
  get isAtMaxCost(): boolean {
    return this.openCharge.isAtMaxCost;
  }

  get isConcluded(): boolean {
    return this.charge?.isConcluded ?? false;
  }

  get isNoteDue(): boolean {
    return this.openCharge.isNoteDue;
  }

  /** See `attemptInTurn`. A fallback's own fallbacks are not tried, and none after a disconnect. */
  attempt<Answer>(call: CallCandidate<Answer>, hedge: Hedge<Answer> | null = null): Promise<Answered<Answer>> {
    const { candidates, safety } = this.plan;
    this.noteCalled();
    return attemptInTurn(this, servable(candidates, safety?.applied), call, hedge);
  }

  noteCalled(): void {
    this.calledAt = performance.now();
  }

  noteUpstream(): void {
    if (this.calledAt !== null) this.upstreamMs = performance.now() - this.calledAt;
  }

  noteFirstByte(): void {
    this.firstByteMs ??= performance.now() - this.plan.startedAt;
  }

  noteSuccess({ model }: Candidate): void {
    if (model.isCommunity) this.deps.healthReporter.succeeded(this.plan.caller, model);
  }

  noteFailure(candidate: Candidate, error: unknown): void {
    const isFault = noteFailure(this.deps.healthReporter, this.plan.caller, candidate, error, this.cancellation);
    this.hasFailed ||= isFault;
  }

  /**
   * Reports the delivered usage; `isCapped`: no extension. `costNanocredits` may exceed the cost of `soFar` by work under way. Resolves
   * with the error that must stop it, or null.
   */
  meter(served: Candidate, costNanocredits: bigint, isCapped: boolean, soFar: () => BillableQuantities): Promise<AppError | null> {
    const record = () => {
      const quantities = soFar();
      const route = toRecordedRoute(served, this.operatorCostOf(served, quantities), this.attempts.failed);
      return this.recordOf(underWay(served.model.id, quantities, this.firstByteMs, route));
    };
    this.hourly?.extendTo(this.openCharge.heldAmount);
    return this.openCharge.meter(costNanocredits, isCapped, record);
  }

  /** Resolves when the charge is committed. A community model is never paid beyond the hold, even if it reports more. */
  async settle(outcome: Outcome): Promise<Receipt> {
    const { plan, deps, firstByteMs } = this;
    const { model, status, warnings, isCut = false, cut, cancelPolicy } = outcome;
    const rates = chargedRates(plan, outcome);
    const charge = this.openCharge;
    const isOfRun = runIdsOf(plan.caller) !== undefined;
    if (isOfRun || charge.isUncovered(costOf(outcome.quantities, rates))) await this.cover(outcome);
    const heldNanocredits = charge.heldAmount;
    const chargeMost = charge.settleMost;
    const isCapped = outcome.isCappedToHold || model.isCommunity || isOfRun;
    const held = isCapped ? this.capped(outcome, rates, heldNanocredits) : outcome;
    const { quantities, source } = chargeMost === null ? held : capToHold(held, rates, chargeMost);
    const isBounded = source === "bounded";
    if (isBounded) this.noteBounded(outcome, quantities);
    this.charged = quantities;
    const course = toCourse(heldNanocredits, this.upstreamMs, performance.now() - plan.startedAt);
    const upstreamCostNanocredits = this.operatorCostOf(outcome, outcome.quantities);
    const route = toRecordedRoute(outcome, upstreamCostNanocredits, this.attempts.failed);
    const countedNanocredits = plan.sharing && outcome.counted && costOf(outcome.counted(), atPrice(rates));
    const progress = {
      modelUsed: model.id,
      usage: quantities,
      usageSource: source,
      status,
      firstByteMs,
      course,
      route,
      countedNanocredits,
    };
    const record = this.recordOf(progress);
    const settlement = await charge.settle(costOf(quantities, rates), record);
    this.receipt = {
      generationId: plan.generationId,
      model: plan.model.id,
      modelUsed: model.id,
      upstream: route.upstream,
      route: route.route,
      vendorKeyId: outcome.route.vendorKey?.key.id ?? null,
      upstreamCostNanocredits,
      attempts: this.attempts.failed,
      usage: record.usage,
      usageSource: source,
      status,
      costNanocredits: settlement.chargedNanocredits,
      marginNanocredits: plan.sharing && marginIn(plan.sharing, settlement.chargedNanocredits),
      childCostNanocredits: deps.admission.childCosts.of(plan.model, plan.generationId),
      heldNanocredits,
      meterSource: settlement.meterSource,
      gatewayMs: Math.max(0, performance.now() - plan.startedAt - this.upstreamMs),
      upstreamMs: this.upstreamMs,
      responseMs: record.responseTimeMs,
      firstTokenMs: firstByteMs,
      warnings: warningsFor(plan.notes, warnings, isBounded),
      isCut,
      cut,
      cancelPolicy,
      safety: plan.safety,
    };
    this.hourly?.conclude(settlement.chargedNanocredits);
    this.measureRoute(outcome);
    deps.admission.concluded(plan, this.receipt);
    return this.receipt;
  }

  /** A run is never charged beyond its limit, so the hold is extended to the cost first. */
  private async cover(outcome: Outcome): Promise<void> {
    const { model, quantities } = outcome;
    const record = this.recordOf(underWay(model.id, quantities, this.firstByteMs));
    await this.openCharge.cover(costOf(quantities, chargedRates(this.plan, outcome)), record);
  }

  /** For the limits and measured times of the route. */
  private measureRoute(outcome: Outcome): void {
    if (!isWatched(outcome)) return;
    const { quantities, status } = outcome;
    const output = outputTokensOf(quantities);
    const untilFirst = this.firstByteMs === null || this.calledAt === null ? 0 : this.plan.startedAt + this.firstByteMs - this.calledAt;
    this.attempts.measure(outcome, status === "ok" ? this.upstreamMs - untilFirst : 0, output, inputTokensOf(quantities) + output);
  }

  /** For a community model, a report beyond the hold is implausible. */
  private capped(outcome: Outcome, rates: RateCard, heldNanocredits: bigint): Metered {
    const capped = capToHold(outcome, rates, heldNanocredits);
    const isReport = outcome.source === "provider" && outcome.model.isCommunity;
    return isReport && capped.quantities !== outcome.quantities ? { ...capped, source: "bounded" } : capped;
  }

  /** The rates of the requested model include those of the request's fields. */
  private ratesOf(served: Candidate): RateCard {
    return served.model.id === this.plan.model.id ? chargedRates(this.plan, served) : served.model.rates;
  }

  /** With hedged calls that lost; null: unknown. */
  private operatorCostOf(served: Candidate, quantities: BillableQuantities): bigint | null {
    return this.attempts.withLost(this.callCostOf(served, quantities));
  }

  /** What the operator pays for one call, in nanocredits; null: unknown. */
  callCostOf(served: Candidate, quantities: BillableQuantities): bigint | null {
    return operatorCostOf(served, quantities, this.ratesOf(served));
  }

  private noteBounded(outcome: Outcome, charged: BillableQuantities): void {
    const { quantities, reported = quantities } = outcome;
    this.deps.healthReporter.usageBounded(outcome, { generationId: this.plan.generationId, reported, charged });
  }

  /** Charges and records nothing, because nothing was delivered. Does nothing after a charge or release. */
  async release(): Promise<void> {
    if (this.charge && !this.charge.isConcluded) await this.charge.release(this.calledAt !== null);
  }

  /** Times so far. */
  timing(): Pick<Receipt, "gatewayMs" | "upstreamMs"> {
    const now = performance.now();
    const upstreamMs = this.calledAt === null ? 0 : now - this.calledAt;
    return { gatewayMs: now - this.plan.startedAt - upstreamMs, upstreamMs };
  }

  toCallerError(error: unknown): unknown {
    return error instanceof CallerGone ? upstreamFailed("The caller left before the answer came.", { cause: error }) : error;
  }

  end(): void {
    if (this.hasFailed && this.receipt === null) this.deps.healthReporter.generationFailed(this.plan.caller, this.plan.model);
    this.hasFailed = false;
    this.hourly?.conclude(0n);
    this.attempts.end(0);
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
