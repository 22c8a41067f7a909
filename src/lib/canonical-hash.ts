/** SHA-256 of a value whatever the order of its keys: of JSON, and of files, which are hashed by their bytes. */
import { createHash } from "node:crypto";

export function canonicalHash(value: unknown): Uint8Array<ArrayBuffer> {
  return new Uint8Array(
    createHash("sha256")
      .update(JSON.stringify(canonical(value)))
      .digest(),
  );
}

function canonical(value: unknown): unknown {
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value !== "object" || value === null || value instanceof Date) return value;
  if (value instanceof Uint8Array) return { sha256: createHash("sha256").update(value).digest("hex") };
  if (Array.isArray(value)) return value.map(canonical);
  const entries = Object.entries(value).filter(([, field]) => field !== undefined);
  // The bytes of an uploaded file may be no property of its own.
  if ("bytes" in value && !Object.hasOwn(value, "bytes")) entries.push(["bytes", value.bytes]);
  // Pairs, not an object: in an object numbers would come first, and `__proto__` not at all.
  return { fields: entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, field]) => [name, canonical(field)]) };
}
