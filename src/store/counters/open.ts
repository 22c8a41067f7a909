/** The counters that the configuration asks for. */
import type { Logger } from "pino";
import type { Clock } from "../../lib/clock.js";
import { type Counters, MemoryCounters } from "../counters.js";

/** Does not wait for Redis. Without Redis, and while it is away, counters are this process's own. */
export async function openCounters(options: {
  readonly redisUrl: string | null;
  readonly clock: Clock;
  readonly log: Logger;
  /** A request does not wait longer than this for a count of Redis's. */
  readonly answerTimeoutMs?: number;
}): Promise<Counters> {
  const memory = new MemoryCounters(options.clock);
  if (options.redisUrl === null) return memory;
  // A client that few need takes its time to load.
  const { RedisCounters } = await import("./redis.js");
  return new RedisCounters(options.redisUrl, memory, options.log, options.answerTimeoutMs);
}
