/**
 * The bundled catalog: well-known models of every modality, each listed when one of its vendors is configured (architecture
 * "Configuration"), at the public prices of the first of them. Each configured vendor is a route.
 *
 * Prices are those in force at the start of the process, including those of long prompts. Of prices by the hour, the highest applies. An
 * operator with other prices states the model in `MODELS_FILE`.
 */
import { parsePicocredits } from "../../lib/money.js";
import { ownValue } from "../../lib/own-values.js";
import { BUNDLED_MEDIA_MODELS, type BundledMediaModel, type PublishedPrice } from "./bundled-media.js";
import type { BundledModel } from "./bundled-models.js";
import { BUNDLED_MODELS } from "./bundled-other-models.js";
import { BUNDLED_VENDORS, type BundledVendor } from "./bundled-vendors.js";
import type { Modality } from "./modality.js";
import {
  bareNameOf,
  type CatalogSource,
  type DormantModel,
  type ModelDefinition,
  publisherOf,
  type Upstream,
  type WireFormat,
} from "./model.js";
import {
  type CatalogPriceField,
  type FieldPrice,
  type LongContextPrices,
  MULTIPLIER_ONE,
  type PricedFields,
  type StatedPrices,
} from "./pricing.js";
import type { RouteDefinition } from "./route.js";

/** A vendor's settings from the environment; `baseUrl` overrides its public address. */
export interface VendorSettings {
  readonly apiKey: string | null;
  readonly furtherApiKeys?: readonly string[] | undefined;
  readonly baseUrl: string | null;
  /** The environment variable that enables it. */
  readonly variable?: string;
}
export type VendorsSettings = Readonly<Partial<Record<BundledVendor | "ollama", VendorSettings>>>;

/** The models of vendors with a key. The price list is read only when there is one. */
export async function loadBundledSource(vendors: VendorsSettings, now: Date): Promise<CatalogSource> {
  const upstreams = BUNDLED_VENDORS.flatMap((vendor) => toUpstream(vendor, vendors[vendor]));
  const isConfigured = new Set(upstreams.map((upstream) => upstream.id));
  const dormant = toDormantModels(vendors, isConfigured);
  if (upstreams.length === 0) return { origin: "bundled", upstreams, models: [], dormant };
  const prices = await readPriceList();
  const offersOf = <Offer>(offers: Readonly<Partial<Record<BundledVendor, Offer>>>) =>
    (Object.entries(offers) as [BundledVendor, Offer][]).filter(([vendor]) => isConfigured.has(vendor));
  const texts = BUNDLED_MODELS.flatMap((entry): ModelDefinition[] => {
    const offers = offersOf(entry.offers).map(([vendor, name]) => toTextOffer(vendor, name, listed(prices, vendor, name), now));
    return toModels(offers, (preferred) => toTextModel(entry, preferred));
  });
  const media = BUNDLED_MEDIA_MODELS.flatMap((entry): ModelDefinition[] => {
    const offers = offersOf(entry.offers).map(([vendor, offer]) => toMediaOffer(entry.modality, vendor, offer, prices, now));
    return toModels(offers, () => toMediaModel(entry));
  });
  return { origin: "bundled", upstreams, models: [...texts, ...media], dormant };
}

function toDormantModels(vendors: VendorsSettings, isConfigured: ReadonlySet<string>): DormantModel[] {
  const texts = BUNDLED_MODELS.map((entry) => ({ ...entry, modality: "text" as const, more: entry.aliases }));
  const media = BUNDLED_MEDIA_MODELS.map((entry) => ({ ...entry, more: [] }));
  return [...texts, ...media].flatMap((entry) => {
    const offering = Object.keys(entry.offers) as BundledVendor[];
    if (offering.some((vendor) => isConfigured.has(vendor))) return [];
    const variables = offering.flatMap((vendor) => vendors[vendor]?.variable ?? []);
    return [{ id: entry.id, aliases: [...aliasesOf(entry), ...(entry.more ?? [])], modality: entry.modality, variables }];
  });
}

function toUpstream(vendor: BundledVendor, settings: VendorSettings | undefined): Upstream[] {
  if (!settings?.apiKey) return [];
  const { baseUrl, wireFormat = "openai" } = BUNDLED_VENDOR_ENTRIES[vendor];
  const { apiKey, furtherApiKeys } = settings;
  return [{ id: vendor, wireFormat, baseUrl: settings.baseUrl ?? baseUrl, apiKey, furtherApiKeys, isTrusted: true, vendor }];
}

/** A configured vendor's offer of a model, at its public prices. */
interface PricedOffer {
  readonly vendor: BundledVendor;
  readonly upstreamModel: string;
  readonly prices: PricesInForce & Pick<ModelDefinition, "pricedFields">;
  readonly contextLength?: number | undefined;
}

type Described = Omit<ModelDefinition, "routes" | "prices" | "longContext" | "pricedFields">;

/** The model has the prices of the preferred offer, the first one. The others are routes for when that fails. */
function toModels(offers: readonly PricedOffer[], describe: (preferred: PricedOffer) => Described): ModelDefinition[] {
  const [preferred] = offers;
  return preferred ? [{ ...describe(preferred), ...preferred.prices, routes: offers.map(toRoute) }] : [];
}

function toRoute({ vendor, upstreamModel, prices }: PricedOffer, position: number): RouteDefinition {
  const shared = { upstreamId: vendor, upstreamModel, priority: position };
  if (position === 0) return { ...shared, prices: "model" };
  // Prices by a field of the request are not compared: the cost is unknown.
  return prices.pricedFields ? shared : { ...shared, prices: prices.prices, longContext: prices.longContext };
}

function toTextOffer(vendor: BundledVendor, upstreamModel: string, model: ListedModel, now: Date): PricedOffer {
  return { vendor, upstreamModel, prices: pricesInForce(model.prices, now), contextLength: model.contextLength };
}

function toTextModel(entry: BundledModel, { contextLength }: PricedOffer): Described {
  return {
    id: entry.id,
    aliases: [...aliasesOf(entry), ...(entry.aliases ?? [])],
    title: entry.title,
    description: entry.description,
    modality: "text",
    inputModalities: entry.inputs,
    capabilities: entry.capabilities,
    isAlpha: entry.isAlpha,
    contextLength: contextLength ?? entry.contextLength,
  };
}

/** The name without its publisher, and the maker's other names with and without it. */
function aliasesOf({ id, otherNames: { snapshots = [], formerly = [] } = {} }: Pick<BundledModel, "id" | "otherNames">): string[] {
  return [bareNameOf(id), ...[...snapshots, ...formerly].flatMap((name) => [name, `${publisherOf(id)}/${name}`])];
}

type Offer = NonNullable<BundledMediaModel["offers"][BundledVendor]>;

function toMediaOffer(modality: Modality, vendor: BundledVendor, { name, price }: Offer, list: PriceList, now: Date): PricedOffer {
  const prices = price
    ? { longContext: [], ...publishedPrices(modality, price) }
    : pricesInForce(listed(list, vendor, name).prices, now, modality);
  return { vendor, upstreamModel: name, prices };
}

function toMediaModel(entry: BundledMediaModel): Described {
  const { id, title, description, modality, inputs, imagePricing, contextLength, voices, isAlpha } = entry;
  return {
    id,
    aliases: aliasesOf(entry),
    title,
    description,
    modality,
    inputModalities: inputs,
    imagePricing,
    contextLength,
    voices,
    isAlpha,
  };
}

function listed(prices: PriceList, vendor: BundledVendor, name: string): ListedModel {
  const model = ownValue(prices[vendor] ?? {}, name);
  if (!model) throw new Error(`The price list knows no price of ${name} at ${vendor}: run npm run prices.`);
  return model;
}

/** The price field of a modality without token prices. */
const UNIT_FIELDS = {
  image: "completionImagePrice",
  video: "completionVideoPrice",
  speech: "completionAudioPrice",
  music: "completionAudioPrice",
  transcription: "promptAudioPrice",
  embedding: "promptTextPrice",
  moderation: "promptTextPrice",
  rerank: "completionTextPrice",
  realtime: "promptTextPrice",
  text: "promptTextPrice",
} as const satisfies Readonly<Record<Modality, keyof StatedPrices>>;

function publishedPrices(modality: Modality, { credits, sizes }: PublishedPrice): Pick<ModelDefinition, "prices" | "pricedFields"> {
  const unitPrice = (each: string): StatedPrices => {
    const price = parsePicocredits(each);
    if (price === null) throw new Error(`A published price is not a decimal: ${each}.`);
    return { [UNIT_FIELDS[modality]]: price };
  };
  if (!sizes) return { prices: unitPrice(credits) };
  const bySize = Object.entries(sizes).map(([size, each]): [string, FieldPrice] => [
    size,
    { prices: unitPrice(each), multiplier: MULTIPLIER_ONE, perRequest: 0n },
  ]);
  const pricedFields: PricedFields = new Map([["size", new Map(bySize)]]);
  return { prices: unitPrice(credits), pricedFields };
}

// Reads a model's prices from `bundled-prices.json`. `npm run prices` writes the file from the price library; it is checked in, so that a
// start reads only a few kilobytes and every change of a price is reviewed.

/** A price by length of the prompt: a tier applies to all of a request with more tokens than its start. */
interface TieredPrice {
  readonly base: number;
  readonly tiers?: readonly { readonly start: number; readonly price: number }[];
}

/** Credits per million tokens, or per hour, by the library's name of the kind. */
type ListedPrices = Readonly<Record<string, number | TieredPrice>>;

/** One entry of a price history. */
interface DatedPrices {
  readonly constraint?: { readonly type: string; readonly start_date?: string };
  readonly prices: ListedPrices;
}

export interface ListedModel {
  readonly prices: ListedPrices | readonly DatedPrices[];
  readonly contextLength?: number;
}

/** By vendor, then by the vendor's name of the model. */
type PriceList = Readonly<Record<string, Readonly<Record<string, ListedModel>>>>;

type Unit = "million-tokens" | "hour";
type PriceName = readonly [name: string, field: CatalogPriceField, unit: Unit];

/** Names of each price field for the library's modalities. The first one present counts. */
const TEXT_NAMES: readonly PriceName[] = [
  ["input_mtok", "promptTextPrice", "million-tokens"],
  ["cache_read_mtok", "promptCachedPrice", "million-tokens"],
  ["cache_write_mtok", "promptCacheWritePrice", "million-tokens"],
  ["input_audio_mtok", "promptAudioPrice", "million-tokens"],
  ["input_image_mtok", "promptImagePrice", "million-tokens"],
  ["output_mtok", "completionTextPrice", "million-tokens"],
  ["output_reasoning_mtok", "completionReasoningPrice", "million-tokens"],
  ["output_audio_mtok", "completionAudioPrice", "million-tokens"],
];
const PRICE_NAMES: Readonly<Partial<Record<Modality, readonly PriceName[]>>> = {
  text: [...TEXT_NAMES, ["cache_write_1h_mtok", "promptCacheWriteHourPrice", "million-tokens"]],
  realtime: TEXT_NAMES,
  embedding: [["input_mtok", "promptTextPrice", "million-tokens"]],
  image: [
    ["input_mtok", "promptTextPrice", "million-tokens"],
    ["input_image_mtok", "promptImagePrice", "million-tokens"],
    ["output_image_mtok", "completionImagePrice", "million-tokens"],
    ["output_mtok", "completionImagePrice", "million-tokens"],
  ],
  transcription: [["input_audio_hours", "promptAudioPrice", "hour"]],
};

async function readPriceList(): Promise<PriceList> {
  const { default: list } = await import("./bundled-prices.json", { with: { type: "json" } });
  return list as PriceList;
}

interface PricesInForce {
  /** Of a short prompt. */
  readonly prices: StatedPrices;
  readonly longContext: readonly LongContextPrices[];
}

/** The last entry of a history in force, and the highest price of each kind among it and entries for hours of the day. */
export function pricesInForce(history: ListedModel["prices"], now: Date, modality: Modality = "text"): PricesInForce {
  const lists = isHistory(history) ? listsInForce(history, now) : [history];
  const at = (promptTokens: number) => lists.map((list) => toStatedPrices(list, modality, promptTokens)).reduce(dearest, {});
  const starts = new Set(lists.flatMap((list) => Object.values(list).flatMap(tiersOf)).map(({ start }) => start));
  return { prices: at(0), longContext: [...starts].map((start) => ({ abovePromptTokens: start, prices: at(start + 1) })) };
}

function listsInForce(history: readonly DatedPrices[], now: Date): readonly ListedPrices[] {
  const begun = history.filter(({ constraint }) => constraint === undefined || hasBegun(constraint, now));
  const hourly = history.filter(({ constraint }) => constraint?.type === "time_of_date");
  return [...begun.slice(-1), ...hourly].map(({ prices }) => prices);
}

function isHistory(prices: ListedModel["prices"]): prices is readonly DatedPrices[] {
  return Array.isArray(prices);
}

function hasBegun({ type, start_date: start }: NonNullable<DatedPrices["constraint"]>, now: Date): boolean {
  return type === "start_date" && start !== undefined && new Date(start) <= now;
}

function dearest(one: StatedPrices, other: StatedPrices): StatedPrices {
  const prices: Partial<Record<CatalogPriceField, bigint>> = { ...one };
  for (const [field, price] of Object.entries(other) as [CatalogPriceField, bigint][]) {
    const known = prices[field];
    if (known === undefined || price > known) prices[field] = price;
  }
  return prices;
}

function tiersOf(price: number | TieredPrice): NonNullable<TieredPrice["tiers"]> {
  return typeof price === "number" ? [] : (price.tiers ?? []);
}

/** The highest tier below the prompt's length, else the base. */
function priceAt(price: number | TieredPrice, promptTokens: number): number {
  if (typeof price === "number") return price;
  const passed = tiersOf(price).filter(({ start }) => promptTokens > start);
  return passed.reduce((highest, tier) => (tier.start > highest.start ? tier : highest), { start: -1, price: price.base }).price;
}

function toStatedPrices(prices: ListedPrices, modality: Modality, promptTokens: number): StatedPrices {
  const stated: Partial<Record<CatalogPriceField, bigint>> = {};
  for (const [name, field, unit] of PRICE_NAMES[modality] ?? []) {
    const price = ownValue(prices, name);
    if (price !== undefined && stated[field] === undefined) stated[field] = toPicocredits(priceAt(price, promptTokens), unit);
  }
  return stated;
}

const SECONDS_PER_HOUR = 3_600n;

/** Per token: divided by a million and rounded. Per second: rounded up to a whole picocredit. */
function toPicocredits(credits: number, unit: Unit): bigint {
  const millionths = BigInt(credits.toFixed(6).replace(".", ""));
  if (unit === "million-tokens") return millionths;
  return (millionths * 1_000_000n + SECONDS_PER_HOUR - 1n) / SECONDS_PER_HOUR;
}

// The vendors of the bundled catalog: address, wire format, and name in the price library.

interface BundledVendorEntry {
  readonly baseUrl: string;
  /** Default: `openai`. */
  readonly wireFormat?: WireFormat;
  /** Its name in the price library; absent when it has none of its models. */
  readonly priceListId?: string;
}

export const BUNDLED_VENDOR_ENTRIES: Readonly<Record<BundledVendor, BundledVendorEntry>> = {
  openai: { baseUrl: "https://api.openai.com/v1", priceListId: "openai" },
  // Both also have addresses for OpenAI's chat format; for why those are not used see docs/decisions/native-formats.md.
  anthropic: { baseUrl: "https://api.anthropic.com/v1", wireFormat: "anthropic", priceListId: "anthropic" },
  gemini: { baseUrl: "https://generativelanguage.googleapis.com/v1beta", wireFormat: "gemini", priceListId: "google" },
  mistral: { baseUrl: "https://api.mistral.ai/v1", priceListId: "mistral" },
  groq: { baseUrl: "https://api.groq.com/openai/v1", priceListId: "groq" },
  deepseek: { baseUrl: "https://api.deepseek.com/v1", priceListId: "deepseek" },
  xai: { baseUrl: "https://api.x.ai/v1", priceListId: "x-ai" },
  moonshot: { baseUrl: "https://api.moonshot.ai/v1", priceListId: "moonshotai" },
  zai: { baseUrl: "https://api.z.ai/api/paas/v4", priceListId: "zai" },
  cerebras: { baseUrl: "https://api.cerebras.ai/v1", priceListId: "cerebras" },
  cohere: { baseUrl: "https://api.cohere.com/v2", wireFormat: "ai-sdk:cohere", priceListId: "cohere" },
  elevenlabs: { baseUrl: "https://api.elevenlabs.io/v1", wireFormat: "ai-sdk:elevenlabs" },
  deepgram: { baseUrl: "https://api.deepgram.com/v1", wireFormat: "ai-sdk:deepgram" },
  replicate: { baseUrl: "https://api.replicate.com/v1", wireFormat: "ai-sdk:replicate" },
  fal: { baseUrl: "https://fal.run", wireFormat: "ai-sdk:fal" },
  openrouter: { baseUrl: "https://openrouter.ai/api/v1", priceListId: "openrouter" },
};
