/** What a generation costs, as far as it can be known while it runs: prices are exact, the amounts are a guess from the length of the texts. */
import { costOf, type PricedKind, type Prices } from "../../ui/prices.js";

/** As English text has it on the average. */
const CHARACTERS_PER_TOKEN = 4;

const tokensIn = (characters: number) => String(Math.ceil(characters / CHARACTERS_PER_TOKEN));

/** In credits, as decimal text; null where the model has no price for text. */
export function estimateCost(prices: Prices, charactersIn: number, charactersOut: number): string | null {
  if (prices.inputTextTokens === null && prices.outputTextTokens === null) return null;
  const amounts = new Map<PricedKind, string>([
    ["inputTextTokens", tokensIn(charactersIn)],
    ["outputTextTokens", tokensIn(charactersOut)],
  ]);
  return costOf(prices, amounts);
}

/** Of so many pictures, seconds or characters; null where that is not what is paid for, or their number is not known. */
export function estimateUnits(prices: Prices | undefined, kind: PricedKind, units: number | null): string | null {
  if ((prices?.[kind] ?? null) === null || units === null || !Number.isFinite(units) || units <= 0) return null;
  return costOf(prices ?? {}, new Map([[kind, units.toFixed(3)]]));
}

/** A number as a form has it: empty is none. */
export const numberOf = (field: number | string): number | null => (field === "" ? null : Number(field));
