/**
 * One run of an agent's script, read like an upstream's answer: the head once the script has answered, the body as it comes, and an error
 * when the run ends before its answer does.
 *
 * 1. The script and the request go in; GuestCalls serves its calls.
 * 2. Standard output is read only as fast as the answer is: a guest with a slow reader waits.
 * 3. A malformed message and every limit end the run. So does the end of the answer.
 */
import type { IncomingHttpHeaders } from "node:http";
import type { Logger } from "pino";
import { z } from "zod";
import { type AppError, agentFailed, upstreamFailed, upstreamTimedOut } from "../../../errors.js";
import { ProviderError } from "../../../formats/upstream-error.js";
import { readPieces, type UpstreamResponse } from "../../../providers/upstream-response.js";
import { CODE_RUN_MESSAGE_BYTES_MAX } from "../limits.js";
import { encodeFrame, FrameError, FrameReader } from "./frames.js";
import { GuestCalls, type GuestHost } from "./guest-calls.js";
import { type GuestEnd, type GuestLimit, type GuestLimits, GuestProcess } from "./guest-process.js";
import type { Isolation } from "./isolation.js";
import type { FromGuest, ToGuest } from "./messages.js";

// Messages from a guest's process are checked, as they may be anything.

/** Unspecified: headers of one message. */
const HEADERS_MAX = 64;
const PATH_CHARS_MAX = 8_192;
const NAME_CHARS_MAX = 256;

const id = z.int().min(1).max(Number.MAX_SAFE_INTEGER);
const headers = z.array(z.tuple([z.string(), z.string()])).max(HEADERS_MAX);
const name = z.string().max(NAME_CHARS_MAX);

const fromGuest: z.ZodType<FromGuest> = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("fetch"), id, method: name, path: z.string().max(PATH_CHARS_MAX), headers }),
  z.strictObject({ type: z.literal("tool"), id, server: name, tool: name, args: z.unknown() }),
  z.strictObject({ type: z.literal("pull"), id }),
  z.strictObject({ type: z.literal("cancel"), id }),
  z.strictObject({ type: z.literal("answer"), status: z.int().min(200).max(599), headers }),
  z.strictObject({ type: z.literal("data") }),
  z.strictObject({ type: z.literal("end") }),
  z.strictObject({ type: z.literal("failed"), detail: z.string() }),
]);

/** Throws FrameError for a malformed message. */
function parseFromGuest(header: unknown): FromGuest {
  const parsed = fromGuest.safeParse(header);
  if (!parsed.success) throw new FrameError("A message of the guest's is none.");
  return parsed.data;
}

export interface GuestTask {
  readonly script: Uint8Array;
  readonly request: Extract<ToGuest, { type: "run" }>["request"];
}

/** Headers of an agent's answer that count; the gateway sets the others. */
const READ_HEADERS = new Set(["content-type"]);
/** Bytes of the answer that may wait for the reader before the guest has to. */
const READ_AHEAD_BYTES = 64 * 1024;
/** Exit codes when V8 aborts, which it does when out of memory. */
const BROKEN_OFF = new Set([132, 133, 134]);
/** Exit codes of the kernel's limit on processor time. */
const OUT_OF_TIME = new Set([137, 152]);

/** How a run ended: with an answer, by its own failure, cancelled, or at a limit. */
export type GuestOutcome = "answered" | "failed" | "cancelled" | GuestLimit;

/** For the owner of the script. */
export interface GuestReport {
  readonly outcome: GuestOutcome;
  /** Of its answer; null: no answer. */
  readonly status: number | null;
  /** Its error; null: none given. */
  readonly detail: string | null;
  /** The beginning of its printed output. */
  readonly print: string;
}

export class GuestRun implements UpstreamResponse {
  status = 0;
  headers: IncomingHttpHeaders = {};
  /** Resolves when the process is gone. Never rejects. */
  readonly over: Promise<{ readonly end: GuestEnd; readonly report: GuestReport }>;
  private readonly process: GuestProcess;
  private readonly frames: FrameReader;
  private readonly calls: GuestCalls;
  private chunks: Buffer[] = [];
  private chunksBytes = 0;
  private hasAnswered = false;
  private hasEnded = false;
  private failure: { readonly reason: unknown } | null = null;
  private isCancelled = false;
  private detail: string | null = null;
  private wake: (() => void) | null = null;
  private readonly onAbort = () => this.abort(this.signal.reason);

  constructor(
    isolation: Isolation,
    task: GuestTask,
    host: GuestHost,
    private readonly limits: GuestLimits,
    private readonly signal: AbortSignal,
    private readonly log: Logger,
  ) {
    this.frames = new FrameReader({ headerBytesMax: CODE_RUN_MESSAGE_BYTES_MAX, bytesMax: limits.outputBytes });
    this.process = new GuestProcess(isolation, limits, (chunk) => this.takeOutput(chunk));
    this.calls = new GuestCalls(host, (message, bytes) => this.process.send(encodeFrame(message, bytes)));
    this.over = this.process.ended.then((end) => this.takeEnd(end));
    signal.addEventListener("abort", this.onAbort);
    void this.process.send(encodeFrame({ type: "run", request: task.request } satisfies ToGuest, task.script));
  }

  /** Resolves when the agent has answered. Rejects as `read` does. */
  async begin(): Promise<this> {
    while (!this.hasAnswered && this.failure === null) await this.nextEvent();
    if (!this.hasAnswered && this.failure !== null) throw this.failure.reason;
    return this;
  }

  async read(): Promise<readonly Buffer[] | null> {
    for (let waiting = this.untilReadable(); waiting !== null; waiting = this.untilReadable()) await waiting;
    return this.take();
  }

  untilReadable(): Promise<void> | null {
    return this.chunks.length > 0 || this.hasEnded || this.failure !== null ? null : this.nextEvent();
  }

  take(): readonly Buffer[] | null {
    const { chunks } = this;
    if (chunks.length > 0) {
      this.chunks = [];
      this.chunksBytes = 0;
      this.process.resume();
      return chunks;
    }
    if (this.failure !== null) throw this.failure.reason;
    return this.hasEnded ? null : chunks;
  }

  atHand(): null {
    return null;
  }

  readAll(bytesMax: number): Promise<Buffer> {
    return readPieces(this, bytesMax, "agent");
  }

  /** Ends the run at once; a pending reader gets the reason. */
  abort(reason: unknown): void {
    if (!this.hasEnded) this.chunks = [];
    if (!this.hasEnded && this.failure === null) this.isCancelled = true;
    this.fail(reason);
  }

  destroy(): void {
    this.abort(new ProviderError("network", "The answer was not wanted any more."));
  }

  finish(): void {
    this.destroy();
  }

  private takeOutput(chunk: Buffer): void {
    if (this.failure !== null || this.hasEnded) return;
    try {
      for (const { header, bytes } of this.frames.push(chunk)) {
        this.takeMessage(parseFromGuest(header), bytes);
        if (this.failure !== null || this.hasEnded) return;
      }
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.detail = error.message;
      this.fail(upstreamFailed("The agent ended the run without an answer.", { isFinal: true }));
    }
    if (this.chunksBytes > READ_AHEAD_BYTES) this.process.pause();
  }

  private takeMessage(message: FromGuest, bytes: Uint8Array<ArrayBuffer>): void {
    switch (message.type) {
      case "answer":
        if (this.hasAnswered) throw new FrameError("A guest answered twice.");
        this.hasAnswered = true;
        this.status = message.status;
        this.headers = Object.fromEntries(message.headers.filter(([name]) => READ_HEADERS.has(name)));
        break;
      case "data":
        if (!this.hasAnswered) throw new FrameError("A guest sent a body before its answer.");
        this.chunks.push(Buffer.from(bytes.buffer));
        this.chunksBytes += bytes.length;
        break;
      case "end":
        if (!this.hasAnswered) throw new FrameError("A guest ended before its answer.");
        this.hasEnded = true;
        this.close();
        break;
      case "failed":
        this.detail = message.detail;
        this.fail(agentFailed());
        break;
      default:
        this.calls.receive(message, bytes);
        return;
    }
    this.wakeReader();
  }

  /** After a limit, or an end without an answer. */
  private takeEnd(end: GuestEnd): { end: GuestEnd; report: GuestReport } {
    const isBrokenOff = !this.hasEnded && this.failure === null;
    if (isBrokenOff) this.fail(toError(end, this.limits));
    const { detail } = this;
    const { print } = this.process;
    if (detail !== null || print !== "" || isBrokenOff) {
      this.log.debug({ end, ...(detail !== null && { detail }), print }, "an agent's run has ended");
    }
    const status = this.hasAnswered ? this.status : null;
    return { end, report: { outcome: this.outcomeOf(end), status, detail, print } };
  }

  private outcomeOf(end: GuestEnd): GuestOutcome {
    if (this.hasEnded) return "answered";
    if (this.isCancelled) return "cancelled";
    return limitOf(end) ?? "failed";
  }

  /** Bytes received before stay readable. */
  private fail(reason: unknown): void {
    if (this.hasEnded || this.failure !== null) return;
    this.failure = { reason };
    this.close();
    this.wakeReader();
  }

  private close(): void {
    this.signal.removeEventListener("abort", this.onAbort);
    this.calls.end();
    this.process.kill();
  }

  private nextEvent(): Promise<void> {
    return new Promise((resolve) => {
      this.wake = resolve;
    });
  }

  private wakeReader(): void {
    this.wake?.();
    this.wake = null;
  }
}

/** Null: no limit. */
function limitOf(end: GuestEnd): GuestLimit | null {
  if (end.reason === "limit") return end.limit;
  if (end.reason === "exit" && OUT_OF_TIME.has(end.code)) return "cpu";
  return end.reason === "exit" && BROKEN_OFF.has(end.code) ? "memory" : null;
}

function toError(end: GuestEnd, limits: GuestLimits): AppError {
  const limit = limitOf(end);
  return limit === null ? agentFailed() : toLimitError(limit, limits);
}

function toLimitError(limit: GuestLimit, limits: GuestLimits): AppError {
  const options = { isFinal: true } as const;
  switch (limit) {
    case "cpu":
      return upstreamTimedOut(`The agent used more than ${limits.cpuMs / 1000} s of processor time.`, options);
    case "wall":
      return upstreamTimedOut(`The agent did not finish within ${limits.wallMs / 1000} s.`, options);
    case "memory":
      return upstreamFailed(`The agent needed more than ${toMebibytes(limits.memoryBytes)} of memory.`, options);
    case "output":
      return upstreamFailed(`The agent sent more than ${toMebibytes(limits.outputBytes)}.`, options);
    case "print":
      return upstreamFailed(`The agent printed more than ${toMebibytes(limits.printBytes)}.`, options);
  }
}

function toMebibytes(bytes: number): string {
  return `${bytes / 1024 / 1024} MiB`;
}
