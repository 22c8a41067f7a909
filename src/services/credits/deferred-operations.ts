/**
 * Settlements and releases to repeat until the database has committed them; each is idempotent. Settlements are also on
 * disk, so that they survive the process.
 */
import type { Logger } from "pino";
import { append } from "../../lib/collections.js";
import { FLUSH_OPERATIONS_MAX, FLUSH_RETRY_MS } from "../../limits.js";
import {
  isSettlement,
  type Ledger,
  type LedgerOperation,
  type LedgerOutcome,
  LedgerUnavailable,
  type SettleOperation,
} from "../../store/ledger.js";
import type { SettlementSpool } from "../../store/settlement-spool.js";
import { flushApart } from "./flush-apart.js";
import type { RefusedSettlements } from "./refused-settlements.js";

export interface DeferredDependencies {
  readonly ledger: Ledger;
  readonly spool: SettlementSpool;
  readonly refused: Pick<RefusedSettlements, "keep">;
  readonly log: Logger;
  readonly onCommitted?: (operation: LedgerOperation, outcome: LedgerOutcome) => void;
}

export class DeferredOperations {
  private operations: LedgerOperation[] = [];
  private isReplaying = false;
  private retryTimer: NodeJS.Timeout | undefined;

  /** `onReplayed` receives whether everything is committed, or the database is unavailable. */
  constructor(
    private readonly deps: DeferredDependencies,
    private readonly onReplayed: (isAway: boolean) => void,
  ) {}

  get count(): number {
    return this.operations.length;
  }

  add(operation: LedgerOperation): void {
    this.operations.push(operation);
  }

  /** Added before it is on disk, so that a concurrent clearing of the spool keeps it. */
  async addDurably(operation: SettleOperation): Promise<void> {
    this.operations.push(operation);
    await this.deps.spool.append(operation);
  }

  async load(): Promise<void> {
    append(this.operations, await this.deps.spool.read());
    if (this.operations.length === 0) return;
    this.deps.log.warn({ settlements: this.operations.length }, "replaying settlements that were spooled");
    await this.replay();
  }

  retryLater(): void {
    this.retryTimer ??= setTimeout(() => {
      this.retryTimer = undefined;
      void this.replay();
    }, FLUSH_RETRY_MS);
    this.retryTimer.unref();
  }

  async close(): Promise<void> {
    clearTimeout(this.retryTimer);
    await this.deps.spool.close();
  }

  private async replay(): Promise<void> {
    if (this.isReplaying) return;
    this.isReplaying = true;
    try {
      while (this.operations.length > 0) await this.replayBatch();
      // An empty flush only checks whether the database is available.
      await this.deps.ledger.flush([]);
      await this.deps.spool.clear(() => this.operations.length === 0);
      if (this.operations.length === 0) this.onReplayed(false);
      else this.retryLater();
    } catch (error) {
      if (!(error instanceof LedgerUnavailable)) this.deps.log.error({ err: error }, "replaying settlements failed");
      this.onReplayed(true);
    } finally {
      this.isReplaying = false;
    }
  }

  private async replayBatch(): Promise<void> {
    const batch = uniqueById(this.operations.slice(0, FLUSH_OPERATIONS_MAX));
    const outcomes = await flushApart(this.deps.ledger, batch, (operation, error) => this.refuse(operation, error));
    const done = new Set<LedgerOperation>(batch);
    this.operations = this.operations.filter((operation) => !done.has(operation));
    for (const [index, operation] of batch.entries()) {
      const outcome = outcomes[index];
      if (outcome) this.deps.onCommitted?.(operation, outcome);
    }
  }

  /** An operation that the ledger refuses fails alone; a settlement is kept and retried. */
  private async refuse(operation: LedgerOperation, error: unknown): Promise<void> {
    if (isSettlement(operation)) return this.deps.refused.keep(operation, error);
    this.deps.log.error({ err: error, generationId: operation.id }, "the ledger refused a deferred operation");
  }
}

function uniqueById(operations: readonly LedgerOperation[]): LedgerOperation[] {
  const ids = new Set<string>();
  return operations.filter((operation) => !ids.has(operation.id) && ids.add(operation.id));
}
