/**
 * Ends generations of accounts that are suspended (docs/spec/accounts.md#suspension). An event says so; when events may have been missed,
 * the accounts that this process knows are looked up.
 */
import type { Logger } from "pino";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { RunningGenerations } from "./cancellation.js";

export class SuspensionWatch {
  constructor(
    private readonly database: Database,
    private readonly running: RunningGenerations,
    private readonly log: Logger,
    events: Events,
  ) {
    events.listen("account-suspension-changed", ({ accountId, isSuspended }) => {
      if (isSuspended) running.suspend(accountId);
      else running.restore(accountId);
    });
    events.onDoubt(() => void this.lookUp());
  }

  /** Never rejects: it is called again once the database is back. */
  async lookUp(): Promise<void> {
    const ids = [...this.running.accountIds()];
    if (ids.length === 0) return;
    try {
      const rows = await this.database.prisma.account.findMany({ where: { id: { in: ids } }, select: { id: true, suspendedAt: true } });
      for (const { id, suspendedAt } of rows) {
        if (suspendedAt === null) this.running.restore(id);
        else this.running.suspend(id);
      }
    } catch (error) {
      this.log.debug({ err: error }, "could not look up suspended accounts");
    }
  }
}
