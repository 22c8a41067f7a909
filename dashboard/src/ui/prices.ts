/** Exact arithmetic with model prices: decimal texts with up to twelve places, computed in whole picocredits. */
import type { ModelPricesFragment } from "../client/generated/graphql.js";
import { fromNanocredits } from "./credits.js";

const DIGITS = 12;
const PICOCREDITS_PER_NANOCREDIT = 1_000n;
const MILLION = 1_000_000n;
/** Amounts are computed in thousandths, because seconds have fractions. */
const PARTS = 1_000n;

export type PricedKind = Exclude<keyof ModelPricesFragment, "__typename">;

/** Prices per unit. Null or absent: the model has no such price. */
export type Prices = Readonly<Partial<Record<PricedKind, string | null>>>;

export interface KindTraits {
  readonly label: string;
  readonly unit: "tokens" | "seconds" | "images" | "characters";
}

export const KINDS: ReadonlyMap<PricedKind, KindTraits> = new Map([
  ["inputTextTokens", { label: "Text input", unit: "tokens" }],
  ["inputCachedTokens", { label: "Cached input", unit: "tokens" }],
  ["inputCacheWriteTokens", { label: "Cache write", unit: "tokens" }],
  ["inputAudioTokens", { label: "Audio input", unit: "tokens" }],
  ["inputImageTokens", { label: "Image input", unit: "tokens" }],
  ["inputAudioSeconds", { label: "Audio input", unit: "seconds" }],
  ["characters", { label: "Text input", unit: "characters" }],
  ["outputTextTokens", { label: "Text output", unit: "tokens" }],
  ["outputReasoningTokens", { label: "Reasoning", unit: "tokens" }],
  ["outputAudioTokens", { label: "Audio output", unit: "tokens" }],
  ["outputImageTokens", { label: "Image output", unit: "tokens" }],
  ["imageRequests", { label: "Image output", unit: "images" }],
  ["outputVideoSeconds", { label: "Video output", unit: "seconds" }],
  ["outputAudioSeconds", { label: "Audio output", unit: "seconds" }],
]);

const UNITS: Readonly<Record<KindTraits["unit"], { readonly name: string; readonly isPerMillion: boolean }>> = {
  tokens: { name: "per 1M tokens", isPerMillion: true },
  characters: { name: "per 1M characters", isPerMillion: true },
  seconds: { name: "per second", isPerMillion: false },
  images: { name: "per image", isPerMillion: false },
};

/** Prices of a model in the unit that people compare, such as credits per 1M tokens. */
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

/** Converts a price per unit to a price per million units. */
export function perMillion(price: string): string {
  return fromPicocredits(toPicocredits(price) * MILLION);
}

/** Converts typed text from a price per unit to a price per million. Null: the text is no valid price. */
export function toPerMillion(text: string): string | null {
  return AMOUNT.test(text) ? perMillion(text) : null;
}

/** Converts typed text from a price per million to a price per unit. Null: the text is no valid price. */
export function fromPerMillion(text: string): string | null {
  return AMOUNT.test(text) ? fromPicocredits(toPicocredits(text) / MILLION) : null;
}

const AMOUNT = /^\d{1,12}(?:\.\d{1,12})?$/;

/** Cost of the amounts, rounded once, half up, as the gateway does. Invalid amounts count as zero. */
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
