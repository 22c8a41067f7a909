/** Creates all services, in order of dependency. */

import type { Logger } from "pino";
import type { Clock } from "../lib/clock.js";
import { formatPercent } from "../lib/money.js";
import type { Addresses } from "../lib/urls.js";
import { Access } from "./access/access.js";
import { RateLimits } from "./access/rate-limits.js";
import { AccountDeletions } from "./account-data/deletion.js";
import { AccountErasure } from "./account-data/erasure.js";
import { AccountExports } from "./account-data/export.js";
import { Accounts } from "./accounts/accounts.js";
import { LiveAccount } from "./accounts/live.js";
import { LiveApiKeys } from "./accounts/live-api-keys.js";
import { Profiles, UserInfo } from "./accounts/profiles.js";
import { AgentRuns } from "./agents/agent-runs.js";
import { AgentSync } from "./agents/agent-sync.js";
import { Agents } from "./agents/agents.js";
import { CodeAgents } from "./agents/code-agents.js";
import { CodeRuns } from "./agents/code-runs.js";
import { CodeScripts } from "./agents/code-scripts.js";
import { PromptAgents } from "./agents/prompt-agents.js";
import { PromptDefinitions } from "./agents/prompt-definitions.js";
import { Repositories } from "./agents/repositories.js";
import { RunLimits } from "./agents/run-limits.js";
import { RunTokens } from "./agents/run-tokens.js";
import { SandboxRunner } from "./agents/sandbox/sandbox-runner.js";
import { createAlerts } from "./alerts/create-alerts.js";
import { ApiKeys } from "./api-keys/api-keys.js";
import { usageModalityOf } from "./catalog/modality.js";
import { PriceHistory } from "./catalog/price-history.js";
import { CommunityModels } from "./community-models/community-models.js";
import { LiveModelHealth } from "./community-models/live-health.js";
import { CommunityModelProbe } from "./community-models/probe.js";
import { CommunityModelRepository } from "./community-models/repository.js";
import { UpstreamUrls } from "./community-models/upstream-url.js";
import { createAuthorizationServices } from "./composition/authorization-services.js";
import { createEarnings } from "./composition/earning-services.js";
import type { Infrastructure, PlatformSettings } from "./composition/infrastructure.js";
import { createOperatorServices } from "./composition/operator-services.js";
import { payerOf } from "./credits/charge-request.js";
import { Credits } from "./credits/credits.js";
import { OutputEstimates } from "./credits/output-estimates.js";
import { RefusedFunds } from "./credits/refused-funds.js";
import { BlobGc } from "./files/blob-gc.js";
import { BlobTransfers } from "./files/blob-transfers.js";
import { Media } from "./files/media.js";
import { MEDIA_FOLDER, MediaLinks } from "./files/media-links.js";
import { MEDIA_OBJECT_FOLDER, MediaObjects } from "./files/media-objects.js";
import { MediaQuotas } from "./files/media-quotas.js";
import { Admission } from "./generation/admission.js";
import { ChatCompletions } from "./generation/chat/chat.js";
import { Completions } from "./generation/chat/completions.js";
import { createChatFaces } from "./generation/chat/faces.js";
import { TextGeneration } from "./generation/chat/text.js";
import { CachedAnswers, CONTENT_CACHE_FOLDER } from "./generation/content-cache/cached-answers.js";
import { ContentCache } from "./generation/content-cache/content-cache.js";
import { createRunning } from "./generation/create-running.js";
import { Embeddings } from "./generation/embeddings.js";
import { type HealthReporter, RefusedCredentials } from "./generation/failures.js";
import { Generations } from "./generation/generations.js";
import { JOB_BLOB_FOLDER } from "./generation/jobs/job.js";
import { GenerationJobs } from "./generation/jobs/jobs.js";
import { findJobBlobs, JobRows } from "./generation/jobs/rows.js";
import { JobRecovery, JobRunner } from "./generation/jobs/runner.js";
import { AudioGeneration } from "./generation/media/audio.js";
import { Images } from "./generation/media/images.js";
import { ImageReferences } from "./generation/media/images-references.js";
import { MediaInspector } from "./generation/media/media-inspector.js";
import { Music } from "./generation/media/music.js";
import { Speech } from "./generation/media/speech.js";
import { Transcriptions } from "./generation/media/transcriptions.js";
import { Videos } from "./generation/media/videos.js";
import { Moderations } from "./generation/moderations.js";
import { moderatorsOf } from "./generation/moderators.js";
import { NamedAddresses } from "./generation/named-addresses.js";
import { Quotes } from "./generation/quotes.js";
import { RealtimeClientSecrets } from "./generation/realtime/client-secrets.js";
import { RealtimeSessions } from "./generation/realtime/realtime.js";
import { Rerankings } from "./generation/rerank.js";
import { createRouter } from "./generation/routing/router.js";
import { createPresets } from "./generation/routing/wish-reader.js";
import { createStored } from "./generation/stored/create-stored.js";
import { BoundedUsage } from "./generation/usage-reports.js";
import { AnswerRoom } from "./idempotency/answer-room.js";
import { IDEMPOTENCY_FOLDER, Idempotency } from "./idempotency/idempotency.js";
import { connectionLink, DevelopmentBroker } from "./integrations/development-broker.js";
import { brokerOf } from "./integrations/http-broker.js";
import { callbackLink, Integrations } from "./integrations/integrations.js";
import { SignedLinks } from "./integrations/signed-links.js";
import { McpGateway } from "./mcp/gateway.js";
import type { LoopbackClient } from "./mcp/loopback-client.js";
import { McpServers } from "./mcp/servers.js";
import { ToolCalls } from "./mcp/tool-calls.js";
import { createTools } from "./mcp/tools/tools.js";
import { GatewayStatus } from "./metrics/gateway-status.js";
import { MetricsReport } from "./metrics/metrics.js";
import { createPayments } from "./payments/create-payments.js";
import { paymentSweep } from "./payments/payment-reports.js";
import { createRequestLog } from "./request-log/create-request-log.js";
import { BodyBudget } from "./requests/body-budget.js";
import { PersistedDocuments } from "./requests/persisted-documents.js";
import { createRuns } from "./runs/create-runs.js";
import { Moderation } from "./safety/moderation.js";
import { Safety } from "./safety/safety.js";
import { SecretBox } from "./secrets/secret-box.js";
import { CsrfTokens, SessionCookie } from "./sessions/csrf-tokens.js";
import { GitHubSignIn } from "./sessions/github-sign-in.js";
import { Passwords } from "./sessions/passwords.js";
import { SessionDirectory } from "./sessions/session-directory.js";
import { Sessions } from "./sessions/sessions.js";
import { SignIn } from "./sessions/sign-in.js";
import { signInLibraryOnDemand } from "./sessions/sign-in-library.js";
import { SignInLimits } from "./sessions/sign-in-limits.js";
import { ModelActivities } from "./usage/model-activity.js";
import { AppUsages, UsageRecords } from "./usage/usage.js";
import { UsageRoller } from "./usage/usage-roller.js";
import { UsageSummaries } from "./usage/usage-summaries.js";
import { UsageLimits } from "./usage-limits/usage-limits.js";
import { createVendorKeys } from "./vendor-keys/create-vendor-keys.js";
import { createWebhooks } from "./webhooks/create-webhooks.js";

/** The services that faces may call. */
export type Services = CreatedServices["services"];
/** With background work to start and stop. */
export type CreatedServices = ReturnType<typeof createServices>;

/** `addresses` is a function because a port chosen by the system is known only later. */
export function createServices(
  infrastructure: Infrastructure,
  settings: PlatformSettings,
  clock: Clock,
  log: Logger,
  addresses: () => Addresses,
  loopback: LoopbackClient,
) {
  const { catalog, database, events, processId, settler, known, tiers, refills, keyCache, outbound, upstreams } = infrastructure;
  const { blobs, counters, leases, communityModels, modelHealth, metrics, secrets, unknownWords, usableVendorKeys } = infrastructure;
  const usageRoller = new UsageRoller(database, clock, log);
  const { failureRecorder, failures, logs } = createRequestLog(infrastructure, settings, clock, log);
  const refusedCredentials = new RefusedCredentials(log, clock);
  const boundedUsage = new BoundedUsage(log, metrics, clock);
  const healthReporter: HealthReporter = {
    succeeded: (caller, model) => modelHealth.succeeded(caller, model),
    failed: (caller, model) => modelHealth.failed(caller, model),
    generationFailed: (caller, { id: model, modality }) => {
      const { accountId, apiKeyId } = payerOf(caller);
      usageRoller.noteFailure({ accountId, apiKeyId, model, modality: usageModalityOf(modality) });
    },
    upstreamFailed: (candidate, error) => {
      if (!candidate.route.vendorKey) metrics.upstreamFailed(candidate.model, error);
      refusedCredentials.note(candidate, error);
    },
    usageBounded: (candidate, report) => boundedUsage.note(candidate, report),
  };
  const { totalMs } = settings.timeouts;
  const mediaUrl = () => addresses().mediaUrl;
  const mediaQuotas = new MediaQuotas(database, settings.mediaQuota, () => infrastructure.freeBytes(), clock);
  const room = new AnswerRoom(mediaQuotas, clock);
  const idempotency = new Idempotency(database, blobs, room, clock, processId, log);
  const mediaLinks = new MediaLinks({ database, blobs, quotas: mediaQuotas, clock, mediaUrl });
  const mediaObjects = new MediaObjects({
    database,
    blobs,
    quotas: mediaQuotas,
    isOnDisk: infrastructure.blobUrls !== null,
    clock,
    mediaUrl,
  });
  const media = new Media(mediaLinks, mediaObjects, mediaUrl);
  const accounts = new Accounts(database, refills, leases);
  const usage = new UsageRecords(database, clock);
  const creditsPage = () => (settings.payments === "off" ? null : `${addresses().authUrl}/dashboard/credits`);
  const funds = new RefusedFunds(database, settings.topUp, creditsPage);
  const credits = new Credits(settler, known, refills, funds, leases, infrastructure.claims, infrastructure.limitFinder);
  const estimates = new OutputEstimates();
  const limits = new RateLimits(counters, settings.rateLimits);
  const safety = new Safety(new Moderation(() => moderatorsOf(catalog, upstreams, settings.moderationModel)));
  const router = createRouter(infrastructure, clock);
  const admission = new Admission(
    catalog,
    limits,
    safety,
    new NamedAddresses(outbound, media),
    metrics,
    router,
    settings.vendorKeyFee,
    formatPercent(settings.earnings.communityShare),
  );
  if (settings.moderationModel !== null && catalog.find(settings.moderationModel)?.modality !== "moderation") {
    log.warn({ model: settings.moderationModel }, "MODERATION_MODEL names no moderation model: the checks that need one answer 503");
  }
  const cachedAnswers = new CachedAnswers(database, blobs, clock, log);
  const contentCache = new ContentCache(cachedAnswers, settings.contentCacheTimes);
  const running = createRunning(database, events, log);
  const { runs, liveRuns, approvals } = createRuns(infrastructure, clock, log);
  const generations = new Generations({ credits, admission, healthReporter, running, approvals, totalMs });
  const embeddings = new Embeddings(generations, upstreams);
  const agentRuns = new AgentRuns();
  const mcpServers = new McpServers({ urls: settings.mcpServers, keys: settings.mcpServerKeys, loopback, clock, unknownWords });
  upstreams.includeAgents(agentRuns);
  const chat = new ChatCompletions({ estimates, upstreams, credits, admission, healthReporter, running, approvals, totalMs });
  const sessionCookie = new SessionCookie(() => {
    const { baseUrl, authUrl } = addresses();
    return settings.sessionHost === null ? [baseUrl, authUrl] : [authUrl];
  }, settings.sessionHost);
  const sessionDirectory = new SessionDirectory(
    database,
    secrets.hashing("session tokens"),
    clock,
    events,
    usableVendorKeys,
    infrastructure.limitFinder,
  );
  const sessions = new Sessions(database, sessionDirectory, sessionCookie, events, clock);
  const passwords = new Passwords(settings.passwordCost);
  const signInLimits = new SignInLimits(counters, settings.signInAttemptsPerMinute, settings.signInPace);
  const isSignUpOpen = settings.signUp === "open";
  const library = signInLibraryOnDemand(() => ({
    ...{ database, passwords, clock, log, github: settings.github, isSignUpOpen },
    secret: secrets.hashing("sign-in"),
    authUrl: addresses().authUrl,
    hashToken: (token) => sessionDirectory.hash(token),
  }));
  const signIn = new SignIn({
    ...{ database, sessions, passwords, isSignUpOpen, library, limits: signInLimits, passwordHelp: settings.passwordHelp },
    directory: sessionDirectory,
    cookie: sessionCookie,
  });
  const gitHubSignIn = new GitHubSignIn({ signIn, limits: signInLimits, library, webUrl: settings.github?.webUrl ?? null });
  const runTokens = new RunTokens(secrets.signing("run tokens"), keyCache, sessionDirectory, clock);
  keyCache.acceptRunTokens(runTokens);
  const runLimits = new RunLimits(accounts);
  const sandboxRunner = new SandboxRunner(log, undefined, undefined, settings.worker?.workers);
  const codeRuns = new CodeRuns({ database, clock, log, ownerOf: (model) => communityModels.ownerOf(model) });
  const codeAgent = new CodeAgents({
    codeRuns,
    scripts: new CodeScripts(database, events),
    sandboxRunner,
    runTokens,
    runLimits,
    loopback,
    mcpServers,
    addresses,
    timeouts: settings.timeouts,
  });
  const definitions = new PromptDefinitions(database);
  const promptAgent = new PromptAgents({ chat, catalog, definitions, servers: mcpServers, runTokens, runLimits, clock });
  // An agent's answer is a chat, and so are its requests.
  agentRuns.runBy({ promptAgent, codeAgent, runLimits });
  const apiKeys = new ApiKeys(database, keyCache, catalog, events, clock, leases);
  const jobRows = new JobRows(database, clock, processId);
  const jobParts = { database, rows: jobRows, blobs, events, clock, processId, log, failures: failureRecorder };
  const jobRunner = new JobRunner({ ...jobParts, generations });
  const jobRecovery = new JobRecovery({ ...jobParts, running: () => jobRunner.ids });
  const jobs = new GenerationJobs({ ...jobParts, runner: jobRunner, recovery: jobRecovery, baseUrl: () => addresses().baseUrl });
  const repositories = new Repositories(outbound);
  const references = new ImageReferences(outbound, media);
  const inspector = new MediaInspector();
  const videos = new Videos({ catalog, inspector, generations, upstreams, contentCache, references, chat, jobs });
  const speech = new Speech({ generations, upstreams, totalMs });
  const music = new Music({ generations, upstreams, jobs, inspector });
  const authorizing = createAuthorizationServices({
    ...{ database, keyCache, catalog, events, counters, secrets, outbound, accounts, apiKeys, clock, addresses, funds },
    readsClientDocuments: settings.readsClientDocuments,
    marginPercentMax: settings.earnings.marginPercentMax,
  });
  const { deviceAuthorizations, protectedResources } = authorizing;
  const integrationPage = (page: string) => () => `${addresses().authUrl}/integrations/${page}`;
  const developmentBroker = new DevelopmentBroker({
    ...{ database, clock, pageUrl: integrationPage("connect") },
    links: new SignedLinks(secrets.signing("development connections"), connectionLink),
    isInUse: settings.integrations.kind === "development",
  });
  const broker = brokerOf(settings.integrations, developmentBroker);
  const accountErasure = new AccountErasure({ database, broker, leases, failures, clock, log });
  const integrations = new Integrations({
    ...{ database, clock, broker, callbackPageUrl: integrationPage("callback") },
    links: new SignedLinks(secrets.signing("returns of connections"), callbackLink),
  });
  const box = new SecretBox(secrets.sealing("columns"));
  const bodies = new BodyBudget(settings.requestBodiesBytes);
  const { responses: plainResponses, ...chatFaces } = createChatFaces(chat, embeddings, catalog, limits);
  const { storedWork, storedExports, ...stored } = createStored({
    ...{ database, box, clock, processId, room, bodies, safety, events, log, failures: failureRecorder },
    ...{ responses: plainResponses, days: settings.storedResponsesDays },
  });
  const blobGc = new BlobGc(
    blobs,
    [
      { folder: MEDIA_FOLDER, findNamed: (keys) => mediaLinks.findNamed(keys), sweep: () => mediaLinks.sweep() },
      { folder: MEDIA_OBJECT_FOLDER, findNamed: (keys) => mediaObjects.findNamed(keys), sweep: () => mediaObjects.sweep() },
      { folder: CONTENT_CACHE_FOLDER, findNamed: (keys) => cachedAnswers.findNamed(keys), sweep: () => cachedAnswers.sweep() },
      { folder: IDEMPOTENCY_FOLDER, findNamed: (keys) => idempotency.findNamed(keys), sweep: () => idempotency.sweep() },
      { folder: JOB_BLOB_FOLDER, findNamed: (keys) => findJobBlobs(database, keys) },
    ],
    clock,
    log,
    [deviceAuthorizations, developmentBroker, { sweep: () => failures.sweepExpired() }, storedWork, paymentSweep(database, clock)],
  );
  const { webhooks, lowBalance, webhookWork } = createWebhooks(infrastructure, box, clock, log);
  const modelRepository = new CommunityModelRepository(database, events);
  const urls = new UpstreamUrls(outbound, addresses);
  const upToDate = () => communityModels.upToDate();
  const images = new Images({ catalog, generations, upstreams, contentCache, references, chat, mediaLinks, mediaQuotas, videos, jobs });
  const text = new TextGeneration(chat, catalog, contentCache);
  const access = new Access(keyCache, sessions, sessionCookie, limits);
  const authUrl = () => addresses().authUrl;
  const operatorServices = createOperatorServices({ infrastructure, settings, clock, accounts, passwords, router, authUrl });
  const { accountSuspensions } = operatorServices;
  const { paymentWork, ...paymentServices } = createPayments({ ...infrastructure, accountSuspensions, clock, log, authUrl }, settings);
  const { alerts, alertWork } = createAlerts(infrastructure, settings.retirements, clock, log);
  const services = {
    ...{ access, alerts },
    ...operatorServices,
    accountDeletions: new AccountDeletions({ database, events, clock, leases, signIn, cookie: sessionCookie, erasure: accountErasure }),
    accountExports: new AccountExports(database, storedExports),
    accounts,
    agents: new Agents({ database, modelRepository, catalog, repositories, upToDate, clock, mcpServers: mcpServers.available() }),
    agentSync: new AgentSync({ database, repositories, events, clock }),
    apiKeys,
    ...authorizing,
    appUsage: new AppUsages(database, clock),
    audio: new AudioGeneration({ catalog, contentCache, speech, music }),
    bodies,
    blobTransfers: new BlobTransfers(blobs, infrastructure.blobUrls, mediaQuotas),
    catalog,
    chat,
    codeRuns,
    communityModels: new CommunityModels({ database, modelRepository, box, events, upToDate, clock, urls }),
    communityModelProbe: new CommunityModelProbe({ modelRepository, catalog, urls, outbound, counters }),
    developmentBroker,
    gatewayStatus: new GatewayStatus({
      learnedFields: infrastructure.learnedFields,
      ...{ platform: infrastructure, work: { running, jobRunner }, metrics, catalog, tiers, clock },
      workers: settings.worker,
    }),
    embeddings,
    csrfTokens: new CsrfTokens(secrets.signing("form tokens"), clock),
    ...{ jobs, images, idempotency, integrations },
    live: new LiveAccount(events, usage),
    liveApiKeys: new LiveApiKeys(database, events, clock),
    liveModelHealth: new LiveModelHealth(events, communityModels, modelHealth),
    lowBalance,
    mcp: new McpGateway({
      tools: createTools({ catalog, generations, text, images, speech, videos, mediaLinks }),
      calls: new ToolCalls(events),
      resources: protectedResources,
      ownUrls: () => [addresses().baseUrl, addresses().authUrl],
    }),
    ...{ media, mediaLinks, mediaObjects, mediaQuotas },
    metricsReport: new MetricsReport(metrics, settings.metrics, access),
    modelActivities: new ModelActivities(database, clock),
    moderations: new Moderations(generations, upstreams),
    quotes: new Quotes(),
    rerankings: new Rerankings(generations, upstreams),
    music,
    realtimeClientSecrets: new RealtimeClientSecrets({
      box: new SecretBox(secrets.signing("realtime client secrets")),
      apiKeys: keyCache,
      catalog,
      clock,
    }),
    realtime: new RealtimeSessions({ generations, admission, upstreams, catalog, times: settings.realtimeTimes }),
    ...logs,
    completions: new Completions(chat),
    ...chatFaces,
    ...stored,
    ...{ sessions, signIn, gitHubSignIn },
    /** For messages at the start; agents are run through `chat`. */
    sandboxRunner,
    persistedDocuments: new PersistedDocuments(
      infrastructure.trustedDocuments,
      infrastructure.documents,
      counters,
      settings.persistedDocuments.isOnly,
    ),
    ...createPresets(database, catalog, clock),
    ...createEarnings(infrastructure, clock, log),
    ...{ runs, liveRuns, usage },
    ...paymentServices,
    priceHistory: new PriceHistory({ database, catalog, community: communityModels, events, clock, log }),
    profiles: new Profiles(database, events),
    ...{ speech, text },
    transcriptions: new Transcriptions({ generations, upstreams, inspector }),
    usageLimits: new UsageLimits({ database, catalog, events, clock }),
    usageSummaries: new UsageSummaries(database, clock),
    userInfo: new UserInfo(database),
    vendorKeys: createVendorKeys(infrastructure, box, clock, settings.vendorKeyFee),
    ...{ videos, webhooks },
  };
  const work = {
    ...{ router, cachedAnswers, inspector, running, storedWork },
    ...{ blobGc, webhookWork, mcpServers, jobRunner, usageRoller, accountErasure, paymentWork, alertWork },
  };
  return { services, approvals, ...work, failureRecorder };
}
