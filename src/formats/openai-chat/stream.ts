/** Events of a streamed chat: its chunks, unchanged where they have OpenAI's own form, then `[DONE]`. */

import { isRecord } from "../../lib/json.js";
import { formatSseEvent, type RawLine, type SseEvent } from "../../lib/sse.js";
import type { ReportedUsage } from "../../lib/usage.js";
import { ProviderError } from "../upstream-error.js";
import { parseObject } from "../upstream-json.js";
import { ChunkFrame, type Framed, textOfFilling } from "./chunk-frame.js";
import { assertNotFailed, hasChoices, hasErrorContent, type Secrets, toEmbeddedError } from "./errors.js";
import { OwnChunks } from "./own-form.js";
import type { ChatChoice, ChatChunkChoice, ChatChunkObject, ChatCompletion, ChatDelta } from "./schema.js";
import { type OnUnknownNames, toUsage } from "./usage.js";
import { usageIn } from "./usage-dialects.js";

const DONE = "[DONE]";

/** One `chat.completion.chunk`. */
export interface ChatChunk {
  readonly object: ChatChunkObject;
  /** The event as sent to the client: `data: <json>\n\n`. */
  readonly bytes: Uint8Array;
  /** Reported usage, which covers everything up to this chunk. */
  readonly usage: ReportedUsage | null;
  /** The report as received, for the client. */
  readonly report?: unknown;
  /** The text of a chunk that has nothing else; others are inspected. */
  readonly text?: string | undefined;
  /** Its difference from the frame; `bytes` and `object` are made on demand. */
  readonly framed?: Framed | undefined;
  /** On the first chunk, as in a ChatAnswer. */
  readonly warnings?: readonly string[];
}

/** The chunks of one read from the upstream, forwarded in one write. */
export type ChatChunkBatch = readonly ChatChunk[];

/** The meaning of a stream's events. */
export interface StreamFormat {
  /** Adds the chunks of an event; true for the last one. Throws a ProviderError. */
  take(event: SseEvent, batch: ChatChunk[]): boolean;
  /** Adds what still waits when the stream ends without its last event. */
  end?(batch: ChatChunk[]): void;
  /** The answer is complete, even without its last event. */
  readonly isWhole: boolean;
}

export class ChatChunkEvents implements StreamFormat {
  /** Choices that have begun, and whether each has its finish_reason. */
  private readonly isFinished = new Map<number, boolean>();
  private readonly own = new OwnChunks();
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
    if (data === DONE || data.trim() === DONE) {
      this.end(batch);
      return true;
    }
    if (data === "" || isForeign(event)) return false;
    const object = parseObject(event.bytes, data);
    if (event.event === "error") throw toEmbeddedError(object === null ? data : (object.error ?? object), this.secrets);
    if (object === null) throw new ProviderError("invalid-response", "The upstream's stream holds an event that is not a JSON object.");
    if (hasErrorContent(object.error)) throw toEmbeddedError(object.error, this.secrets, hasChoices(object));
    assertNotFailed(object, this.secrets);
    // Events without choices and usage are an upstream's own keep-alive, or Azure's filter results for the prompt.
    const report = usageIn(object);
    if (isNothing(report) && (isNothing(object.choices) || isEmpty(object.choices))) return false;
    // Only the first chunk of a choice has the role.
    const isFirst = this.isFinished.size === 0;
    this.noteChoices(object.choices);
    const usage = isNothing(report) ? null : toUsage(report, this.onUnknownNames);
    const chunk = this.own.take(object as ChatChunkObject);
    const isUnchanged = chunk === object;
    if (!isFirst && isUnchanged && event.line && this.framesLeft > 0 && isNothing(report)) this.noteFrame(event.line, object);
    // Clients read one data line per event, so several are serialized as one.
    const bytes = !isUnchanged || data.includes("\n") ? formatSseEvent(JSON.stringify(chunk)) : event.bytes;
    batch.push({ object: chunk, bytes, usage, report: usage === null ? undefined : report });
    return false;
  }

  end(batch: ChatChunk[]): void {
    const rest = this.own.end();
    if (rest !== null) batch.push(toChunk(rest));
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
      if (index < 0 || index >= CHOICES_MAX)
        throw new ProviderError("invalid-response", `The upstream's stream holds a choice whose index is not below ${CHOICES_MAX}.`);
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
/** Unspecified: choices of one stream, by their indices. OpenAI lets a request ask for 128. */
const CHOICES_MAX = 128;

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

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

function isNothing(value: unknown): value is null | undefined {
  return value === undefined || value === null;
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

/** A chunk without a report whose bytes are made on demand: another face than the chat never needs them. */
export class UnwrittenChunk implements ChatChunk {
  readonly usage = null;
  private written: Uint8Array | null = null;

  constructor(
    readonly object: ChatChunkObject,
    readonly text?: string,
  ) {}

  get bytes(): Uint8Array {
    this.written ??= formatSseEvent(JSON.stringify(this.object));
    return this.written;
  }
}

function toContentChoice(choice: ChatChoice, index: number): ChatChunkChoice {
  const { message, finish_reason: _, ...rest } = choice;
  return { ...rest, index, delta: toDelta(message ?? {}), finish_reason: null };
}

/** Only streams have indices on tool calls. */
function toDelta(message: ChatDelta): ChatDelta {
  if (!Array.isArray(message.tool_calls)) return message;
  return { ...message, tool_calls: message.tool_calls.map((call, index) => ({ ...call, index })) };
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
  if (isNothing(called)) return true;
  return isRecord(called) && isTextOrNothing(called.name) && (typeof called.arguments === "object" || isTextOrNothing(called.arguments));
}

function isTextOrNothing(value: unknown): boolean {
  return isNothing(value) || typeof value === "string";
}
