export const DAY_MS = 86_400_000;

/** Start of a UTC day, as in the ledger. The result is the same all day, which keeps the variables of queries stable. */
export function daysAgo(days: number): Date {
  return new Date((Math.floor(Date.now() / DAY_MS) - days) * DAY_MS);
}
