/** Reads a streamed chat in batches: one for each read of the socket that completed an event. */

import type { PulledIterator } from "../../fast/pull.js";
import type { ChatChunk, ChatChunkBatch, StreamFormat } from "../../formats/openai-chat/stream.js";
import { cut, ProviderError } from "../../formats/upstream-error.js";
import { parseObject } from "../../formats/upstream-json.js";
import { append } from "../../lib/collections.js";
import { createSseScanner, SseEventTooLargeError } from "../../lib/sse.js";
import { SseSilence, SseSilenceError } from "../../lib/sse-silence.js";
import { SSE_EVENT_BYTES_MAX, SSE_SILENT_BYTES_MAX } from "../../limits.js";
import type { UpstreamResponse } from "../upstream-response.js";

const DONE = "[DONE]";

type PulledBatch = IteratorResult<ChatChunkBatch, undefined>;

const END: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** A chunk without choices is sent on, but has no content: it reports usage, or nothing. */
function isOfChoices(chunk: ChatChunk | undefined): boolean {
  return chunk !== undefined && (chunk.text !== undefined || (chunk.object.choices?.length ?? 0) > 0);
}

/** The part of an answer that a stream reads. */
export type StreamSource = Pick<UpstreamResponse, "untilReadable" | "take" | "destroy" | "finish">;

export interface StreamReading {
  readonly format: StreamFormat;
  readonly bytesMax: number;
  /** The upstream says that it is a stream, or does not say. Otherwise it must begin like one. */
  readonly isLabelled: boolean;
  /** The chunks of a JSON answer, which has at most `wholeBytesMax`. Throws a ProviderError. */
  readonly readWhole: (bytes: Buffer) => readonly ChatChunk[];
  readonly wholeBytesMax: number;
}

const BRACE = 0x7b;
const BLANKS: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d, ...Buffer.from("\uFEFF")]);
/** The first bytes of fields and comments: `data`, `event`, `id`, `retry`, a colon. */
const EVENT_BEGINS: ReadonlySet<number> = new Set(Buffer.from("deir:"));

/** The first byte that is not blank, or the length. */
function skipBlanks(bytes: Buffer): number {
  let at = 0;
  while (at < bytes.length && BLANKS.has(bytes[at] as number)) at += 1;
  return at;
}

/** Whether a body begins like an event stream. */
export function isEventText(bytes: Buffer): boolean {
  return EVENT_BEGINS.has(bytes[skipBlanks(bytes)] ?? BRACE);
}

/** Iterable once. Reads from the socket only a small read-ahead unless it is pulled. */
export class ChatEventStream implements AsyncIterableIterator<ChatChunkBatch, undefined>, PulledIterator<ChatChunkBatch> {
  private readonly format: StreamFormat;
  private readonly scanner = createSseScanner({ eventBytesMax: SSE_EVENT_BYTES_MAX });
  private readonly silence = new SseSilence(SSE_SILENT_BYTES_MAX);
  private bytesRead = 0;
  private hasEnded = false;
  /** Thrown by the next pull, after the chunks before it. */
  private failure: unknown = null;
  /** Its first bytes have shown whether it is a stream. */
  private isKnown = false;
  /** The parts of a JSON answer. */
  private whole: Buffer[] | null = null;
  private first: PulledBatch | null = null;
  private readonly resume = () => this.pull();

  constructor(
    private readonly response: StreamSource,
    private readonly reading: StreamReading,
  ) {
    this.format = reading.format;
  }

  /** Resolves when the first chunks have come; rejects as the first pull would. */
  async begin(): Promise<this> {
    this.first = await this.pull();
    return this;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<PulledBatch> {
    return this.pull();
  }

  pull(): PulledBatch | Promise<PulledBatch> {
    const { first } = this;
    if (first !== null) {
      this.first = null;
      return first;
    }
    for (;;) {
      if (this.failure !== null) return this.throwFailure();
      if (this.hasEnded) return END;
      const waiting = this.response.untilReadable();
      if (waiting !== null) return waiting.then(this.resume);
      const batch = this.takeBatch();
      if (batch.length > 0) return { done: false, value: batch };
    }
  }

  /** Closes the upstream's connection at once and ends a pending pull. */
  async return(): Promise<IteratorReturnResult<undefined>> {
    this.hasEnded = true;
    this.failure = null;
    this.response.destroy();
    return END;
  }

  private takeBatch(): ChatChunkBatch {
    const batch: ChatChunk[] = [];
    try {
      const read = this.response.take();
      if (read === null) this.takeEnd(batch);
      else for (const bytes of read) this.takeBytes(bytes, batch);
    } catch (error) {
      if (!this.hasEnded) this.failure = toProviderError(error);
    }
    if (this.failure !== null) this.response.destroy();
    else if (this.hasEnded) this.response.finish();
    return batch;
  }

  private throwFailure(): never {
    const { failure } = this;
    this.failure = null;
    this.hasEnded = true;
    throw failure;
  }

  private takeBytes(bytes: Buffer, batch: ChatChunk[]): void {
    const { bytesMax } = this.reading;
    this.bytesRead += bytes.length;
    if (this.bytesRead > bytesMax) throw new ProviderError("invalid-response", `The upstream's stream is larger than ${bytesMax} bytes.`);
    if (!this.isKnown) this.look(bytes);
    if (this.whole !== null) {
      this.takeWhole(this.whole, bytes);
      return;
    }
    const events = this.scanner.push(bytes);
    this.silence.add(this.scanner.takeSilentBytes());
    for (const event of events) {
      if (this.hasEnded) return;
      const said = batch.length;
      this.hasEnded = this.format.take(event, batch);
      if (batch.length > said && isOfChoices(batch[batch.length - 1])) this.silence.end();
      else this.silence.addEvent(event.data.length);
    }
  }

  private look(bytes: Buffer): void {
    const begin = bytes[skipBlanks(bytes)];
    if (begin === undefined) return;
    this.isKnown = true;
    if (begin === BRACE) this.whole = [];
    else if (!this.reading.isLabelled && !EVENT_BEGINS.has(begin)) throw isNeither();
  }

  private takeWhole(parts: Buffer[], bytes: Buffer): void {
    const { wholeBytesMax } = this.reading;
    if (this.bytesRead > wholeBytesMax) {
      throw new ProviderError("invalid-response", `The upstream's answer is larger than ${wholeBytesMax} bytes.`);
    }
    parts.push(parts.length === 0 ? bytes.subarray(skipBlanks(bytes)) : bytes);
  }

  /** The body ended without its last event, which is accepted for a complete answer. */
  private takeEnd(batch: ChatChunk[]): void {
    if (this.whole !== null) {
      append(batch, this.reading.readWhole(Buffer.concat(this.whole)));
      this.hasEnded = true;
      return;
    }
    if (!this.isKnown && !this.reading.isLabelled) throw isNeither();
    for (const event of this.scanner.end()) {
      // An event without its end may be truncated.
      if (event.data !== DONE && parseObject(event.bytes, event.data) === null) throw cut();
      this.hasEnded = this.format.take(event, batch);
    }
    if (!this.hasEnded) {
      if (!this.format.isWhole) throw cut();
      this.format.end?.(batch);
    }
    this.hasEnded = true;
  }
}

function isNeither(): ProviderError {
  return new ProviderError("invalid-response", "The upstream answered a stream request with neither a stream nor JSON.");
}

function toProviderError(error: unknown): unknown {
  const isBound = error instanceof SseEventTooLargeError || error instanceof SseSilenceError;
  return isBound ? new ProviderError("invalid-response", error.message, { cause: error }) : error;
}
