/** The owner: made on the first start of an empty database, with a key that holds every permission (architecture, last section). */

import { createApiKeyText, isWellFormedApiKey, startOfApiKey } from "../lib/api-key-format.js";
import { createId } from "../lib/ids.js";
import { StartError } from "../lib/start-error.js";
import type { Database } from "../store/database.js";
import type { Ledger } from "../store/ledger.js";
import type { ApiKeyDirectory } from "./api-key-directory.js";

const OWNER_HANDLE = "owner";
const ALL_PERMISSIONS = ["profile", "balance", "usage", "keys"];

export interface OwnerOptions {
  /** A well-formed secret key, from OWNER_API_KEY; null: one is made. */
  readonly apiKey: string | null;
  /** The first balance of the pack bucket. */
  readonly nanocredits: bigint;
}

/**
 * Makes the owner's account when there is none. Answers the key's text the one time it can be shown; null when the owner
 * was there. A preset key that the owner does not have yet is added, so that scripts work on an older database too.
 */
export async function ensureOwner(
  database: Database,
  ledger: Ledger,
  directory: ApiKeyDirectory,
  options: OwnerOptions,
): Promise<string | null> {
  const { prisma } = database;
  if (options.apiKey !== null && !(options.apiKey.startsWith("sk_") && isWellFormedApiKey(options.apiKey))) {
    throw new StartError(
      "OWNER_API_KEY is not a well-formed secret key: `sk_`, 37 characters of base62 and their 6 characters of checksum.",
    );
  }
  // Several processes may start on one empty database at once: one of them makes the account, and one the key.
  await prisma.account.createMany({ data: { id: createId(), handle: OWNER_HANDLE, isOperator: true }, skipDuplicates: true });
  const { id: accountId } = await prisma.account.findUniqueOrThrow({ where: { handle: OWNER_HANDLE } });
  if (options.nanocredits > 0n) {
    // The grant's id is the account's, so that however many starts it takes there is one.
    await ledger.grant({ id: accountId, accountId, bucket: "pack", amount: options.nanocredits, note: "first balance" });
  }
  return prisma.$transaction(async (transaction) => {
    await transaction.$queryRaw`SELECT 1 FROM account WHERE id = ${accountId}::uuid FOR UPDATE`;
    const keys = await transaction.apiKey.count({ where: { accountId } });
    if (keys > 0 && options.apiKey === null) return null;
    const key = options.apiKey ?? createApiKeyText("sk");
    const hash = new Uint8Array(directory.hash(key));
    if (await transaction.apiKey.findUnique({ where: { hash } })) return null;
    const start = startOfApiKey(key);
    await transaction.apiKey.create({
      data: { id: createId(), accountId, hash, type: "secret", name: "Owner", start, permissions: ALL_PERMISSIONS },
    });
    return key;
  });
}
