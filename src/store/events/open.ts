/**
 * Events for one process or many: in memory where no other process can use the database, else through Redis where there is one,
 * else through the database's own notifications (docs/decisions/events-between-processes.md).
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
 * Resolves when other processes are heard, or after some seconds in which they could not be: that is logged, this process's own
 * events are delivered all the same, and the connection is tried until it stands. Rejects with a StartError when a connection pooler keeps
 * notifications from ever arriving. Close it before the database.
 */
export async function openEvents({ redisUrl, database, log }: EventsOptions): Promise<Events> {
  if (redisUrl !== null) {
    // Loaded where it is used: it costs a start 60 ms.
    const { redisTransport } = await import("./redis.js");
    return openSharedEvents(redisTransport(redisUrl), log);
  }
  if (database.isExclusive) return createMemoryEvents(log);
  if (database.isPooled) await assertNotificationsArrive(database);
  return openSharedEvents(postgresTransport(database), log);
}
