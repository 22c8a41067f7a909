/** Formats for bytes, shares and counts. */

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

export function formatBytes(bytes: number): string {
  let power = 0;
  while (bytes >= 1_024 ** (power + 1) && power < UNITS.length - 1) power += 1;
  const value = bytes / 1_024 ** power;
  return `${power === 0 || value >= 100 ? Math.round(value) : Number(value.toFixed(1))} ${UNITS[power]}`;
}

/** Formats a share between 0 and 1. Shares below 1% get two decimals, so that they do not round to 0.0%. */
export function formatPercent(share: number): string {
  return `${(share * 100).toFixed(share > 0 && share < 0.01 ? 2 : 1)}%`;
}

/** The GraphQL API stops counting lists here. */
const COUNTED_MAX = 10_000;

export function formatCount(count: number, one: string, many: string): string {
  if (count > COUNTED_MAX) return `More than ${COUNTED_MAX.toLocaleString("en")} ${many}`;
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** The greatest of amounts, none of which is below 0; 0 without any. */
export function greatest(amounts: readonly number[]): number {
  return amounts.reduce((most, amount) => Math.max(most, amount), 0);
}
