/**
 * Holds that are refused only because others hold the money. They wait for a settlement or release on their account, for a
 * bounded time, and are then tried again. Settlements of other processes wake them as well, by an event; what no event tells of (a hold
 * that expires, a larger budget, a process that is not heard) is found by trying all that wait every so often.
 */
import { CONTENDED_HOLD_RETRY_MS, CONTENDED_HOLD_WAIT_MS } from "../../limits.js";
import type { LedgerOperation, LedgerOutcome } from "../../store/ledger.js";

/** An operation that somebody waits for. */
export interface PendingOperation {
  readonly operation: LedgerOperation;
  readonly resolve: (outcome: LedgerOutcome) => void;
  readonly reject: (error: unknown) => void;
  /** Of a contended hold: how its waiting stands. */
  patience: "fresh" | "waiting" | "spent";
}

export class ContendedHolds {
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
