/** Converts a Gemini request to a chat. */
import { invalidInput } from "../../errors.js";
import { isRecord } from "../../lib/json.js";
import { quoteStart } from "../../lib/quote-start.js";
import { explainUnread, listed, NAME_CHARS_MAX } from "../left-out.js";
import { repairHistory } from "../openai-chat/repair.js";
import type { ChatBody } from "../openai-chat/schema.js";
import { ContentsWriter } from "./contents.js";
import { toCamel } from "./field-names.js";
import { toJsonSchema } from "./json-schema.js";
import type { GeminiTool, GenerateContentRequest, GenerationConfig } from "./request.js";

type Message = Record<string, unknown>;
type Loose = Readonly<Record<string, unknown>>;

/** Fields that are converted, or that ask for nothing that a chat has. */
const READ_FIELDS: ReadonlySet<string> = new Set([
  ...["model", "contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings"],
  // For Google's own records.
  "labels",
]);
const READ_CONFIG: ReadonlySet<string> = new Set([
  ...["temperature", "topP", "topK", "candidateCount", "maxOutputTokens", "stopSequences", "responseMimeType", "responseSchema"],
  ...["responseJsonSchema", "responseModalities", "presencePenalty", "frequencyPenalty", "seed", "responseLogprobs", "logprobs"],
  "thinkingConfig",
]);
/** Options of Google's models that change no price (services/catalog/billed-options.ts). */
const OWN_OPTIONS = ["thinkingConfig", "mediaResolution", "audioTimestamp"] as const;
const READ_CONFIG_NATIVELY: ReadonlySet<string> = new Set([...READ_CONFIG, ...OWN_OPTIONS]);
/** Fields that chats have by the same name. */
const PASSED_FIELDS: ReadonlySet<string> = new Set(["safe"]);
/** Thresholds that filter nothing. */
const NO_FILTERS: ReadonlySet<unknown> = new Set(["OFF", "BLOCK_NONE", "HARM_BLOCK_THRESHOLD_UNSPECIFIED"]);
/** Thinking budgets in tokens below which the effort is low or medium. */
const LOW_BUDGET_BELOW = 4_096;
const MEDIUM_BUDGET_BELOW = 16_384;

export interface GeminiTarget {
  /** The model can be told how much to think. */
  readonly hasEffort: boolean;
  /** Every model that may answer is called in this format, so that its own options reach it. */
  readonly isNative: boolean;
  /** The model's entry has a price for a tool of this type, which Google runs. */
  isPricedTool(type: string): boolean;
  /** A chat's field of this name is refused or priced, so it is not left out. */
  concernsMoney(name: string): boolean;
}

export interface ChatOfContents {
  /** Not validated yet. */
  readonly chat: ChatBody;
  readonly warnings: readonly string[];
}

/** Throws BAD_REQUEST for content and tools that a chat cannot hold. */
export function toChat(model: string, input: GenerateContentRequest, target: GeminiTarget): ChatOfContents {
  const writer = new ContentsWriter();
  writer.addInstruction(input.systemInstruction);
  for (const [index, content] of input.contents.entries()) writer.add(content, `contents.${index}`);
  writer.end();
  const { messages, warnings: repairs } = repairHistory(writer.messages, { field: "contents", showsMediaApart: true });
  const config = input.generationConfig ?? {};
  const own = sortFields(input, READ_FIELDS, target);
  const configured = sortFields(config, target.isNative ? READ_CONFIG_NATIVELY : READ_CONFIG, target);
  const native = target.isNative ? toOwnOptions(input, config) : {};
  const chat = {
    model,
    messages,
    ...own.passed,
    ...configured.passed,
    ...toSampling(config),
    ...toTools(input, target),
    ...toResponseFormat(config),
    ...(target.isNative ? native : toEffort(config, target)),
  };
  const unread = [...own.unread, ...configured.unread.map((name) => `generationConfig.${name}`)];
  return {
    chat,
    warnings: [
      ...explainLeftOut([...writer.leftOut]),
      ...explainUnread(unread, "chat"),
      ...(target.isNative ? [] : explainSafety(input)),
      ...repairs,
    ],
  };
}

/** Fields that are not converted: those that chats have by the same name, and the rest. */
function sortFields(input: Loose, read: ReadonlySet<string>, { concernsMoney }: GeminiTarget) {
  const others = Object.entries(input).filter(([name, value]) => value != null && !read.has(name) && !isIdle(name, value));
  const isPassed = (name: string) => PASSED_FIELDS.has(name) || concernsMoney(name);
  return {
    passed: Object.fromEntries(others.filter(([name]) => isPassed(name))),
    unread: others.flatMap(([name]) => (isPassed(name) ? [] : [name])),
  };
}

/** What every request gets here. */
function isIdle(name: string, value: unknown): boolean {
  const camel = toCamel(name);
  return (camel === "serviceTier" && (value === "standard" || value === "unspecified")) || (camel === "cachedContent" && value === "");
}

function explainLeftOut(kinds: readonly string[]): readonly string[] {
  return kinds.length === 0 ? [] : [`contents: parts of the kind ${listed(kinds)} were left out: this model cannot read them.`];
}

function explainSafety({ safetySettings: settings }: GenerateContentRequest): readonly string[] {
  const isFiltered = settings?.some(({ threshold }) => threshold != null && !NO_FILTERS.has(threshold)) ?? false;
  return isFiltered ? ["safetySettings: left out, because this model has no such filters. The field safe sets those of the gateway."] : [];
}

function toSampling(config: GenerationConfig): Message {
  const { temperature, topP, topK, candidateCount, maxOutputTokens, stopSequences, presencePenalty, frequencyPenalty } = config;
  const { seed, responseLogprobs, logprobs, responseModalities: modalities } = config;
  const isPictured = modalities?.includes("IMAGE") ?? false;
  return {
    ...(temperature != null && { temperature }),
    ...(topP != null && { top_p: topP }),
    ...(topK != null && { top_k: topK }),
    ...(candidateCount != null && candidateCount !== 1 && { n: candidateCount }),
    ...(maxOutputTokens != null && { max_completion_tokens: maxOutputTokens }),
    ...(stopSequences != null && stopSequences.length > 0 && { stop: stopSequences }),
    ...(presencePenalty != null && { presence_penalty: presencePenalty }),
    ...(frequencyPenalty != null && { frequency_penalty: frequencyPenalty }),
    ...(seed != null && { seed: Math.abs(seed) }),
    ...(responseLogprobs === true && { logprobs: true, ...(logprobs != null && { top_logprobs: logprobs }) }),
    ...(isPictured && { modalities: ["text", "image"] }),
  };
}

function toOwnOptions({ safetySettings }: GenerateContentRequest, config: GenerationConfig): Message {
  const google = {
    ...Object.fromEntries(OWN_OPTIONS.flatMap((name) => (config[name] == null ? [] : [[name, config[name]]]))),
    ...(safetySettings != null && safetySettings.length > 0 && { safetySettings }),
  };
  return Object.keys(google).length === 0 ? {} : { provider_options: { google } };
}

/** The stated level, or that of the stated budget; nothing when the model decides. */
function toEffort({ thinkingConfig: thinking }: GenerationConfig, { hasEffort }: GeminiTarget): Message {
  if (thinking == null || !hasEffort) return {};
  const { thinkingLevel: level, thinkingBudget: budget } = thinking;
  if (level != null && level !== "THINKING_LEVEL_UNSPECIFIED") return { reasoning_effort: level.toLowerCase() };
  if (budget == null || budget < 0) return {};
  if (budget === 0) return { reasoning_effort: "none" };
  if (budget < LOW_BUDGET_BELOW) return { reasoning_effort: "low" };
  return { reasoning_effort: budget < MEDIUM_BUDGET_BELOW ? "medium" : "high" };
}

function toResponseFormat({ responseMimeType: type, responseSchema, responseJsonSchema }: GenerationConfig): Message {
  if (type !== "application/json") return {};
  const schema = responseJsonSchema ?? responseSchema;
  if (schema == null) return { response_format: { type: "json_object" } };
  return { response_format: { type: "json_schema", json_schema: { name: "output", schema: toJsonSchema(schema) } } };
}

function toTools({ tools, toolConfig }: GenerateContentRequest, target: GeminiTarget): Message {
  const hosted = (tools ?? []).flatMap((tool, index) => toHosted(tool, index, target));
  const declared = (tools ?? []).flatMap(({ functionDeclarations: declarations }) => declarations ?? []);
  if (declared.length === 0) return hosted.length === 0 ? {} : { tools: hosted };
  const { mode, allowedFunctionNames: allowed } = toolConfig?.functionCallingConfig ?? {};
  if (mode === "NONE") return { tools: [...declared.map(toTool), ...hosted], tool_choice: "none" };
  const names = new Set(allowed ?? []);
  const offered = names.size > 0 ? declared.filter(({ name }) => names.has(name)) : declared;
  if (offered.length === 0) throw invalidInput("None of these functions is declared in tools.", ALLOWED_PATH);
  const [only] = offered;
  const isNamed = mode === "ANY" && names.size === 1 && only !== undefined;
  const choice = isNamed ? { type: "function", function: { name: only.name } } : mode === "ANY" ? "required" : null;
  return { tools: [...offered.map(toTool), ...hosted], ...(choice !== null && { tool_choice: choice }) };
}

const ALLOWED_PATH = "toolConfig.functionCallingConfig.allowedFunctionNames";

type Declaration = NonNullable<GeminiTool["functionDeclarations"]>[number];

/** Tools that Google runs and that have a price in the model's entry. Throws BAD_REQUEST for others. */
function toHosted(tool: GeminiTool, index: number, { isNative, isPricedTool }: GeminiTarget): Message[] {
  return Object.entries(tool).flatMap(([name, value]) => {
    if (name === "functionDeclarations" || value == null) return [];
    const type = toSnake(name);
    const settings = isRecord(value) && Object.keys(value).length > 0 ? { [type]: value } : {};
    if (isNative && isPricedTool(type)) return [{ type, ...settings }];
    const named = quoteStart(name, NAME_CHARS_MAX);
    throw invalidInput(
      `The tool ${named} is run by Google and not available here. Leave it out, or declare a function of your own.`,
      `tools.${index}.${named}`,
    );
  });
}

function toSnake(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function toTool({ name, description, parameters, parametersJsonSchema }: Declaration): Message {
  const schema = parametersJsonSchema ?? parameters;
  return {
    type: "function",
    function: {
      name,
      ...(description != null && { description }),
      ...(schema != null && { parameters: toJsonSchema(schema) }),
    },
  };
}
