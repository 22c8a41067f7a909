/** Sorted pages of usage rows, for an account and for each of several keys (docs/spec/usage.md#history). */
import { type AppError, wrongField } from "../../errors.js";
import { groupBy } from "../../lib/collections.js";
import { COUNT_TAKE, type Page, type PagePosition, type PageRequest, toPage } from "../../lib/pagination.js";
import type { Database } from "../../store/database.js";
import { Prisma } from "../../store/generated/prisma/client.js";
import type { UsageRecordModel } from "../../store/generated/prisma/models.js";
import { toWhere, type UsageScope } from "./usage-filter.js";
import { countIn, countsOfKeys, type UsageRange } from "./usage-roll-ups.js";

export const USAGE_ORDERS = ["timestamp", "cost", "response_time", "tokens"] as const;
export interface UsageOrder {
  readonly field: (typeof USAGE_ORDERS)[number];
  readonly isAscending: boolean;
}

/** Unspecified: rows that are sorted without an index. */
export const USAGE_SORTED_ROWS_MAX = 100_000;

const COLUMNS = { timestamp: "timestamp", cost: "costNanocredits", response_time: "responseTimeMs" } as const;
/** Of the row `r`. */
const SQL_COLUMNS = {
  timestamp: "r.timestamp",
  cost: "r.cost_nanocredits",
  response_time: "r.response_time_ms",
  tokens: `(r.input_text_tokens::bigint + r.input_cached_tokens + r.input_cache_write_tokens + r.input_audio_tokens + r.input_image_tokens
    + r.output_text_tokens + r.output_reasoning_tokens + r.output_audio_tokens + r.output_image_tokens)`,
} as const;
/** Earlier than every row. */
const BEGINNING = new Date(0);
export const IDENTITY = { id: true, timestamp: true } as const;

export type SelectedUsage = Pick<UsageRecordModel, keyof typeof IDENTITY>;

export async function readPage(
  database: Database,
  scope: UsageScope,
  page: PageRequest,
  order: UsageOrder,
  select: Prisma.UsageRecordSelect,
): Promise<Page<SelectedUsage>> {
  if (order.field !== "timestamp") await assertSortable(database, scope);
  if (order.field === "tokens") return readPageByTokens(database, scope, page, order, select);
  const { field } = order;
  const where = toWhere(scope);
  const { isFromEnd = false } = page;
  const isAscending = order.isAscending !== isFromEnd;
  const direction = isAscending ? "asc" : "desc";
  const bounds = await Promise.all([
    ...(page.after ? [boundAt(database, scope, { ...order, field }, page.after, "after")] : []),
    ...(page.before ? [boundAt(database, scope, { ...order, field }, page.before, "before")] : []),
  ]);
  const rows = await database.prisma.usageRecord.findMany({
    where: { ...where, AND: bounds },
    orderBy: [{ [COLUMNS[field]]: direction }, { id: direction }],
    take: page.first + 1,
    select: { ...select, ...IDENTITY },
  });
  return toPage(rows, page, () => countRows(database, scope));
}

/** No column has the tokens of all kinds, so that SQL finds the rows. */
async function readPageByTokens(
  database: Database,
  scope: UsageScope,
  page: PageRequest,
  { isAscending }: UsageOrder,
  select: Prisma.UsageRecordSelect,
): Promise<Page<SelectedUsage>> {
  const { isFromEnd = false } = page;
  const direction = Prisma.raw(isAscending === isFromEnd ? "DESC" : "ASC");
  const tokens = Prisma.raw(SQL_COLUMNS.tokens);
  const bound = async ({ id }: PagePosition, end: "after" | "before") => {
    const [row] = await database.prisma.$queryRaw<{ tokens: bigint }[]>`
      SELECT ${tokens} AS tokens FROM usage_record r WHERE r.id = ${id}::uuid AND r.account_id = ${scope.accountId}::uuid`;
    if (!row) throw foreignCursor(end);
    const beyond = Prisma.raw(isAscending === (end === "after") ? ">" : "<");
    return Prisma.sql`(${tokens}, r.id) ${beyond} (${row.tokens}, ${id}::uuid)`;
  };
  const bounds = await Promise.all([
    ...(page.after ? [bound(page.after, "after")] : []),
    ...(page.before ? [bound(page.before, "before")] : []),
  ]);
  const found = await database.prisma.$queryRaw<{ id: string }[]>`
    SELECT r.id::text FROM usage_record r WHERE ${Prisma.join([toCondition(scope), ...bounds], " AND ")}
    ORDER BY ${tokens} ${direction}, r.id ${direction} LIMIT ${page.first + 1}`;
  return toPage(await readInOrder(database, found, { ...select, ...IDENTITY }), page, () => countRows(database, scope));
}

/** The rows in the order of their ids. */
async function readInOrder<Select extends Prisma.UsageRecordSelect & { readonly id: true }>(
  database: Database,
  found: readonly { readonly id: string }[],
  select: Select,
) {
  const rows = await database.prisma.usageRecord.findMany({ where: { id: { in: found.map(({ id }) => id) } }, select });
  const byId = new Map(rows.map((row) => [(row as { readonly id: string }).id, row]));
  return found.flatMap(({ id }) => byId.get(id) ?? []);
}

/** Reads the first or last rows of each key in two statements, or the reason why a key has none. */
export async function readPagesOfKeys(
  database: Database,
  scope: UsageScope,
  apiKeyIds: readonly string[],
  page: Pick<PageRequest, "first" | "isFromEnd">,
  { field, isAscending }: UsageOrder,
  select: Prisma.UsageRecordSelect,
): Promise<ReadonlyMap<string, Page<SelectedUsage> | Error>> {
  const order = isAscending !== (page.isFromEnd ?? false) ? ("asc" as const) : ("desc" as const);
  const [column, direction] = [Prisma.raw(SQL_COLUMNS[field]), Prisma.raw(order)];
  const unsortable = field === "timestamp" ? new Set<string>() : await findUnsortable(database, scope, apiKeyIds);
  const found = await database.prisma.$queryRaw<{ id: string }[]>`
    SELECT u.id::text FROM unnest(${apiKeyIds.filter((id) => !unsortable.has(id))}::uuid[]) AS key(id) CROSS JOIN LATERAL (
      SELECT r.id FROM usage_record r WHERE r.api_key_id = key.id AND ${toCondition(scope)}
      ORDER BY ${column} ${direction}, r.id ${direction} LIMIT ${page.first + 1}) u`;
  const rows = await readInOrder(database, found, { ...select, ...IDENTITY, apiKeyId: true });
  const byKey = groupBy(rows, ({ apiKeyId }) => apiKeyId);
  let counts: ReturnType<typeof countRowsOfKeys> | undefined;
  const countOf = async (id: string) => {
    counts ??= countRowsOfKeys(database, scope, apiKeyIds);
    return (await counts).get(id) ?? 0;
  };
  return new Map(apiKeyIds.map((id) => [id, unsortable.has(id) ? tooManyToSort() : toPage(byKey.get(id) ?? [], page, () => countOf(id))]));
}

/** Counts rows up to one more than lists are counted to; from the roll-ups, where they have the answer. */
async function countRows(database: Database, scope: UsageScope): Promise<number> {
  if (scope.minCost !== undefined || scope.id !== undefined)
    return database.prisma.usageRecord.count({ where: toWhere(scope), take: COUNT_TAKE });
  return Math.min(COUNT_TAKE, await countIn(database, scope, rangeOf(scope)));
}

/** The same per key that has rows. */
async function countRowsOfKeys(database: Database, scope: UsageScope, apiKeyIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
  if (scope.minCost === undefined && scope.id === undefined) {
    const counts = await countsOfKeys(database, scope, apiKeyIds, rangeOf(scope));
    return new Map([...counts].map(([id, count]) => [id, Math.min(COUNT_TAKE, count)]));
  }
  const counted = await database.prisma.$queryRaw<{ id: string; count: number }[]>`
    SELECT key.id::text, count(*)::integer FROM unnest(${[...apiKeyIds]}::uuid[]) AS key(id) CROSS JOIN LATERAL (
      SELECT FROM usage_record r WHERE r.api_key_id = key.id AND ${toCondition(scope)} LIMIT ${COUNT_TAKE}) u
    GROUP BY key.id`;
  return new Map(counted.map(({ id, count }) => [id, count]));
}

function rangeOf({ from, to }: UsageScope): UsageRange {
  return { from: from ?? BEGINNING, to: to ?? null };
}

async function assertSortable(database: Database, { minCost: _, ...scope }: UsageScope): Promise<void> {
  if (scope.id === undefined && (await countIn(database, scope, rangeOf(scope))) > USAGE_SORTED_ROWS_MAX) throw tooManyToSort();
}

async function findUnsortable(
  database: Database,
  { minCost: _, ...scope }: UsageScope,
  apiKeyIds: readonly string[],
): Promise<ReadonlySet<string>> {
  if (scope.id !== undefined) return new Set();
  const counts = await countsOfKeys(database, scope, apiKeyIds, rangeOf(scope));
  return new Set(apiKeyIds.filter((id) => (counts.get(id) ?? 0) > USAGE_SORTED_ROWS_MAX));
}

function tooManyToSort(): AppError {
  return wrongField("orderBy", `sorts ${USAGE_SORTED_ROWS_MAX} rows at most: ask for a shorter time, or for fewer keys or models`);
}

function foreignCursor(end: "after" | "before"): AppError {
  return wrongField(end, "must be a cursor that this list has answered");
}

/** The condition for rows after a given row, or before it (`end`). */
async function boundAt(
  database: Database,
  { accountId }: UsageScope,
  { field, isAscending }: UsageOrder & { readonly field: keyof typeof COLUMNS },
  { id, timestamp }: PagePosition,
  end: "after" | "before",
): Promise<Prisma.UsageRecordWhereInput> {
  const column = COLUMNS[field];
  const row = field === "timestamp" ? { timestamp } : await database.prisma.usageRecord.findUnique({ where: { id, accountId } });
  if (!row) throw foreignCursor(end);
  const value = (row as Partial<UsageRecordModel>)[column];
  // The first half alone bounds the column, so that an index scan starts where the page begins.
  return isAscending === (end === "after")
    ? { [column]: { gte: value }, OR: [{ [column]: { gt: value } }, { id: { gt: id } }] }
    : { [column]: { lte: value }, OR: [{ [column]: { lt: value } }, { id: { lt: id } }] };
}

/** As `toWhere`, for SQL in which the row is `r`. The caller adds the condition on keys. */
function toCondition(scope: UsageScope): Prisma.Sql {
  const { accountId, apiKeyIds, models, modalities, statuses, from, to, minCost, id, either } = scope;
  return Prisma.join(
    [
      Prisma.sql`r.account_id = ${accountId}::uuid`,
      ...(apiKeyIds ? [Prisma.sql`r.api_key_id = ANY (${[...apiKeyIds]}::uuid[])`] : []),
      ...(models ? [Prisma.sql`r.model = ANY (${[...models]}::text[])`] : []),
      ...(modalities ? [Prisma.sql`r.modality::text = ANY (${[...modalities]}::text[])`] : []),
      ...(statuses ? [Prisma.sql`r.status::text = ANY (${[...statuses]}::text[])`] : []),
      ...(from ? [Prisma.sql`r.timestamp >= ${from}`] : []),
      ...(to ? [Prisma.sql`r.timestamp < ${to}`] : []),
      ...(minCost === undefined ? [] : [Prisma.sql`r.cost_nanocredits >= ${minCost}`]),
      ...(id === undefined ? [] : [Prisma.sql`r.id = ${id}::uuid`]),
      ...(either
        ? [Prisma.sql`(r.model = ANY (${[...either.models]}::text[]) OR r.api_key_id = ANY (${[...either.apiKeyIds]}::uuid[]))`]
        : []),
    ],
    " AND ",
  );
}
