/** A streamed chat as chunks: one batch for each read of the upstream's socket that completed an event. */
import { createSseScanner, type SseEvent, SseEventTooLargeError } from "../../lib/sse.js";
import { SSE_EVENT_BYTES_MAX } from "../../limits.js";
import type { UpstreamResponse } from "../http.js";
import { type ChatChunk, type ChatChunkBatch, ProviderError } from "../provider.js";
import { parseObject } from "./json.js";

/** What the events of one stream mean. */
export interface StreamFormat {
  /** Adds the chunks that an event stands for; true when it is the last. Throws a ProviderError. */
  take(event: SseEvent, batch: ChatChunk[]): boolean;
  /** The answer is complete, although its last event has not come. */
  readonly isWhole: boolean;
}

const DONE = "[DONE]";
const END: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** Iterable once. Nothing is read from the socket beyond a small read-ahead unless the iterator is pulled. */
export class ChatEventStream implements AsyncIterableIterator<ChatChunkBatch, undefined> {
  private readonly scanner = createSseScanner({ eventBytesMax: SSE_EVENT_BYTES_MAX });
  private bytesRead = 0;
  private hasEnded = false;
  /** Thrown by the next pull: what came before it was still good. */
  private failure: unknown = null;

  constructor(
    private readonly response: UpstreamResponse,
    private readonly bytesMax: number,
    private readonly format: StreamFormat,
  ) {}

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<ChatChunkBatch, undefined>> {
    for (;;) {
      if (this.failure !== null) return this.throwFailure();
      if (this.hasEnded) return END;
      const batch = await this.readBatch();
      if (batch.length > 0) return { done: false, value: batch };
    }
  }

  /** Closes the upstream's connection at once, also while a pull is waiting: that one then ends. */
  async return(): Promise<IteratorReturnResult<undefined>> {
    this.hasEnded = true;
    this.failure = null;
    this.response.destroy();
    return END;
  }

  private async readBatch(): Promise<ChatChunkBatch> {
    const batch: ChatChunk[] = [];
    try {
      const read = await this.response.read();
      if (this.hasEnded) return [];
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
    for (const event of this.scanner.push(bytes)) {
      if (this.hasEnded) return;
      this.hasEnded = this.format.take(event, batch);
    }
  }

  /** The body ended without its last event: good enough for an answer that is whole. */
  private takeEnd(batch: ChatChunk[]): void {
    for (const event of this.scanner.end()) {
      // An event that lacks its end may lack more than its empty line.
      if (event.data !== DONE && parseObject(event.bytes, event.data) === null) throw cut();
      this.hasEnded = this.format.take(event, batch);
    }
    if (!this.hasEnded && !this.format.isWhole) throw cut();
    this.hasEnded = true;
  }
}

/** Not the connection's doing: the stream came to an orderly end that is none of an answer. */
export function cut(): ProviderError {
  return new ProviderError("cut", "The upstream's answer ended early: it stopped without saying that it was finished.");
}

function toProviderError(error: unknown): unknown {
  return error instanceof SseEventTooLargeError ? new ProviderError("invalid-response", error.message, { cause: error }) : error;
}
