/**
 * Infrastructure of the services, in order of dependency: catalog, data directory, database and ledger, events, upstreams, files, counters.
 */

import type { Logger } from "pino";
import type { Clock } from "../../lib/clock.js";
import { createId } from "../../lib/ids.js";
import { OutboundGuard } from "../../lib/outbound-guard.js";
import type {
  EarningsSettings,
  GitHubSettings,
  PaymentsSetting,
  S3Settings,
  SalesSettings,
  SignInPace,
  Tier,
  TopUp,
} from "../../lib/settings.js";
import { UnknownWords } from "../../lib/unknown-words.js";
import type { Addresses } from "../../lib/urls.js";
import { FLUSH_TIMEOUT_MS, HOLD_SECONDS } from "../../limits.js";
import { LearnedFields } from "../../providers/openai/learned-fields.js";
import type { UpstreamTimeouts } from "../../providers/provider.js";
import { findSandboxPackages } from "../../providers/sandbox/media/installed.js";
import { BlobUrls } from "../../store/blob-urls.js";
import type { BlobStore } from "../../store/blobs.js";
import { openCounters } from "../../store/counters/open.js";
import type { Counters } from "../../store/counters.js";
import { type DataDir, freeBytesOf, openDataDir, openWorkerDir, visitLeftBehind } from "../../store/data-dir.js";
import { type Database, openDatabase } from "../../store/database.js";
import { openDocuments } from "../../store/documents/open.js";
import type { DocumentStore } from "../../store/documents.js";
import { openEvents } from "../../store/events/open.js";
import { createMemoryEvents, type Events } from "../../store/events.js";
import type { Ledger } from "../../store/ledger.js";
import { migrate } from "../../store/migrations.js";
import { type OpenedBlobs, openBlobs } from "../../store/open-blobs.js";
import { sharedConnectionsOf } from "../../store/pool-sizes.js";
import { openRouteStates } from "../../store/route-states/open.js";
import type { RouteStates } from "../../store/route-states.js";
import { adoptSettlements, hasSettlements, openSettlementSpool, type SettlementSpool } from "../../store/settlement-spool.js";
import { createLedger } from "../../store/sql-ledger.js";
import type { RateLimitSettings } from "../access/rate-limits.js";
import { ApiKeyCache } from "../api-keys/api-key-cache.js";
import { type Catalog, type CatalogSettings, loadCatalog } from "../catalog/catalog.js";
import { LocalModels } from "../catalog/local-models.js";
import { missingSandboxModels } from "../catalog/sandbox.js";
import { CommunityDirectory } from "../community-models/directory.js";
import { ModelHealthRecords } from "../community-models/health.js";
import { createCommitListener } from "../credits/credits.js";
import { KnownBalances } from "../credits/known-balances.js";
import { Leases } from "../credits/leases.js";
import { HoldRecovery } from "../credits/recovery.js";
import { Settler } from "../credits/settler.js";
import { TierRefills, Tiers } from "../credits/tiers.js";
import type { MediaQuotaSettings } from "../files/media-quotas.js";
import type { ContentCacheTimes } from "../generation/content-cache/content-cache.js";
import type { RealtimeTimes } from "../generation/realtime/run.js";
import { Upstreams } from "../generation/upstreams.js";
import type { IntegrationsSettings } from "../integrations/http-broker.js";
import type { McpServerId } from "../mcp/mcp-tools.js";
import type { Metrics, MetricsSettings } from "../metrics/metrics.js";
import { type PersistedDocumentSettings, readTrustedDocuments, type TrustedDocuments } from "../requests/persisted-documents.js";
import { RouteDirectory } from "../routes/directory.js";
import { type DeploymentSecrets, followKeyRing, type OpenedSecrets, openSecrets } from "../secrets/deployment-secrets.js";
import { SecretBox } from "../secrets/secret-box.js";
import type { LimitClaims } from "../usage-limits/claims.js";
import { createLimits } from "../usage-limits/create-limits.js";
import type { LimitFinder } from "../usage-limits/limit-finder.js";
import { UsableVendorKeys } from "../vendor-keys/usable-keys.js";
import type { WorkerLink } from "./worker-link.js";

export interface PlatformSettings extends CatalogSettings {
  readonly dataDir: string;
  /** Null: this process is the whole gateway on this machine. */
  readonly worker: WorkerLink | null;
  /** The HTTP status of an error code. */
  readonly statusOf: (code: string) => number;
  /** Null: the embedded database. */
  readonly databaseUrl: string | null;
  /** Address past the pooler of `databaseUrl`. Null: no pooler, or no need for a session. */
  readonly databaseDirectUrl: string | null;
  /** Null: events between processes go through the database. */
  readonly redisUrl: string | null;
  /** Null: blobs are files under the data directory. */
  readonly s3: S3Settings | null;
  /** Null: generated and stored under the data directory. */
  readonly encryptionKey: string | null;
  /** Accepted beside it while a rotation is under way; null: none. */
  readonly encryptionKeyPrevious: string | null;
  readonly ownerApiKey: string | null;
  readonly ownerCredits: bigint;
  readonly timeouts: UpstreamTimeouts;
  /** How long a hold waits for credits that other holds have, before it is refused. */
  readonly contendedHoldWaitMs: number;
  readonly realtimeTimes: Partial<RealtimeTimes>;
  readonly contentCacheTimes: Partial<ContentCacheTimes>;
  /** Hosts that users may name despite the outbound guard. */
  readonly upstreamAllowHosts: readonly string[];
  /** Client ids may be addresses of documents, which the gateway reads. */
  readonly readsClientDocuments: boolean;
  readonly rateLimits: RateLimitSettings;
  readonly tiers: readonly Tier[];
  /** Of all tier buckets together, in nanocredits; null: no cap. */
  readonly freeSpendPerDay: bigint | null;
  /** The fee for calls by vendor keys, in millionths of the model's price. */
  readonly vendorKeyFee: bigint;
  readonly earnings: EarningsSettings;
  /** How people get credits; null: not stated. */
  readonly topUp: TopUp | null;
  readonly payments: PaymentsSetting;
  readonly sales: SalesSettings;
  readonly mediaQuota: MediaQuotaSettings;
  readonly requestBodiesBytes: number;
  readonly persistedDocuments: PersistedDocumentSettings;
  readonly metrics: MetricsSettings;
  /** 0: requests are not logged. */
  readonly requestLogDays: number;
  /** Days that responses and conversations are stored. 0: they are not. */
  readonly storedResponsesDays: number;
  /** Sign-up: open to all, or only by operators. */
  readonly passwordHelp: string;
  readonly signUp: "open" | "closed";
  /** Per address, per e-mail address, and sign-ups per address. */
  readonly signInAttemptsPerMinute: number;
  readonly signInPace: SignInPace;
  readonly passwordCost: number;
  /** Separate sign-in host, which serves no outputs of models; null when there is one host for everything. */
  readonly sessionHost: string | null;
  /** Null: not configured. */
  readonly github: GitHubSettings | null;
  /** MCP servers by the ids that agents use; absent ones do not exist. */
  readonly mcpServers: Readonly<Partial<Record<McpServerId, string>>>;
  /** Sent to them as bearer tokens. */
  readonly mcpServerKeys: Readonly<Partial<Record<McpServerId, string>>>;
  /** An id or alias; null: none. */
  readonly moderationModel: string | null;
  /** The broker of connected apps. */
  readonly integrations: IntegrationsSettings;
}

export interface Infrastructure {
  readonly catalog: Catalog;
  /** Models of a server on this machine; null without one. */
  readonly localModels: LocalModels | null;
  readonly database: Database;
  readonly events: Events;
  /** Events that this process recorded: for work that one process must do, not each. */
  readonly ownEvents: Events;
  readonly processId: string;
  readonly ledger: Ledger;
  readonly settler: Settler;
  readonly leases: Leases;
  /** Of limits that renew. */
  readonly claims: LimitClaims;
  readonly limitFinder: LimitFinder;
  readonly known: KnownBalances;
  readonly tiers: Tiers;
  readonly refills: TierRefills;
  readonly recovery: HoldRecovery;
  readonly keyCache: ApiKeyCache;
  readonly usableVendorKeys: UsableVendorKeys;
  /** Joins the catalog once it is loaded. */
  readonly communityModels: CommunityDirectory;
  readonly modelHealth: ModelHealthRecords;
  /** Applies operators' changes of routes to the catalog. */
  readonly routeDirectory: RouteDirectory;
  readonly outbound: OutboundGuard;
  readonly upstreams: Upstreams;
  readonly blobs: BlobStore;
  /** Addresses at which the gateway itself reads and writes blobs; null when they are not on the local disk. */
  readonly blobUrls: BlobUrls | null;
  /** Where browsers upload and download blobs; null: at the media host. */
  readonly blobOrigin: string | null;
  /** Of the data directory's disk. */
  readonly freeBytes: () => Promise<number>;
  readonly counters: Counters;
  /** GraphQL documents: the manifest's, and the store of registered ones. */
  readonly trustedDocuments: TrustedDocuments;
  readonly documents: DocumentStore;
  /** Null without Redis. */
  readonly routeStates: RouteStates | null;
  /** The same in each process of this deployment. */
  readonly secrets: DeploymentSecrets;
  readonly metrics: Metrics;
  readonly unknownWords: UnknownWords;
  readonly learnedFields: LearnedFields;
  readonly spool: Pick<SettlementSpool, "sizes">;
  /** Commits settlements that the last process could not, and looks for its holds. Call before anything is generated. */
  recover(): Promise<void>;
  /** Call when no service is working. */
  close(): Promise<void>;
}

export async function openInfrastructure(
  settings: PlatformSettings,
  clock: Clock,
  log: Logger,
  addresses: () => Addresses,
  metrics: Metrics,
): Promise<Infrastructure> {
  // An invalid catalog must stop the start before anything is changed.
  const packages = settings.hasSandboxModels ? findSandboxPackages() : null;
  const catalog = await loadCatalog(settings, clock, packages, {
    highPrice: (price) => log.warn(price, "a price of MODELS_FILE is above 1,000 credits a million: prices there are for one token"),
    dearRoute: (route) =>
      log.warn({ event: "route-above-price", ...route }, "a route of MODELS_FILE costs more than its model: callers pay less"),
  });
  const missing = packages ? missingSandboxModels(packages) : [];
  if (missing.length > 0)
    log.warn({ models: missing }, "some sandbox models are missing: their packages (packages/sandbox) are not installed");
  const trustedDocuments = await readTrustedDocuments(settings.persistedDocuments);
  const localUrl = settings.vendors.ollama?.baseUrl;
  const localModels = localUrl ? new LocalModels(localUrl, catalog, log) : null;
  const localModelsListed = localModels?.start();
  const { worker } = settings;
  const dataDir = await (worker ? openWorkerDir(settings.dataDir, worker.number) : openDataDir(settings.dataDir));
  const blobUrls = new BlobUrls(
    () => blobSecret(),
    () => addresses().mediaUrl,
    clock,
  );
  const opened = await openStore(settings, dataDir, blobUrls, log);
  const database = await openMigrated(settings, dataDir, log);
  const generated = settings.encryptionKey === null ? dataDir.draftSecret("encryptionKey") : null;
  const encryptionKey = settings.encryptionKey ?? generated?.value ?? "";
  const { secrets, isRotating } = await openKeyRing(settings, encryptionKey, { database, dataDir }, () => generated?.keep());
  warnOfRotation(settings, isRotating, log);
  const blobSecret = secrets.signing("blob addresses");
  const keyRing = followKeyRing(database, encryptionKey, secrets, log);
  const events = await openEvents({ redisUrl: settings.redisUrl, database, log });
  const ownEvents = createMemoryEvents(log);
  const processId = createId();
  const ledger = createLedger(database.pool, {
    keepsStatements: (client) => database.hasOwnSession(client),
    processId,
    holdSeconds: HOLD_SECONDS,
    timeoutMs: FLUSH_TIMEOUT_MS,
    watch: database.watch,
    freeSpendCap: settings.freeSpendPerDay,
  });
  const known = new KnownBalances();
  // The predecessor's spool is opened as its own.
  await visitLeftBehind(dataDir, hasSettlements, (directory) => adoptSettlements(directory, dataDir.ownPath));
  const spool = await openSettlementSpool(dataDir.ownPath);
  const { claims, limitFinder } = createLimits({ database, processId, events, clock, log });
  const leases = new Leases({ ledger: ledger.leases, database, processId, events, log });
  const settler = new Settler({
    ...{ ledger, spool, log, events, meters: metrics, contendedHoldWaitMs: settings.contendedHoldWaitMs },
    onCommitted: createCommitListener(known, leases, events, ownEvents, claims),
    onContended: (accountId) => leases.want(accountId),
  });
  const recovery = new HoldRecovery(
    database,
    settler,
    { ledger: ledger.leases, leases, claims },
    { processId, instanceId: dataDir.instanceId },
    log,
  );
  const tiers = new Tiers(settings.tiers);
  const refills = new TierRefills({ tiers, ledger, leases, database, known, events, clock, log });
  const box = new SecretBox(secrets.sealing("columns"));
  const usableVendorKeys = new UsableVendorKeys({ database, box, events, clock, log });
  const keyCache = new ApiKeyCache(
    database,
    secrets.pepper,
    clock,
    events,
    () => settler.assertAvailable(),
    (account) => refills.learn(account),
    usableVendorKeys,
    settings.earnings.marginPercentMax,
    limitFinder,
  );
  const modelHealth = new ModelHealthRecords({ database, events, clock, log, ownerOf: (model) => communityModels.ownerOf(model) });
  const communityModels = new CommunityDirectory({ database, events, box, health: modelHealth, clock, log });
  catalog.include(communityModels);
  const routeDirectory = new RouteDirectory({ database, events, catalog, log });
  const outbound = new OutboundGuard({ allowHosts: settings.upstreamAllowHosts });
  const unknownWords = new UnknownWords(log, (kind) => metrics.unknownWord(kind));
  const learnedFields = new LearnedFields(clock, ({ id, isRegistered }, upstreamModel, field) => {
    metrics.fieldRefused(isRegistered ? null : id, field);
    if (isRegistered) return;
    log.info(
      { event: "upstream-field-refused", upstream: id, model: upstreamModel, field },
      "an upstream refuses a field: it is no longer sent",
    );
  });
  const upstreams = new Upstreams(catalog, settings.timeouts, outbound, unknownWords, learnedFields);
  const isCountedByPrimary = worker !== null && settings.redisUrl === null;
  const counters = isCountedByPrimary ? worker.counters : await openCounters({ redisUrl: settings.redisUrl, clock, log });
  const documents = await openDocuments({ redisUrl: settings.redisUrl, log });
  const routeStates = await openRouteStates({ redisUrl: settings.redisUrl, log });
  return {
    catalog,
    localModels,
    database,
    events,
    ownEvents,
    processId,
    ledger,
    settler,
    ...{ leases, claims, limitFinder },
    known,
    tiers,
    refills,
    recovery,
    keyCache,
    usableVendorKeys,
    communityModels,
    modelHealth,
    routeDirectory,
    outbound,
    upstreams,
    blobs: opened.blobs,
    blobUrls: opened.urls,
    blobOrigin: opened.origin,
    freeBytes: () => freeBytesOf(dataDir.path),
    counters,
    trustedDocuments,
    documents,
    routeStates,
    secrets,
    metrics,
    unknownWords,
    learnedFields,
    spool,
    recover: async () => {
      await settler.replaySpool();
      await Promise.all([communityModels.load(), modelHealth.load()]);
      await localModelsListed;
      await Promise.all([routeDirectory.load(), limitFinder.load()]);
      await recovery.start();
    },
    close: async () => {
      await keyRing.close();
      await outbound.close();
      await settler.close();
      await leases.close();
      await Promise.all([claims.close(), limitFinder.close()]);
      await recovery.stop().catch((error: unknown) => log.warn({ err: error }, "could not say goodbye to the database"));
      counters.close();
      documents.close();
      routeStates?.close();
      await modelHealth.close();
      await communityModels.close();
      await routeDirectory.close();
      await events.close();
      opened.close();
      await database.close();
      await dataDir.release();
    },
  };
}

async function openKeyRing(
  { encryptionKeyPrevious: previous }: PlatformSettings,
  current: string,
  { database, dataDir }: Pick<Infrastructure, "database"> & { readonly dataDir: DataDir },
  keep: () => void,
): Promise<OpenedSecrets> {
  try {
    return await openSecrets(database, { current, previous }, keep);
  } catch (error) {
    await database.close();
    await dataDir.release();
    throw error;
  }
}

function warnOfRotation({ encryptionKeyPrevious }: PlatformSettings, isRotating: boolean, log: Logger): void {
  if (isRotating)
    log.warn(
      "a rotation of ENCRYPTION_KEY is under way: when every process runs with the new one, run `npm run -s sluice -- secrets reseal`",
    );
  else if (encryptionKeyPrevious !== null) log.warn("ENCRYPTION_KEY_PREVIOUS is no longer needed: unset it");
}

async function openStore(settings: PlatformSettings, dataDir: DataDir, urls: BlobUrls, log: Logger): Promise<OpenedBlobs> {
  try {
    return await openBlobs(settings.s3, dataDir, urls, log);
  } catch (error) {
    await dataDir.release();
    throw error;
  }
}

async function openMigrated(settings: PlatformSettings, dataDir: DataDir, log: Logger): Promise<Database> {
  const { databaseUrl, databaseDirectUrl: directUrl, worker } = settings;
  const share = worker ? { poolConnectionsMax: sharedConnectionsOf(worker.workers) } : {};
  const database = await openDatabase({ databaseUrl, directUrl, dataDir: dataDir.path, log, ...share });
  try {
    await migrate(database, log);
    return database;
  } catch (error) {
    await database.close();
    await dataDir.release();
    throw error;
  }
}
