/** Composes limits that renew. */
import type { Logger } from "pino";
import type { Clock } from "../../lib/clock.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import { LimitClaims } from "./claims.js";
import { LimitAlerts } from "./limit-alerts.js";
import { LimitFinder } from "./limit-finder.js";

interface Dependencies {
  readonly database: Database;
  readonly processId: string;
  readonly events: Events;
  readonly clock: Clock;
  readonly log: Logger;
}

export function createLimits(dependencies: Dependencies) {
  const alerts = new LimitAlerts(dependencies);
  return {
    claims: new LimitClaims({ ...dependencies, alerts }),
    limitFinder: new LimitFinder(dependencies.database, dependencies.events, dependencies.log),
  };
}
