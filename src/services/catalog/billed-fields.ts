/**
 * Billed fields of a request: a vendor has another price for them, or another model answers because of them
 * (docs/spec/credits.md#billed-fields). Unknown fields are passed on to the upstream, but billed ones never at the base price: they are
 * refused by name unless the model's entry prices them (`pricedFields`). One table per request format; a field that turns out to change a
 * price belongs in one of them, and is then checked wherever the format is used (request-rates.ts).
 */
import type { ImagePricing, Modality } from "./modality.js";
import type { RateCard, StatedPrices } from "./pricing.js";

/** Properties of a model that decide whether a value has a price. */
export interface BilledModel {
  readonly prices: StatedPrices;
  readonly outputModalities: readonly string[];
  readonly imagePricing: ImagePricing;
  readonly rates: Pick<RateCard, "isFree">;
}

export interface BilledField {
  /** As written in the body, and in `pricedFields`. */
  readonly name: string;
  /** Whether this value changes neither price nor model; null never does. */
  readonly isHarmless: (value: unknown, model: BilledModel) => boolean;
  /** Those values, as a client would write them; empty for none. */
  readonly harmless: string;
}

/** Requests repeat the same few fields. Remembers the first names, up to a bound, which clients cannot exceed. */
const CANONICAL_NAMES_MAX = 1_000;
const CANONICAL_NAME_CHARS_MAX = 64;
const canonicalNames = new Map<string, string>();

/** Upstreams differ in reading `service_tier`, `serviceTier` or `Service_Tier`, and a form's lists are `models[]`. */
export function canonicalName(name: string): string {
  const known = canonicalNames.get(name);
  if (known !== undefined) return known;
  const canonical = (name.split(/[[.]/, 1)[0] ?? "").replaceAll(/[_-]/g, "").toLowerCase();
  if (canonicalNames.size < CANONICAL_NAMES_MAX && name.length <= CANONICAL_NAME_CHARS_MAX) canonicalNames.set(name, canonical);
  return canonical;
}

function field(name: string, harmless = "", isHarmless: BilledField["isHarmless"] = () => false): BilledField {
  return { name, harmless, isHarmless };
}

/** Harmless with one of these values; a form's are texts. */
function unless(name: string, ...values: readonly (string | number | boolean)[]): BilledField {
  const texts = values.map(String);
  const isListed = (value: unknown) => (typeof value === "object" ? false : texts.includes(String(value)));
  return field(name, values.map((value) => JSON.stringify(value)).join(" or "), isListed);
}

/** Harmless when empty. */
function list(name: string): BilledField {
  return field(name, "[]", (value) => (Array.isArray(value) ? value.length === 0 : value === "" || value === "[]"));
}

function table(...fields: readonly BilledField[]): ReadonlyMap<string, BilledField> {
  return new Map(fields.map((each) => [canonicalName(each.name), each]));
}

/**
 * Fields that select another vendor, model or tier, or store or look up data, read by routers and vendors in any format. Sources: the API
 * references of OpenAI, Azure OpenAI (`data_sources`, `enhancements`), OpenRouter, LiteLLM (`*_fallbacks`, `user_config`, `cache`), Bedrock
 * (`guardrailConfig`, `performance_config`), Alibaba's Model Studio (`enable_search`, `enable_thinking`), Volcengine Ark (`caching`) and
 * Groq (`compound_custom`, `search_settings`).
 */
const EVERYWHERE: readonly BilledField[] = [
  unless("service_tier", "auto", "default"),
  ...["models", "plugins", "transforms", "fallbacks", "fallback_models", "model_list", "context_window_fallbacks"].map(list),
  ...["content_policy_fallbacks", "guardrails", "connectors"].map(list),
  ...["route", "provider", "preset", "inference_geo", "performance_config", "performance", "custom_llm_provider", "deployment_id"].map(
    (name) => field(name),
  ),
  ...["model_id", "model_name", "model_version", "engine", "agent_id", "tier", "user_config", "context_window_fallback_dict"].map((name) =>
    field(name),
  ),
  ...["extra_body", "extra_headers", "extra_query", "api_base", "base_url", "api_key", "api_version"].map((name) => field(name)),
  ...["web_search_options", "search_parameters", "search_settings", "search_options", "compound_custom"].map((name) => field(name)),
  ...["guardrail_config", "amazon-bedrock-guardrailConfig", "model_armor_config"].map((name) => field(name)),
  ...["data_sources", "enhancements", "caching", "cache"].map((name) => field(name)),
  unless("priority", 0),
  ...["web_search", "enable_search", "force_search_enhancement", "search", "online", "grounding", "google_search", "web_fetch"].map(
    (name) => unless(name, false),
  ),
  ...["url_context", "file_search", "code_execution", "code_interpreter", "enable_code_interpreter"].map((name) => unless(name, false)),
  unless("store", false),
];

/** Other names for `n`. */
const COUNTS: readonly BilledField[] = [
  ...["num_images", "num_outputs", "number_of_images", "sample_count", "samples", "batch_size", "num_samples", "n_iter", "count"],
  ...["num_images_per_prompt", "batch_count", "max_images", "num_results", "number_results", "num_generations", "num_variations"],
  ...["image_count", "candidate_count", "num_return_sequences", "num_completions", "num_choices"],
].map((name) => unless(name, 1));

/** Audio costs more than text, whose price is its fallback; images in an answer must be an output modality of the entry. */
function isGiven(kind: unknown, { outputModalities, prices }: BilledModel): boolean {
  if (kind === "text") return true;
  if (kind === "audio") return prices.completionAudioPrice !== undefined;
  return typeof kind === "string" && outputModalities.includes(kind);
}

/** For models whose reasoning has another price per token, such as Qwen's; harmless for free models. */
function thinks(name: string, harmless: string, isOff: (value: unknown) => boolean): BilledField {
  return field(name, harmless, (value, { rates }) => rates.isFree || isOff(value));
}

function isEmptyObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

const CHAT = table(
  ...EVERYWHERE,
  ...COUNTS,
  thinks("enable_thinking", "false", (value) => value === false),
  thinks("chat_template_kwargs", "{}", isEmptyObject),
  field("modalities", '["text"]', (value, model) => Array.isArray(value) && value.every((kind) => isGiven(kind, model))),
  field("audio", "", (_, model) => isGiven("audio", model)),
  // Unused tokens of a prediction are billed as output, however short the answer.
  field("prediction"),
  unless("prompt_cache_retention", "in_memory", "in-memory"),
  unless("best_of", 1),
  unless("use_beam_search", false),
  unless("speed", "standard"),
  unless("background", false),
  unless("deferred", false),
  ...["betas", "anthropic_beta", "mcp_servers"].map(list),
  // Data stored with the vendor: prompts with their own model and tools, and earlier conversations.
  ...["prompt", "conversation", "previous_response_id", "container", "cached_content", "context_management"].map((name) => field(name)),
  field("image_config"),
  // Models that read along.
  ...["safety_model", "draft_model"].map((name) => field(name)),
);

/**
 * Fields for more, larger or better images, beside `n` and `size`: Seedream's series (`sequential_image_generation`), Ideogram's
 * `rendering_speed`, Stable Diffusion's second pass (`enable_hr`), and reference images, which `image` names here.
 */
const MORE_PICTURES: readonly BilledField[] = [
  ...COUNTS,
  ...["width", "height", "resolution", "image_size", "output_resolution", "megapixels", "steps", "num_inference_steps"].map((name) =>
    field(name),
  ),
  ...["upscale", "hr_scale", "refiner", "rendering_speed", "mode", "image_config", "sequential_image_generation_options"].map((name) =>
    field(name),
  ),
  unless("sequential_image_generation", "disabled"),
  unless("enable_hr", false),
  unless("upscale_factor", 1),
  ...["loras", "tools", "image_urls", "images", "reference_images", "input_images"].map(list),
  ...["image_url", "reference_image", "image_prompt", "subject_reference"].map((name) => field(name)),
];

const IMAGE = table(
  ...EVERYWHERE,
  ...MORE_PICTURES,
  unless("partial_images", 0),
  // With prices per token, the upstream's report covers it.
  field("input_fidelity", '"low"', (value, { imagePricing }) => value === "low" || imagePricing === "tokens"),
);

/** Other names for `seconds`, and audio, modes and reference videos, which Kling, PixVerse, Veo and others bill. */
const VIDEO = table(
  ...EVERYWHERE,
  ...MORE_PICTURES,
  ...["n", "num_videos"].map((name) => unless(name, 1)),
  ...["quality", "duration", "num_seconds", "video_length", "length", "duration_seconds", "fps", "frames_per_second"].map((name) =>
    field(name),
  ),
  ...["num_frames", "frames", "remix_video_id", "video", "video_url", "extend_video"].map((name) => field(name)),
  list("videos"),
  ...["generate_audio", "with_audio", "enable_audio", "has_sound", "sound_effect", "multi_shot"].map((name) => unless(name, false)),
  unless("sound", false, "off"),
  unless("motion_mode", "normal"),
);

const PLAIN = table(...EVERYWHERE);

/** Other names for the text to speak, hear or embed, whose content would not be counted. */
const SPEECH = table(
  ...EVERYWHERE,
  ...["text", "ssml", "lyrics", "texts", "inputs", "segments", "dialogue", "script"].map((name) => field(name)),
);
/** And fields billed beside the seconds of audio: AssemblyAI's and Deepgram's analyses. */
const TRANSCRIPTION = table(
  ...EVERYWHERE,
  ...["url", "audio_url", "file_url", "file_id", "audio", "urls", "audio_urls", "file_ids", "media_url"].map((name) => field(name)),
  ...["summarize", "summarization", "sentiment", "sentiment_analysis", "detect_entities", "entity_detection", "topics"].map((name) =>
    unless(name, false),
  ),
  ...["detect_topics", "intents", "auto_chapters", "iab_categories", "content_safety", "redact", "redact_pii", "translation"].map((name) =>
    unless(name, false),
  ),
);
const EMBEDDING = table(
  ...EVERYWHERE,
  ...["texts", "inputs", "images", "content", "contents", "text", "image", "query", "queries", "documents"].map((name) => field(name)),
  ...["passages", "sentences", "instances", "requests"].map((name) => field(name)),
);

/** By modality; Responses are chats by the time of the check. */
export const BILLED_FIELDS: Readonly<Record<Modality, ReadonlyMap<string, BilledField>>> = {
  text: CHAT,
  image: IMAGE,
  video: VIDEO,
  speech: SPEECH,
  music: table(...SPEECH.values(), ...COUNTS, unless("n", 1)),
  transcription: TRANSCRIPTION,
  embedding: EMBEDDING,
  /** Checked in a session's events, which have no prices (generation/realtime/rules.ts). */
  realtime: PLAIN,
  moderation: PLAIN,
  rerank: PLAIN,
};

/** Documented fields whose values an entry may price: with a price for one value, only priced ones are allowed. */
export const PRICEABLE_FIELDS: Readonly<Partial<Record<Modality, readonly string[]>>> = { image: ["size", "quality"], video: ["size"] };

/** Values inside of other fields, by their name in `pricedFields`. */
export const TOOL_TYPE_FIELD = "tools.type";
export const NESTED_FIELDS: Readonly<Partial<Record<Modality, readonly string[]>>> = {
  text: [TOOL_TYPE_FIELD],
};

/** Tools that the client runs; a vendor runs and bills any other type. */
export const CALLER_TOOL_TYPES: ReadonlySet<string> = new Set(["function", "custom"]);
/** Keys of a tool's object by which some routers run a vendor's tool. */
export const HOSTED_TOOL_KEYS: ReadonlySet<string> = new Set(
  ["google_search", "google_search_retrieval", "enterprise_web_search", "google_maps", "url_context", "code_execution", "web_search"].map(
    canonicalName,
  ),
);

/**
 * Wishes about money by names that this gateway does not support. A client that states one relies on it, so it is refused and never passed
 * on; `max_cost` is removed from an input on entry, so one found here has no effect.
 */
export const MONEY_WISHES: ReadonlyMap<string, BilledField> = table(
  unless("dry_run", false),
  unless("quote", false),
  ...["budget", "max_price", "max_budget", "max_cost"].map((name) => field(name)),
);

/** Fields that the gateway validates, counts or replaces. Servers with case-insensitive names would read a second one. */
export const OWN_FIELDS: ReadonlySet<string> = new Set(
  [
    "model",
    "n",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "messages",
    "input",
    "prompt",
    "tools",
    "functions",
    "stream",
  ].concat([
    "size",
    "quality",
    "seconds",
    "image",
    "mask",
    "voice",
    "response_format",
    "dimensions",
    "file",
    "stream_options",
    "reasoning_effort",
  ]),
);
