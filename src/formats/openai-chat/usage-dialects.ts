/**
 * Names and places of amounts in `usage` objects. One table for all servers: a new dialect is a line here, without a change of `usage.ts`.
 * Unknown names are reported to the operator once.
 *
 * Sources: the vendors' API references and recorded answers; the vendor of a name is noted beside it. Names without one are OpenAI's.
 */
import { isRecord } from "../../lib/json.js";
import { withFields } from "../../lib/own-values.js";

/** The meaning of a name. Of several amounts with one meaning, the larger one counts. */
export type UsageMeaning =
  | "promptTotal"
  | "inputTotal"
  | "output"
  | "total"
  | "cached"
  /** Beside `input_tokens`, not included, as in Anthropic's own format. */
  | "cachedBeside"
  | "written"
  | "writtenBeside"
  | "writtenShort"
  | "writtenHour"
  | "inputAudio"
  | "inputImage"
  | "inputVideo"
  /** Audio of a prompt in seconds, whose tokens are only in the total. */
  | "inputAudioSeconds"
  | "inputMore"
  | "reasoning"
  /** At the top of the object, where some servers include it in the output and others do not. */
  | "reasoningAbove"
  | "outputAudio"
  | "outputImage";

/** Known and ignored: derived amounts, times, costs, tiers. */
export const UNREAD = "unread";
/** An object with names of its own. */
interface Holder {
  readonly holds: UsageTable;
}
export type UsageTable = ReadonlyMap<string, UsageMeaning | typeof UNREAD | Holder>;

type Names = Readonly<Partial<Record<UsageMeaning | typeof UNREAD, readonly string[]>>>;

function table(names: Names, holders: readonly (readonly [UsageTable, readonly string[]])[] = []): UsageTable {
  const meanings = new Map<string, UsageMeaning | typeof UNREAD | Holder>();
  for (const [meaning, each] of Object.entries(names) as [UsageMeaning | typeof UNREAD, readonly string[]][]) {
    for (const name of each) meanings.set(name, meaning);
  }
  for (const [holds, each] of holders) for (const name of each) meanings.set(name, { holds });
  return meanings;
}

/** Cache writes by lifetime: Anthropic's names, which Qwen and OpenRouter also use. */
const LIFETIMES = table({ writtenShort: ["ephemeral_5m_input_tokens"], writtenHour: ["ephemeral_1h_input_tokens"] });
const LIFETIME_HOLDERS = [LIFETIMES, ["cache_creation", "cache_creation_token_details"]] as const;

const INPUT_DETAILS = table(
  {
    cached: ["cached_tokens", "cache_read_input_tokens", "cache_read_tokens", "cached_read_tokens"],
    written: [
      "cache_write_tokens", // OpenRouter
      "cache_creation_tokens", // LiteLLM
      "cache_creation_input_tokens", // Qwen
      "cached_write_tokens", // Envoy AI Gateway
      "cached_creation_tokens", // New API
      "cache_write_input_tokens",
    ],
    inputAudio: ["audio_tokens"],
    inputImage: ["image_tokens"],
    inputVideo: ["video_tokens"], // Qwen, OpenRouter
    unread: ["text_tokens", "cache_type", "cached_tokens_details", "tool_tokens", "file_tokens", "audio_length_seconds", "character_count"],
  },
  [LIFETIME_HOLDERS],
);

const OUTPUT_DETAILS = table({
  reasoning: ["reasoning_tokens", "thinking_tokens"],
  outputAudio: ["audio_tokens"],
  outputImage: ["image_tokens"],
  unread: ["text_tokens", "accepted_prediction_tokens", "rejected_prediction_tokens", "video_tokens"],
});

/** A `usage` object of OpenAI's formats. */
export const USAGE: UsageTable = table(
  {
    promptTotal: ["prompt_tokens"],
    // Responses, images and transcriptions; Anthropic.
    inputTotal: ["input_tokens"],
    output: ["completion_tokens", "output_tokens"],
    total: ["total_tokens"],
    cached: [
      "prompt_cache_hit_tokens", // DeepSeek
      "cached_tokens", // Moonshot, Together
      "num_cached_tokens", // Mistral
    ],
    cachedBeside: ["cache_read_input_tokens"], // Anthropic, LiteLLM
    written: ["cache_write_tokens", "cached_write_tokens"],
    writtenBeside: ["cache_creation_input_tokens"], // Anthropic, LiteLLM, Qwen
    writtenShort: ["claude_cache_creation_5_m_tokens"], // New API
    writtenHour: ["claude_cache_creation_1_h_tokens"],
    inputAudioSeconds: ["prompt_audio_seconds"], // Mistral
    inputMore: ["citation_tokens"], // Perplexity bills them as input
    reasoningAbove: ["reasoning_tokens"], // Perplexity beside the output, SGLang among it
    unread: [
      "prompt_cache_miss_tokens", // DeepSeek
      ...["queue_time", "prompt_time", "completion_time", "total_time"], // Groq
      ...["num_sources_used", "num_server_side_tools_used", "server_side_tool_usage_details", "context_details", "cost_in_usd_ticks"], // xAI
      ...["cost", "cost_details", "is_byok", "server_tool_use_details"], // OpenRouter
      ...["server_tool_use", "service_tier", "inference_geo", "iterations", "speed"], // Anthropic
      ...["num_search_queries", "search_context_size"], // Perplexity
      ...["extra_properties", "total_characters", "character_count", "request_count", "plugins"], // Google, MiniMax, Qwen
      ...["type", "seconds", "usage_semantic", "usage_source", "estimated_cost", "pages_processed", "doc_size_bytes"],
    ],
  },
  [
    [INPUT_DETAILS, ["prompt_tokens_details", "input_tokens_details", "prompt_token_details", "input_token_details"]],
    [OUTPUT_DETAILS, ["completion_tokens_details", "output_tokens_details", "completion_token_details", "output_token_details"]],
    LIFETIME_HOLDERS,
  ],
);

/**
 * The `usage` object of an answer or a chunk; undefined or null without one: at the top, in a choice (Moonshot's streams), under `x_groq`
 * (Groq's streams).
 */
export function usageIn(object: Readonly<Record<string, unknown>>): unknown {
  const { usage, choices, x_groq: groq } = object;
  if (usage !== undefined && usage !== null) return usage;
  if (Array.isArray(choices)) {
    for (const choice of choices) if (isRecord(choice) && choice.usage !== undefined && choice.usage !== null) return choice.usage;
  }
  return isRecord(groq) ? groq.usage : usage;
}

/** The object without its report, which `usageIn` finds; the object itself without one. A chunk that is not the last has no usage. */
export function withoutUsage<Holder extends Readonly<Record<string, unknown>>>(object: Holder): Holder {
  const { usage, choices, x_groq: groq } = object;
  const more: Record<string, unknown> = {};
  if (usage !== undefined && usage !== null) more.usage = null;
  if (Array.isArray(choices) && choices.some(reports)) {
    more.choices = choices.map((choice) => (reports(choice) ? withFields(choice, { usage: undefined }) : choice));
  }
  if (reports(groq)) more.x_groq = withFields(groq, { usage: undefined });
  return Object.keys(more).length === 0 ? object : (withFields(object, more) as Holder);
}

function reports(value: unknown): value is Readonly<Record<string, unknown>> {
  return isRecord(value) && value.usage !== undefined && value.usage !== null;
}

// Vendors with packages (`providers/ai-sdk`): parts that the packages' reports leave out.

/** Cohere's `usage`: billed units, tokens, and cached tokens. */
export const COHERE_USAGE: UsageTable = table({ unread: ["billed_units", "tokens", "cached_tokens"] });

/** Gemini's `usageMetadata`. Lists by modality have the kinds that the package adds up. */
export const GOOGLE_USAGE: UsageTable = table({
  unread: [
    ...["promptTokenCount", "candidatesTokenCount", "totalTokenCount", "cachedContentTokenCount", "thoughtsTokenCount"],
    ...["toolUsePromptTokenCount", "trafficType", "serviceTier"],
    ...["promptTokensDetails", "cacheTokensDetails", "candidatesTokensDetails", "toolUsePromptTokensDetails"],
  ],
});
