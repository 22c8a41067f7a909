/** What models cost, exact: prices are decimal texts of up to twelve places, and are computed with as whole numbers of picocredits. */
import type { ModelPricesFragment } from "../client/generated/graphql.js";
import { fromNanocredits } from "./credits.js";

const DIGITS = 12;
const PICOCREDITS_PER_NANOCREDIT = 1_000n;
const MILLION = 1_000_000n;
/** Amounts are counted in thousandths: seconds have fractions. */
const PARTS = 1_000n;

export type PricedKind = Exclude<keyof ModelPricesFragment, "__typename">;

/** Of one each; null, or not there: it has none. */
export type Prices = Readonly<Partial<Record<PricedKind, string | null>>>;

export interface KindTraits {
  readonly label: string;
  /** Of the amount that is typed. */
  readonly unit: "tokens" | "seconds" | "pictures" | "characters";
}

/** In the order in which they are shown. */
export const KINDS: ReadonlyMap<PricedKind, KindTraits> = new Map([
  ["inputTextTokens", { label: "Text in", unit: "tokens" }],
  ["inputCachedTokens", { label: "Read from the prompt cache", unit: "tokens" }],
  ["inputCacheWriteTokens", { label: "Written to the prompt cache", unit: "tokens" }],
  ["inputAudioTokens", { label: "Sound in", unit: "tokens" }],
  ["inputImageTokens", { label: "Pictures in", unit: "tokens" }],
  ["inputAudioSeconds", { label: "Recording in", unit: "seconds" }],
  ["characters", { label: "Text read out", unit: "characters" }],
  ["outputTextTokens", { label: "Text out", unit: "tokens" }],
  ["outputReasoningTokens", { label: "Thinking", unit: "tokens" }],
  ["outputAudioTokens", { label: "Sound out", unit: "tokens" }],
  ["outputImageTokens", { label: "Pictures out", unit: "tokens" }],
  ["imageRequests", { label: "Pictures out", unit: "pictures" }],
  ["outputVideoSeconds", { label: "Video out", unit: "seconds" }],
  ["outputAudioSeconds", { label: "Sound out", unit: "seconds" }],
]);

const UNITS: Readonly<Record<KindTraits["unit"], { readonly name: string; readonly isPerMillion: boolean }>> = {
  tokens: { name: "a million tokens", isPerMillion: true },
  characters: { name: "a million characters", isPerMillion: true },
  seconds: { name: "a second", isPerMillion: false },
  pictures: { name: "a picture", isPerMillion: false },
};

/** What it is billed by, with each price of the unit that people compare. */
export function pricesOf(pricing: ModelPricesFragment): readonly { kind: PricedKind; traits: KindTraits; price: string; per: string }[] {
  return [...KINDS].flatMap(([kind, traits]) => {
    const exact = pricing[kind];
    if (exact === null) return [];
    const { name, isPerMillion } = UNITS[traits.unit];
    return [{ kind, traits, price: isPerMillion ? perMillion(exact) : exact, per: name }];
  });
}

function toPicocredits(price: string): bigint {
  const [whole = "0", fraction = ""] = price.split(".", 2);
  return BigInt(`${whole}${fraction.slice(0, DIGITS).padEnd(DIGITS, "0")}`);
}

function fromPicocredits(picocredits: bigint): string {
  const digits = picocredits.toString().padStart(DIGITS + 1, "0");
  const fraction = digits.slice(-DIGITS).replace(/0+$/, "");
  return `${digits.slice(0, -DIGITS)}${fraction === "" ? "" : `.${fraction}`}`;
}

/** What a million cost of what costs so much. */
export function perMillion(price: string): string {
  return fromPicocredits(toPicocredits(price) * MILLION);
}

/** What a million cost, of what is typed as the price of one; null: this is no amount that could be. */
export function toPerMillion(text: string): string | null {
  return AMOUNT.test(text) ? perMillion(text) : null;
}

/** The price of one of what a million cost so much; null: this is no amount that could be. */
export function fromPerMillion(text: string): string | null {
  return AMOUNT.test(text) ? fromPicocredits(toPicocredits(text) / MILLION) : null;
}

/** An amount or a price, as it is typed. */
const AMOUNT = /^\d{1,12}(?:\.\d{1,12})?$/;

/** What so much of each would be charged, rounded once, half up, as the gateway does. What cannot be read is left out. */
export function costOf(pricing: Prices, amounts: ReadonlyMap<PricedKind, string>): string {
  let sum = 0n;
  for (const [kind, text] of amounts) {
    const price = pricing[kind] ?? null;
    const amount = text.trim();
    if (price === null || !AMOUNT.test(amount)) continue;
    const [whole = "0", fraction = ""] = amount.split(".", 2);
    const isWhole = KINDS.get(kind)?.unit !== "seconds";
    const parts = BigInt(whole) * PARTS + (isWhole ? 0n : BigInt(fraction.slice(0, 3).padEnd(3, "0")));
    sum += toPicocredits(price) * parts;
  }
  const one = PICOCREDITS_PER_NANOCREDIT * PARTS;
  return fromNanocredits((sum + one / 2n) / one);
}
