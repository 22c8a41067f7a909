import { invalidInput } from "../../errors.js";
import { append } from "../../lib/collections.js";
import { isRecord } from "../../lib/json.js";
import { withoutFields } from "../../lib/own-values.js";
import { quoteStart } from "../../lib/quote-start.js";
import { repairHistory } from "../openai-chat/repair.js";
import type { ChatBody } from "../openai-chat/schema.js";
import { SignedReader } from "../signatures.js";
import { readCompaction } from "./compaction.js";
import { type ResponseContentPart, type ResponseInput, type ResponseInputItem, wantsSummary } from "./request.js";
import { joinName, type OfferedTools, offerTools, type ResponseTarget, withoutNulls, wrapInput } from "./tools.js";

type Message = Record<string, unknown>;

/** Fields that are converted, or do not apply to a chat; unknown fields are passed on. */
const READ_FIELDS: ReadonlySet<string> = new Set([
  "input",
  "instructions",
  "stream",
  "stream_options",
  "max_output_tokens",
  "max_tool_calls",
  "top_logprobs",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "text",
  "reasoning",
  "metadata",
  "client_metadata",
  "truncation",
  "previous_response_id",
  "conversation",
  "prompt",
  "background",
  "store",
  "include",
]);
/** Characters of a client's text in a warning, and types that it names. */
const TYPE_CHARS_MAX = 64;
const TYPES_TOLD_MAX = 8;

const REFERENCE = "item_reference";
const ENCRYPTED = "reasoning.encrypted_content";

export interface ChatOfResponse {
  /** Not validated yet. */
  readonly chat: ChatBody;
  readonly tools: OfferedTools["kept"];
  readonly warnings: readonly string[];
}

/** Throws BAD_REQUEST for content that the chat format cannot hold. */
export function toChat(input: ResponseInput, target: ResponseTarget): ChatOfResponse {
  const passed = withoutFields(input, READ_FIELDS, (value) => value !== null);
  const { format, verbosity } = input.text ?? {};
  const { kept, tools, choice, warnings } = offerTools(input, target);
  const { isNative } = target;
  const { messages, leftOut, warnings: repairs } = toMessages(input, isNative);
  const chat = {
    ...passed,
    messages,
    ...(input.max_output_tokens != null && { max_completion_tokens: input.max_output_tokens }),
    ...(tools !== null && {
      tools,
      ...(choice != null && { tool_choice: choice }),
      ...(input.parallel_tool_calls != null && { parallel_tool_calls: input.parallel_tool_calls }),
    }),
    ...toLogprobs(input),
    ...(format != null && format.type !== "text" && { response_format: toResponseFormat(format) }),
    ...(verbosity != null && { verbosity }),
    ...(input.reasoning?.effort != null && { reasoning_effort: input.reasoning.effort }),
    // Other upstreams send reasoning unasked, and do not know the field.
    ...(isNative && wantsSummary(input) && { reasoning: { summary: input.reasoning?.summary ?? input.reasoning?.generate_summary } }),
    // Kept for the upstream's own thoughts, which only such an upstream can sign.
    ...(isNative && input.include?.includes(ENCRYPTED) && { include: [ENCRYPTED] }),
    ...(input.stream && { stream: true }),
  };
  return { chat, tools: kept, warnings: [...warnings, ...explainLeftOut(leftOut), ...repairs] };
}

/** The caller asks for them with their number, or by naming the field of the answer. */
function toLogprobs({ top_logprobs: count, include }: ResponseInput): Message {
  if (count == null && !include?.includes("message.output_text.logprobs")) return {};
  return { logprobs: true, ...(count != null && { top_logprobs: count }) };
}

function toMessages({ instructions, input }: ResponseInput, isNative: boolean) {
  const writer = new MessageWriter(isNative);
  if (instructions) writer.messages.push({ role: "system", content: instructions });
  if (typeof input === "string") writer.messages.push({ role: "user", content: input });
  else for (const [index, item] of input.entries()) writer.add(item, `input.${index}`);
  if (writer.messages.length === 0) throw invalidInput("holds nothing that a model could read: send at least one message", "input");
  writer.signCalls();
  // A chat's tool message holds text only; the other format has pictures in outputs.
  const { messages, warnings } = repairHistory(writer.messages, { field: "input", showsMediaApart: !isNative });
  const summaries =
    writer.foreignSummaries === 0 ? [] : ["input: the compaction of another vendor was left out: only that vendor can read it."];
  return { messages, warnings: [...summaries, ...warnings], leftOut: writer.leftOut };
}

/** Calls and reasoning of one turn are separate items here, and one assistant message in a chat. */
class MessageWriter {
  readonly messages: Message[] = [];
  /** Number of items that a chat cannot hold, by type. */
  readonly leftOut = new Map<string, number>();
  /** Number of compacted conversations of other vendors. */
  foreignSummaries = 0;
  /** Calls that were left out: their results are left out too, because upstreams refuse a result without a call. */
  private readonly callsLeftOut = new Set<unknown>();
  private readonly calls: Message[] = [];
  /** What vendors signed with a call, by its id. */
  private readonly signed = new Map<string, unknown>();
  private readonly signatures = new SignedReader();

  constructor(private readonly isNative: boolean) {}

  add(item: ResponseInputItem, path: string): void {
    switch (item.type) {
      case undefined:
      case "message":
        this.addMessage(item.role, this.toContent(item.content));
        return;
      case "function_call":
        this.addCall(item.call_id, {
          type: "function",
          function: { name: joinName(item), arguments: item.arguments },
          ...(isRecord(item.extra_content) && { extra_content: item.extra_content }),
        });
        return;
      case "custom_tool_call":
        this.addCall(item.call_id, this.toCustomCall(joinName(item), item.input));
        return;
      case "function_call_output":
      case "custom_tool_call_output":
        this.addOutput(item.call_id, item.output);
        return;
      case "compaction":
        this.addCompaction(item.encrypted_content);
        return;
      case "reasoning":
        this.addThoughts(item);
        return;
      case null:
        if (item.foreignType === REFERENCE)
          throw invalidInput(`Items are not kept here: send the item itself instead of an ${REFERENCE}.`, `${path}.type`);
        this.leaveOut(item.foreignType, item.callId);
        return;
    }
  }

  private addMessage(role: string, content: unknown): void {
    const last = this.messages.at(-1);
    if (role === "assistant" && last && isUnsaid(last)) last.content = content;
    else this.messages.push({ role, content });
  }

  private addCall(id: string, call: Message): void {
    const turn = this.assistantTurn();
    const made = { id, ...call };
    this.calls.push(made);
    turn.tool_calls ??= [];
    (turn.tool_calls as unknown[]).push(made);
  }

  /** Signatures of calls may stand in an item behind them. */
  signCalls(): void {
    if (this.signed.size === 0) return;
    for (const call of this.calls) {
      const extra = this.signed.get(String(call.id));
      if (extra !== undefined) call.extra_content ??= extra;
    }
  }

  private toCustomCall(name: string, input: string): Message {
    if (this.isNative) return { type: "custom", custom: { name, input } };
    return { type: "function", function: { name, arguments: wrapInput(input) } };
  }

  private addOutput(callId: string, output: string | readonly ResponseContentPart[]): void {
    if (!this.callsLeftOut.has(callId)) this.messages.push({ role: "tool", tool_call_id: callId, content: this.toContent(output) });
  }

  /** Falls back to the summary for reasoning without content. Thoughts of one turn are in one message. */
  private addThoughts({ content, summary, encrypted_content: encrypted }: Thoughts): void {
    const { thoughts, calls } = this.signatures.read(encrypted);
    for (const [callId, extra] of calls) this.signed.set(callId, extra);
    const whole = textsOf(content).join("") || textsOf(summary).join("\n\n");
    if (whole === "" && thoughts.length === 0) return;
    const last = this.messages.at(-1);
    // An item of signatures alone stands behind the signed item.
    const turn = last?.role === "assistant" && (whole === "" || isUnsaid(last)) ? last : this.beginTurn();
    if (whole !== "") {
      const before = turn.reasoning_content;
      turn.reasoning_content = typeof before === "string" ? `${before}\n\n${whole}` : whole;
    }
    if (thoughts.length === 0) return;
    turn.reasoning_details ??= [];
    append(turn.reasoning_details as unknown[], thoughts);
  }

  private addCompaction(encrypted: string): void {
    const summary = readCompaction(encrypted);
    if (summary === null) this.foreignSummaries += 1;
    else this.messages.push({ role: "user", content: summary });
  }

  private leaveOut(type: string, callId: unknown): void {
    this.leftOut.set(type, (this.leftOut.get(type) ?? 0) + 1);
    if (callId !== undefined) this.callsLeftOut.add(callId);
  }

  private assistantTurn(): Message {
    const last = this.messages.at(-1);
    return last?.role === "assistant" ? last : this.beginTurn();
  }

  private beginTurn(): Message {
    const turn: Message = { role: "assistant", content: null };
    this.messages.push(turn);
    return turn;
  }

  private toContent(content: string | readonly ResponseContentPart[]): unknown {
    return typeof content === "string" ? content : content.map((part) => toPart(part, this.isNative));
  }
}

/** An assistant's message that has thoughts only. */
function isUnsaid({ role, content, tool_calls: calls }: Message): boolean {
  return role === "assistant" && content === null && calls === undefined;
}

type Thoughts = Pick<Extract<ResponseInputItem, { type: "reasoning" }>, "content" | "summary" | "encrypted_content">;

function textsOf(parts: Thoughts["content"]): string[] {
  return (parts ?? []).map(({ text }) => text ?? "").filter((text) => text !== "");
}

function explainLeftOut(leftOut: ReadonlyMap<string, number>): readonly string[] {
  if (leftOut.size === 0) return [];
  const types = [...leftOut].slice(0, TYPES_TOLD_MAX).map(([type, count]) => `${quoteStart(type, TYPE_CHARS_MAX)} (${count})`);
  const more = leftOut.size > TYPES_TOLD_MAX ? ` and others` : "";
  return [`input: items of type ${types.join(", ")}${more} were left out: what such tools did cannot be told to this model.`];
}

function toPart(part: ResponseContentPart, isNative: boolean): Message {
  switch (part.type) {
    case "input_image": {
      // A chat's finest detail is `high`.
      const detail = part.detail === "original" && !isNative ? "high" : part.detail;
      return { type: "image_url", image_url: { url: part.image_url, ...(detail != null && { detail }) } };
    }
    case "input_file":
      return { type: "file", file: { file_data: part.file_data, ...(part.filename != null && { filename: part.filename }) } };
    case "input_audio":
      return { type: "input_audio", input_audio: part.input_audio };
    case "refusal":
      return { type: "refusal", refusal: part.refusal };
    default:
      return { type: "text", text: part.text };
  }
}

function toResponseFormat({ type, ...schema }: NonNullable<NonNullable<ResponseInput["text"]>["format"]>): Message {
  return type === "json_schema" ? { type, json_schema: withoutNulls(schema) } : { type };
}
