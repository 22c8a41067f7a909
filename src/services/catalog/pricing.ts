/**
 * Pricing: from a model's ten stated prices (docs/spec/credits.md#prices) to a rate per kind of usage, and from usage to a charge.
 *
 * Prices are bigint picocredits per unit (10^-12 credit), charges bigint nanocredits (10^-9 credit). A charge is a sum of integer products,
 * rounded once, half up (docs/spec/credits.md#units).
 */
import { roundToNanocredits } from "../../lib/money.js";
import { type ReportedUsage, USAGE_KINDS, type UsageKind } from "../../lib/usage.js";
import type { ImagePricing, Modality } from "./modality.js";

/** In the order of docs/spec/credits.md#prices. */
export const PRICE_FIELDS = [
  "promptTextPrice",
  "promptCachedPrice",
  "promptCacheWritePrice",
  "promptAudioPrice",
  "promptImagePrice",
  "completionTextPrice",
  "completionReasoningPrice",
  "completionAudioPrice",
  "completionImagePrice",
  "completionVideoPrice",
] as const;
export type PriceField = (typeof PRICE_FIELDS)[number];

/** Prices that only the catalog's own entries may state; registered models have the ten. */
export const CATALOG_PRICE_FIELDS = [...PRICE_FIELDS, "promptCacheWriteHourPrice"] as const;
export type CatalogPriceField = (typeof CATALOG_PRICE_FIELDS)[number];

/** Picocredits per unit, as stated: an absent price falls back to its base, a stated 0 is free. */
export type StatedPrices = Readonly<Partial<Record<CatalogPriceField, bigint>>>;

/** Prices of a whole request with a longer prompt; an absent price is that of a short one. */
export interface LongContextPrices {
  readonly abovePromptTokens: number;
  readonly prices: StatedPrices;
}

/** The effect of a billed field's value on the request's price (docs/adding-a-model.md, `pricedFields`). */
export interface FieldPrice {
  /** Replaces the model's own. */
  readonly prices: StatedPrices;
  /** Factor on every rate, in millionths. */
  readonly multiplier: bigint;
  /** Picocredits added once per request. */
  readonly perRequest: bigint;
}

/** By field, then by value; `*` is any other value. */
export type PricedFields = ReadonlyMap<string, ReadonlyMap<string, FieldPrice>>;

/** Everything that can be charged: the amounts of a usage row, and units of media that are not tokens. */
export interface BillableQuantities extends ReportedUsage {
  /** Image generations of a model with `imagePricing: "request"`. */
  readonly imageRequests?: number;
  /** Searches of a rerank model: a query with up to 100 documents. */
  readonly searchUnits?: number;
  /** Characters of text that a speech model speaks. */
  readonly characters?: number;
  /** Length of the recording of a transcription. */
  readonly inputAudioMilliseconds?: number;
}

export type BilledKind = keyof BillableQuantities;

/** Picocredits per unit of each kind. The unit of `...Milliseconds` kinds is the second, because prices are per second. */
type Rates = Readonly<Record<BilledKind, bigint>>;

export interface RateCard extends Rates {
  /** No ability of the model has a price: it is admitted at balance 0. */
  readonly isFree: boolean;
  /** Picocredits, once per request. */
  readonly perRequest?: bigint;
  /** Rates of longer prompts, the longest first. */
  readonly longContext?: readonly { readonly abovePromptTokens: number; readonly rates: Rates }[];
  /** Millionths of the rates that are charged: less for the fee of a vendor key, more with the margin of an app. Absent: the rates. */
  readonly share?: bigint;
  /** The request asks for a cache of an hour: cache writes count as that, unless the upstream separates them. */
  readonly isHourCacheRequested?: boolean;
}

/** For each billed kind, the price fields of its rate in order: the first stated one counts. */
type RateRules = Readonly<Partial<Record<BilledKind, readonly PriceField[]>>>;

/**
 * Fallback prices (docs/spec/credits.md#prices): cached, cache-write, audio and image input fall back to the text prompt, reasoning and
 * audio output to the text completion. Unspecified: image tokens of a text model's output, which have no price field, are completion text.
 */
const TOKEN_RULES: RateRules = {
  inputTextTokens: ["promptTextPrice"],
  inputCachedTokens: ["promptCachedPrice", "promptTextPrice"],
  inputCacheWriteTokens: ["promptCacheWritePrice", "promptTextPrice"],
  inputAudioTokens: ["promptAudioPrice", "promptTextPrice"],
  inputImageTokens: ["promptImagePrice", "promptTextPrice"],
  outputTextTokens: ["completionTextPrice"],
  outputReasoningTokens: ["completionReasoningPrice", "completionTextPrice"],
  outputAudioTokens: ["completionAudioPrice", "completionTextPrice"],
  outputImageTokens: ["completionTextPrice"],
};

const INPUT_ONLY_RULES: RateRules = {
  inputTextTokens: ["promptTextPrice"],
  inputCachedTokens: ["promptTextPrice"],
  inputCacheWriteTokens: ["promptTextPrice"],
  inputAudioTokens: ["promptTextPrice"],
  inputImageTokens: ["promptTextPrice"],
};

/** Unspecified: all output of an image model with token prices, text and reasoning included, is image output. */
const IMAGE_TOKEN_RULES: RateRules = {
  inputTextTokens: ["promptTextPrice"],
  inputCachedTokens: ["promptTextPrice"],
  inputCacheWriteTokens: ["promptTextPrice"],
  inputAudioTokens: ["promptTextPrice"],
  inputImageTokens: ["promptImagePrice", "promptTextPrice"],
  outputTextTokens: ["completionImagePrice"],
  outputReasoningTokens: ["completionImagePrice"],
  outputImageTokens: ["completionImagePrice"],
};

/** Units of each modality's prices (docs/spec/credits.md#prices). */
const RULES: Readonly<Record<Modality, RateRules>> = {
  text: TOKEN_RULES,
  realtime: TOKEN_RULES,
  embedding: INPUT_ONLY_RULES,
  /** By token, by search, or both. */
  rerank: { ...INPUT_ONLY_RULES, searchUnits: ["completionTextPrice"] },
  moderation: INPUT_ONLY_RULES,
  image: { imageRequests: ["completionImagePrice"] },
  video: { outputVideoMilliseconds: ["completionVideoPrice"] },
  speech: { characters: ["completionAudioPrice"] },
  music: { outputAudioMilliseconds: ["completionAudioPrice"] },
  transcription: { inputAudioMilliseconds: ["promptAudioPrice"] },
};

/** The kinds metered for a modality, regardless of prices; a model may lack some. */
export function meteredKinds(modality: Modality): readonly UsageKind[] {
  const rules: RateRules = modality === "image" ? IMAGE_TOKEN_RULES : RULES[modality];
  return USAGE_KINDS.filter((kind) => rules[kind] !== undefined);
}

const ALL_FREE: Rates = Object.freeze({
  inputTextTokens: 0n,
  inputCachedTokens: 0n,
  inputCacheWriteTokens: 0n,
  inputCacheWriteHourTokens: 0n,
  inputAudioTokens: 0n,
  inputImageTokens: 0n,
  outputTextTokens: 0n,
  outputReasoningTokens: 0n,
  outputAudioTokens: 0n,
  outputImageTokens: 0n,
  outputVideoMilliseconds: 0n,
  outputAudioMilliseconds: 0n,
  imageRequests: 0n,
  searchUnits: 0n,
  characters: 0n,
  inputAudioMilliseconds: 0n,
});

const FREE_CARD: RateCard = Object.freeze({ ...ALL_FREE, isFree: true });

export const BILLED_KINDS = Object.keys(ALL_FREE) as readonly BilledKind[];

/** Amounts in milliseconds with prices per second; other kinds are counted in their unit. */
const MILLISECOND_KINDS = ["outputVideoMilliseconds", "outputAudioMilliseconds", "inputAudioMilliseconds"] as const;
/** Tokens written for an hour are part of those written: `costOf` charges the difference. */
const UNIT_KINDS = BILLED_KINDS.filter((kind) => !kind.endsWith("Milliseconds") && kind !== "inputCacheWriteHourTokens");
const PROMPT_KINDS = ["inputTextTokens", "inputCachedTokens", "inputCacheWriteTokens", "inputAudioTokens", "inputImageTokens"] as const;
const MILLISECONDS_PER_SECOND = 1000n;
export const MULTIPLIER_ONE = 1_000_000n;
/** Upstreams count prompts with their own vocabularies: a prompt this close to a bound is held as if beyond it. */
const COUNTED_PERCENT = 125;

/** The properties that decide which price fields a model uses. */
export interface PricingBasis {
  readonly modality: Modality;
  readonly imagePricing: ImagePricing;
}

/** The rates of these prices, with all fallback prices applied once. */
export function toRateCard(prices: StatedPrices, basis: PricingBasis, longContext: readonly LongContextPrices[] = []): RateCard {
  const rates = toRates(prices, basis);
  if (longContext.length === 0) return toCard(rates);
  const longest = [...longContext].sort((one, other) => other.abovePromptTokens - one.abovePromptTokens);
  const tiers = longest.map((tier) => ({
    abovePromptTokens: tier.abovePromptTokens,
    rates: toRates({ ...prices, ...tier.prices }, basis),
  }));
  return toCard(rates, { longContext: tiers });
}

/** The rates of a request with priced fields. A product is rounded up to a whole picocredit. */
export function withFieldPrices(
  model: PricingBasis & { readonly prices: StatedPrices; readonly longContext: readonly LongContextPrices[] },
  fields: readonly FieldPrice[],
): RateCard {
  const stated = fields.reduce<StatedPrices>((all, { prices }) => Object.assign(all, prices), {});
  const longContext = model.longContext.map((tier) => ({ ...tier, prices: { ...tier.prices, ...stated } }));
  const card = toRateCard({ ...model.prices, ...stated }, model, longContext);
  const perRequest = fields.reduce((sum, field) => sum + field.perRequest, 0n);
  const tiers = card.longContext?.map((tier) => ({ ...tier, rates: multiplied(tier.rates, fields) }));
  return toCard(multiplied(card, fields), { perRequest, ...(tiers && { longContext: tiers }) });
}

/** The rates of calls by a vendor key, of which that many millionths are charged. Applied again, it changes nothing. */
export function withShare(card: RateCard, millionths: bigint): RateCard {
  return millionths === 0n ? FREE_CARD : { ...card, share: ((card.share ?? MULTIPLIER_ONE) * millionths) / MULTIPLIER_ONE };
}

/** The rates without a margin or fee. */
export function atPrice(card: RateCard): RateCard {
  if (card.share === undefined) return card;
  const { share: _, ...rates } = card;
  return rates;
}

function toCard(rates: Rates, more: Pick<RateCard, "perRequest" | "longContext"> = {}): RateCard {
  const all = [rates, ...(more.longContext ?? []).map((tier) => tier.rates)];
  const isFree = !more.perRequest && all.every((each) => BILLED_KINDS.every((kind) => each[kind] === 0n));
  return Object.freeze({ ...rates, ...more, isFree });
}

/** The highest rate of each kind, longer prompts included: no usage costs more by one of the cards, which have one share of their rates. */
export function dearestOf(cards: readonly RateCard[]): RateCard {
  const rates: Record<BilledKind, bigint> = { ...ALL_FREE };
  let perRequest = 0n;
  for (const card of cards) {
    if (card.perRequest !== undefined && card.perRequest > perRequest) perRequest = card.perRequest;
    for (const each of [card, ...(card.longContext ?? []).map((tier) => tier.rates)]) {
      for (const kind of BILLED_KINDS) if (each[kind] > rates[kind]) rates[kind] = each[kind];
    }
  }
  const isHourCacheRequested = cards.some((card) => card.isHourCacheRequested);
  const share = cards[0]?.share;
  return { ...toCard(rates, { perRequest }), ...(share !== undefined && { share }), ...(isHourCacheRequested && { isHourCacheRequested }) };
}

function multiplied(rates: Rates, fields: readonly FieldPrice[]): Rates {
  const times = (rate: bigint) =>
    fields.reduce((product, { multiplier }) => (product * multiplier + MULTIPLIER_ONE - 1n) / MULTIPLIER_ONE, rate);
  return Object.fromEntries(BILLED_KINDS.map((kind) => [kind, times(rates[kind])])) as Record<BilledKind, bigint>;
}

function toRates(prices: StatedPrices, basis: PricingBasis): Rates {
  const rates: Record<BilledKind, bigint> = { ...ALL_FREE };
  for (const [kind, fields] of rateRules(basis)) {
    for (const field of fields) {
      const price = prices[field];
      if (price === undefined) continue;
      rates[kind] = price;
      break;
    }
  }
  const hour = basis.modality === "text" ? prices.promptCacheWriteHourPrice : undefined;
  return { ...rates, inputCacheWriteHourTokens: hour ?? rates.inputCacheWriteTokens };
}

/** The kinds of usage that a model bills, in the order of the usage row. */
export function billedKinds(basis: PricingBasis): readonly BilledKind[] {
  return rateRules(basis).map(([kind]) => kind);
}

/** The price fields that a model uses; others must not be above 0 (docs/spec/credits.md#prices). */
export function usedPriceFields(basis: PricingBasis): readonly PriceField[] {
  const used = new Set(rateRules(basis).flatMap(([, fields]) => fields));
  return PRICE_FIELDS.filter((field) => used.has(field));
}

/** Each price field in picocredits per unit, with fallback prices applied; 0 for unused ones. */
export function chargedPrices(prices: StatedPrices, basis: PricingBasis): Readonly<Record<PriceField, bigint>> {
  const chains = rateRules(basis).map(([, fields]) => fields);
  const charged = PRICE_FIELDS.map((field): [PriceField, bigint] => {
    const chain = chains.find(([first]) => first === field) ?? [];
    const stated = chain.find((each) => prices[each] !== undefined);
    return [field, (stated && prices[stated]) ?? 0n];
  });
  return Object.fromEntries(charged) as Record<PriceField, bigint>;
}

/** The charge for this usage, in nanocredits, rounded once half up. Amounts are whole numbers of 0 or more. */
export function costOf(usage: BillableQuantities, card: RateCard): bigint {
  return costAt(usage, ratesFor(promptTokensOf(usage), card), card);
}

/**
 * The hold for usage with a prompt counted by the gateway: at the price of a longer prompt when it is close to the bound, and as if all of
 * it were written to the cache where that costs more.
 */
export function holdFor(usage: BillableQuantities, card: RateCard): bigint {
  const rates = ratesFor((promptTokensOf(usage) * COUNTED_PERCENT) / 100, card);
  let dearest = rates.inputTextTokens;
  if (rates.inputCacheWriteTokens > dearest) dearest = rates.inputCacheWriteTokens;
  if (card.isHourCacheRequested && rates.inputCacheWriteHourTokens > dearest) dearest = rates.inputCacheWriteHourTokens;
  return costAt(usage, rates, card, BigInt(usage.inputTextTokens) * (dearest - rates.inputTextTokens));
}

function costAt(
  usage: BillableQuantities,
  rates: Rates,
  { perRequest = 0n, isHourCacheRequested, share = MULTIPLIER_ONE }: RateCard,
  morePicocredits = 0n,
): bigint {
  let picocredits = perRequest + morePicocredits;
  for (const kind of UNIT_KINDS) {
    const amount = usage[kind];
    if (amount) picocredits += BigInt(amount) * rates[kind];
  }
  const hourTokens = usage.inputCacheWriteHourTokens ?? (isHourCacheRequested ? usage.inputCacheWriteTokens : 0);
  if (hourTokens) picocredits += BigInt(hourTokens) * (rates.inputCacheWriteHourTokens - rates.inputCacheWriteTokens);
  let thousandths = 0n;
  for (const kind of MILLISECOND_KINDS) {
    const amount = usage[kind];
    if (amount) thousandths += BigInt(amount) * rates[kind];
  }
  if (thousandths === 0n && share === MULTIPLIER_ONE) return roundToNanocredits(picocredits);
  return roundToNanocredits(floorPicocredits((picocredits * MILLISECONDS_PER_SECOND + thousandths) * share) / MULTIPLIER_ONE);
}

/** Prices of long prompts apply to the whole request. */
function ratesFor(promptTokens: number, card: RateCard): Rates {
  return card.longContext?.find(({ abovePromptTokens }) => promptTokens > abovePromptTokens)?.rates ?? card;
}

function promptTokensOf(usage: BillableQuantities): number {
  let tokens = 0;
  for (const kind of PROMPT_KINDS) tokens += usage[kind];
  return tokens;
}

/** The same amounts within the cost; else all cut in proportion, so that they and the price of the request itself fit. */
export function cutToCost(quantities: BillableQuantities, card: RateCard, nanocredits: bigint): BillableQuantities {
  const cost = costOf(quantities, card);
  if (cost <= nanocredits) return quantities;
  const perRequest = roundToNanocredits(((card.perRequest ?? 0n) * (card.share ?? MULTIPLIER_ONE)) / MULTIPLIER_ONE);
  const left = nanocredits > perRequest ? nanocredits - perRequest : 0n;
  const cut: { -readonly [Kind in keyof BillableQuantities]: BillableQuantities[Kind] } = { ...quantities };
  // Rounded down, so that the parts never exceed the total.
  for (const kind of BILLED_KINDS) {
    const amount = quantities[kind];
    if (amount) cut[kind] = left === 0n ? 0 : Number((BigInt(amount) * left) / (cost - perRequest));
  }
  return cut;
}

/** Kinds for comparing models: the first one that a model bills. */
const HEADLINE_INPUTS = ["inputTextTokens", "inputAudioMilliseconds"] as const;
const HEADLINE_OUTPUTS = [
  "imageRequests",
  "searchUnits",
  "outputVideoMilliseconds",
  "outputAudioMilliseconds",
  "characters",
  "outputTextTokens",
] as const satisfies readonly BilledKind[];

/** Picocredits per unit of input and of output; null: not billed. */
export function headlinePrices({ rates, ...basis }: PricingBasis & { readonly rates: RateCard }): {
  readonly input: bigint | null;
  readonly output: bigint | null;
} {
  const billed = billedKinds(basis);
  const first = (kinds: readonly BilledKind[]) => {
    const kind = kinds.find((each) => billed.includes(each));
    return kind === undefined ? null : rates[kind];
  };
  return { input: first(HEADLINE_INPUTS), output: first(HEADLINE_OUTPUTS) };
}

/**
 * Drops the fraction of a picocredit, which cannot change the later rounding to nanocredits: half a nanocredit is a whole number of
 * picocredits.
 */
function floorPicocredits(thousandths: bigint): bigint {
  return thousandths / MILLISECONDS_PER_SECOND;
}

function rateRules({ modality, imagePricing }: PricingBasis): readonly [BilledKind, readonly PriceField[]][] {
  const rules = modality === "image" && imagePricing === "tokens" ? IMAGE_TOKEN_RULES : RULES[modality];
  return Object.entries(rules) as [BilledKind, readonly PriceField[]][];
}
