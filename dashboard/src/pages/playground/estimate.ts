/** What a generation costs, as far as it can be known while it runs: prices are exact, the amounts are a guess from the length of the texts. */
import { fromNanocredits } from "../../ui/credits.js";

/** Digits behind the point that prices are computed with: a token may cost less than a nanocredit. */
const DIGITS = 18;
const PER_NANOCREDIT = 10n ** 9n;
/** As English text has it on the average. */
const CHARACTERS_PER_TOKEN = 4;
/** Amounts are counted in thousandths: seconds come with milliseconds. */
const THOUSANDTHS = 1_000;

interface TokenPrices {
  readonly inputTextTokens: string | null;
  readonly outputTextTokens: string | null;
}

export const estimateTokens = (characters: number): number => Math.ceil(characters / CHARACTERS_PER_TOKEN);

/** In credits, as decimal text; null where the model has no price for text. */
export function estimateCost(
  { inputTextTokens, outputTextTokens }: TokenPrices,
  charactersIn: number,
  charactersOut: number,
): string | null {
  if (inputTextTokens === null && outputTextTokens === null) return null;
  const exact =
    toUnits(inputTextTokens ?? "0") * BigInt(estimateTokens(charactersIn)) +
    toUnits(outputTextTokens ?? "0") * BigInt(estimateTokens(charactersOut));
  return fromNanocredits((exact + PER_NANOCREDIT - 1n) / PER_NANOCREDIT);
}

function toUnits(price: string): bigint {
  const [whole = "0", fraction = ""] = price.split(".", 2);
  return BigInt(`${whole}${fraction.slice(0, DIGITS).padEnd(DIGITS, "0")}`);
}

/** Of so many units (pictures, seconds, characters) at a price; null where that is not what is paid for, or their number is not known. */
export function estimateUnits(price: string | null, units: number | null): string | null {
  if (price === null || units === null || !Number.isFinite(units) || units <= 0) return null;
  const exact = (toUnits(price) * BigInt(Math.round(units * THOUSANDTHS))) / BigInt(THOUSANDTHS);
  return fromNanocredits((exact + PER_NANOCREDIT - 1n) / PER_NANOCREDIT);
}

/** A number as a form has it: empty is none. */
export const numberOf = (field: number | string): number | null => (field === "" ? null : Number(field));
