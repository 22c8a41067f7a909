/** Attempts: the model that was asked for, then its fallbacks, until one answers (decisions "Generation"). */
import type { Model } from "../catalog/model.js";
import { mayFallBack, toCallerError } from "./upstream-errors.js";

export interface Answered<Answer> {
  /** The one that answered. */
  readonly model: Model;
  readonly answer: Answer;
}

/** Rejects with what the caller is told of the last failure. A fallback's own fallbacks are not followed. */
export async function attempt<Answer>(
  candidates: readonly Model[],
  signal: AbortSignal,
  call: (model: Model) => Promise<Answer>,
): Promise<Answered<Answer>> {
  let failure: unknown;
  for (const model of candidates) {
    try {
      return { model, answer: await call(model) };
    } catch (error) {
      failure = error;
      if (signal.aborted || !mayFallBack(error)) break;
    }
  }
  throw toCallerError(failure);
}
