/**
 * Cancellation: what ends an upstream call: when the caller leaves, when the total time is up, or when the hold is
 * refused. Its reason tells which.
 *
 * What an upstream has accepted is paid for (docs/spec/credits.md#callers-who-leave), so a caller who leaves may not end it: `outlast`
 * says for how long the upstream goes on without them.
 */
import type { Leaving } from "../../context.js";
import { type AppError, serviceUnavailable, upstreamTimedOut } from "../../errors.js";
import { type Listed, Roster } from "../../lib/roster.js";
import { type CallEnd, type EndListener, toSignal } from "../../providers/provider.js";

/** The reason of the abort when the caller has gone: nobody will read an answer. */
export class CallerGone extends Error {
  override readonly name = "CallerGone";
}

/** An AbortSignal costs more than all the rest of this, so it is made for those alone who need one. */
export class Cancellation implements CallEnd, Listed {
  rosterPlace = -1;
  aborted = false;
  reason: unknown;
  private ownSignal: AbortSignal | null = null;
  private listeners: EndListener[] = [];
  private readonly timer: NodeJS.Timeout;
  private graceTimer: NodeJS.Timeout | undefined;
  private graceMs = 0;
  private hasLeft = false;
  private isOver = false;
  private isDisposed = false;
  private readonly callerSignal: AbortSignal | null;
  private readonly onCallerGone = () => this.leave();

  constructor(
    caller: AbortSignal | Leaving,
    totalMs: number,
    readonly isStreamed = false,
  ) {
    this.timer = setTimeout(endInTime, totalMs, this);
    this.callerSignal = caller instanceof AbortSignal ? caller : null;
    if (!(caller instanceof AbortSignal)) caller.onGone(this.onCallerGone);
    else if (caller.aborted) this.leave();
    else caller.addEventListener("abort", this.onCallerGone, { once: true });
  }

  get signal(): AbortSignal {
    this.ownSignal ??= toSignal(this);
    return this.ownSignal;
  }

  addEventListener(_type: "abort", listener: EndListener): void {
    this.listeners.push(listener);
  }

  removeEventListener(_type: "abort", listener: EndListener): void {
    const index = this.listeners.indexOf(listener);
    if (index !== -1) this.listeners.splice(index, 1);
  }

  /** Nobody waits for the answer any more, whether or not its upstream goes on. */
  get isCallerGone(): boolean {
    return this.hasLeft;
  }

  /** The total time is up, whatever ended it before. */
  get isTimeUp(): boolean {
    return this.isOver;
  }

  /** Ends the upstream call whoever waits for it: the process stops. */
  stop(reason: AppError): void {
    this.abort(reason);
  }

  /** The total time is up. */
  expire(): void {
    this.isOver = true;
    this.abort(upstreamTimedOut("The generation took too long.", { isFinal: true }));
  }

  /** From here on the upstream goes on for that long after its caller has left; `Infinity`: as long as any other. */
  outlast(graceMs: number): void {
    this.graceMs = graceMs;
  }

  leave(): void {
    if (this.hasLeft) return;
    this.hasLeft = true;
    const end = () => this.abort(new CallerGone("The caller has gone"));
    if (this.graceMs === 0) end();
    else if (Number.isFinite(this.graceMs) && !this.isDisposed) this.graceTimer = setTimeout(end, this.graceMs);
  }

  /** Call when the upstream has answered or failed. */
  dispose(): void {
    clearTimeout(this.timer);
    clearTimeout(this.graceTimer);
    this.isDisposed = true;
    this.callerSignal?.removeEventListener("abort", this.onCallerGone);
  }

  /** Once: the first reason stays. */
  private abort(reason: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    const { listeners } = this;
    this.listeners = [];
    for (const listener of listeners) listener.handleEvent();
  }
}

function endInTime(cancellation: Cancellation): void {
  cancellation.expire();
}

/**
 * Generations that are under way. One whose caller has left goes on without a connection
 * (docs/spec/credits.md#callers-who-leave: what an upstream has accepted is paid for), so a gateway that stops waits for them
 * here, for a bounded time, and then stops them at no cost.
 */
export class RunningGenerations {
  private readonly running = new Roster<Cancellation>();
  private streams = 0;
  private onIdle: (() => void) | null = null;

  get count(): number {
    return this.running.size;
  }

  /** Those of them that are streamed. */
  get streamCount(): number {
    return this.streams;
  }

  begin(cancellation: Cancellation): void {
    this.running.add(cancellation);
    if (cancellation.isStreamed) this.streams += 1;
  }

  /** Doing it again changes nothing. */
  end(cancellation: Cancellation): void {
    if (cancellation.rosterPlace === -1) return;
    this.running.delete(cancellation);
    if (cancellation.isStreamed) this.streams -= 1;
    if (this.running.size === 0) this.onIdle?.();
  }

  /** Resolves when none is left. */
  async close(patienceMs: number): Promise<void> {
    if (this.running.size === 0) return;
    const idle = new Promise<void>((resolve) => {
      this.onIdle = resolve;
    });
    const timer = setTimeout(() => {
      const reason = serviceUnavailable("The gateway was stopped before this was finished. Nothing was charged.");
      for (const cancellation of this.running.all()) cancellation.stop(reason);
    }, patienceMs);
    await idle;
    clearTimeout(timer);
  }
}
