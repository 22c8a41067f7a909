/**
 * Ends generations of accounts that are suspended (docs/spec/accounts.md#suspension). An event says so; when events may have been missed,
 * the accounts that this process knows are looked up.
 */
import type { Logger } from "pino";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { RunningGenerations } from "./cancellation.js";

export class SuspensionWatch {
  /** For each look-up under way, the accounts of which an event came meanwhile: the event is newer. */
  private readonly lookUps = new Set<Set<string>>();

  constructor(
    private readonly database: Database,
    private readonly running: RunningGenerations,
    private readonly log: Logger,
    events: Events,
  ) {
    events.listen("account-suspension-changed", ({ accountId, isSuspended }) => {
      for (const changed of this.lookUps) changed.add(accountId);
      if (isSuspended) running.suspend(accountId);
      else running.restore(accountId);
    });
    events.onDoubt(() => void this.lookUp());
  }

  /** Never rejects: it is called again once the database is back. */
  async lookUp(): Promise<void> {
    const ids = [...this.running.accountIds()];
    if (ids.length === 0) return;
    const changed = new Set<string>();
    this.lookUps.add(changed);
    try {
      const rows = await this.database.prisma.account.findMany({ where: { id: { in: ids } }, select: { id: true, suspendedAt: true } });
      for (const { id, suspendedAt } of rows) {
        if (changed.has(id)) continue;
        if (suspendedAt === null) this.running.restore(id);
        else this.running.suspend(id);
      }
    } catch (error) {
      this.log.debug({ err: error }, "could not look up suspended accounts");
    } finally {
      this.lookUps.delete(changed);
    }
  }
}
