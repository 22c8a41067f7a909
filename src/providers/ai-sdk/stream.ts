/** The package's stream as `chat.completion.chunk`s: a reducer over its parts, and an iterator that ends with the session. */
import { randomUUID } from "node:crypto";
import type { LanguageModelV3StreamPart, SharedV3ProviderMetadata } from "@ai-sdk/provider";
import type { ChatChunk, ChatChunkBatch } from "../../formats/openai-chat/stream.js";
import { toChunk } from "../../formats/openai-chat/stream.js";
import type { OnUnknownNames } from "../../formats/openai-chat/usage.js";
import { cut } from "../../formats/upstream-error.js";
import { toAnnotation, toExtraContent, toFinishReason, toImage, toReasoningDetail } from "./chat-answer.js";
import { toError, toStreamError } from "./errors.js";
import type { FetchSession } from "./fetch.js";
import { toUsage } from "./usage.js";
import type { ChatTraits } from "./vendor.js";

const END: IteratorReturnResult<undefined> = { done: true, value: undefined };

interface OpenToolCall {
  readonly index: number;
  hasArguments: boolean;
}

interface OpenThought {
  text: string;
  metadata: SharedV3ProviderMetadata | undefined;
}

export class ChunkReducer {
  isFinished = false;
  private head: Record<string, unknown>;
  private hasBegun = false;
  private thoughts = 0;
  private readonly toolCalls = new Map<string, OpenToolCall>();
  private readonly openThoughts = new Map<string, OpenThought>();

  constructor(
    model: string,
    private readonly traits: ChatTraits,
    private readonly warnings: readonly string[],
    private readonly apiKey: string | null,
    private readonly onUnknownUsage?: OnUnknownNames,
  ) {
    const created = Math.floor(Date.now() / 1_000);
    this.head = { id: `chatcmpl-${randomUUID()}`, object: "chat.completion.chunk", created, model };
  }

  reduce(part: LanguageModelV3StreamPart): ChatChunk[] {
    switch (part.type) {
      case "response-metadata":
        this.head = {
          ...this.head,
          ...(part.id !== undefined && { id: part.id }),
          ...(part.modelId !== undefined && { model: part.modelId }),
        };
        return [];
      case "text-delta":
        return part.delta === "" ? [] : this.send({ content: part.delta });
      case "reasoning-start":
      case "reasoning-delta":
      case "reasoning-end":
        return this.think(part);
      case "tool-input-start":
        return part.providerExecuted ? [] : this.beginToolCall(part.id, part.toolName);
      case "tool-input-delta":
        return this.addArguments(part.id, part.delta);
      case "tool-call":
        return part.providerExecuted ? [] : this.endToolCall(part);
      case "source":
        return this.sendAll(toAnnotation(part), "annotations");
      case "file":
        return this.sendAll(toImage(part), "images");
      case "finish":
        return this.finish(part);
      case "error":
        throw toStreamError(part.error, this.apiKey);
      default:
        return [];
    }
  }

  private think(part: Extract<LanguageModelV3StreamPart, { type: "reasoning-start" | "reasoning-delta" | "reasoning-end" }>): ChatChunk[] {
    const thought = this.openThoughts.get(part.id) ?? { text: "", metadata: undefined };
    this.openThoughts.set(part.id, thought);
    if (part.providerMetadata !== undefined) thought.metadata = mergeMetadata(thought.metadata, part.providerMetadata);
    if (part.type === "reasoning-delta") {
      thought.text += part.delta;
      return part.delta === "" ? [] : this.send({ reasoning_content: part.delta });
    }
    if (part.type === "reasoning-start") return [];
    this.openThoughts.delete(part.id);
    if (thought.metadata === undefined) return [];
    // Sent whole, because the signature covers the whole.
    return this.send({ reasoning_details: [toReasoningDetail(this.thoughts++, thought.text, thought.metadata)] });
  }

  private beginToolCall(id: string, name: string): ChatChunk[] {
    const index = this.toolCalls.size;
    this.toolCalls.set(id, { index, hasArguments: false });
    return this.send({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] });
  }

  private addArguments(id: string, text: string): ChatChunk[] {
    const call = this.toolCalls.get(id);
    if (call === undefined || text === "") return [];
    call.hasArguments = true;
    return this.send({ tool_calls: [{ index: call.index, function: { arguments: text } }] });
  }

  /** Sends the part of the call that was not sent in pieces. */
  private endToolCall(part: Extract<LanguageModelV3StreamPart, { type: "tool-call" }>): ChatChunk[] {
    const begun = this.toolCalls.has(part.toolCallId) ? [] : this.beginToolCall(part.toolCallId, part.toolName);
    const call = this.toolCalls.get(part.toolCallId);
    const rest = call?.hasArguments ? [] : this.addArguments(part.toolCallId, part.input);
    const extra = toExtraContent(part.providerMetadata);
    const signed = extra.extra_content ? this.send({ tool_calls: [{ index: call?.index, function: {}, ...extra }] }) : [];
    return [...begun, ...rest, ...signed];
  }

  private finish({ usage, finishReason }: Extract<LanguageModelV3StreamPart, { type: "finish" }>): ChatChunk[] {
    // Packages report a finish even when the upstream just stops; only a stated reason is a real finish.
    if (finishReason.unified === "other" && finishReason.raw === undefined) {
      throw cut();
    }
    this.isFinished = true;
    const reported = toUsage(usage, this.traits, this.onUnknownUsage);
    const choices = [{ index: 0, delta: {}, logprobs: null, finish_reason: toFinishReason(finishReason) }];
    const last = toChunk({ ...this.head, choices });
    return reported === null ? [last] : [last, toChunk({ ...this.head, choices: [], usage: reported })];
  }

  private sendAll(item: unknown, name: string): ChatChunk[] {
    return item === null ? [] : this.send({ [name]: [item] });
  }

  private send(delta: Readonly<Record<string, unknown>>): ChatChunk[] {
    const begins = !this.hasBegun;
    this.hasBegun = true;
    const choices = [{ index: 0, delta: begins ? { role: "assistant", ...delta } : delta, logprobs: null, finish_reason: null }];
    const warnings = begins && this.warnings.length > 0 ? { warnings: this.warnings } : {};
    return [{ ...toChunk({ ...this.head, choices, ...warnings }), ...warnings }];
  }
}

function mergeMetadata(one: SharedV3ProviderMetadata | undefined, other: SharedV3ProviderMetadata): SharedV3ProviderMetadata {
  const merged = new Map(Object.entries(one ?? {}));
  for (const [vendor, fields] of Object.entries(other)) merged.set(vendor, { ...merged.get(vendor), ...fields });
  return Object.fromEntries(merged);
}

/** How long the end of a finished answer is awaited, so that its connection can be reused. */
const FINISH_MS = 1_000;

interface OpenStream {
  readonly reader: ReadableStreamDefaultReader<LanguageModelV3StreamPart>;
  readonly first: LanguageModelV3StreamPart | undefined;
  readonly reducer: ChunkReducer;
  readonly session: FetchSession;
  readonly apiKey: string | null;
  readonly callSignal: AbortSignal;
}

/** Iterable once. `return()` closes the upstream's connection at once and ends a pending pull. */
export class AiSdkChatStream implements AsyncIterableIterator<ChatChunkBatch, undefined> {
  private hasEnded = false;
  private first: LanguageModelV3StreamPart | undefined;

  constructor(private readonly open: OpenStream) {
    this.first = open.first;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<ChatChunkBatch, undefined>> {
    const { reducer, callSignal, apiKey } = this.open;
    try {
      while (!this.hasEnded) {
        const part = await this.read();
        const chunks = part === undefined ? [] : reducer.reduce(part);
        if (reducer.isFinished) this.finish();
        else if (part === undefined) throw cut();
        if (chunks.length > 0) return { done: false, value: chunks };
      }
      return END;
    } catch (error) {
      if (this.hasEnded) return END;
      this.end();
      callSignal.throwIfAborted();
      throw toError(error, apiKey, true);
    }
  }

  async return(): Promise<IteratorReturnResult<undefined>> {
    this.end();
    return END;
  }

  private async read(): Promise<LanguageModelV3StreamPart | undefined> {
    const { first } = this;
    if (first === undefined) return (await this.open.reader.read()).value;
    this.first = undefined;
    return first;
  }

  private finish(): void {
    this.hasEnded = true;
    const timer = setTimeout(() => this.open.session.end(), FINISH_MS);
    const done = () => {
      clearTimeout(timer);
      this.open.session.end();
    };
    void drain(this.open.reader).then(done, done);
  }

  private end(): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.open.session.end();
    this.open.reader.cancel().catch(() => undefined);
  }
}

async function drain(reader: ReadableStreamDefaultReader<unknown>): Promise<void> {
  while (!(await reader.read()).done);
}
