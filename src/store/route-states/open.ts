/** Opens the shared state of routes. */
import type { Logger } from "pino";
import type { RouteStates } from "../route-states.js";

/** Null without Redis: each process keeps its own state. Does not wait for Redis. */
export async function openRouteStates(options: { readonly redisUrl: string | null; readonly log: Logger }): Promise<RouteStates | null> {
  const { redisUrl, log } = options;
  if (redisUrl === null) return null;
  // Loaded on demand, because the client takes time to load.
  const { RedisRouteStates } = await import("./redis.js");
  return new RedisRouteStates(redisUrl, log);
}
