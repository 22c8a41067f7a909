/** Lengths of files, as people say them. */
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

export function formatBytes(bytes: number): string {
  let power = 0;
  while (bytes >= 1_024 ** (power + 1) && power < UNITS.length - 1) power += 1;
  const value = bytes / 1_024 ** power;
  return `${power === 0 || value >= 100 ? Math.round(value) : Number(value.toFixed(1))} ${UNITS[power]}`;
}
