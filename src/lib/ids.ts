/** Ids: UUIDs of version 7, which sort by creation time (RFC 9562). Ids from clients may have any version. */
import { createHash, randomFillSync } from "node:crypto";
import { v7 } from "uuid";
import * as z from "zod";

const ID_BYTES = 16;
/** Random bytes drawn at once: one system call per id would take longer than the rest. */
const POOL_BYTES = 256 * ID_BYTES;
const pool = Buffer.alloc(POOL_BYTES);
let used = POOL_BYTES;
const uuid = z.uuid();

/** Sorts before every id. */
export const LOWEST_UUID = "00000000-0000-0000-0000-000000000000";

export function createId(): string {
  if (used === POOL_BYTES) {
    randomFillSync(pool);
    used = 0;
  }
  const random = pool.subarray(used, used + ID_BYTES);
  used += ID_BYTES;
  return v7({ random });
}

/** Check a client's text before it goes to the database, which fails the whole statement for an invalid id. */
export function isUuid(text: string): boolean {
  return uuid.safeParse(text).success;
}

/** The same for the same name: a UUID of version 8 (RFC 9562 5.8). */
export function namedId(name: string): string {
  const hash = createHash("sha256").update(name).digest("hex");
  const variant = "89ab"[Number.parseInt(hash[16] ?? "0", 16) % 4];
  return `${hash.slice(0, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-${variant}${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
}
