/**
 * Ends an upstream call: when the client disconnects, at the time limit, or when a hold is refused. The reason says which.
 *
 * Work that an upstream has accepted is charged (docs/spec/credits.md#callers-who-leave), so a disconnect need not end it: `outlast` sets
 * how long the upstream continues.
 */
import { LRUCache } from "lru-cache";
import type { Leaving } from "../../context.js";
import { type AppError, accountSuspended, serviceUnavailable, upstreamTimedOut } from "../../errors.js";
import { type Indexed, IndexedSet } from "../../fast/indexed-set.js";
import { entriesMax } from "../../lib/bounded.js";
import { type CallEnd, type EndListener, toSignal } from "../../providers/provider.js";
import { SUSPENDED_ACCOUNTS_MAX } from "../access/limits.js";
import { runEnded } from "../api-keys/key-refusals.js";
import { ENDED_RUNS_MAX } from "../runs/limits.js";

/** The abort reason after the client disconnected: the answer will not be read. */
export class CallerGone extends Error {
  override readonly name = "CallerGone";
}

/** Creates an AbortSignal only on demand, because it costs more than all the rest. */
export class Cancellation implements CallEnd, Indexed {
  setIndex = -1;
  aborted = false;
  reason: unknown;
  private ownSignal: AbortSignal | null = null;
  private listeners: EndListener[] = [];
  private timer: NodeJS.Timeout;
  private graceTimer: NodeJS.Timeout | undefined;
  private graceMs = 0;
  private hasLeft = false;
  private isOver = false;
  private isDisposed = false;
  private hasBeenRefused = false;
  private readonly callerSignal: AbortSignal | null;
  private readonly onCallerGone = () => this.leave();

  constructor(
    caller: AbortSignal | Leaving,
    totalMs: number,
    readonly isStreamed = false,
    /** The account that pays. */
    readonly accountId = "",
    /** Its runs; undefined: none. */
    readonly runIds: readonly string[] | undefined = undefined,
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

  /** The client has disconnected, whether or not the upstream continues. */
  get isCallerGone(): boolean {
    return this.hasLeft;
  }

  /** True even if something else ended it before. */
  get isTimeUp(): boolean {
    return this.isOver;
  }

  /** The account was suspended, or the run ended, meanwhile. */
  get isRefused(): boolean {
    return this.hasBeenRefused;
  }

  /** Ends it because the caller may not generate any more. */
  refuse(reason: AppError): void {
    this.hasBeenRefused = true;
    this.abort(reason);
  }

  /** The time limit begins now, after a wait for the payer. */
  restart(totalMs: number): void {
    if (this.isDisposed) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(endInTime, totalMs, this);
  }

  /** Ends the upstream call for any reader: the process stops. */
  stop(reason: AppError): void {
    this.abort(reason);
  }

  expire(): void {
    this.isOver = true;
    this.abort(upstreamTimedOut("The generation took too long.", { isFinal: true }));
  }

  /** From now on the upstream continues for that long after a disconnect; `Infinity`: to its end. */
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

  dispose(): void {
    clearTimeout(this.timer);
    clearTimeout(this.graceTimer);
    this.isDisposed = true;
    this.callerSignal?.removeEventListener("abort", this.onCallerGone);
  }

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
 * Generations under way. After a disconnect one continues without a connection (docs/spec/credits.md#callers-who-leave), so a stopping
 * gateway waits for them here, for a bounded time, and then stops them at no cost.
 */
export class RunningGenerations {
  private readonly running = new IndexedSet<Cancellation>();
  /** Accounts that were suspended while this process ran: a caller may have been authenticated just before. */
  private readonly suspended = new LRUCache<string, true>(entriesMax(SUSPENDED_ACCOUNTS_MAX));
  /** Runs that ended while this process ran. */
  private readonly endedRuns = new LRUCache<string, true>(entriesMax(ENDED_RUNS_MAX));
  private streams = 0;
  private onIdle: (() => void) | null = null;

  get count(): number {
    return this.running.size;
  }

  get streamCount(): number {
    return this.streams;
  }

  /** Throws ACCOUNT_SUSPENDED, or UNAUTHORIZED for a run that has ended. */
  begin(cancellation: Cancellation): void {
    const { accountId, runIds } = cancellation;
    if (this.suspended.size > 0 && this.suspended.has(accountId)) {
      cancellation.dispose();
      throw accountSuspended();
    }
    if (runIds?.some((id) => this.endedRuns.has(id))) {
      cancellation.dispose();
      throw runEnded();
    }
    this.running.add(cancellation);
    if (cancellation.isStreamed) this.streams += 1;
  }

  end(cancellation: Cancellation): void {
    if (cancellation.setIndex === -1) return;
    this.running.delete(cancellation);
    if (cancellation.isStreamed) this.streams -= 1;
    if (this.running.size === 0) this.onIdle?.();
  }

  /** Ends all generations of the account, and refuses new ones. */
  suspend(accountId: string): void {
    this.suspended.set(accountId, true);
    for (const cancellation of this.running.all()) if (cancellation.accountId === accountId) cancellation.refuse(accountSuspended());
  }

  /** Ends all generations of the run and of the runs below it, and refuses new ones. */
  endRun(runId: string): void {
    this.endedRuns.set(runId, true);
    for (const cancellation of this.running.all()) if (cancellation.runIds?.includes(runId)) cancellation.refuse(runEnded());
  }

  /** The runs with generations under way. */
  runIds(): ReadonlySet<string> {
    const ids = new Set<string>();
    for (const { runIds = [] } of this.running.all()) for (const id of runIds) ids.add(id);
    return ids;
  }

  restore(accountId: string): void {
    this.suspended.delete(accountId);
  }

  /** The accounts with generations under way, and those that are refused here. */
  accountIds(): ReadonlySet<string> {
    const ids = new Set(this.suspended.keys());
    for (const { accountId } of this.running.all()) ids.add(accountId);
    return ids;
  }

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
