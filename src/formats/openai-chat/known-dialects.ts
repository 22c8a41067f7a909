/**
 * Dialects of well-known vendors, from their API references and the errors that they answer (November 2026). Most of them read past
 * unknown fields; those of a list of message fields refuse them.
 */
import { type ChatDialect, COMMON, NATIVE } from "./dialect.js";

/**
 * Refuses every field that its reference does not name (422 `extra_forbidden`), and reports usage of each stream unasked. Thoughts are
 * parts of the content (`ThinkChunk`).
 */
const MISTRAL: ChatDialect = {
  ...COMMON,
  thoughts: "content",
  thoughtDetails: false,
  renamesCap: true,
  streamOptions: false,
  refuses: fields("user store logprobs top_logprobs logit_bias service_tier verbosity modalities audio safety_identifier"),
  names: new Map([["seed", "random_seed"]]),
  messageFields: fields("role content tool_calls tool_call_id prefix tool.name"),
};

/** "OpenAI Compatibility": 400 for log probabilities, biases and names in messages. Refuses `reasoning_content`, takes `reasoning`. */
const GROQ: ChatDialect = {
  ...COMMON,
  thoughts: "reasoning",
  thoughtDetails: false,
  outputCap: "max_completion_tokens",
  refuses: fields("logprobs top_logprobs logit_bias"),
  messageFields: fields("role content tool_calls tool_call_id reasoning function_call"),
};

/** Knows `max_tokens` alone, contents of text alone, and refuses other roles than four ("unknown variant"). */
const DEEPSEEK: ChatDialect = { ...COMMON, thoughts: "reasoning_content", thoughtDetails: false, renamesCap: true, content: "text" };

/** `max_tokens` is its older name. */
const XAI: ChatDialect = { ...COMMON, thoughts: "reasoning_content", thoughtDetails: false, outputCap: "max_completion_tokens" };

/** Refuses earlier tool calls without `reasoning_content` while it thinks. `max_tokens` is its older name. */
const MOONSHOT: ChatDialect = { ...COMMON, thoughts: "reasoning_content", thoughtDetails: false, outputCap: "max_completion_tokens" };

const ZAI: ChatDialect = { ...COMMON, thoughts: "reasoning_content", thoughtDetails: false, renamesCap: true };

/** Refuses unknown fields (400 `wrong_api_format`), `reasoning_content` included; takes `reasoning`. */
const CEREBRAS: ChatDialect = {
  ...COMMON,
  thoughts: "reasoning",
  thoughtDetails: false,
  outputCap: "max_completion_tokens",
  renamesCap: true,
  refuses: fields("frequency_penalty presence_penalty logit_bias service_tier store verbosity"),
  messageFields: fields("role content name tool_calls tool_call_id reasoning"),
};

/** Gives signed thoughts back to the model that wrote them. */
const OPENROUTER: ChatDialect = { ...COMMON, thoughts: "reasoning" };

/** Google's OpenAI address. Its third generation refuses earlier tool calls without their thought signatures. */
const GOOGLE: ChatDialect = { ...COMMON, needsSignatures: true };

/** By the vendors' ids in the bundled catalog. OpenAI's address is often replaced by that of another server, so its host counts. */
const OF_VENDOR: ReadonlyMap<string, ChatDialect> = new Map([
  ["mistral", MISTRAL],
  ["groq", GROQ],
  ["deepseek", DEEPSEEK],
  ["xai", XAI],
  ["moonshot", MOONSHOT],
  ["zai", ZAI],
  ["cerebras", CEREBRAS],
  ["openrouter", OPENROUTER],
]);

/** By host; subdomains included. */
const OF_HOST: readonly (readonly [host: string, dialect: ChatDialect])[] = [
  ["openai.com", NATIVE],
  ["openai.azure.com", NATIVE],
  ["cognitiveservices.azure.com", NATIVE],
  ["services.ai.azure.com", NATIVE],
  ["mistral.ai", MISTRAL],
  ["groq.com", GROQ],
  ["deepseek.com", DEEPSEEK],
  ["x.ai", XAI],
  ["moonshot.ai", MOONSHOT],
  ["moonshot.cn", MOONSHOT],
  ["z.ai", ZAI],
  ["bigmodel.cn", ZAI],
  ["cerebras.ai", CEREBRAS],
  ["openrouter.ai", OPENROUTER],
  ["generativelanguage.googleapis.com", GOOGLE],
  ["aiplatform.googleapis.com", GOOGLE],
];

/** Vertex AI has a host for each region. */
const VERTEX_SUFFIX = "-aiplatform.googleapis.com";

/** The dialect of an upstream, by its vendor in the bundled catalog or else by its host. */
export function dialectOf(host: string, vendor?: string): ChatDialect {
  const known = vendor === undefined ? undefined : OF_VENDOR.get(vendor);
  if (known === undefined && host.endsWith(VERTEX_SUFFIX)) return GOOGLE;
  return known ?? OF_HOST.find(([name]) => host === name || host.endsWith(`.${name}`))?.[1] ?? COMMON;
}

function fields(names: string): ReadonlySet<string> {
  return new Set(names.split(" "));
}
