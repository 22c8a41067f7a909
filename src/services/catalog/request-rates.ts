/**
 * The model with the rates of a request's fields (docs/spec/credits.md#billed-fields). Every field that a vendor bills is checked here,
 * before the hold and the upstream call, and refused where the model's entry has no price for it. Vendors of the bundled catalog get only
 * fields that are known to be free.
 */
import { type AppError, invalidInput, wrongField } from "../../errors.js";
import { isRecord } from "../../lib/json.js";
import { ownValue } from "../../lib/own-values.js";
import { JSON_DEPTH_MAX } from "../../limits.js";
import {
  BILLED_FIELDS,
  CALLER_TOOL_TYPES,
  canonicalName,
  HOSTED_TOOL_KEYS,
  MONEY_WISHES,
  OWN_FIELDS,
  PRICEABLE_FIELDS,
  TOOL_TYPE_FIELD,
} from "./billed-fields.js";
import { HARMLESS_OPTIONS } from "./billed-options.js";
import type { Modality } from "./modality.js";
import type { Model } from "./model.js";
import { type FieldPrice, withFieldPrices } from "./pricing.js";
import type { Route } from "./route.js";
import { isTaken, isTakenBySome, refuseUntaken } from "./taken-fields.js";

export type RequestFields = Readonly<Record<string, unknown>>;

/** A billed field in a request: its name in the table, path and value. */
interface Found {
  readonly name: string;
  readonly param: string;
  readonly value: unknown;
  /** Values without a price, in words. */
  readonly harmless?: string;
}

const OPTIONS = canonicalName("provider_options");
/** Characters of a client's text in an error message. */
const QUOTED_CHARS_MAX = 100;
const SHORT_CACHE = "5m";
const HOUR_CACHE = "1h";
const CACHE_CONTROL = /^cache_?control$/i;

/**
 * `fields` is everything of the request that reaches the upstream and is not text: the body, or its unread fields, with `size` and
 * `quality` by their names in the body. Throws BAD_REQUEST naming the field.
 */
export function withRequestRates(model: Model, fields: RequestFields): Model {
  // An agent that the gateway runs calls other models, and each of those calls is checked.
  if (model.agentType === "prompt_agent" || model.agentType === "code_agent") {
    for (const param of Object.keys(fields)) assertNoWish(model, param, canonicalName(param), ownValue(fields, param));
    return model;
  }
  const isText = model.modality === "text";
  const found: Found[] = [];
  findFields(model, fields, found);
  if (isText && fields.tools) findTools(fields.tools, found);
  const prices = found.map((each) => priceOf(model, each));
  const isHourCacheRequested = isText && requestsHourCache(model, fields);
  if (prices.length === 0 && !isHourCacheRequested) return model;
  const { share } = model.rates;
  const own = prices.length > 0 ? withFieldPrices(model, prices) : model.rates;
  const rates = share === undefined ? own : { ...own, share };
  return { ...model, rates: isHourCacheRequested ? { ...rates, isHourCacheRequested } : rates };
}

/** Whether a route may get the request's fields: a bundled vendor accepts fewer. */
export function takesFields(model: Model, route: Route, fields: RequestFields): boolean {
  if (route.vendor === null) return true;
  const billed = BILLED_FIELDS[model.modality];
  return Object.keys(fields).every(
    (name) => ownValue(fields, name) == null || billed.has(canonicalName(name)) || isTaken(model, route, name),
  );
}

/** No route may get all of the fields, though each field may go to some: names one that the first route does not get. */
export function refuseForAllRoutes(model: Model, fields: RequestFields): AppError {
  const [first] = model.routes;
  const billed = BILLED_FIELDS[model.modality];
  const isSent = (name: string) => ownValue(fields, name) != null && !billed.has(canonicalName(name));
  const untaken = Object.keys(fields).find((name) => isSent(name) && !isTaken(model, first, name));
  return untaken === undefined
    ? invalidInput(`No upstream of ${model.id} may serve this request.`, "model")
    : refuseUntaken(model, untaken);
}

/** The price of the value in the model's entry; throws BAD_REQUEST without one. */
function priceOf(model: Model, found: Found): FieldPrice {
  const prices = model.pricedFields.get(found.name);
  const price = prices?.get(typeof found.value === "object" ? "*" : String(found.value)) ?? prices?.get("*");
  if (!price) throw refuse(model, found, prices ? [...prices.keys()] : []);
  return price;
}

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

function findFields(model: Model, fields: RequestFields, found: Found[]): void {
  const billed = BILLED_FIELDS[model.modality];
  const priceable = PRICEABLE_FIELDS[model.modality] ?? [];
  for (const param of Object.keys(fields)) {
    const value = ownValue(fields, param);
    if (value === undefined || value === null) continue;
    assertOwnName(param);
    if (priceable.includes(param)) {
      const stated = param === "quality" && typeof value === "string" ? qualityFor(model, value) : value;
      if (isPricedByValue(model, param, stated)) found.push({ name: param, param, value: stated });
      continue;
    }
    const canonical = canonicalName(param);
    assertNoWish(model, param, canonical, value);
    const field = billed.get(canonical);
    if (canonical === OPTIONS) findOptions(model, param, value, found);
    else if (field) {
      if (!field.isHarmless(value, model) && !model.passFields.has(field.name))
        found.push({ name: field.name, param, value, harmless: field.harmless });
    } else if (!isTakenBySome(model, param)) throw refuseUntaken(model, param);
  }
}

/** Whether a chat's field is refused or priced: a format that has no such field passes it on to be checked. */
export function concernsMoney(name: string, modality: Modality = "text"): boolean {
  const canonical = canonicalName(name);
  return canonical === OPTIONS || MONEY_WISHES.has(canonical) || BILLED_FIELDS[modality].has(canonical);
}

/** For query strings, which have no unknown fields: refuses wishes about money, naming the alternative. Throws BAD_REQUEST. */
export function assertNoWishes(parameters: Readonly<Record<string, string>>): void {
  for (const param of Object.keys(parameters)) {
    const wish = MONEY_WISHES.get(canonicalName(param));
    if (wish) throw unknownWish(param);
  }
}

/** Throws BAD_REQUEST for an unsupported wish about money. */
function assertNoWish(model: Model, param: string, canonical: string, value: unknown): void {
  const wish = MONEY_WISHES.get(canonical);
  if (wish === undefined || value === undefined || value === null) return;
  if (wish.isHarmless(value, model) || model.passFields.has(param)) return;
  throw unknownWish(param);
}

function unknownWish(param: string): AppError {
  return invalidInput(
    `The field ${param} does not limit costs here. Use max_cost, the most credits that the request may be charged: ` +
      "a field of the body or query, maxCost in a GraphQL input, or the header X-Max-Cost. " +
      "POST /v1/quote, or ?quote=true, answers the price beforehand.",
    param,
  );
}

function assertOwnName(param: string): void {
  if (OWN_FIELDS.has(param)) return;
  const written = param.toLowerCase();
  if (param === written || !OWN_FIELDS.has(written)) return;
  throw invalidInput(`The name of this field is ${written}, in lower case: some upstreams would read both.`, param);
}

/** OpenAI's two words for each image quality but the lowest. */
const OTHER_WORDS: ReadonlyMap<string, string> = new Map([
  ["medium", "standard"],
  ["standard", "medium"],
  ["high", "hd"],
  ["hd", "high"],
]);

/**
 * The quality's word in the model's entry, which its upstream gets: as stated, or its synonym. Without a price for either, it stays as
 * stated.
 */
export function qualityFor({ pricedFields }: Pick<Model, "pricedFields">, stated: string | null): string | null {
  const prices = pricedFields.get("quality");
  if (stated === null || !prices || prices.has(stated)) return stated;
  const other = OTHER_WORDS.get(stated);
  return other !== undefined && prices.has(other) ? other : stated;
}

/** Vendors with image prices by size and quality. */
const GRADED_PICTURES = /^(?:gpt-image|chatgpt-image|dall-e|amazon\.(?:nova-canvas|titan-image))/;
/** Options that a single stated price covers. */
const PLAIN_PICTURES: ReadonlyMap<string, ReadonlySet<unknown>> = new Map([
  ["size", new Set<unknown>(["1024x1024", "auto"])],
  ["quality", new Set<unknown>(["low", "medium", "standard", "auto"])],
]);

/**
 * Whether only the priced values of the field are allowed. Without prices for values, a video without a stated size has the base price; and
 * the price of a community model covers all its sizes.
 */
function isPricedByValue(model: Model, name: string, value: unknown): boolean {
  if (model.pricedFields.has(name)) return true;
  if (model.isCommunity || model.rates.isFree) return false;
  if (model.modality === "video") return true;
  const isGraded = model.imagePricing === "request" && model.routes.some(({ upstreamModel }) => GRADED_PICTURES.test(upstreamModel));
  return isGraded && !PLAIN_PICTURES.get(name)?.has(value);
}

/** By vendor; options of an unknown vendor may mean anything to an upstream. */
function findOptions(model: Model, path: string, all: unknown, found: Found[]): void {
  if (!isRecord(all)) throw wrongField(path, "expected an object of objects, by vendor");
  const { passFields } = model;
  for (const [vendor, own] of Object.entries(all)) {
    if (own === null || own === undefined) continue;
    const name = `provider_options.${vendor}`;
    const harmless = HARMLESS_OPTIONS.get(vendor);
    if (passFields.has(name)) continue;
    if (!harmless || !isRecord(own)) {
      found.push({ name, param: `${path}.${vendor}`, value: own });
      continue;
    }
    for (const [option, value] of Object.entries(own)) {
      if (value === null || value === undefined || harmless.get(option)?.(value, model) || passFields.has(`${name}.${option}`)) continue;
      found.push({ name: `${name}.${option}`, param: `${path}.${vendor}.${option}`, value });
    }
  }
}

/** A cache of five minutes costs a cache write; one of an hour costs more. Throws for an hour without a price. */
function requestsHourCache(model: Model, fields: RequestFields): boolean {
  if (!namesCacheControl(fields, 0)) return false;
  let isStated = false;
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
    isStated = true;
  }
  return isStated;
}

/** A cheap check first, as almost no request has one. */
function namesCacheControl(value: object, depth: number): boolean {
  if (depth > JSON_DEPTH_MAX) return false;
  const isFound = (inner: unknown) => typeof inner === "object" && inner !== null && namesCacheControl(inner, depth + 1);
  if (Array.isArray(value)) return value.some(isFound);
  return Object.keys(value).some((key) => {
    const inner = ownValue(value as RequestFields, key);
    return isFound(inner) || (typeof inner === "object" && CACHE_CONTROL.test(key));
  });
}

/** In messages, their parts, vendor metadata, tools, and a vendor's options. */
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
