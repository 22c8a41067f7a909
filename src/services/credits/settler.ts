/**
 * The settler: one queue for holds, extensions, settlements and releases of all requests (docs/architecture.md#a-generation-end-to-end).
 *
 * 1. At most one flush is under way; operations queued meanwhile are the next one. No timer: an idle gateway commits a single
 *    operation at once, a busy one commits hundreds together.
 * 2. A hold that is refused only because of other holds waits for their settlement, in any process, for a bounded time; an extension
 *    that is refused only because of leases waits until they are released.
 * 3. When the database is unavailable, new holds are refused, and settlements are spooled and count as done: they are repeated until
 *    the database has them, idempotently.
 * 4. A settlement that the database itself refuses is also kept on disk, and retried: delivered work is billed.
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

export interface FlushMeters {
  flushed(operations: number, milliseconds: number): void;
  /** Called at the first commit of a settlement. */
  settled(): void;
  writtenOff(nanocredits: bigint): void;
}

export interface SettlerDependencies {
  readonly ledger: Ledger;
  readonly spool: SettlementSpool;
  readonly log: Logger;
  /** Receives every outcome in commit order. */
  readonly onCommitted?: (operation: LedgerOperation, outcome: LedgerOutcome) => void;
  readonly meters?: FlushMeters;
  /** Events about grants and refills, and about settlements and releases of other processes, which wake waiting operations. */
  readonly events?: Events;
  /** Called when a hold or an extension begins to wait for credits of its account. */
  readonly onContended?: (accountId: string) => void;
  readonly contendedHoldWaitMs?: number;
}

interface PendingOperation {
  readonly operation: LedgerOperation;
  readonly resolve: (outcome: LedgerOutcome) => void;
  readonly reject: (error: unknown) => void;
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
  /** Generations whose hold was requested and not refused, settled or released. */
  private readonly open = new Set<string>();
  private idleWaiters: (() => void)[] = [];
  /** Start of the first flush since the last success; null when there was none. By `performance.now()`. */
  private unprovenSince: number | null = null;
  private triedAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly deps: SettlerDependencies) {
    this.contended = new ContendedHolds((holds) => this.enqueue(holds), deps.contendedHoldWaitMs);
    const shared = { ...deps, onCommitted: (operation: LedgerOperation, outcome: LedgerOutcome) => this.committed(operation, outcome) };
    this.refused = new RefusedSettlements(shared);
    this.deferred = new DeferredOperations({ ...shared, refused: this.refused }, (isAway) => {
      if (isAway) this.stayAway();
      else if (this.isAway) this.markAvailable();
    });
    deps.events?.listen("balance-changed", ({ accountId }) => this.wake(accountId));
  }

  /** New operations are refused. */
  get isUnavailable(): boolean {
    return this.isAway || this.isClosed;
  }

  /** True while there is work to commit and no flush has succeeded for a while. Unknown without work, and then false. */
  get isStalled(): boolean {
    const now = performance.now();
    const isAtWork = this.isFlushing || now - this.triedAt < FLUSH_STALLED_MS;
    return isAtWork && this.unprovenSince !== null && now - this.unprovenSince >= FLUSH_STALLED_MS;
  }

  get queueLength(): number {
    return this.queue.length;
  }

  get openHolds(): number {
    return this.open.size;
  }

  get deferredOperations(): number {
    return this.deferred.count;
  }

  /** True while this process owns the generation's hold: it is under way, or its settlement is not committed. */
  isOpen(generationId: string): boolean {
    return this.open.has(generationId) || this.refused.has(generationId);
  }

  assertAvailable(): void {
    if (this.isUnavailable) throw unavailable();
  }

  wake(accountId: string): void {
    this.contended.wake(accountId);
  }

  /** Call before anything else. */
  async replaySpool(): Promise<void> {
    await this.deferred.load();
    await this.refused.load();
  }

  /**
   * Resolves with the committed outcome. Rejects with SERVICE_UNAVAILABLE when the database is unavailable, for holds only: settlements are
   * spooled and resolve as charged in full, extensions resolve as granted so that streams finish.
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

  /** Spools operations that cannot be committed, and accepts no more. */
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

  /** One turn of the event loop later, so that all operations of this turn share the flush. */
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

  /** The next operations in order, each id once: a second operation needs the result of the first. */
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
      // After all are concluded: a hold of this batch may wait for credits that another operation of it freed.
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

  /** The database refused the batch: commits each operation alone, so that only the faulty one fails. */
  private async isolateFault(batch: readonly PendingOperation[], error: unknown): Promise<void> {
    const [only] = batch;
    if (batch.length > 1) {
      for (const [index, pending] of batch.entries()) {
        // The database became unavailable: trying each of the others would take a timeout each.
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
    // It is unknown whether these holds were committed. They will not be used, so they must be released.
    for (const { operation } of batch) if (operation.kind === "hold") this.deferred.add(toRelease(operation));
    this.spoolPending([...batch, ...this.queue, ...this.contended.takeAll()]);
    this.queue = [];
    this.deferred.retryLater();
  }

  private spoolPending(operations: readonly PendingOperation[]): void {
    for (const pending of operations) this.submitWhileAway(pending.operation).then(pending.resolve, pending.reject);
  }

  private async submitWhileAway(operation: LedgerOperation): Promise<LedgerOutcome> {
    if (operation.kind !== "extend" && operation.kind !== "move") this.open.delete(operation.id);
    // A recovery is still held, and is found again later.
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

function uncommittedOutcome(operation: LedgerOperation): LedgerOutcome {
  const charged = isSettlement(operation) ? operation.amount : 0n;
  const nothingKnown = { isContended: false, writtenOff: 0n, available: 0n, keyAvailable: null };
  return { ...nothingKnown, outcome: "ok", charged, meterSource: isSettlement(operation) ? "pack" : null, isUncommitted: true };
}

/**
 * Holds that are refused only because of other holds. They wait for a settlement or release on their account, for a bounded time, and are
 * then retried. Events of other processes wake them too; causes without an event (an expired hold, a larger budget, a missed event) are
 * covered by retrying all at intervals.
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

  wake(accountId: string): void {
    const waiting = this.waiting.get(accountId);
    if (!waiting) return;
    this.waiting.delete(accountId);
    this.retry([...waiting]);
  }

  /** Takes all of them; none waits afterwards. */
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

  /** Tries it a last time, unless that is under way. */
  private expire(pending: PendingOperation): void {
    pending.patience = "spent";
    const { accountId } = pending.operation;
    const waiting = this.waiting.get(accountId);
    if (!waiting?.delete(pending)) return;
    if (waiting.size === 0) this.waiting.delete(accountId);
    this.retry([pending]);
  }
}
