/**
 * What `bundled-prices.json` says of a model, in our terms. The file is written by `npm run prices` from the price library and
 * checked in, so that a start reads a few kilobytes and every change of a price is seen before it is charged.
 */
import { ownValue } from "../../lib/own-values.js";
import type { PriceField, StatedPrices } from "../pricing.js";
import type { Modality } from "./modality.js";

/** Credits per million tokens, or per hour, by the library's name of the kind. Of a price in tiers the lowest is `base`. */
export type ListedPrices = Readonly<Record<string, number | { readonly base: number }>>;

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
type PriceName = readonly [name: string, field: PriceField, unit: Unit];

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
  text: TEXT_NAMES,
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

/** The last entry of a history that has begun, and of it and every entry bound to hours of the day the dearest price of each kind. */
export function pricesInForce(history: ListedModel["prices"], now: Date, modality: Modality = "text"): StatedPrices {
  if (!isHistory(history)) return toStatedPrices(history, modality);
  const begun = history.filter(({ constraint }) => constraint === undefined || hasBegun(constraint, now));
  const hourly = history.filter(({ constraint }) => constraint?.type === "time_of_date");
  return [...begun.slice(-1), ...hourly].map(({ prices }) => toStatedPrices(prices, modality)).reduce(dearest, {});
}

function isHistory(prices: ListedModel["prices"]): prices is readonly DatedPrices[] {
  return Array.isArray(prices);
}

function hasBegun({ type, start_date: start }: NonNullable<DatedPrices["constraint"]>, now: Date): boolean {
  return type === "start_date" && start !== undefined && new Date(start) <= now;
}

function dearest(one: StatedPrices, other: StatedPrices): StatedPrices {
  const prices: Partial<Record<PriceField, bigint>> = { ...one };
  for (const [field, price] of Object.entries(other) as [PriceField, bigint][]) {
    const known = prices[field];
    if (known === undefined || price > known) prices[field] = price;
  }
  return prices;
}

function toStatedPrices(prices: ListedPrices, modality: Modality): StatedPrices {
  const stated: Partial<Record<PriceField, bigint>> = {};
  for (const [name, field, unit] of PRICE_NAMES[modality] ?? []) {
    const price = ownValue(prices, name);
    if (price !== undefined && stated[field] === undefined)
      stated[field] = toPicocredits(typeof price === "number" ? price : price.base, unit);
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
