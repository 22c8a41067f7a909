/** WebSockets, whichever face they belong to: where their upgrades go, how they are refused, and when their peers are hung up on. */
import { type IncomingMessage, type Server, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import type { AppError } from "../errors.js";
import { headersOf, lastHeadersOf, toErrorEnvelope } from "./errors.js";

/** RFC 6455, 7.4.1, and IANA's registry. */
export const CLOSE_CODES = {
  normal: 1000,
  goingAway: 1001,
  unsupportedData: 1003,
  policyViolation: 1008,
  messageTooBig: 1009,
  internalError: 1011,
  tryAgainLater: 1013,
} as const;

/** As much as a caller may send before its upgrade is answered. */
const EARLY_BYTES_MAX = 64 * 1024;

export type UpgradeHandler = (req: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** Routes upgrade requests by path; `refuse` answers the others, and those that `isAnswered` does not want. The returned function ends the routing. */
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

/** The status and the envelope of any other route, then the end of the connection. */
export function refuseUpgrade(socket: Duplex, error: AppError, requestId: string): void {
  // A peer that resets the connection now must not take the process with it.
  socket.on("error", () => socket.destroy());
  if (!socket.writable) return;
  const envelope = toErrorEnvelope(error, requestId);
  const body = JSON.stringify(envelope);
  const lines = Object.entries({ ...headersOf(error), ...lastHeadersOf(body, requestId) }).map(([name, value]) => `${name}: ${value}`);
  socket.end(`HTTP/1.1 ${envelope.status} ${STATUS_CODES[envelope.status] ?? ""}\r\n${lines.join("\r\n")}\r\n\r\n${body}`);
}

/**
 * A connection that waits for the answer to its upgrade. It is read meanwhile, because a connection that nobody reads does not tell
 * when its other end has gone; what comes early is kept.
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

  /** Everything that has come; from here on somebody else reads. Its closing is told all the same. */
  release(): Buffer {
    this.socket.off("data", this.onData);
    this.socket.off("end", this.onGone);
    this.socket.pause();
    return Buffer.concat(this.chunks);
  }
}

/** Resolves when the text has been handed to the system, so that a source is pulled no faster than its reader reads; false when nobody reads it any more. */
export function deliver(socket: WebSocket, text: string): Promise<boolean> {
  if (socket.readyState !== socket.OPEN) return Promise.resolve(false);
  return new Promise((resolve) => {
    socket.send(text, (error) => resolve(!error));
  });
}

/** Why a WebSocket is closed, as long as a close frame can say it (RFC 6455, 5.5: 125 bytes with the code). */
const REASON_BYTES_MAX = 123;

/** The text, or as many whole words of its beginning as fit. */
export function closeReason(text: string): string {
  if (Buffer.byteLength(text) <= REASON_BYTES_MAX) return text;
  let end = Math.min(text.length, REASON_BYTES_MAX);
  while (end > 0 && (Buffer.byteLength(text.slice(0, end)) > REASON_BYTES_MAX - 3 || text[end] !== " ")) end -= 1;
  return `${text.slice(0, end)}...`;
}
