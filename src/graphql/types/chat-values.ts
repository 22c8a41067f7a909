/** Fields of upstreams' answers. Values of other types than expected are null here, and remain in `raw` only. */

export function toText(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

export function toInt(value: unknown): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) ? value : null;
}

export function toDate(seconds: unknown): Date | null {
  const date = typeof seconds === "number" ? new Date(seconds * 1000) : null;
  return date === null || Number.isNaN(date.getTime()) ? null : date;
}

export function toList(value: unknown): unknown[] | null {
  return Array.isArray(value) ? value.filter((each) => each != null) : null;
}
