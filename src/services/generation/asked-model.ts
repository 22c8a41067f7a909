/**
 * The model as a request asks for it: with the rates that its fields make it cost. Whatever a vendor bills by is looked at here, before
 * anything is held and before an upstream is called, and refused where the model's entry has no price for it (services/catalog/billed-fields.ts).
 */
import { type AppError, invalidInput, wrongField } from "../../errors.js";
import { JSON_DEPTH_MAX } from "../../limits.js";
import {
  BILLED_FIELDS,
  CALLER_TOOL_TYPES,
  canonicalName,
  HOSTED_TOOL_KEYS,
  OWN_FIELDS,
  PRICEABLE_FIELDS,
  TOOL_TYPE_FIELD,
} from "../catalog/billed-fields.js";
import type { Model } from "../catalog/model.js";
import { type FieldPrice, isFree, withFieldPrices } from "../catalog/pricing.js";
import { HARMLESS_OPTIONS } from "./billed-options.js";
import { qualityFor } from "./media/image-qualities.js";

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
const CACHE_CONTROL_CHARS_MIN = "cachecontrol".length;

/**
 * `fields` is everything of the request that reaches the upstream and is not a text: the body, or what of it travels on unread, with
 * `size` and `quality` by their names in the body. Throws BAD_REQUEST that names the field.
 */
export function toAskedModel(model: Model, fields: AskedFields): Model {
  // An agent that the gateway runs asks other models, and each of those is looked at.
  if (model.agentType === "prompt_agent" || model.agentType === "code_agent") return model;
  const found = [...findFields(model, fields), ...(model.modality === "text" ? findTools(fields.tools) : [])];
  const prices = found.map((each) => priceOf(model, each));
  const isHourCacheAsked = model.modality === "text" && asksForHourCache(model, fields);
  if (prices.length === 0 && !isHourCacheAsked) return model;
  const rates = prices.length > 0 ? withFieldPrices(model, prices) : model.rates;
  return { ...model, rates: isHourCacheAsked ? { ...rates, isHourCacheAsked } : rates };
}

/** The price that the model's entry gives the value; throws BAD_REQUEST when it gives it none. */
export function priceOf(model: Model, found: Found): FieldPrice {
  const prices = model.pricedFields.get(found.name);
  const price = prices?.get(typeof found.value === "object" ? "*" : String(found.value)) ?? prices?.get("*");
  if (!price) throw refuse(model, found, prices ? [...prices.keys()] : []);
  return price;
}

/** Tools that a vendor would run. */
export function findTools(tools: unknown, path = "tools"): Found[] {
  if (!Array.isArray(tools)) return [];
  return tools.filter(isRecord).flatMap((tool, index): Found[] => {
    const [hosted] = Object.entries(tool).find(([key, value]) => HOSTED_TOOL_KEYS.has(canonicalName(key)) && value != null) ?? [];
    if (hosted !== undefined) return [{ name: TOOL_TYPE_FIELD, param: `${path}.${index}.${hosted}`, value: canonicalName(hosted) }];
    const { type } = tool;
    if (typeof type === "string" && CALLER_TOOL_TYPES.has(type)) return [];
    return [{ name: TOOL_TYPE_FIELD, param: `${path}.${index}.type`, value: type, harmless: '"function"' }];
  });
}

function findFields(model: Model, fields: AskedFields): Found[] {
  const billed = BILLED_FIELDS[model.modality];
  const priceable = PRICEABLE_FIELDS[model.modality] ?? [];
  return Object.entries(fields).flatMap(([param, value]): Found[] => {
    if (value === undefined || value === null) return [];
    assertOwnName(param);
    if (priceable.includes(param)) {
      const asked = param === "quality" && typeof value === "string" ? qualityFor(model, value) : value;
      return isPricedByValue(model, param, asked) ? [{ name: param, param, value: asked }] : [];
    }
    const canonical = canonicalName(param);
    if (canonical === OPTIONS) return findOptions(param, value);
    const field = billed.get(canonical);
    if (!field || field.isHarmless(value, model)) return [];
    return [{ name: field.name, param, value, harmless: field.harmless }];
  });
}

function assertOwnName(param: string): void {
  const written = param.toLowerCase();
  if (param === written || !OWN_FIELDS.has(written)) return;
  throw invalidInput(`The name of this field is ${written}, in lower case: some upstreams would read both.`, param);
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
  if (model.isCommunity || isFree(model.rates)) return false;
  if (model.modality === "video") return true;
  const isGraded = model.imagePricing === "request" && GRADED_PICTURES.test(model.upstreamModel);
  return isGraded && !PLAIN_PICTURES.get(name)?.has(value);
}

/** By vendor; those of a vendor that is not known may mean anything to an upstream. */
function findOptions(path: string, all: unknown): Found[] {
  if (!isRecord(all)) throw wrongField(path, "expected an object of objects, by vendor");
  return Object.entries(all).flatMap(([vendor, own]): Found[] => {
    if (own === null || own === undefined) return [];
    const name = `provider_options.${vendor}`;
    const harmless = HARMLESS_OPTIONS.get(vendor);
    if (!harmless || !isRecord(own)) return [{ name, param: `${path}.${vendor}`, value: own }];
    return Object.entries(own).flatMap(([option, value]): Found[] => {
      if (value === null || value === undefined || harmless.get(option)?.(value)) return [];
      return [{ name: `${name}.${option}`, param: `${path}.${vendor}.${option}`, value }];
    });
  });
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
  for (const [key, inner] of Object.entries(value)) {
    if (typeof inner !== "object" || inner === null) continue;
    if ((key.length >= CACHE_CONTROL_CHARS_MIN && CACHE_CONTROL.test(key)) || namesCacheControl(inner, depth + 1)) return true;
  }
  return false;
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

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
