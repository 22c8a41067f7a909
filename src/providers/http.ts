/**
 * HTTP to one upstream: a pool of kept-alive connections and, for each request, an exchange whose answer is read on demand.
 *
 * undici's `dispatch` is used rather than `request`, because a response without a Node stream around it costs a third less and
 * says exactly when it is read: bytes come off the socket only while the reader keeps up. undici sets TCP_NODELAY on every
 * connection. Requests are never sent twice: one that waits for a connection moves to another when that fails, one that was
 * written fails with its connection, and what to do then is the service's decision. (A connection that the upstream closed
 * while it was idle is noticed before it is written to; undici turns the event loop once for that.)
 */
import type { IncomingHttpHeaders } from "node:http";
import { type buildConnector, type Dispatcher, errors, Pool } from "undici";
import { takeMemory } from "../lib/spare-memory.js";
import { UPSTREAM_CONNECTIONS_MAX } from "../limits.js";
import { type CallEnd, type EndListener, ProviderError, type UpstreamTimeouts } from "./provider.js";

// What went wrong on the way to an upstream or back, in our terms. The words depend on how far a request had come: only what was never
// connected "could not be reached", and an answer that had begun "ended early".

const TIMEOUT_CODES = new Set(["UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT", "ETIMEDOUT"]);
/** Of connections that stood. */
const HANG_UP_CODES = new Set(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"]);

/** How far a request has come: what breaks then means something else, and is told in other words. */
export type Stage = "connecting" | "asked" | "answering";

/** An error of undici or of the socket, in our terms. */
export function toProviderError(cause: Error, stage: Stage): ProviderError {
  const code = codeOf(cause);
  if (code === "UND_ERR_CONNECT_TIMEOUT") return tookTooLong("connecting", cause);
  if (TIMEOUT_CODES.has(code)) return tookTooLong(stage, cause);
  if (code === "UND_ERR_HEADERS_OVERFLOW" || isNotHttp(cause)) {
    return new ProviderError("invalid-response", "The upstream's answer is not HTTP.", { cause });
  }
  return BROKEN[stage](cause);
}

/** For clients that do not say how far they had come before an answer began. */
export function stageOf(cause: Error): Stage {
  const isHandshake = cause.message.includes("before secure TLS connection");
  return HANG_UP_CODES.has(codeOf(cause)) && !isHandshake ? "asked" : "connecting";
}

function codeOf(error: Error): string {
  return "code" in error && typeof error.code === "string" ? error.code : "";
}

/** What a connection that broke, or was never made, is called. */
const BROKEN: Readonly<Record<Stage, (cause: unknown) => ProviderError>> = {
  connecting: unreachable,
  asked: (cause) => new ProviderError("closed", "The upstream closed the connection without an answer.", { cause }),
  answering: (cause) =>
    new ProviderError("cut", "The upstream's answer ended early: the connection broke before all of it had come.", { cause }),
};

/** Alike for every reason, so that nobody learns which hosts and ports there are. */
export function unreachable(cause: unknown): ProviderError {
  return new ProviderError("network", "The upstream could not be reached.", { cause });
}

/** Also for packages that keep the clock by other means. */
export function tookTooLong(stage: Stage, cause?: unknown): ProviderError {
  if (stage === "connecting") return new ProviderError("timeout", "The upstream could not be reached in time.", { cause });
  if (stage === "asked") return new ProviderError("timeout", "The upstream did not answer in time.", { cause });
  return new ProviderError("timeout", "The upstream began its answer and did not finish it in time.", { cause, hasBegun: true });
}

/** undici's parser also complains of a body that just ends; only then has it no bytes to complain of. */
function isNotHttp(error: Error): boolean {
  return error instanceof errors.HTTPParserError && "data" in error && error.data !== "";
}

export interface UpstreamRequest {
  readonly method: "GET" | "POST" | "DELETE";
  /** Path with query, absolute on the upstream's host. */
  readonly path: string;
  /** Names and values alternating: the cheapest form for undici. */
  readonly headers: readonly string[];
  readonly body: string | Uint8Array | null;
  readonly signal: CallEnd;
  /**
   * Whether the answer comes bit by bit, so that silence for `idleMs` means trouble. An answer that comes whole may take all
   * of `totalMs` to begin.
   */
  readonly isStreamed: boolean;
  /** How many bytes may wait for a slow reader before the connection is paused, when not as few as usual. */
  readonly readAheadBytes?: number | undefined;
}

/** An answer whose headers are here. Read it to its end or destroy it: until then it keeps its connection. */
export interface UpstreamResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /**
   * What has come since the last call, waiting for at least one byte; null at the end. Throws a ProviderError when the
   * connection breaks, falls silent or takes too long, and the signal's reason when that is aborted.
   */
  read(): Promise<readonly Buffer[] | null>;
  /** Null when `take` answers at once; else resolves when it does. */
  untilReadable(): Promise<void> | null;
  /** As `read`, of what is here: nothing has come when it answers an empty list. */
  take(): readonly Buffer[] | null;
  /** The whole body when it is here in one piece of at most `bytesMax`; else null, and `readAll` tells. */
  atHand(bytesMax: number): Buffer | null;
  /**
   * The whole body. More than `bytesMax` is a ProviderError `invalid-response`, raised as soon as it is known. Who is done with a large one
   * may give its memory back.
   */
  readAll(bytesMax: number): Promise<Buffer>;
  /** Nothing more is wanted: closes the connection at once unless the answer has ended. */
  destroy(): void;
  /** The answer is complete in substance: gives its last bytes a moment to arrive, so that the connection can be used again. */
  finish(): void;
}

export interface UpstreamPool {
  /** Resolves when the headers are here, of a small answer that comes whole when all of it is. Throws as `read` does; a redirect or an encoded body is `invalid-response`. */
  request(request: UpstreamRequest): Promise<UpstreamResponse>;
  /** Refuses new requests, waits for running ones. */
  close(): Promise<void>;
}

/** Bytes that may wait for a slow reader before the connection is paused. */
const READ_AHEAD_BYTES = 16 * 1024;
/** A whole body from this size on is read into one buffer as it comes. */
const COLLECTED_BYTES_MIN = 256 * 1024;
/** How long the end of a finished answer may take to arrive, and how much more of it. */
const FINISH_MS = 1_000;
const FINISH_BYTES_MAX = 64 * 1024;

/** How connections are made to an upstream that a user named: the outbound guard's own way. */
export type Connect = buildConnector.connector;

/** For an upstream that is not the operator's own. */
export interface PoolBounds {
  readonly connectionsMax: number;
  /** Requests that wait for a connection. */
  readonly waitingMax: number;
  /** How long an idle connection is kept, whatever the upstream announces. */
  readonly keepAliveMs: number;
}

export function createUpstreamPool(baseUrl: string, timeouts: UpstreamTimeouts, connect?: Connect, bounds?: PoolBounds): UpstreamPool {
  const pool = new Pool(new URL(baseUrl).origin, {
    connections: bounds?.connectionsMax ?? UPSTREAM_CONNECTIONS_MAX,
    pipelining: 1,
    // Shorter than the 5 s after which common servers close idle connections unannounced; an announced time wins.
    keepAliveTimeout: 4_000,
    ...(bounds && { keepAliveMaxTimeout: bounds.keepAliveMs }),
    connect: connect ?? { timeout: timeouts.connectMs },
  });
  return {
    request: (request) => {
      if (request.signal.aborted) return Promise.reject(request.signal.reason);
      if (bounds && pool.stats.queued >= bounds.waitingMax) return Promise.reject(tooManyWait());
      return new Exchange(request, timeouts.totalMs).start(pool, request, request.isStreamed ? timeouts.idleMs : 0);
    },
    close: () => pool.close(),
  };
}

function tooManyWait(): ProviderError {
  return new ProviderError("network", "Too many requests wait for a connection to the upstream.");
}

/** One request and its answer. */
class Exchange implements UpstreamResponse, Dispatcher.DispatchHandler, EndListener {
  status = 0;
  headers: IncomingHttpHeaders = {};
  private controller: Dispatcher.DispatchController | null = null;
  private chunks: Buffer[] = [];
  private chunksBytes = 0;
  /** A body that is wanted whole and whose length is known. */
  private whole: { readonly bytes: Buffer; filled: number } | null = null;
  private hasEnded = false;
  private failure: { readonly reason: unknown } | null = null;
  private wake: (() => void) | null = null;
  /** The reader has been woken and will take what has come as soon as the parser is done. */
  private isReaderDue = false;
  private settleHead: { resolve(response: UpstreamResponse): void; reject(reason: unknown): void } | null = null;
  private timer: NodeJS.Timeout;
  private readonly signal: CallEnd;
  /** Pauses the connection when this much waits; infinite while the whole body is wanted. */
  private readAheadBytes: number;
  /** Whoever asked is told of the head when this much of the body has come, or all of it: what is small comes to its reader in one piece. */
  private headBytes: number;

  constructor({ signal, isStreamed, readAheadBytes = READ_AHEAD_BYTES }: UpstreamRequest, totalMs: number) {
    this.signal = signal;
    this.readAheadBytes = readAheadBytes;
    this.headBytes = isStreamed ? 0 : READ_AHEAD_BYTES;
    this.timer = setTimeout(onTotalTimeout, totalMs, this);
    signal.addEventListener("abort", this);
  }

  start(pool: Pool, request: UpstreamRequest, idleMs: number): Promise<UpstreamResponse> {
    return new Promise((resolve, reject) => {
      this.settleHead = { resolve, reject };
      const { method, path, body } = request;
      const headers = request.headers as string[];
      pool.dispatch({ method, path, headers, body, headersTimeout: idleMs, bodyTimeout: idleMs }, this);
    });
  }

  async read(): Promise<readonly Buffer[] | null> {
    const waiting = this.untilReadable();
    if (waiting !== null) await waiting;
    return this.take();
  }

  untilReadable(): Promise<void> | null {
    return this.chunks.length > 0 || this.hasEnded || this.failure !== null ? null : this.nextEvent();
  }

  take(): readonly Buffer[] | null {
    this.isReaderDue = false;
    const { chunks } = this;
    if (chunks.length > 0) {
      this.chunks = [];
      this.chunksBytes = 0;
      if (this.controller?.paused) this.controller.resume();
      return chunks;
    }
    if (this.failure !== null) throw this.failure.reason;
    return this.hasEnded ? null : chunks;
  }

  atHand(bytesMax: number): Buffer | null {
    const [first] = this.chunks;
    return this.hasEnded && this.chunks.length === 1 && first !== undefined && first.length <= bytesMax ? first : null;
  }

  async readAll(bytesMax: number): Promise<Buffer> {
    this.readAheadBytes = Number.POSITIVE_INFINITY;
    const length = Number(this.headers["content-length"] ?? 0);
    if (length >= COLLECTED_BYTES_MIN && length <= bytesMax) return this.collect(length);
    let bytes = length;
    while (!(bytes > bytesMax) && !this.hasEnded && this.failure === null) {
      if (this.controller?.paused) this.controller.resume();
      else await this.nextEvent();
      bytes = this.chunksBytes;
    }
    if (this.failure !== null) throw this.failure.reason;
    if (bytes > bytesMax || this.chunksBytes > bytesMax) {
      this.destroy();
      throw new ProviderError("invalid-response", `The upstream's answer is larger than ${bytesMax} bytes.`);
    }
    const [first] = this.chunks;
    return this.chunks.length === 1 && first !== undefined ? first : Buffer.concat(this.chunks);
  }

  /** A large body of known length, straight into its place: the pieces are gone before the collector takes them for old. */
  private async collect(length: number): Promise<Buffer> {
    const whole = { bytes: takeMemory(length), filled: 0 };
    for (const chunk of this.chunks) whole.filled += chunk.copy(whole.bytes, whole.filled);
    this.chunks = [];
    this.chunksBytes = 0;
    this.whole = whole;
    while (!this.hasEnded && this.failure === null) {
      if (this.controller?.paused) this.controller.resume();
      else await this.nextEvent();
    }
    if (this.failure !== null) throw this.failure.reason;
    return whole.bytes.subarray(0, whole.filled);
  }

  destroy(): void {
    if (this.hasEnded || this.failure !== null) return;
    this.fail(new ProviderError("network", "The answer was not wanted any more."), false);
  }

  finish(): void {
    if (this.hasEnded || this.failure !== null) return;
    this.letGo();
    this.chunks = [];
    this.chunksBytes = 0;
    this.readAheadBytes = FINISH_BYTES_MAX;
    this.timer = setTimeout(destroyExchange, FINISH_MS, this);
    if (this.controller?.paused) this.controller.resume();
  }

  /** The signal was aborted. */
  handleEvent(): void {
    this.fail(this.signal.reason, false);
  }

  /** Ends the exchange for a reason of ours or the connection's. What was read before is still good if the reader may have it. */
  fail(reason: unknown, keepsChunks: boolean): void {
    if (this.hasEnded || this.failure !== null) return;
    this.failure = { reason };
    this.letGo();
    if (!keepsChunks) this.chunks = [];
    this.settleHead?.reject(reason);
    this.settleHead = null;
    this.wakeReader();
    this.controller?.abort(toError(reason));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.failure !== null) controller.abort(toError(this.failure.reason));
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    this.status = status;
    this.headers = headers;
    const encoding = headers["content-encoding"];
    if (status >= 300 && status < 400) {
      this.fail(new ProviderError("invalid-response", `The upstream answered a redirect (${status}), which is not followed.`), false);
    } else if (encoding !== undefined && encoding !== "identity") {
      this.fail(new ProviderError("invalid-response", "The upstream encoded its answer although it was asked not to."), false);
    } else {
      // An error, or a stream that nobody asked for, may go on for ever.
      if (status >= 300 || headers["content-type"]?.includes("event-stream")) this.headBytes = 0;
      if (this.headBytes === 0) this.tellHead();
    }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.whole !== null) {
      this.whole.filled += chunk.copy(this.whole.bytes, this.whole.filled);
      return;
    }
    this.chunks.push(chunk);
    this.chunksBytes += chunk.length;
    if (this.settleHead === null) this.wakeReader();
    else if (this.chunksBytes >= this.headBytes) this.tellHead();
    if (this.chunksBytes >= this.readAheadBytes && !this.isReaderDue) controller.pause();
  }

  onResponseEnd(): void {
    if (this.failure !== null) return;
    this.hasEnded = true;
    this.letGo();
    this.tellHead();
    this.wakeReader();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.fail(toProviderError(error, this.stage), true);
  }

  /** How far it has come. undici names the controller when it writes the request to a connection that stands. */
  get stage(): Stage {
    if (this.status >= 200) return "answering";
    return this.controller === null ? "connecting" : "asked";
  }

  private tellHead(): void {
    this.settleHead?.resolve(this);
    this.settleHead = null;
  }

  private nextEvent(): Promise<void> {
    return new Promise((resolve) => {
      this.wake = resolve;
    });
  }

  /** The reader goes on in a microtask, after everything that came in the same read has been taken in. */
  private wakeReader(): void {
    const { wake } = this;
    if (wake === null) return;
    this.wake = null;
    this.isReaderDue = true;
    wake();
  }

  /** Neither the clock nor the caller can end this any more. */
  private letGo(): void {
    clearTimeout(this.timer);
    this.signal.removeEventListener("abort", this);
  }
}

function onTotalTimeout(exchange: Exchange): void {
  exchange.fail(tookTooLong(exchange.stage), true);
}

function destroyExchange(exchange: Exchange): void {
  exchange.destroy();
}

/** What undici wants as the reason of an abort. */
function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error("aborted", { cause: reason });
}
