/** The router of a process. */
import type { Clock } from "../../../lib/clock.js";
import type { Events } from "../../../store/events.js";
import type { AttemptCode } from "./candidate.js";
import { Router } from "./router.js";

interface RouterDependencies {
  readonly clock: Clock;
  readonly events: Events;
  readonly metrics: { readonly routes: { attempted(upstream: string, result: AttemptCode | "ok"): void } };
}

export function createRouter({ clock, events, metrics }: RouterDependencies): Router {
  return new Router({ clock, events, onAttempt: (upstream, result) => metrics.routes.attempted(upstream, result) });
}
