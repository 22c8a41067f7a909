import type { Logger } from "pino";
import type { Clock } from "../../lib/clock.js";
import { type Counters, MemoryCounters } from "../counters.js";

/** Does not wait for Redis. Without Redis, or during its outage, counters are local to the process. */
export async function openCounters(options: {
  readonly redisUrl: string | null;
  readonly clock: Clock;
  readonly log: Logger;
  /** Longest wait of a request for a count in Redis. */
  readonly answerTimeoutMs?: number;
}): Promise<Counters> {
  const memory = new MemoryCounters(options.clock);
  if (options.redisUrl === null) return memory;
  // Loaded on demand, because the client takes time to load.
  const { RedisCounters } = await import("./redis.js");
  return new RedisCounters(options.redisUrl, memory, options.log, options.answerTimeoutMs);
}
