/** Small statistics, and the tables that the benchmarks print. */

/** The middle value; of an even number the mean of the middle two. NaN of none. */
export function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/** Linear interpolation between closest ranks. NaN of none. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const rank = ((sorted.length - 1) * percent) / 100;
  const low = sorted[Math.floor(rank)];
  const high = sorted[Math.ceil(rank)];
  if (low === undefined || high === undefined) return Number.NaN;
  return low + (high - low) * (rank - Math.floor(rank));
}

/**
 * How two contenders compare: the median of the ratios of the rounds that they ran one after the other, so that a
 * machine that slows down for a while slows both sides of a ratio. NaN when either ran no round.
 */
export function medianRatio(numerators: readonly number[], denominators: readonly number[]): number {
  const ratios: number[] = [];
  numerators.forEach((numerator, round) => {
    const denominator = denominators[round];
    if (denominator !== undefined && denominator > 0) ratios.push(numerator / denominator);
  });
  return median(ratios);
}

/** A number with `digits` decimals and thousands separators; a dash for a missing one. */
export function format(value: number | null | undefined, digits = 0): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "-";
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** A Markdown table, aligned so that it also reads in a terminal: the first column to the left, the others to the right. */
export function toTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = header.map((title, column) => Math.max(title.length, 3, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    `| ${widths.map((width, column) => (column === 0 ? (cells[column] ?? "").padEnd(width) : (cells[column] ?? "").padStart(width))).join(" | ")} |`;
  const rule = `| ${widths.map((width, column) => (column === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`)).join(" | ")} |`;
  return [line(header), rule, ...rows.map(line)].join("\n");
}
