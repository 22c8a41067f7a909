/** Attempts: the model that was asked for, then its fallbacks, until one answers (docs/spec/generation.md#fallbacks). */
import type { KeyCaller, SessionCaller } from "../../context.js";
import { AppError, type ErrorCode } from "../../errors.js";
import type { Model } from "../catalog/model.js";
import type { Cancellation } from "./cancellation.js";
import type { HealthReporter } from "./health-reporter.js";
import { mayFallBack, toCallerError } from "./upstream-errors.js";

export interface Answered<Answer> {
  /** The one that answered. */
  readonly model: Model;
  readonly answer: Answer;
}

/** Whether anybody still waits for the answer. */
export type Waiting = Pick<Cancellation, "signal" | "isCallerGone">;

/**
 * Rejects with what the caller is told of the first failure, which is that of the model that was asked for: it is what a repetition
 * meets first, and a fallback that finds the request wanting says nothing about that model. What ends all of it from here, such as the
 * time that is up, is told instead. A fallback's own fallbacks are not followed, and nobody else is asked for a caller who has gone.
 * `onFailure` is told of each.
 */
export async function attempt<Answer>(
  candidates: readonly Model[],
  waiting: Waiting,
  call: (model: Model) => Promise<Answer>,
  onFailure?: (model: Model, error: unknown) => void,
): Promise<Answered<Answer>> {
  const failures: unknown[] = [];
  for (const model of candidates) {
    try {
      return { model, answer: await call(model) };
    } catch (error) {
      failures.push(toCallerError(error, model));
      onFailure?.(model, error);
      if (waiting.signal.aborted || waiting.isCallerGone || !mayFallBack(error)) break;
    }
  }
  throw waiting.signal.aborted ? failures.at(-1) : failures[0];
}

/**
 * The failures that speak against a model. What the caller did wrong, a refusal and a limit do not, nor what is not known to be the
 * upstream's doing.
 */
const FAULTS: ReadonlySet<ErrorCode> = new Set(["UPSTREAM_ERROR", "UPSTREAM_TIMEOUT", "SERVICE_UNAVAILABLE", "INTERNAL_ERROR"]);

/** Tells of a call that ended with `error`, unless it says nothing about the model: `signal` is what would have ended it early. */
export function noteFailure(
  healthReporter: HealthReporter,
  caller: KeyCaller | SessionCaller,
  model: Model,
  error: unknown,
  signal: AbortSignal,
): void {
  // What ends a call from here is no doing of the upstream's, but for the time that is up.
  healthReporter.upstreamFailed(model, signal.aborted ? signal.reason : error);
  const told = signal.aborted ? signal.reason : toCallerError(error, model);
  if (!(told instanceof AppError)) return;
  if (signal.aborted ? told.code === "UPSTREAM_TIMEOUT" : FAULTS.has(told.code)) healthReporter.failed(caller, model);
}
