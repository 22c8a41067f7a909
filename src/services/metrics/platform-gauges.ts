/** Gauges of the platform, read at scrape time. */
import type { Database } from "../../store/database.js";
import type { SettlementSpool } from "../../store/settlement-spool.js";
import type { Leases } from "../credits/leases.js";
import type { Settler } from "../credits/settler.js";
import type { RunningGenerations } from "../generation/cancellation.js";
import type { Metrics } from "./metrics.js";

/** A longer backlog is not counted further. */
const BACKLOG_COUNTED_MAX = 10_000;

export interface WatchedPlatform {
  readonly settler: Pick<Settler, "openHolds" | "queueLength" | "isUnavailable" | "deferredOperations" | "refused">;
  readonly leases: Pick<Leases, "count" | "openReservations">;
  readonly database: Pick<Database, "connections">;
  readonly spool: Pick<SettlementSpool, "sizes">;
  /** On the data directory's disk. */
  readonly freeBytes: () => Promise<number>;
}

export interface WatchedWork {
  readonly running: Pick<RunningGenerations, "count" | "streamCount">;
  readonly jobRunner: { readonly ids: readonly string[] };
  readonly webhookWork: { readonly queue: { countPending(max: number): Promise<number> } };
}

export function watchPlatform(
  metrics: Pick<Metrics, "watch">,
  { settler, leases, database, spool, freeBytes }: WatchedPlatform,
  { running, jobRunner, webhookWork }: WatchedWork,
): void {
  metrics.watch(
    { name: "sluice_open_holds", help: "Generations whose estimated cost is set aside." },
    () => settler.openHolds + leases.openReservations,
  );
  metrics.watch(
    { name: "sluice_leases", help: "Accounts and keys of which credits are set aside to grant holds out of." },
    () => leases.count,
  );
  metrics.watch({ name: "sluice_generations_running", help: "Generations under way." }, () => running.count);
  metrics.watch({ name: "sluice_streams_running", help: "Streamed answers and realtime sessions under way." }, () => running.streamCount);
  metrics.watch({ name: "sluice_generation_jobs_running", help: "Generation jobs under way." }, () => jobRunner.ids.length);
  metrics.watch(
    {
      name: "sluice_settler_queue_operations",
      help: "Holds and settlements that wait for the database to commit the batch before theirs.",
    },
    () => settler.queueLength,
  );
  metrics.watch(
    { name: "sluice_database_available", help: "1 while the database answers; 0 while new work is refused for it.", aggregator: "min" },
    () => (settler.isUnavailable ? 0 : 1),
  );
  metrics.watch(
    { name: "sluice_database_connections_open", help: "Connections to the database, by pool: money is the settler's.", labels: ["pool"] },
    () => database.connections().map(({ name, open }) => [name, open]),
  );
  metrics.watch({ name: "sluice_database_connections_idle", help: "Those of them that nothing is asked on.", labels: ["pool"] }, () =>
    database.connections().map(({ name, idle }) => [name, idle]),
  );
  metrics.watch({ name: "sluice_database_queries_waiting", help: "Queries that wait for a connection, by pool.", labels: ["pool"] }, () =>
    database.connections().map(({ name, waiting }) => [name, waiting]),
  );
  metrics.watch(
    { name: "sluice_deferred_operations", help: "Settlements and releases that are kept until the database is back." },
    () => settler.deferredOperations,
  );
  metrics.watch(
    {
      name: "sluice_spool_bytes",
      help: "Settlements on the disk that are not in the database, by file below DATA_DIR/spool.",
      labels: ["file"],
    },
    async () => Object.entries(await spool.sizes()),
  );
  metrics.watch(
    { name: "sluice_refused_settlements", help: "Charges that the database refuses, and that are tried again." },
    () => settler.refused.count,
  );
  metrics.watch({ name: "sluice_disk_free_bytes", help: "Free space on the disk of DATA_DIR.", aggregator: "min" }, freeBytes);
  metrics.watch(
    {
      name: "sluice_webhook_deliveries_pending",
      help: `Messages to webhooks that are still to be sent by any process; counted up to ${BACKLOG_COUNTED_MAX}.`,
      aggregator: "max",
    },
    () => (settler.isUnavailable ? [] : webhookWork.queue.countPending(BACKLOG_COUNTED_MAX)),
  );
}
