/**
 * HTTP to one upstream: a pool of persistent connections, and for each request an exchange whose answer is read on demand.
 *
 * Uses undici's `dispatch` instead of `request`, because a response without a Node stream costs a third less and has exact back-pressure:
 * bytes leave the socket only while the reader keeps up. undici sets TCP_NODELAY on every connection. Requests are never sent twice: one
 * that waits for a connection moves to another when that fails, one that was written fails with its connection, and the service decides
 * what follows. (A connection that the upstream closed while idle is noticed before it is written to; undici turns the event loop once for
 * that.)
 */
import type { IncomingHttpHeaders } from "node:http";
import { type buildConnector, type Dispatcher, errors, Pool } from "undici";
import { takeMemory } from "../fast/spare-memory.js";
import { ProviderError } from "../formats/upstream-error.js";
import { UPSTREAM_CONNECTIONS_MAX } from "../limits.js";
import { cannotDecode, DecodedAnswer, isDecodable } from "./decoded-answer.js";
import type { CallEnd, EndListener, UpstreamTimeouts } from "./provider.js";
import type { UpstreamResponse } from "./upstream-response.js";

// Translates failures of upstream calls. The message depends on the stage of the request: only without a connection it "could not be
// reached", and an answer that had begun "ended early".

const TIMEOUT_CODES = new Set(["UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT", "ETIMEDOUT"]);
/** Codes of established connections. */
const HANG_UP_CODES = new Set(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"]);

/** The stage of a request, which decides the meaning of a failure. */
export type Stage = "connecting" | "asked" | "answering";

export function toProviderError(cause: Error, stage: Stage): ProviderError {
  const code = codeOf(cause);
  if (code === "UND_ERR_CONNECT_TIMEOUT") return tookTooLong("connecting", cause);
  if (TIMEOUT_CODES.has(code)) return tookTooLong(stage, cause);
  if (code === "UND_ERR_HEADERS_OVERFLOW" || isNotHttp(cause)) {
    return new ProviderError("invalid-response", "The upstream's answer is not HTTP.", { cause });
  }
  return BROKEN[stage](cause);
}

/** For clients that do not track the stage before an answer. */
export function stageOf(cause: Error): Stage {
  const isHandshake = cause.message.includes("before secure TLS connection");
  return HANG_UP_CODES.has(codeOf(cause)) && !isHandshake ? "asked" : "connecting";
}

function codeOf(error: Error): string {
  return "code" in error && typeof error.code === "string" ? error.code : "";
}

const BROKEN: Readonly<Record<Stage, (cause: unknown) => ProviderError>> = {
  connecting: unreachable,
  asked: (cause) => new ProviderError("closed", "The upstream closed the connection without an answer.", { cause }),
  answering: (cause) =>
    new ProviderError("cut", "The upstream's answer ended early: the connection broke before all of it had come.", { cause }),
};

/** One message for all reasons, so that hosts and ports cannot be explored. */
export function unreachable(cause: unknown): ProviderError {
  return new ProviderError("network", "The upstream could not be reached.", { cause });
}

/** Also for packages with timers of their own. */
export function tookTooLong(stage: Stage, cause?: unknown): ProviderError {
  if (stage === "connecting") return new ProviderError("timeout", "The upstream could not be reached in time.", { cause });
  if (stage === "asked") return new ProviderError("timeout", "The upstream did not answer in time.", { cause });
  return new ProviderError("timeout", "The upstream began its answer and did not finish it in time.", { cause, hasBegun: true });
}

/** undici's parser also reports truncated bodies; only those have no bytes to report. */
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
  /** Whether the answer is streamed, so that silence for `idleMs` is an error. Other answers may take all of `totalMs` to begin. */
  readonly isStreamed: boolean;
  /** Bytes that may wait for a slow reader before the connection is paused; absent: the default. */
  readonly readAheadBytes?: number | undefined;
}

export interface UpstreamPool {
  /**
   * Resolves with the headers, and for small answers that are not streamed with the whole body. Rejects as `read` does; redirects, and
   * bodies in an encoding that cannot be decoded, are `invalid-response`.
   */
  request(request: UpstreamRequest): Promise<UpstreamResponse>;
  /** Refuses new requests, waits for running ones. */
  close(): Promise<void>;
}

/** Bytes that may wait for a slow reader before the connection is paused. */
const READ_AHEAD_BYTES = 16 * 1024;
/** Whole bodies of at least this size are read into one buffer. */
const COLLECTED_BYTES_MIN = 256 * 1024;
/** How long the end of a finished answer is awaited, and for how many bytes. */
const FINISH_MS = 1_000;
const FINISH_BYTES_MAX = 64 * 1024;

/** Makes connections to upstreams that users named: the outbound guard's connector. */
export type Connect = buildConnector.connector;

/** For upstreams of users. */
export interface PoolBounds {
  readonly connectionsMax: number;
  readonly waitingMax: number;
  /** Longest time to keep an idle connection, even if the upstream announces more. */
  readonly keepAliveMs: number;
}

export function createUpstreamPool(baseUrl: string, timeouts: UpstreamTimeouts, connect?: Connect, bounds?: PoolBounds): UpstreamPool {
  const pool = new Pool(new URL(baseUrl).origin, {
    connections: bounds?.connectionsMax ?? UPSTREAM_CONNECTIONS_MAX,
    pipelining: 1,
    // Shorter than the 5 s after which common servers close idle connections unannounced; an announced time takes precedence.
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
  /** A body of known length that is read whole. */
  private whole: { readonly bytes: Buffer; filled: number } | null = null;
  private hasEnded = false;
  private failure: { readonly reason: unknown } | null = null;
  private wake: (() => void) | null = null;
  /** The reader was woken, and will take the data after the parser. */
  private isReaderDue = false;
  private settleHead: { resolve(response: UpstreamResponse): void; reject(reason: unknown): void } | null = null;
  private timer: NodeJS.Timeout;
  private readonly signal: CallEnd;
  /** Waiting bytes at which the connection is paused; infinite for a whole body. */
  private readAheadBytes: number;
  /** Body bytes before the head is reported, or the whole body: small answers reach their reader in one piece. */
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

  /** Copies a large body of known length into place, so that its pieces die young for the collector. */
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

  /** Ends the exchange with an error. `keepsChunks`: received bytes stay readable. */
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
    } else if (encoding !== undefined && encoding !== "identity" && !isDecodable(encoding) && status < 300) {
      this.fail(cannotDecode(), false);
    } else {
      // An error, or an unexpected stream, may never end.
      if (status >= 300 || headers["content-type"]?.includes("event-stream")) this.headBytes = 0;
      if (this.headBytes === 0) this.deliverHead();
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
    else if (this.chunksBytes >= this.headBytes) this.deliverHead();
    if (this.chunksBytes >= this.readAheadBytes && !this.isReaderDue) controller.pause();
  }

  onResponseEnd(): void {
    if (this.failure !== null) return;
    this.hasEnded = true;
    this.letGo();
    this.deliverHead();
    this.wakeReader();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.fail(toProviderError(error, this.stage), true);
  }

  /** Its stage. undici sets the controller when it writes the request to a connection. */
  get stage(): Stage {
    if (this.status >= 200) return "answering";
    return this.controller === null ? "connecting" : "asked";
  }

  private deliverHead(): void {
    const { settleHead } = this;
    if (settleHead === null) return;
    this.settleHead = null;
    const encoding = this.headers["content-encoding"];
    settleHead.resolve(encoding === undefined || !isDecodable(encoding) ? this : new DecodedAnswer(this, encoding));
  }

  private nextEvent(): Promise<void> {
    return new Promise((resolve) => {
      this.wake = resolve;
    });
  }

  /** The reader continues in a microtask, after all data of the same read. */
  private wakeReader(): void {
    const { wake } = this;
    if (wake === null) return;
    this.wake = null;
    this.isReaderDue = true;
    wake();
  }

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

/** The form that undici expects of an abort's reason. */
function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error("aborted", { cause: reason });
}
