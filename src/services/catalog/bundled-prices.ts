/**
 * What `bundled-prices.json` says of a model, in our terms. The file is written by `npm run prices` from the price library and
 * checked in, so that a start reads a few kilobytes and every change of a price is seen before it is charged.
 */
import { ownValue } from "../../lib/own-values.js";
import type { Modality } from "./modality.js";
import type { CatalogPriceField, LongContextPrices, StatedPrices } from "./pricing.js";

/** A price that depends on how long the prompt is: each tier is that of a request with more tokens than its start, all of it. */
interface TieredPrice {
  readonly base: number;
  readonly tiers?: readonly { readonly start: number; readonly price: number }[];
}

/** Credits per million tokens, or per hour, by the library's name of the kind. */
export type ListedPrices = Readonly<Record<string, number | TieredPrice>>;

/** One entry of a price history. */
export interface DatedPrices {
  readonly constraint?: { readonly type: string; readonly start_date?: string };
  readonly prices: ListedPrices;
}

export interface ListedModel {
  readonly prices: ListedPrices | readonly DatedPrices[];
  readonly contextLength?: number;
}

/** By vendor, then by the vendor's own name for the model. */
export type PriceList = Readonly<Record<string, Readonly<Record<string, ListedModel>>>>;

type Unit = "million-tokens" | "hour";
type PriceName = readonly [name: string, field: CatalogPriceField, unit: Unit];

/** Where each price field is found, for the modalities that the library prices. The first name that it has counts. */
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

export async function readPriceList(): Promise<PriceList> {
  const { default: list } = await import("./bundled-prices.json", { with: { type: "json" } });
  return list as PriceList;
}

export interface PricesInForce {
  /** Of a short prompt. */
  readonly prices: StatedPrices;
  readonly longContext: readonly LongContextPrices[];
}

/** The last entry of a history that has begun, and of it and every entry bound to hours of the day the dearest price of each kind. */
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

/** The tier of the highest start that the prompt is beyond, else the base. */
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

/** Per token: six decimal places further right, the rest rounded. Per second: rounded up to a whole picocredit. */
function toPicocredits(credits: number, unit: Unit): bigint {
  const millionths = BigInt(credits.toFixed(6).replace(".", ""));
  if (unit === "million-tokens") return millionths;
  return (millionths * 1_000_000n + SECONDS_PER_HOUR - 1n) / SECONDS_PER_HOUR;
}
