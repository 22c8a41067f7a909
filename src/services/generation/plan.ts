/** What is known of a generation before anybody is asked for it: who pays, which model at which rates, what is set aside, and its usage row. */
import type { KeyCaller, RequestContext, SessionCaller } from "../../context.js";
import { type AppError, invalidInput, wrongField } from "../../errors.js";
import { createId } from "../../lib/ids.js";
import { NO_USAGE, type UsageQuantities } from "../../lib/usage.js";
import { JSON_DEPTH_MAX } from "../../limits.js";
import type { LedgerRecord } from "../../store/ledger.js";
import { requireCaller } from "../access/permissions.js";
import {
  BILLED_FIELDS,
  CALLER_TOOL_TYPES,
  canonicalName,
  HOSTED_TOOL_KEYS,
  OWN_FIELDS,
  PRICEABLE_FIELDS,
  TOOL_TYPE_FIELD,
} from "../catalog/billed-fields.js";
import type { Catalog } from "../catalog/catalog.js";
import type { Modality } from "../catalog/modality.js";
import type { Model } from "../catalog/model.js";
import { type FieldPrice, isFree, withFieldPrices } from "../catalog/pricing.js";
import type { ChargeRequest } from "../credits/credits.js";
import type { SafetyReport } from "../safety/safety.js";
import { HARMLESS_OPTIONS } from "./billed-options.js";
import { qualityFor } from "./media/images-input.js";
import type { UsageSource, UsageStatus } from "./receipt.js";

/** Whom a generation is for and who may give it. */
export interface GenerationTask {
  readonly generationId: string;
  readonly caller: KeyCaller | SessionCaller;
  /** The one that was asked for, whose prices apply. */
  readonly model: Model;
  /** The model itself, then its fallbacks, in the order in which they are tried. */
  readonly candidates: readonly Model[];
  readonly isFree: boolean;
  /** What the request itself is warned of, before anybody has answered it. */
  readonly notes: readonly string[];
  /** Null when no safety feature applies, or none has been applied yet. */
  readonly safety: SafetyReport | null;
  /** Monotonic milliseconds. */
  readonly startedAt: number;
}

export interface GenerationPlan extends GenerationTask {
  /** In nanocredits; see ChargeRequest. */
  readonly hold: Pick<ChargeRequest, "estimate" | "least" | "most">;
}

export interface Asked {
  readonly modality: Modality;
  /** An id or alias; nothing asks for the modality's default. */
  readonly modelName: string | null | undefined;
  /** Those of the request that reach the upstream as they are, and those that may have prices of their own. */
  readonly fields: AskedFields;
  readonly notes: readonly string[];
}

/** Throws UNAUTHORIZED, BAD_REQUEST, NOT_FOUND or FORBIDDEN. */
export function toTask(
  ctx: RequestContext,
  catalog: Catalog,
  { modality, modelName, fields, notes }: Asked,
  generationId = takeGenerationId(ctx),
): GenerationTask {
  const startedAt = performance.now();
  const caller = requireCaller(ctx);
  const model = toAskedModel(catalog.resolve(caller, modelName ?? undefined, modality), fields);
  ctx.note?.began(generationId, model.id);
  // A key that may not use a model is not served by it either.
  const candidates = [model, ...catalog.fallbacksOf(model).filter((fallback) => catalog.isAllowed(caller, fallback))];
  return { generationId, caller, model, candidates, isFree: isFree(model.rates), notes, safety: null, startedAt };
}

/** How far a generation has come, as its usage row tells it. */
export interface Progress {
  readonly modelUsed: string;
  readonly usage: UsageQuantities;
  readonly usageSource: UsageSource;
  readonly status: UsageStatus;
  /** From the request to the first byte; null when there was none, or the answer came whole. */
  readonly firstByteMs: number | null;
}

/** Of a generation that is under way: what is charged should nobody be there to finish it. */
export function underWay(modelUsed: string, usage: UsageQuantities = NO_USAGE, firstByteMs: number | null = null): Progress {
  return { modelUsed, usage, usageSource: "partial", status: "cancelled", firstByteMs };
}

/** The usage row; `credit_flush` adds what was charged and by which bucket. */
export function toLedgerRecord({ caller, model, startedAt }: GenerationTask, progress: Progress): LedgerRecord {
  const isKey = caller.kind === "key";
  const { modelUsed, usage, usageSource, status, firstByteMs } = progress;
  return {
    timestamp: new Date().toISOString(),
    apiKeyName: isKey ? caller.apiKeyName : null,
    apiKeyType: isKey ? caller.apiKeyType : null,
    // Usage knows no kind for it: a moderation model reads text (docs/spec/usage.md#rows).
    modality: model.modality === "moderation" ? "text" : model.modality,
    model: model.id,
    modelUsed,
    usage: toColumns(usage),
    responseTimeMs: Math.round(performance.now() - startedAt),
    timeToFirstTokenMs: firstByteMs === null ? null : Math.round(firstByteMs),
    status,
    usageSource,
    parentRequestId: caller.run?.parentRequestId ?? null,
  };
}

/** What of it the usage row has columns for. */
function toColumns(usage: UsageQuantities): UsageQuantities {
  return {
    inputTextTokens: usage.inputTextTokens,
    inputCachedTokens: usage.inputCachedTokens,
    inputCacheWriteTokens: usage.inputCacheWriteTokens,
    inputAudioTokens: usage.inputAudioTokens,
    inputImageTokens: usage.inputImageTokens,
    outputTextTokens: usage.outputTextTokens,
    outputReasoningTokens: usage.outputReasoningTokens,
    outputAudioTokens: usage.outputAudioTokens,
    outputImageTokens: usage.outputImageTokens,
    outputVideoMilliseconds: usage.outputVideoMilliseconds,
    outputAudioMilliseconds: usage.outputAudioMilliseconds,
  };
}

/** An id that was written down before the request began (see `Idempotency`), for the first generation of a request; every further one has an id of its own. */
export class ReservedId {
  private isTaken = false;

  constructor(readonly id: string) {}

  take(): string | null {
    if (this.isTaken) return null;
    this.isTaken = true;
    return this.id;
  }
}

export function takeGenerationId(ctx: RequestContext): string {
  return ctx.reservedId?.take() ?? createId();
}

// The model as a request asks for it: with the rates that its fields make it cost. Whatever a vendor bills by is looked at here, before
// anything is held and before an upstream is called, and refused where the model's entry has no price for it (services/catalog/billed-fields.ts).

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
function toAskedModel(model: Model, fields: AskedFields): Model {
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
function priceOf(model: Model, found: Found): FieldPrice {
  const prices = model.pricedFields.get(found.name);
  const price = prices?.get(typeof found.value === "object" ? "*" : String(found.value)) ?? prices?.get("*");
  if (!price) throw refuse(model, found, prices ? [...prices.keys()] : []);
  return price;
}

/** Tools that a vendor would run. */
function findTools(tools: unknown, path = "tools"): Found[] {
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
