/** Between a caller's socket and a realtime session: each side is read at the pace of the other, until one of them ends it. */
import { randomUUID } from "node:crypto";
import type { WebSocket } from "ws";
import type { RequestContext } from "../context.js";
import type { AppError } from "../errors.js";
import { REALTIME_CLOSE_MS, REALTIME_PING_MS, REALTIME_WAITING_BYTES_MAX, SLOW_READER_TIMEOUT_MS } from "../limits.js";
import type { RealtimeSession } from "../services/generation/realtime/realtime.js";
import { toErrorObject } from "./error-handler.js";
import { toTold } from "./realtime-refusal.js";

const NORMAL = 1000;
export const GOING_AWAY = 1001;
const UNSUPPORTED_DATA = 1003;
/** Why a session was ended: the caller's doing, or not. */
const POLICY_VIOLATION = 1008;
const INTERNAL_ERROR = 1011;
const OURS: ReadonlySet<string> = new Set(["INTERNAL_ERROR", "UPSTREAM_ERROR", "UPSTREAM_TIMEOUT", "SERVICE_UNAVAILABLE"]);

/** Resolves when the session is over and charged; the socket is then closed or closing. */
export async function relay(socket: WebSocket, session: RealtimeSession, ctx: RequestContext): Promise<void> {
  // ws has closed the socket by itself then: a frame that is too large or malformed, or a broken connection.
  socket.on("error", () => undefined);
  socket.on("close", () => session.leave());
  if (socket.readyState !== socket.OPEN) session.leave();
  passOn(socket, session, ctx);
  const stopPinging = keepAlive(socket);
  try {
    for await (const text of session.events) {
      if (!(await deliver(socket, text))) session.leave();
    }
    hangUp(socket, NORMAL, "");
  } catch (error) {
    const told = toTold(error, ctx.log);
    ctx.note?.refused(told.code);
    await deliver(socket, toErrorEvent(told, ctx.requestId));
    hangUp(socket, OURS.has(told.code) ? INTERNAL_ERROR : POLICY_VIOLATION, told.code);
  } finally {
    stopPinging();
  }
}

/** The caller's events, in order. While too many wait for the upstream, no more are read. */
function passOn(socket: WebSocket, session: RealtimeSession, ctx: RequestContext): void {
  let waiting = 0;
  let last = Promise.resolve();
  socket.on("message", (data, isBinary) => {
    if (isBinary) return socket.close(UNSUPPORTED_DATA, "Events are text");
    const text = String(data);
    waiting += text.length;
    if (waiting > REALTIME_WAITING_BYTES_MAX) socket.pause();
    last = last
      .then(() => session.send(text))
      .catch((error: unknown) => deliver(socket, toErrorEvent(toTold(error, ctx.log), ctx.requestId, text)).then(() => undefined))
      .then(() => {
        waiting -= text.length;
        if (waiting <= REALTIME_WAITING_BYTES_MAX && socket.isPaused) socket.resume();
      });
  });
}

/** Resolves when the text has been handed to the system; false when nobody reads it any more. */
function deliver(socket: WebSocket, text: string): Promise<boolean> {
  if (socket.readyState !== socket.OPEN) return Promise.resolve(false);
  return new Promise((resolve) => {
    const timer = setTimeout(() => socket.terminate(), SLOW_READER_TIMEOUT_MS);
    socket.send(text, (error) => {
      clearTimeout(timer);
      resolve(!error);
    });
  });
}

/** OpenAI's error event, with the object of every other route in it, and the id of the caller's event that is refused. */
function toErrorEvent(error: AppError, requestId: string, refused?: string): string {
  return JSON.stringify({
    type: "error",
    event_id: `event_${randomUUID()}`,
    error: { ...toErrorObject(error, requestId), event_id: refused === undefined ? null : eventIdOf(refused) },
  });
}

function eventIdOf(text: string): string | null {
  try {
    const event: unknown = JSON.parse(text);
    if (typeof event !== "object" || event === null || !("event_id" in event)) return null;
    return typeof event.event_id === "string" ? event.event_id : null;
  } catch {
    return null;
  }
}

function hangUp(socket: WebSocket, code: number, reason: string): void {
  if (socket.isPaused) socket.resume();
  socket.close(code, reason);
  const timer = setTimeout(() => socket.terminate(), REALTIME_CLOSE_MS);
  socket.once("close", () => clearTimeout(timer));
  if (socket.readyState === socket.CLOSED) clearTimeout(timer);
}

/** Hangs up on a caller from whom nothing has come for two intervals. */
function keepAlive(socket: WebSocket): () => void {
  let isAlive = true;
  const note = () => {
    isAlive = true;
  };
  socket.on("pong", note);
  socket.on("message", note);
  const timer = setInterval(() => {
    // While it is not read from, nothing can come.
    if (socket.isPaused) return;
    if (!isAlive) return socket.terminate();
    isAlive = false;
    socket.ping();
  }, REALTIME_PING_MS);
  return () => clearInterval(timer);
}
