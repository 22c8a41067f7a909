/** JSON from an upstream. */
import { isRecord, jsonDepthExceeds } from "../../lib/json.js";
import { JSON_DEPTH_MAX } from "../../limits.js";

/** A text shorter than this cannot nest too deep: each level takes a byte to open and one to close. */
const NESTED_BYTES_MIN = 2 * JSON_DEPTH_MAX;

/**
 * The object that a JSON text holds; null when it is something else, broken, or nested deeper than any answer is. `text` is
 * the JSON in `bytes`, when it has been decoded already.
 */
export function parseObject(bytes: Buffer, text?: string): Readonly<Record<string, unknown>> | null {
  if (bytes.length > NESTED_BYTES_MIN && jsonDepthExceeds(bytes, JSON_DEPTH_MAX)) return null;
  try {
    const value: unknown = JSON.parse(text ?? bytes.toString());
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}
