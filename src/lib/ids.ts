/** Ids: UUIDs of version 7, which sort by creation time (RFC 9562). Ids from clients may have any version. */
import { randomFillSync } from "node:crypto";
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
