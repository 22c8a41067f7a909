/**
 * GET /v1/realtime: a WebSocket that relays OpenAI's realtime events (docs/spec/realtime.md). The key comes as on every route, or, because
 * browsers cannot set headers on WebSockets, as OpenAI's subprotocol `openai-insecure-api-key.<key>`. Without a key the session cookie counts,
 * for pages of this gateway alone. Refusals come before the upgrade where possible, with status and envelope.
 */

import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Logger } from "pino";
import type { WebSocket } from "ws";
import * as z from "zod";
import { isAgentAtWork, type KeyCaller, type RequestContext, type SessionCaller } from "../../context.js";
import { AppError, invalidInput, permissionDenied, serviceUnavailable } from "../../errors.js";
import { authenticate, type ContextSource, HttpRequestContext, readCounted, requestIdOf } from "../../http/context.js";
import { explain, isServerError, statusOf, toErrorObject } from "../../http/errors.js";
import { OpenSockets, takePlaces } from "../../http/open-sockets.js";
import {
  assertHandshake,
  CLOSE_CODES,
  deliver,
  hangUp,
  protocolsOf,
  readSocketAddress,
  refuseUpgrade,
  WaitingSocket,
} from "../../http/websocket.js";
import { BoundedCounter } from "../../lib/bounded.js";
import { addressGroupOf, clientAddressOf } from "../../lib/client-address.js";
import { BoundedJson } from "../../lib/json-bounds.js";
import { type KeepAlive, keepAlive } from "../../lib/keep-alive.js";
import { noteOf, type RequestEnd, type RequestNote } from "../../lib/request-note.js";
import {
  JSON_BOUNDS,
  REALTIME_EVENT_BYTES_MAX,
  REALTIME_SESSIONS_PER_ADDRESS_MAX,
  REALTIME_SESSIONS_PER_KEY_MAX,
  REALTIME_WAITING_BYTES_MAX,
} from "../../limits.js";
import { requireCaller } from "../../services/access/permissions.js";
import { type Credential, type WatchedKeys, watchCaller, watchKey } from "../../services/access/revocation-watch.js";
import { assertNoWishes } from "../../services/catalog/request-rates.js";
import { MAX_COST_FIELD, readMaxCost, smallerCost } from "../../services/credits/max-cost.js";
import { MODEL_TEXT, SAFE_TEXT } from "../../services/generation/query-texts.js";
import { NO_REALTIME_QUOTE } from "../../services/generation/quotes.js";
import { createClientSecretInput, isClientSecret } from "../../services/generation/realtime/client-secrets.js";
import type { RealtimeSession } from "../../services/generation/realtime/run.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { generationHeaders } from "../headers.js";
import { json, UPGRADE } from "../openapi/answer.js";
import { seconds } from "../openapi/schemas.js";
import type { Route } from "../route.js";

export const REALTIME_PATH = "/v1/realtime";

const realtimeQuery = z.object({
  model: z.string().optional().describe(MODEL_TEXT),
  safe: z.string().optional().describe(SAFE_TEXT),
  max_cost: z.string().optional().describe("The highest charge in credits, like the header `X-Max-Cost`."),
});

const SWITCHING_PROTOCOLS = 101;
const PROTOCOL = "realtime";
const BETA_PROTOCOL = "openai-beta.realtime-v1";

export function addRealtimeRoutes(
  route: Route,
  endpoint: Endpoint,
  { realtimeClientSecrets }: Pick<Services, "realtimeClientSecrets">,
): void {
  route(`${REALTIME_PATH}/client_secrets`, {
    POST: endpoint({
      id: "createRealtimeClientSecret",
      tag: "Audio",
      summary: "Makes a short-lived credential with which a browser opens realtime sessions.",
      description:
        "Needs an API key, whose models, budget and limits hold for the sessions. The secret ends with the key. Send it to `GET /v1/realtime` as the bearer token, or as the subprotocol `openai-insecure-api-key.<secret>`. It opens any number of sessions until it expires; sessions that are open then go on.",
      answer: clientSecret,
      example: { body: { session: { type: "realtime", model: "sandbox/realtime" } } },
      body: createClientSecretInput,
      handler: (ctx, { body, exchange }) => {
        exchange.setHeaders({ "Cache-Control": "no-store" });
        const { value, expiresAt, model, settings } = realtimeClientSecrets.create(ctx, body);
        return { value, expires_at: expiresAt, session: { ...settings, type: "realtime" as const, object: "realtime.session", model } };
      },
    }),
  });
  route(REALTIME_PATH, {
    GET: endpoint({
      id: "openRealtime",
      tag: "Audio",
      summary: "Opens a WebSocket for OpenAI's realtime events.",
      description:
        "Needs a key. A browser can send it as the subprotocol `openai-insecure-api-key.<key>`. Pages of this gateway need none: their cookie counts. A session is charged when it ends, for the usage of all its responses as the upstream reports it, or as the gateway counts it where there is no report. Credits are held while the session runs, and before each response; when no more credits can be held, the session ends with an `error` event. Transcription of the caller's audio is charged at the price of the transcription model that `session.update` names, as a separate usage record whose `parent_request_id` is the ID of the session. Sessions other than conversations, tools other than functions, and everything else without a price are rejected. When the caller leaves, the running response is cancelled, and charged as reported.",
      answer: UPGRADE,
      errors: ["402", "403", "502", "504"],
      isForAgents: true,
      isPublic: true,
      query: realtimeQuery,
      handler: (_ctx, { exchange }) => {
        if (Object.hasOwn(exchange.query.parameters, "quote")) throw invalidInput(NO_REALTIME_QUOTE, "quote");
        throw new AppError("UPGRADE_REQUIRED", "This is a WebSocket: connect to it with an upgrade.");
      },
    }),
  });
}

const clientSecret = json(
  "RealtimeClientSecret",
  z.object({
    value: z.string().describe("The secret, `ek_...`."),
    expires_at: seconds,
    session: z.looseObject({ type: z.literal("realtime"), model: z.string().nullable() }).describe("The settings of its sessions."),
  }),
);

export interface RealtimeFace {
  readonly upgrade: (req: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /** Ends every session and resolves when all are charged. */
  readonly close: () => Promise<void>;
  /** Sessions open or being opened. */
  readonly sessionCount: () => number;
}

export interface RealtimeFaceOptions {
  readonly services: Pick<Services, "access" | "apiKeys" | "sessions" | "realtime" | "realtimeClientSecrets">;
  readonly log: Logger;
  readonly trustProxyHops: number;
  readonly keepAlive: KeepAlive;
  /** Called for each session after its charge, and for each refused one. */
  readonly onOver: (note: RequestNote, end: RequestEnd) => void;
}

export function createRealtimeFace(options: RealtimeFaceOptions): RealtimeFace {
  return new Face(options);
}

interface Admitted {
  readonly session: RealtimeSession;
  readonly ctx: RequestContext;
  readonly credential: Credential;
  readonly caller: KeyCaller | SessionCaller;
  /** An event that the session begins with; null: none. */
  readonly first: string | null;
}

type UpgradeSource = ContextSource & { readonly req: IncomingMessage };

class Face implements RealtimeFace {
  private readonly sockets = new OpenSockets({
    maxPayload: REALTIME_EVENT_BYTES_MAX,
    // Browsers close the connection when none of the offered protocols is chosen.
    handleProtocols: (offered) => (offered.has(PROTOCOL) ? PROTOCOL : false),
  });
  private readonly perKey = new BoundedCounter(REALTIME_SESSIONS_PER_KEY_MAX);
  private readonly perAddress = new BoundedCounter(REALTIME_SESSIONS_PER_ADDRESS_MAX);
  /** By handshake, whose answer carries their headers. */
  private readonly admitted = new WeakMap<IncomingMessage, Admitted>();

  constructor(private readonly options: RealtimeFaceOptions) {
    this.sockets.server.on("headers", (headers, req) => {
      const admitted = this.admitted.get(req);
      if (!admitted) return;
      const { generationId, model, modelUsed, upstream } = admitted.session;
      const sessionHeaders = { "X-Request-Id": admitted.ctx.requestId, ...generationHeaders({ model, modelUsed, upstream }, generationId) };
      for (const [name, value] of Object.entries(sessionHeaders)) headers.push(`${name}: ${value}`);
    });
  }

  readonly upgrade = (req: IncomingMessage, socket: Duplex, head: Buffer): void => this.sockets.add(this.serve(req, socket, head));

  readonly sessionCount = (): number => this.sockets.count;

  close(): Promise<void> {
    return this.sockets.close();
  }

  /** Never rejects. */
  private async serve(req: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const leaving = new AbortController();
    const waiting = new WaitingSocket(socket, head, () => leaving.abort());
    const requestId = requestIdOf(req);
    const log = this.options.log.child({ requestId });
    const note = noteOf(req);
    Object.assign(note, { route: REALTIME_PATH, requestId, isGeneration: true });
    let status = SWITCHING_PROTOCOLS;
    const source = { req, requestId, note, log, signal: leaving.signal };
    const undo: (() => void)[] = [];
    try {
      const admitted = await this.admit(source, undo);
      const client = await this.accept(req, socket, waiting.release(), admitted);
      if (client) await this.run(client, req.socket, admitted);
    } catch (error) {
      const failure = explain(error, source, "realtime session");
      refuseUpgrade(socket, failure, requestId);
      status = statusOf(failure.code);
    } finally {
      for (const cleanup of undo) cleanup();
      this.options.onOver(note, { method: "WEBSOCKET", status, isLeft: leaving.signal.aborted });
    }
  }

  /** Authenticates, counts and holds, and connects to the upstream. */
  private async admit(source: UpgradeSource, undo: (() => void)[]): Promise<Admitted> {
    const { access, realtime, realtimeClientSecrets } = this.options.services;
    const { req } = source;
    assertHandshake(req);
    const clientAddress = clientAddressOf(req, this.options.trustProxyHops);
    const protocols = protocolsOf(req);
    const { key, query } = await readCounted(access, clientAddress, () => readSocketAddress(req));
    const secret =
      key !== null && isClientSecret(key) ? await access.authenticateBy(() => realtimeClientSecrets.open(key), clientAddress) : null;
    const credential = { key, sessionToken: key === null ? access.sessionTokenOfUpgrade(req) : null };
    const ctx = new HttpRequestContext(secret?.caller ?? (await authenticate(access, credential, clientAddress)), source, clientAddress);
    const caller = requireCaller(ctx);
    if (caller.kind === "session" && isAgentAtWork(caller))
      throw permissionDenied("An agent run of a signed-in person opens no realtime session.");
    if (this.sockets.isClosing) throw serviceUnavailable("The gateway is stopping.");
    const principal = caller.kind === "key" ? caller.apiKeyId : caller.sessionId;
    const places = [[this.perKey, principal] as const, [this.perAddress, addressGroupOf(clientAddress)] as const];
    takePlaces(places, "Too many realtime sessions at the same time.", undo);
    assertNoOthers(query.parameters);
    const { model, safe, max_cost: maxCost } = query.parameters;
    if (maxCost !== undefined) ctx.maxCost = smallerCost(ctx.maxCost, readMaxCost(maxCost, MAX_COST_FIELD));
    const session = await realtime.open(ctx, {
      model: secret ? realtimeClientSecrets.modelOf(secret, model || undefined) : model || undefined,
      safe: safe ?? null,
      isBeta: protocols.includes(BETA_PROTOCOL) || /realtime=v1/.test(String(req.headers["openai-beta"] ?? "")),
    });
    const first = secret?.settings ? JSON.stringify({ type: "session.update", session: { type: "realtime", ...secret.settings } }) : null;
    return { session, ctx, credential, caller, first };
  }

  /** Null when the client disconnected or its handshake is malformed, which `ws` answers itself; the session is then charged nothing. */
  private async accept(req: IncomingMessage, socket: Duplex, head: Buffer, admitted: Admitted): Promise<WebSocket | null> {
    this.admitted.set(req, admitted);
    const client = await this.sockets.accept(req, socket, head);
    if (client) return client;
    const { session } = admitted;
    session.close();
    for await (const _ of session.events);
    return null;
  }

  /** Resolves when the session is over and charged. */
  private async run(client: WebSocket, connection: Socket, { session, ctx, credential, caller, first }: Admitted): Promise<void> {
    const stopWatching = this.watch(caller, credential, (error) => session.close(error));
    const goAway = () => {
      client.close(CLOSE_CODES.goingAway, "Going away");
      session.close();
    };
    const stopListening = this.sockets.onClosing(goAway);
    try {
      await relay(client, connection, session, ctx, this.options.keepAlive, first);
    } finally {
      stopWatching();
      stopListening();
    }
  }

  private watch(caller: KeyCaller | SessionCaller, credential: Credential, onRefused: (error: AppError) => void): () => void {
    const { apiKeys, sessions } = this.options.services;
    const { key } = credential;
    if (caller.kind === "session" || key === null || !isClientSecret(key)) {
      return watchCaller({ apiKeys, sessions }, caller, credential, onRefused);
    }
    // The session outlives a client secret, but not its key.
    const watched: WatchedKeys = {
      authenticate: () => apiKeys.findCaller(caller.apiKeyId),
      onChanged: (id, listener) => apiKeys.onChanged(id, listener),
    };
    return watchKey(watched, key, caller.apiKeyId, onRefused);
  }
}

/** Other parameters could make upstreams open sessions of other kinds or join calls, which have no price. */
function assertNoOthers(parameters: Readonly<Record<string, string>>): void {
  const name = Object.keys(parameters).find((each) => !Object.hasOwn(realtimeQuery.shape, each));
  if (name === undefined) return;
  assertNoWishes(parameters);
  if (name === "quote") throw invalidInput(NO_REALTIME_QUOTE, name);
  const reason =
    name === "intent" ? "Only conversations have a price: there are no transcription sessions here." : "There is no such parameter.";
  throw invalidInput(`${reason} The address takes model, safe, max_cost and key.`, name);
}

// Relays between a client's socket and a realtime session: each side is read at the pace of the other, until one ends it.

/** Resolves when the session is over and charged; the socket is then closed or closing. */
export async function relay(
  socket: WebSocket,
  connection: Socket,
  session: RealtimeSession,
  ctx: RequestContext,
  liveness: KeepAlive,
  first: string | null = null,
): Promise<void> {
  // `ws` closes the socket itself: a frame is too large or malformed, or the connection broke.
  socket.on("error", () => undefined);
  socket.on("close", () => session.leave());
  if (socket.readyState !== socket.OPEN) session.leave();
  passOn(socket, session, ctx, first);
  const stopPinging = keepAlive(socket, connection, liveness, () => socket.terminate());
  try {
    for await (const text of session.events) {
      if (!(await deliver(socket, text))) session.leave();
    }
    hangUp(socket, CLOSE_CODES.normal, "");
  } catch (error) {
    const failure = explain(error, ctx, "realtime session");
    await deliver(socket, toErrorEvent(failure, ctx.requestId));
    hangUp(socket, isServerError(failure.code) ? CLOSE_CODES.internalError : CLOSE_CODES.policyViolation, failure.code);
  } finally {
    stopPinging();
  }
}

/** Passes the client's events on in order. Pauses reading while too many wait for the upstream. */
function passOn(socket: WebSocket, session: RealtimeSession, ctx: RequestContext, first: string | null): void {
  const { requestId, log, signal } = ctx;
  let waiting = 0;
  const send = (text: string, isFirst = false) =>
    session.send(text).catch(async (error: unknown) => {
      await deliver(socket, toErrorEvent(explain(error, { requestId, log, signal }, "realtime event"), requestId, text));
      // A refused event ends nothing, but a session does not go on without the settings of its client secret's owner.
      if (isFirst) hangUp(socket, CLOSE_CODES.policyViolation, "The settings of the client secret were refused.");
    });
  let last: Promise<unknown> = first === null ? Promise.resolve() : send(first, true);
  socket.on("message", (data, isBinary) => {
    if (isBinary) return socket.close(CLOSE_CODES.unsupportedData, "Events are text");
    const text = String(data);
    waiting += text.length;
    if (waiting > REALTIME_WAITING_BYTES_MAX) socket.pause();
    last = last
      .then(() => send(text))
      .then(() => {
        waiting -= text.length;
        if (waiting <= REALTIME_WAITING_BYTES_MAX && socket.isPaused) socket.resume();
      });
  });
}

/** OpenAI's error event, with the error object of other routes and the id of the refused event. */
function toErrorEvent(error: AppError, requestId: string, refused?: string): string {
  return JSON.stringify({
    type: "error",
    event_id: `event_${randomUUID()}`,
    error: { ...toErrorObject(error, requestId), event_id: refused === undefined ? null : eventIdOf(refused) },
  });
}

function eventIdOf(text: string): string | null {
  try {
    const event = new BoundedJson(JSON_BOUNDS).parse(text);
    if (typeof event !== "object" || event === null || !("event_id" in event)) return null;
    return typeof event.event_id === "string" ? event.event_id : null;
  } catch {
    return null;
  }
}
