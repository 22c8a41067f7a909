/**
 * The platform: all services and their infrastructure, made once in order of dependency, and closed in the opposite order. It knows no
 * transport.
 */
import type { Logger } from "pino";
import type { Clock } from "../../lib/clock.js";
import { warmUpTokenizer } from "../../lib/tokenizer.js";
import type { Addresses } from "../../lib/urls.js";
import { UNATTENDED_DRAIN_MS } from "../../limits.js";
import type { Database } from "../../store/database.js";
import { ensureOwner } from "../accounts/owner.js";
import type { Settler } from "../credits/settler.js";
import { LoopbackClient } from "../mcp/loopback-client.js";
import type { Metrics } from "../metrics/metrics.js";
import { watchPlatform } from "../metrics/platform-gauges.js";
import type { FamilyOfProcess } from "../metrics/several-processes.js";
import type { FailureRecorder } from "../request-log/failure-recorder.js";
import { createServices, type Services } from "../services.js";
import { type Infrastructure, openInfrastructure, type PlatformSettings } from "./infrastructure.js";
import { hasEnoughWorkers, METRICS_MS_MAX, METRICS_QUESTION, type WorkerLink } from "./worker-link.js";

export interface Platform {
  readonly services: Services;
  readonly infrastructure: Infrastructure;
  /** The owner's new key, shown once. */
  readonly newOwnerKey: string | null;
  /** Notices requests that fail. */
  readonly failureRecorder: FailureRecorder;
  /** True when generations can be served. */
  isReady(): Promise<boolean>;
  /** Refuses calls that wait for the payer of their run. Call before waiting for the end of requests. */
  endWaits(): void;
  /** Call when no generation is under way. */
  close(): Promise<void>;
}

/** `ownUrl`: this process's address on this machine. */
export async function openPlatform(
  settings: PlatformSettings,
  clock: Clock,
  log: Logger,
  addresses: () => Addresses,
  ownUrl: () => string,
  metrics: Metrics,
): Promise<Platform> {
  const infrastructure = await openInfrastructure(settings, clock, log, addresses, metrics);
  const { database, keyCache, ledger, localModels, settler, upstreams } = infrastructure;
  const loopback = new LoopbackClient(ownUrl, addresses);
  const created = createServices(infrastructure, settings, clock, log, addresses, loopback);
  const {
    services,
    router,
    storedWork,
    cachedAnswers,
    inspector,
    running,
    approvals,
    blobGc,
    webhookWork,
    mcpServers,
    usageRoller,
    accountErasure,
    paymentWork,
    alertWork,
    failureRecorder,
  } = created;
  watchPlatform(metrics, infrastructure, created);
  metrics.expect(() => infrastructure.catalog.models);
  const { worker } = settings;
  if (worker) shareMetrics(worker, metrics);
  await usageRoller.open();
  await infrastructure.recover();
  await router.open(infrastructure.catalog.models);
  await services.jobs.open();
  await storedWork.open();
  await webhookWork.open();
  const owner = { apiKey: settings.ownerApiKey, nanocredits: settings.ownerCredits };
  const newOwnerKey = await ensureOwner(database, ledger, keyCache, owner);
  setImmediate(warmUpTokenizer);
  blobGc.start();
  accountErasure.start();
  services.bookkeepingWork.open();
  paymentWork.start();
  alertWork.start();
  services.priceHistory.start();
  failureRecorder.start();
  return {
    services,
    failureRecorder,
    infrastructure,
    newOwnerKey,
    endWaits: () => approvals.close(),
    isReady: async () => (worker === null || hasEnoughWorkers(worker)) && isReady(settler, database),
    close: async () => {
      await localModels?.stop();
      await services.sandboxRunner.close();
      await services.codeRuns.close();
      await mcpServers.close();
      await loopback.close();
      await services.jobs.close();
      await running.close(UNATTENDED_DRAIN_MS);
      await router.close();
      await storedWork.close();
      await accountErasure.close();
      await services.bookkeepingWork.close();
      await paymentWork.close();
      await alertWork.close();
      await services.priceHistory.close();
      await services.integrations.close();
      await upstreams.close();
      await inspector.close();
      await blobGc.stop();
      await usageRoller.close().catch((error: unknown) => log.warn({ err: error }, "could not note which generations failed"));
      await failureRecorder.close();
      await webhookWork.close();
      await cachedAnswers.close().catch((error: unknown) => log.warn({ err: error }, "could not note which cached answers were used"));
      await infrastructure.close();
    },
  };
}

/** Lets every worker answer with the metrics of all. */
function shareMetrics(worker: WorkerLink, metrics: Metrics): void {
  metrics.watch(
    { name: "sluice_workers_ready", help: "Processes of the gateway that serve, of WORKERS.", aggregator: "max" },
    () => worker.ready,
  );
  metrics.watch(
    { name: "sluice_worker_restarts", help: "Workers that have ended and were replaced, since the gateway started.", aggregator: "max" },
    () => worker.restarts,
  );
  worker.answer(METRICS_QUESTION, () => metrics.readOwn());
  metrics.readOfAll(async () => (await worker.askAll(METRICS_QUESTION, null, METRICS_MS_MAX)) as FamilyOfProcess[][]);
}

async function isReady(settler: Settler, database: Database): Promise<boolean> {
  if (settler.isUnavailable || settler.isStalled) return false;
  return database.ping().then(
    () => true,
    () => false,
  );
}
