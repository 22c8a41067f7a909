/** A chat as a generateContent request, for an upstream that speaks Gemini's format. Options that it cannot express become warnings. */
import { isRecord, recordsOf } from "../../lib/json.js";
import { ownValue } from "../../lib/own-values.js";
import type { ChatBody } from "../openai-chat/schema.js";
import { toCamel } from "./field-names.js";
import { toUpstreamContents, type UpstreamContent } from "./upstream-contents.js";

type Loose = Readonly<Record<string, unknown>>;

export interface GeminiRequest {
  readonly fields: Loose & { readonly contents: readonly UpstreamContent[] };
  readonly warnings: readonly string[];
}

/** Fields that are translated, that upstreams do not use, or that state the default. */
const EXPRESSED: ReadonlySet<string> = new Set([
  ...["model", "messages", "stream", "stream_options", "temperature", "top_p", "top_k", "seed", "max_tokens", "max_completion_tokens"],
  ...["presence_penalty", "frequency_penalty", "stop", "n", "logprobs", "top_logprobs", "modalities", "tools", "tool_choice"],
  ...["response_format", "reasoning_effort", "provider_options", "providerOptions", "safe"],
]);
/** Values that request nothing. */
const IDLE: Readonly<Record<string, unknown>> = { store: false, parallel_tool_calls: true };
/** A chat's numbers by the format's names. */
const NUMBERS = [
  ["temperature", "temperature"],
  ["top_p", "topP"],
  ["top_k", "topK"],
  ["seed", "seed"],
  ["presence_penalty", "presencePenalty"],
  ["frequency_penalty", "frequencyPenalty"],
] as const;
/** Own options that are fields of the request; the others belong to its `generationConfig`. */
const REQUEST_OPTIONS: ReadonlySet<string> = new Set(["safetySettings", "labels", "cachedContent", "serviceTier"]);
/** Options of the AI SDK's package alone. */
const DROPPED_OPTIONS: ReadonlySet<string> = new Set(["structuredOutputs", "streamFunctionCallArguments", "threshold"]);

/** Throws a ProviderError of status 400 for content that the format cannot hold. */
export function toGeminiRequest(body: ChatBody, model: string): GeminiRequest {
  const isOlder = model.startsWith("gemini-2") || model.startsWith("gemini-1");
  const traits = { demandsSignatures: !isOlder, hasResultParts: !isOlder };
  const { instruction, contents, warnings } = toUpstreamContents(body.messages, traits);
  const notes = [...warnings, ...unexpressed(body)];
  const own = readOptions(body);
  const effort = toThinking(body.reasoning_effort, model, notes);
  const stated = own.config.thinkingConfig;
  const thinkingConfig = { ...effort, ...(isRecord(stated) && stated) };
  const generationConfig = {
    ...toSampling(body),
    ...toResponseFormat(body),
    ...own.config,
    ...(Object.keys(thinkingConfig).length > 0 && { thinkingConfig }),
  };
  const fields = {
    ...(instruction.length > 0 && { systemInstruction: { parts: instruction } }),
    contents,
    ...(Object.keys(generationConfig).length > 0 && { generationConfig }),
    ...toTools(body, notes),
    ...own.fields,
  };
  return { fields, warnings: notes };
}

function unexpressed(body: ChatBody): string[] {
  const isAsked = ([name, value]: [string, unknown]) => value !== undefined && value !== null && value !== ownValue(IDLE, name);
  const names = Object.entries(body).filter((entry) => !EXPRESSED.has(entry[0]) && isAsked(entry));
  return names.map(([name]) => `${name}: this upstream has no such option.`);
}

/** `provider_options.google`. Which options a caller may state is decided by services/catalog/billed-options.ts. */
function readOptions(body: ChatBody): { readonly fields: Loose; readonly config: Loose } {
  const all = body.provider_options ?? body.providerOptions;
  const stated = isRecord(all) && isRecord(all.google) ? Object.entries(all.google) : [];
  const options = stated
    .map(([name, value]): [string, unknown] => [toCamel(name), value])
    .filter(([name, value]) => value != null && !DROPPED_OPTIONS.has(name));
  return {
    fields: Object.fromEntries(options.filter(([name]) => REQUEST_OPTIONS.has(name))),
    config: Object.fromEntries(options.filter(([name]) => !REQUEST_OPTIONS.has(name))),
  };
}

function toSampling(body: ChatBody): Loose {
  const { n, logprobs, top_logprobs: top, modalities, stop } = body;
  const cap = body.max_completion_tokens ?? body.max_tokens;
  const stops = typeof stop === "string" ? [stop] : Array.isArray(stop) ? stop.map(String) : [];
  const kinds = Array.isArray(modalities) ? modalities.map((kind) => String(kind).toUpperCase()) : [];
  return {
    ...(typeof cap === "number" && { maxOutputTokens: cap }),
    ...Object.fromEntries(NUMBERS.flatMap(([name, own]) => (typeof body[name] === "number" ? [[own, body[name]]] : []))),
    ...(stops.length > 0 && { stopSequences: stops }),
    ...(typeof n === "number" && n > 1 && { candidateCount: n }),
    ...(logprobs === true && { responseLogprobs: true, ...(typeof top === "number" && { logprobs: top }) }),
    ...(kinds.some((kind) => kind !== "TEXT") && { responseModalities: kinds }),
  };
}

function toResponseFormat({ response_format: format }: ChatBody): Loose {
  if (!isRecord(format) || format.type === "text") return {};
  const schema = format.type === "json_schema" && isRecord(format.json_schema) ? format.json_schema.schema : null;
  return { responseMimeType: "application/json", ...(isRecord(schema) && { responseJsonSchema: schema }) };
}

function toTools(body: ChatBody, notes: string[]): Loose {
  const declared: Loose[] = [];
  const hosted: Loose[] = [];
  for (const tool of recordsOf(body.tools)) {
    if (tool.type === "function" && isRecord(tool.function)) declared.push(toDeclaration(tool.function));
    else if (typeof tool.type === "string" && HOSTED.has(tool.type)) hosted.push({ [toCamel(tool.type)]: ownValue(tool, tool.type) ?? {} });
    else notes.push(`tools: this upstream has no tool of type ${JSON.stringify(tool.type)}.`);
  }
  const tools = [...(declared.length > 0 ? [{ functionDeclarations: declared }] : []), ...hosted];
  if (tools.length === 0) return {};
  const choice = declared.length > 0 ? toChoice(body.tool_choice) : null;
  return { tools, ...(choice !== null && { toolConfig: { functionCallingConfig: choice } }) };
}

/** Tools that Google runs and bills, which have a price in the model's entry (services/catalog/request-rates.ts). */
const HOSTED: ReadonlySet<string> = new Set(["google_search", "code_execution", "url_context", "google_maps", "file_search"]);

function toDeclaration({ name, description, parameters }: Loose): Loose {
  return {
    name: String(name ?? ""),
    ...(typeof description === "string" && { description }),
    ...(isRecord(parameters) && Object.keys(parameters).length > 0 && { parametersJsonSchema: parameters }),
  };
}

function toChoice(choice: unknown): Loose | null {
  if (choice === "none") return { mode: "NONE" };
  if (choice === "required") return { mode: "ANY" };
  const named = isRecord(choice) && isRecord(choice.function) ? choice.function.name : null;
  return typeof named === "string" ? { mode: "ANY", allowedFunctionNames: [named] } : null;
}

const LEVEL_OF_EFFORT: ReadonlyMap<string, string> = new Map([
  ["none", "minimal"],
  ["minimal", "minimal"],
  ["low", "low"],
  ["medium", "medium"],
  ["high", "high"],
  ["xhigh", "high"],
  ["max", "high"],
]);
const BUDGET_OF_EFFORT: ReadonlyMap<string, number> = new Map([
  ["none", 0],
  ["minimal", 1_024],
  ["low", 2_048],
  ["medium", 8_192],
  ["high", 16_384],
  ["xhigh", 24_576],
  ["max", 24_576],
]);
const EFFORT_CHARS_MAX = 50;

/** Gemini 2.5 takes a token budget for reasoning, later generations a level. */
function toThinking(effort: unknown, model: string, notes: string[]): Loose {
  if (typeof effort !== "string") return {};
  const level = LEVEL_OF_EFFORT.get(effort);
  if (level === undefined) {
    notes.push(`reasoning_effort: this upstream has no effort ${JSON.stringify(effort.slice(0, EFFORT_CHARS_MAX))}.`);
    return {};
  }
  const includeThoughts = effort !== "none";
  if (model.startsWith("gemini-2")) return { thinkingBudget: BUDGET_OF_EFFORT.get(effort), includeThoughts };
  return { thinkingLevel: level, includeThoughts };
}
