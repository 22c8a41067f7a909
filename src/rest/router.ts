/** The REST face: all routes in order of matching, the busiest first. */
import { type RequestHandler, Router } from "express";
import { type Logger, pino } from "pino";
import type { DirectRoutes } from "../fast/direct-routes.js";
import type { Addresses } from "../lib/urls.js";
import type { Services } from "../services/services.js";
import { createEndpoint } from "./endpoint.js";
import { type HostMount, mountHost } from "./host-mount.js";
import { createOAuthEndpoint } from "./oauth-endpoint.js";
import { createOpenApiDocument } from "./openapi/document.js";
import { type RecordedRoute, recordingRoute } from "./openapi/record.js";
import { addDashboardRoutes, Dashboard } from "./pages/dashboard.js";
import { createPageEndpoint } from "./pages/page-endpoint.js";
import { HOME_PATH } from "./pages/return-to.js";
import { startPage } from "./pages/start.js";
import { QuotedRoutes } from "./quoting.js";
import { createRoute, toRequestHandler } from "./route.js";
import { addAccountRoutes, addLedgerRoutes, addLowBalanceRoutes } from "./routes/account.js";
import { addAgentRoutes, addAgentSyncRoutes } from "./routes/agents.js";
import { addAlertRoutes } from "./routes/alerts.js";
import { addApiKeyRoutes } from "./routes/api-keys.js";
import { addAudioRoutes, addSpeechRoutes, addTranscriptionRoutes, addTranslationRoutes } from "./routes/audio.js";
import { addAuthRoutes } from "./routes/auth.js";
import { addBillingRoutes } from "./routes/billing.js";
import { addChatCompletionRoutes } from "./routes/chat-completions.js";
import { addCommunityModelRoutes, addCommunityModelTestRoutes } from "./routes/community-models.js";
import { addCompletionRoutes } from "./routes/completions.js";
import { addConversationRoutes } from "./routes/conversations.js";
import { addDocsRoutes } from "./routes/docs.js";
import { addEarningRoutes } from "./routes/earnings.js";
import { addEmbeddingRoutes } from "./routes/embeddings.js";
import { addGeminiRoutes } from "./routes/gemini.js";
import { addGenerationRoutes } from "./routes/generations.js";
import { addHealthRoutes, addStartRedirect, type ServiceInfo } from "./routes/health.js";
import { addImageRoutes } from "./routes/images.js";
import { addIntegrationRoutes } from "./routes/integrations.js";
import { addMcpRoutes } from "./routes/mcp.js";
import { addMediaRoutes } from "./routes/media.js";
import { addMessageRoutes } from "./routes/messages.js";
import { addMetricsRoutes } from "./routes/metrics.js";
import { addModelRoutesRoutes } from "./routes/model-routes.js";
import { addModelRoutes } from "./routes/models.js";
import { addModerationRoutes } from "./routes/moderations.js";
import { addMetadataRoutes, addProtectedResourceRoutes } from "./routes/oauth.js";
import { addOperatorRoutes } from "./routes/operators.js";
import { addPaymentEventRoutes } from "./routes/payment-events.js";
import { addQuoteRoutes } from "./routes/quote.js";
import { addRealtimeRoutes } from "./routes/realtime.js";
import { addRequestRoutes } from "./routes/requests.js";
import { addRerankRoutes } from "./routes/rerank.js";
import { addResponseRoutes } from "./routes/responses.js";
import { addRunRoutes } from "./routes/runs.js";
import { addSalesRoutes } from "./routes/sales.js";
import { addSessionRoutes } from "./routes/sessions.js";
import { addStoredResponseRoutes } from "./routes/stored-responses.js";
import { addTextRoutes } from "./routes/text.js";
import { addTopUpRoutes } from "./routes/top-ups.js";
import { addAppUsageRoutes, addUsageRoutes } from "./routes/usage.js";
import { addUsageLimitRoutes } from "./routes/usage-limits.js";
import { addVendorKeyRoutes } from "./routes/vendor-keys.js";
import { addOpenAiVideoRoutes, addVideoRoutes } from "./routes/videos.js";
import { addWebhookRoutes } from "./routes/webhooks.js";
import { UnknownRoutes } from "./unknown-routes.js";

export interface RestRouterOptions {
  readonly services: Services;
  readonly log: Logger;
  readonly isReady: ServiceInfo["isReady"];
  readonly trustProxyHops: number;
  /** The media host's mount; default: below /media. */
  readonly media?: HostMount;
  /** The mount of sign-in and consent; default: the gateway's own addresses. */
  readonly auth?: HostMount;
  /** A function, because a port chosen by the system is known only later. */
  readonly addresses?: () => Addresses;
  readonly hasGraphiQL?: boolean;
  /** Origin of the blob store that browsers use; null or absent: the media host. */
  readonly blobOrigin?: string | null;
  /** Receives the routes without parameters. */
  readonly direct?: DirectRoutes;
}

/** Answers every request, with 404 for unknown paths: mount it last. */
export function createRestRouter(options: RestRouterOptions): RequestHandler {
  const quoted = new QuotedRoutes(options.log);
  const { router, unknown } = createRouter(options, [], quoted);
  options.services.quotes.includeRoutes(quoted);
  return toRequestHandler(router, options.log, undefined, unknown);
}

/** The contract of schema/openapi.json: adding routes uses no service. */
export function printOpenApi(): string {
  return `${JSON.stringify(createOpenApiDocument(recordRoutes()), null, 2)}\n`;
}

export function recordRoutes(): readonly RecordedRoute[] {
  const recorded: RecordedRoute[] = [];
  const services = new Proxy({}, { get: () => ({}) }) as Services;
  const log = pino({ level: "silent" });
  createRouter({ services, log, isReady: () => false, trustProxyHops: 0 }, recorded, new QuotedRoutes(log));
  return recorded;
}

/** Adds every route, and records it in `recorded`. */
function createRouter(
  {
    services,
    log,
    isReady,
    trustProxyHops,
    media,
    auth,
    addresses = unstated,
    hasGraphiQL = false,
    blobOrigin = null,
    direct,
  }: RestRouterOptions,
  recorded: RecordedRoute[],
  quoted: QuotedRoutes,
): { readonly router: Router; readonly unknown: UnknownRoutes } {
  const endpoint = createEndpoint(services.access, trustProxyHops, services.bodies, services.idempotency, services.wishes);
  const router = Router({ caseSensitive: true });
  // Hints for unknown paths name the routes of this host.
  const served: RecordedRoute[] = [];
  const mediaMount = media ?? { host: null, path: "/media" };
  const hasOwnMediaUrl = mediaMount.host !== null || mediaMount.path !== "/media";
  const unknown = new UnknownRoutes(
    served,
    () => addresses().baseUrl,
    () => (hasOwnMediaUrl ? addresses().mediaUrl : null),
  );
  const route = quoted.recording(recordingRoute(recordingRoute(createRoute(router, log, "", unknown, direct), recorded), served));
  const mediaRouter = Router({ caseSensitive: true });
  const mediaHome = () => (mediaMount.host === null ? "/" : `${addresses().baseUrl}/`);
  addMediaRoutes(recordingRoute(createRoute(mediaRouter, log, "/media"), recorded, "/media"), endpoint, services, mediaHome);
  mountHost(router, mediaRouter, mediaMount, log, mediaHome);
  direct?.mount(mediaMount);
  const authRouter = Router({ caseSensitive: true });
  const gateway = { addresses, hasGraphiQL, blobOrigin };
  const page = createPageEndpoint({
    sessions: services.access,
    csrfTokens: services.csrfTokens,
    bodies: services.bodies,
    trustProxyHops,
    isSecure: () => addresses().authUrl.startsWith("https:"),
  });
  const oauth = createOAuthEndpoint(services.access, trustProxyHops, services.bodies);
  addAuthRoutes(recordingRoute(createRoute(authRouter, log), recorded), { endpoint, page, oauth }, services);
  const dashboard = new Dashboard(gateway);
  // Pages are not part of the API's contract.
  addDashboardRoutes(createRoute(authRouter, log), page, dashboard);
  // A separate host comes first; otherwise the busier routes do.
  const authMount = auth ?? { host: null, path: "" };
  const authRoot = Router({ caseSensitive: true });
  // Some clients look below the host's path, like the host's other routes; RFC 8414 looks above it.
  if (authMount.path !== "") addMetadataRoutes(createRoute(authRoot, log), services, authMount.path);
  if (authMount.host !== null) {
    addStartRedirect(createRoute(authRoot, log), authMount.path + HOME_PATH);
    mountHost(router, authRouter, authMount, log, () => "/", authRoot);
    direct?.mount(authMount);
  }
  addChatCompletionRoutes(route, endpoint, services);
  addResponseRoutes(route, endpoint, services);
  addStoredResponseRoutes(route, endpoint, services);
  addConversationRoutes(route, endpoint, services);
  addCompletionRoutes(route, endpoint, services);
  addMessageRoutes(route, endpoint, services);
  addRealtimeRoutes(route, endpoint, services);
  addEmbeddingRoutes(route, endpoint, services);
  addModerationRoutes(route, endpoint, services);
  // Before the models, whose paths hold any text.
  addGeminiRoutes(route, endpoint, services);
  addRerankRoutes(route, endpoint, services);
  addRunRoutes(route, endpoint, services);
  // Before the prompts: /text/models is a list.
  addModelRoutes(route, endpoint, services);
  addTextRoutes(route, endpoint, services);
  addImageRoutes(route, endpoint, services);
  addVideoRoutes(route, endpoint, services);
  addSpeechRoutes(route, endpoint, services);
  addTranscriptionRoutes(route, endpoint, services);
  addTranslationRoutes(route, endpoint, services);
  addAudioRoutes(route, endpoint, services);
  addQuoteRoutes(route, endpoint, services);
  addGenerationRoutes(route, endpoint, services);
  addOpenAiVideoRoutes(route, endpoint, services);
  // Not REST, and so not part of its contract.
  addMcpRoutes(createRoute(router, log, "", undefined, direct), endpoint, services);
  addProtectedResourceRoutes(route, services);
  const start = page({
    hasForms: false,
    handler: (_ctx, { session }) => {
      const pages = authMount.host === null ? authMount.path : addresses().authUrl;
      if (session) return authMount.host === null ? dashboard.page(pages) : { redirectTo: pages + HOME_PATH };
      return startPage({ ...gateway, pages, isSignUpOpen: services.signIn.isSignUpOpen });
    },
  });
  addHealthRoutes(route, { isReady, startPage: start });
  addMetricsRoutes(route, services, trustProxyHops);
  addPaymentEventRoutes(route, services, trustProxyHops);
  // Every account route exists under both prefixes (docs/spec/http.md#addresses).
  const account = Router({ caseSensitive: true });
  const accountRoute = recordingRoute(
    recordingRoute(createRoute(account, log, "/account", unknown), recorded, "/account"),
    served,
    "/account",
  );
  addApiKeyRoutes(accountRoute, endpoint, services);
  addUsageRoutes(accountRoute, endpoint, services);
  addRequestRoutes(accountRoute, endpoint, services);
  addOperatorRoutes(accountRoute, endpoint, services);
  addModelRoutesRoutes(accountRoute, endpoint, services);
  addAppUsageRoutes(accountRoute, endpoint, services);
  addAccountRoutes(accountRoute, endpoint, services);
  addLowBalanceRoutes(accountRoute, endpoint, services);
  addLedgerRoutes(accountRoute, endpoint, services);
  addUsageLimitRoutes(accountRoute, endpoint, services);
  addVendorKeyRoutes(accountRoute, endpoint, services);
  addAlertRoutes(accountRoute, endpoint, services);
  addTopUpRoutes(accountRoute, endpoint, services);
  addEarningRoutes(accountRoute, endpoint, services);
  addBillingRoutes(accountRoute, endpoint, services);
  addSalesRoutes(accountRoute, endpoint, services);
  addWebhookRoutes(accountRoute, endpoint, services);
  // Before the ids, as it is a fixed word.
  addCommunityModelTestRoutes(accountRoute, endpoint, services);
  addCommunityModelRoutes(accountRoute, endpoint, services);
  addAgentRoutes(accountRoute, endpoint, services);
  addAgentSyncRoutes(accountRoute, endpoint, services);
  addIntegrationRoutes(accountRoute, endpoint, services);
  addSessionRoutes(accountRoute, endpoint, services);
  router.use(["/account", "/api/account"], account);
  direct?.mount({ host: null, path: "/account" });
  direct?.mount({ host: null, path: "/api/account" });
  // Some routes need a session, and sessions count only at a separate sign-in host.
  if (authMount.host !== null) authRoot.use(["/account", "/api/account"], account);
  if (authMount.host === null) {
    mountHost(router, authRouter, authMount, log, () => "/", authRoot);
    direct?.mount({ host: null, path: "" });
  }
  addDocsRoutes(route, recorded, () => addresses().baseUrl);
  return { router, unknown };
}

/** For printing the contract. */
function unstated(): Addresses {
  return { baseUrl: "", authUrl: "", mediaUrl: "" };
}
