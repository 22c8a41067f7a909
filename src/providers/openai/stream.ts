/** The events of a streamed chat: its chunks as they are, then `[DONE]`. */
import type { ChatChunkObject } from "../../lib/chat-format.js";
import { formatSseEvent, type SseEvent } from "../../lib/sse.js";
import { type ChatChunk, ProviderError } from "../provider.js";
import { type Secrets, toEmbeddedError } from "./errors.js";
import type { StreamFormat } from "./event-stream.js";
import { parseObject } from "./json.js";
import { areChunkChoices } from "./shapes.js";
import { toUsage } from "./usage.js";

const DONE = "[DONE]";

export class ChatChunkEvents implements StreamFormat {
  /** The choices that have begun, and whether each has its finish_reason. */
  private readonly isFinished = new Map<number, boolean>();

  constructor(private readonly secrets: Secrets) {}

  /** Every choice was finished, and there was one. */
  get isWhole(): boolean {
    return this.isFinished.size > 0 && ![...this.isFinished.values()].includes(false);
  }

  take(event: SseEvent, batch: ChatChunk[]): boolean {
    const { data } = event;
    if (data === DONE || data.trim() === DONE) return true;
    if (data === "") return false;
    const object = parseObject(event.bytes, data);
    if (event.event === "error") throw toEmbeddedError(object === null ? data : (object.error ?? object), this.secrets);
    if (object === null) throw new ProviderError("invalid-response", "The upstream's stream holds an event that is not a JSON object.");
    if (object.error !== undefined && object.error !== null) throw toEmbeddedError(object.error, this.secrets);
    // What is neither choices nor usage is an upstream's own kind of keep-alive.
    if (isNothing(object.choices) && isNothing(object.usage)) return false;
    this.noteChoices(object.choices);
    const usage = isNothing(object.usage) ? null : toUsage(object.usage);
    // Clients read one line an event: data that came in several is written anew.
    const bytes = data.includes("\n") ? formatSseEvent(JSON.stringify(object)) : event.bytes;
    batch.push({ object: object as ChatChunkObject, bytes, usage });
    return false;
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
