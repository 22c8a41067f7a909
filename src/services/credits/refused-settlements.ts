/**
 * Settlements that the database refuses. Their work was delivered, so none is given up: each is on disk before its answer ends, and is
 * retried at the start, when the database is available again, and at growing intervals in between. Each failure is logged and shown to
 * operators.
 */
import type { Logger } from "pino";
import { FLUSH_OPERATIONS_MAX, REFUSED_RETRY_MS, REFUSED_RETRY_MS_MAX } from "../../limits.js";
import type { Ledger, LedgerOperation, LedgerOutcome, SettlementOperation } from "../../store/ledger.js";
import type { RefusedSettlement, SettlementSpool } from "../../store/settlement-spool.js";
import { flushApart } from "./flush-apart.js";

export interface RefusedDependencies {
  readonly ledger: Pick<Ledger, "flush">;
  readonly spool: SettlementSpool;
  readonly log: Logger;
  readonly onCommitted?: (operation: LedgerOperation, outcome: LedgerOutcome) => void;
}

export class RefusedSettlements {
  /** By generation, oldest first. */
  private readonly kept = new Map<string, RefusedSettlement>();
  private turn: Promise<void> = Promise.resolve();
  private timer: NodeJS.Timeout | undefined;
  private delayMs = REFUSED_RETRY_MS;
  private isClosed = false;

  constructor(private readonly deps: RefusedDependencies) {}

  get count(): number {
    return this.kept.size;
  }

  has(generationId: string): boolean {
    return this.kept.has(generationId);
  }

  list(first: number): RefusedSettlement[] {
    return [...this.kept.values()].slice(0, first);
  }

  /** Loads those of earlier processes, and retries them at once. */
  async load(): Promise<void> {
    for (const refused of await this.deps.spool.readRefused()) this.remember(refused);
    if (this.kept.size > 0) await this.retry();
  }

  async keep(operation: SettlementOperation, error: unknown): Promise<void> {
    const reason = error instanceof Error ? error.message : String(error);
    const refused = { operation, refusedAt: new Date().toISOString(), reason };
    this.remember(refused);
    const { id: generationId, accountId, amount } = operation;
    const context = { err: error, generationId, accountId, amount: String(amount), refusedSettlements: this.kept.size };
    this.deps.log.error(context, "the database refused a settlement; it is kept and tried again");
    this.retryLater(REFUSED_RETRY_MS);
    await this.deps.spool.keepRefused(refused);
  }

  /** Null: all. Resolves with any result. */
  retry(generationIds: ReadonlySet<string> | null = null): Promise<void> {
    this.turn = this.turn
      .then(() => this.tryAll(generationIds))
      .then(() => {
        if (this.kept.size > 0) this.retryLater(this.delayMs * 2);
      });
    return this.turn;
  }

  retrySoon(): void {
    if (this.kept.size > 0) this.retryLater(REFUSED_RETRY_MS);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    clearTimeout(this.timer);
    await this.turn;
  }

  /** A recovery's settlement never replaces the real one. */
  private remember(refused: RefusedSettlement): void {
    const { kind, id } = refused.operation;
    if (kind === "settle" || this.kept.get(id)?.operation.kind !== "settle") this.kept.set(id, refused);
  }

  private retryLater(delayMs: number): void {
    this.delayMs = Math.min(delayMs, REFUSED_RETRY_MS_MAX);
    clearTimeout(this.timer);
    if (this.isClosed) return;
    this.timer = setTimeout(() => void this.retry(), this.delayMs);
    this.timer.unref();
  }

  private async tryAll(generationIds: ReadonlySet<string> | null): Promise<void> {
    const { log, spool } = this.deps;
    const before = this.kept.size;
    try {
      const all = [...this.kept.values()].filter(({ operation }) => generationIds?.has(operation.id) ?? true);
      for (let from = 0; from < all.length; from += FLUSH_OPERATIONS_MAX) await this.tryBatch(all.slice(from, from + FLUSH_OPERATIONS_MAX));
      if (this.kept.size < before) await spool.replaceRefused(() => [...this.kept.values()]);
    } catch (error) {
      log.warn({ err: error }, "refused settlements could not be tried; they stay kept");
    }
    if (this.kept.size > 0) log.error({ refusedSettlements: this.kept.size }, "settlements are kept that the database refuses");
    else if (before > 0) log.info({ settlements: before }, "the settlements that the database had refused are booked");
  }

  private async tryBatch(batch: readonly RefusedSettlement[]): Promise<void> {
    const outcomes = await flushApart(
      this.deps.ledger,
      batch.map(({ operation }) => operation),
      async (operation, error) => {
        const known = this.kept.get(operation.id);
        if (known) this.kept.set(operation.id, { ...known, reason: error instanceof Error ? error.message : String(error) });
      },
    );
    for (const [index, { operation }] of batch.entries()) {
      const outcome = outcomes[index];
      // A settlement of a missing account is not committed either.
      if (!outcome || outcome.outcome === "missing") continue;
      if (this.kept.get(operation.id)?.operation === operation) this.kept.delete(operation.id);
      this.deps.onCommitted?.(operation, outcome);
    }
  }
}
