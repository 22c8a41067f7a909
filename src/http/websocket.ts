/** WebSockets of all faces: routing and refusal of upgrades, and closing. */
import { type IncomingMessage, type Server, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import { AppError, invalidInput } from "../errors.js";
import { parseQuery, type Query, readToken } from "./context.js";
import { headersOf, lastHeadersOf, toErrorEnvelope } from "./errors.js";

/** RFC 6455, 7.4.1, and IANA's registry. */
export const CLOSE_CODES = {
  normal: 1000,
  goingAway: 1001,
  unsupportedData: 1003,
  policyViolation: 1008,
  messageTooBig: 1009,
  internalError: 1011,
  serviceRestart: 1012,
  tryAgainLater: 1013,
} as const;

/** Bytes that a client may send before its upgrade is answered. */
const EARLY_BYTES_MAX = 64 * 1024;
/** How long the other side may take to answer a close. */
const CLOSE_MS = 1_000;
/** 16 bytes in base64. */
const HANDSHAKE_KEY = /^[+/0-9A-Za-z]{22}==$/;
/** The subprotocol by which a browser sends its key. */
export const KEY_PROTOCOL = "openai-insecure-api-key.";

export type UpgradeHandler = (req: IncomingMessage, socket: Duplex, head: Buffer) => void;

/**
 * Routes upgrade requests by path; `refuse` answers the others, and those that `isAnswered` rejects. The returned function ends the
 * routing.
 */
export function routeUpgrades(
  httpServer: Server,
  handlers: Readonly<Record<string, UpgradeHandler>>,
  refuse: UpgradeHandler,
  isAnswered: (req: IncomingMessage, path: string) => boolean,
): () => void {
  const byPath = new Map(Object.entries(handlers));
  const onUpgrade: UpgradeHandler = (req, socket, head) => {
    const [path = ""] = (req.url ?? "").split("?", 1);
    const handler = byPath.get(path);
    if (handler && isAnswered(req, path)) handler(req, socket, head);
    else refuse(req, socket, head);
  };
  httpServer.on("upgrade", onUpgrade);
  return () => {
    httpServer.off("upgrade", onUpgrade);
  };
}

/** Sends status and envelope as any route would, then closes the connection. */
export function refuseUpgrade(socket: Duplex, error: AppError, requestId: string): void {
  // A reset by the peer at this point must not crash the process.
  socket.on("error", () => socket.destroy());
  if (!socket.writable) return;
  const envelope = toErrorEnvelope(error, requestId);
  const body = JSON.stringify(envelope);
  const lines = Object.entries({ ...headersOf(error), ...lastHeadersOf(body, requestId) }).map(([name, value]) => `${name}: ${value}`);
  socket.end(`HTTP/1.1 ${envelope.status} ${STATUS_CODES[envelope.status] ?? ""}\r\n${lines.join("\r\n")}\r\n\r\n${body}`);
}

/** Checks early what `ws` would refuse after the work of an upgrade is done. Throws UPGRADE_REQUIRED or BAD_REQUEST. */
export function assertHandshake({ method, headers }: IncomingMessage): void {
  if (headers.upgrade?.toLowerCase() !== "websocket") throw new AppError("UPGRADE_REQUIRED", "This path is upgraded to a WebSocket only.");
  const isComplete = method === "GET" && HANDSHAKE_KEY.test(headers["sec-websocket-key"] ?? "");
  if (!isComplete || headers["sec-websocket-version"] !== "13") throw invalidInput("The WebSocket handshake is not well-formed.");
}

export function protocolsOf(req: IncomingMessage): readonly string[] {
  return (req.headers["sec-websocket-protocol"] ?? "").split(",").map((name) => name.trim());
}

/**
 * The query and key of an upgrade to one of OpenAI's WebSockets. A key in the header takes precedence, then the query
 * (docs/spec/http.md#credentials), then the subprotocol, because browsers cannot set headers.
 */
export function readSocketAddress(req: IncomingMessage): { readonly query: Query; readonly key: string | null } {
  const query = parseQuery(req.url ?? "");
  const protocol = protocolsOf(req).find((name) => name.startsWith(KEY_PROTOCOL));
  return { query, key: readToken(req, { query }) ?? protocol?.slice(KEY_PROTOCOL.length) ?? null };
}

/** Closes the socket, and ends the connection when the other side does not answer. */
export function hangUp(socket: WebSocket, code: number, reason: string): void {
  if (socket.isPaused) socket.resume();
  drop(socket, code, reason);
}

/** As `hangUp`, for a socket that is paused: nothing more of it is read. */
export function drop(socket: WebSocket, code: number, reason: string): void {
  socket.close(code, reason);
  const timer = setTimeout(() => socket.terminate(), CLOSE_MS);
  socket.once("close", () => clearTimeout(timer));
  if (socket.readyState === socket.CLOSED) clearTimeout(timer);
}

/**
 * A connection waiting for the answer to its upgrade. It is read meanwhile, because an unread connection does not notice that its peer is
 * gone; early bytes are kept.
 */
export class WaitingSocket {
  private readonly chunks: Buffer[];
  private size = 0;
  private readonly onData = (chunk: Buffer) => {
    this.chunks.push(chunk);
    this.size += chunk.length;
    if (this.size > EARLY_BYTES_MAX) this.socket.pause();
  };

  constructor(
    private readonly socket: Duplex,
    head: Buffer,
    private readonly onGone: () => void,
  ) {
    this.chunks = [head];
    socket.on("close", onGone);
    socket.on("error", onGone);
    socket.on("end", onGone);
    socket.on("data", this.onData);
  }

  /** Returns the early bytes; another reader takes over. Closing is still reported. */
  release(): Buffer {
    this.socket.off("data", this.onData);
    this.socket.off("end", this.onGone);
    this.socket.pause();
    return Buffer.concat(this.chunks);
  }
}

/** Resolves when the system has taken the text, which paces its source to the reader; false when the socket is closed. */
export function deliver(socket: WebSocket, text: string): Promise<boolean> {
  if (socket.readyState !== socket.OPEN) return Promise.resolve(false);
  return new Promise((resolve) => {
    socket.send(text, (error) => resolve(!error));
  });
}

/** The longest reason in a close frame (RFC 6455, 5.5: 125 bytes with the code). */
const REASON_BYTES_MAX = 123;

/** Cuts the text to as many whole words as fit. */
export function closeReason(text: string): string {
  if (Buffer.byteLength(text) <= REASON_BYTES_MAX) return text;
  let end = Math.min(text.length, REASON_BYTES_MAX);
  while (end > 0 && (Buffer.byteLength(text.slice(0, end)) > REASON_BYTES_MAX - 3 || text[end] !== " ")) end -= 1;
  return `${text.slice(0, end)}...`;
}
