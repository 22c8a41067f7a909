/** Orders and searches of a list of keys: pages by a column and the id (docs/spec/keys.md#operations). */

import { wrongField } from "../../errors.js";
import { isUuid } from "../../lib/ids.js";
import { COUNT_TAKE, type Page, type PageRequest, type RankedPosition, toPage } from "../../lib/pagination.js";
import { escapeLike, unstorableIn } from "../../lib/storable-text.js";
import { isStorableTime } from "../../lib/storable-time.js";
import type { Database } from "../../store/database.js";
import type { Prisma } from "../../store/generated/prisma/client.js";
import type { ApiKeyModel } from "../../store/generated/prisma/models.js";
import { parseInput } from "../requests/input.js";
import { type ApiKeyFilter, apiKeyFilter } from "./api-keys-input.js";

export interface ApiKeyOrder {
  readonly field: "created_at" | "name" | "spent" | "last_used_at";
  readonly direction: "asc" | "desc";
}

type OrderColumn = "createdAt" | "name" | "spentNanocredits" | "lastUsedAt";
type Value = Date | string | bigint | null;

const COLUMNS: Readonly<Record<ApiKeyOrder["field"], OrderColumn>> = {
  created_at: "createdAt",
  name: "name",
  spent: "spentNanocredits",
  last_used_at: "lastUsedAt",
};
const BIGINT_MAX = 2n ** 63n - 1n;

export const orderColumn = ({ field }: ApiKeyOrder): OrderColumn => COLUMNS[field];

export function keyPosition(key: Pick<ApiKeyModel, "id"> & Partial<Pick<ApiKeyModel, OrderColumn>>, order: ApiKeyOrder): RankedPosition {
  const value = key[orderColumn(order)] ?? null;
  return { id: key.id, rank: value instanceof Date ? value.toISOString() : String(value ?? "") };
}

/** Prisma arguments of one page. Keys that were never used come last in both directions. Throws BAD_REQUEST for made-up positions. */
export function keysInOrder({ first, after, before, isFromEnd = false }: PageRequest<RankedPosition>, order: ApiKeyOrder) {
  const column = orderColumn(order);
  const isNullable = column === "lastUsedAt";
  const sort = (order.direction === "asc") === isFromEnd ? ("desc" as const) : ("asc" as const);
  const bounds: Prisma.ApiKeyWhereInput[] = [
    ...(after ? [beyond(column, readRank(after, column, "after"), after.id, order.direction === "asc" ? "gt" : "lt", isNullable)] : []),
    ...(before ? [beyond(column, readRank(before, column, "before"), before.id, order.direction === "asc" ? "lt" : "gt", false)] : []),
  ];
  const orderBy = [{ [column]: isNullable ? { sort, nulls: isFromEnd ? ("first" as const) : ("last" as const) } : sort }, { id: sort }];
  return { where: { AND: bounds }, orderBy: orderBy as Prisma.ApiKeyOrderByWithRelationInput[], take: first + 1 };
}

/** Keys on one side of a position. `withNulls`: those without a value are on that side. */
function beyond(column: OrderColumn, value: Value, id: string, than: "gt" | "lt", withNulls: boolean): Prisma.ApiKeyWhereInput {
  const tie = { [column]: value, id: { [than]: id } };
  if (value === null) return withNulls ? tie : { OR: [{ [column]: { not: null } }, tie] };
  return { OR: [{ [column]: { [than]: value } }, tie, ...(withNulls ? [{ [column]: null }] : [])] };
}

function readRank({ rank, id }: RankedPosition, column: OrderColumn, param: string): Value {
  const value = isUuid(id) ? columnValue(rank, column) : undefined;
  if (value === undefined) throw wrongField(param, "must be a cursor that this list has answered");
  return value;
}

/** Undefined: no value of the column. */
function columnValue(rank: string, column: OrderColumn): Value | undefined {
  switch (column) {
    case "name":
      return unstorableIn(rank) === null ? rank : undefined;
    case "spentNanocredits":
      return /^\d{1,19}$/.test(rank) && BigInt(rank) <= BIGINT_MAX ? BigInt(rank) : undefined;
    default: {
      if (rank === "" && column === "lastUsedAt") return null;
      const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(rank) && isStorableTime(new Date(rank));
      return isTime ? new Date(rank) : undefined;
    }
  }
}

/** Keys of an account that are not revoked and match every given field. */
export function keysWhere(accountId: string, filter: ApiKeyFilter | null): Prisma.ApiKeyWhereInput {
  const { origins, types, search, externalId } = parseInput(apiKeyFilter, filter ?? {});
  return {
    ...{ accountId, revokedAt: null },
    // Runs make a key each, which would hide the others.
    origin: origins ? { in: origins } : { not: "run" },
    ...(externalId && { externalId: externalId.trim() }),
    ...(types && { type: { in: types } }),
    ...(search && matching(search.trim())),
  };
}

/** Keys whose name or start has the text, in any case, or whose id it is. */
function matching(search: string): Prisma.ApiKeyWhereInput {
  const contains = { contains: escapeLike(search), mode: "insensitive" } as const;
  return { OR: [{ name: contains }, { start: contains }, ...(isUuid(search) ? [{ id: search }] : [])] };
}

export const KEY_IDENTITY = { id: true, createdAt: true } as const;

export type KeyQuery = Pick<Prisma.ApiKeyFindManyArgs, "where" | "orderBy" | "take"> & { readonly select: Prisma.ApiKeySelect };

export interface KeyList {
  readonly filter: ApiKeyFilter | null;
  /** Undefined: the caller's own account. */
  readonly of: string | undefined;
  readonly query: KeyQuery;
}

/** `where` is of the whole list, that of the query of the page. */
export async function readKeys(
  { prisma: { apiKey } }: Pick<Database, "prisma">,
  page: PageRequest<unknown>,
  where: Prisma.ApiKeyWhereInput,
  { where: within, select, ...query }: KeyQuery,
): Promise<Page<Pick<ApiKeyModel, keyof typeof KEY_IDENTITY>>> {
  const rows = await apiKey.findMany({ ...query, where: { AND: [where, within ?? {}] }, select: { ...select, ...KEY_IDENTITY } });
  return toPage(rows, page, () => apiKey.count({ where, take: COUNT_TAKE }));
}
