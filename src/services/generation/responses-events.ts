/**
 * From the chunks of a chat to the events of a streamed response: items are opened, grow, and are closed in the order in which
 * the model makes them. One for each stream; a plain answer goes through it as one chunk.
 */
import type { ChatChunkObject, ChatDelta } from "../../lib/chat-format.js";
import { plainText } from "./chat-text.js";
import {
  createItemId,
  incompleteReasonOf,
  type ResponseFrame,
  type ResponseObject,
  type ResponseOutputItem,
  textPart,
  toResponseObject,
  toResponseUsage,
} from "./responses-object.js";

export interface ResponseEvent {
  readonly type: string;
  readonly sequence_number: number;
  readonly [field: string]: unknown;
}

type Kind = "text" | "refusal" | "reasoning" | "call";

interface OpenItem {
  readonly kind: Kind;
  readonly id: string;
  readonly outputIndex: number;
  /** Of a call: as the chat numbers it, and what it is called with. */
  readonly callIndex: number;
  readonly callId: string;
  readonly name: string;
  grown: string;
}

export class ResponseEvents {
  private sequence = 0;
  private readonly output: ResponseOutputItem[] = [];
  private open: OpenItem | null = null;
  private finishReason: unknown = null;
  private usage: unknown = null;

  constructor(private readonly frame: ResponseFrame) {}

  begin(): ResponseEvent[] {
    const response = this.response("in_progress");
    return [this.event("response.created", { response }), this.event("response.in_progress", { response })];
  }

  /** Only the first choice: a response has one. */
  read(chunk: ChatChunkObject): ResponseEvent[] {
    if (chunk.usage) this.usage = chunk.usage;
    const choice = chunk.choices?.find(({ index }) => (index ?? 0) === 0);
    if (choice?.finish_reason) this.finishReason = choice.finish_reason;
    return choice?.delta ? this.readDelta(choice.delta) : [];
  }

  /** The rest of the stream: the last item closed, and the response as it is answered. */
  end(): { readonly events: ResponseEvent[]; readonly response: ResponseObject } {
    const reason = incompleteReasonOf(this.finishReason);
    const closing = this.close(reason ? "incomplete" : "completed");
    const response = this.response(reason ? "incomplete" : "completed");
    return { events: [...closing, this.event(`response.${response.status}`, { response })], response };
  }

  /** A number for an event that is made elsewhere. */
  nextSequence(): number {
    return this.sequence++;
  }

  private readDelta(delta: ChatDelta): ResponseEvent[] {
    const events: ResponseEvent[] = [];
    const thought = plainText(delta.reasoning_content ?? delta.reasoning);
    if (thought !== "") events.push(...this.grow("reasoning", thought));
    const text = plainText(delta.content);
    if (text !== "") events.push(...this.grow("text", text));
    const refusal = plainText(delta.refusal);
    if (refusal !== "") events.push(...this.grow("refusal", refusal));
    for (const [position, call] of (delta.tool_calls ?? []).entries()) events.push(...this.readCall(call, position));
    return events;
  }

  private readCall(
    call: { index?: unknown; id?: unknown; function?: { name?: string; arguments?: string } },
    position: number,
  ): ResponseEvent[] {
    const callIndex = typeof call.index === "number" ? call.index : position;
    const events: ResponseEvent[] = [];
    const isNew = this.open?.kind !== "call" || this.open.callIndex !== callIndex;
    if (isNew) {
      const callId = typeof call.id === "string" && call.id !== "" ? call.id : createItemId("fc").replace("fc_", "call_");
      events.push(...this.openItem("call", { callIndex, callId, name: call.function?.name ?? "" }));
    }
    const more = call.function?.arguments ?? "";
    return more === "" ? events : [...events, ...this.grow("call", more)];
  }

  private grow(kind: Kind, delta: string): ResponseEvent[] {
    const opening = this.open?.kind === kind ? [] : this.openItem(kind, { callIndex: 0, callId: "", name: "" });
    const item = this.open as OpenItem;
    item.grown += delta;
    return [...opening, this.event(DELTA_EVENTS[kind], { ...this.place(item), delta, ...(kind === "text" && { logprobs: [] }) })];
  }

  private openItem(kind: Kind, call: Pick<OpenItem, "callIndex" | "callId" | "name">): ResponseEvent[] {
    const closing = this.close("completed");
    const item: OpenItem = { kind, id: createItemId(PREFIXES[kind]), outputIndex: this.output.length, ...call, grown: "" };
    this.open = item;
    const added = this.event("response.output_item.added", {
      output_index: item.outputIndex,
      item: toItem(item, "in_progress", false),
    });
    if (kind === "call") return [...closing, added];
    return [...closing, added, this.event("response.content_part.added", { ...this.place(item), part: toPart(item) })];
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
    if (kind === "call") return [this.event("response.function_call_arguments.done", { ...place, name, arguments: grown })];
    const fields = { ...place, [kind === "refusal" ? "refusal" : "text"]: grown, ...(kind === "text" && { logprobs: [] }) };
    return [this.event(DONE_EVENTS[kind], fields), this.event("response.content_part.done", { ...place, part: toPart(item) })];
  }

  private place(item: OpenItem): Record<string, unknown> {
    const place = { item_id: item.id, output_index: item.outputIndex };
    return item.kind === "call" ? place : { ...place, content_index: 0 };
  }

  private response(status: ResponseObject["status"]): ResponseObject {
    const usage = status === "in_progress" ? null : toResponseUsage(this.usage);
    return toResponseObject(this.frame, {
      status,
      output: [...this.output],
      usage,
      incompleteReason: incompleteReasonOf(this.finishReason),
    });
  }

  private event(type: string, fields: Record<string, unknown>): ResponseEvent {
    return { type, sequence_number: this.nextSequence(), ...fields };
  }
}

const PREFIXES = { text: "msg", refusal: "msg", reasoning: "rs", call: "fc" } as const satisfies Record<Kind, string>;
const DELTA_EVENTS: Record<Kind, string> = {
  text: "response.output_text.delta",
  refusal: "response.refusal.delta",
  reasoning: "response.reasoning_text.delta",
  call: "response.function_call_arguments.delta",
};
const DONE_EVENTS: Record<Exclude<Kind, "call">, string> = {
  text: "response.output_text.done",
  refusal: "response.refusal.done",
  reasoning: "response.reasoning_text.done",
};

/** Its only content part. */
function toPart(item: OpenItem) {
  if (item.kind === "reasoning") return { type: "reasoning_text", text: item.grown } as const;
  return item.kind === "refusal" ? ({ type: "refusal", refusal: item.grown } as const) : textPart(item.grown);
}

function toItem(item: OpenItem, status: "in_progress" | "completed" | "incomplete", isWhole: boolean): ResponseOutputItem {
  const { id, grown } = item;
  if (item.kind === "call") return { type: "function_call", id, call_id: item.callId, name: item.name, arguments: grown, status };
  if (item.kind === "reasoning") {
    return { type: "reasoning", id, status, summary: [], content: isWhole ? [{ type: "reasoning_text", text: grown }] : [] };
  }
  const part = item.kind === "refusal" ? ({ type: "refusal", refusal: grown } as const) : textPart(grown);
  return { type: "message", id, role: "assistant", status, content: isWhole ? [part] : [] };
}
