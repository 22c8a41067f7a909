/** From a Responses request to the chat that it stands for: every text model then serves it, whatever its upstream speaks. */
import { parseInput } from "../input.js";
import { type ChatCompletionInput, chatCompletionInput } from "./chat-input.js";
import type { ResponseContentPart, ResponseInput, ResponseInputItem } from "./responses-input.js";

type Message = Record<string, unknown>;

/** What is read here; any other field is unknown to the gateway and travels on to the upstream. */
const READ_FIELDS: ReadonlySet<string> = new Set([
  "input",
  "instructions",
  "stream",
  "max_output_tokens",
  "top_logprobs",
  "tools",
  "tool_choice",
  "text",
  "reasoning",
  "metadata",
  "truncation",
  "previous_response_id",
  "conversation",
  "prompt",
  "background",
  "store",
  "include",
]);

/** Throws BAD_REQUEST for what the chat format cannot hold. */
export function toChat(input: ResponseInput): ChatCompletionInput {
  const passed = Object.fromEntries(Object.entries(input).filter(([field, value]) => !READ_FIELDS.has(field) && value != null));
  const { format, verbosity } = input.text ?? {};
  return parseInput(chatCompletionInput, {
    ...passed,
    messages: toMessages(input),
    ...(input.max_output_tokens != null && { max_completion_tokens: input.max_output_tokens }),
    ...(input.tools != null && input.tools.length > 0 && { tools: input.tools.map(toTool) }),
    ...(input.tool_choice != null && { tool_choice: toToolChoice(input.tool_choice) }),
    ...(input.top_logprobs != null && { logprobs: true, top_logprobs: input.top_logprobs }),
    ...(format != null && format.type !== "text" && { response_format: toResponseFormat(format) }),
    ...(verbosity != null && { verbosity }),
    ...(input.reasoning?.effort != null && { reasoning_effort: input.reasoning.effort }),
    ...(input.stream && { stream: true }),
  });
}

function toMessages({ instructions, input }: ResponseInput): Message[] {
  const messages: Message[] = instructions ? [{ role: "system", content: instructions }] : [];
  if (typeof input === "string") return [...messages, { role: "user", content: input }];
  for (const item of input) addItem(messages, item);
  return messages;
}

/** The calls and the thoughts of one turn are items of their own here, and one assistant's message there. */
function addItem(messages: Message[], item: ResponseInputItem): void {
  if (item.type === "function_call") {
    const turn = assistantTurn(messages);
    const call = { id: item.call_id, type: "function", function: { name: item.name, arguments: item.arguments } };
    turn.tool_calls = [...((turn.tool_calls as unknown[] | undefined) ?? []), call];
  } else if (item.type === "function_call_output") {
    const content = typeof item.output === "string" ? item.output : item.output.map(toPart);
    messages.push({ role: "tool", tool_call_id: item.call_id, content });
  } else if (item.type === "reasoning") {
    const thoughts = (item.content ?? []).map(({ text }) => text).join("");
    if (thoughts !== "") messages.push({ role: "assistant", content: null, reasoning_content: thoughts });
  } else {
    addMessage(messages, item.role, typeof item.content === "string" ? item.content : item.content.map(toPart));
  }
}

function addMessage(messages: Message[], role: string, content: unknown): void {
  const last = messages.at(-1);
  if (role === "assistant" && last?.role === "assistant" && last.content === null && last.tool_calls === undefined) last.content = content;
  else messages.push({ role, content });
}

function assistantTurn(messages: Message[]): Message {
  const last = messages.at(-1);
  if (last?.role === "assistant") return last;
  const turn: Message = { role: "assistant", content: null };
  messages.push(turn);
  return turn;
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

function toTool({ type, ...definition }: NonNullable<ResponseInput["tools"]>[number]): Message {
  return { type, function: withoutNulls(definition) };
}

function toToolChoice(choice: NonNullable<ResponseInput["tool_choice"]>): unknown {
  return typeof choice === "string" ? choice : { type: "function", function: { name: choice.name } };
}

function toResponseFormat({ type, ...schema }: NonNullable<NonNullable<ResponseInput["text"]>["format"]>): Message {
  return type === "json_schema" ? { type, json_schema: withoutNulls(schema) } : { type };
}

function withoutNulls(fields: Readonly<Record<string, unknown>>): Message {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value != null));
}
