/**
 * Storage quota for answers to requests with an Idempotency-Key, which count until they expire. The account's usage is read at intervals,
 * not for each answer, and this process adds its own answers since; answers and uploads of other processes are seen at the next read.
 */
import { LRUCache } from "lru-cache";
import { entriesMax } from "../../lib/bounded.js";
import type { Clock } from "../../lib/clock.js";
import type { MediaQuotas } from "../files/media-quotas.js";
import { ANSWER_ROOM_READ_MS, IDEMPOTENT_ANSWER_OVERHEAD_BYTES } from "./limits.js";

const ACCOUNTS_MAX = 10_000;

interface Tally {
  readonly readAt: number;
  /** Bytes left of the quota at the last read. */
  readonly left: Promise<number>;
  /** Bytes stored since then, or under way at that time. */
  added: number;
}

export interface TakenRoom {
  /** Bytes that the answer counts for. */
  readonly sizeBytes: number;
  /** Call when it is in the database, or never will be. */
  readonly conclude: () => void;
}

export class AnswerRoom {
  private readonly tallies = new LRUCache<string, Tally>(entriesMax(ACCOUNTS_MAX));
  /** Bytes taken but not in the database yet, by account. */
  private readonly pending = new Map<string, number>();

  constructor(
    private readonly quotas: Pick<MediaQuotas, "bytesLeft" | "hasSpace">,
    private readonly clock: Clock,
  ) {}

  /** Null when the account's quota or the disk has no room. */
  async take(accountId: string, bodyBytes: number): Promise<TakenRoom | null> {
    const sizeBytes = bodyBytes + IDEMPOTENT_ANSWER_OVERHEAD_BYTES;
    if (!(await this.quotas.hasSpace(sizeBytes))) return null;
    for (;;) {
      const tally = this.tallyOf(accountId);
      const left = await tally.left;
      // Reread meanwhile.
      if (this.tallies.peek(accountId) !== tally) continue;
      if (tally.added + sizeBytes > left) return null;
      tally.added += sizeBytes;
      this.addPending(accountId, sizeBytes);
      return { sizeBytes, conclude: () => this.addPending(accountId, -sizeBytes) };
    }
  }

  /** Drops the read of an account that has deleted something. */
  freed(accountId: string): void {
    this.tallies.delete(accountId);
  }

  /** Drops the reads, because answers have expired. */
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
