/**
 * Converts chunks of a chat to events of a streamed response. One text is open at a time; calls stay open until the end, because their
 * pieces may come in turns. One per stream; a whole answer passes as one chunk.
 */

import { append } from "../../lib/collections.js";
import { isRecord } from "../../lib/json.js";
import { type ChatChunkChoice, type ChatChunkObject, type ChatDelta, plainText, reasoningIn } from "../openai-chat/schema.js";
import { Signatures } from "../signatures.js";
import {
  createItemId,
  type Failure,
  type FinishedResponse,
  failureCodeOf,
  incompleteReasonOf,
  outputItemIdOf,
  type ResponseFrame,
  type ResponseObject,
  type ResponseOutputItem,
  type ResponseUsage,
  textPart,
  toAnnotation,
  toResponseObject,
  toResponseUsage,
} from "./answer.js";
import { wantsSummary } from "./request.js";
import { customNames, type SplitName, splitNames, unwrapInput } from "./tools.js";

export interface ResponseEvent {
  readonly type: string;
  readonly sequence_number: number;
  readonly [field: string]: unknown;
}

/** Reasoning is sent once: as a summary when requested, else as reasoning. */
type TextKind = "text" | "refusal" | "reasoning" | "summary";
type CallKind = "call" | "custom";
type Piece = NonNullable<ChatDelta["tool_calls"]>[number] & {
  readonly index?: unknown;
  readonly id?: unknown;
  readonly extra_content?: unknown;
};

interface OpenText {
  readonly kind: TextKind;
  readonly id: string;
  readonly outputIndex: number;
  grown: string;
  readonly annotations: unknown[];
  readonly logprobs: unknown[];
  /** Of reasoning: what its vendor signed, as `encrypted_content`. */
  encrypted: string | null;
}

interface OpenCall {
  readonly kind: CallKind;
  readonly id: string;
  readonly outputIndex: number;
  readonly callId: string;
  readonly name: SplitName;
  /** It is a call of the function that wraps a custom tool, so its input is sent when it is complete. */
  readonly isWrapped: boolean;
  grown: string;
}

interface Call {
  callId: string;
  /** Null until its name has arrived; its pieces wait until then. */
  open: OpenCall | null;
  waiting: string;
}

export class ResponseEvents {
  private sequence = 0;
  private readonly output: (ResponseOutputItem | null)[] = [];
  private open: OpenText | null = null;
  /** By the chat's index, in the order in which they began. */
  private readonly calls = new Map<number, Call>();
  private readonly signatures = new Signatures();
  /** Citations that arrived without a text. */
  private readonly unplaced: unknown[] = [];
  private finishReason: unknown = null;
  private usage: unknown = null;
  private readonly thoughts: "reasoning" | "summary";
  private readonly customNames: ReadonlySet<string>;
  private readonly splitNames: ReadonlyMap<string, SplitName>;
  /** Of a stream's last chunk. */
  private receipt: unknown;

  constructor(private readonly frame: ResponseFrame) {
    this.thoughts = wantsSummary(frame.input) ? "summary" : "reasoning";
    this.customNames = customNames(frame.tools);
    this.splitNames = splitNames(frame.tools);
  }

  begin(): ResponseEvent[] {
    const response = this.response("in_progress", null);
    return [this.event("response.created", { response }), this.event("response.in_progress", { response })];
  }

  /** The response before anything was read. */
  waiting(): ResponseObject {
    return this.response("queued", null);
  }

  /** Reads only the first choice: a response has one. */
  read(chunk: ChatChunkObject): ResponseEvent[] {
    if (chunk.usage) this.usage = chunk.usage;
    if (chunk.receipt) this.receipt = chunk.receipt;
    const choice = chunk.choices?.find(({ index }) => (index ?? 0) === 0);
    if (choice?.finish_reason) this.finishReason = choice.finish_reason;
    return choice?.delta ? this.readDelta(choice.delta, choice) : [];
  }

  /** Replaces the upstream's report by the charged usage. */
  setUsage(usage: unknown): void {
    this.usage = usage;
  }

  /** Closes all items, and returns the response. */
  end(): { readonly events: ResponseEvent[]; readonly response: FinishedResponse } {
    const reason = incompleteReasonOf(this.finishReason);
    const status = reason ? "incomplete" : "completed";
    const closing = this.closeAll(status);
    const response = this.response(status, toResponseUsage(this.usage));
    return { events: [...closing, this.event(`response.${status}`, { response })], response };
  }

  /** The events of a failure on the way: clients read one or the other. Items that were open stay unfinished. */
  fail(error: Failure): ResponseEvent[] {
    const { code, message, param = null } = error;
    const reported = this.event("error", { code, message, param, error });
    const response = { ...this.response("failed", null), error: { code: failureCodeOf(error), message } };
    return [reported, this.event("response.failed", { response })];
  }

  /**
   * The response as far as it was read, when nothing more of it comes. Items that were open are incomplete. `usage` is null when nothing
   * was charged.
   */
  breakOff(status: "cancelled" | "failed", usage: unknown, error: Failure | null = null): ResponseObject {
    this.closeAll("incomplete");
    const response = this.response(status, usage === null ? null : toResponseUsage(usage));
    return error === null ? response : { ...response, error: { code: failureCodeOf(error), message: error.message } };
  }

  private readDelta(delta: ChatDelta, { logprobs }: ChatChunkChoice): ResponseEvent[] {
    const events: ResponseEvent[] = [];
    const thought = plainText(reasoningIn(delta));
    if (thought !== "") append(events, this.grow(this.thoughts, thought));
    this.signatures.addThoughts(delta.reasoning_details);
    const text = plainText(delta.content);
    if (text !== "") append(events, this.grow("text", text, logprobsIn(logprobs)));
    const refusal = plainText(delta.refusal);
    if (refusal !== "") append(events, this.grow("refusal", refusal));
    if (Array.isArray(delta.annotations)) append(events, this.annotate(delta.annotations));
    for (const [position, call] of (delta.tool_calls ?? []).entries()) append(events, this.readCall(call, position));
    return events;
  }

  private readCall(piece: Piece, position: number): ResponseEvent[] {
    const { id, function: called, custom, extra_content: extra } = piece;
    const call = this.callAt(typeof piece.index === "number" ? piece.index : position);
    if (call.open === null && typeof id === "string" && id !== "") call.callId = id;
    const name = custom?.name ?? called?.name ?? "";
    const opening = call.open === null && name !== "" ? this.openCall(call, name, isRecord(custom)) : [];
    if (isRecord(extra)) this.signatures.addCall(call.callId, extra);
    return [...opening, ...this.growCall(call, called?.arguments ?? custom?.input ?? "")];
  }

  private callAt(index: number): Call {
    const known = this.calls.get(index);
    if (known) return known;
    const begun: Call = { callId: createItemId("call"), open: null, waiting: "" };
    this.calls.set(index, begun);
    return begun;
  }

  private openCall(call: Call, name: string, isCustom: boolean): ResponseEvent[] {
    const closing = this.closeText("completed");
    const isWrapped = !isCustom && this.customNames.has(name);
    const kind = isCustom || isWrapped ? "custom" : "call";
    const place = this.reserve(kind === "call" ? "fc" : "ctc");
    const open: OpenCall = { kind, ...place, callId: call.callId, name: this.splitNames.get(name) ?? { name }, isWrapped, grown: "" };
    call.open = open;
    return [...closing, this.added(open.outputIndex, toCallItem(open, "in_progress", false)), ...this.growCall(call, call.waiting)];
  }

  private growCall(call: Call, delta: string): ResponseEvent[] {
    const { open } = call;
    if (open === null) call.waiting += delta;
    if (open === null || delta === "") return [];
    open.grown += delta;
    return open.isWrapped ? [] : [this.deltaEvent(open, delta)];
  }

  private grow(kind: TextKind, delta: string, logprobs: readonly unknown[] = []): ResponseEvent[] {
    const { opening, open } = this.textOf(kind);
    open.grown += delta;
    append(open.logprobs, logprobs);
    const more = kind === "text" ? { logprobs } : {};
    return [...opening, this.event(`${EVENTS[kind]}.delta`, { ...placeOf(open), delta, ...more })];
  }

  private textOf(kind: TextKind): { readonly opening: ResponseEvent[]; readonly open: OpenText } {
    if (this.open?.kind === kind) return { opening: [], open: this.open };
    const closing = this.closeText("completed");
    const place = this.reserve(PREFIXES[kind]);
    const open: OpenText = { kind, ...place, grown: "", annotations: [], logprobs: [], encrypted: null };
    this.open = open;
    const added = this.added(open.outputIndex, toTextItem(open, "in_progress", false));
    const part = this.event(`${PART_EVENTS[kind]}.added`, { ...placeOf(open), part: toPart(open) });
    const cited = kind === "text" ? this.cite(open, this.unplaced.splice(0)) : [];
    return { opening: [...closing, added, part, ...cited], open };
  }

  private annotate(annotations: readonly unknown[]): ResponseEvent[] {
    const cited = annotations.map(toAnnotation).filter((annotation) => annotation !== null);
    if (this.open?.kind === "text") return this.cite(this.open, cited);
    append(this.unplaced, cited);
    return [];
  }

  private cite(text: OpenText, annotations: readonly unknown[]): ResponseEvent[] {
    return annotations.map((annotation) => {
      const event = { ...placeOf(text), annotation_index: text.annotations.length, annotation };
      text.annotations.push(annotation);
      return this.event("response.output_text.annotation.added", event);
    });
  }

  private deltaEvent(call: OpenCall, delta: string): ResponseEvent {
    return this.event(`${EVENTS[call.kind]}.delta`, { ...placeOf(call), delta });
  }

  private closeAll(status: "completed" | "incomplete"): ResponseEvent[] {
    const events = this.unplaced.length > 0 ? this.textOf("text").opening : [];
    append(events, this.closeText(status));
    let left = this.calls.size;
    // Only the last call can have been cut off.
    for (const call of this.calls.values()) append(events, this.closeCall(call, --left === 0 ? status : "completed"));
    // Signatures of a call, or of a thought that cannot be read, leave in an item of their own.
    const signed = this.signatures.take();
    if (signed === null) return events;
    const { opening, open } = this.textOf(this.thoughts);
    open.encrypted = signed;
    return [...events, ...opening, ...this.closeText(status)];
  }

  private closeText(status: "completed" | "incomplete"): ResponseEvent[] {
    const { open } = this;
    if (!open) return [];
    this.open = null;
    const isThought = open.kind === this.thoughts;
    if (isThought && open.encrypted === null) open.encrypted = this.signatures.takeThoughts();
    const item = toTextItem(open, status, true);
    this.output[open.outputIndex] = item;
    const { kind, grown, logprobs } = open;
    const whole = { [kind === "refusal" ? "refusal" : "text"]: grown, ...(kind === "text" && { logprobs }) };
    return [
      this.event(`${EVENTS[kind]}.done`, { ...placeOf(open), ...whole }),
      this.event(`${PART_EVENTS[kind]}.done`, { ...placeOf(open), part: toPart(open) }),
      this.event("response.output_item.done", { output_index: open.outputIndex, item }),
    ];
  }

  private closeCall(call: Call, status: "completed" | "incomplete"): ResponseEvent[] {
    // A call that never got a name is shown all the same, because it was paid for.
    const opening = call.open === null ? this.openCall(call, "", false) : [];
    const open = call.open as unknown as OpenCall;
    const item = toCallItem(open, status, true);
    this.output[open.outputIndex] = item;
    return [...opening, ...this.closeInput(open), this.event("response.output_item.done", { output_index: open.outputIndex, item })];
  }

  private closeInput(call: OpenCall): ResponseEvent[] {
    const done = (fields: Record<string, unknown>) => this.event(`${EVENTS[call.kind]}.done`, { ...placeOf(call), ...fields });
    if (call.kind === "call") return [done({ name: call.name.name, arguments: call.grown })];
    const input = inputOf(call);
    return [...(call.isWrapped && input !== "" ? [this.deltaEvent(call, input)] : []), done({ input })];
  }

  private added(outputIndex: number, item: ResponseOutputItem): ResponseEvent {
    return this.event("response.output_item.added", { output_index: outputIndex, item });
  }

  /** The place of the next item, in the order in which items began. */
  private reserve(prefix: Parameters<typeof outputItemIdOf>[0]): { readonly id: string; readonly outputIndex: number } {
    const outputIndex = this.output.push(null) - 1;
    return { id: outputItemIdOf(prefix, this.frame.id, outputIndex), outputIndex };
  }

  private response<Status extends ResponseObject["status"], Usage extends ResponseUsage | null>(status: Status, usage: Usage) {
    return toResponseObject(this.frame, {
      status,
      output: this.output.filter((item) => item !== null),
      usage,
      incompleteReason: incompleteReasonOf(this.finishReason),
      receipt: this.receipt,
    });
  }

  private event(type: string, fields: Record<string, unknown>): ResponseEvent {
    return { type, sequence_number: this.sequence++, ...fields };
  }
}

const PREFIXES: Record<TextKind, "msg" | "rs"> = { text: "msg", refusal: "msg", reasoning: "rs", summary: "rs" };
/** The event of a delta; with `.done` the event of the whole. */
const EVENTS: Record<TextKind | CallKind, string> = {
  text: "response.output_text",
  refusal: "response.refusal",
  reasoning: "response.reasoning_text",
  summary: "response.reasoning_summary_text",
  call: "response.function_call_arguments",
  custom: "response.custom_tool_call_input",
};
/** Events of the item's part; calls have none. */
const PART_EVENTS: Record<TextKind, string> = {
  text: "response.content_part",
  refusal: "response.content_part",
  reasoning: "response.content_part",
  summary: "response.reasoning_summary_part",
};

function logprobsIn(logprobs: unknown): readonly unknown[] {
  return isRecord(logprobs) && Array.isArray(logprobs.content) ? logprobs.content : [];
}

function placeOf({ kind, id, outputIndex }: Pick<OpenText | OpenCall, "kind" | "id" | "outputIndex">): Record<string, unknown> {
  const place = { item_id: id, output_index: outputIndex };
  if (kind === "call" || kind === "custom") return place;
  return kind === "summary" ? { ...place, summary_index: 0 } : { ...place, content_index: 0 };
}

function toPart(open: OpenText) {
  if (open.kind === "summary") return { type: "summary_text", text: open.grown } as const;
  return open.kind === "reasoning" ? ({ type: "reasoning_text", text: open.grown } as const) : toSaidPart(open);
}

function toSaidPart({ kind, grown, annotations, logprobs }: OpenText) {
  return kind === "refusal" ? ({ type: "refusal", refusal: grown } as const) : textPart(grown, [...annotations], [...logprobs]);
}

function toTextItem(open: OpenText, status: "in_progress" | "completed" | "incomplete", isWhole: boolean): ResponseOutputItem {
  const { id, kind, grown, encrypted } = open;
  if (kind === "text" || kind === "refusal") {
    return { type: "message", id, role: "assistant", status, content: isWhole ? [toSaidPart(open)] : [] };
  }
  const signed = encrypted === null ? {} : { encrypted_content: encrypted };
  // An item of signatures alone holds no empty text.
  const isEmpty = !isWhole || grown === "";
  if (kind === "summary") {
    return { type: "reasoning", id, status, summary: isEmpty ? [] : [{ type: "summary_text", text: grown }], content: [], ...signed };
  }
  return { type: "reasoning", id, status, summary: [], content: isEmpty ? [] : [{ type: "reasoning_text", text: grown }], ...signed };
}

function inputOf({ grown, isWrapped }: OpenCall): string {
  return isWrapped ? unwrapInput(grown) : grown;
}

function toCallItem(call: OpenCall, status: "in_progress" | "completed" | "incomplete", isWhole: boolean): ResponseOutputItem {
  const { id, grown, kind, callId, name } = call;
  const head = { id, call_id: callId, ...name };
  if (kind === "call") return { type: "function_call", ...head, arguments: grown, status };
  return { type: "custom_tool_call", ...head, input: isWhole ? inputOf(call) : "", status };
}
