/** Amounts of a currency, and the credits that they buy: one credit for one unit of the currency. */

/** An amount of a currency with two decimals. */
export interface Money {
  readonly cents: bigint;
  /** ISO 4217, in lower case. */
  readonly currency: string;
}

/** Unspecified: one credit is worth one US dollar. */
const CURRENCY = "usd";
const NANOCREDITS_PER_CENT = 10n ** 7n;

/** Whether the credits have a price. */
export function isInCents(nanocredits: bigint): boolean {
  return nanocredits % NANOCREDITS_PER_CENT === 0n;
}

/** Of credits for which `isInCents`. */
export function priceOf(nanocredits: bigint): Money {
  return { cents: nanocredits / NANOCREDITS_PER_CENT, currency: CURRENCY };
}

/** `1250n` to `"12.50"`. */
export function formatCents(cents: bigint): string {
  return `${cents / 100n}.${(cents % 100n).toString().padStart(2, "0")}`;
}
