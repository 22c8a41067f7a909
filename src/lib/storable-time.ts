/** Years of four digits, in UTC: the times that JSON, PostgreSQL and clients all read. */
export function isStorableTime(time: Date): boolean {
  const year = time.getUTCFullYear();
  return year >= 1 && year <= 9_999;
}

export const STORABLE_YEARS = "must be in the years 0001 to 9999, in UTC";
