/** Cost estimates for running generations: exact prices, with amounts guessed from text lengths. */
import { costOf, type PricedKind, type Prices } from "../../ui/prices.js";

/** Average of English text. */
const CHARACTERS_PER_TOKEN = 4;

const tokensIn = (characters: number) => String(Math.ceil(characters / CHARACTERS_PER_TOKEN));

/** Estimated cost in credits. Null when the model has no price for text. */
export function estimateCost(prices: Prices, charactersIn: number, charactersOut: number): string | null {
  if (prices.inputTextTokens === null && prices.outputTextTokens === null) return null;
  const amounts = new Map<PricedKind, string>([
    ["inputTextTokens", tokensIn(charactersIn)],
    ["outputTextTokens", tokensIn(charactersOut)],
  ]);
  return costOf(prices, amounts);
}

/** Cost of images, seconds or characters. Null when the model has no such price or the number is unknown. */
export function estimateUnits(prices: Prices | undefined, kind: PricedKind, units: number | null): string | null {
  if ((prices?.[kind] ?? null) === null || units === null || !Number.isFinite(units) || units <= 0) return null;
  return costOf(prices ?? {}, new Map([[kind, units.toFixed(3)]]));
}

/** Value of a number input, null when empty. */
export const numberOf = (field: number | string): number | null => (field === "" ? null : Number(field));
