/**
 * The GraphQL face: queries and mutations over HTTP, subscriptions as server-sent events, and all of them over a
 * WebSocket. Mount `handler` at /graphql before anything that reads bodies, and `upgrade` at the same path.
 *
 * 1. The credential is looked at before the body is, and decides how large that may be.
 * 2. Yoga answers. Its request signal is aborted when the connection closes, for whatever reason.
 * 3. The answer is written at the reader's pace.
 */
import { setMaxListeners } from "node:events";
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { RequestHandler } from "express";
import type { Logger } from "pino";
import { AppError } from "../errors.js";
import { clientAddressOf } from "../lib/client-address.js";
import { HOPS_HEADER, readHops } from "../lib/hops.js";
import { INERT_POLICY, NO_SNIFFING } from "../lib/inert-answer.js";
import { ownValue } from "../lib/own-values.js";
import { noteOf, type RequestEnd, type RequestNote } from "../lib/request-note.js";
import { GRAPHQL_ANONYMOUS_BODY_BYTES_MAX, GRAPHQL_BODY_BYTES_MAX } from "../limits.js";
import { assertOneAuthorization, challengeOf, readBearer } from "../services/access/bearer.js";
import { type Credential, watchCaller } from "../services/access/revocation-watch.js";
import { MAX_COST_HEADER, readMaxCost } from "../services/credits/max-cost.js";
import type { BodyAllowance } from "../services/requests/body-budget.js";
import { BodyAborted } from "../services/requests/request-body.js";
import { requestIdOf } from "../services/requests/request-id.js";
import type { Services } from "../services/services.js";
import type { GraphQLContext } from "./context.js";
import { authenticate, readQueryKey } from "./credentials.js";
import { isEventStream, readBody, sendEventStream, sendWhole } from "./http.js";
import { HTTP_STATUSES, toPublicError } from "./public-errors.js";
import type { UpgradeHandler } from "./upgrades.js";
import { createWebSocketFace } from "./websocket.js";
import { createYogaServer, type Face, GRAPHQL_PATH, type YogaOptions } from "./yoga.js";

export interface GraphQLServerOptions {
  readonly services: Services;
  readonly log: Logger;
  readonly config: {
    readonly graphql: YogaOptions;
    /** How many hops of X-Forwarded-For are our own. */
    readonly trustProxyHops: number;
  };
  /** Told of each operation on a WebSocket when it is over; requests over HTTP are seen by the server. */
  readonly onOver: (note: RequestNote, end: RequestEnd) => void;
}

export interface GraphQLServer {
  readonly handler: RequestHandler;
  readonly upgrade: UpgradeHandler;
  /** How many WebSockets are open. */
  readonly socketCount: () => number;
  /** Completes what would go on for ever, lets generations finish for a bounded time, and closes sockets with 1001. */
  readonly close: () => Promise<void>;
}

export function createGraphQLServer({ services, log, config, onOver }: GraphQLServerOptions): GraphQLServer {
  const stopping = new AbortController();
  // Every live subscription listens to it.
  setMaxListeners(0, stopping.signal);
  const yoga = createYogaServer(config.graphql);
  const face: Face = { yoga, services, log, closing: stopping.signal, onOver };
  const http = new HttpFace(face, config.trustProxyHops);
  const webSocket = createWebSocketFace(face, config.trustProxyHops);
  return {
    handler: (req, res, next) => {
      // Mounted with `use`, it is given everything below its path too.
      if (pathOf(req.originalUrl) === GRAPHQL_PATH) void http.handle(req, res);
      else next();
    },
    upgrade: webSocket.upgrade,
    socketCount: webSocket.socketCount,
    close: async () => {
      stopping.abort();
      await webSocket.close();
      await yoga.dispose();
    },
  };
}

/** Any page may ask with a key of its own; cookies count for our own pages only (docs/spec/http.md#other-origins). */
const CORS_HEADERS = { "access-control-allow-origin": "*", "access-control-expose-headers": "*" };
const PREFLIGHT_MAX_AGE_SECONDS = 86_400;

/** The explorer is our own page: its scripts and styles stand in it. */
const EXPLORER_POLICY = "base-uri 'none'; object-src 'none'; form-action 'none'; frame-ancestors 'none'";

type LiveContext = GraphQLContext & { readonly credential: Credential };

class HttpFace {
  constructor(
    private readonly face: Face,
    private readonly trustProxyHops: number,
  ) {}

  async handle(req: IncomingMessage & { readonly originalUrl?: string }, res: ServerResponse): Promise<void> {
    const requestId = requestIdOf(req);
    const note = noteOf(req);
    note.route = GRAPHQL_PATH;
    note.requestId = requestId;
    const { yoga, services, closing } = this.face;
    const log = this.face.log.child({ requestId });
    const leaving = new AbortController();
    res.once("close", () => leaving.abort());
    let allowance: BodyAllowance | null = null;
    try {
      if (req.method === "OPTIONS") return sendPreflight(req, res, requestId);
      if (req.method !== "GET" && req.method !== "POST") throw methodNotAllowed(req.method);
      const url = req.originalUrl ?? req.url ?? "";
      const clientAddress = clientAddressOf(req, this.trustProxyHops);
      const credential = await this.readCredential(req, url, clientAddress);
      const caller = await authenticate(services.access, credential, clientAddress);
      if (caller.kind === "key") note.apiKeyId = caller.apiKeyId;
      allowance = services.bodies.allow(caller, clientAddress);
      const cookies: string[] = [];
      const browser = {
        userAgent: req.headers["user-agent"],
        assertSessionHost: () => services.access.assertSessionHost(req),
        addCookie: (line: string) => void cookies.push(line),
      };
      const hops = readHops(req.headers[HOPS_HEADER]);
      const maxCost = readMaxCost(ownValue(req.headers, MAX_COST_HEADER.toLowerCase()));
      const scope = { caller, requestId, clientAddress, log, note, signal: leaving.signal, hops, maxCost };
      const context: GraphQLContext = { ...scope, services, closing, browser };
      const response = await yoga.handleRequest(await this.toRequest(req, url, context, allowance), context);
      // Before anything is written of the answer.
      if (cookies.length > 0) res.setHeader("set-cookie", cookies);
      await this.send(req, res, response, { ...context, credential });
    } catch (error) {
      if (!(error instanceof BodyAborted)) sendFailure(req, res, error, { requestId, log, note, signal: leaving.signal });
    } finally {
      allowance?.release();
    }
  }

  private async readCredential(req: IncomingMessage, url: string, clientAddress: string): Promise<Credential> {
    const { access } = this.face.services;
    try {
      const key = readKey(req, url);
      return { key, sessionToken: key === null ? access.sessionTokenOf(req) : null };
    } catch (error) {
      // A credential that cannot be read is counted like none.
      await access.authenticate(null, clientAddress);
      throw error;
    }
  }

  private async toRequest(
    req: IncomingMessage,
    url: string,
    { caller, signal }: GraphQLContext,
    allowance: BodyAllowance,
  ): Promise<Request> {
    const mark = url.indexOf("?");
    const address = `http://localhost${GRAPHQL_PATH}${mark === -1 ? "" : url.slice(mark)}`;
    const init = { method: req.method ?? "GET", headers: singleHeaders(req), signal };
    if (req.method !== "POST") return new this.face.yoga.fetchAPI.Request(address, init);
    const bytesMax = caller.kind === "anonymous" ? GRAPHQL_ANONYMOUS_BODY_BYTES_MAX : GRAPHQL_BODY_BYTES_MAX;
    return new this.face.yoga.fetchAPI.Request(address, { ...init, body: await readBody(req, bytesMax, allowance) });
  }

  private async send(req: IncomingMessage, res: ServerResponse, response: Response, context: LiveContext): Promise<void> {
    const headers = answerHeaders(context.requestId);
    if (isPage(response)) headers["content-security-policy"] = EXPLORER_POLICY;
    Object.assign(headers, Object.fromEntries(response.headers));
    if (!isEventStream(response) || response.body === null) {
      return sendWhole(req, res, response.status, headers, Buffer.from(await response.arrayBuffer()));
    }
    // What Yoga says about compression is not a coding that HTTP knows.
    delete headers["content-encoding"];
    res.writeHead(response.status, { ...headers, "cache-control": "no-cache, no-transform", "x-accel-buffering": "no" });
    await this.sendLive(res, response.body, context);
  }

  /** Until it ends by itself, its reader leaves, or its key or session is revoked. */
  private async sendLive(res: ServerResponse, body: ReadableStream<Uint8Array>, context: LiveContext): Promise<void> {
    const revoking = new AbortController();
    const { caller, credential } = context;
    const stopWatching = watchCaller(this.face.services, caller, credential, (error) => revoking.abort(error));
    const last = () => {
      const errors = [toPublicError(revoking.signal.reason, context)];
      return `event: next\ndata: ${JSON.stringify({ errors })}\n\nevent: complete\ndata:\n\n`;
    };
    try {
      await sendEventStream(res, body, revoking.signal, last);
    } finally {
      stopWatching();
    }
  }
}

function isPage({ headers }: Response): boolean {
  return headers.get("content-type")?.startsWith("text/html") ?? false;
}

function readKey(req: IncomingMessage, url: string): string | null {
  const { authorization } = req.headers;
  if (authorization === undefined) return readQueryKey(url);
  assertOneAuthorization(req.rawHeaders);
  return readBearer(authorization);
}

/** Without a slash at its end. */
function pathOf(url: string): string {
  const [path = ""] = url.split("?", 1);
  return path.endsWith("/") ? path.slice(0, -1) : path;
}

function methodNotAllowed(method = ""): AppError {
  return new AppError("METHOD_NOT_ALLOWED", `GraphQL is asked with GET or POST, not ${method}.`, { allow: ["GET", "POST", "OPTIONS"] });
}

function singleHeaders(req: IncomingMessage): Record<string, string> {
  return Object.fromEntries(Object.entries(req.headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])));
}

function answerHeaders(requestId: string): OutgoingHttpHeaders {
  return {
    ...CORS_HEADERS,
    "x-request-id": requestId,
    "x-content-type-options": NO_SNIFFING,
    "content-security-policy": INERT_POLICY,
    "cache-control": "private, no-store",
    "referrer-policy": "no-referrer",
  };
}

function sendPreflight(req: IncomingMessage, res: ServerResponse, requestId: string): void {
  res.writeHead(204, {
    ...answerHeaders(requestId),
    "access-control-allow-methods": "GET, POST",
    "access-control-allow-headers": req.headers["access-control-request-headers"] ?? "*",
    "access-control-max-age": String(PREFLIGHT_MAX_AGE_SECONDS),
  });
  res.end();
}

/** What is refused before there is a GraphQL request: the answer holds nothing but the error, so its status is the error's. */
function sendFailure(
  req: IncomingMessage,
  res: ServerResponse,
  error: unknown,
  scope: { requestId: string; log: Logger; note: RequestNote; signal: AbortSignal },
): void {
  if (res.headersSent) {
    res.destroy();
    return;
  }
  const { message, extensions } = toPublicError(error, scope);
  const { http: _, ...told } = extensions;
  const code = error instanceof AppError ? error.code : "INTERNAL_ERROR";
  const headers: OutgoingHttpHeaders = { ...answerHeaders(scope.requestId), "content-type": "application/json; charset=utf-8" };
  if (error instanceof AppError && error.allow !== undefined) headers.allow = error.allow.join(", ");
  if (error instanceof AppError && code === "UNAUTHORIZED") headers["www-authenticate"] = challengeOf(error);
  if (error instanceof AppError && error.retryAfterSeconds !== undefined) headers["retry-after"] = String(error.retryAfterSeconds);
  sendWhole(req, res, HTTP_STATUSES[code], headers, Buffer.from(JSON.stringify({ errors: [{ message, extensions: told }] })));
}
