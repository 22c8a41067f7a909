/**
 * Keys form a tree (docs/spec/keys.md#key-tree): what a key makes draws on its budget too, holds no permission and no model
 * that it lacks, lives no longer, and ends with it. What a key is worth is worked out here, from it and every key that it
 * descends from, each time that it is looked up: narrowing or ending a key narrows or ends all that it has made. Their
 * budgets are drawn on by `credit_flush`.
 */
import type { AccountPermission } from "../../context.js";
import { credentialRefused, notFound } from "../../errors.js";
import { isUuid } from "../../lib/ids.js";
import type { DatabaseClient } from "../../store/database.js";
import type { ApiKeyModel } from "../../store/generated/prisma/models.js";

/** As much of a key as decides what it is worth. */
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

/** The columns of `KeyTerms`, and of what the key descends from. */
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

/** The columns of a key but for what it is known by. */
export const KEY_ROW = {
  ...WORTH_COLUMNS,
  accountId: true,
  type: true,
  name: true,
  start: true,
  origin: true,
  appKeyId: true,
  redirectUrls: true,
  parentId: true,
  lastUsedAt: true,
  createdAt: true,
} as const;

export type KeyRow = Pick<ApiKeyModel, keyof typeof KEY_ROW>;

export interface KeyWorth {
  readonly permissions: readonly AccountPermission[];
  /** A model must be in each of them; none: every model. Ids and aliases, as they were written; the key's own list first. */
  readonly modelLists: readonly (readonly string[])[];
  /** Null: never. */
  readonly expiresAt: Date | null;
  readonly isRevoked: boolean;
  /** Nanocredits: the smallest of what remains of each budget; null: none of them has one. */
  readonly creditBudget: bigint | null;
  /** The same without what is set aside. */
  readonly creditBudgetFree: bigint | null;
}

/** `ancestors` are all keys that `key` descends from. */
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

/** Of the keys that have a budget; null: none has. */
function leastOf(chain: readonly KeyTerms[], amountOf: (budget: bigint, key: KeyTerms) => bigint): bigint | null {
  const amounts = chain.flatMap((key) => (key.budgetNanocredits === null ? [] : [amountOf(key.budgetNanocredits, key)]));
  return amounts.length === 0 ? null : amounts.reduce((least, amount) => (amount < least ? amount : least));
}

/** The keys that each of these descends from, the root first, by the key's id. */
export async function ancestorsOf(
  database: Pick<DatabaseClient, "apiKey">,
  keys: readonly Pick<ApiKeyModel, "id" | "ancestorIds">[],
): Promise<ReadonlyMap<string, readonly KeyRow[]>> {
  const ids = [...new Set(keys.flatMap(({ ancestorIds }) => ancestorIds))];
  const found = ids.length === 0 ? [] : await database.apiKey.findMany({ where: { id: { in: ids } }, select: KEY_ROW });
  const byId = new Map(found.map((row) => [row.id, row]));
  return new Map(keys.map(({ id, ancestorIds }) => [id, ancestorIds.map((ancestorId) => present(byId.get(ancestorId)))]));
}

/** Only the models that every list allows, as the first of them names them; null: every model. `idOf` is a name's canonical id. */
export function allowedByAll(lists: readonly (readonly string[])[], idOf: (name: string) => string): readonly string[] | null {
  const [first, ...others] = lists;
  if (!first) return null;
  const allowed = others.map((list) => new Set(list.map(idOf)));
  return first.filter((name) => allowed.every((ids) => ids.has(idOf(name))));
}

/** The database refuses a key whose parent there is not. */
function present(row: KeyRow | undefined): KeyRow {
  if (!row) throw new Error("A key's ancestor is gone.");
  return row;
}

/**
 * The account's keys are made, changed and revoked in turn: what is read of a tree must still be so when something is written of it.
 * The ledger locks accounts too, before it touches their keys. Rejects with UNAUTHORIZED for one that was deleted meanwhile.
 */
export async function lockAccount(writer: Pick<DatabaseClient, "$queryRaw">, accountId: string): Promise<void> {
  await writer.$queryRaw`SELECT 1 FROM account WHERE id = ${accountId}::uuid FOR NO KEY UPDATE`;
  const [folded] = await writer.$queryRaw<{ isDeleted: boolean }[]>`
    SELECT credit_fold(ARRAY[${accountId}::uuid]), EXISTS (SELECT FROM account_deletion WHERE account_id = ${accountId}::uuid) AS "isDeleted"`;
  if (folded?.isDeleted) throw credentialRefused("This account has been deleted.");
}

/** What remains is budget - spent; holds that are open are settled in full, so it is never set below them. */
export function setBudget(writer: Pick<DatabaseClient, "$queryRaw">, accountId: string, id: string, remaining: bigint | null) {
  return writer.$queryRaw`SELECT credit_set_budget(${accountId}::uuid, ${id}::uuid, ${remaining}::bigint)`;
}

/** A key and all that descend from it. */
export function inTreeOf(id: string) {
  return { OR: [{ id }, { ancestorIds: { has: id } }] };
}

/** NOT_FOUND for one that is revoked, too. */
export async function findOwned(database: Pick<DatabaseClient, "apiKey">, accountId: string, id: string): Promise<ApiKeyModel> {
  if (!isUuid(id)) throw notFound("API key");
  const row = await database.apiKey.findUnique({ where: { id, accountId, revokedAt: null } });
  if (!row) throw notFound("API key");
  return row;
}
