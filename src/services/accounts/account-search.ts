/**
 * Finds accounts by a text (docs/spec/accounts.md#operators): a part of a handle, name, e-mail address or GitHub user name; the ID of the
 * account, or of a key, session, generation or ledger transaction of it; the request ID of a failed request; or a key, or its beginning.
 */
import { startOfApiKey } from "../../lib/api-key-format.js";
import { isUuid } from "../../lib/ids.js";
import { escapeLike } from "../../lib/storable-text.js";
import { REQUEST_ID_PATTERN } from "../../limits.js";
import type { Database } from "../../store/database.js";
import type { Prisma } from "../../store/generated/prisma/client.js";

/** Unspecified: accounts that one request ID may lead to. */
const REQUEST_ACCOUNTS_MAX = 100;
const KEY_START = /^[sp]k_[A-Za-z0-9]/;

export async function matchesOf(database: Database, search: string): Promise<Prisma.AccountWhereInput[]> {
  const contains = { contains: escapeLike(search), mode: "insensitive" } as const;
  const texts = [{ handle: contains }, { name: contains }, { email: contains }, { githubUsername: contains }];
  if (KEY_START.test(search)) return [...texts, { apiKeys: { some: { start: { startsWith: escapeLike(startOfApiKey(search)) } } } }];
  const ids = [
    ...(isUuid(search) ? await accountsOf(database, search) : []),
    ...(REQUEST_ID_PATTERN.test(search) ? await accountsOfRequest(database, search) : []),
  ];
  return ids.length === 0 ? texts : [...texts, { id: { in: ids } }];
}

/** The accounts whose requests with this ID were refused or failed. A client chooses its IDs, so they may be of several accounts. */
async function accountsOfRequest({ prisma }: Database, requestId: string): Promise<string[]> {
  const rows = await prisma.failedRequest.groupBy({
    by: ["accountId"],
    where: { requestId },
    orderBy: { accountId: "asc" },
    take: REQUEST_ACCOUNTS_MAX,
  });
  return rows.map(({ accountId }) => accountId);
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
    prisma.ledgerEntry.findFirst({ where: { transactionId: id, book: { not: "earnings" } }, select }),
    prisma.failedRequest.findFirst({ where: { OR: [{ id }, { generationId: id }] }, select }),
  ]);
  return [id, ...found.flatMap((row) => (row ? [row.accountId] : []))];
}
