/** Events of a streamed chat: its chunks unchanged, then `[DONE]`. */
import type { ChatChoice, ChatChunkChoice, ChatChunkObject, ChatCompletion, ChatDelta } from "./schema.js";
import { ChunkFrame, type Framed, textOfFilling } from "./chunk-frame.js";
import { isRecord } from "../../lib/json.js";
import type { PulledIterator } from "../../lib/pull.js";
import { createSseScanner, formatSseEvent, type RawLine, type SseEvent, SseEventTooLargeError } from "../../lib/sse.js";
import { SseSilence, SseSilenceError } from "../../lib/sse-silence.js";
import { SSE_EVENT_BYTES_MAX, SSE_SILENT_BYTES_MAX } from "../../limits.js";
import type { UpstreamResponse } from "../../providers/http.js";
import { type ChatChunk, type ChatChunkBatch, ProviderError } from "../../providers/provider.js";
import { assertNotFailed, hasChoices, hasErrorContent, type Secrets, toEmbeddedError } from "./errors.js";
import { parseObject } from "../upstream-json.js";
import { type OnUnknownNames, toUsage } from "./usage.js";
import { usageIn } from "./usage-dialects.js";

const DONE = "[DONE]";

export class ChatChunkEvents implements StreamFormat {
  /** Choices that have begun, and whether each has its finish_reason. */
  private readonly isFinished = new Map<number, boolean>();
  private frame: ChunkFrame | null = null;
  private framesLeft = FRAMES_MAX;

  constructor(
    private readonly secrets: Secrets,
    private readonly onUnknownNames?: OnUnknownNames,
  ) {}

  /** At least one choice, and all finished. */
  get isWhole(): boolean {
    return this.isFinished.size > 0 && ![...this.isFinished.values()].includes(false);
  }

  take(event: SseEvent, batch: ChatChunk[]): boolean {
    const framed = this.frame && event.line ? framedChunk(this.frame, event, event.line) : null;
    if (framed !== null) {
      batch.push(framed);
      return false;
    }
    const { data } = event;
    if (data === DONE || data.trim() === DONE) return true;
    if (data === "" || isForeign(event)) return false;
    const object = parseObject(event.bytes, data);
    if (event.event === "error") throw toEmbeddedError(object === null ? data : (object.error ?? object), this.secrets);
    if (object === null) throw new ProviderError("invalid-response", "The upstream's stream holds an event that is not a JSON object.");
    if (hasErrorContent(object.error)) throw toEmbeddedError(object.error, this.secrets, hasChoices(object));
    assertNotFailed(object, this.secrets);
    // Events without choices and usage are an upstream's own keep-alive.
    const report = usageIn(object);
    if (isNothing(object.choices) && isNothing(report)) return false;
    // Only the first chunk of a choice has the role.
    const isFirst = this.isFinished.size === 0;
    this.noteChoices(object.choices);
    if (!isFirst && event.line && this.framesLeft > 0 && isNothing(report)) this.noteFrame(event.line, object);
    const usage = isNothing(report) ? null : toUsage(report, this.onUnknownNames);
    // Clients read one data line per event, so several are serialized as one.
    const bytes = data.includes("\n") ? formatSseEvent(JSON.stringify(object)) : event.bytes;
    batch.push({ object: object as ChatChunkObject, bytes, usage, report: usage === null ? undefined : report });
    return false;
  }

  private noteFrame(line: RawLine, object: Readonly<Record<string, unknown>>): void {
    const frame = ChunkFrame.of(line, object);
    if (frame === null) return;
    this.frame = frame;
    this.framesLeft -= 1;
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

/**
 * Unspecified: attempts to make a frame of chunks that differ. Without a lasting one, such as when choices alternate, chunks are parsed one
 * by one.
 */
const FRAMES_MAX = 4;

/** Null for a chunk that does not match. */
function framedChunk(frame: ChunkFrame, event: SseEvent, line: RawLine): ChatChunk | null {
  const fillings = frame.match(line);
  if (fillings === null) return null;
  const text = textOfFilling(fillings[0] ?? "");
  return text === null ? null : new FramedChunk(event, text, frame, fillings);
}

class FramedChunk implements ChatChunk, Framed {
  readonly usage = null;
  private read: ChatChunkObject | null = null;

  constructor(
    private readonly event: SseEvent,
    readonly text: string,
    readonly frame: ChunkFrame,
    readonly fillings: readonly string[],
  ) {}

  get framed(): Framed {
    return this;
  }

  get object(): ChatChunkObject {
    this.read ??= JSON.parse(this.event.data) as ChatChunkObject;
    return this.read;
  }

  get bytes(): Buffer {
    return this.event.bytes;
  }
}

function isNothing(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

// Reads a streamed chat in batches: one for each read of the socket that completed an event.

/** The meaning of a stream's events. */
export interface StreamFormat {
  /** Adds the chunks of an event; true for the last one. Throws a ProviderError. */
  take(event: SseEvent, batch: ChatChunk[]): boolean;
  /** The answer is complete, even without its last event. */
  readonly isWhole: boolean;
}
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
    if (!this.hasEnded && !this.format.isWhole) throw cut();
    this.hasEnded = true;
  }
}

/** The stream ended normally, but the answer is incomplete. */
export function cut(): ProviderError {
  return new ProviderError("cut", "The upstream's answer ended early: it stopped without saying that it was finished.");
}

function toProviderError(error: unknown): unknown {
  const isBound = error instanceof SseEventTooLargeError || error instanceof SseSilenceError;
  return isBound ? new ProviderError("invalid-response", error.message, { cause: error }) : error;
}

// Converts a whole `chat.completion` to a stream, for upstreams that ignore `stream: true`.

/** Each choice's message and finish_reason in separate chunks, then usage, if reported. */
export function toChunks(completion: ChatCompletion, onUnknownNames?: OnUnknownNames): readonly ChatChunk[] {
  const { choices, usage: _, ...head } = completion;
  const usage = usageIn(completion);
  const base = { ...head, object: "chat.completion.chunk" };
  const chunks: ChatChunk[] = [];
  for (const [position, choice] of (choices ?? []).entries()) {
    const index = choice.index ?? position;
    chunks.push(toChunk({ ...base, choices: [toContentChoice(choice, index)] }));
    chunks.push(toChunk({ ...base, choices: [{ index, delta: {}, finish_reason: choice.finish_reason ?? "stop" }] }));
  }
  if (!isNothing(usage)) chunks.push(toChunk({ ...base, choices: [], usage }, onUnknownNames));
  return chunks;
}

/** Whether an event is not part of the format: it has another name and no object, such as an upstream's own keep-alive. */
export function isForeign({ event, data }: SseEvent): boolean {
  return event !== null && event !== "message" && event !== "error" && !data.trimStart().startsWith("{");
}

/** A chunk with its bytes and its usage. */
export function toChunk(object: ChatChunkObject, onUnknownNames?: OnUnknownNames): ChatChunk {
  const usage = toUsage(object.usage, onUnknownNames);
  return { object, bytes: formatSseEvent(JSON.stringify(object)), usage, report: usage === null ? undefined : object.usage };
}

function toContentChoice(choice: ChatChoice, index: number): ChatChunkChoice {
  const { message, finish_reason: _, ...rest } = choice;
  return { ...rest, index, delta: toDelta(message ?? {}), finish_reason: null };
}

/** Only streams have indices on tool calls. */
function toDelta(message: ChatDelta): ChatDelta {
  if (!Array.isArray(message.tool_calls)) return message;
  return { ...message, tool_calls: message.tool_calls.map((call, index) => ({ index, ...call })) };
}

// Checks the types of all fields that we read.

/** A list of choices, each with a readable message or none. */
export function areChoices(value: unknown): value is readonly ChatChoice[] {
  return Array.isArray(value) && value.every((choice) => isChoice(choice) && isMessage(choice.message));
}

/** A list of a chunk's choices, each with a readable delta or none. */
function areChunkChoices(value: unknown): value is readonly ChatChunkChoice[] {
  return Array.isArray(value) && value.every((choice) => isChoice(choice) && isMessage(choice.delta));
}

function isChoice(value: unknown): value is Readonly<Record<string, unknown>> {
  return isRecord(value) && (value.index === undefined || Number.isInteger(value.index)) && isTextOrNothing(value.finish_reason);
}

function isMessage(value: unknown): boolean {
  if (isNothing(value)) return true;
  if (!isRecord(value)) return false;
  const { tool_calls: calls } = value;
  return isNothing(calls) || (Array.isArray(calls) && calls.every(isToolCall));
}

function isToolCall(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { function: called } = value;
  return isNothing(called) || (isRecord(called) && isTextOrNothing(called.name) && isTextOrNothing(called.arguments));
}

function isTextOrNothing(value: unknown): boolean {
  return isNothing(value) || typeof value === "string";
}
