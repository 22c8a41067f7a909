/** Reads a streamed chat in batches: one for each read of the socket that completed an event. */

import type { PulledIterator } from "../../fast/pull.js";
import type { ChatChunk, ChatChunkBatch, StreamFormat } from "../../formats/openai-chat/stream.js";
import { cut, ProviderError } from "../../formats/upstream-error.js";
import { parseObject } from "../../formats/upstream-json.js";
import { createSseScanner, SseEventTooLargeError } from "../../lib/sse.js";
import { SseSilence, SseSilenceError } from "../../lib/sse-silence.js";
import { SSE_EVENT_BYTES_MAX, SSE_SILENT_BYTES_MAX } from "../../limits.js";
import type { UpstreamResponse } from "../http.js";

const DONE = "[DONE]";

type PulledBatch = IteratorResult<ChatChunkBatch, undefined>;

const END: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** A chunk without choices is sent on, but has no content: it reports usage, or nothing. */
function isOfChoices(chunk: ChatChunk | undefined): boolean {
  return chunk !== undefined && (chunk.text !== undefined || (chunk.object.choices?.length ?? 0) > 0);
}

/** Iterable once. Reads from the socket only a small read-ahead unless it is pulled. */
export class ChatEventStream implements AsyncIterableIterator<ChatChunkBatch, undefined>, PulledIterator<ChatChunkBatch> {
  private readonly scanner = createSseScanner({ eventBytesMax: SSE_EVENT_BYTES_MAX });
  private readonly silence = new SseSilence(SSE_SILENT_BYTES_MAX);
  private bytesRead = 0;
  private hasEnded = false;
  /** Thrown by the next pull, after the chunks before it. */
  private failure: unknown = null;
  private readonly resume = () => this.pull();

  constructor(
    private readonly response: UpstreamResponse,
    private readonly bytesMax: number,
    private readonly format: StreamFormat,
  ) {}

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<PulledBatch> {
    return this.pull();
  }

  pull(): PulledBatch | Promise<PulledBatch> {
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
    this.bytesRead += bytes.length;
    if (this.bytesRead > this.bytesMax) {
      throw new ProviderError("invalid-response", `The upstream's stream is larger than ${this.bytesMax} bytes.`);
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

  /** The body ended without its last event, which is accepted for a complete answer. */
  private takeEnd(batch: ChatChunk[]): void {
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

function toProviderError(error: unknown): unknown {
  const isBound = error instanceof SseEventTooLargeError || error instanceof SseSilenceError;
  return isBound ? new ProviderError("invalid-response", error.message, { cause: error }) : error;
}
