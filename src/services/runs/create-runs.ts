/** Composes runs. */
import type { Logger } from "pino";
import type { Clock } from "../../lib/clock.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { ApiKeyCache } from "../api-keys/api-key-cache.js";
import { ApiKeyRows } from "../api-keys/api-key-rows.js";
import { KeyMaker } from "../api-keys/key-maker.js";
import type { Catalog } from "../catalog/catalog.js";
import type { Leases } from "../credits/leases.js";
import { LiveRuns } from "./live-runs.js";
import { RunApprovals } from "./run-approvals.js";
import { Runs } from "./runs.js";

export interface RunsDependencies {
  readonly database: Database;
  readonly keyCache: ApiKeyCache;
  readonly catalog: Pick<Catalog, "idOf">;
  readonly events: Events;
  readonly leases: Pick<Leases, "fold">;
}

export function createRuns({ database, keyCache, catalog, events, leases }: RunsDependencies, clock: Clock, log: Logger) {
  const runs = new Runs(database, new KeyMaker(keyCache, new ApiKeyRows(catalog), clock), events, clock, leases);
  return { runs, liveRuns: new LiveRuns(database, events, runs), approvals: new RunApprovals({ database, events, clock, log }) };
}
