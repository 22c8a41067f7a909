/**
 * Room for the answers that are kept for requests with an Idempotency-Key: they count in their account's storage quota until they
 * expire. What an account keeps is read now and then, not for every answer, and what this process has let in since is added; another
 * process's answers and uploads are seen that much later.
 */
import { LRUCache } from "lru-cache";
import { entriesMax } from "../../lib/bounded.js";
import type { Clock } from "../../lib/clock.js";
import type { MediaQuotas } from "../files/media-quotas.js";
import { ANSWER_ROOM_READ_MS, IDEMPOTENT_ANSWER_OVERHEAD_BYTES } from "./limits.js";

const ACCOUNTS_MAX = 10_000;

interface Tally {
  readonly readAt: number;
  /** What the quota had left, as the database knew it. */
  readonly left: Promise<number>;
  /** Let in since then, or on its way at that moment. */
  added: number;
}

/** What was let in. */
export interface TakenRoom {
  /** What the answer counts for. */
  readonly sizeBytes: number;
  /** Call when it is in the database, or will never be. */
  readonly conclude: () => void;
}

export class AnswerRoom {
  private readonly tallies = new LRUCache<string, Tally>(entriesMax(ACCOUNTS_MAX));
  /** Let in and not in the database yet, by account. */
  private readonly pending = new Map<string, number>();

  constructor(
    private readonly quotas: Pick<MediaQuotas, "bytesLeft" | "hasSpace">,
    private readonly clock: Clock,
  ) {}

  /** Null when neither the account nor the disk has room for an answer of that size. */
  async take(accountId: string, bodyBytes: number): Promise<TakenRoom | null> {
    const sizeBytes = bodyBytes + IDEMPOTENT_ANSWER_OVERHEAD_BYTES;
    if (!(await this.quotas.hasSpace(sizeBytes))) return null;
    for (;;) {
      const tally = this.tallyOf(accountId);
      const left = await tally.left;
      // Read anew meanwhile.
      if (this.tallies.peek(accountId) !== tally) continue;
      if (tally.added + sizeBytes > left) return null;
      tally.added += sizeBytes;
      this.addPending(accountId, sizeBytes);
      return { sizeBytes, conclude: () => this.addPending(accountId, -sizeBytes) };
    }
  }

  /** Something has expired: what is known is known anew. */
  forget(): void {
    this.tallies.clear();
  }

  private tallyOf(accountId: string): Tally {
    const readAt = this.clock.now().getTime();
    const known = this.tallies.get(accountId);
    if (known && Math.abs(readAt - known.readAt) < ANSWER_ROOM_READ_MS) return known;
    const left = this.quotas.bytesLeft(accountId);
    const tally = { readAt, left, added: this.pending.get(accountId) ?? 0 };
    this.tallies.set(accountId, tally);
    left.catch(() => {
      if (this.tallies.peek(accountId) === tally) this.tallies.delete(accountId);
    });
    return tally;
  }

  private addPending(accountId: string, bytes: number): void {
    const pending = (this.pending.get(accountId) ?? 0) + bytes;
    if (pending > 0) this.pending.set(accountId, pending);
    else this.pending.delete(accountId);
  }
}
