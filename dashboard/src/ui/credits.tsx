/** Formats credits from their exact decimal text, without floating point. */

const FRACTION_SHOWN = 4;

/**
 * Formats `"1234.5"` as `"1,234.50"`. Shows at least two decimals, and enough for two significant digits of amounts below one credit.
 * Truncates instead of rounding, so that no balance looks larger than it is.
 */
export function formatCredits(exact: string, decimals = FRACTION_SHOWN): string {
  const isNegative = exact.startsWith("-");
  const [whole = "0", fraction = ""] = (isNegative ? exact.slice(1) : exact).split(".", 2);
  const firstDigit = whole === "0" ? fraction.search(/[1-9]/) : -1;
  const shown = Math.max(decimals, firstDigit === -1 ? 0 : firstDigit + 2);
  const cut = fraction.slice(0, shown).replace(/0+$/, "").padEnd(2, "0");
  return `${isNegative ? "−" : ""}${whole.replace(/\B(?=(?:\d{3})+$)/g, ",")}.${cut}`;
}

/** Adds decimal texts, exact to the nanocredit. */
export function sumOfCredits(amounts: readonly string[]): string {
  return fromNanocredits(amounts.reduce((sum, amount) => sum + toNanocredits(amount), 0n));
}

const NANOCREDITS_PER_CREDIT = 1_000_000_000n;

export function toNanocredits(exact: string): bigint {
  const isNegative = exact.startsWith("-");
  const [whole = "0", fraction = ""] = (isNegative ? exact.slice(1) : exact).split(".", 2);
  const nanocredits = BigInt(whole) * NANOCREDITS_PER_CREDIT + BigInt(fraction.slice(0, 9).padEnd(9, "0"));
  return isNegative ? -nanocredits : nanocredits;
}

export function fromNanocredits(nanocredits: bigint): string {
  const size = nanocredits < 0n ? -nanocredits : nanocredits;
  const fraction = (size % NANOCREDITS_PER_CREDIT).toString().padStart(9, "0").replace(/0+$/, "");
  const text = `${size / NANOCREDITS_PER_CREDIT}${fraction === "" ? "" : `.${fraction}`}`;
  return nanocredits < 0n ? `-${text}` : text;
}

/** Shows an amount without a currency sign, because a credit is worth one US dollar but is no dollar. The tooltip has all decimals. */
export function Credits({ value, unit = false }: { readonly value: string | null | undefined; readonly unit?: boolean }) {
  if (value === null || value === undefined) return <span className="soft">–</span>;
  return (
    <span title={`${value} credits`}>
      {formatCredits(value)}
      {unit ? " credits" : ""}
    </span>
  );
}
