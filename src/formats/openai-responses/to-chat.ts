import { invalidInput } from "../../errors.js";
import { withoutFields } from "../../lib/own-values.js";
import { quoteStart } from "../../lib/quote-start.js";
import type { ChatBody } from "../openai-chat/schema.js";
import { type ResponseContentPart, type ResponseInput, type ResponseInputItem, wantsSummary } from "./request.js";
import { type OfferedTools, offerTools, type ResponseTarget, withoutNulls, wrapInput } from "./tools.js";

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
  const { messages, leftOut } = toMessages(input, isNative);
  const chat = {
    ...passed,
    messages,
    ...(input.max_output_tokens != null && { max_completion_tokens: input.max_output_tokens }),
    ...(tools !== null && {
      tools,
      ...(choice != null && { tool_choice: choice }),
      ...(input.parallel_tool_calls != null && { parallel_tool_calls: input.parallel_tool_calls }),
    }),
    ...(input.top_logprobs != null && { logprobs: true, top_logprobs: input.top_logprobs }),
    ...(format != null && format.type !== "text" && { response_format: toResponseFormat(format) }),
    ...(verbosity != null && { verbosity }),
    ...(input.reasoning?.effort != null && { reasoning_effort: input.reasoning.effort }),
    // Other upstreams send reasoning unasked, and do not know the field.
    ...(isNative && wantsSummary(input) && { reasoning: { summary: input.reasoning?.summary ?? input.reasoning?.generate_summary } }),
    ...(input.stream && { stream: true }),
  };
  return { chat, tools: kept, warnings: [...warnings, ...explainLeftOut(leftOut)] };
}

function toMessages({ instructions, input }: ResponseInput, isNative: boolean) {
  const writer = new MessageWriter(isNative);
  if (instructions) writer.messages.push({ role: "system", content: instructions });
  if (typeof input === "string") writer.messages.push({ role: "user", content: input });
  else for (const [index, item] of input.entries()) writer.add(item, `input.${index}`);
  if (writer.messages.length > 0) return writer;
  throw invalidInput("holds nothing that a model could read: send at least one message", "input");
}

/** Calls and reasoning of one turn are separate items here, and one assistant message in a chat. */
class MessageWriter {
  readonly messages: Message[] = [];
  /** Number of items that a chat cannot hold, by type. */
  readonly leftOut = new Map<string, number>();
  /** Calls that were left out: their results are left out too, because upstreams refuse a result without a call. */
  private readonly callsLeftOut = new Set<unknown>();

  constructor(private readonly isNative: boolean) {}

  add(item: ResponseInputItem, path: string): void {
    switch (item.type) {
      case undefined:
      case "message":
        this.addMessage(item.role, toContent(item.content));
        return;
      case "function_call":
        this.addCall(item.call_id, { type: "function", function: { name: item.name, arguments: item.arguments } });
        return;
      case "custom_tool_call":
        this.addCall(item.call_id, this.toCustomCall(item.name, item.input));
        return;
      case "function_call_output":
      case "custom_tool_call_output":
        this.addOutput(item.call_id, item.output);
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
    if (role === "assistant" && last?.role === "assistant" && last.content === null && last.tool_calls === undefined)
      last.content = content;
    else this.messages.push({ role, content });
  }

  private addCall(id: string, call: Message): void {
    const turn = this.assistantTurn();
    turn.tool_calls ??= [];
    (turn.tool_calls as unknown[]).push({ id, ...call });
  }

  private toCustomCall(name: string, input: string): Message {
    if (this.isNative) return { type: "custom", custom: { name, input } };
    return { type: "function", function: { name, arguments: wrapInput(input) } };
  }

  private addOutput(callId: string, output: string | readonly ResponseContentPart[]): void {
    if (!this.callsLeftOut.has(callId)) this.messages.push({ role: "tool", tool_call_id: callId, content: toContent(output) });
  }

  /** Falls back to the summary for reasoning without content. */
  private addThoughts({ content, summary }: Thoughts): void {
    const whole = textsOf(content).join("") || textsOf(summary).join("\n\n");
    if (whole !== "") this.messages.push({ role: "assistant", content: null, reasoning_content: whole });
  }

  private leaveOut(type: string, callId: unknown): void {
    this.leftOut.set(type, (this.leftOut.get(type) ?? 0) + 1);
    if (callId !== undefined) this.callsLeftOut.add(callId);
  }

  private assistantTurn(): Message {
    const last = this.messages.at(-1);
    if (last?.role === "assistant") return last;
    const turn: Message = { role: "assistant", content: null };
    this.messages.push(turn);
    return turn;
  }
}

type Thoughts = Pick<Extract<ResponseInputItem, { type: "reasoning" }>, "content" | "summary">;

function textsOf(parts: Thoughts["content"]): string[] {
  return (parts ?? []).map(({ text }) => text ?? "").filter((text) => text !== "");
}

function explainLeftOut(leftOut: ReadonlyMap<string, number>): readonly string[] {
  if (leftOut.size === 0) return [];
  const types = [...leftOut].slice(0, TYPES_TOLD_MAX).map(([type, count]) => `${quoteStart(type, TYPE_CHARS_MAX)} (${count})`);
  const more = leftOut.size > TYPES_TOLD_MAX ? ` and others` : "";
  return [`input: items of type ${types.join(", ")}${more} were left out: what such tools did cannot be told to this model.`];
}

function toContent(content: string | readonly ResponseContentPart[]): unknown {
  return typeof content === "string" ? content : content.map(toPart);
}

function toPart(part: ResponseContentPart): Message {
  switch (part.type) {
    case "input_image":
      return { type: "image_url", image_url: { url: part.image_url, ...(part.detail != null && { detail: part.detail }) } };
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
