/** A chat as a request of Anthropic's Messages format, for an upstream that speaks it. Options that it cannot express become warnings. */
import { isRecord, recordsOf } from "../../lib/json.js";
import { ownValue } from "../../lib/own-values.js";
import type { ChatBody } from "../openai-chat/schema.js";
import { extraOf, isClientTool } from "./extra.js";
import { lacksThoughts, toHistory, type UpstreamHistory } from "./upstream-messages.js";
import { type ClaudeTraits, traitsOf } from "./upstream-models.js";
import { readOptions, type UpstreamOptions } from "./upstream-options.js";
import { marked } from "./upstream-parts.js";
import { fitsDecoder, toDecoderSchema } from "./upstream-schema.js";
import { writeThinking } from "./upstream-thinking.js";

type Loose = Readonly<Record<string, unknown>>;

export interface MessagesRequest {
  readonly fields: Readonly<Record<string, unknown>> & Pick<UpstreamHistory, "messages">;
  /** For the header `anthropic-beta`. */
  readonly betas: readonly string[];
  readonly warnings: readonly string[];
}

export interface MessagesRequestOptions {
  readonly isStreamed: boolean;
  /** Earlier thoughts and thinking are left out, because the upstream refused a signature. */
  readonly withoutThoughts?: boolean;
}

/** Fields that are translated, that upstreams do not use, or that state the default. */
const EXPRESSED: ReadonlySet<string> = new Set([
  ...["model", "messages", "stream", "stream_options", "temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "stop"],
  ...["tools", "tool_choice", "parallel_tool_calls", "response_format", "reasoning_effort", "provider_options", "providerOptions"],
  ...["safe", "user"],
]);
/** Values that request nothing. */
const IDLE: Readonly<Record<string, unknown>> = { n: 1, logprobs: false, top_logprobs: 0, store: false };
const TEMPERATURE_MAX = 1;
/** The least that a thinking model takes. */
const THINKING_TOP_P_MIN = 0.95;
const ANY_JSON = "Answer with one JSON object and with nothing else.";

/** Throws a ProviderError of status 400 for content that the format cannot hold. */
export function toMessagesRequest(
  body: ChatBody,
  model: string,
  { isStreamed, withoutThoughts = false }: MessagesRequestOptions,
): MessagesRequest {
  const traits = traitsOf(model);
  const options = readOptions(body);
  const history = toHistory(body.messages, { withoutThoughts: withoutThoughts || !options.sendsThoughts });
  const tools = toTools(body, options, traits);
  const format = toFormat(body, options, traits);
  const cap = body.max_completion_tokens ?? body.max_tokens;
  const maxTokens = typeof cap === "number" ? cap : traits.outputTokensMax;
  const written = writeThinking(
    {
      effort: withoutThoughts ? "none" : typeof body.reasoning_effort === "string" ? body.reasoning_effort : null,
      thinking: withoutThoughts ? null : options.thinking,
      output: { ...format.output, ...options.output },
      maxTokens,
      lacksThoughts: lacksThoughts(history.messages),
      forcesTool: tools.isForced,
    },
    traits,
  );
  const sampling = toSampling(body, traits, written.isThinking);
  const system = format.instruction === null ? history.system : [{ type: "text", text: format.instruction }, ...history.system];
  const fields = {
    ...(typeof body.user === "string" && { metadata: { user_id: body.user } }),
    ...options.fields,
    model,
    max_tokens: maxTokens,
    ...sampling.fields,
    ...stopSequences(body),
    ...(written.thinking !== null && { thinking: written.thinking }),
    ...(Object.keys(written.output).length > 0 && { output_config: written.output }),
    ...(system.length > 0 && { system }),
    messages: history.messages,
    ...tools.fields,
    ...(isStreamed && { stream: true }),
  };
  const warnings = [
    ...history.warnings,
    ...unexpressed(body),
    ...sampling.warnings,
    ...tools.warnings,
    ...format.warnings,
    ...written.warnings,
  ];
  return { fields, betas: options.betas, warnings };
}

function unexpressed(body: ChatBody): string[] {
  const isAsked = ([name, value]: [string, unknown]) => value !== undefined && value !== null && value !== ownValue(IDLE, name);
  const names = Object.entries(body).filter((entry) => !EXPRESSED.has(entry[0]) && isAsked(entry));
  return names.map(([name]) => (name === "n" ? "n: this upstream gives one choice." : `${name}: this upstream has no such option.`));
}

interface Written {
  readonly fields: Loose;
  readonly warnings: readonly string[];
}

function toSampling(body: ChatBody, { hasSampling }: ClaudeTraits, isThinking: boolean): Written {
  const { temperature, top_p: topP, top_k: topK } = body;
  const stated = Object.entries({ temperature, top_p: topP, top_k: topK }).filter(([, value]) => typeof value === "number");
  if (!hasSampling) return { fields: {}, warnings: stated.map(([name]) => `${name} has no effect on this model.`) };
  const fields: Record<string, unknown> = {};
  const warnings: string[] = [];
  if (typeof temperature === "number") {
    if (temperature > TEMPERATURE_MAX)
      warnings.push(`temperature: the most that this upstream takes is ${TEMPERATURE_MAX}, which was sent.`);
    if (isThinking && temperature !== TEMPERATURE_MAX) warnings.push("temperature has no effect while this model thinks.");
    else fields.temperature = Math.min(temperature, TEMPERATURE_MAX);
  }
  if (typeof topP === "number") {
    if (isThinking && topP < THINKING_TOP_P_MIN) warnings.push("top_p has no effect while this model thinks.");
    else fields.top_p = topP;
  }
  if (typeof topK === "number") {
    if (isThinking) warnings.push("top_k has no effect while this model thinks.");
    else fields.top_k = topK;
  }
  return { fields, warnings };
}

function stopSequences({ stop }: ChatBody): Loose {
  if (typeof stop === "string") return { stop_sequences: [stop] };
  return Array.isArray(stop) && stop.length > 0 ? { stop_sequences: stop.map(String) } : {};
}

interface WrittenTools extends Written {
  /** A call is demanded. */
  readonly isForced: boolean;
}

function toTools(body: ChatBody, { isSerial }: UpstreamOptions, traits: ClaudeTraits): WrittenTools {
  const warnings: string[] = [];
  const tools = recordsOf(body.tools).flatMap((tool) => {
    const sent = toTool(tool, traits);
    if (sent === null) warnings.push(`tools: this upstream has no tool of type ${JSON.stringify(tool.type)}.`);
    return sent ?? [];
  });
  if (tools.length === 0) return { fields: {}, warnings, isForced: false };
  const choice = toChoice(body.tool_choice, traits, warnings);
  const disable = (body.parallel_tool_calls === false || isSerial) && choice?.type !== "none";
  const stated = disable ? { ...(choice ?? { type: "auto" }), disable_parallel_tool_use: true } : choice;
  const isForced = choice?.type === "any" || choice?.type === "tool";
  return { fields: { tools, ...(stated !== null && { tool_choice: stated }) }, warnings, isForced };
}

/** Tools that the vendor runs and bills, which have a price in the model's entry (services/catalog/request-rates.ts). */
const SERVER_TOOL = /^[a-z_]{1,40}_\d{8}$/;

/** Null for a tool that the format does not have. */
function toTool(tool: Loose, { hasStructuredOutput }: ClaudeTraits): Loose | null {
  const { client_tool: clientTool } = extraOf(tool);
  if (isRecord(clientTool) && isClientTool(clientTool.type)) return clientTool;
  if (typeof tool.type === "string" && SERVER_TOOL.test(tool.type)) return tool;
  if (tool.type !== "function" || !isRecord(tool.function)) return null;
  const { name, description, parameters, strict } = tool.function;
  const sent = {
    name: String(name ?? ""),
    ...(typeof description === "string" && { description }),
    input_schema: isRecord(parameters) ? { type: "object", ...parameters } : { type: "object", properties: {} },
    ...(strict === true && hasStructuredOutput && { strict }),
    ...toolFields(extraOf(tool).fields),
  };
  return marked(sent, tool);
}

/** Fields of a tool that change no price. */
const TOOL_FIELDS = ["defer_loading", "eager_input_streaming", "input_examples", "allowed_callers"] as const;

function toolFields(fields: unknown): Loose {
  if (!isRecord(fields)) return {};
  return Object.fromEntries(TOOL_FIELDS.map((name) => [name, fields[name]]).filter(([, value]) => value != null));
}

function toChoice(choice: unknown, { canForceTools }: ClaudeTraits, warnings: string[]): Loose | null {
  if (choice === "auto" || choice === "none") return { type: choice };
  const named = isRecord(choice) && isRecord(choice.function) ? { type: "tool", name: String(choice.function.name ?? "") } : null;
  const forced = choice === "required" ? { type: "any" } : named;
  if (forced === null || canForceTools) return forced;
  warnings.push("tool_choice: this model cannot be made to call a tool; it decides by itself.");
  return { type: "auto" };
}

interface WrittenFormat {
  /** For `output_config`. */
  readonly output: Loose;
  /** Asks for the format in words; null: not needed. */
  readonly instruction: string | null;
  readonly warnings: readonly string[];
}

const NO_FORMAT: WrittenFormat = { output: {}, instruction: null, warnings: [] };

function toFormat({ response_format: format }: ChatBody, options: UpstreamOptions, { hasStructuredOutput }: ClaudeTraits): WrittenFormat {
  if (!isRecord(format) || isRecord(options.output.format)) return NO_FORMAT;
  if (format.type === "json_object") return { ...NO_FORMAT, instruction: ANY_JSON };
  if (format.type !== "json_schema" || !isRecord(format.json_schema)) return NO_FORMAT;
  const { schema } = format.json_schema;
  if (!isRecord(schema)) return { ...NO_FORMAT, instruction: ANY_JSON };
  if (hasStructuredOutput && fitsDecoder(schema)) {
    return { ...NO_FORMAT, output: { format: { type: "json_schema", schema: toDecoderSchema(schema) } } };
  }
  const instruction = `Answer with one JSON value of this schema and with nothing else:\n${JSON.stringify(schema)}`;
  return { ...NO_FORMAT, instruction, warnings: ["response_format: this model is asked for the schema in words, and may not keep to it."] };
}
