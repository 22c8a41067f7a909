/** A streamed chat as chunks: one batch for each read of the upstream's socket that completed an event. */

import type { ChatChunkObject } from "../../lib/chat-format.js";
import { createSseScanner, formatSseEvent, type SseEvent, SseEventTooLargeError } from "../../lib/sse.js";
import { SSE_EVENT_BYTES_MAX } from "../../limits.js";
import type { UpstreamResponse } from "../http.js";
import { type ChatChunk, type ChatChunkBatch, ProviderError } from "../provider.js";
import { toEmbeddedError } from "./errors.js";
import { parseObject } from "./json.js";
import { areChunkChoices } from "./shapes.js";
import { toUsage } from "./usage.js";

const DONE = "[DONE]";
const END: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** Iterable once. Nothing is read from the socket beyond a small read-ahead unless the iterator is pulled. */
export class OpenAiChatStream implements AsyncIterableIterator<ChatChunkBatch, undefined> {
  private readonly scanner = createSseScanner({ eventBytesMax: SSE_EVENT_BYTES_MAX });
  /** The choices that have begun, and whether each has its finish_reason. */
  private readonly isFinished = new Map<number, boolean>();
  private bytesRead = 0;
  private hasEnded = false;
  /** Thrown by the next pull: what came before it was still good. */
  private failure: unknown = null;

  constructor(
    private readonly response: UpstreamResponse,
    private readonly upstream: { readonly apiKey: string | null; readonly streamBytesMax: number },
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
    const { streamBytesMax } = this.upstream;
    if (this.bytesRead > streamBytesMax) {
      throw new ProviderError("invalid-response", `The upstream's stream is larger than ${streamBytesMax} bytes.`);
    }
    for (const event of this.scanner.push(bytes)) {
      if (this.hasEnded) return;
      this.takeEvent(event, batch);
    }
  }

  /** The body ended without `[DONE]`: good enough when every choice was finished, and there was one. */
  private takeEnd(batch: ChatChunk[]): void {
    for (const event of this.scanner.end()) {
      // An event that lacks its end may lack more than its empty line.
      if (event.data !== DONE && parseObject(event.bytes, event.data) === null) throw cut();
      this.takeEvent(event, batch);
    }
    const isWhole = this.isFinished.size > 0 && ![...this.isFinished.values()].includes(false);
    if (!this.hasEnded && !isWhole) throw cut();
    this.hasEnded = true;
  }

  private takeEvent(event: SseEvent, batch: ChatChunk[]): void {
    const { data } = event;
    if (data === DONE || data.trim() === DONE) {
      this.hasEnded = true;
      return;
    }
    if (data === "") return;
    const object = parseObject(event.bytes, data);
    if (event.event === "error") throw toEmbeddedError(object === null ? data : (object.error ?? object), this.upstream.apiKey);
    if (object === null) throw new ProviderError("invalid-response", "The upstream's stream holds an event that is not a JSON object.");
    if (object.error !== undefined && object.error !== null) throw toEmbeddedError(object.error, this.upstream.apiKey);
    // What is neither choices nor usage is an upstream's own kind of keep-alive.
    if (isNothing(object.choices) && isNothing(object.usage)) return;
    this.noteChoices(object.choices);
    const usage = isNothing(object.usage) ? null : toUsage(object.usage);
    // Clients read one line an event: data that came in several is written anew.
    const bytes = data.includes("\n") ? formatSseEvent(JSON.stringify(object)) : event.bytes;
    batch.push({ object: object as ChatChunkObject, bytes, usage });
  }

  private noteChoices(choices: unknown): void {
    if (isNothing(choices)) return;
    if (!areChunkChoices(choices)) throw new ProviderError("invalid-response", "The upstream's stream holds choices that cannot be read.");
    for (const { index = 0, finish_reason: reason } of choices) {
      if (typeof reason === "string") this.isFinished.set(index, true);
      else if (!this.isFinished.has(index)) this.isFinished.set(index, false);
    }
  }
}

function isNothing(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

function cut(): ProviderError {
  return new ProviderError("cut", "The upstream's stream ended before it was finished.");
}

function toProviderError(error: unknown): unknown {
  return error instanceof SseEventTooLargeError ? new ProviderError("invalid-response", error.message, { cause: error }) : error;
}
