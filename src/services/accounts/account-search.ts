/**
 * Finds accounts by a text (docs/spec/accounts.md#operators): a part of a handle, name, e-mail address or GitHub user name; the ID of the
 * account, or of a key, session, generation or ledger transaction of it; the request ID of a generation; or a key, or its beginning.
 */
import { startOfApiKey } from "../../lib/api-key-format.js";
import { isUuid } from "../../lib/ids.js";
import { escapeLike } from "../../lib/storable-text.js";
import type { Database } from "../../store/database.js";
import type { Prisma } from "../../store/generated/prisma/client.js";

const KEY_START = /^[sp]k_[A-Za-z0-9]/;

export async function matchesOf(database: Database, search: string): Promise<Prisma.AccountWhereInput[]> {
  const contains = { contains: escapeLike(search), mode: "insensitive" } as const;
  const texts = [{ handle: contains }, { name: contains }, { email: contains }, { githubUsername: contains }];
  if (KEY_START.test(search)) return [...texts, { apiKeys: { some: { start: { startsWith: startOfApiKey(search) } } } }];
  return isUuid(search) ? [...texts, { id: { in: await accountsOf(database, search) } }] : texts;
}

/** The accounts that the id belongs to: ids are unique, but those of a deleted hold may also be a row's. */
async function accountsOf({ prisma }: Database, id: string): Promise<string[]> {
  const select = { accountId: true } as const;
  const found = await Promise.all([
    prisma.apiKey.findUnique({ where: { id }, select }),
    prisma.session.findUnique({ where: { id }, select }),
    prisma.usageRecord.findUnique({ where: { id }, select }),
    prisma.hold.findUnique({ where: { id }, select }),
    prisma.generationJob.findUnique({ where: { id }, select }),
    prisma.ledgerEntry.findFirst({ where: { transactionId: id }, select }),
  ]);
  return [id, ...found.flatMap((row) => (row ? [row.accountId] : []))];
}
