/**
 * Opens events for one process or many: in memory where no other process can use the database, else through Redis if configured, else
 * through the database's notifications (docs/decisions/events-between-processes.md).
 */
import type { Logger } from "pino";
import type { Database } from "../database.js";
import { createMemoryEvents, type Events } from "../events.js";
import { assertNotificationsArrive, postgresTransport } from "./postgres.js";
import { openSharedEvents } from "./shared.js";

export interface EventsOptions {
  /** Null: no Redis. */
  readonly redisUrl: string | null;
  readonly database: Pick<Database, "isExclusive" | "isPooled" | "openSession">;
  readonly log: Logger;
}

/**
 * Resolves when the transport is connected, or after some seconds without: that is logged, this process's own events are delivered, and it
 * keeps connecting. Rejects with a StartError when a connection pooler blocks notifications. Close it before the database.
 */
export async function openEvents({ redisUrl, database, log }: EventsOptions): Promise<Events> {
  if (redisUrl !== null) {
    // Loaded on demand: it costs a start 60 ms.
    const { redisTransport } = await import("./redis.js");
    return openSharedEvents(redisTransport(redisUrl), log);
  }
  if (database.isExclusive) return createMemoryEvents(log);
  if (database.isPooled) await assertNotificationsArrive(database);
  return openSharedEvents(postgresTransport(database), log);
}
