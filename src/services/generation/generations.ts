/** Generations of all modalities but chat: planned, admitted and run alike (`GenerationRun`). */
import type { CostRange, RequestContext } from "../../context.js";
import { larger, smaller } from "../../lib/money.js";
import { misspeltFields } from "../catalog/field-names.js";
import type { Modality } from "../catalog/modality.js";
import type { Model } from "../catalog/model.js";
import { type BillableQuantities, costOf } from "../catalog/pricing.js";
import type { RequestFields } from "../catalog/request-rates.js";
import type { Admitted, GenerationTask, Words } from "./admission.js";
import type { Cancellation } from "./cancellation.js";
import { allInCallersWords } from "./failures.js";
import type { Metered } from "./metered.js";
import { assertPayable, type GenerationPlan } from "./planned-charge.js";
import type { AmountBounds } from "./plausible.js";
import { type PlannedCosts, quoteFor } from "./quote.js";
import type { Candidate } from "./routing/candidate.js";
import { GenerationRun, type RunDependencies, type RunOptions, type WholeResult } from "./run.js";

export interface PricedPlan extends GenerationPlan {
  readonly expected: BillableQuantities;
  readonly bounds: AmountBounds;
}

export interface GenerationWork<Answer> {
  readonly words: Words;
  readonly safe?: string | null | undefined;
  /** `words` are those above after redaction. */
  readonly call: (candidate: Candidate, signal: AbortSignal, words: Words) => Promise<Answer>;
  readonly meter: (answer: Answer, served: Candidate) => Metered | Promise<Metered>;
  readonly warnings?: (answer: Answer) => readonly string[];
  readonly admitted?: Admitted;
  /** A generation of its own within the call, for the quote. Absent: there is none. */
  readonly including?: ((ctx: RequestContext) => Promise<unknown>) | undefined;
  /** See WholeWork. */
  readonly onHeld?: (cancellation: Cancellation) => Promise<void>;
}

export class Generations {
  constructor(private readonly deps: RunDependencies) {}

  /** Throws UNAUTHORIZED, BAD_REQUEST or FORBIDDEN. `expect` returns the largest expected amounts. */
  plan(
    ctx: RequestContext,
    modality: Modality,
    modelName: string | null | undefined,
    fields: RequestFields,
    expect: (model: Model) => BillableQuantities,
    bounds: AmountBounds = NO_BOUNDS,
    generationId?: string,
  ): PricedPlan {
    const notes = misspeltFields(modality, fields);
    const task = this.deps.admission.task(ctx, { modality, modelName, fields, notes, generationId });
    return expecting(task, expect(task.model), bounds);
  }

  async run<Answer>(ctx: RequestContext, plan: GenerationPlan, work: GenerationWork<Answer>): Promise<WholeResult<Answer>> {
    const { words, safety } = work.admitted ?? (await this.admit(ctx, plan, work));
    const included = ctx.quoting && work.including ? await quoteFor(ctx, work.including) : null;
    const run = this.begin(ctx, { ...(included ? withIncluded(plan, included) : plan), safety });
    const { signal } = run.cancellation;
    return run.answer<Answer>({
      call: (candidate) => work.call(candidate, signal, words),
      meter: async (served) => {
        const { answer } = served;
        const metered = await work.meter(answer, served);
        return { ...metered, warnings: allInCallersWords(work.warnings?.(answer) ?? [], served) };
      },
      onHeld: work.onHeld,
    });
  }

  /** Checks limits, addresses and safety, before the hold. */
  admit(ctx: RequestContext, plan: GenerationPlan, { words, safe }: Pick<GenerationWork<unknown>, "words" | "safe">): Promise<Admitted> {
    return this.deps.admission.pass(ctx, plan, words, safe);
  }

  /** See GenerationRun; its owner must call `end`. `ctx` ends it, and may differ from the planning one. */
  begin(ctx: RequestContext, plan: GenerationPlan, options?: RunOptions): GenerationRun {
    return new GenerationRun({ ...plan, request: ctx }, this.deps, options);
  }

  assertPayable(plan: GenerationPlan): Promise<void> {
    return assertPayable(this.deps, plan);
  }
}

function withIncluded(plan: GenerationPlan, { least, expected, most }: CostRange): GenerationPlan {
  const costs = () => {
    const own = plan.costs(plan);
    return { ...own, least: own.least + least, expected: own.expected + expected, most: own.most + most };
  };
  return { ...plan, costs };
}

const NO_BOUNDS: AmountBounds = {};

export function expecting(task: GenerationTask, expected: BillableQuantities, bounds = NO_BOUNDS): PricedPlan {
  return { ...task, expected, bounds, hold: { estimate: costOf(expected, task.model.rates) }, costs: costsOfAmounts };
}

function costsOfAmounts({ expected, bounds, hold, model: { rates } }: PricedPlan): PlannedCosts {
  const costOfMost = costOf(bounds.most?.() ?? expected, rates);
  const costOfLeast = costOf(bounds.least?.() ?? expected, rates);
  const { estimate } = hold;
  return { least: smaller(costOfLeast, estimate), expected: estimate, most: larger(costOfMost, estimate), notes: bounds.notes?.() ?? [] };
}
