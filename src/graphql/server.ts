/**
 * The GraphQL face: queries and mutations over HTTP, subscriptions as server-sent events, and all of them over a
 * WebSocket. Mount `handler` at /graphql before anything that reads bodies, and `upgrade` at the same path.
 *
 * 1. The credential is looked at before the body is, and decides how large that may be.
 * 2. Yoga answers. Its request signal is aborted when the connection closes, for whatever reason.
 * 3. The answer is written at the reader's pace.
 */
import { setMaxListeners } from "node:events";
import type { IncomingMessage, OutgoingHttpHeaders } from "node:http";
import type { RequestHandler } from "express";
import type { Logger } from "pino";
import type { Caller } from "../context.js";
import { AppError } from "../errors.js";
import { BodyAborted, readFormBody, readTextBody } from "../http/body.js";
import { authenticate, HttpRequestContext, readCounted, readToken } from "../http/context.js";
import { preflightHeaders } from "../http/cors.js";
import { explain, headersOf, sendRefusal, statusOf } from "../http/errors.js";
import { Exchange } from "../http/exchange.js";
import { EVENT_STREAM_HEADERS, pipeBody } from "../http/sse.js";
import { isForm } from "../http/uploads.js";
import type { UpgradeHandler } from "../http/websocket.js";
import { clientAddressOf } from "../lib/client-address.js";
import type { KeepAlive } from "../lib/keep-alive.js";
import { setOwnValue } from "../lib/own-values.js";
import type { RequestEnd, RequestNote } from "../lib/request-note.js";
import { GRAPHQL_ANONYMOUS_BODY_BYTES_MAX, GRAPHQL_BODY_BYTES_MAX, JSON_DEPTH_MAX } from "../limits.js";
import { type Credential, watchCaller } from "../services/access/revocation-watch.js";
import type { BodyAllowance } from "../services/requests/body-budget.js";
import type { Services } from "../services/services.js";
import { type GraphQLContext, toGraphQLContext } from "./context.js";
import { Explorer } from "./explorer.js";
import { NOT_ACCEPTABLE } from "./plugins/use-request-rules.js";
import { toExtensions, toPublicError } from "./public-errors.js";
import { schema } from "./schema.js";
import { createWebSocketFace } from "./websocket.js";
import { createYogaServer, type Face, GRAPHQL_PATH, type YogaOptions } from "./yoga.js";

export interface GraphQLServerOptions {
  readonly services: Services;
  readonly log: Logger;
  readonly config: {
    readonly graphql: YogaOptions & {
      /** Whether a browser is shown GraphiQL. */
      readonly graphiql: boolean;
    };
    /** How many hops of X-Forwarded-For are our own. */
    readonly trustProxyHops: number;
    readonly webSockets: KeepAlive;
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
  const face: Face = { yoga, services, log, closing: stopping.signal, keepAlive: config.webSockets, onOver };
  const explorer = config.graphql.graphiql
    ? new Explorer({ path: GRAPHQL_PATH, schema: config.graphql.introspection ? schema : null })
    : null;
  const http = new HttpFace(face, config.trustProxyHops);
  const webSocket = createWebSocketFace(face, config.trustProxyHops);
  return {
    handler: (req, res, next) => {
      const path = pathOf(req.originalUrl);
      const isForExplorer = explorer?.answers(req, path) ?? false;
      // Mounted with `use`, it is given everything below its path too.
      if (path !== GRAPHQL_PATH && !isForExplorer) return next();
      const exchange = new Exchange(req, res, log);
      if (!isForExplorer) return void http.handle(exchange);
      explorer?.answer(exchange, path).catch((error: unknown) => sendFailure(exchange, error));
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

const METHODS = ["GET", "POST", "OPTIONS"];
/** Of every answer: who may keep it, and that no link tells where it came from. */
const PRIVATE = { "Cache-Control": "private, no-store", "Referrer-Policy": "no-referrer" };
/** `{ variables: { input: { extra: ... } } }` and a few more around what the scalar JSON allows. */
const BODY_DEPTH_MAX = JSON_DEPTH_MAX + 10;

class HttpFace {
  constructor(
    private readonly face: Face,
    private readonly trustProxyHops: number,
  ) {}

  async handle(exchange: Exchange): Promise<void> {
    const { req } = exchange;
    const { yoga, services, closing } = this.face;
    const { access } = services;
    exchange.note.route = GRAPHQL_PATH;
    exchange.setHeaders(PRIVATE);
    let allowance: BodyAllowance | null = null;
    try {
      if (req.method === "OPTIONS") return sendPreflight(exchange);
      if (req.method !== "GET" && req.method !== "POST") throw methodNotAllowed(req.method);
      const clientAddress = clientAddressOf(req, this.trustProxyHops);
      const key = await readCounted(access, clientAddress, () => readToken(req, exchange));
      const credential = { key, sessionToken: key === null ? access.sessionTokenOf(req) : null };
      const caller = await authenticate(access, credential, clientAddress);
      allowance = services.bodies.allow(caller, clientAddress);
      const browser = {
        userAgent: req.headers["user-agent"],
        assertSessionHost: () => access.assertSessionHost(req),
        addCookie: (line: string) => exchange.addCookie(line),
      };
      const context = toGraphQLContext(new HttpRequestContext(caller, exchange, clientAddress), { services, closing, browser });
      const response = await yoga.handleRequest(await this.toRequest(exchange, caller, allowance), context);
      await this.send(exchange, response, context, credential);
    } catch (error) {
      sendFailure(exchange, error);
    } finally {
      allowance?.release();
    }
  }

  private async toRequest({ req, signal }: Exchange, caller: Caller, allowance: BodyAllowance): Promise<Request> {
    const { originalUrl: url } = req;
    const mark = url.indexOf("?");
    const address = `http://localhost${GRAPHQL_PATH}${mark === -1 ? "" : url.slice(mark)}`;
    const init = { method: req.method, headers: singleHeaders(req), signal };
    if (req.method !== "POST") return new this.face.yoga.fetchAPI.Request(address, init);
    const bytesMax = caller.kind === "anonymous" ? GRAPHQL_ANONYMOUS_BODY_BYTES_MAX : GRAPHQL_BODY_BYTES_MAX;
    const body = isForm(req.headers["content-type"])
      ? await readFormBody(req, allowance, bytesMax)
      : await readTextBody(req, allowance, { bytesMax, depthMax: BODY_DEPTH_MAX });
    return new this.face.yoga.fetchAPI.Request(address, { ...init, body });
  }

  private async send(exchange: Exchange, response: Response, context: GraphQLContext, credential: Credential): Promise<void> {
    if (exchange.isGone) return;
    const headers = toHeaders(response);
    if (response.status === 406 && response.body === null) {
      return sendOneError(exchange, 406, { code: "BAD_REQUEST", message: NOT_ACCEPTABLE }, {});
    }
    if (response.body !== null && isOfType(response, "multipart/mixed")) {
      exchange.writeHead(response.status, headers);
      return pipeBody(exchange.res, response.body);
    }
    if (!isOfType(response, "text/event-stream") || response.body === null) {
      return sendRefusal(exchange, response.status, headers, Buffer.from(await response.arrayBuffer()));
    }
    // What Yoga says about compression is not a coding that HTTP knows.
    delete headers["Content-Encoding"];
    exchange.writeHead(response.status, { ...headers, ...EVENT_STREAM_HEADERS });
    await this.sendLive(exchange, response.body, context, credential);
  }

  /** Until it ends by itself, its reader leaves, or its key or session is revoked. */
  private async sendLive(
    { res }: Exchange,
    body: ReadableStream<Uint8Array>,
    context: GraphQLContext,
    credential: Credential,
  ): Promise<void> {
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

function isOfType({ headers }: Response, type: string): boolean {
  return headers.get("content-type")?.startsWith(type) ?? false;
}

/** Without a slash at its end. */
function pathOf(url: string): string {
  const [path = ""] = url.split("?", 1);
  return path.endsWith("/") ? path.slice(0, -1) : path;
}

function methodNotAllowed(method = ""): AppError {
  return new AppError("METHOD_NOT_ALLOWED", `GraphQL is asked with GET or POST, not ${method}.`, { allow: METHODS });
}

function singleHeaders(req: IncomingMessage): Record<string, string> {
  return Object.fromEntries(Object.entries(req.headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])));
}

/** Yoga's names are in lower case; an answer's headers of the same name must be spelt alike to be one. */
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

function sendPreflight(exchange: Exchange): void {
  exchange.writeHead(204, preflightHeaders(METHODS, exchange.req.headers["access-control-request-headers"]));
  exchange.res.end();
}

/** What is refused before there is a GraphQL request: the answer holds nothing but the error, so its status is the error's. */
function sendFailure(exchange: Exchange, error: unknown): void {
  if (error instanceof BodyAborted || exchange.isGone) return;
  const told = explain(error, exchange);
  if (exchange.res.headersSent) {
    exchange.res.destroy();
    return;
  }
  sendOneError(exchange, statusOf(told.code), told, headersOf(told));
}

function sendOneError(exchange: Exchange, status: number, told: Pick<AppError, "code" | "message">, headers: OutgoingHttpHeaders): void {
  const errors = [{ message: told.message, extensions: toExtensions(told, exchange.requestId) }];
  const all = { ...headers, "Content-Type": "application/json; charset=utf-8" };
  sendRefusal(exchange, status, all, Buffer.from(JSON.stringify({ errors })));
}
