/**
 * The GraphQL face: queries and mutations over HTTP, subscriptions as server-sent events, and all of them over a WebSocket. Mount
 * `handler` at /graphql before anything that reads bodies, and `upgrade` at the same path.
 * 1. The credential is checked before the body is read, and determines the body's limit.
 * 2. Yoga answers. Its request signal is aborted when the connection closes.
 * 3. The answer is written at the reader's pace.
 */
import { createHash } from "node:crypto";
import { setMaxListeners } from "node:events";
import type { IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Request as HttpRequest, Response as HttpResponse, RequestHandler } from "express";
import type { Logger } from "pino";
import { type Caller, isAgentAtWork } from "../context.js";
import { AppError, invalidInput } from "../errors.js";
import { BodyAborted, readFormBody, readTextBody, TURN_BYTES } from "../http/body.js";
import { authenticate, HttpRequestContext, isFromAgent, readCounted, readToken } from "../http/context.js";
import { preflightHeaders } from "../http/cors.js";
import { explain, headersOf, sendError, sendRefusal, statusOf } from "../http/errors.js";
import { Exchange } from "../http/exchange.js";
import { gzipFor } from "../http/gzip.js";
import { EVENT_STREAM_HEADERS, pipeBody } from "../http/sse.js";
import { isForm } from "../http/uploads.js";
import type { UpgradeHandler } from "../http/websocket.js";
import { clientAddressOf } from "../lib/client-address.js";
import type { KeepAlive } from "../lib/keep-alive.js";
import { setOwnValue } from "../lib/own-values.js";
import type { RequestEnd, RequestNote } from "../lib/request-note.js";
import { GRAPHQL_ANONYMOUS_BODY_BYTES_MAX, GRAPHQL_BODY_BYTES_MAX, GRAPHQL_JSON_BOUNDS } from "../limits.js";
import { LiveConnections } from "../services/access/live-connections.js";
import { beyondAgents } from "../services/access/permissions.js";
import { type Credential, watchCaller } from "../services/access/revocation-watch.js";
import type { BodyAllowance } from "../services/requests/body-budget.js";
import type { Services } from "../services/services.js";
import { type GraphQLContext, toGraphQLContext } from "./context.js";
import { Explorer } from "./explorer.js";
import { NOT_ACCEPTABLE } from "./plugins/use-request-rules.js";
import { toExtensions, toPublicError } from "./public-errors.js";
import { printSdl, schema } from "./schema.js";
import { createWebSocketFace } from "./websocket.js";
import { createYogaServer, type Face, GRAPHQL_PATH, SCHEMA_PATH } from "./yoga.js";

export interface GraphQLServerOptions {
  readonly services: Services;
  readonly log: Logger;
  readonly config: {
    readonly graphql: {
      /** Whether anonymous callers may read the schema. */
      readonly introspection: boolean;
      readonly graphiql: boolean;
    };
    readonly trustProxyHops: number;
    readonly webSockets: KeepAlive;
  };
  /** Called for each operation on a WebSocket when it ends. The server sees requests over HTTP itself. */
  readonly onOver: (note: RequestNote, end: RequestEnd) => void;
}

export interface GraphQLServer {
  readonly handler: RequestHandler;
  readonly upgrade: UpgradeHandler;
  /** Answers a request that is refused before it is read. */
  readonly refuse: (req: HttpRequest, res: HttpResponse, error: AppError) => void;
  readonly socketCount: () => number;
  /**
   * Lets generations finish for a bounded time, cuts off subscriptions that do not end by themselves without completing them, and closes
   * sockets with 1012: clients then open them again.
   */
  readonly close: () => Promise<void>;
}

export function createGraphQLServer({ services, log, config, onOver }: GraphQLServerOptions): GraphQLServer {
  const stopping = new AbortController();
  // Every live subscription listens to it.
  setMaxListeners(0, stopping.signal);
  const yoga = createYogaServer();
  const isSchemaOpenTo = (caller: Caller) => (caller.kind === "anonymous" ? config.graphql.introspection : !caller.run);
  const face: Face = {
    yoga,
    services,
    log,
    isSchemaOpenTo,
    closing: stopping.signal,
    keepAlive: config.webSockets,
    connections: new LiveConnections(),
    onOver,
  };
  const explorer = config.graphql.graphiql
    ? new Explorer({ path: GRAPHQL_PATH, schema: config.graphql.introspection ? schema : null })
    : null;
  const http = new HttpFace(face, config.trustProxyHops);
  const webSocket = createWebSocketFace(face, config.trustProxyHops);
  return {
    handler: (req, res, next) => {
      const path = pathOf(req.originalUrl);
      const isForExplorer = explorer?.answers(req, path) ?? false;
      // Mounted with `use`, it also gets all requests below its path.
      if (path !== GRAPHQL_PATH && path !== SCHEMA_PATH && !isForExplorer) return next();
      const exchange = new Exchange(req, res, log);
      if (path === SCHEMA_PATH) return void http.sendSchema(exchange);
      if (!isForExplorer || isFromAgent(exchange)) return void http.handle(exchange);
      explorer?.answer(exchange, path).catch((error: unknown) => sendFailure(exchange, error));
    },
    upgrade: webSocket.upgrade,
    refuse: (req, res, error) => {
      const exchange = new Exchange(req, res, log);
      exchange.note.route = GRAPHQL_PATH;
      exchange.setHeaders(PRIVATE);
      sendFailure(exchange, error);
    },
    socketCount: webSocket.socketCount,
    close: async () => {
      stopping.abort();
      await webSocket.close();
      await yoga.dispose();
    },
  };
}

const METHODS = ["GET", "POST", "OPTIONS"];
/**
 * Matches requests of the single connection mode of GraphQL over server-sent events
 * (docs/decisions/graphql-sse-distinct-connections.md).
 */
const STREAM_TOKEN_HEADER = "x-graphql-event-stream-token";
const DISTINCT_CONNECTIONS =
  "Each operation over server-sent events has a connection of its own here (distinct connections mode): set singleConnection to false, or use a WebSocket.";
const SCHEMA_METHODS = ["GET", "HEAD", "OPTIONS"];
/** Unspecified: seconds that a copy of the schema may be cached. */
const SCHEMA_SECONDS = 300;
/** Headers of every answer: caching, and no referrer. */
const PRIVATE = { "Cache-Control": "private, no-store", "Referrer-Policy": "no-referrer" };

class HttpFace {
  private schemaFile: SchemaFile | undefined;

  constructor(
    private readonly face: Face,
    private readonly trustProxyHops: number,
  ) {}

  async handle(exchange: Exchange): Promise<void> {
    const { req } = exchange;
    const { yoga, services, connections } = this.face;
    const { access } = services;
    exchange.note.route = GRAPHQL_PATH;
    exchange.setHeaders(PRIVATE);
    let allowance: BodyAllowance | null = null;
    let isLive = false;
    const held: (() => void)[] = [];
    try {
      if (req.method === "OPTIONS") return sendPreflight(exchange);
      if (req.method !== "GET" && req.method !== "POST") throw methodNotAllowed(exchange);
      if (req.headers[STREAM_TOKEN_HEADER] !== undefined) throw invalidInput(DISTINCT_CONNECTIONS, STREAM_TOKEN_HEADER);
      const { caller, credential, clientAddress } = await this.identify(exchange);
      allowance = services.bodies.allow(caller, clientAddress);
      const browser = {
        userAgent: req.headers["user-agent"],
        assertMaySignIn: () => access.assertMaySignIn(req),
        addCookie: (line: string) => exchange.addCookie(line),
        openedSessionId: null,
      };
      const ctx = new HttpRequestContext(caller, exchange, clientAddress);
      const context = toGraphQLContext(ctx, {
        ...{ services, browser },
        isSchemaOpen: this.face.isSchemaOpenTo(caller),
        openLive: () => {
          isLive = true;
          held.push(connections.openAt(clientAddress));
          held.push(connections.openFor(caller));
        },
      });
      const request = await this.toRequest(exchange, caller, allowance);
      ctx.hasLargeInput = allowance.bytes > TURN_BYTES;
      // A large body was measured in this turn, and is parsed in the next.
      if (ctx.hasLargeInput) await nextTurn();
      const response = await yoga.handleRequest(request, context);
      await this.send(exchange, response, { context, credential, isLive });
    } catch (error) {
      sendFailure(exchange, error);
    } finally {
      allowance?.release();
      for (const release of held) release();
    }
  }

  /** The schema changes only with the gateway's version: it may be cached for a while, and is then revalidated by its ETag. */
  async sendSchema(exchange: Exchange): Promise<void> {
    const { req } = exchange;
    exchange.note.route = SCHEMA_PATH;
    try {
      if (req.method === "OPTIONS") return sendPreflight(exchange, SCHEMA_METHODS);
      if (req.method !== "GET" && req.method !== "HEAD") {
        throw new AppError("METHOD_NOT_ALLOWED", `The schema is read with GET, not ${req.method}.`, { allow: SCHEMA_METHODS });
      }
      const { caller } = await this.identify(exchange);
      if (isAgentAtWork(caller)) throw beyondAgents();
      if (!this.face.isSchemaOpenTo(caller)) throw new AppError("UNAUTHORIZED", "Send a key as Authorization: Bearer to read the schema.");
      this.schemaFile ??= toSchemaFile();
      const { text, etag } = this.schemaFile;
      const isPublic = caller.kind === "anonymous";
      const isKept = !req.originalUrl.includes("?");
      const headers = {
        "Content-Type": "text/plain; charset=utf-8",
        "Cache-Control": isKept ? `${isPublic ? "public" : "private"}, max-age=${SCHEMA_SECONDS}` : "private, no-store",
        Vary: "Authorization, Cookie",
        ETag: etag,
      };
      const isKnown = exchange.isKept(etag);
      exchange.writeHead(isKnown ? 304 : 200, { ...headers, ...(!isKnown && { "Content-Length": text.byteLength }) });
      exchange.res.end(isKnown || req.method === "HEAD" ? undefined : text);
    } catch (error) {
      sendError(exchange, error);
    }
  }

  private async identify(exchange: Exchange): Promise<{ caller: Caller; credential: Credential; clientAddress: string }> {
    const { req } = exchange;
    const { access } = this.face.services;
    const clientAddress = clientAddressOf(req, this.trustProxyHops);
    const key = await readCounted(access, clientAddress, () => readToken(req, exchange));
    const credential = { key, sessionToken: key === null ? access.sessionTokenOf(req) : null };
    return { caller: await authenticate(access, credential, clientAddress), credential, clientAddress };
  }

  private async toRequest({ req, signal }: Exchange, caller: Caller, allowance: BodyAllowance): Promise<Request> {
    const { originalUrl: url } = req;
    const mark = url.indexOf("?");
    const address = `http://localhost${GRAPHQL_PATH}${mark === -1 ? "" : url.slice(mark)}`;
    const init = { method: req.method, headers: singleHeaders(req), signal };
    if (req.method !== "POST") return new this.face.yoga.fetchAPI.Request(address, init);
    // The fields of such a form cannot be checked before they are decoded.
    const isSmall = caller.kind === "anonymous" || isOfMediaType(req, "application/x-www-form-urlencoded");
    const bytesMax = isSmall ? GRAPHQL_ANONYMOUS_BODY_BYTES_MAX : GRAPHQL_BODY_BYTES_MAX;
    const body = isForm(req.headers["content-type"])
      ? await readFormBody(req, allowance, bytesMax)
      : await readTextBody(req, allowance, { bytesMax, bounds: GRAPHQL_JSON_BOUNDS });
    return new this.face.yoga.fetchAPI.Request(address, { ...init, body });
  }

  private async send(exchange: Exchange, response: Response, operation: HttpOperation): Promise<void> {
    if (exchange.isGone) return;
    const headers = toHeaders(response);
    if (response.status === 406 && response.body === null) {
      return sendOneError(exchange, 406, { code: "BAD_REQUEST", message: NOT_ACCEPTABLE }, {});
    }
    if (response.body !== null && isOfType(response, "multipart/mixed")) {
      exchange.writeHead(response.status, headers);
      return this.cutAtStop(exchange, operation, pipeBody(exchange.res, response.body));
    }
    if (!isOfType(response, "text/event-stream") || response.body === null) {
      const whole = Buffer.from(await response.arrayBuffer());
      // Programs with a key are near, or have a proxy that compresses. A session is a browser's, and other sites cannot send its cookie.
      const sent = operation.credential.sessionToken === null ? { body: whole, headers: {} } : await gzipFor(exchange.req, whole);
      return sendRefusal(exchange, response.status, { ...headers, ...sent.headers }, sent.body);
    }
    // Yoga's statement about compression is not a valid HTTP coding.
    delete headers["Content-Encoding"];
    exchange.writeHead(response.status, { ...headers, ...EVENT_STREAM_HEADERS });
    await this.cutAtStop(exchange, operation, this.sendLive(exchange, response.body, operation));
  }

  /** A live subscription is cut off when the gateway stops: its client takes a broken answer for a lost connection, and opens it again. */
  private async cutAtStop({ res }: Exchange, { isLive }: HttpOperation, sending: Promise<void>): Promise<void> {
    if (!isLive) return sending;
    const { closing } = this.face;
    const cut = () => res.destroy();
    closing.addEventListener("abort", cut, { once: true });
    if (closing.aborted) cut();
    try {
      await sending;
    } finally {
      closing.removeEventListener("abort", cut);
    }
  }

  /** Lasts until the subscription ends, its reader leaves, or its key or session is revoked. */
  private async sendLive({ res }: Exchange, body: ReadableStream<Uint8Array>, { context, credential }: HttpOperation): Promise<void> {
    const revoking = new AbortController();
    const stopWatching = watchCaller(this.face.services, context.caller, credential, (error) => revoking.abort(error));
    const last = () => {
      const errors = [toPublicError(revoking.signal.reason, context)];
      return `event: next\ndata: ${JSON.stringify({ errors })}\n\nevent: complete\ndata:\n\n`;
    };
    try {
      await pipeBody(res, body, { ending: revoking.signal, last });
    } finally {
      stopWatching();
    }
  }
}

interface HttpOperation {
  readonly context: GraphQLContext;
  readonly credential: Credential;
  /** Whether it is a subscription that does not end by itself. */
  readonly isLive: boolean;
}

interface SchemaFile {
  readonly text: Buffer;
  readonly etag: string;
}

function toSchemaFile(): SchemaFile {
  const text = Buffer.from(printSdl());
  return { text, etag: `"${createHash("sha256").update(text).digest("base64url")}"` };
}

function isOfMediaType({ headers }: IncomingMessage, type: string): boolean {
  return headers["content-type"]?.toLowerCase().startsWith(type) ?? false;
}

function isOfType({ headers }: Response, type: string): boolean {
  return headers.get("content-type")?.startsWith(type) ?? false;
}

/** The path without a trailing slash. */
function pathOf(url: string): string {
  const [path = ""] = url.split("?", 1);
  return path.endsWith("/") ? path.slice(0, -1) : path;
}

function methodNotAllowed({ method, res }: Exchange): AppError {
  const message = `GraphQL is asked with GET or POST, not ${method}.`;
  const isReservation = method === "PUT" || method === "DELETE";
  // Its client drops the body unread, and reports this message.
  if (isReservation) res.statusMessage = "Method Not Allowed: set singleConnection to false";
  return new AppError("METHOD_NOT_ALLOWED", isReservation ? `${message} ${DISTINCT_CONNECTIONS}` : message, { allow: METHODS });
}

function singleHeaders(req: IncomingMessage): Record<string, string> {
  return Object.fromEntries(Object.entries(req.headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])));
}

/** Yoga's header names are in lower case. Headers of the same name must be spelt alike to be merged. */
function toHeaders(response: Response): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {};
  for (const [name, value] of response.headers)
    setOwnValue(
      headers,
      name.replace(/(?<![a-z])[a-z]/g, (letter) => letter.toUpperCase()),
      value,
    );
  return headers;
}

function sendPreflight(exchange: Exchange, methods = METHODS): void {
  exchange.writeHead(204, preflightHeaders(methods, exchange.req.headers["access-control-request-headers"]));
  exchange.res.end();
}

/** A refusal before there is a GraphQL request: the answer contains only the error, so its status is the error's. */
function sendFailure(exchange: Exchange, error: unknown): void {
  if (error instanceof BodyAborted || exchange.isGone) return;
  const reported = explain(error, exchange);
  if (exchange.res.headersSent) {
    exchange.res.destroy();
    return;
  }
  sendOneError(exchange, statusOf(reported.code), reported, headersOf(reported));
}

function sendOneError(
  exchange: Exchange,
  status: number,
  reported: Pick<AppError, "code" | "message">,
  headers: OutgoingHttpHeaders,
): void {
  const errors = [{ message: reported.message, extensions: toExtensions(reported, exchange.requestId) }];
  const all = { ...headers, "Content-Type": "application/json; charset=utf-8" };
  sendRefusal(exchange, status, all, Buffer.from(JSON.stringify({ errors })));
}
