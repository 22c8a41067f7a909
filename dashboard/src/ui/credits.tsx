/** Credits, exact: a decimal text is cut and grouped, never computed with. */

const FRACTION_SHOWN = 4;

/**
 * `"1234.5"` is `"1,234.50"`. Two decimals at least; of amounts below one credit as many as show two digits that count. What is left out is
 * cut, so that no balance looks larger than it is; the title has all of it.
 */
export function formatCredits(exact: string, decimals = FRACTION_SHOWN): string {
  const isNegative = exact.startsWith("-");
  const [whole = "0", fraction = ""] = (isNegative ? exact.slice(1) : exact).split(".", 2);
  const firstDigit = whole === "0" ? fraction.search(/[1-9]/) : -1;
  const shown = Math.max(decimals, firstDigit === -1 ? 0 : firstDigit + 2);
  const cut = fraction.slice(0, shown).replace(/0+$/, "").padEnd(2, "0");
  return `${isNegative ? "−" : ""}${whole.replace(/\B(?=(?:\d{3})+$)/g, ",")}.${cut}`;
}

/** A sum of decimal texts, exact to the nanocredit. */
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

/** One credit is worth one US dollar, but is none: it is shown as a number with its unit where `unit` asks for it. */
export function Credits({ value, unit = false }: { readonly value: string | null | undefined; readonly unit?: boolean }) {
  if (value === null || value === undefined) return <span className="soft">–</span>;
  return (
    <span title={`${value} credits`}>
      {formatCredits(value)}
      {unit ? " credits" : ""}
    </span>
  );
}
