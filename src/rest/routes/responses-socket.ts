/**
 * GET /v1/responses: OpenAI's Responses over a WebSocket (docs/spec/chat.md#websocket). `response.create` runs a response, whose events are
 * those of the HTTP stream; several run one after the other. Refusals of the connection come before the upgrade, with status and envelope;
 * later ones are `error` events.
 */
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Logger } from "pino";
import type { WebSocket } from "ws";
import type { KeyCaller } from "../../context.js";
import { invalidInput, permissionDenied, serviceUnavailable } from "../../errors.js";
import { type ContextSource, HttpRequestContext, readCounted, requestIdOf } from "../../http/context.js";
import { explain, statusOf } from "../../http/errors.js";
import { OpenSockets, takePlaces } from "../../http/open-sockets.js";
import { assertHandshake, KEY_PROTOCOL, readSocketAddress, refuseUpgrade, WaitingSocket } from "../../http/websocket.js";
import { BoundedCounter } from "../../lib/bounded.js";
import { addressGroupOf, clientAddressOf } from "../../lib/client-address.js";
import { type KeepAlive, keepAlive } from "../../lib/keep-alive.js";
import { noteOf, type RequestEnd, type RequestNote } from "../../lib/request-note.js";
import { requireCaller } from "../../services/access/permissions.js";
import { watchKey } from "../../services/access/revocation-watch.js";
import { assertNoWishes } from "../../services/catalog/request-rates.js";
import { smallerCost, takeMaxCost } from "../../services/credits/max-cost.js";
import { ResponseThread } from "../../services/generation/chat/response-thread.js";
import { WISH_FIELDS } from "../../services/generation/routing/wish-reader.js";
import type { Services } from "../../services/services.js";
import { EVENT_BYTES_MAX, SOCKET_IDLE_MS_MAX, SOCKET_MS_MAX, SOCKETS_PER_ADDRESS_MAX, SOCKETS_PER_KEY_MAX } from "../response-limits.js";
import { ResponseConnection } from "./response-connection.js";
import { RESPONSES_PATH } from "./responses.js";

export interface ResponsesFace {
  readonly upgrade: (req: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /** Lets the running responses finish, closes all connections, and resolves when everything is charged. */
  readonly close: () => Promise<void>;
  /** Connections open or being opened. */
  readonly connectionCount: () => number;
}

export interface ResponsesFaceOptions {
  readonly services: Pick<Services, "access" | "apiKeys" | "responses" | "bodies" | "wishes">;
  readonly log: Logger;
  readonly trustProxyHops: number;
  readonly keepAlive: KeepAlive;
  /** Called for each response after its charge, and for each refused connection. */
  readonly onOver: (note: RequestNote, end: RequestEnd) => void;
  readonly times: { readonly totalMs?: number; readonly idleMs?: number };
}

export function createResponsesFace(options: ResponsesFaceOptions): ResponsesFace {
  return new Face(options);
}

interface Admitted {
  readonly key: string;
  readonly caller: KeyCaller;
  readonly clientAddress: string;
  readonly maxCost: HttpRequestContext["maxCost"];
}

class Face implements ResponsesFace {
  private readonly sockets = new OpenSockets({
    maxPayload: EVENT_BYTES_MAX,
    // The connection refuses text that is not UTF-8 by an event, and stays open.
    skipUTF8Validation: true,
    // Browsers close the connection when none of the offered protocols is chosen.
    handleProtocols: (offered) => [...offered].find((name) => !name.startsWith(KEY_PROTOCOL)) ?? false,
  });
  private readonly perKey = new BoundedCounter(SOCKETS_PER_KEY_MAX);
  private readonly perAddress = new BoundedCounter(SOCKETS_PER_ADDRESS_MAX);

  constructor(private readonly options: ResponsesFaceOptions) {}

  readonly upgrade = (req: IncomingMessage, socket: Duplex, head: Buffer): void => this.sockets.add(this.serve(req, socket, head));

  readonly connectionCount = (): number => this.sockets.count;

  close(): Promise<void> {
    return this.sockets.close();
  }

  /** Never rejects. */
  private async serve(req: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const leaving = new AbortController();
    const waiting = new WaitingSocket(socket, head, () => leaving.abort());
    const requestId = requestIdOf(req);
    const note = noteOf(req);
    Object.assign(note, { route: RESPONSES_PATH, requestId });
    const source = { req, requestId, note, log: this.options.log.child({ requestId }), signal: leaving.signal };
    const undo: (() => void)[] = [];
    try {
      const admitted = await this.admit(source, undo);
      const client = await this.sockets.accept(req, socket, waiting.release());
      if (client) await this.run(client, req, admitted);
    } catch (error) {
      const failure = explain(error, source, "connection for responses");
      refuseUpgrade(socket, failure, requestId);
      this.options.onOver(note, { method: "WEBSOCKET", status: statusOf(failure.code), isLeft: leaving.signal.aborted });
    } finally {
      for (const cleanup of undo) cleanup();
    }
  }

  private async admit(source: ContextSource & { readonly req: IncomingMessage }, undo: (() => void)[]): Promise<Admitted> {
    const { access } = this.options.services;
    const { req } = source;
    assertHandshake(req);
    const clientAddress = clientAddressOf(req, this.options.trustProxyHops);
    const { key, query } = await readCounted(access, clientAddress, () => readSocketAddress(req));
    const ctx = new HttpRequestContext(await access.authenticate(key, clientAddress), source, clientAddress);
    const caller = requireCaller(ctx);
    if (caller.kind !== "key" || key === null) throw permissionDenied("A connection for responses is opened with an API key.");
    if (this.sockets.isClosing) throw serviceUnavailable("The gateway is stopping.");
    const places = [[this.perKey, caller.apiKeyId] as const, [this.perAddress, addressGroupOf(clientAddress)] as const];
    takePlaces(places, "Too many connections for responses at the same time.", undo);
    const bounded = takeMaxCost(query.parameters);
    assertNoWishes(bounded?.rest ?? query.parameters);
    const wish = WISH_FIELDS.find((field) => Object.hasOwn(query.parameters, field));
    if (wish !== undefined) throw invalidInput("A connection has no wishes of its own: state them in response.create.", wish);
    if (Object.hasOwn(query.parameters, "quote"))
      throw invalidInput("A connection has no quote: send POST /v1/quote with the path /v1/responses.", "quote");
    return { key, caller, clientAddress, maxCost: bounded?.maxCost };
  }

  /** Resolves when the connection is closed and everything is charged. */
  private async run(client: WebSocket, req: IncomingMessage, { key, caller, clientAddress, maxCost }: Admitted): Promise<void> {
    const { services, log, keepAlive: liveness, onOver, times } = this.options;
    const { totalMs = SOCKET_MS_MAX, idleMs = SOCKET_IDLE_MS_MAX } = times;
    const connection = new ResponseConnection({
      socket: client,
      wire: req.socket,
      thread: new ResponseThread(services.responses, services.bodies),
      bodies: services.bodies,
      wishes: services.wishes,
      allow: () => services.bodies.allow(caller, clientAddress),
      idleMs,
      log,
      onOver,
      toContext: async (source) => {
        const context = new HttpRequestContext(await services.access.authenticate(key, clientAddress), { ...source, req }, clientAddress);
        // Each response has a bound of its own.
        if (maxCost) context.maxCost = smallerCost(context.maxCost, { ...maxCost });
        return context;
      },
    });
    const stopWatching = watchKey(services.apiKeys, key, caller.apiKeyId, (error) => connection.refuse(error));
    const stopPinging = keepAlive(client, req.socket as Socket, liveness, () => client.terminate());
    const lifetime = setTimeout(() => connection.expire(), totalMs);
    const stopListening = this.sockets.onClosing(() => connection.goAway());
    try {
      await connection.closed;
    } finally {
      stopWatching();
      stopPinging();
      clearTimeout(lifetime);
      stopListening();
    }
  }
}
