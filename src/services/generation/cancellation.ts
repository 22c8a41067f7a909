/**
 * Cancellation: one signal for an upstream call, aborted when the caller leaves, when the total time is up, or when the hold is
 * refused. Its reason tells which.
 */
import { upstreamTimedOut } from "../../errors.js";
import type { OpenCharge } from "../credits/credits.js";

/** The reason of the abort when the caller has gone: nobody will read an answer. */
export class CallerGone extends Error {
  override readonly name = "CallerGone";
}

export class Cancellation {
  private readonly controller = new AbortController();
  private readonly timer: NodeJS.Timeout;
  private readonly onCallerGone = () => this.controller.abort(new CallerGone("The caller has gone"));

  constructor(
    private readonly callerSignal: AbortSignal,
    totalMs: number,
  ) {
    this.timer = setTimeout(() => this.controller.abort(upstreamTimedOut("The generation took too long.", { isFinal: true })), totalMs);
    if (callerSignal.aborted) this.onCallerGone();
    else callerSignal.addEventListener("abort", this.onCallerGone, { once: true });
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  get isCallerGone(): boolean {
    return this.signal.reason instanceof CallerGone;
  }

  /** The upstream call runs beside the hold's commit and ends when that is refused. */
  followHold(charge: OpenCharge): void {
    charge.held.catch((refusal: unknown) => this.controller.abort(refusal));
  }

  leave(): void {
    this.onCallerGone();
  }

  /** Call when the upstream has answered or failed. */
  dispose(): void {
    clearTimeout(this.timer);
    this.callerSignal.removeEventListener("abort", this.onCallerGone);
  }
}
