/**
 * Pricing: from the ten stated prices of a model (docs/spec/credits.md#prices) to one rate per kind of usage, and from usage to a charge.
 *
 * Prices are bigint picocredits per unit (10^-12 credit), charges bigint nanocredits (10^-9 credit). A charge is a sum of
 * integer products, rounded once, half up (docs/spec/credits.md#units).
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

/** What the catalog's own entries may state beside them; models that accounts register have the ten. */
export const CATALOG_PRICE_FIELDS = [...PRICE_FIELDS, "promptCacheWriteHourPrice"] as const;
export type CatalogPriceField = (typeof CATALOG_PRICE_FIELDS)[number];

/** Picocredits per unit, as the model's entry states them: an absent price falls back to its base, a stated 0 is free. */
export type StatedPrices = Readonly<Partial<Record<CatalogPriceField, bigint>>>;

/** What a request costs whose prompt is longer than this, all of it: a price that is not stated here is that of a short one. */
export interface LongContextPrices {
  readonly abovePromptTokens: number;
  readonly prices: StatedPrices;
}

/** What a value of a field that is billed does to the price of its request (docs/adding-a-model.md, `pricedFields`). */
export interface FieldPrice {
  /** Instead of the model's own. */
  readonly prices: StatedPrices;
  /** Millionths by which every rate is multiplied. */
  readonly multiplier: bigint;
  /** Picocredits on top, once for the request. */
  readonly perRequest: bigint;
}

/** By field, then by value: `*` is any value that has no price of its own. */
export type PricedFields = ReadonlyMap<string, ReadonlyMap<string, FieldPrice>>;

/** Everything that can be charged for: the amounts of a usage row, and the units of media that it does not count in tokens. */
export interface BillableQuantities extends ReportedUsage {
  /** Image generations of a model with `imagePricing: "request"`. */
  readonly imageRequests?: number;
  /** Characters that a speech model reads out. */
  readonly characters?: number;
  /** Length of the recording that a transcription model listens to. */
  readonly inputAudioMilliseconds?: number;
}

export type BilledKind = keyof BillableQuantities;

/** Picocredits per unit of each kind. The unit of the `...Milliseconds` kinds is the second, because prices are per second. */
type Rates = Readonly<Record<BilledKind, bigint>>;

/** What usage is charged by. */
export interface RateCard extends Rates {
  /** Nothing that the model can do costs anything: it is let in at balance 0. */
  readonly isFree: boolean;
  /** Picocredits, once for a request whatever it takes. */
  readonly perRequest?: bigint;
  /** What a longer prompt costs, the longest first. */
  readonly longContext?: readonly { readonly abovePromptTokens: number; readonly rates: Rates }[];
  /** The request asks for a cache of an hour: what is written counts as that, unless the upstream tells the kinds apart. */
  readonly isHourCacheAsked?: boolean;
}

/** For each kind that a modality bills, the price fields that set its rate: the first one stated counts. */
type RateRules = Readonly<Partial<Record<BilledKind, readonly PriceField[]>>>;

/**
 * Prices that fall back (docs/spec/credits.md#prices): cached, cache-write, audio and image input fall back to the text
 * prompt, reasoning and audio output to the text completion. Unspecified: image tokens that a text model puts out, for which
 * it has no price field, are completion text.
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

/** Unspecified: whatever an image model priced by tokens puts out, text and reasoning included, is billed as image output. */
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

/** The units in which each modality is priced (docs/spec/credits.md#prices). */
const RULES: Readonly<Record<Modality, RateRules>> = {
  text: TOKEN_RULES,
  realtime: TOKEN_RULES,
  embedding: INPUT_ONLY_RULES,
  moderation: INPUT_ONLY_RULES,
  image: { imageRequests: ["completionImagePrice"] },
  video: { outputVideoMilliseconds: ["completionVideoPrice"] },
  speech: { characters: ["completionAudioPrice"] },
  music: { outputAudioMilliseconds: ["completionAudioPrice"] },
  transcription: { inputAudioMilliseconds: ["promptAudioPrice"] },
};

/** The kinds that are metered of a modality, whatever its models' prices are; not all of them of every model. */
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
  characters: 0n,
  inputAudioMilliseconds: 0n,
});

export const BILLED_KINDS = Object.keys(ALL_FREE) as readonly BilledKind[];

/** Amounts in milliseconds at prices per second; every other kind is counted in the unit that is priced. */
const MILLISECOND_KINDS = ["outputVideoMilliseconds", "outputAudioMilliseconds", "inputAudioMilliseconds"] as const;
/** Tokens written for an hour are among those that are written: `costOf` charges them for the difference. */
const UNIT_KINDS = BILLED_KINDS.filter((kind) => !kind.endsWith("Milliseconds") && kind !== "inputCacheWriteHourTokens");
const PROMPT_KINDS = ["inputTextTokens", "inputCachedTokens", "inputCacheWriteTokens", "inputAudioTokens", "inputImageTokens"] as const;
const MILLISECONDS_PER_SECOND = 1000n;
export const MULTIPLIER_ONE = 1_000_000n;
/** Upstreams count a prompt with vocabularies of their own: one this near to a bound is held for as if it were beyond it. */
const COUNTED_PERCENT = 125;

/** What decides which price fields a model uses. */
export interface PricingBasis {
  readonly modality: Modality;
  readonly imagePricing: ImagePricing;
}

/** The rates of a model with these prices: every fall-back is applied here, once, and never while a request is charged. */
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

/** The rates of a request that states fields of these prices. A product is rounded up to a whole picocredit. */
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

function toCard(rates: Rates, more: Pick<RateCard, "perRequest" | "longContext"> = {}): RateCard {
  const all = [rates, ...(more.longContext ?? []).map((tier) => tier.rates)];
  const isFree = !more.perRequest && all.every((each) => BILLED_KINDS.every((kind) => each[kind] === 0n));
  return Object.freeze({ ...rates, ...more, isFree });
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

/** The kinds of usage that a model is billed by, in the order of the usage row. */
export function billedKinds(basis: PricingBasis): readonly BilledKind[] {
  return rateRules(basis).map(([kind]) => kind);
}

/** The price fields that a model uses; the others must not be stated above 0 (docs/spec/credits.md#prices). */
export function usedPriceFields(basis: PricingBasis): readonly PriceField[] {
  const used = new Set(rateRules(basis).flatMap(([, fields]) => fields));
  return PRICE_FIELDS.filter((field) => used.has(field));
}

/** What each price field comes to, in picocredits per unit: with the fall-backs applied, and 0 for what is not used. */
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
 * What is held for this usage, whose prompt the gateway has counted: at the price of a longer prompt when it is near to one, and as if
 * all of it were written to the upstream's cache where that is dearer.
 */
export function holdFor(usage: BillableQuantities, card: RateCard): bigint {
  const rates = ratesFor((promptTokensOf(usage) * COUNTED_PERCENT) / 100, card);
  let dearest = rates.inputTextTokens;
  if (rates.inputCacheWriteTokens > dearest) dearest = rates.inputCacheWriteTokens;
  if (card.isHourCacheAsked && rates.inputCacheWriteHourTokens > dearest) dearest = rates.inputCacheWriteHourTokens;
  return costAt(usage, rates, card, BigInt(usage.inputTextTokens) * (dearest - rates.inputTextTokens));
}

function costAt(usage: BillableQuantities, rates: Rates, { perRequest = 0n, isHourCacheAsked }: RateCard, morePicocredits = 0n): bigint {
  let picocredits = perRequest + morePicocredits;
  for (const kind of UNIT_KINDS) {
    const amount = usage[kind];
    if (amount) picocredits += BigInt(amount) * rates[kind];
  }
  const hourTokens = usage.inputCacheWriteHourTokens ?? (isHourCacheAsked ? usage.inputCacheWriteTokens : 0);
  if (hourTokens) picocredits += BigInt(hourTokens) * (rates.inputCacheWriteHourTokens - rates.inputCacheWriteTokens);
  let thousandths = 0n;
  for (const kind of MILLISECOND_KINDS) {
    const amount = usage[kind];
    if (amount) thousandths += BigInt(amount) * rates[kind];
  }
  if (thousandths === 0n) return roundToNanocredits(picocredits);
  return roundToNanocredits(floorPicocredits(picocredits * MILLISECONDS_PER_SECOND + thousandths));
}

/** Vendors who ask more for a long prompt ask it for the whole request. */
function ratesFor(promptTokens: number, card: RateCard): Rates {
  return card.longContext?.find(({ abovePromptTokens }) => promptTokens > abovePromptTokens)?.rates ?? card;
}

function promptTokensOf(usage: BillableQuantities): number {
  let tokens = 0;
  for (const kind of PROMPT_KINDS) tokens += usage[kind];
  return tokens;
}

/** The same amounts when they cost no more than that many nanocredits; else each cut in one proportion. */
export function cutToCost(quantities: BillableQuantities, card: RateCard, nanocredits: bigint): BillableQuantities {
  const cost = costOf(quantities, card);
  if (cost <= nanocredits) return quantities;
  const cut: { -readonly [Kind in keyof BillableQuantities]: BillableQuantities[Kind] } = { ...quantities };
  // Rounded down, so that the parts never cost more than the whole may.
  for (const kind of BILLED_KINDS) {
    const amount = quantities[kind];
    if (amount) cut[kind] = Number((BigInt(amount) * nanocredits) / cost);
  }
  return cut;
}

/** By which people compare models, of those kinds that a model bills: the first there is. */
const HEADLINE_INPUTS = ["inputTextTokens", "inputAudioMilliseconds"] as const;
const HEADLINE_OUTPUTS = [
  "imageRequests",
  "outputVideoMilliseconds",
  "outputAudioMilliseconds",
  "characters",
  "outputTextTokens",
] as const satisfies readonly BilledKind[];

/** Picocredits for a unit of what goes in and of what comes out; null: that is not billed. */
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
 * Drops the fraction of a picocredit. It cannot change the rounding to nanocredits that follows: half a nanocredit is a
 * whole number of picocredits, so an amount reaches it exactly when its whole picocredits do.
 */
function floorPicocredits(thousandths: bigint): bigint {
  return thousandths / MILLISECONDS_PER_SECOND;
}

function rateRules({ modality, imagePricing }: PricingBasis): readonly [BilledKind, readonly PriceField[]][] {
  const rules = modality === "image" && imagePricing === "tokens" ? IMAGE_TOKEN_RULES : RULES[modality];
  return Object.entries(rules) as [BilledKind, readonly PriceField[]][];
}
