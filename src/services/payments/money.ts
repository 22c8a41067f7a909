/** Amounts of a currency, and the credits that they buy: one credit for one unit of the currency. */

/** An amount of a currency with two decimals. */
export interface Money {
  readonly cents: bigint;
  /** ISO 4217, in lower case. */
  readonly currency: string;
}

export const NANOCREDITS_PER_CENT = 10n ** 7n;

/** Whether the credits have a price. */
export function isInCents(nanocredits: bigint): boolean {
  return nanocredits % NANOCREDITS_PER_CENT === 0n;
}

/** Of credits for which `isInCents`. Unspecified: one credit costs one unit of the currency. */
export function priceOf(nanocredits: bigint, currency: string): Money {
  return { cents: nanocredits / NANOCREDITS_PER_CENT, currency };
}

/** What a price is of a payment in which taxes may be included, rounded up to a cent of the price. */
export function priceShare(part: bigint, charged: bigint, price: bigint): bigint {
  if (charged <= 0n || part >= charged) return price;
  return part <= 0n ? 0n : (price * part + charged - 1n) / charged;
}

/** `1250n` to `"12.50"`. */
export function formatCents(cents: bigint): string {
  return `${cents / 100n}.${(cents % 100n).toString().padStart(2, "0")}`;
}
