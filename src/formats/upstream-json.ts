/** Parses JSON from an upstream. */
import { isRecord } from "../lib/json.js";
import { jsonExcess } from "../lib/json-bounds.js";
import { UPSTREAM_JSON_BOUNDS } from "../limits.js";

/** A shorter text cannot nest too deep: each level takes a byte to open and one to close. */
const NESTED_BYTES_MIN = 2 * UPSTREAM_JSON_BOUNDS.depthMax;

/**
 * The object in a JSON text; null for other values, invalid JSON, or more structure than any real answer. `text` is the decoded JSON in
 * `bytes`, if available.
 */
export function parseObject(bytes: Buffer, text?: string, bounds = UPSTREAM_JSON_BOUNDS): Readonly<Record<string, unknown>> | null {
  if (bytes.length > NESTED_BYTES_MIN && jsonExcess(bytes, bounds) !== null) return null;
  try {
    const value: unknown = JSON.parse(text ?? bytes.toString());
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}
