/** Amounts of a currency, and the credits that they buy: one credit for one unit of the currency. */

/** An amount of a currency with two decimals. */
export interface Money {
  readonly cents: bigint;
  /** ISO 4217, in lower case. */
  readonly currency: string;
}

/** Unspecified: one credit is worth one US dollar. */
export const CURRENCY = "usd";
const NANOCREDITS_PER_CENT = 10n ** 7n;

/** Null when the amount is not in whole cents. */
export function priceOf(nanocredits: bigint): Money | null {
  return nanocredits % NANOCREDITS_PER_CENT === 0n ? { cents: nanocredits / NANOCREDITS_PER_CENT, currency: CURRENCY } : null;
}

/** `1250n` to `"12.50"`. */
export function formatCents(cents: bigint): string {
  return `${cents / 100n}.${(cents % 100n).toString().padStart(2, "0")}`;
}
