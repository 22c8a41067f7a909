/**
 * Fields of a request that are billed: a vendor asks another price for them, or another model answers because of them
 * (docs/spec/credits.md#billed-fields). Unknown fields travel on to the upstream, but these never do at the base price:
 * they are refused by name unless the model's entry prices them (`pricedFields`). One table for each format that a request
 * may have; a field that is found to change a price belongs in one of them, and with that is looked at wherever the format
 * is spoken (`withAskedRates`).
 */
import { type AppError, invalidInput, wrongField } from "../../errors.js";
import { isRecord } from "../../lib/json.js";
import { ownValue } from "../../lib/own-values.js";
import { JSON_DEPTH_MAX } from "../../limits.js";
import { HARMLESS_OPTIONS } from "./billed-options.js";
import type { ImagePricing, Modality } from "./modality.js";
import type { Model } from "./model.js";
import { type FieldPrice, type StatedPrices, withFieldPrices } from "./pricing.js";

/** What of a model decides whether a value costs anything. */
export interface AskedModel {
  readonly prices: StatedPrices;
  readonly outputModalities: readonly string[];
  readonly imagePricing: ImagePricing;
}

export interface BilledField {
  /** As it is written in the body, and in `pricedFields`. */
  readonly name: string;
  /** Whether this value leaves the price and the model as they are; null always does. */
  readonly isHarmless: (value: unknown, model: AskedModel) => boolean;
  /** Those values, as a caller would write them; empty where there are none. */
  readonly harmless: string;
}

/** Requests name the same few fields again and again. The first names that are met are remembered, so that nobody can fill this. */
const CANONICAL_NAMES_MAX = 1_000;
const CANONICAL_NAME_CHARS_MAX = 64;
const canonicalNames = new Map<string, string>();

/** Upstreams differ in whether they read `service_tier`, `serviceTier` or `Service_Tier`, and a form's lists are `models[]`. */
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

/** Harmless when it lists nothing. */
function list(name: string): BilledField {
  return field(name, "[]", (value) => (Array.isArray(value) ? value.length === 0 : value === "" || value === "[]"));
}

function table(...fields: readonly BilledField[]): ReadonlyMap<string, BilledField> {
  return new Map(fields.map((each) => [canonicalName(each.name), each]));
}

/** Another vendor, another model, another tier, or something kept: what routers and vendors read in a body of any format. */
const EVERYWHERE: readonly BilledField[] = [
  unless("service_tier", "auto", "default"),
  ...["models", "plugins", "transforms", "fallbacks", "fallback_models", "model_list"].map(list),
  ...["route", "provider", "preset", "inference_geo", "performance_config", "custom_llm_provider", "deployment_id"].map((name) =>
    field(name),
  ),
  ...["extra_body", "extra_headers", "extra_query", "api_base", "base_url", "api_key", "api_version"].map((name) => field(name)),
  ...["web_search_options", "search_parameters", "search_settings", "search_options", "compound_custom"].map((name) => field(name)),
  unless("web_search", false),
  unless("enable_search", false),
  unless("store", false),
];

/** Sound is dearer than the text whose price it would fall back to; pictures in an answer are what the entry says that it gives. */
function isGiven(kind: unknown, { outputModalities, prices }: AskedModel): boolean {
  if (kind === "text") return true;
  if (kind === "audio") return prices.completionAudioPrice !== undefined;
  return typeof kind === "string" && outputModalities.includes(kind);
}

const CHAT = table(
  ...EVERYWHERE,
  field("modalities", '["text"]', (value, model) => Array.isArray(value) && value.every((kind) => isGiven(kind, model))),
  field("audio", "", (_, model) => isGiven("audio", model)),
  // What of a prediction is not used is billed as output, however short the answer may be.
  field("prediction"),
  unless("prompt_cache_retention", "in_memory", "in-memory"),
  unless("best_of", 1),
  unless("use_beam_search", false),
  unless("speed", "standard"),
  unless("background", false),
  unless("deferred", false),
  ...["betas", "anthropic_beta", "mcp_servers"].map(list),
  // Of what is stored with the vendor: prompts that bring their own model and tools, and what others have said.
  ...["prompt", "conversation", "previous_response_id", "container", "cached_content", "context_management"].map((name) => field(name)),
  field("image_config"),
  // Models that read along.
  ...["safety_model", "draft_model"].map((name) => field(name)),
);

/** What more or larger pictures are asked for by, beside `n` and `size`. */
const MORE_PICTURES: readonly BilledField[] = [
  ...["num_images", "num_outputs", "number_of_images", "sample_count", "samples", "batch_size"].map((name) => unless(name, 1)),
  ...["width", "height", "resolution", "image_size", "megapixels", "steps", "num_inference_steps", "upscale", "image_config"].map((name) =>
    field(name),
  ),
  list("loras"),
  list("tools"),
];

const IMAGE = table(
  ...EVERYWHERE,
  ...MORE_PICTURES,
  unless("partial_images", 0),
  // Priced by tokens, what it takes is in the upstream's report.
  field("input_fidelity", '"low"', (value, { imagePricing }) => value === "low" || imagePricing === "tokens"),
);

const VIDEO = table(
  ...EVERYWHERE,
  ...MORE_PICTURES,
  ...["n", "num_videos"].map((name) => unless(name, 1)),
  ...["quality", "duration", "fps", "frames_per_second", "num_frames", "remix_video_id"].map((name) => field(name)),
);

const PLAIN = table(...EVERYWHERE);

/** Other names for what is read out, heard or embedded: nobody would have counted what they hold. */
const SPEECH = table(...EVERYWHERE, ...["text", "ssml", "lyrics"].map((name) => field(name)));
const TRANSCRIPTION = table(...EVERYWHERE, ...["url", "audio_url", "file_url", "file_id", "audio"].map((name) => field(name)));
const EMBEDDING = table(...EVERYWHERE, ...["texts", "inputs", "images", "content"].map((name) => field(name)));

/** By what the request is for; Responses are chats by the time they are looked at. */
export const BILLED_FIELDS: Readonly<Record<Modality, ReadonlyMap<string, BilledField>>> = {
  text: CHAT,
  image: IMAGE,
  video: VIDEO,
  speech: SPEECH,
  music: table(...SPEECH.values(), unless("n", 1)),
  transcription: TRANSCRIPTION,
  embedding: EMBEDDING,
  /** Looked at in a session's events, where nothing can be priced (generation/realtime/rules.ts). */
  realtime: PLAIN,
  moderation: PLAIN,
};

/** Documented fields whose values an entry may price: with a price for one of them, only those are let through. */
export const PRICEABLE_FIELDS: Readonly<Partial<Record<Modality, readonly string[]>>> = { image: ["size", "quality"], video: ["size"] };

/** What is found inside of other fields, by the name that `pricedFields` has for it. */
export const TOOL_TYPE_FIELD = "tools.type";
export const NESTED_FIELDS: Readonly<Partial<Record<Modality, readonly string[]>>> = {
  text: [TOOL_TYPE_FIELD],
};

/** Tools that the caller runs; any other type is run, and billed, by a vendor. */
export const CALLER_TOOL_TYPES: ReadonlySet<string> = new Set(["function", "custom"]);
/** Some routers take a vendor's tool from a key of any tool's object. */
export const HOSTED_TOOL_KEYS: ReadonlySet<string> = new Set(
  ["google_search", "google_search_retrieval", "enterprise_web_search", "google_maps", "url_context", "code_execution", "web_search"].map(
    canonicalName,
  ),
);

/** Fields that the gateway itself checks, counts or replaces. Servers that do not mind the case of a name would read a second one. */
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

// The model as a request asks for it: with the rates that its fields make it cost. Whatever a vendor bills by is looked at here, before
// anything is held and before an upstream is called, and refused where the model's entry has no price for it.

export type AskedFields = Readonly<Record<string, unknown>>;

/** What was found in a request: a field of the table's name, where it stands, and what is in it. */
interface Found {
  readonly name: string;
  readonly param: string;
  readonly value: unknown;
  /** Values that would cost nothing, in words. */
  readonly harmless?: string;
}

const OPTIONS = canonicalName("provider_options");
/** How much of a caller's own words an error message repeats. */
const QUOTED_CHARS_MAX = 100;
const SHORT_CACHE = "5m";
const HOUR_CACHE = "1h";
const CACHE_CONTROL = /^cache_?control$/i;

/**
 * `fields` is everything of the request that reaches the upstream and is not a text: the body, or what of it travels on unread, with
 * `size` and `quality` by their names in the body. Throws BAD_REQUEST that names the field.
 */
export function withAskedRates(model: Model, fields: AskedFields): Model {
  // An agent that the gateway runs asks other models, and each of those is looked at.
  if (model.agentType === "prompt_agent" || model.agentType === "code_agent") return model;
  const isText = model.modality === "text";
  const found: Found[] = [];
  findFields(model, fields, found);
  if (isText && fields.tools) findTools(fields.tools, found);
  const prices = found.map((each) => priceOf(model, each));
  const isHourCacheAsked = isText && asksForHourCache(model, fields);
  if (prices.length === 0 && !isHourCacheAsked) return model;
  const rates = prices.length > 0 ? withFieldPrices(model, prices) : model.rates;
  return { ...model, rates: isHourCacheAsked ? { ...rates, isHourCacheAsked } : rates };
}

/** The price that the model's entry gives the value; throws BAD_REQUEST when it gives it none. */
function priceOf(model: Model, found: Found): FieldPrice {
  const prices = model.pricedFields.get(found.name);
  const price = prices?.get(typeof found.value === "object" ? "*" : String(found.value)) ?? prices?.get("*");
  if (!price) throw refuse(model, found, prices ? [...prices.keys()] : []);
  return price;
}

/** Tools that a vendor would run. */
function findTools(tools: unknown, found: Found[]): void {
  if (!Array.isArray(tools)) return;
  for (const [index, tool] of tools.filter(isRecord).entries()) {
    const [hosted] = Object.entries(tool).find(([key, value]) => HOSTED_TOOL_KEYS.has(canonicalName(key)) && value != null) ?? [];
    const { type } = tool;
    if (hosted !== undefined) found.push({ name: TOOL_TYPE_FIELD, param: `tools.${index}.${hosted}`, value: canonicalName(hosted) });
    else if (typeof type !== "string" || !CALLER_TOOL_TYPES.has(type))
      found.push({ name: TOOL_TYPE_FIELD, param: `tools.${index}.type`, value: type, harmless: '"function"' });
  }
}

function findFields(model: Model, fields: AskedFields, found: Found[]): void {
  const billed = BILLED_FIELDS[model.modality];
  const priceable = PRICEABLE_FIELDS[model.modality] ?? [];
  for (const param of Object.keys(fields)) {
    const value = ownValue(fields, param);
    if (value === undefined || value === null) continue;
    assertOwnName(param);
    if (priceable.includes(param)) {
      const asked = param === "quality" && typeof value === "string" ? qualityFor(model, value) : value;
      if (isPricedByValue(model, param, asked)) found.push({ name: param, param, value: asked });
      continue;
    }
    const canonical = canonicalName(param);
    const field = billed.get(canonical);
    if (canonical === OPTIONS) findOptions(param, value, found);
    else if (field && !field.isHarmless(value, model)) found.push({ name: field.name, param, value, harmless: field.harmless });
  }
}

function assertOwnName(param: string): void {
  if (OWN_FIELDS.has(param)) return;
  const written = param.toLowerCase();
  if (param === written || !OWN_FIELDS.has(written)) return;
  throw invalidInput(`The name of this field is ${written}, in lower case: some upstreams would read both.`, param);
}

/** OpenAI has two words for each quality of a picture but the lowest. */
const OTHER_WORDS: ReadonlyMap<string, string> = new Map([
  ["medium", "standard"],
  ["standard", "medium"],
  ["high", "hd"],
  ["hd", "high"],
]);

/**
 * The word that the model's entry prices the quality by, which is the one that its upstream is sent: as it was stated, or the other word
 * for the same. Where the entry prices neither, it stays as it was stated.
 */
export function qualityFor({ pricedFields }: Pick<Model, "pricedFields">, stated: string | null): string | null {
  const prices = pricedFields.get("quality");
  if (stated === null || !prices || prices.has(stated)) return stated;
  const other = OTHER_WORDS.get(stated);
  return other !== undefined && prices.has(other) ? other : stated;
}

/** Vendors whose price of a picture goes by its size and quality. */
const GRADED_PICTURES = /^(?:gpt-image|chatgpt-image|dall-e|amazon\.(?:nova-canvas|titan-image))/;
/** What the price of an entry that states one alone is for. */
const PLAIN_PICTURES: ReadonlyMap<string, ReadonlySet<unknown>> = new Map([
  ["size", new Set<unknown>(["1024x1024", "auto"])],
  ["quality", new Set<unknown>(["low", "medium", "standard", "auto"])],
]);

/**
 * Where the entry prices values of the field, one of those is asked for. Where it does not, video is priced as it comes when no size is
 * stated; and what an account asks for its own model covers every size of it.
 */
function isPricedByValue(model: Model, name: string, value: unknown): boolean {
  if (model.pricedFields.has(name)) return true;
  if (model.isCommunity || model.rates.isFree) return false;
  if (model.modality === "video") return true;
  const isGraded = model.imagePricing === "request" && GRADED_PICTURES.test(model.upstreamModel);
  return isGraded && !PLAIN_PICTURES.get(name)?.has(value);
}

/** By vendor; those of a vendor that is not known may mean anything to an upstream. */
function findOptions(path: string, all: unknown, found: Found[]): void {
  if (!isRecord(all)) throw wrongField(path, "expected an object of objects, by vendor");
  for (const [vendor, own] of Object.entries(all)) {
    if (own === null || own === undefined) continue;
    const name = `provider_options.${vendor}`;
    const harmless = HARMLESS_OPTIONS.get(vendor);
    if (!harmless || !isRecord(own)) {
      found.push({ name, param: `${path}.${vendor}`, value: own });
      continue;
    }
    for (const [option, value] of Object.entries(own)) {
      if (value === null || value === undefined || harmless.get(option)?.(value)) continue;
      found.push({ name: `${name}.${option}`, param: `${path}.${vendor}.${option}`, value });
    }
  }
}

/** A cache is kept for five minutes at the price of a cache write; an hour costs more. Throws for an hour that has no price. */
function asksForHourCache(model: Model, fields: AskedFields): boolean {
  if (!namesCacheControl(fields, 0)) return false;
  let isAsked = false;
  for (const { ttl, path } of findCacheTimes(fields, [])) {
    if (ttl === undefined || ttl === null || ttl === SHORT_CACHE) continue;
    const isPriced = ttl === HOUR_CACHE && model.prices.promptCacheWriteHourPrice !== undefined;
    if (!isPriced) {
      throw invalidInput(
        `${model.id} has no price for a cache that is kept for ${quoted(ttl)}. Leave it out or send "${SHORT_CACHE}". ` +
          "An operator can price an hour in the catalog (promptCacheWriteHourPrice).",
        path.join("."),
      );
    }
    isAsked = true;
  }
  return isAsked;
}

/** Almost no request does, so that is found out first, without noting where. */
function namesCacheControl(value: object, depth: number): boolean {
  if (depth > JSON_DEPTH_MAX) return false;
  const isFound = (inner: unknown) => typeof inner === "object" && inner !== null && namesCacheControl(inner, depth + 1);
  if (Array.isArray(value)) return value.some(isFound);
  return Object.keys(value).some((key) => {
    const inner = ownValue(value as AskedFields, key);
    return isFound(inner) || (typeof inner === "object" && CACHE_CONTROL.test(key));
  });
}

/** Wherever it is stated: in messages, their parts, what a vendor wants back with them, tools, a vendor's options. */
function* findCacheTimes(value: unknown, path: readonly PropertyKey[]): Generator<{ ttl: unknown; path: readonly PropertyKey[] }> {
  if (typeof value !== "object" || value === null || path.length > JSON_DEPTH_MAX) return;
  for (const [key, inner] of Object.entries(value)) {
    if (typeof inner !== "object" || inner === null) continue;
    if (CACHE_CONTROL.test(key)) {
      for (const [name, ttl] of Object.entries(inner)) if (/^ttl$/i.test(name)) yield { ttl, path: [...path, key, name] };
    }
    yield* findCacheTimes(inner, [...path, key]);
  }
}

function refuse(model: Model, { name, param, value, harmless = "" }: Found, priced: readonly string[]): AppError {
  const allowed = [...(harmless === "" ? [] : [harmless]), ...priced.map((each) => JSON.stringify(each))];
  const instead = allowed.length > 0 ? `Leave it out or send ${allowed.join(" or ")}.` : "Leave it out.";
  return invalidInput(
    `${name} ${quoted(value)} changes what the vendor of ${model.id} bills or which model answers, and has no price here. ${instead} ` +
      "An operator can price it in the catalog (pricedFields of the model).",
    param,
  );
}

function quoted(value: unknown): string {
  if (typeof value === "object" || value === undefined) return "as it is stated";
  const text = JSON.stringify(value) ?? "";
  return text.length > QUOTED_CHARS_MAX ? `${text.slice(0, QUOTED_CHARS_MAX)}…` : text;
}
