/**
 * A chat-completions body as a request of OpenAI's Responses format ("Create a model response"), which keeps nothing: everything is in
 * the request. What that format cannot express becomes a warning; fields that nobody here knows travel on.
 */
import type { ChatBody } from "../../lib/chat-format.js";
import { ownValue } from "../../lib/own-values.js";
import { isRecord } from "../openai/json.js";
import { toInput } from "./responses-input.js";

type Loose = Readonly<Record<string, unknown>>;

export interface ResponsesRequest {
  readonly fields: Loose;
  readonly warnings: readonly string[];
}

/** Chat fields that are expressed below, or mean nothing to the other format. */
const READ_FIELDS: ReadonlySet<string> = new Set([
  "model",
  "messages",
  "stream",
  "stream_options",
  "max_tokens",
  "max_completion_tokens",
  "tools",
  "tool_choice",
  "functions",
  "function_call",
  "response_format",
  "verbosity",
  "reasoning_effort",
  "logprobs",
  "modalities",
  "store",
]);
/** Chat fields that the other format has no word for, and what asks for nothing with them. */
const UNKNOWN_FIELDS: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ["n", 1],
  ["stop", undefined],
  ["seed", undefined],
  ["presence_penalty", 0],
  ["frequency_penalty", 0],
  ["logit_bias", undefined],
  ["prediction", undefined],
  ["audio", undefined],
  ["web_search_options", undefined],
]);

/** Throws a ProviderError of status 400 for what no item of the format can say. */
export function toResponsesRequest(body: ChatBody, upstreamModel: string, isStreamed: boolean): ResponsesRequest {
  const { instructions, input, warnings } = toInput(body.messages);
  const { reasoning_effort: effort, logprobs, top_logprobs: topLogprobs } = body;
  const cap = body.max_completion_tokens ?? body.max_tokens;
  const fields = {
    ...passed(body),
    model: upstreamModel,
    ...(instructions !== null && { instructions }),
    input,
    ...(typeof cap === "number" && { max_output_tokens: cap }),
    ...toTools(body),
    ...toText(body),
    ...(typeof effort === "string" && { reasoning: { ...(isRecord(body.reasoning) ? body.reasoning : {}), effort } }),
    ...(logprobs === true && { include: ["message.output_text.logprobs"], top_logprobs: topLogprobs ?? 0 }),
    // Nothing of a caller's is left with an upstream unless the caller says so.
    store: body.store === true,
    stream: isStreamed,
  };
  return { fields, warnings: [...warnings, ...unexpressed(body)] };
}

function passed(body: ChatBody): Loose {
  const isPassed = ([name, value]: [string, unknown]) => value != null && !READ_FIELDS.has(name) && !UNKNOWN_FIELDS.has(name);
  return Object.fromEntries(Object.entries(body).filter(isPassed));
}

function unexpressed(body: ChatBody): string[] {
  const isAsked = (value: unknown, idle: unknown) => value !== undefined && value !== null && value !== idle;
  const asked = [...UNKNOWN_FIELDS].filter(([name, idle]) => isAsked(ownValue(body, name), idle));
  return asked.map(([name]) => (name === "n" ? "n: this upstream gives one choice." : `${name}: this upstream has no such option.`));
}

/** Functions that do not say `strict` are not, in the chat format; in the other one they would be. */
function toTools(body: ChatBody): Loose {
  const older = recordsOf(body.functions).map((definition) => ({ type: "function", function: definition }));
  const tools = [...recordsOf(body.tools), ...older].map(toTool);
  const choice = body.tool_choice ?? toNewerChoice(body.function_call);
  if (tools.length === 0) return {};
  return { tools, ...(choice != null && { tool_choice: toToolChoice(choice) }) };
}

function toTool(tool: Loose): Loose {
  if (tool.type === "function" && isRecord(tool.function)) {
    const { parameters, strict, ...definition } = tool.function;
    return {
      type: "function",
      ...definition,
      parameters: isRecord(parameters) ? parameters : { type: "object", properties: {} },
      strict: strict === true,
    };
  }
  if (tool.type !== "custom" || !isRecord(tool.custom)) return tool;
  const { format, ...definition } = tool.custom;
  const grammar = isRecord(format) && isRecord(format.grammar) ? { type: "grammar", ...format.grammar } : format;
  return { type: "custom", ...definition, ...(grammar !== undefined && { format: grammar }) };
}

/** From the parameter that tool_choice was before. */
function toNewerChoice(choice: unknown): unknown {
  return isRecord(choice) ? { type: "function", function: choice } : choice;
}

function toToolChoice(choice: unknown): unknown {
  if (!isRecord(choice)) return choice;
  if (isRecord(choice.function)) return { type: "function", name: choice.function.name };
  if (isRecord(choice.custom)) return { type: "custom", name: choice.custom.name };
  if (!isRecord(choice.allowed_tools)) return choice;
  const { mode, tools } = choice.allowed_tools;
  return { type: "allowed_tools", mode, tools: recordsOf(tools).map(toToolChoice) };
}

function toText({ response_format: format, verbosity }: ChatBody): Loose {
  const text = { ...toFormat(format), ...(typeof verbosity === "string" && { verbosity }) };
  return Object.keys(text).length === 0 ? {} : { text };
}

function toFormat(format: unknown): Loose {
  if (!isRecord(format)) return {};
  if (format.type !== "json_schema" || !isRecord(format.json_schema)) return { format: { type: format.type } };
  return { format: { type: "json_schema", ...format.json_schema } };
}

function recordsOf(value: unknown): readonly Loose[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}
