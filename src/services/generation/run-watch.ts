/**
 * Ends generations of runs that end (docs/spec/runs.md#ending). A run ends when its key is revoked, which an event says; when events may have
 * been missed, the runs that this process works for are looked up.
 */
import type { Logger } from "pino";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { RunningGenerations } from "./cancellation.js";

export class RunWatch {
  constructor(
    private readonly database: Database,
    private readonly running: RunningGenerations,
    private readonly log: Logger,
    events: Events,
  ) {
    events.listen("api-key-changed", ({ apiKeyId, change }) => {
      if (change === "revoked") running.endRun(apiKeyId);
    });
    events.onDoubt(() => void this.lookUp());
  }

  /** Never rejects: it is called again once the database is back. */
  async lookUp(): Promise<void> {
    const ids = [...this.running.runIds()];
    if (ids.length === 0) return;
    try {
      const ended = await this.database.prisma.apiKey.findMany({
        where: { id: { in: ids }, revokedAt: { not: null } },
        select: { id: true },
      });
      for (const { id } of ended) this.running.endRun(id);
    } catch (error) {
      this.log.debug({ err: error }, "could not look up ended runs");
    }
  }
}
