/** A chat-completions body as a call of the package. Options that it cannot express become warnings. */
import type { LanguageModelV3CallOptions, LanguageModelV3FunctionTool, SharedV3ProviderOptions } from "@ai-sdk/provider";
import type { ChatBody } from "../../formats/openai-chat/schema.js";
import { isRecord } from "../../lib/json.js";
import { ownValue } from "../../lib/own-values.js";
import { statedOptions } from "./client.js";
import { toPrompt } from "./prompt.js";
import type { Vendor } from "./vendor.js";

export interface ChatRequest {
  readonly options: LanguageModelV3CallOptions;
  readonly warnings: readonly string[];
}

/** Fields that are translated, that upstreams do not use, or that state the default. */
const EXPRESSED = new Set([
  "model",
  "messages",
  "stream",
  "stream_options",
  "temperature",
  "top_p",
  "top_k",
  "seed",
  "max_tokens",
  "max_completion_tokens",
  "presence_penalty",
  "frequency_penalty",
  "stop",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "response_format",
  "reasoning_effort",
  "provider_options",
  "providerOptions",
  "safe",
  "user",
]);
/** Values that request nothing. */
const IDLE: Readonly<Record<string, unknown>> = { n: 1, logprobs: false, top_logprobs: 0, store: false };

export function toRequest(body: ChatBody, vendor: Vendor, model: string): ChatRequest {
  const { optionsName, chat = {} } = vendor;
  const { prompt, warnings } = toPrompt(body, { optionsName, hasCacheControl: chat.hasCacheControl ?? false });
  const notes = [...warnings, ...unexpressed(body)];
  const options: LanguageModelV3CallOptions = {
    prompt: chat.asksForJson && wantsAnyJson(body) ? [JSON_INSTRUCTION, ...prompt] : prompt,
    ...numbers(body),
    ...stopSequences(body),
    ...(chat.asksForJson && wantsAnyJson(body) ? {} : toResponseFormat(body)),
    ...toTools(body, notes),
  };
  options.providerOptions = { [optionsName]: ownOptions(body, vendor, model, notes) } as SharedV3ProviderOptions;
  return { options, warnings: notes };
}

function unexpressed(body: ChatBody): string[] {
  const isAsked = ([name, value]: [string, unknown]) => value !== undefined && value !== null && value !== ownValue(IDLE, name);
  const names = Object.entries(body).filter((entry) => !EXPRESSED.has(entry[0]) && isAsked(entry));
  return names.map(([name]) => (name === "n" ? "n: this upstream gives one choice." : `${name}: this upstream has no such option.`));
}

const NUMBERS = {
  temperature: "temperature",
  top_p: "topP",
  top_k: "topK",
  seed: "seed",
  presence_penalty: "presencePenalty",
  frequency_penalty: "frequencyPenalty",
  max_tokens: "maxOutputTokens",
  max_completion_tokens: "maxOutputTokens",
} as const;

function numbers(body: ChatBody): Partial<LanguageModelV3CallOptions> {
  const stated = Object.entries(NUMBERS).map(([name, option]) => [option, ownValue(body, name)] as const);
  return Object.fromEntries(stated.filter(([, value]) => typeof value === "number"));
}

function stopSequences({ stop }: ChatBody): Partial<LanguageModelV3CallOptions> {
  if (typeof stop === "string") return { stopSequences: [stop] };
  return Array.isArray(stop) && stop.length > 0 ? { stopSequences: stop.map(String) } : {};
}

const JSON_INSTRUCTION = { role: "system", content: "Answer with one JSON object and with nothing else." } as const;

function wantsAnyJson({ response_format: format }: ChatBody): boolean {
  return isRecord(format) && format.type === "json_object";
}

function toResponseFormat({ response_format: format }: ChatBody): Partial<LanguageModelV3CallOptions> {
  if (!isRecord(format)) return {};
  if (format.type === "json_object") return { responseFormat: { type: "json" } };
  if (format.type !== "json_schema" || !isRecord(format.json_schema)) return {};
  const { schema, name, description } = format.json_schema;
  return {
    responseFormat: {
      type: "json",
      ...(isRecord(schema) && { schema }),
      ...(typeof name === "string" && { name }),
      ...(typeof description === "string" && { description }),
    },
  };
}

function toTools(body: ChatBody, notes: string[]): Partial<LanguageModelV3CallOptions> {
  const stated = Array.isArray(body.tools) ? body.tools.filter(isRecord) : [];
  const tools = stated.flatMap((tool): LanguageModelV3FunctionTool[] => {
    if (tool.type === "function" && isRecord(tool.function)) return [toTool(tool.function)];
    notes.push(`tools: this upstream has no tool of type ${JSON.stringify(tool.type)}.`);
    return [];
  });
  if (tools.length === 0) return {};
  return { tools, ...toToolChoice(body.tool_choice) };
}

function toTool(definition: Readonly<Record<string, unknown>>): LanguageModelV3FunctionTool {
  const { name, description, parameters, strict } = definition;
  return {
    type: "function",
    name: String(name ?? ""),
    inputSchema: isRecord(parameters) ? parameters : { type: "object", properties: {} },
    ...(typeof description === "string" && { description }),
    ...(strict === true && { strict }),
  };
}

function toToolChoice(choice: unknown): Partial<LanguageModelV3CallOptions> {
  if (choice === "auto" || choice === "none" || choice === "required") return { toolChoice: { type: choice } };
  if (isRecord(choice) && isRecord(choice.function)) return { toolChoice: { type: "tool", toolName: String(choice.function.name ?? "") } };
  return {};
}

/** The vendor's options: OpenAI's fields translated, then the client's own options for this vendor. */
function ownOptions(body: ChatBody, vendor: Vendor, model: string, notes: string[]): Record<string, unknown> {
  const { chat = {}, optionsName } = vendor;
  const own: Record<string, unknown> = {};
  const { reasoning_effort: effort, parallel_tool_calls: isParallel, user } = body;
  if (typeof effort === "string") {
    const reasoning = chat.reasoning?.(effort, model) ?? null;
    if (reasoning === null) notes.push(`reasoning_effort: this upstream has no effort ${JSON.stringify(effort.slice(0, 50))}.`);
    else Object.assign(own, reasoning);
  }
  if (typeof user === "string") {
    if (chat.user) Object.assign(own, chat.user(user));
    else notes.push("user: this upstream has no such option.");
  }
  if (isParallel === false) {
    if (chat.serialTools) Object.assign(own, chat.serialTools);
    else notes.push("parallel_tool_calls: this upstream has no such option.");
  }
  return { ...own, ...statedOptions(body, optionsName) };
}
