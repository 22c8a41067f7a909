/** Bounds the request log's failures: by age, and by account. Any process does it. */
import type { Clock } from "../../lib/clock.js";
import type { Database } from "../../store/database.js";
import { FAILURE_ACCOUNTS_MAX, FAILURES_DELETED_AT_ONCE, FAILURES_PER_ACCOUNT_MAX, FAILURES_PER_SWEEP } from "./limits.js";

const DAY_MS = 24 * 60 * 60 * 1000;

export class FailureRetention {
  /** Rows that this process wrote by account, since it last looked. Few accounts fail often. */
  private readonly counts = new Map<string, number>();
  private readonly due = new Set<string>();

  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly days: number,
    private readonly perAccountMax = FAILURES_PER_ACCOUNT_MAX,
  ) {}

  /** Counts written rows; does not wait. */
  written(accountId: string, rows: number): void {
    if (this.counts.size >= FAILURE_ACCOUNTS_MAX) this.counts.clear();
    const count = (this.counts.get(accountId) ?? 0) + rows;
    if (count < Math.min(FAILURES_PER_SWEEP, this.perAccountMax)) {
      this.counts.set(accountId, count);
      return;
    }
    this.counts.delete(accountId);
    this.due.add(accountId);
  }

  /** Deletes rows beyond the bounds of accounts that wrote many. Returns their number. */
  async sweep(): Promise<number> {
    let deleted = 0;
    for (const accountId of this.due) {
      this.due.delete(accountId);
      deleted += await deleteAll(() => this.deleteBeyond(accountId));
    }
    return deleted;
  }

  /** Deletes rows that are too old. Returns their number. */
  async sweepExpired(): Promise<number> {
    const oldest = new Date(this.clock.now().getTime() - this.days * DAY_MS);
    return deleteAll(
      () => this.database.prisma.$executeRaw`
        DELETE FROM failed_request WHERE id IN (
          SELECT f.id FROM failed_request f WHERE f.timestamp < ${oldest} ORDER BY f.timestamp LIMIT ${FAILURES_DELETED_AT_ONCE})`,
    );
  }

  /** Deletes all rows of an account. */
  deleteOf(accountId: string): Promise<number> {
    return deleteAll(
      () => this.database.prisma.$executeRaw`
        DELETE FROM failed_request WHERE id IN (
          SELECT f.id FROM failed_request f WHERE f.account_id = ${accountId}::uuid LIMIT ${FAILURES_DELETED_AT_ONCE})`,
    );
  }

  private deleteBeyond(accountId: string): Promise<number> {
    return this.database.prisma.$executeRaw`
      DELETE FROM failed_request WHERE id IN (
        SELECT f.id FROM failed_request f WHERE f.account_id = ${accountId}::uuid
        ORDER BY f.timestamp DESC, f.id DESC OFFSET ${this.perAccountMax} LIMIT ${FAILURES_DELETED_AT_ONCE})`;
  }
}

/** Repeats a bounded statement until it has deleted everything. */
async function deleteAll(deleteSome: () => Promise<number>): Promise<number> {
  let all = 0;
  let deleted = FAILURES_DELETED_AT_ONCE;
  while (deleted >= FAILURES_DELETED_AT_ONCE) {
    deleted = await deleteSome();
    all += deleted;
  }
  return all;
}
