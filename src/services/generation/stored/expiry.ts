/** How long responses and conversations are kept. */
import type { Database } from "../../../store/database.js";
import type { Prisma } from "../../../store/generated/prisma/client.js";
import { STORED_SWEPT_AT_ONCE_MAX } from "./limits.js";

const DAY_MS = 24 * 60 * 60 * 1000;

export function expiryAfter(now: Date, days: number): Date {
  return new Date(now.getTime() + days * DAY_MS);
}

/** Deletes expired rows of a table, also by a shorter setting than theirs. Returns their number. */
export function deleteExpired({ prisma }: Database, table: Prisma.Sql, now: Date, days: number): Promise<number> {
  const [oldest, latest] = [expiryAfter(now, -days), expiryAfter(now, days)];
  return repeatFull(
    () => prisma.$executeRaw`
      DELETE FROM ${table} WHERE id IN (
        SELECT id FROM ${table} WHERE expires_at <= ${now} OR (expires_at > ${latest} AND created_at <= ${oldest})
        LIMIT ${STORED_SWEPT_AT_ONCE_MAX})`,
  );
}

/** Repeats a bounded deletion until it finds less than it may delete. Returns the number of all. */
export async function repeatFull(deleteSome: () => Promise<number>): Promise<number> {
  for (let all = 0; ; ) {
    const deleted = await deleteSome();
    all += deleted;
    if (deleted < STORED_SWEPT_AT_ONCE_MAX) return all;
  }
}
