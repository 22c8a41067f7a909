/** Ids: UUIDs of version 7, which sort by the time at which they were made (RFC 9562). What somebody sends as one may be of any version. */
import { randomFillSync } from "node:crypto";
import { v7 } from "uuid";
import * as z from "zod";

const ID_BYTES = 16;
/** Asked of the system at once: a call for each id would take longer than all the rest of it. */
const POOL_BYTES = 256 * ID_BYTES;
const pool = Buffer.alloc(POOL_BYTES);
let used = POOL_BYTES;
const uuid = z.uuid();

export function createId(): string {
  if (used === POOL_BYTES) {
    randomFillSync(pool);
    used = 0;
  }
  const random = pool.subarray(used, used + ID_BYTES);
  used += ID_BYTES;
  return v7({ random });
}

/** Ask before a text of a caller's goes to the database, which refuses a whole statement for the sake of one that is none. */
export function isUuid(text: string): boolean {
  return uuid.safeParse(text).success;
}
