/**
 * One WebSocket on which responses run, one at a time. Events are delivered at the pace of the client; its frames are read in order, also
 * while a response runs, so that a second one is refused at once.
 */
import { randomUUID } from "node:crypto";
import type { Socket } from "node:net";
import type { Logger } from "pino";
import type { RawData, WebSocket } from "ws";
import type { RequestContext } from "../../context.js";
import { type AppError, conflict, invalidInput, isCredentialEnded, serviceUnavailable } from "../../errors.js";
import { type JsonObject, parseJsonBytes, TURN_BYTES } from "../../http/body.js";
import type { ContextSource, HttpRequestContext } from "../../http/context.js";
import { explain, statusOf, statusOfNote, toErrorObject } from "../../http/errors.js";
import { CLOSE_CODES, deliver, drop, hangUp } from "../../http/websocket.js";
import { isRecord } from "../../lib/json.js";
import { type RequestEnd, RequestNote } from "../../lib/request-note.js";
import { JSON_BODY_BYTES_MAX } from "../../limits.js";
import { smallerCost, takeMaxCost } from "../../services/credits/max-cost.js";
import type { ResponseThread } from "../../services/generation/chat/response-thread.js";
import type { ResponseStream } from "../../services/generation/chat/responses.js";
import type { WishReader } from "../../services/generation/routing/wish-reader.js";
import type { BodyAllowance, BodyBudget } from "../../services/requests/body-budget.js";
import { WAITING_BYTES_MAX } from "../response-limits.js";
import { ArrivingFrames } from "./arriving-frames.js";
import { RESPONSES_PATH } from "./responses.js";

interface ConnectionOptions {
  readonly socket: WebSocket;
  /** The bytes of the socket. */
  readonly wire: Pick<Socket, "prependListener">;
  readonly thread: ResponseThread;
  readonly bodies: BodyBudget;
  readonly wishes: WishReader;
  readonly allow: () => BodyAllowance;
  readonly idleMs: number;
  readonly log: Logger;
  readonly onOver: (note: RequestNote, end: RequestEnd) => void;
  /** The context of one response; rejects when the key is no longer good. */
  readonly toContext: (source: Omit<ContextSource, "req">) => Promise<HttpRequestContext>;
}

interface RunningResponse {
  readonly leaving: AbortController;
  readonly note: RequestNote;
}

/** The code by which OpenAI's clients connect again. */
const LIMIT_REACHED = "websocket_connection_limit_reached";
/** A frame of another type is short; while a response runs, longer ones are not parsed. */
const SHORT_FRAME_BYTES = 4 * 1024;

export class ResponseConnection {
  /** Resolves when the socket is closed and the last response is charged. */
  readonly closed: Promise<void>;
  private running: RunningResponse | null = null;
  private ending: (() => Promise<void>) | null = null;
  private reading: Promise<void> = Promise.resolve();
  private waitingBytes = 0;
  private isCutOff = false;
  private idle: NodeJS.Timeout | null = null;
  private readonly arriving: ArrivingFrames;

  constructor(private readonly options: ConnectionOptions) {
    const { socket, wire, thread, allow } = options;
    this.arriving = new ArrivingFrames(allow, (error) => this.cutOff(error));
    // Before `ws` reads the same bytes.
    wire.prependListener("data", this.arriving.came);
    // `ws` closes the socket itself: a frame is too large or malformed, or the connection broke.
    socket.on("error", ignore);
    socket.on("message", (data) => this.take(data));
    this.closed = new Promise<void>((resolve) => {
      if (socket.readyState === socket.CLOSED) resolve();
      else socket.once("close", () => resolve());
    }).then(async () => {
      this.stopIdling();
      this.ending ??= () => Promise.resolve();
      this.running?.leaving.abort();
      this.arriving.end()?.release();
      await this.reading;
      await this.run;
      thread.close();
    });
    this.startIdling();
  }

  /** The run under way, or the last one. Never rejects. */
  private run: Promise<void> = Promise.resolve();

  /** The key was refused: the running response ends, charged for its delivered part. */
  refuse(error: AppError): void {
    this.end(async () => {
      await this.sendError(explain(error, { requestId: randomUUID(), log: this.options.log }, "connection for responses"), randomUUID());
      hangUp(this.options.socket, CLOSE_CODES.policyViolation, error.code);
    });
    this.running?.note.refused(error.code, error.summary);
    this.running?.leaving.abort();
  }

  /** The gateway stops: a running response finishes first. */
  goAway(): void {
    this.end(async () => hangUp(this.options.socket, CLOSE_CODES.serviceRestart, "The gateway is stopping"));
  }

  /** The connection has lived as long as one may; a running response finishes first. */
  expire(): void {
    this.end(async () => {
      const message = "The connection has reached its longest duration. Open a new one to continue.";
      await this.sendError(serviceUnavailable(message), randomUUID(), LIMIT_REACHED);
      hangUp(this.options.socket, CLOSE_CODES.normal, "The connection has reached its longest duration");
    });
  }

  /** A frame that arrives is refused: the rest of it is not read, so a running response ends, charged for its delivered part. */
  private cutOff(error: AppError): void {
    const { socket, log } = this.options;
    if (this.isCutOff) return;
    this.isCutOff = true;
    this.ending ??= () => Promise.resolve();
    this.stopIdling();
    socket.pause();
    const requestId = randomUUID();
    const told = this.sendError(explain(error, { requestId, log }, "event of responses"), requestId);
    void told.then(() =>
      drop(socket, error.code === "SERVICE_UNAVAILABLE" ? CLOSE_CODES.tryAgainLater : CLOSE_CODES.policyViolation, error.code),
    );
    this.running?.leaving.abort();
  }

  /** Ends the connection once no response runs. Only the first reason counts. */
  private end(ending: () => Promise<void>): void {
    if (this.ending !== null) return;
    this.ending = ending;
    this.stopIdling();
    void this.run.then(ending);
  }

  private take(data: RawData): void {
    const { socket } = this.options;
    // Of type "nodebuffer", the default: one Buffer.
    const bytes = data as Buffer;
    this.waitingBytes += bytes.length;
    const held = this.arriving.end();
    if (this.waitingBytes > WAITING_BYTES_MAX) socket.pause();
    this.reading = this.reading
      .then(() => this.read(bytes, held))
      .then(() => {
        held?.release();
        this.waitingBytes -= bytes.length;
        if (this.waitingBytes <= WAITING_BYTES_MAX && socket.isPaused && !this.isCutOff) socket.resume();
      });
  }

  /** Never rejects: a frame that is refused ends nothing. */
  private async read(bytes: Buffer, held: BodyAllowance | null): Promise<void> {
    if (this.ending !== null) return;
    this.stopIdling();
    const requestId = randomUUID();
    const log = this.options.log.child({ requestId });
    try {
      if (this.running !== null && bytes.length > SHORT_FRAME_BYTES) throw stillRunning();
      const event = await parseJsonBytes(bytes, "The event");
      if (event.type === "response.processed") return;
      if (event.type !== "response.create") throw unknownType();
      if (this.running !== null) throw stillRunning();
      // The response counts them itself.
      held?.release();
      this.begin(event, bytes.length, requestId, log);
    } catch (error) {
      await this.sendError(explain(error, { requestId, log }, "event of responses"), requestId);
    } finally {
      if (this.running === null && this.ending === null) this.startIdling();
    }
  }

  /** Starts a response, whose end is not awaited. */
  private begin(event: JsonObject, bytes: number, requestId: string, log: Logger): void {
    const leaving = new AbortController();
    const note = new RequestNote();
    const isGenerated = event.generate !== false;
    Object.assign(note, { route: RESPONSES_PATH, requestId, isGeneration: isGenerated });
    const running: RunningResponse = { leaving, note };
    this.running = running;
    const source = { requestId, note, log, signal: leaving.signal };
    this.run = this.respond(source, event, bytes, isGenerated).finally(() => {
      this.running = null;
      this.options.onOver(note, { method: "WEBSOCKET", status: statusOfNote(note), isLeft: leaving.signal.aborted });
      if (this.ending === null) this.startIdling();
    });
  }

  /** Never rejects. */
  private async respond(source: Omit<ContextSource, "req">, event: JsonObject, bytes: number, isGenerated: boolean): Promise<void> {
    const { toContext, thread, bodies, wishes } = this.options;
    let allowance: BodyAllowance | null = null;
    let stream: ResponseStream | null = null;
    let isBegun = false;
    try {
      const ctx = await toContext(source);
      allowance = bodies.allow(ctx.caller, ctx.clientAddress);
      allowance.begin({ declaredBytes: bytes, bytesMax: JSON_BODY_BYTES_MAX, onSlow: ignore });
      allowance.end();
      const bounded = withoutBound(ctx, event);
      const wished = await wishes.take(ctx, bounded, "responses");
      if (wished) ctx.wishes = wished.wishes;
      const body = wished?.rest ?? bounded;
      ctx.hasLargeInput = bytes > TURN_BYTES;
      if (!isGenerated) return await this.send((await thread.prepare(ctx, body, bytes)).events);
      stream = await thread.stream(ctx, body, bytes);
      for await (const { events } of endedBy(ctx, stream)) {
        isBegun = true;
        await this.send(events);
      }
    } catch (error) {
      // The client is gone, or gets the reason in the event that ends the connection.
      if (source.signal.aborted) return;
      const failure = explain(error, source, "response");
      if (stream !== null && isBegun) await this.send(stream.failed(toErrorObject(failure, source.requestId)));
      else await this.sendError(failure, source.requestId);
      if (isCredentialEnded(error)) this.refuse(error);
    } finally {
      allowance?.release();
    }
  }

  /** Resolves when the system has taken the events, which paces the upstream to the reader. */
  private async send(events: readonly object[]): Promise<void> {
    const { socket } = this.options;
    let sent: Promise<unknown> = Promise.resolve();
    for (const event of events) sent = deliver(socket, JSON.stringify(event));
    await sent;
  }

  private async sendError(error: AppError, requestId: string, code: string = codeOf(error)): Promise<void> {
    const { socket } = this.options;
    const status = statusOf(error.code);
    await deliver(socket, JSON.stringify({ type: "error", status, error: { ...toErrorObject(error, requestId), code } }));
  }

  private startIdling(): void {
    this.stopIdling();
    this.idle = setTimeout(() => hangUp(this.options.socket, CLOSE_CODES.normal, "The connection was idle"), this.options.idleMs);
  }

  private stopIdling(): void {
    if (this.idle !== null) clearTimeout(this.idle);
    this.idle = null;
  }
}

/** The events of a stream, which its caller's leaving ends at once, charged for the delivered part. */
async function* endedBy(
  ctx: RequestContext,
  { opened, admitted, events }: ResponseStream,
): AsyncGenerator<{ readonly events: readonly object[] }> {
  // The events reject as they do.
  opened.catch(ignore);
  admitted?.catch(ignore);
  const leave = () => void events.return?.().then(ignore, ignore);
  ctx.signal.addEventListener("abort", leave, { once: true });
  if (ctx.signal.aborted) leave();
  try {
    yield* events;
  } finally {
    ctx.signal.removeEventListener("abort", leave);
  }
}

/** Moves `max_cost` from the body to the context. Throws BAD_REQUEST. */
function withoutBound(ctx: HttpRequestContext, body: JsonObject): JsonObject {
  const taken = takeMaxCost(body);
  if (taken === null) return body;
  if (taken.maxCost) ctx.maxCost = smallerCost(ctx.maxCost, taken.maxCost);
  return taken.rest;
}

/** OpenAI's code where its clients act on it, else ours. */
function codeOf({ code, details }: AppError): string {
  return isRecord(details) && typeof details.reason === "string" ? details.reason : code;
}

function stillRunning(): AppError {
  return conflict("A response is running on this connection. Wait for its last event, or open another connection.");
}

function unknownType(): AppError {
  return invalidInput("type: must be response.create or response.processed", "type");
}

function ignore(): void {}
