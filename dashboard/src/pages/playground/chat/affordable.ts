/** How long an answer the balance covers, after a request was refused for its estimated cost. */
import type { CombinedError } from "urql";
import { toNanocredits } from "../../../ui/credits.js";
import { perMillion } from "../../../ui/prices.js";
import type { PlaygroundModel } from "../models.js";

/** Shorter answers are of no use. */
const TOKENS_MIN = 16;
/** Percentage of the balance: the input is paid for as well. */
const SHARE = 90n;
const MILLION = 1_000_000n;

/** Tokens of output, with two significant digits. Null when the refusal is about something else, or too little is left. */
export function affordableTokens(error: CombinedError, { pricing }: PlaygroundModel, current: number | string): number | null {
  const extensions = (error.graphQLErrors[0]?.extensions ?? {}) as { readonly code?: unknown; readonly details?: unknown };
  const { available } = (extensions.details ?? {}) as { readonly available?: unknown };
  if (extensions.code !== "INSUFFICIENT_BALANCE" && extensions.code !== "KEY_BUDGET_EXHAUSTED") return null;
  if (typeof available !== "string" || pricing.outputTextTokens === null) return null;
  const price = toNanocredits(perMillion(pricing.outputTextTokens));
  if (price <= 0n) return null;
  const tokens = Number((toNanocredits(available) * SHARE * MILLION) / (price * 100n));
  const step = 10 ** Math.max(0, Math.floor(Math.log10(Math.max(1, tokens))) - 1);
  const rounded = Math.floor(tokens / step) * step;
  // A lower limit that was refused already is no way on.
  const isLower = current === "" || rounded < Number(current);
  return rounded >= TOKENS_MIN && isLower ? rounded : null;
}
