/**
 * Converts chunks of a chat to events of a streamed response: items are opened, extended and closed in order. One per stream; a whole
 * answer passes as one chunk.
 */

import { append } from "../../lib/collections.js";
import { type ChatChunkObject, type ChatDelta, plainText, reasoningIn } from "../openai-chat/schema.js";
import {
  createItemId,
  type FinishedResponse,
  incompleteReasonOf,
  type ResponseFrame,
  type ResponseObject,
  type ResponseOutputItem,
  type ResponseUsage,
  textPart,
  toResponseObject,
  toResponseUsage,
} from "./answer.js";
import { wantsSummary } from "./request.js";
import { customNames, unwrapInput } from "./tools.js";

export interface ResponseEvent {
  readonly type: string;
  readonly sequence_number: number;
  readonly [field: string]: unknown;
}

/** Reasoning is sent once: as a summary when requested, else as reasoning. */
type Kind = "text" | "refusal" | "reasoning" | "summary" | "call" | "custom";
type Piece = NonNullable<ChatDelta["tool_calls"]>[number] & { readonly index?: unknown; readonly id?: unknown };

interface OpenItem {
  readonly kind: Kind;
  readonly id: string;
  readonly outputIndex: number;
  /** Of a call: the chat's index. */
  readonly callIndex: number;
  readonly callId: string;
  readonly name: string;
  /** Of a custom call: it is a call of the function that wraps the tool, so its input is sent when it is complete. */
  readonly isWrapped: boolean;
  grown: string;
}

type CallFields = Pick<OpenItem, "callIndex" | "callId" | "name" | "isWrapped">;
const NO_CALL: CallFields = { callIndex: 0, callId: "", name: "", isWrapped: false };

export class ResponseEvents {
  private sequence = 0;
  private readonly output: ResponseOutputItem[] = [];
  private open: OpenItem | null = null;
  private finishReason: unknown = null;
  private usage: unknown = null;
  private readonly thoughts: "reasoning" | "summary";
  private readonly customNames: ReadonlySet<string>;
  /** Of a stream's last chunk. */
  private receipt: unknown;

  constructor(private readonly frame: ResponseFrame) {
    this.thoughts = wantsSummary(frame.input) ? "summary" : "reasoning";
    this.customNames = customNames(frame.tools);
  }

  begin(): ResponseEvent[] {
    const response = this.response("in_progress", null);
    return [this.event("response.created", { response }), this.event("response.in_progress", { response })];
  }

  /** Reads only the first choice: a response has one. */
  read(chunk: ChatChunkObject): ResponseEvent[] {
    if (chunk.usage) this.usage = chunk.usage;
    if (chunk.receipt) this.receipt = chunk.receipt;
    const choice = chunk.choices?.find(({ index }) => (index ?? 0) === 0);
    if (choice?.finish_reason) this.finishReason = choice.finish_reason;
    return choice?.delta ? this.readDelta(choice.delta) : [];
  }

  /** Replaces the upstream's report by the charged usage. */
  setUsage(usage: unknown): void {
    this.usage = usage;
  }

  /** Closes the last item, and returns the response. */
  end(): { readonly events: ResponseEvent[]; readonly response: FinishedResponse } {
    const reason = incompleteReasonOf(this.finishReason);
    const closing = this.close(reason ? "incomplete" : "completed");
    const response = this.response(reason ? "incomplete" : "completed", toResponseUsage(this.usage));
    return { events: [...closing, this.event(`response.${response.status}`, { response })], response };
  }

  nextSequence(): number {
    return this.sequence++;
  }

  private readDelta(delta: ChatDelta): ResponseEvent[] {
    const events: ResponseEvent[] = [];
    const thought = plainText(reasoningIn(delta));
    if (thought !== "") append(events, this.grow(this.thoughts, thought));
    const text = plainText(delta.content);
    if (text !== "") append(events, this.grow("text", text));
    const refusal = plainText(delta.refusal);
    if (refusal !== "") append(events, this.grow("refusal", refusal));
    for (const [position, call] of (delta.tool_calls ?? []).entries()) append(events, this.readCall(call, position));
    return events;
  }

  private readCall(call: Piece, position: number): ResponseEvent[] {
    const callIndex = typeof call.index === "number" ? call.index : position;
    const opening = this.isOpenCall(callIndex) ? [] : this.openCall(call, callIndex);
    const more = call.function?.arguments ?? call.custom?.input ?? "";
    return more === "" ? opening : [...opening, ...this.growOpen(this.open as OpenItem, more)];
  }

  private isOpenCall(callIndex: number): boolean {
    return (this.open?.kind === "call" || this.open?.kind === "custom") && this.open.callIndex === callIndex;
  }

  private openCall({ id, function: called, custom }: Piece, callIndex: number): ResponseEvent[] {
    const name = custom?.name ?? called?.name ?? "";
    const isWrapped = custom === undefined && this.customNames.has(name);
    const callId = typeof id === "string" && id !== "" ? id : createItemId("call");
    return this.openItem(custom === undefined && !isWrapped ? "call" : "custom", { callIndex, callId, name, isWrapped });
  }

  private grow(kind: Kind, delta: string): ResponseEvent[] {
    const opening = this.open?.kind === kind ? [] : this.openItem(kind, NO_CALL);
    return [...opening, ...this.growOpen(this.open as OpenItem, delta)];
  }

  private growOpen(item: OpenItem, delta: string): ResponseEvent[] {
    item.grown += delta;
    return item.isWrapped ? [] : [this.deltaEvent(item, delta)];
  }

  private deltaEvent(item: OpenItem, delta: string): ResponseEvent {
    const { kind } = item;
    return this.event(`${EVENTS[kind]}.delta`, { ...this.place(item), delta, ...(kind === "text" && { logprobs: [] }) });
  }

  private openItem(kind: Kind, call: CallFields): ResponseEvent[] {
    const closing = this.close("completed");
    const item: OpenItem = { kind, id: createItemId(PREFIXES[kind]), outputIndex: this.output.length, ...call, grown: "" };
    this.open = item;
    const added = this.event("response.output_item.added", {
      output_index: item.outputIndex,
      item: toItem(item, "in_progress", false),
    });
    const part = PART_EVENTS[kind];
    return [...closing, added, ...(part === null ? [] : [this.event(`${part}.added`, { ...this.place(item), part: toPart(item) })])];
  }

  private close(status: "completed" | "incomplete"): ResponseEvent[] {
    const item = this.open;
    if (!item) return [];
    this.open = null;
    const whole = toItem(item, status, true);
    this.output.push(whole);
    return [...this.closeContent(item), this.event("response.output_item.done", { output_index: item.outputIndex, item: whole })];
  }

  private closeContent(item: OpenItem): ResponseEvent[] {
    const { kind, name, grown } = item;
    const place = this.place(item);
    const done = (fields: Record<string, unknown>) => this.event(`${EVENTS[kind]}.done`, { ...place, ...fields });
    if (kind === "call") return [done({ name, arguments: grown })];
    if (kind === "custom") {
      const input = inputOf(item);
      return [...(item.isWrapped && input !== "" ? [this.deltaEvent(item, input)] : []), done({ input })];
    }
    const fields = { [kind === "refusal" ? "refusal" : "text"]: grown, ...(kind === "text" && { logprobs: [] }) };
    return [done(fields), this.event(`${PART_EVENTS[kind]}.done`, { ...place, part: toPart(item) })];
  }

  private place({ kind, id, outputIndex }: OpenItem): Record<string, unknown> {
    const place = { item_id: id, output_index: outputIndex };
    if (kind === "call" || kind === "custom") return place;
    return kind === "summary" ? { ...place, summary_index: 0 } : { ...place, content_index: 0 };
  }

  private response<Status extends ResponseObject["status"], Usage extends ResponseUsage | null>(status: Status, usage: Usage) {
    return toResponseObject(this.frame, {
      status,
      output: [...this.output],
      usage,
      incompleteReason: incompleteReasonOf(this.finishReason),
      receipt: this.receipt,
    });
  }

  private event(type: string, fields: Record<string, unknown>): ResponseEvent {
    return { type, sequence_number: this.nextSequence(), ...fields };
  }
}

const PREFIXES = { text: "msg", refusal: "msg", reasoning: "rs", summary: "rs", call: "fc", custom: "ctc" } as const satisfies Record<
  Kind,
  string
>;
/** The event of a delta; with `.done` the event of the whole. */
const EVENTS: Record<Kind, string> = {
  text: "response.output_text",
  refusal: "response.refusal",
  reasoning: "response.reasoning_text",
  summary: "response.reasoning_summary_text",
  call: "response.function_call_arguments",
  custom: "response.custom_tool_call_input",
};
/** Events of the item's part; calls have none. */
const PART_EVENTS: Record<Kind, string | null> = {
  text: "response.content_part",
  refusal: "response.content_part",
  reasoning: "response.content_part",
  summary: "response.reasoning_summary_part",
  call: null,
  custom: null,
};

function toPart(item: OpenItem) {
  if (item.kind === "summary") return { type: "summary_text", text: item.grown } as const;
  if (item.kind === "reasoning") return { type: "reasoning_text", text: item.grown } as const;
  return item.kind === "refusal" ? ({ type: "refusal", refusal: item.grown } as const) : textPart(item.grown);
}

function inputOf({ grown, isWrapped }: OpenItem): string {
  return isWrapped ? unwrapInput(grown) : grown;
}

function toItem(item: OpenItem, status: "in_progress" | "completed" | "incomplete", isWhole: boolean): ResponseOutputItem {
  const { id, grown, kind, callId, name } = item;
  if (kind === "call") return { type: "function_call", id, call_id: callId, name, arguments: grown, status };
  if (kind === "custom") return { type: "custom_tool_call", id, call_id: callId, name, input: isWhole ? inputOf(item) : "", status };
  if (kind === "summary")
    return { type: "reasoning", id, status, summary: isWhole ? [{ type: "summary_text", text: grown }] : [], content: [] };
  if (kind === "reasoning") {
    return { type: "reasoning", id, status, summary: [], content: isWhole ? [{ type: "reasoning_text", text: grown }] : [] };
  }
  const part = kind === "refusal" ? ({ type: "refusal", refusal: grown } as const) : textPart(grown);
  return { type: "message", id, role: "assistant", status, content: isWhole ? [part] : [] };
}
