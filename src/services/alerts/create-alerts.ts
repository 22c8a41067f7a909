/** Composes alerts. */
import type { Logger } from "pino";
import type { Clock } from "../../lib/clock.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { Catalog } from "../catalog/catalog.js";
import { RetirementReader } from "../catalog/retirement-reader.js";
import type { StatedRetirements } from "../catalog/retirements.js";
import type { Leases } from "../credits/leases.js";
import { AlertWatch } from "./alert-watch.js";
import { Alerts } from "./alerts.js";
import { KeyAlerts } from "./key-alerts.js";
import { ModelAlerts } from "./model-alerts.js";
import { AlertRaiser } from "./raiser.js";
import { SpendAlerts } from "./spend-alerts.js";

export interface AlertParts {
  readonly database: Database;
  readonly events: Events;
  readonly leases: Pick<Leases, "fold">;
  readonly catalog: Pick<Catalog, "models" | "upstreams" | "retire">;
}

export function createAlerts(
  { database, events, leases, catalog }: AlertParts,
  retirements: StatedRetirements | undefined,
  clock: Clock,
  log: Logger,
) {
  const raiser = new AlertRaiser(database, events, clock);
  const keys = new KeyAlerts(database, raiser, leases, clock);
  const spend = new SpendAlerts(database, raiser, clock);
  const reader = new RetirementReader(retirements ?? new Map(), catalog, log);
  const models = new ModelAlerts(database, raiser, catalog, clock);
  const alertWatch = new AlertWatch({ database, events, raiser, keys, spend, models, clock, log });
  return {
    alerts: new Alerts(database, events, clock),
    alertWatch,
    alertWork: {
      start: () => {
        alertWatch.start();
        reader.start();
      },
      close: async () => {
        await Promise.all([alertWatch.close(), reader.close()]);
      },
    },
  };
}
