/** The owner account, made on the first start with an empty database, and its key with every permission (docs/spec/accounts.md#owner). */

import { createApiKeyText, faultOfSecretKey, startOfApiKey } from "../../lib/api-key-format.js";
import { createId } from "../../lib/ids.js";
import { StartError } from "../../lib/start-error.js";
import type { Database, DatabaseClient } from "../../store/database.js";
import type { Ledger } from "../../store/ledger.js";
import { recordLocalAct } from "../audit/audit-log.js";

export const OWNER_HANDLE = "owner";
const ALL_PERMISSIONS = ["profile", "balance", "usage", "keys"];

export interface OwnerOptions {
  /** A well-formed secret key, from OWNER_API_KEY; null: a key is generated. */
  readonly apiKey: string | null;
  /** The first balance of the pack bucket. */
  readonly nanocredits: bigint;
}

/** Computes the HMAC by which the database finds a key. */
export interface KeyHasher {
  hash(key: string): Buffer;
}

/** The parts of an owner key that may be shown. */
export interface OwnerKey {
  readonly id: string;
  readonly start: string;
  readonly createdAt: Date;
}

export interface MadeOwnerKey {
  readonly accountId: string;
  /** The key's text, shown only once. */
  readonly key: string;
  /** The owner's earlier keys with every permission that are still good, newest first. */
  readonly others: readonly OwnerKey[];
  /** Keys that were revoked: the other owner keys and their descendants. Empty unless requested. */
  readonly endedIds: readonly string[];
}

/**
 * Makes the owner's account when there is none. Returns the key's text, shown only once, or null when the owner existed. A preset key that
 * the owner does not have is added, so that scripts also work with an older database. A preset key that was revoked stops the start,
 * because scripts rely on it.
 */
export async function ensureOwner(
  database: Pick<Database, "prisma">,
  ledger: Pick<Ledger, "grant">,
  hasher: KeyHasher,
  options: OwnerOptions,
): Promise<string | null> {
  const fault = options.apiKey === null ? null : faultOfSecretKey(options.apiKey);
  if (fault !== null) throw new StartError(`OWNER_API_KEY ${fault}.`);
  const accountId = await ensureAccount(database, ledger, options.nanocredits);
  return database.prisma.$transaction(async (transaction) => {
    await lockOwner(transaction, accountId);
    const keys = await transaction.apiKey.count({ where: { accountId } });
    if (keys > 0 && options.apiKey === null) return null;
    const key = options.apiKey ?? createApiKeyText("sk");
    const hash = new Uint8Array(hasher.hash(key));
    const known = await transaction.apiKey.findUnique({ where: { hash } });
    if (known?.revokedAt) {
      const end = known.revokedAt.toISOString();
      throw new StartError(
        `OWNER_API_KEY was revoked at ${end}: unset it, or set another (\`npm run -s sluice -- key generate\` prints one).`,
      );
    }
    if (known) return null;
    await insertOwnerKey(transaction, accountId, key, hash);
    return key;
  });
}

/**
 * Makes another owner key with every permission, and the owner if there is none. `revokesOthers` revokes the other owner keys and their
 * descendants.
 */
export async function addOwnerKey(
  database: Pick<Database, "prisma">,
  ledger: Pick<Ledger, "grant">,
  hasher: KeyHasher,
  { nanocredits, revokesOthers, now }: { readonly nanocredits: bigint; readonly revokesOthers: boolean; readonly now: Date },
): Promise<MadeOwnerKey> {
  const accountId = await ensureAccount(database, ledger, nanocredits);
  return database.prisma.$transaction(async (transaction) => {
    await lockOwner(transaction, accountId);
    const others = await transaction.apiKey.findMany({
      where: { accountId, type: "secret", origin: "created", parentId: null, revokedAt: null, permissions: { has: "keys" } },
      select: { id: true, start: true, createdAt: true },
      orderBy: [{ createdAt: "desc" }, { id: "desc" }],
    });
    const ids = others.map(({ id }) => id);
    const ended = revokesOthers
      ? await transaction.apiKey.updateManyAndReturn({
          where: { OR: [{ id: { in: ids } }, { ancestorIds: { hasSome: ids } }], revokedAt: null },
          data: { revokedAt: now },
          select: { id: true },
        })
      : [];
    const key = createApiKeyText("sk");
    await insertOwnerKey(transaction, accountId, key, new Uint8Array(hasher.hash(key)));
    const endedIds = ended.map(({ id }) => id);
    await recordLocalAct(transaction, { act: "create_owner_key", accountId, after: { endedIds } });
    return { accountId, key, others, endedIds };
  });
}

/** Makes the account once, even when several processes start with one empty database. */
async function ensureAccount({ prisma }: Pick<Database, "prisma">, ledger: Pick<Ledger, "grant">, nanocredits: bigint): Promise<string> {
  await prisma.account.createMany({ data: { id: createId(), handle: OWNER_HANDLE, isOperator: true }, skipDuplicates: true });
  const { id: accountId } = await prisma.account.findUniqueOrThrow({ where: { handle: OWNER_HANDLE } });
  // The grant has the account's id, so that repeated starts grant once.
  if (nanocredits > 0n) await ledger.grant({ id: accountId, accountId, bucket: "pack", amount: nanocredits, note: "first balance" });
  return accountId;
}

async function lockOwner(transaction: Pick<DatabaseClient, "$queryRaw">, accountId: string): Promise<void> {
  await transaction.$queryRaw`SELECT 1 FROM account WHERE id = ${accountId}::uuid FOR UPDATE`;
}

async function insertOwnerKey(
  transaction: Pick<DatabaseClient, "apiKey">,
  accountId: string,
  key: string,
  hash: Uint8Array<ArrayBuffer>,
): Promise<void> {
  const start = startOfApiKey(key);
  await transaction.apiKey.create({
    data: { id: createId(), accountId, hash, type: "secret", name: "Owner", start, permissions: ALL_PERMISSIONS },
  });
}
