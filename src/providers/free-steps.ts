/**
 * Retries free steps after the paid one: polling a job, downloading its file, fetching an image by URL. A failure there would lose paid
 * work; the paid step itself is never retried.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { ProviderError } from "../formats/upstream-error.js";
import { OutboundError } from "../lib/outbound-guard.js";
import { FREE_STEP_ATTEMPTS_MAX, FREE_STEP_RETRY_AFTER_MS_MAX, FREE_STEP_WAIT_MS_FIRST, FREE_STEP_WAIT_MS_MAX } from "../limits.js";

/** Statuses that may change: 404 for a file that its store does not show yet, and those that ask to wait. */
const PASSING_STATUSES: ReadonlySet<number> = new Set([404, 408, 409, 425, 429]);
const PASSING_KINDS: ReadonlySet<string> = new Set(["network", "closed", "timeout", "cut"]);

export function isPassingStatus(status: number): boolean {
  return status >= 500 || PASSING_STATUSES.has(status);
}

/** Whether a retry may succeed. */
export function isPassing(error: unknown): boolean {
  if (error instanceof OutboundError) return error.isPassing || isPassingStatus(error.status ?? 0);
  if (!(error instanceof ProviderError)) return false;
  if (error.cause instanceof OutboundError) return isPassing(error.cause);
  return PASSING_KINDS.has(error.kind) || (error.kind === "status" && isPassingStatus(error.status ?? 0));
}

/** Retries `attempt` after passing failures, a bounded number of times. Rejects with the signal's reason when that is aborted. */
export async function repeatFreeStep<Result>(
  signal: AbortSignal,
  attempt: () => Promise<Result>,
  wait: typeof pause = pause,
): Promise<Result> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await attempt();
    } catch (error) {
      signal.throwIfAborted();
      if (failures === FREE_STEP_ATTEMPTS_MAX || !isPassing(error)) throw error;
      await wait(waitMsAfter(failures, error), signal);
    }
  }
}

/** Milliseconds before the next attempt: doubled each time, or the upstream's `Retry-After`. */
export function waitMsAfter(failures: number, error?: unknown): number {
  const ownMs = Math.min(FREE_STEP_WAIT_MS_FIRST * 2 ** (failures - 1), FREE_STEP_WAIT_MS_MAX);
  return Math.max(ownMs, retryAfterMsOf(error));
}

/** Milliseconds that a refusal asks to wait, bounded; 0 when not stated. */
export function retryAfterMsOf(error: unknown): number {
  const seconds = error instanceof ProviderError ? (error.retryAfterSeconds ?? 0) : 0;
  return Math.min(seconds * 1_000, FREE_STEP_RETRY_AFTER_MS_MAX);
}

/** Rejects with the signal's reason when that is aborted. */
export async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(milliseconds, undefined, { signal });
  } catch {
    throw signal.reason;
  }
}
