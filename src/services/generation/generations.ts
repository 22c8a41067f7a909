/** Generations of everything but chats: planned, let in, and run alike (`GenerationRun`), whatever they make. */
import type { RequestContext } from "../../context.js";
import type { AskedFields } from "../catalog/asked-rates.js";
import { misspeltFields } from "../catalog/field-names.js";
import type { Modality } from "../catalog/modality.js";
import type { Model } from "../catalog/model.js";
import { type BillableQuantities, costOf } from "../catalog/pricing.js";
import type { Admitted, GenerationTask, Words } from "./admission.js";
import type { Cancellation } from "./cancellation.js";
import { allInCallersWords } from "./failures.js";
import {
  assertPayable,
  type GenerationPlan,
  GenerationRun,
  type Metered,
  type RunDependencies,
  type RunOptions,
  type WholeResult,
} from "./run.js";

/** A generation whose amounts are known before it begins, as far as can be told. */
export interface PricedPlan extends GenerationPlan {
  /** What the hold covers. */
  readonly expected: BillableQuantities;
}

export interface GenerationWork<Answer> {
  /** Everything that the caller wrote and goes on. */
  readonly words: Words;
  /** The caller's `safe` parameter. */
  readonly safe?: string | null | undefined;
  /** `words` are those above, as far as they may be passed on. */
  readonly call: (model: Model, signal: AbortSignal, words: Words) => Promise<Answer>;
  /** `model` is the one that answered. */
  readonly meter: (answer: Answer, model: Model) => Metered | Promise<Metered>;
  /** What the upstream or the gateway left out, one sentence each. */
  readonly warnings?: (answer: Answer) => readonly string[];
  /** What `admit` has answered already, for whoever asked it before the work was known. */
  readonly admitted?: Admitted;
  /** See WholeWork. */
  readonly onHeld?: (cancellation: Cancellation) => Promise<void>;
}

export class Generations {
  constructor(private readonly deps: RunDependencies) {}

  /** Throws UNAUTHORIZED, BAD_REQUEST or FORBIDDEN. `expect` says what the model will be charged for at most, as far as can be told. */
  plan(
    ctx: RequestContext,
    modality: Modality,
    modelName: string | null | undefined,
    fields: AskedFields,
    expect: (model: Model) => BillableQuantities,
    generationId?: string,
  ): PricedPlan {
    const notes = misspeltFields(modality, fields);
    const task = this.deps.admission.task(ctx, { modality, modelName, fields, notes, generationId });
    return expecting(task, expect(task.model));
  }

  /** Resolves when the charge is committed, whether or not its caller is still there. */
  async run<Answer>(ctx: RequestContext, plan: GenerationPlan, work: GenerationWork<Answer>): Promise<WholeResult<Answer>> {
    const { words, safety } = work.admitted ?? (await this.admit(ctx, plan, work));
    const run = this.begin(ctx, { ...plan, safety });
    const { signal } = run.cancellation;
    return run.answer<Answer>({
      call: (model) => work.call(model, signal, words),
      meter: async ({ model, answer }) => {
        const metered = await work.meter(answer, model);
        return { ...metered, warnings: allInCallersWords(work.warnings?.(answer) ?? [], model) };
      },
      onHeld: work.onHeld,
    });
  }

  /** Limits, addresses and safety: to be passed before anything is held. */
  admit(ctx: RequestContext, plan: GenerationPlan, { words, safe }: Pick<GenerationWork<unknown>, "words" | "safe">): Promise<Admitted> {
    return this.deps.admission.pass(ctx, plan, words, safe);
  }

  /** See GenerationRun, whose `end` is its owner's to call. `ctx` ends it, be it not the one that it was planned with. */
  begin(ctx: RequestContext, plan: GenerationPlan, options?: RunOptions): GenerationRun {
    return new GenerationRun({ ...plan, request: ctx }, this.deps, options);
  }

  /** See `assertPayable` of run.ts. */
  assertPayable(plan: GenerationPlan): Promise<void> {
    return assertPayable(this.deps, plan);
  }
}

/** The same generation, which is now known to take so much. */
export function expecting(task: GenerationTask, expected: BillableQuantities): PricedPlan {
  return { ...task, expected, hold: { estimate: costOf(expected, task.model.rates) } };
}
