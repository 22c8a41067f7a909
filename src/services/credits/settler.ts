/**
 * The settler: one queue for the holds, extensions, settlements and releases of all requests
 * (docs/architecture.md#a-generation-end-to-end).
 *
 * 1. At most one flush is under way; whatever has queued up meanwhile is the next. No timer: an idle gateway commits a
 *    single operation at once, a busy one commits hundreds together.
 * 2. A hold that is refused only because others hold the money waits for their settlement, in whatever process, for a bounded time; an
 *    extension that is refused only because of leases waits until they are given back.
 * 3. When the database is away, new holds are refused, and settlements are written to the spool and count as done: they
 *    are repeated until the database has them, and repeating one changes nothing.
 * 4. A settlement that the database refuses by itself is kept on the disk too, and tried again: what was delivered is billed.
 */
import type { Logger } from "pino";
import { type AppError, serviceUnavailable } from "../../errors.js";
import { append } from "../../lib/collections.js";
import { CONTENDED_HOLD_RETRY_MS, CONTENDED_HOLD_WAIT_MS, FLUSH_OPERATIONS_MAX, FLUSH_QUEUE_MAX, FLUSH_STALLED_MS } from "../../limits.js";
import type { Events } from "../../store/events.js";
import { isSettlement, type Ledger, type LedgerOperation, type LedgerOutcome, LedgerUnavailable } from "../../store/ledger.js";
import type { SettlementSpool } from "../../store/settlement-spool.js";
import { DeferredOperations } from "./deferred-operations.js";
import { RefusedSettlements } from "./refused-settlements.js";

/** Is told what becomes of it. */
export interface FlushMeters {
  /** Every batch, when the database has answered or has not: how many operations, and how long it took. */
  flushed(operations: number, milliseconds: number): void;
  /** A settlement that was committed for the first time. */
  settled(): void;
  /** What of a delivered answer nobody can pay. */
  writtenOff(nanocredits: bigint): void;
}

export interface SettlerDependencies {
  readonly ledger: Ledger;
  readonly spool: SettlementSpool;
  readonly log: Logger;
  /** Told of every outcome as it is committed, in commit order. */
  readonly onCommitted?: (operation: LedgerOperation, outcome: LedgerOutcome) => void;
  readonly meters?: FlushMeters;
  /** Where grants and refills are told of, and what other processes have settled or released: what waits for it is tried again. */
  readonly events?: Events;
  /** Told when a hold or an extension begins to wait for what others have of its account. */
  readonly onContended?: (accountId: string) => void;
  /** CONTENDED_HOLD_WAIT_MS unless stated. */
  readonly contendedHoldWaitMs?: number;
}

/** An operation that somebody waits for. */
interface PendingOperation {
  readonly operation: LedgerOperation;
  readonly resolve: (outcome: LedgerOutcome) => void;
  readonly reject: (error: unknown) => void;
  /** Of a contended hold: how its waiting stands. */
  patience: "fresh" | "waiting" | "spent";
}

export class Settler {
  private queue: PendingOperation[] = [];
  private isFlushing = false;
  private isScheduled = false;
  private isClosed = false;
  private isAway = false;
  private readonly deferred: DeferredOperations;
  readonly refused: RefusedSettlements;
  private readonly contended: ContendedHolds;
  /** Generations with a hold that was asked for and not refused, settled or released yet. */
  private readonly open = new Set<string>();
  private idleWaiters: (() => void)[] = [];
  /** When the first flush began of those that were tried since the last success; null when there is none. By `performance.now()`. */
  private unprovenSince: number | null = null;
  private triedAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly deps: SettlerDependencies) {
    this.contended = new ContendedHolds((holds) => this.enqueue(holds), deps.contendedHoldWaitMs);
    const tell = { ...deps, onCommitted: (operation: LedgerOperation, outcome: LedgerOutcome) => this.committed(operation, outcome) };
    this.refused = new RefusedSettlements(tell);
    this.deferred = new DeferredOperations({ ...tell, refused: this.refused }, (isAway) => {
      if (isAway) this.stayAway();
      else if (this.isAway) this.markAvailable();
    });
    deps.events?.listen("balance-changed", ({ accountId }) => this.wake(accountId));
  }

  /** True while the database does not answer: nothing new may begin. */
  get isUnavailable(): boolean {
    return this.isAway || this.isClosed;
  }

  /** True while there is work to commit and no flush has succeeded for a while. Without work it is not known, and false. */
  get isStalled(): boolean {
    const now = performance.now();
    const isAtWork = this.isFlushing || now - this.triedAt < FLUSH_STALLED_MS;
    return isAtWork && this.unprovenSince !== null && now - this.unprovenSince >= FLUSH_STALLED_MS;
  }

  /** Operations that wait for the flush under way. */
  get queueLength(): number {
    return this.queue.length;
  }

  /** Generations of this process with an open hold. */
  get openHolds(): number {
    return this.open.size;
  }

  /** Operations that wait for the database to come back. */
  get deferredOperations(): number {
    return this.deferred.count;
  }

  /** True while this process answers for the generation's hold: it is under way, or its settlement is still to be booked. */
  isOpen(generationId: string): boolean {
    return this.open.has(generationId) || this.refused.has(generationId);
  }

  /** Throws SERVICE_UNAVAILABLE while nothing new may begin. */
  assertAvailable(): void {
    if (this.isUnavailable) throw unavailable();
  }

  /** Something that was held of the account may be free: holds that wait for it are tried again. */
  wake(accountId: string): void {
    this.contended.wake(accountId);
  }

  /** Commits what the last process could not. Call before anything else. */
  async replaySpool(): Promise<void> {
    await this.deferred.load();
    await this.refused.load();
  }

  /**
   * Resolves with the outcome once it is committed. Rejects with SERVICE_UNAVAILABLE when the database is away, for holds
   * alone: settlements are spooled and resolve as charged in full, extensions resolve as granted so that streams finish.
   */
  submit(operation: LedgerOperation): Promise<LedgerOutcome> {
    if (this.isUnavailable) return this.submitWhileAway(operation);
    if (operation.kind === "hold" && this.queue.length >= FLUSH_QUEUE_MAX) {
      return Promise.reject(serviceUnavailable("The gateway is busy. Try again in a moment."));
    }
    if (operation.kind === "hold" || operation.kind === "move") this.open.add(operation.id);
    return new Promise((resolve, reject) => {
      this.queue.push({ operation, resolve, reject, patience: "fresh" });
      this.schedule();
    });
  }

  /** Commits what is queued, spools what cannot be committed, and takes nothing more. */
  async close(): Promise<void> {
    this.isClosed = true;
    for (const pending of this.contended.takeAll()) pending.reject(unavailable());
    if (this.isFlushing || this.queue.length > 0) await new Promise<void>((resolve) => this.idleWaiters.push(resolve));
    await this.refused.close();
    await this.deferred.close();
  }

  private enqueue(operations: readonly PendingOperation[]): void {
    append(this.queue, operations);
    this.schedule();
  }

  /** One turn of the event loop later, so that everything that arrives in this turn shares the flush. */
  private schedule(): void {
    if (this.isScheduled || this.isFlushing || this.queue.length === 0) return;
    this.isScheduled = true;
    setImmediate(() => {
      this.isScheduled = false;
      void this.flushNext();
    });
  }

  private async flushNext(): Promise<void> {
    if (this.isFlushing || this.queue.length === 0) return;
    this.isFlushing = true;
    const batch = this.takeBatch();
    try {
      await this.flush(batch);
    } finally {
      this.isFlushing = false;
      if (this.queue.length > 0) this.schedule();
      else this.announceIdle();
    }
  }

  /** The next operations in order, no id twice: what a second one finds must be what the first has committed. */
  private takeBatch(): PendingOperation[] {
    const ids = new Set<string>();
    let length = 0;
    while (length < this.queue.length && length < FLUSH_OPERATIONS_MAX) {
      const id = (this.queue[length] as PendingOperation).operation.id;
      if (ids.has(id)) break;
      ids.add(id);
      length += 1;
    }
    return this.queue.splice(0, length);
  }

  private async flush(batch: readonly PendingOperation[]): Promise<void> {
    try {
      const outcomes = await this.commit(batch.map((pending) => pending.operation));
      batch.forEach((pending, index) => {
        this.conclude(pending, outcomes[index] as LedgerOutcome);
      });
      // When all are concluded: a hold of this very batch may wait for what another operation of it has freed.
      for (const { operation } of batch) {
        if (isSettlement(operation) || operation.kind === "release") this.contended.wake(operation.accountId);
      }
    } catch (error) {
      if (error instanceof LedgerUnavailable) this.markUnavailable(batch, error);
      else await this.isolateFault(batch, error);
    }
  }

  private async commit(operations: readonly LedgerOperation[]): Promise<readonly LedgerOutcome[]> {
    const startedAt = performance.now();
    if (this.unprovenSince === null || startedAt - this.triedAt >= FLUSH_STALLED_MS) this.unprovenSince = startedAt;
    try {
      const outcomes = await this.deps.ledger.flush(operations);
      this.unprovenSince = null;
      return outcomes;
    } finally {
      this.triedAt = performance.now();
      this.deps.meters?.flushed(operations.length, this.triedAt - startedAt);
    }
  }

  private conclude(pending: PendingOperation, outcome: LedgerOutcome): void {
    const { operation } = pending;
    const mayWait = (operation.kind === "hold" || operation.kind === "extend") && outcome.isContended && !this.isClosed;
    if (mayWait && this.contended.add(pending)) {
      this.deps.onContended?.(operation.accountId);
      return;
    }
    const isHold = operation.kind === "hold" || operation.kind === "move";
    const isOpen = operation.kind === "extend" || (isHold && outcome.outcome === "ok");
    if (!isOpen) this.open.delete(operation.id);
    this.committed(operation, outcome);
    pending.resolve(outcome);
  }

  private committed(operation: LedgerOperation, outcome: LedgerOutcome): void {
    if (isSettlement(operation)) {
      if (outcome.outcome === "ok") this.deps.meters?.settled();
      if (outcome.writtenOff > 0n) this.deps.meters?.writtenOff(outcome.writtenOff);
    }
    this.deps.onCommitted?.(operation, outcome);
  }

  /** The database refused the batch itself: each operation alone, so that only the one at fault fails. */
  private async isolateFault(batch: readonly PendingOperation[], error: unknown): Promise<void> {
    const [only] = batch;
    if (batch.length > 1) {
      for (const [index, pending] of batch.entries()) {
        // It went away meanwhile: that need not be found out once more for each, which takes the whole time-out every time.
        if (this.isAway) return this.spoolPending(batch.slice(index));
        await this.flush([pending]);
      }
      return;
    }
    if (!only) return;
    const { operation } = only;
    if (operation.kind !== "extend") this.open.delete(operation.id);
    if (isSettlement(operation)) {
      const outcome = uncommittedOutcome(operation);
      await this.refused.keep(operation, error).then(() => only.resolve(outcome), only.reject);
      return;
    }
    this.deps.log.error({ err: error, operation: operation.kind, generationId: operation.id }, "the ledger refused an operation");
    only.reject(error);
  }

  private markUnavailable(batch: readonly PendingOperation[], error: LedgerUnavailable): void {
    if (!this.isAway) this.deps.log.error({ err: error }, "the database is away: new work is refused, settlements are spooled");
    this.isAway = true;
    // Whether these holds were committed is unknown. Nobody will use them, so they must not stay.
    for (const { operation } of batch) if (operation.kind === "hold") this.deferred.add(toRelease(operation));
    this.spoolPending([...batch, ...this.queue, ...this.contended.takeAll()]);
    this.queue = [];
    this.deferred.retryLater();
  }

  /** Operations that were on their way when the database went. */
  private spoolPending(operations: readonly PendingOperation[]): void {
    for (const pending of operations) this.submitWhileAway(pending.operation).then(pending.resolve, pending.reject);
  }

  private async submitWhileAway(operation: LedgerOperation): Promise<LedgerOutcome> {
    if (operation.kind !== "extend" && operation.kind !== "move") this.open.delete(operation.id);
    // What was to be recovered is still held, and is found again when the database is back.
    if (operation.kind === "hold" || operation.kind === "recover") throw unavailable();
    if (operation.kind === "settle") await this.deferred.addDurably(operation);
    if (operation.kind === "release" || operation.kind === "move") this.deferred.add(operation);
    if (!this.isClosed) this.deferred.retryLater();
    return uncommittedOutcome(operation);
  }

  private stayAway(): void {
    this.isAway = true;
    if (!this.isClosed) this.deferred.retryLater();
  }

  private markAvailable(): void {
    this.isAway = false;
    this.unprovenSince = null;
    this.deps.log.info("the database is back");
    this.refused.retrySoon();
    this.schedule();
  }

  private announceIdle(): void {
    const waiters = this.idleWaiters;
    this.idleWaiters = [];
    for (const resolve of waiters) resolve();
  }
}

function unavailable(): AppError {
  return serviceUnavailable("The gateway cannot reach its database. Nothing was charged. Try again in a moment.");
}

function toRelease(operation: LedgerOperation): LedgerOperation {
  return { kind: "release", id: operation.id, accountId: operation.accountId, apiKeyId: operation.apiKeyId };
}

/** What a caller is told of an operation that will be committed when the database is back. */
function uncommittedOutcome(operation: LedgerOperation): LedgerOutcome {
  const charged = isSettlement(operation) ? operation.amount : 0n;
  const nothingKnown = { isContended: false, writtenOff: 0n, available: 0n, keyAvailable: null };
  return { ...nothingKnown, outcome: "ok", charged, meterSource: isSettlement(operation) ? "pack" : null, isUncommitted: true };
}

/**
 * Holds that are refused only because others hold the money. They wait for a settlement or release on their account, for a
 * bounded time, and are then tried again. Settlements of other processes wake them as well, by an event; what no event tells of (a hold
 * that expires, a larger budget, a process that is not heard) is found by trying all that wait every so often.
 */
class ContendedHolds {
  private readonly waiting = new Map<string, Set<PendingOperation>>();
  private retryTimer: NodeJS.Timeout | undefined;

  constructor(
    private readonly retry: (holds: readonly PendingOperation[]) => void,
    private readonly waitMs = CONTENDED_HOLD_WAIT_MS,
  ) {}

  /** False when it has waited long enough: it stays refused. */
  add(pending: PendingOperation): boolean {
    if (pending.patience === "spent") return false;
    const { accountId } = pending.operation;
    const waiting = this.waiting.get(accountId) ?? new Set();
    this.waiting.set(accountId, waiting.add(pending));
    if (pending.patience === "fresh") {
      pending.patience = "waiting";
      setTimeout(() => this.expire(pending), this.waitMs).unref();
    }
    this.retryTimer ??= setTimeout(() => this.retryAll(), CONTENDED_HOLD_RETRY_MS).unref();
    return true;
  }

  /** Something that was held of the account is free. */
  wake(accountId: string): void {
    const waiting = this.waiting.get(accountId);
    if (!waiting) return;
    this.waiting.delete(accountId);
    this.retry([...waiting]);
  }

  /** All of them; none waits any more. */
  takeAll(): PendingOperation[] {
    const all = [...this.waiting.values()].flatMap((waiting) => [...waiting]);
    this.waiting.clear();
    return all;
  }

  private retryAll(): void {
    this.retryTimer = undefined;
    const all = this.takeAll();
    if (all.length > 0) this.retry(all);
  }

  /** One last try, unless it is being tried already. */
  private expire(pending: PendingOperation): void {
    pending.patience = "spent";
    const { accountId } = pending.operation;
    const waiting = this.waiting.get(accountId);
    if (!waiting?.delete(pending)) return;
    if (waiting.size === 0) this.waiting.delete(accountId);
    this.retry([pending]);
  }
}
