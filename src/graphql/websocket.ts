/**
 * GraphQL over WebSocket: the graphql-ws protocol on ws, executed through Yoga's own envelope, so that all limits and the error
 * mapping apply (docs/spec/graphql.md#websocket). The key is taken from `connectionParams.authorization` as `Bearer <key>`, the
 * Authorization header of the upgrade, or `?key=`, in this order. Without a key, the cookie of a signed-in browser is accepted on the
 * gateway's own pages.
 */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { CloseCode, handleProtocols, makeServer, type Server } from "graphql-ws";
import { type WebSocket, WebSocketServer } from "ws";
import { AppError, type ErrorCode } from "../errors.js";
import { authenticate, parseQuery, readCounted, readToken, requestIdOf } from "../http/context.js";
import { CLOSE_CODES, closeReason, deliver, refuseUpgrade, type UpgradeHandler } from "../http/websocket.js";
import { clientAddressOf } from "../lib/client-address.js";
import { keepAlive } from "../lib/keep-alive.js";
import {
  DRAIN_TIMEOUT_MS,
  GRAPHQL_ANONYMOUS_BODY_BYTES_MAX,
  WEBSOCKET_INIT_TIMEOUT_MS,
  WEBSOCKET_LAST_ERRORS_MS,
  WEBSOCKET_UNREAD_BYTES_MAX,
} from "../limits.js";
import { readBearer } from "../services/access/access.js";
import type { LiveConnections } from "../services/access/live-connections.js";
import { watchCaller } from "../services/access/revocation-watch.js";
import type { Services } from "../services/services.js";
import { GRAPHQL_MESSAGE_BYTES_MAX } from "./limits.js";
import { type MessageReader, SocketMessages } from "./socket-messages.js";
import { type PreparedOperation, SocketOperations, toMessageError } from "./websocket-operations.js";
import type { Face } from "./yoga.js";

/** Refusals that are not about the key. */
const LATER: ReadonlySet<ErrorCode> = new Set(["SERVICE_UNAVAILABLE", "RATE_LIMITED"]);

export interface WebSocketFace {
  readonly upgrade: UpgradeHandler;
  readonly socketCount: () => number;
  /** Closes each client with 1012 when its finite operations are done, and resolves when all have closed. */
  readonly close: () => Promise<void>;
}

interface Connection {
  readonly socket: WebSocket;
  readonly request: IncomingMessage;
  readonly clientAddress: string;
  readonly operations: SocketOperations;
  readonly cleanups: (() => void)[];
  /** Ends the limit for anonymous clients. */
  readonly trust: () => void;
}

type Extra = Record<PropertyKey, unknown> & { readonly connection: Connection };

export function createWebSocketFace(face: Face, trustProxyHops: number): WebSocketFace {
  const server = new WebSocketServer({ noServer: true, maxPayload: GRAPHQL_MESSAGE_BYTES_MAX, perMessageDeflate: false, handleProtocols });
  const protocol = createProtocol(face);
  return {
    upgrade: (request, rawSocket, head) => {
      const address = clientAddressOf(request, trustProxyHops);
      try {
        rawSocket.once("close", face.connections.openAt(address));
      } catch (error) {
        return refuseUpgrade(rawSocket, error as AppError, requestIdOf(request));
      }
      server.handleUpgrade(request, rawSocket, head, (socket) => serve(socket, request, address, protocol, face));
    },
    socketCount: () => server.clients.size,
    close: async () => {
      const timer = setTimeout(() => {
        for (const client of server.clients) client.terminate();
      }, DRAIN_TIMEOUT_MS);
      await new Promise<void>((resolve) => server.close(() => resolve()));
      clearTimeout(timer);
    },
  };
}

/** The protocol's state machine: which clients may connect, and what happens to each operation. */
function createProtocol({ services, connections }: Face): Server<Extra> {
  return makeServer<Record<string, unknown>, Extra>({
    connectionInitWaitTimeout: WEBSOCKET_INIT_TIMEOUT_MS,
    onConnect: ({ connectionParams, extra: { connection } }) => admit(connection, connectionParams, services, connections),
    onSubscribe: ({ extra }, id, payload) => extra.connection.operations.prepare(id, payload),
    execute: (args) => (args as PreparedOperation).run(),
    subscribe: (args) => (args as PreparedOperation).run(),
    onNext: (_ctx, _id, _payload, _args, { errors, data, extensions, ...parts }) =>
      errors && { ...parts, ...(data !== undefined && { data }), ...(extensions && { extensions }), errors: errors.map(toMessageError) },
    onError: (_ctx, _id, _payload, errors) => errors.map(toMessageError),
    onComplete: ({ extra }, _id, payload) => extra.connection.operations.finish(payload),
  });
}

/** Decides for graphql-ws whether this client may connect. A refusal closes the socket with 4403. */
async function admit(
  connection: Connection,
  connectionParams: Readonly<Record<string, unknown>> | undefined,
  services: Services,
  connections: LiveConnections,
): Promise<boolean> {
  const { socket, request, clientAddress, operations, cleanups } = connection;
  try {
    const key = await readCounted(services.access, clientAddress, () => readKey(connectionParams, request));
    const credential = { key, sessionToken: key === null ? services.access.sessionTokenOfUpgrade(request) : null };
    const caller = await authenticate(services.access, credential, clientAddress);
    if (socket.readyState !== socket.OPEN) return false;
    // A session that has already ended is treated as anonymous. One that ends later closes the socket.
    if (caller.kind === "anonymous") return true;
    operations.authenticateAs(credential);
    try {
      cleanups.push(connections.openFor(caller));
    } catch (error) {
      socket.close(CloseCode.TooManyInitialisationRequests, closeReason((error as AppError).message));
      return false;
    }
    cleanups.push(watchCaller(services, caller, credential, (error) => endFor(connection, error)));
    connection.trust();
    return true;
  } catch (error) {
    if (error instanceof AppError && LATER.has(error.code)) socket.close(CLOSE_CODES.tryAgainLater, "Try again later");
    else if (!(error instanceof AppError)) throw error;
    else refuse(socket, error);
    return false;
  }
}

/** The close reason is all that a client learns. */
function refuse(socket: WebSocket, { message }: AppError): void {
  socket.close(CloseCode.Forbidden, closeReason(message));
}

/** Generations of a suspended account end with an error of their own, which is sent before the socket is closed. */
function endFor({ socket, operations, cleanups }: Connection, error: AppError): void {
  if (error.code !== "ACCOUNT_SUSPENDED") {
    refuse(socket, error);
    return;
  }
  const end = () => refuse(socket, error);
  const timer = setTimeout(end, WEBSOCKET_LAST_ERRORS_MS);
  cleanups.push(() => clearTimeout(timer));
  operations.stop(() => setImmediate(end));
}

function readKey(connectionParams: Readonly<Record<string, unknown>> | undefined, request: IncomingMessage): string | null {
  const stated = connectionParams?.authorization ?? connectionParams?.Authorization ?? null;
  return stated === null ? readToken(request, { query: parseQuery(request.url ?? "") }) : readBearer(String(stated));
}

/** Connects one socket to the protocol, until it closes. */
function serve(socket: WebSocket, request: IncomingMessage, address: string, protocol: Server<Extra>, face: Face): void {
  const { log, closing } = face;
  const cleanups: (() => void)[] = [];
  const operations = new SocketOperations(face, request, address, (error) => refuse(socket, error));
  const trust = boundAnonymousBytes(socket, request.socket);
  const connection: Connection = { socket, request, clientAddress: address, operations, cleanups, trust };
  cleanups.push(keepAlive(socket, request.socket, face.keepAlive, () => socket.terminate()));
  // Only after the last message of the operation is on its way. Live subscriptions are not completed: clients would not open them again.
  const goAway = () => operations.stop(() => setImmediate(() => socket.close(CLOSE_CODES.serviceRestart, "Service restart")));
  closing.addEventListener("abort", goAway, { once: true });
  cleanups.push(() => closing.removeEventListener("abort", goAway));
  if (closing.aborted) goAway();
  const onRefused = (reason: string) => socket.close(CloseCode.BadRequest, closeReason(reason));
  const closed = protocol.opened(
    {
      protocol: socket.protocol,
      send: (text) => send(socket, text),
      close: (code, reason) => socket.close(code, reason),
      onMessage: (receive) =>
        listen(socket, request.socket, {
          onRefused,
          onText: (text) => {
            operations.expect(text);
            receive(text).catch((error: unknown) => {
              if (error instanceof SocketClosed) return;
              log.error({ err: error }, "socket failed");
              socket.close(CLOSE_CODES.internalError, "Internal error");
            });
          },
        }),
    },
    { connection },
  );
  // ws has then closed the socket itself: a frame that is too large or malformed, or a broken connection.
  socket.on("error", () => undefined);
  socket.once("close", (code, reason) => {
    for (const cleanup of cleanups) cleanup();
    operations.cancelAll();
    closed(code, String(reason)).catch((error: unknown) => log.error({ err: error }, "socket failed to close"));
  });
}

function listen(socket: WebSocket, rawSocket: Duplex, reader: MessageReader): void {
  const messages = new SocketMessages(socket, reader);
  socket.on("message", (data) => {
    slowDown(socket, rawSocket);
    messages.take(data as Buffer);
  });
}

/** The client has gone, so no more messages need to be generated. */
class SocketClosed extends Error {
  override readonly name = "SocketClosed";
}

async function send(socket: WebSocket, text: string): Promise<void> {
  if (!(await deliver(socket, text))) throw new SocketClosed();
}

/** A client that sends without reading the answers is not read from until it does. */
function slowDown(socket: WebSocket, rawSocket: Duplex): void {
  if (socket.bufferedAmount <= WEBSOCKET_UNREAD_BYTES_MAX || socket.isPaused) return;
  socket.pause();
  rawSocket.once("drain", () => socket.resume());
}

/** Until a key is accepted, a client may send only as much as the public catalog needs. */
function boundAnonymousBytes(socket: WebSocket, rawSocket: Duplex): () => void {
  let bytes = 0;
  const count = (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= GRAPHQL_ANONYMOUS_BODY_BYTES_MAX) return;
    rawSocket.off("data", count);
    socket.close(CLOSE_CODES.messageTooBig, "Too much without a key");
    socket.terminate();
  };
  rawSocket.on("data", count);
  return () => {
    rawSocket.off("data", count);
  };
}
