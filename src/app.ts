/**
 * The composition root: makes an HTTP server from a configuration.
 *
 * 1. It listens first. When that fails nothing was changed: no database is made, and no key that would not be shown.
 * 2. The platform is opened: the data directory, the database and its migrations, the owner and the key to print.
 * 3. The faces answer. Until then requests are answered that the gateway is starting.
 *
 * One of several workers listens only on a port of its own, at which its agents reach it: the primary listens on the gateway's port, and
 * hands over connections.
 */
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Request, Response } from "express";
import type { Logger } from "pino";
import { addressesOf, type Config } from "./config/config.js";
import { answeredHostnamesOf, authMountOf, mediaMountOf } from "./config/hosts.js";
import { notFound } from "./errors.js";
import { DirectRoutes } from "./fast/direct-routes.js";
import type { StopListening } from "./fast/shared-port.js";
import { AnsweredHosts, misdirected } from "./http/answered-hosts.js";
import { statusOfText } from "./http/errors.js";
import { listenWithBursts } from "./http/listening.js";
import { createMessageClasses, endConnectionsWithAnswers, trackRequests } from "./http/server.js";
import { answerWhileStarting } from "./http/starting.js";
import type { UpgradeHandler } from "./http/websocket.js";
import { type Clock, systemClock } from "./lib/clock.js";
import { type RequestEnd, type RequestNote, type RequestObserver, watchRequests } from "./lib/request-note.js";
import { type Addresses, loopbackUrl } from "./lib/urls.js";
import { DRAIN_TIMEOUT_MS, HTTP_HEADERS_TIMEOUT_MS, HTTP_KEEP_ALIVE_MS, HTTP_REQUEST_TIMEOUT_MS } from "./limits.js";
import type { Infrastructure } from "./services/composition/infrastructure.js";
import { openPlatform } from "./services/composition/platform.js";
import type { WorkerLink } from "./services/composition/worker-link.js";
import { AccessLog } from "./services/metrics/access-log.js";
import { Metrics } from "./services/metrics/metrics.js";
import type { Services } from "./services/services.js";

export interface App {
  readonly http: Server;
  readonly services: Services;
  readonly infrastructure: Infrastructure;
  readonly newOwnerKey: string | null;
  readonly addresses: Addresses & { readonly port: number };
  /** Call before `close`: refuses readiness, so that balancers send requests elsewhere. Requests are still served. */
  withdraw(): void;
  /** Stops accepting connections, lets requests finish for a bounded time, then closes everything. */
  close(): Promise<void>;
}

const OWN_PLACE = { host: "127.0.0.1", port: 0 };

/**
 * Resolves when it serves. Rejects with a StartError, after closing the port, when it cannot. `worker`: one of several, whose primary
 * listens on the configured port.
 */
export async function createApp(config: Config, log: Logger, clock: Clock = systemClock, worker: WorkerLink | null = null): Promise<App> {
  const { adopt, ...classes } = createMessageClasses();
  const http = createServer({
    ...classes,
    noDelay: true,
    requestTimeout: HTTP_REQUEST_TIMEOUT_MS,
    headersTimeout: HTTP_HEADERS_TIMEOUT_MS,
  });
  http.keepAliveTimeout = HTTP_KEEP_ALIVE_MS;
  http.on("request", answerWhileStarting);
  const place = worker ? OWN_PLACE : config;
  const stopListening = await listenWithBursts(http, place.host, place.port);
  try {
    return await serve(http, stopListening, adopt, config, log, clock, worker);
  } catch (error) {
    stopListening();
    http.closeAllConnections();
    throw error;
  }
}

async function serve(
  http: Server,
  stopListening: StopListening,
  adopt: ReturnType<typeof createMessageClasses>["adopt"],
  config: Config,
  log: Logger,
  clock: Clock,
  worker: WorkerLink | null,
): Promise<App> {
  const publicPort = () => (worker ? config.port : portOf(http, config));
  const addresses = (): Addresses => addressesOf(config, publicPort());
  const ownUrl = (): string => loopbackUrl(boundHostOf(http, config), portOf(http, config));
  const media = mediaMountOf(config);
  const auth = authMountOf(config);
  const hosts = new AnsweredHosts(answeredHostnamesOf(config));
  const settings = { ...config, sessionHost: auth.host, worker, statusOf: statusOfText };
  const metrics = new Metrics();
  const observers: RequestObserver[] = [metrics, new AccessLog(log, config.accessLog, config.accessLogAddress)];
  const onOver = (note: RequestNote, end: RequestEnd) => {
    for (const observer of observers) observer.requestOver(note, end);
  };
  const [platform, faces] = await Promise.all([openPlatform(settings, clock, log, addresses, ownUrl, metrics), loadFaces()]);
  const { express, GRAPHQL_PATH, SCHEMA_PATH, createGraphQLServer, refuseUpgrade, requestIdOf, routeUpgrades } = faces;
  const { answerClientError, createRestRouter, isOwnHost, toErrorRequestHandler, REALTIME_PATH, createRealtimeFace } = faces;
  const { RESPONSES_PATH, createResponsesFace } = faces;
  observers.push(platform.failureRecorder);
  if (worker === null || worker.isPrimaryReporter) {
    log.info(config.signUp === "open" ? "sign-up is open to whoever reaches this gateway" : "sign-up is closed: operators make accounts");
    log.info(metricsNotice(config.metrics));
  }
  const graphql = createGraphQLServer({ services: platform.services, log, config, onOver });
  const direct = new DirectRoutes(faces.refuser(log));
  direct.add(GRAPHQL_PATH, (req, res) => graphql.handler(req, res, () => app(req, res)));
  const rest = createRestRouter({
    services: platform.services,
    log,
    isReady: async () => !isWithdrawn && platform.isReady(),
    trustProxyHops: config.trustProxyHops,
    media,
    auth,
    addresses,
    hasGraphiQL: config.graphql.graphiql,
    blobOrigin: platform.infrastructure.blobOrigin,
    direct,
  });

  const socketOptions = {
    services: platform.services,
    log,
    trustProxyHops: config.trustProxyHops,
    keepAlive: config.webSockets,
    onOver,
  };
  const realtime = createRealtimeFace(socketOptions);
  const responses = createResponsesFace({ ...socketOptions, times: config.responsesTimes });

  const app = express();
  adopt(app);
  app.disable("x-powered-by");
  app.disable("etag");
  app.use((req, res, next) => {
    if (hosts.answer(req)) next();
    else if (req.path === GRAPHQL_PATH) graphql.refuse(req, res, misdirected());
    else next(misdirected());
  });
  app.use([GRAPHQL_PATH, SCHEMA_PATH], (req, res, next) => (isOwnHost(req, media) ? next() : graphql.handler(req, res, next)));
  app.use(rest);
  app.use(toErrorRequestHandler(log));

  http.on("clientError", answerClientError);
  const drain = trackRequests(http, stopListening);
  const requestsUnderWay = watchRequests(http, observers);
  metrics.watch({ name: "sluice_http_requests_in_flight", help: "Requests over HTTP that are being answered." }, requestsUnderWay);
  metrics.watch(
    { name: "sluice_websockets_open", help: "WebSockets that are open, by what is spoken on them.", labels: ["protocol"] },
    () => [
      ["graphql", graphql.socketCount()],
      ["realtime", realtime.sessionCount()],
      ["responses", responses.connectionCount()],
    ],
  );
  // As for requests: the media host accepts no upgrades, and the sign-in host only those of GraphQL.
  const isAnswered = (req: IncomingMessage, path: string) =>
    hosts.answer(req) && !isOwnHost(req, media) && (path === GRAPHQL_PATH || !isOwnHost(req, auth));
  const upgrades = { [GRAPHQL_PATH]: graphql.upgrade, [REALTIME_PATH]: realtime.upgrade, [RESPONSES_PATH]: responses.upgrade };
  const refuse: UpgradeHandler = (req, socket) =>
    refuseUpgrade(socket, hosts.answer(req) ? notFound("path") : misdirected(), requestIdOf(req));
  const stopUpgrades = routeUpgrades(http, upgrades, refuse, isAnswered);

  http.off("request", answerWhileStarting);
  http.on("request", (req: Request, res: Response) => (hosts.answer(req) && direct.answer(req, res)) || app(req, res));

  let isWithdrawn = false;
  let closing: Promise<void> | null = null;
  return {
    http,
    services: platform.services,
    infrastructure: platform.infrastructure,
    newOwnerKey: platform.newOwnerKey,
    addresses: { port: publicPort(), ...addresses() },
    withdraw: () => {
      isWithdrawn = true;
      endConnectionsWithAnswers(http);
    },
    close: () => {
      closing ??= (async () => {
        stopUpgrades();
        platform.endWaits();
        await Promise.all([drain(DRAIN_TIMEOUT_MS), graphql.close(), realtime.close(), responses.close()]);
        await platform.close();
      })();
      return closing;
    },
  };
}

/**
 * Loads the faces, half of a start's modules, while the platform opens: the embedded database starts in its own thread, and leaves this one
 * idle.
 */
async function loadFaces() {
  const [
    { default: express },
    server,
    webSocket,
    yoga,
    clientError,
    errors,
    context,
    hostMount,
    realtime,
    responses,
    socket,
    route,
    router,
  ] = await Promise.all([
    import("express"),
    import("./graphql/server.js"),
    import("./http/websocket.js"),
    import("./graphql/yoga.js"),
    import("./http/client-error.js"),
    import("./http/errors.js"),
    import("./http/context.js"),
    import("./rest/host-mount.js"),
    import("./rest/routes/realtime.js"),
    import("./rest/routes/responses.js"),
    import("./rest/routes/responses-socket.js"),
    import("./rest/route.js"),
    import("./rest/router.js"),
  ]);
  return {
    express,
    ...server,
    ...webSocket,
    ...yoga,
    ...clientError,
    ...errors,
    ...context,
    ...hostMount,
    ...realtime,
    ...responses,
    ...socket,
    ...route,
    ...router,
  };
}

function metricsNotice({ token, isOpen }: Config["metrics"]): string {
  if (token !== null) return "metrics are at /metrics, for whoever sends METRICS_TOKEN";
  return isOpen
    ? "metrics are at /metrics, open because only this machine can ask"
    : "metrics are shown to nobody: METRICS_TOKEN is not set";
}

function portOf(http: Server, config: Config): number {
  const address = http.address() as AddressInfo | null;
  return address?.port ?? config.port;
}

function boundHostOf(http: Server, config: Config): string {
  const address = http.address() as AddressInfo | null;
  return address?.address ?? config.host;
}
