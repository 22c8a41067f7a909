/**
 * Connects the state of this process's routes with the other processes: by events, and by the shared store where there is one, so that a
 * process that starts knows it (docs/decisions/limits-of-routes-in-shares.md).
 */
import { z } from "zod";
import type { Clock } from "../../../lib/clock.js";
import type { Events } from "../../../store/events.js";
import type { RouteStates } from "../../../store/route-states.js";
import type { HealthChange, RouteHealth } from "./health.js";
import type { RouteTimes, TimesChange } from "./times.js";

export interface SharedBy {
  readonly events?: Pick<Events, "publish" | "listenToOthers"> | undefined;
  /** Null: no store. */
  readonly states?: RouteStates | null | undefined;
  readonly clock: Clock;
}

/** Tells the other processes about changes of this one. */
export class Announcer {
  constructor(private readonly by: SharedBy) {}

  healthChanged(change: HealthChange, times: number): void {
    this.by.events?.publish("route-health-changed", change);
    this.by.states?.save("health", stateId(change), JSON.stringify({ ...change, times }));
  }

  /** The key or upstream has answered. */
  recovered(kind: HealthChange["kind"], id: string): void {
    this.by.states?.save("health", stateId({ kind, id }), null);
  }

  timesMeasured(change: TimesChange): void {
    this.by.events?.publish("route-times-measured", change);
    this.by.states?.save("times", change.id, JSON.stringify({ ...change, at: this.by.clock.now().getTime() }));
  }
}

export function learnFromOthers({ events }: SharedBy, health: RouteHealth, times: RouteTimes): void {
  events?.listenToOthers("route-health-changed", (change) => health.learn(change));
  events?.listenToOthers("route-times-measured", (change) => times.learn(change));
}

const storedHealth = z.object({
  kind: z.enum(["key", "circuit"]),
  id: z.string(),
  code: z.enum(["credential_refused", "payment_required", "rate_limited", "circuit_open", "limit_reached"]),
  until: z.number(),
  times: z.int().min(1),
});
const storedTimes = z.object({ id: z.string(), firstMs: z.number().nullable(), tokenMs: z.number().nullable(), at: z.number() });

/** The states that other processes, or this one before a restart, have left. */
export async function learnStored({ states }: SharedBy, health: RouteHealth, times: RouteTimes): Promise<void> {
  if (!states) return;
  const [healths, measured] = await Promise.all([states.load("health"), states.load("times")]);
  for (const { json } of healths) {
    const stated = storedHealth.safeParse(parsed(json));
    if (stated.success) health.learn(stated.data, stated.data.times);
  }
  for (const { json } of measured) {
    const stated = storedTimes.safeParse(parsed(json));
    if (stated.success) times.learn(stated.data, stated.data.at);
  }
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch {
    return null;
  }
}

function stateId({ kind, id }: Pick<HealthChange, "kind" | "id">): string {
  return `${kind} ${id}`;
}
