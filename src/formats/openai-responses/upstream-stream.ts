/**
 * Translates events of a streamed response to chat chunks. A response repeats content: as deltas, when a part is done, and whole at the
 * end. Deltas are passed on; content without deltas is taken from the end.
 */

import { isRecord } from "../../lib/json.js";
import type { SseEvent } from "../../lib/sse.js";
import type { ReportedUsage } from "../../lib/usage.js";
import { createCallId } from "../openai-chat/calls.js";
import { hasErrorContent, type Secrets, toEmbeddedError } from "../openai-chat/errors.js";
import type { ChatChunk } from "../openai-chat/stream.js";
import { isForeign, type StreamFormat, toChunk } from "../openai-chat/stream.js";
import { type OnUnknownNames, toUsage } from "../openai-chat/usage.js";
import { ProviderError } from "../upstream-error.js";
import { parseObject } from "../upstream-json.js";
import {
  textOf,
  toCall,
  toChatAnnotation,
  toFinishReason,
  toHead,
  toLogprobs,
  toSaid,
  toSignedThought,
  toUsageObject,
} from "./upstream-answer.js";

type Loose = Readonly<Record<string, unknown>>;

interface Call {
  /** The chat's index. */
  readonly index: number;
  readonly itemId: string;
  readonly callId: string;
  /** The chat's id, which no other call has. */
  readonly chatId: string;
  readonly isCustom: boolean;
  /** Part of its arguments has arrived. */
  hasGrown: boolean;
}

const DONE = "[DONE]";

export class ResponsesEvents implements StreamFormat {
  /** Never complete without its last event. */
  readonly isWhole = false;
  private head: Loose = toHead({});
  private hasBegun = false;
  private hasText = false;
  private hasThoughts = false;
  private hasCitations = false;
  private readonly calls = new OpenCalls();
  /** Encrypted parts of thoughts that have left. */
  private readonly signed = new Set<unknown>();

  constructor(
    private readonly secrets: Secrets,
    private readonly warnings: readonly string[],
    private readonly onUnknownNames?: OnUnknownNames,
  ) {}

  take(received: SseEvent, batch: ChatChunk[]): boolean {
    const { data, event: name, bytes } = received;
    if (data === "" || data.trim() === DONE || isForeign(received)) return false;
    const event = parseObject(bytes, data);
    if (name === "error" || event?.type === "error") throw toEmbeddedError(errorOf(event, data), this.secrets);
    if (event === null) throw new ProviderError("invalid-response", "The upstream's stream holds an event that is not a JSON object.");
    // An error outside of the format counts all the same.
    if (event.type === undefined && hasErrorContent(event.error)) throw toEmbeddedError(event.error, this.secrets);
    return this.read(event, batch);
  }

  private read(event: Loose, batch: ChatChunk[]): boolean {
    switch (event.type) {
      case "response.created":
      case "response.in_progress":
        if (isRecord(event.response)) this.head = toHead(event.response);
        return false;
      case "response.output_text.delta":
        this.hasText = true;
        this.say(batch, { content: textOf(event.delta) }, logprobsOf(event));
        return false;
      case "response.output_text.annotation.added":
        if (isRecord(event.annotation)) {
          this.hasCitations = true;
          this.say(batch, { annotations: [toChatAnnotation(event.annotation)] });
        }
        return false;
      case "response.refusal.delta":
        this.hasText = true;
        this.say(batch, { refusal: textOf(event.delta) });
        return false;
      case "response.reasoning_text.delta":
      case "response.reasoning_summary_text.delta":
        this.hasThoughts = true;
        this.say(batch, { reasoning_content: textOf(event.delta) });
        return false;
      case "response.reasoning_summary_part.added":
        if (this.hasThoughts) this.say(batch, { reasoning_content: "\n\n" });
        return false;
      case "response.output_item.added":
        this.takeItem(event, batch, false);
        return false;
      case "response.function_call_arguments.delta":
      case "response.custom_tool_call_input.delta":
        this.growCall(event, batch);
        return false;
      case "response.output_item.done":
        this.takeItem(event, batch, true);
        return false;
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
        this.finish(isRecord(event.response) ? event.response : {}, batch);
        return true;
      default:
        return false;
    }
  }

  private takeItem({ item, output_index: place }: Loose, batch: ChatChunk[], isDone: boolean, order: number | null = null): void {
    if (!isRecord(item)) return;
    if (isDone) this.takeSigned(item, batch);
    const call = toCall(item);
    if (call === null) return;
    let open = this.calls.find(item, place, order);
    if (!open) {
      open = this.calls.add(item, place, call.type === "custom");
      this.say(batch, { tool_calls: [{ index: open.index, ...withoutInput(call), id: open.chatId }] });
    }
    // The end repeats arguments that were streamed.
    if (isDone && !open.hasGrown) this.sayInput(open, inputOf(call), batch);
  }

  /** Thoughts that the upstream has encrypted are complete with their item. */
  private takeSigned(item: Loose, batch: ChatChunk[]): void {
    const detail = toSignedThought(item);
    if (detail === null || this.signed.has(detail.data)) return;
    this.signed.add(detail.data);
    this.say(batch, { reasoning_details: [{ index: this.signed.size - 1, ...detail }] });
  }

  private growCall(event: Loose, batch: ChatChunk[]): void {
    const open = this.calls.find({ id: event.item_id }, event.output_index, null);
    if (!open) throw new ProviderError("invalid-response", "The upstream's stream goes on with a call that has not begun.");
    this.sayInput(open, textOf(event.delta), batch);
  }

  private sayInput(open: Call, text: string, batch: ChatChunk[]): void {
    if (text === "") return;
    open.hasGrown = true;
    const piece = open.isCustom ? { custom: { input: text } } : { function: { arguments: text } };
    this.say(batch, { tool_calls: [{ index: open.index, ...piece }] });
  }

  private finish(response: Loose, batch: ChatChunk[]): void {
    this.head = toHead({ ...this.head, created_at: this.head.created, ...response });
    const output = Array.isArray(response.output) ? response.output : [];
    // Places in this list may differ from those of the events, so items are known by their ids.
    let order = 0;
    for (const item of output) {
      this.takeItem({ item }, batch, true, order);
      if (isRecord(item) && toCall(item) !== null) order += 1;
    }
    const { text, refusal, reasoning, annotations } = toSaid(output);
    // Throws for a failed response; its earlier chunks were passed on.
    const reason = toFinishReason(response, this.calls.size > 0, this.secrets);
    if (!this.hasThoughts && !this.hasText && reasoning !== "") this.say(batch, { reasoning_content: reasoning });
    if (!this.hasText && text !== "") this.say(batch, { content: text });
    if (!this.hasText && refusal !== "") this.say(batch, { refusal });
    if (!this.hasCitations && annotations.length > 0) this.say(batch, { annotations });
    this.push(batch, { choices: [{ index: 0, delta: this.begin({}), finish_reason: reason }] });
    const usage = toUsageObject(response.usage);
    if (usage.usage) this.push(batch, { choices: [], ...usage }, toUsage(response.usage, this.onUnknownNames));
  }

  private say(batch: ChatChunk[], delta: Loose, logprobs: readonly unknown[] = []): void {
    const choice = { index: 0, delta: this.begin(delta), logprobs: toLogprobs(logprobs), finish_reason: null };
    this.push(batch, { choices: [choice] });
  }

  /** The first delta has the role. */
  private begin(delta: Loose): Loose {
    if (this.hasBegun) return delta;
    return { role: "assistant", ...delta };
  }

  private push(batch: ChatChunk[], fields: Loose, usage: ReportedUsage | null = null): void {
    const chunk = { ...toChunk({ ...this.head, object: "chat.completion.chunk", ...fields }), usage };
    batch.push(this.hasBegun || this.warnings.length === 0 ? chunk : { ...chunk, warnings: this.warnings });
    this.hasBegun = true;
  }
}

/** Calls by the ids of their items, else by the ids of calls, else by their place: servers repeat places, or number the end's list differently. */
class OpenCalls {
  private readonly byItem = new Map<string, Call>();
  private readonly byCallId = new Map<string, Call>();
  /** The last one that began there. */
  private readonly byPlace = new Map<unknown, Call>();
  private readonly inOrder: Call[] = [];

  get size(): number {
    return this.inOrder.length;
  }

  add({ id, call_id: callId }: Loose, place: unknown, isCustom: boolean): Call {
    const [itemId, stated] = [textOf(id), textOf(callId)];
    const isTaken = this.byCallId.has(stated) || stated === "";
    const chatId = isTaken ? createCallId() : stated;
    const call: Call = { index: this.inOrder.length, itemId, callId: stated, chatId, isCustom, hasGrown: false };
    this.inOrder.push(call);
    if (itemId !== "") this.byItem.set(itemId, call);
    if (stated !== "" && !isTaken) this.byCallId.set(stated, call);
    if (place !== undefined) this.byPlace.set(place, call);
    return call;
  }

  /** `order`: its place among the calls of the whole response; null before the end. */
  find({ id, call_id: callId }: Loose, place: unknown, order: number | null): Call | undefined {
    const [itemId, stated] = [textOf(id), textOf(callId)];
    const byItem = this.byItem.get(itemId);
    if (byItem) return byItem;
    const byCall = this.byCallId.get(stated);
    // Some servers give every call the tool's name as its id; at the end, some give items other ids.
    if (byCall && (order !== null || itemId === "" || byCall.itemId === "")) return byCall;
    if (order !== null) return itemId === "" && stated === "" ? this.inOrder[order] : undefined;
    const there = this.byPlace.get(place);
    // Another call's id at the same place is another call.
    const isOther =
      there !== undefined &&
      ((stated !== "" && there.callId !== "" && there.callId !== stated) || (stated !== "" && itemId !== "" && there.itemId !== ""));
    return isOther ? undefined : there;
  }
}

/** OpenAI's error event is flat; some servers nest an object. */
function errorOf(event: Loose | null, data: string): unknown {
  if (event === null) return data;
  if (isRecord(event.error)) return event.error;
  const { type: _, ...error } = event;
  return error;
}

function withoutInput({ id, type, function: called, custom }: Loose): Loose {
  if (isRecord(custom)) return { id, type, custom: { name: custom.name, input: "" } };
  return { id, type, function: { name: isRecord(called) ? called.name : "", arguments: "" } };
}

function inputOf({ function: called, custom }: Loose): string {
  if (isRecord(custom)) return textOf(custom.input);
  return isRecord(called) ? textOf(called.arguments) : "";
}

function logprobsOf({ logprobs }: Loose): readonly unknown[] {
  return Array.isArray(logprobs) ? logprobs : [];
}
