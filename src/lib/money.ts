/**
 * Money: integers only. Balances and costs are bigint nanocredits (10^-9 credit), prices bigint picocredits (10^-12
 * credit) per unit. One credit is worth one US dollar.
 */

import { withoutTrailing } from "./urls.js";

const NANOCREDIT_DECIMALS = 9;
const PICOCREDIT_DECIMALS = 12;
const PICOCREDITS_PER_NANOCREDIT = 1000n;
/** Several times the longest amount that any limit allows. Longer text is refused unread, as some parsing is quadratic. */
export const AMOUNT_CHARS_MAX = 64;
const DECIMAL_PATTERN = /^(-?)(\d{1,64})(?:\.(\d{1,64}))?$/;

/** Picocredits to nanocredits, rounded half up: the one rounding of a charge. Takes amounts of 0 or more. */
export function roundToNanocredits(picocredits: bigint): bigint {
  return (picocredits + PICOCREDITS_PER_NANOCREDIT / 2n) / PICOCREDITS_PER_NANOCREDIT;
}

/** `"0.000001"` to 1000000n picocredits. Null when it is not a plain decimal of at most 12 decimal places and AMOUNT_CHARS_MAX characters. */
export function parsePicocredits(decimal: string): bigint | null {
  return parseDecimal(decimal, PICOCREDIT_DECIMALS);
}

/** `"1.5"` to 1500000000n nanocredits. Null when it is not a plain decimal of at most 9 decimal places and AMOUNT_CHARS_MAX characters. */
export function parseNanocredits(decimal: string): bigint | null {
  return parseDecimal(decimal, NANOCREDIT_DECIMALS);
}

/** Nanocredits as the shortest plain decimal string of credits: 1500000000n to `"1.5"`. */
export function formatNanocredits(nanocredits: bigint): string {
  return formatDecimal(nanocredits, NANOCREDIT_DECIMALS);
}

/** Picocredits per unit as the shortest plain decimal string of credits per unit. */
export function formatPicocredits(picocredits: bigint): string {
  return formatDecimal(picocredits, PICOCREDIT_DECIMALS);
}

/** Nanocredits as a JSON number of credits, for the REST fields that the specification shows as numbers. Never calculated with. */
export function toCreditsNumber(nanocredits: bigint): number {
  return Number(formatNanocredits(nanocredits));
}

/**
 * A JSON number as the decimal that its writer meant: `1e-7` to `"0.0000001"`. Null when it is not finite, so that a
 * number from a request reaches the integer arithmetic through its shortest decimal form and not through multiplication.
 */
export function toPlainDecimal(value: number): string | null {
  if (!Number.isFinite(value)) return null;
  const text = String(value);
  const match = /^(-?)(\d+)(?:\.(\d+))?e([+-]\d+)$/.exec(text);
  if (!match) return text;
  const [, sign = "", whole = "0", fraction = "", exponentText = "0"] = match;
  const exponent = Number(exponentText);
  const digits = whole + fraction;
  const point = whole.length + exponent;
  if (point <= 0) return `${sign}0.${"0".repeat(-point)}${digits}`;
  if (point >= digits.length) return sign + digits + "0".repeat(point - digits.length);
  return `${sign}${digits.slice(0, point)}.${digits.slice(point)}`;
}

function parseDecimal(decimal: string, decimals: number): bigint | null {
  const match = decimal.length <= AMOUNT_CHARS_MAX ? DECIMAL_PATTERN.exec(decimal) : null;
  if (!match) return null;
  const [, sign, whole = "0", fraction = ""] = match;
  const significant = withoutTrailing(fraction, "0");
  if (significant.length > decimals) return null;
  const magnitude = BigInt(whole + significant.padEnd(decimals, "0"));
  return sign ? -magnitude : magnitude;
}

function formatDecimal(amount: bigint, decimals: number): string {
  const sign = amount < 0n ? "-" : "";
  const digits = (amount < 0n ? -amount : amount).toString().padStart(decimals + 1, "0");
  const fraction = withoutTrailing(digits.slice(-decimals), "0");
  return sign + digits.slice(0, -decimals) + (fraction ? `.${fraction}` : "");
}

export function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

export function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

/** Millionths to a decimal percentage: 25000 to `2.5`. */
export function formatPercent(share: bigint): string {
  const decimals = withoutTrailing((share % 10_000n).toString().padStart(4, "0"), "0");
  return decimals === "" ? `${share / 10_000n}` : `${share / 10_000n}.${decimals}`;
}
