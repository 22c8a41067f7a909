/** Work that outlives its request: it is looked after, its writes are repeated, and its failures are reported. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import type { RequestContext } from "../../../context.js";
import { AppError, type ErrorCode } from "../../../errors.js";
import { Repeated } from "../../../lib/repeated.js";
import type { LateFailure } from "../../../lib/request-note.js";
import { toStorable } from "../../../lib/storable-text.js";
import { JOB_RETRY_MS, RECOVERY_SWEEP_MS } from "../../../limits.js";
import type { EventChannel, EventChannels, Events } from "../../../store/events.js";

interface LateWatchParts<C extends EventChannel> {
  readonly events: Events;
  readonly log: Logger;
  /** For the log when a look fails. */
  readonly failed: string;
  readonly channel: C;
  readonly onEvent: (payload: EventChannels[C]) => void;
  /** Concludes work of processes that ended. */
  readonly recover: () => Promise<void>;
  /** Stops work whose cancellation this process may have missed. */
  readonly stopCancelled: () => Promise<void>;
}

/** Concludes abandoned work at intervals, and stops work that another process cancelled. */
export class LateWatch<C extends EventChannel> {
  private readonly sweeps: Repeated;
  private readonly stops: readonly (() => void)[];

  constructor({ events, log, failed, channel, onEvent, recover, stopCancelled }: LateWatchParts<C>) {
    this.sweeps = new Repeated(recover, log, failed);
    this.stops = [
      events.listen(channel, onEvent),
      events.onGap(() => void stopCancelled().catch((error: unknown) => log.warn({ err: error }, failed))),
    ];
  }

  /** Call when abandoned holds have been recovered. Concludes work of an earlier process before it resolves. */
  async open(): Promise<void> {
    await this.sweep();
    this.sweeps.every(RECOVERY_SWEEP_MS);
  }

  sweep(): Promise<void> {
    return this.sweeps.now();
  }

  endSweeps(): Promise<void> {
    return this.sweeps.close();
  }

  /** Call when the work has ended: until then it can be cancelled. */
  stopListening(): void {
    for (const stop of this.stops) stop();
  }
}

/** Repeats a write with a pause while `mayRetry`; then rejects with its error. */
export async function insist<Result>(write: () => Promise<Result>, mayRetry: () => boolean): Promise<Result> {
  for (;;) {
    try {
      return await write();
    } catch (error) {
      if (!mayRetry()) throw error;
      await sleep(JOB_RETRY_MS);
    }
  }
}

/** For the request log. */
export function requestOf({ requestId, note }: RequestContext): LateFailure["request"] {
  return { requestId, route: note?.route ?? "", operation: note?.operation ?? null };
}

export interface LateError {
  readonly code: ErrorCode;
  readonly message: string;
  /** As in an error answer; for an upstream's refusal its details. */
  readonly details?: AppError["details"];
}

/** The caller's error in storable form; any other is logged, and has the message `unexpected`. */
export function toLateError(error: unknown, unexpected: string): LateError {
  if (!(error instanceof AppError)) return { code: "INTERNAL_ERROR", message: unexpected };
  const { code, message, details } = error;
  return { code, message: toStorable(message), ...(details && { details }) };
}
