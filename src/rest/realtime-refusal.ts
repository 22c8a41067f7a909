/** A refusal on a connection that asked to be upgraded: the status and the envelope of any other route, then the end. */
import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { Logger } from "pino";
import { AppError } from "../errors.js";
import { headersOf, lastHeadersOf, toErrorEnvelope } from "./error-handler.js";

/** Whatever was thrown; what is not ours to explain is logged here, once. */
export function toTold(error: unknown, log: Logger): AppError {
  if (error instanceof AppError && error.code !== "INTERNAL_ERROR") return error;
  log.error({ err: error }, "realtime session failed");
  return new AppError("INTERNAL_ERROR", "Something went wrong in the gateway. Quote the request id when you report it.");
}

/** Returns what the caller is told. */
export function refuseUpgrade(socket: Duplex, error: unknown, requestId: string, log: Logger): AppError {
  const told = toTold(error, log);
  if (!socket.writable) return told;
  const envelope = toErrorEnvelope(told, requestId);
  const body = JSON.stringify(envelope);
  const headers = { ...headersOf(told), ...lastHeadersOf(body, requestId) };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  // A peer that resets the connection now must not take the process with it.
  socket.on("error", () => socket.destroy());
  socket.end(`HTTP/1.1 ${envelope.status} ${STATUS_CODES[envelope.status] ?? ""}\r\n${lines.join("\r\n")}\r\n\r\n${body}`);
  return told;
}

/** As much as a caller may send before it has been answered. */
const EARLY_BYTES_MAX = 64 * 1024;

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
