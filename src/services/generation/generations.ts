/**
 * Generations that are answered whole: everything but streams. One path for every modality, so that each is held, tried,
 * metered and charged alike (docs/architecture.md#a-generation-end-to-end).
 *
 * 1. `plan`: who pays, which model, what it may cost.
 * 2. `run`: limits and safety, hold, call the candidates in turn, meter, settle. Nothing is charged for what was not delivered.
 */
import type { KeyCaller, RequestContext, SessionCaller } from "../../context.js";
import { upstreamFailed } from "../../errors.js";
import { createId } from "../../lib/ids.js";
import { NO_USAGE, USAGE_KINDS, type UsageQuantities } from "../../lib/usage.js";
import type { LedgerRecord } from "../../store/ledger.js";
import { requireCaller } from "../access/permissions.js";
import type { Catalog } from "../catalog/catalog.js";
import type { Modality } from "../catalog/modality.js";
import type { Model } from "../catalog/model.js";
import { type BillableQuantities, costOf, isFree } from "../catalog/pricing.js";
import { type Credits, type OpenCharge, payerOf } from "../credits/credits.js";
import { servable } from "../safety/features.js";
import type { Admission, Admitted } from "./admission.js";
import { type AskedFields, toAskedModel } from "./asked-model.js";
import { attempt, noteFailure } from "./attempts.js";
import { CallerGone, Cancellation } from "./cancellation.js";
import { capToHold } from "./cap-to-hold.js";
import { takeGenerationId } from "./generation-id.js";
import type { HealthReporter } from "./health-reporter.js";
import { misspeltFields } from "./misspelt-fields.js";
import type { Receipt, UsageSource } from "./receipt.js";
import type { RunningGenerations } from "./running-generations.js";
import { allInCallersWords } from "./upstream-words.js";
import type { Upstreams } from "./upstreams.js";
import { joinWarnings } from "./warnings.js";

export interface GenerationDependencies {
  readonly catalog: Catalog;
  readonly credits: Credits;
  readonly upstreams: Upstreams;
  readonly admission: Admission;
  readonly healthReporter: HealthReporter;
  readonly running: RunningGenerations;
  /** A generation's total, in milliseconds. */
  readonly totalMs: number;
}

export interface GenerationPlan {
  readonly generationId: string;
  readonly caller: KeyCaller | SessionCaller;
  readonly model: Model;
  /** The model itself, then its fallbacks, in the order in which they are tried. */
  readonly candidates: readonly Model[];
  /** What the hold covers. */
  readonly expected: BillableQuantities;
  /** What the request itself is warned of, before anybody has answered it. */
  readonly notes: readonly string[];
  /** Monotonic milliseconds. */
  readonly startedAt: number;
}

/** What an answer is charged for. */
export interface MeteredAnswer {
  readonly quantities: BillableQuantities;
  readonly source: UsageSource;
}

export interface GenerationWork<Answer> {
  /** Everything that the caller wrote and the model will read. */
  readonly texts: readonly string[];
  /** The caller's `safe` parameter. */
  readonly safe?: string | null | undefined;
  /** `texts` are those above, as far as they may be passed on. */
  readonly call: (model: Model, signal: AbortSignal, texts: readonly string[]) => Promise<Answer>;
  readonly meter: (answer: Answer) => MeteredAnswer | Promise<MeteredAnswer>;
  /** What the upstream or the gateway left out, one sentence each. */
  readonly warnings?: (answer: Answer) => readonly string[];
  /** What `admit` has answered already, for whoever asked it before the work was known. */
  readonly admitted?: Admitted;
  /** The hold is committed; the upstream is called when this resolves. Without it, a caller with plenty does not wait for the hold. */
  readonly onHeld?: (cancellation: Cancellation) => Promise<void>;
}

/** How a generation ended that is to be charged. */
export interface GenerationOutcome extends MeteredAnswer, Pick<Receipt, "modelUsed" | "status" | "upstreamMs" | "warnings" | "safety"> {
  /** From the request to the answer's first byte; null when it was answered whole. */
  readonly firstByteMs: number | null;
}

export interface GenerationResult<Answer> {
  readonly answer: Answer;
  readonly receipt: Receipt;
}

export class Generations {
  constructor(private readonly deps: GenerationDependencies) {}

  /**
   * Throws UNAUTHORIZED, BAD_REQUEST or FORBIDDEN. `expect` says what the model will be charged for at most, as far as can be told;
   * `fields` are those of the request that reach the upstream as they are, and those that may have prices of their own.
   */
  plan(
    ctx: RequestContext,
    modality: Modality,
    modelName: string | null | undefined,
    fields: AskedFields,
    expect: (model: Model) => BillableQuantities,
  ): GenerationPlan {
    const startedAt = performance.now();
    const { catalog } = this.deps;
    const caller = requireCaller(ctx);
    const model = toAskedModel(catalog.resolve(caller, modelName ?? undefined, modality), fields);
    const generationId = takeGenerationId(ctx);
    ctx.note?.began(generationId, model.id);
    return {
      generationId,
      caller,
      model,
      candidates: [model, ...catalog.fallbacksOf(model).filter((fallback) => catalog.isAllowed(caller, fallback))],
      expected: expect(model),
      notes: misspeltFields(modality, fields),
      startedAt,
    };
  }

  /** Resolves when the charge is committed, whether or not its caller is still there. */
  async run<Answer>(ctx: RequestContext, plan: GenerationPlan, work: GenerationWork<Answer>): Promise<GenerationResult<Answer>> {
    const { texts, safety } = work.admitted ?? (await this.admit(ctx, plan, work));
    const charge = this.open(plan);
    if (!charge.isComfortable) await charge.held;
    const cancellation = new Cancellation(ctx.signal, this.deps.totalMs);
    this.deps.running.begin(cancellation);
    cancellation.followHold(charge);
    try {
      if (work.onHeld) await charge.held.then(() => work.onHeld?.(cancellation));
      // What an upstream has begun is paid for, so it is finished whoever waits. Nobody pays for what is free.
      if (!isFree(plan.model.rates)) cancellation.outlast(Number.POSITIVE_INFINITY);
      const calledAt = performance.now();
      const candidates = servable(plan.candidates, safety?.applied);
      const { signal } = cancellation;
      const answered = await attempt(
        candidates,
        cancellation,
        (candidate) => work.call(candidate, signal, texts),
        (candidate, error) => this.noteFailure(plan, candidate, error, signal),
      );
      this.noteSuccess(plan, answered.model);
      const upstreamMs = performance.now() - calledAt;
      const metered = await work.meter(answered.answer);
      await charge.held;
      const warnings = allInCallersWords(work.warnings?.(answered.answer) ?? [], answered.model);
      const status = cancellation.isCallerGone ? "cancelled" : "ok";
      const outcome = { ...metered, modelUsed: answered.model.id, status, firstByteMs: null, upstreamMs, warnings, safety } as const;
      return { answer: answered.answer, receipt: await this.conclude(ctx, plan, charge, outcome) };
    } catch (error) {
      // Nothing was delivered, so nothing is charged. A settlement that failed has concluded the charge itself.
      if (!charge.isConcluded) await charge.release();
      throw error instanceof CallerGone ? upstreamFailed("The caller left before the answer came.", { cause: error }) : error;
    } finally {
      cancellation.dispose();
      this.deps.running.end(cancellation);
    }
  }

  /** One of its candidates has given its whole answer. */
  noteSuccess({ caller }: GenerationPlan, model: Model): void {
    this.deps.healthReporter.succeeded(caller, model);
  }

  /** One of its candidates has not; see `noteFailure` of attempts. */
  noteFailure({ caller }: GenerationPlan, model: Model, error: unknown, signal: AbortSignal): void {
    noteFailure(this.deps.healthReporter, caller, model, error, signal);
  }

  /** The charge of a plan. */
  open(plan: GenerationPlan): OpenCharge {
    const { caller, model } = plan;
    return this.deps.credits.open({
      generationId: plan.generationId,
      payer: payerOf(caller),
      estimate: costOf(plan.expected, model.rates),
      paidOnly: model.paidOnly,
      isFree: isFree(model.rates),
      record: toGenerationRecord(plan, { modelUsed: model.id, quantities: NO_USAGE, usageSource: "partial", status: "cancelled" }),
    });
  }

  /**
   * Rejects as a hold of what is expected does, and holds nothing: before the gateway does work of its own to find out what the
   * generation will cost.
   */
  async assertPayable(plan: GenerationPlan): Promise<void> {
    const charge = this.open({ ...plan, generationId: createId() });
    try {
      if (!charge.isComfortable) await charge.held;
    } finally {
      await charge.release();
    }
  }

  /** Limits and safety: to be passed before anything is held. */
  admit(ctx: RequestContext, { caller, model }: GenerationPlan, work: Pick<GenerationWork<unknown>, "texts" | "safe">): Promise<Admitted> {
    return this.deps.admission.admit(ctx, { caller, model, texts: work.texts, safe: work.safe ?? null });
  }

  /** Charges what was metered. Resolves when that is committed. */
  async conclude(ctx: RequestContext, plan: GenerationPlan, charge: OpenCharge, outcome: GenerationOutcome): Promise<Receipt> {
    const { modelUsed, quantities: metered, source: from, status, firstByteMs, ...course } = outcome;
    const { rates, isCommunity } = plan.model;
    const told = { quantities: metered, source: from };
    const { quantities, source } = isCommunity ? capToHold(told, rates, charge.heldAmount) : told;
    const record = toGenerationRecord(plan, { modelUsed, quantities, usageSource: source, status, firstByteMs });
    const settlement = await charge.settle(costOf(quantities, rates), record);
    const receipt: Receipt = {
      generationId: plan.generationId,
      model: plan.model.id,
      modelUsed,
      usage: record.usage,
      usageSource: source,
      status,
      costNanocredits: settlement.chargedNanocredits,
      heldNanocredits: charge.heldAmount,
      meterSource: settlement.meterSource,
      ...course,
      warnings: joinWarnings(plan.notes, course.warnings),
      gatewayMs: Math.max(0, performance.now() - plan.startedAt - course.upstreamMs),
      responseMs: record.responseTimeMs,
      firstTokenMs: firstByteMs,
      cancelPolicy: isFree(rates) ? "stop" : "finish",
    };
    this.deps.admission.concluded(ctx, plan, receipt);
    return receipt;
  }
}

/** The usage row of a generation; `credit_flush` adds what was charged and by which bucket. */
export function toGenerationRecord(
  { caller, model, startedAt }: GenerationPlan,
  progress: {
    readonly modelUsed: string;
    readonly quantities: BillableQuantities;
    readonly usageSource: UsageSource;
    readonly status: Receipt["status"];
    readonly firstByteMs?: number | null;
  },
): LedgerRecord {
  const isKey = caller.kind === "key";
  return {
    timestamp: new Date().toISOString(),
    apiKeyName: isKey ? caller.apiKeyName : null,
    apiKeyType: isKey ? caller.apiKeyType : null,
    // Usage knows no kind for it: a moderation model reads text (docs/spec/usage.md#rows).
    modality: model.modality === "moderation" ? "text" : model.modality,
    model: model.id,
    modelUsed: progress.modelUsed,
    usage: recordedUsage(progress.quantities),
    responseTimeMs: Math.round(performance.now() - startedAt),
    timeToFirstTokenMs: progress.firstByteMs == null ? null : Math.round(progress.firstByteMs),
    status: progress.status,
    usageSource: progress.usageSource,
    parentRequestId: caller.run?.parentRequestId ?? null,
  };
}

/** What of it the usage row has columns for. */
function recordedUsage(quantities: BillableQuantities): UsageQuantities {
  return Object.fromEntries(USAGE_KINDS.map((kind) => [kind, quantities[kind]])) as unknown as UsageQuantities;
}
