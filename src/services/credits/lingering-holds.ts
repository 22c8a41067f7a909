/**
 * Holds that need not be committed at once, because whoever waits for the answer has plenty and gets all of it at the end: an
 * answer that comes soon takes its hold back and is charged without one, so that it costs one commit instead of two.
 */
import { HOLD_LINGER_MS } from "../../limits.js";
import type { PendingOperation } from "./contended-holds.js";

export class LingeringHolds {
  /** By id, oldest first. */
  private readonly lingering = new Map<string, { readonly pending: PendingOperation; readonly dueAt: number }>();
  private timer: NodeJS.Timeout | null = null;

  constructor(private readonly commit: (holds: readonly PendingOperation[]) => void) {}

  get size(): number {
    return this.lingering.size;
  }

  add(pending: PendingOperation): void {
    this.lingering.set(pending.operation.id, { pending, dueAt: performance.now() + HOLD_LINGER_MS });
    this.timer ??= setTimeout(() => this.commitDue(), HOLD_LINGER_MS);
  }

  take(id: string): PendingOperation | null {
    const found = this.lingering.get(id);
    this.lingering.delete(id);
    return found?.pending ?? null;
  }

  takeAll(): PendingOperation[] {
    const all = [...this.lingering.values()].map(({ pending }) => pending);
    this.lingering.clear();
    return all;
  }

  /** One timer for all: it looks again when the oldest that is left is due. */
  private commitDue(): void {
    this.timer = null;
    const now = performance.now();
    const due: PendingOperation[] = [];
    for (const [id, { pending, dueAt }] of this.lingering) {
      if (dueAt > now + 1) {
        this.timer = setTimeout(() => this.commitDue(), dueAt - now);
        break;
      }
      this.lingering.delete(id);
      due.push(pending);
    }
    if (due.length > 0) this.commit(due);
  }
}
