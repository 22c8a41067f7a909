/** Between a caller's socket and a realtime session: each side is read at the pace of the other, until one of them ends it. */
import { randomUUID } from "node:crypto";
import type { Socket } from "node:net";
import type { WebSocket } from "ws";
import type { RequestContext } from "../context.js";
import type { AppError } from "../errors.js";
import { explain, isServerError, toErrorObject } from "../http/errors.js";
import { CLOSE_CODES, deliver } from "../http/websocket.js";
import { type KeepAlive, keepAlive } from "../lib/keep-alive.js";
import { REALTIME_CLOSE_MS, REALTIME_WAITING_BYTES_MAX } from "../limits.js";
import type { RealtimeSession } from "../services/generation/realtime/run.js";

/** Resolves when the session is over and charged; the socket is then closed or closing. */
export async function relay(
  socket: WebSocket,
  connection: Socket,
  session: RealtimeSession,
  ctx: RequestContext,
  liveness: KeepAlive,
): Promise<void> {
  // ws has closed the socket by itself then: a frame that is too large or malformed, or a broken connection.
  socket.on("error", () => undefined);
  socket.on("close", () => session.leave());
  if (socket.readyState !== socket.OPEN) session.leave();
  passOn(socket, session, ctx);
  const stopPinging = keepAlive(socket, connection, liveness, () => socket.terminate());
  try {
    for await (const text of session.events) {
      if (!(await deliver(socket, text))) session.leave();
    }
    hangUp(socket, CLOSE_CODES.normal, "");
  } catch (error) {
    const told = explain(error, ctx, "realtime session");
    await deliver(socket, toErrorEvent(told, ctx.requestId));
    hangUp(socket, isServerError(told.code) ? CLOSE_CODES.internalError : CLOSE_CODES.policyViolation, told.code);
  } finally {
    stopPinging();
  }
}

/** The caller's events, in order. While too many wait for the upstream, no more are read. */
function passOn(socket: WebSocket, session: RealtimeSession, ctx: RequestContext): void {
  // An event that is refused does not make the session one that failed.
  const { requestId, log, signal } = ctx;
  let waiting = 0;
  let last = Promise.resolve();
  socket.on("message", (data, isBinary) => {
    if (isBinary) return socket.close(CLOSE_CODES.unsupportedData, "Events are text");
    const text = String(data);
    waiting += text.length;
    if (waiting > REALTIME_WAITING_BYTES_MAX) socket.pause();
    last = last
      .then(() => session.send(text))
      .catch(async (error: unknown) => {
        const told = explain(error, { requestId, log, signal }, "realtime event");
        await deliver(socket, toErrorEvent(told, requestId, text));
      })
      .then(() => {
        waiting -= text.length;
        if (waiting <= REALTIME_WAITING_BYTES_MAX && socket.isPaused) socket.resume();
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
