/**
 * `MODELS_FILE`: the operator's own upstreams and models (docs/operating.md#configuration, docs/adding-a-model.md). An error stops the
 * start and names the path of the field, such as `models.0.prices.promptTextPrice`.
 */

import { readFile } from "node:fs/promises";
import * as z from "zod";
import { type Findings, findingsOf } from "../../lib/issue-findings.js";
import { sayIssue } from "../../lib/issue-words.js";
import { formatPicocredits } from "../../lib/money.js";
import { StartError } from "../../lib/start-error.js";
import { parseBaseUrl } from "../../lib/urls.js";
import { ADVERTISED_CONTEXT_LENGTH_MAX, FALLBACKS_MAX, MODEL_DESCRIPTION_CHARS_MAX } from "../../limits.js";
import { VENDOR_NAMES } from "../../providers/ai-sdk/vendors.js";
import { COMMUNITY_PUBLISHER } from "./community.js";
import { dialectEntry } from "./dialect-entry.js";
import { CONTENT_KINDS, IMAGE_PRICINGS, MODALITIES, type Modality } from "./modality.js";
import { CAPABILITIES, type CatalogSource, type ModelDefinition, SAFETY_FEATURES, type Upstream, type WireFormat } from "./model.js";
import {
  longContext,
  passFieldProblems,
  passFields,
  pricedFieldProblems,
  pricedFields,
  priceObjectsOf,
  statedPrices,
  unusedPriceProblems,
} from "./priced-fields-entry.js";
import { CATALOG_PRICE_FIELDS, type CatalogPriceField } from "./pricing.js";
import {
  checkRoutes,
  dialectsIn,
  priceAboveOf,
  ROUTES_MAX,
  routeEntry,
  routePricesOf,
  routingEntry,
  servesVariations,
  toRouteDefinitions,
  toRouting,
} from "./route-entry.js";
import { SANDBOX_UPSTREAM } from "./sandbox.js";

/** upstreamModel (docs/spec/limits.md). Unspecified: the same for ids and aliases. */
const NAME_CHARS_MAX = 253;
/** Unspecified: titles of registered models have 42 characters (docs/spec/limits.md); an operator's may be longer. */
const TITLE_CHARS_MAX = 120;
const MODEL_ID_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._:-]*\/[A-Za-z0-9][A-Za-z0-9._:-]*$/;
const ALIAS_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._:/@-]*$/;
const UPSTREAM_ID_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
const WIRE_FORMATS: readonly string[] = ["openai", "anthropic", "gemini", ...VENDOR_NAMES.map((vendor) => `ai-sdk:${vendor}`)];
/** Names that files may still have. */
const FORMER_WIRE_FORMATS: readonly string[] = ["ai-sdk:anthropic"];
/** Unspecified: keys of one upstream. */
const KEYS_MAX = 64;
const ENVIRONMENT_PREFIX = "env:";
const RESERVED_PUBLISHERS = ["sandbox", COMMUNITY_PUBLISHER];

/** Errors of the file; `message` has a line for each, for the operator. */
export class ModelsFileError extends StartError {
  override readonly name: string = "ModelsFileError";

  constructor(file: string, problems: readonly string[]) {
    super(`MODELS_FILE ${file} is not valid:\n${problems.map((problem) => `  ${problem}`).join("\n")}`);
  }
}

/** Reads a secret named by `env:NAME`. Null when the variable is unset or empty. */
export type ReadEnv = (name: string) => string | null;

const name = z.string().min(1).max(NAME_CHARS_MAX);

const baseUrl = z.string().transform((value, ctx) => {
  const parsed = parseBaseUrl(value);
  if (parsed !== null) return parsed;
  ctx.addIssue("must be an http or https URL without credentials, query and fragment");
  return z.NEVER;
});

const upstreamEntry = z.strictObject({
  id: name.regex(UPSTREAM_ID_PATTERN, "may hold letters, digits and . _ -"),
  wireFormat: z.custom<WireFormat>(
    (value) => typeof value === "string" && (WIRE_FORMATS.includes(value) || FORMER_WIRE_FORMATS.includes(value)),
    `must be one of ${WIRE_FORMATS.join(", ")}`,
  ),
  baseUrl,
  apiKey: z.string().min(1).nullish(),
  apiKeys: z.array(z.string().min(1)).min(1).max(KEYS_MAX).optional(),
  dialect: dialectEntry.optional(),
});

const modelEntry = z.strictObject({
  id: name.regex(MODEL_ID_PATTERN, "must be <publisher>/<name> of letters, digits and . _ : -"),
  aliases: z.array(name.regex(ALIAS_PATTERN, "may hold letters, digits and . _ : / @ -")).default([]),
  title: z.string().min(1).max(TITLE_CHARS_MAX),
  description: z.string().max(MODEL_DESCRIPTION_CHARS_MAX).nullish(),
  brandUrl: z.url({ protocol: /^https?$/ }).nullish(),
  modality: z.enum(MODALITIES),
  upstream: name.optional(),
  upstreamModel: name.optional(),
  routes: z.array(routeEntry).min(1, "must hold at least one route").max(ROUTES_MAX).optional(),
  routing: routingEntry.optional(),
  capabilities: unique(z.enum(CAPABILITIES)).optional(),
  inputModalities: unique(z.enum(CONTENT_KINDS)).min(1).optional(),
  outputModalities: unique(z.enum(CONTENT_KINDS)).min(1).optional(),
  contextLength: z.int().min(1).max(ADVERTISED_CONTEXT_LENGTH_MAX).nullish(),
  maxOutputTokens: z.int().min(1).max(ADVERTISED_CONTEXT_LENGTH_MAX).nullish(),
  voices: unique(z.string().min(1)).optional(),
  flags: z.strictObject({ alpha: z.boolean().optional(), paid: z.boolean().optional() }).optional(),
  imagePricing: z.enum(IMAGE_PRICINGS).optional(),
  variations: z.boolean().optional(),
  prices: statedPrices.default({}),
  longContext: longContext.optional(),
  pricedFields: pricedFields.optional(),
  passFields: passFields.optional(),
  dialect: dialectEntry.optional(),
  paidOnly: z.boolean().optional(),
  perUserRpm: z.number().positive().nullish(),
  requiredSafetyFeatures: unique(z.enum(SAFETY_FEATURES)).optional(),
  default: z.boolean().optional(),
  fallbacks: unique(name).max(FALLBACKS_MAX).optional(),
  addedAt: z.union([z.iso.date(), z.iso.datetime()]).optional(),
  retiresAt: z.union([z.iso.date(), z.iso.datetime()]).optional(),
});

const modelsFile = z.strictObject({ upstreams: z.array(upstreamEntry).default([]), models: z.array(modelEntry).default([]) });

type ModelsFile = z.infer<typeof modelsFile>;
type ModelEntry = ModelsFile["models"][number];

/**
 * The operator's part of the catalog. `builtInUpstreams` are ids that the file may use without defining them: the sandbox and the
 * configured vendors.
 */
export async function readModelsFile(file: string, readEnv: ReadEnv, builtInUpstreams: readonly string[]): Promise<CatalogSource> {
  const content = await readJson(file);
  const parsed = modelsFile.safeParse(content, { error: sayIssue });
  if (!parsed.success) throw new ModelsFileError(file, toProblems(findingsOf(parsed.error, content)));
  const problems: string[] = [];
  const upstreams = parsed.data.upstreams.map((entry, index) => toUpstream(entry, index, readEnv, problems));
  const models = parsed.data.models.map(toDefinition);
  checkUpstreams(parsed.data, problems);
  checkRoutes(parsed.data.models, new Set([...builtInUpstreams, ...upstreams.map(({ id }) => id)]), problems);
  checkDialects(parsed.data, problems);
  checkVariations(parsed.data, problems);
  checkNames(parsed.data, problems);
  checkDefaults(parsed.data, problems);
  for (const [index, model] of parsed.data.models.entries()) checkPrices(model, index, problems);
  if (problems.length > 0) throw new ModelsFileError(file, problems);
  return { origin: "operator", upstreams, models };
}

/** Picocredits for one token or character: 1,000 credits a million. A price above it was probably meant for a million. */
const HIGH_PRICE = 1_000_000_000n;
const PRICED_BY_SECOND: ReadonlySet<Modality> = new Set(["video", "music", "transcription"]);

interface HighPrice {
  readonly model: string;
  readonly price: CatalogPriceField;
  /** Credits. */
  readonly perMillion: string;
}

/** Prices of the file that are unusually high, for the operator. */
function highPricesIn({ models }: CatalogSource): readonly HighPrice[] {
  return models.flatMap(({ id, modality, imagePricing, prices }) =>
    CATALOG_PRICE_FIELDS.flatMap((price) => {
      const stated = prices[price];
      const isByPiece = PRICED_BY_SECOND.has(modality) || (price === "completionImagePrice" && imagePricing !== "tokens");
      if (stated === undefined || isByPiece || stated <= HIGH_PRICE) return [];
      return [{ model: id, price, perMillion: formatPicocredits(stated * 1_000_000n) }];
    }),
  );
}

interface DearRoute {
  readonly model: string;
  readonly route: string;
  readonly price: CatalogPriceField;
}

/** Called for each oddity of the file, for the operator. */
export interface CatalogWarnings {
  readonly highPrice?: (price: HighPrice) => void;
  readonly dearRoute?: (route: DearRoute) => void;
}

export function reportOddities(source: CatalogSource, { highPrice, dearRoute }: CatalogWarnings): void {
  if (highPrice) for (const high of highPricesIn(source)) highPrice(high);
  if (dearRoute) for (const dear of dearRoutesIn(source)) dearRoute(dear);
}

/** Routes of the file that cost the operator more than callers pay, by their first such price. */
function dearRoutesIn({ models }: CatalogSource): readonly DearRoute[] {
  return models.flatMap(({ id, prices, routes }) =>
    routes.flatMap((route) => {
      const price = priceAboveOf(route.prices, prices);
      return price === null ? [] : [{ model: id, route: route.upstreamId, price }];
    }),
  );
}

async function readJson(file: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    throw new ModelsFileError(file, [`cannot be read: ${error instanceof Error ? error.message : String(error)}`]);
  }
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch (error) {
    throw new ModelsFileError(file, [`is not JSON: ${error instanceof Error ? error.message : String(error)}`]);
  }
}

/** A line per issue; an unknown field is named itself, instead of its object. */
function toProblems({ found, further }: Findings): readonly string[] {
  const problems = found.map(({ path, message }) => `${path === "" ? "the file" : path}: ${message}`);
  return further === 0 ? problems : [...problems, `and ${further} more unknown fields`];
}

function toUpstream(entry: ModelsFile["upstreams"][number], index: number, readEnv: ReadEnv, problems: string[]): Upstream {
  const { id, wireFormat, baseUrl, dialect } = entry;
  const path = `upstreams.${index}`;
  const stated = [
    ...(entry.apiKey == null ? [] : [{ text: entry.apiKey, at: `${path}.apiKey` }]),
    ...(entry.apiKeys ?? []).map((text, position) => ({ text, at: `${path}.apiKeys.${position}` })),
  ];
  if (entry.apiKey != null && entry.apiKeys) problems.push(`${path}.apiKeys: is there beside apiKey: state one of them`);
  const [apiKey = null, ...furtherApiKeys] = stated.map(({ text, at }) => resolveSecret(text, at, readEnv, problems));
  return { id, wireFormat, baseUrl, apiKey, ...(furtherApiKeys.length > 0 && { furtherApiKeys }), isTrusted: true, dialect };
}

function resolveSecret(apiKey: string, at: string, readEnv: ReadEnv, problems: string[]): string {
  if (!apiKey.startsWith(ENVIRONMENT_PREFIX)) return apiKey;
  const variable = apiKey.slice(ENVIRONMENT_PREFIX.length);
  const secret = readEnv(variable);
  if (secret === null) problems.push(`${at}: the environment variable ${variable} is not set`);
  return secret ?? "";
}

function toDefinition(entry: ModelEntry): ModelDefinition {
  const { upstream: _, upstreamModel: __, dialect: ___, default: isDefault, flags, addedAt, retiresAt, routing, ...same } = entry;
  return {
    ...same,
    ...toRouting(routing),
    routes: toRouteDefinitions(entry),
    isDefault,
    isAlpha: flags?.alpha,
    addedAt: addedAt === undefined ? undefined : new Date(addedAt),
    retiresAt: retiresAt === undefined ? undefined : new Date(retiresAt),
  };
}

function checkUpstreams(file: ModelsFile, problems: string[]): void {
  const own = new Set<string>();
  for (const [index, { id }] of file.upstreams.entries()) {
    if (own.has(id)) problems.push(`upstreams.${index}.id: ${id} is there twice`);
    if (id === SANDBOX_UPSTREAM.id) problems.push(`upstreams.${index}.id: ${id} is reserved`);
    own.add(id);
  }
}

/** Dialects are of chats in OpenAI's format: other wire formats have one form, other modalities none. */
function checkDialects(file: ModelsFile, problems: string[]): void {
  const foreign = new Set<string>();
  for (const [index, { id, wireFormat, dialect }] of file.upstreams.entries()) {
    if (wireFormat === "openai") continue;
    foreign.add(id);
    if (dialect) problems.push(`upstreams.${index}.dialect: is of the wire format openai`);
  }
  for (const [index, model] of file.models.entries()) {
    for (const { at, upstream, dialect } of dialectsIn(model)) {
      const path = `models.${index}.${at}`;
      if (dialect && model.modality !== "text") problems.push(`${path}: is of text models`);
      else if (dialect && foreign.has(upstream ?? "")) problems.push(`${path}: is of upstreams with the wire format openai`);
    }
  }
}

function checkVariations(file: ModelsFile, problems: string[]): void {
  const able = new Set([SANDBOX_UPSTREAM, ...file.upstreams].filter(servesVariations).map(({ id }) => id));
  for (const [index, { upstream = "", routes, modality, variations }] of file.models.entries()) {
    if (!variations) continue;
    const upstreams = routes ? routes.map((route) => route.upstream) : [upstream];
    if (modality !== "image") problems.push(`models.${index}.variations: is of image models`);
    else if (!upstreams.every((id) => able.has(id)))
      problems.push(`models.${index}.variations: is of upstreams with the wire format openai`);
  }
}

/** Ids and aliases are one namespace: none may name two models of the file. */
function checkNames(file: ModelsFile, problems: string[]): void {
  const ids = new Set<string>();
  for (const [index, { id }] of file.models.entries()) {
    if (ids.has(id)) problems.push(`models.${index}.id: ${id} is there twice`);
    const publisher = reservedPublisherOf(id);
    if (publisher) problems.push(`models.${index}.id: the publisher ${publisher} is reserved`);
    ids.add(id);
  }
  const taken = new Set(ids);
  for (const [index, { aliases }] of file.models.entries()) {
    for (const [position, alias] of aliases.entries()) {
      const publisher = reservedPublisherOf(alias);
      if (publisher) problems.push(`models.${index}.aliases.${position}: the publisher ${publisher} is reserved`);
      if (taken.has(alias)) problems.push(`models.${index}.aliases.${position}: ${alias} is already the name of a model`);
      taken.add(alias);
    }
  }
}

function reservedPublisherOf(name: string): string | undefined {
  return RESERVED_PUBLISHERS.find((reserved) => name.startsWith(`${reserved}/`));
}

function checkDefaults(file: ModelsFile, problems: string[]): void {
  const chosen = new Map<string, string>();
  for (const [index, model] of file.models.entries()) {
    if (!model.default) continue;
    const other = chosen.get(model.modality);
    if (other !== undefined) problems.push(`models.${index}.default: ${other} is already the default of ${model.modality}`);
    else chosen.set(model.modality, model.id);
  }
}

/** Only price fields of the modality may be above 0 (docs/spec/credits.md#prices). */
function checkPrices(model: ModelEntry, index: number, problems: string[]): void {
  for (const { path, prices } of [...priceObjectsOf(model), ...routePricesOf(model)]) {
    for (const [field, problem] of unusedPriceProblems(model, prices)) problems.push(`models.${index}.${path}.${field}: ${problem}`);
  }
  if (model.longContext !== undefined && model.modality !== "text") {
    problems.push(`models.${index}.longContext: is of text models, whose prompts are counted in tokens`);
  }
  for (const problem of [...pricedFieldProblems(model), ...passFieldProblems(model)]) problems.push(`models.${index}.${problem}`);
  const isPaid = CATALOG_PRICE_FIELDS.some((field) => (model.prices[field] ?? 0n) > 0n);
  if (model.flags?.paid !== undefined && model.flags.paid !== isPaid) {
    problems.push(`models.${index}.flags.paid: is worked out from the prices, and they say ${isPaid}`);
  }
}

function unique<Item extends z.ZodType<string>>(item: Item) {
  return z.array(item).refine((items) => new Set(items).size === items.length, "must not hold anything twice");
}
