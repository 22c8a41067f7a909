/**
 * Pricing: from the ten stated prices of a model (Spec 2.8) to one rate per kind of usage, and from usage to a charge.
 *
 * Prices are bigint picocredits per unit (10^-12 credit), charges bigint nanocredits (10^-9 credit). A charge is a sum of
 * integer products, rounded once, half up (decisions "Credits").
 */
import { roundToNanocredits } from "../lib/money.js";
import type { UsageQuantities } from "../lib/usage.js";
import type { ImagePricing, Modality } from "./catalog/modality.js";

/** Spec 2.8, in its order. */
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

/** Picocredits per unit, as the model's entry states them: an absent price falls back to its base, a stated 0 is free. */
export type StatedPrices = Readonly<Partial<Record<PriceField, bigint>>>;

/** Everything that can be charged for: the amounts of a usage row, and the units of media that it does not count in tokens. */
export interface BillableQuantities extends UsageQuantities {
  /** Image generations of a model with `imagePricing: "request"`. */
  readonly imageRequests?: number;
  /** Characters that a speech model reads out. */
  readonly characters?: number;
  /** Length of the recording that a transcription model listens to. */
  readonly inputAudioMilliseconds?: number;
}

export type BilledKind = keyof BillableQuantities;

/** Picocredits per unit of each kind. The unit of the `...Milliseconds` kinds is the second, because prices are per second. */
export type RateCard = Readonly<Record<BilledKind, bigint>>;

/** For each kind that a modality bills, the price fields that set its rate: the first one stated counts. */
type RateRules = Readonly<Partial<Record<BilledKind, readonly PriceField[]>>>;

/**
 * Decisions "What is billed": cached, cache-write, audio and image input fall back to the text prompt, reasoning and
 * audio output to the text completion. Unspecified: image tokens that a text model puts out, for which it has no price
 * field, are completion text.
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

/** Decisions "Agents and community models": the units in which each modality is priced. */
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

const ALL_FREE: RateCard = Object.freeze({
  inputTextTokens: 0n,
  inputCachedTokens: 0n,
  inputCacheWriteTokens: 0n,
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

/** Amounts in milliseconds at prices per second; every other kind is counted in the unit that is priced. */
const MILLISECOND_KINDS = ["outputVideoMilliseconds", "outputAudioMilliseconds", "inputAudioMilliseconds"] as const;
const UNIT_KINDS = (Object.keys(ALL_FREE) as readonly BilledKind[]).filter((kind) => !kind.endsWith("Milliseconds"));
const MILLISECONDS_PER_SECOND = 1000n;

/** What decides which price fields a model uses. */
export interface PricingBasis {
  readonly modality: Modality;
  readonly imagePricing: ImagePricing;
}

/** The rates of a model with these prices: every fall-back is applied here, once, and never while a request is charged. */
export function toRateCard(prices: StatedPrices, basis: PricingBasis): RateCard {
  const rates: Record<BilledKind, bigint> = { ...ALL_FREE };
  for (const [kind, fields] of rateRules(basis)) {
    for (const field of fields) {
      const price = prices[field];
      if (price === undefined) continue;
      rates[kind] = price;
      break;
    }
  }
  return Object.freeze(rates);
}

/** The kinds of usage that a model is billed by, in the order of the usage row. */
export function billedKinds(basis: PricingBasis): readonly BilledKind[] {
  return rateRules(basis).map(([kind]) => kind);
}

/** The price fields that a model uses; the others must not be stated above 0 (decisions "Agents and community models"). */
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
export function costOf(usage: BillableQuantities, rates: RateCard): bigint {
  let picocredits = 0n;
  for (const kind of UNIT_KINDS) {
    const amount = usage[kind];
    if (amount) picocredits += BigInt(amount) * rates[kind];
  }
  let thousandths = 0n;
  for (const kind of MILLISECOND_KINDS) {
    const amount = usage[kind];
    if (amount) thousandths += BigInt(amount) * rates[kind];
  }
  if (thousandths === 0n) return roundToNanocredits(picocredits);
  return roundToNanocredits(floorPicocredits(picocredits * MILLISECONDS_PER_SECOND + thousandths));
}

/** True when nothing that the model can do costs anything: it is let in at balance 0. */
export function isFree(rates: RateCard): boolean {
  return Object.values(rates).every((rate) => rate === 0n);
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
