/** Selects the bytes of a range request (RFC 9110, 13.1.5 and 14). */

export interface ByteRange {
  readonly start: number;
  /** The last byte, inclusive. */
  readonly end: number;
}

export interface RangeRequest {
  readonly method: string | undefined;
  /** Request headers as received. */
  readonly range: string | undefined;
  readonly ifRange: string | undefined;
}

const BYTES_UNIT = /^bytes=/i;
const SPEC = /^(\d*)-(\d*)$/;

/**
 * Returns one range, `unsatisfiable` when no requested range has a byte of the file, or null for the whole file: without a range, for a
 * method other than GET, another unit, a malformed header, a failed condition, or several ranges, which HTTP allows to ignore. `etag` is a
 * strong one with its quotes; files here have no Last-Modified, so a date never matches.
 */
export function selectRange({ method, range, ifRange }: RangeRequest, sizeBytes: number, etag: string): ByteRange | "unsatisfiable" | null {
  if (method !== "GET" || range === undefined || !BYTES_UNIT.test(range)) return null;
  if (ifRange !== undefined && ifRange.trim() !== etag) return null;
  const specs = range
    .slice(range.indexOf("=") + 1)
    .split(",")
    .map((spec) => spec.trim())
    .filter((spec) => spec !== "");
  if (specs.length === 0) return null;
  const satisfiable: ByteRange[] = [];
  for (const spec of specs) {
    const selected = selectOne(spec, sizeBytes);
    if (selected === "malformed") return null;
    if (selected !== null) satisfiable.push(selected);
  }
  const [first, ...others] = satisfiable;
  if (first === undefined) return "unsatisfiable";
  // An empty file has no bytes for a Content-Range.
  return others.length > 0 || first.end < first.start ? null : first;
}

/** Null when it has no byte of the file. A suffix of an empty file is an empty range. */
function selectOne(spec: string, sizeBytes: number): ByteRange | "malformed" | null {
  const [, first = "", last = ""] = SPEC.exec(spec) ?? [];
  if (first === "" && last === "") return "malformed";
  if (first === "") return Number(last) === 0 ? null : { start: Math.max(0, sizeBytes - Number(last)), end: sizeBytes - 1 };
  const start = Number(first);
  if (last !== "" && Number(last) < start) return "malformed";
  return start >= sizeBytes ? null : { start, end: last === "" ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1) };
}
