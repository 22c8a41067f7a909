/**
 * The key tree (docs/spec/keys.md#key-tree). A key that another key made also draws on that key's budget, has none of the permissions and
 * models that it lacks, expires no later, and is revoked with it. Effective limits are computed from a key and its ancestors at each
 * look-up, so narrowing or revoking a key applies to its descendants. `credit_flush` draws on the budgets.
 */
import type { AccountPermission } from "../../context.js";
import { accountSuspended, credentialRefused, notFound } from "../../errors.js";
import { isUuid } from "../../lib/ids.js";
import { type DatabaseClient, lockAccountRow } from "../../store/database.js";
import type { ApiKeyModel } from "../../store/generated/prisma/models.js";

/** The columns that decide the effective limits of a key. */
export type KeyTerms = Pick<
  ApiKeyModel,
  | "permissions"
  | "restrictsModels"
  | "allowedModels"
  | "expiresAt"
  | "revokedAt"
  | "budgetNanocredits"
  | "spentNanocredits"
  | "heldNanocredits"
>;

/** The columns of `KeyTerms`, and the ids of the ancestors. */
export const WORTH_COLUMNS = {
  id: true,
  ancestorIds: true,
  permissions: true,
  restrictsModels: true,
  allowedModels: true,
  expiresAt: true,
  revokedAt: true,
  budgetNanocredits: true,
  spentNanocredits: true,
  heldNanocredits: true,
} as const;

/** The columns of a key without its HMAC. */
export const KEY_ROW = {
  ...WORTH_COLUMNS,
  accountId: true,
  type: true,
  name: true,
  start: true,
  origin: true,
  appKeyId: true,
  marginPercent: true,
  resource: true,
  redirectUrls: true,
  isManagement: true,
  externalId: true,
  parentId: true,
  lastUsedAt: true,
  createdAt: true,
} as const;

export type KeyRow = Pick<ApiKeyModel, keyof typeof KEY_ROW>;

export interface KeyWorth {
  readonly permissions: readonly AccountPermission[];
  /** A model must be in each list; no list: every model. Ids and aliases as written; the key's own list first. */
  readonly modelLists: readonly (readonly string[])[];
  /** Null: never. */
  readonly expiresAt: Date | null;
  readonly isRevoked: boolean;
  /** Nanocredits: the smallest remainder of the budgets; null: no budget. */
  readonly creditBudget: bigint | null;
  /** Nanocredits: the same without holds. */
  readonly creditBudgetFree: bigint | null;
}

/** Computes effective limits; `ancestors` are all ancestors of `key`. */
export function worthOf(key: KeyTerms, ancestors: readonly KeyTerms[]): KeyWorth {
  const chain = [key, ...ancestors.toReversed()];
  const ends = chain.flatMap(({ expiresAt }) => expiresAt ?? []);
  return {
    permissions: (key.permissions as AccountPermission[]).filter((name) =>
      ancestors.every(({ permissions }) => permissions.includes(name)),
    ),
    modelLists: chain.flatMap(({ restrictsModels, allowedModels }) => (restrictsModels ? [allowedModels] : [])),
    expiresAt: ends.length === 0 ? null : ends.reduce((first, end) => (end < first ? end : first)),
    isRevoked: chain.some(({ revokedAt }) => revokedAt !== null),
    creditBudget: leastOf(chain, (budget, { spentNanocredits }) => budget - spentNanocredits),
    creditBudgetFree: leastOf(chain, (budget, { spentNanocredits, heldNanocredits }) => budget - spentNanocredits - heldNanocredits),
  };
}

/** The runs that a key is of, the innermost first; undefined: none. A run has the id of its key. */
export function runIdsOf(key: Pick<KeyRow, "id" | "origin">, ancestors: readonly Pick<KeyRow, "id" | "origin">[]): string[] | undefined {
  const ids = [key, ...ancestors.toReversed()].flatMap(({ id, origin }) => (origin === "run" ? [id] : []));
  return ids.length === 0 ? undefined : ids;
}

/** The least amount of the keys that have a budget; null: none has. */
function leastOf(chain: readonly KeyTerms[], amountOf: (budget: bigint, key: KeyTerms) => bigint): bigint | null {
  const amounts = chain.flatMap((key) => (key.budgetNanocredits === null ? [] : [amountOf(key.budgetNanocredits, key)]));
  return amounts.length === 0 ? null : amounts.reduce((least, amount) => (amount < least ? amount : least));
}

/** The ancestors of each key, root first, by key id. */
export async function ancestorsOf(
  database: Pick<DatabaseClient, "apiKey">,
  keys: readonly Pick<ApiKeyModel, "id" | "ancestorIds">[],
): Promise<ReadonlyMap<string, readonly KeyRow[]>> {
  const ids = [...new Set(keys.flatMap(({ ancestorIds }) => ancestorIds))];
  const found = ids.length === 0 ? [] : await database.apiKey.findMany({ where: { id: { in: ids } }, select: KEY_ROW });
  const byId = new Map(found.map((row) => [row.id, row]));
  return new Map(keys.map(({ id, ancestorIds }) => [id, ancestorIds.map((ancestorId) => present(byId.get(ancestorId)))]));
}

/** The models that every list allows, named as in the first list; null: every model. `idOf` returns a name's canonical id. */
export function allowedByAll(lists: readonly (readonly string[])[], idOf: (name: string) => string): readonly string[] | null {
  const [first, ...others] = lists;
  if (!first) return null;
  const allowed = others.map((list) => new Set(list.map(idOf)));
  return first.filter((name) => allowed.every((ids) => ids.has(idOf(name))));
}

/** The database refuses a key whose parent does not exist. */
function present(row: KeyRow | undefined): KeyRow {
  if (!row) throw new Error("A key's ancestor is gone.");
  return row;
}

/**
 * Locks the account, so that its keys change one at a time: a tree that was read does not change before the write. The ledger also locks
 * accounts before keys. Rejects with UNAUTHORIZED or ACCOUNT_SUSPENDED for an account that was deleted or suspended meanwhile.
 */
export async function lockAccount(writer: Pick<DatabaseClient, "$queryRaw">, accountId: string): Promise<void> {
  await lockAccountRow(writer, accountId);
  const [folded] = await writer.$queryRaw<{ isDeleted: boolean; isSuspended: boolean }[]>`
    SELECT credit_fold(ARRAY[${accountId}::uuid]), EXISTS (SELECT FROM account_deletion WHERE account_id = ${accountId}::uuid) AS "isDeleted",
      EXISTS (SELECT FROM account WHERE id = ${accountId}::uuid AND suspended_at IS NOT NULL) AS "isSuspended"`;
  if (folded?.isDeleted) throw credentialRefused("This account has been deleted.");
  if (folded?.isSuspended) throw accountSuspended();
}

/** Sets the budget so that `remaining` is left, which is budget - spent. It is never below the open holds, which may settle in full. */
export function setBudget(writer: Pick<DatabaseClient, "$queryRaw">, accountId: string, id: string, remaining: bigint | null) {
  return writer.$queryRaw`SELECT credit_set_budget(${accountId}::uuid, ${id}::uuid, ${remaining}::bigint)`;
}

/** Matches a key and its descendants. */
export function inTreeOf(id: string) {
  return { OR: [{ id }, { ancestorIds: { has: id } }] };
}

/** Rejects with NOT_FOUND, also for a revoked key. */
export async function findOwned(database: Pick<DatabaseClient, "apiKey">, accountId: string, id: string): Promise<ApiKeyModel> {
  if (!isUuid(id)) throw notFound("API key");
  const row = await database.apiKey.findUnique({ where: { id, accountId, revokedAt: null } });
  if (!row) throw notFound("API key");
  return row;
}

/** Revokes a key and its descendants. Returns those that were not revoked before. */
export function revokeTree(writer: Pick<DatabaseClient, "apiKey">, id: string, now: Date): Promise<ApiKeyModel[]> {
  return writer.apiKey.updateManyAndReturn({ where: { ...inTreeOf(id), revokedAt: null }, data: { revokedAt: now } });
}
