/** Keyset pagination, newest first: the form of every list service, presented by both faces. */

import { isUuid } from "./ids.js";

export interface PageRequest<Position = PagePosition> {
  /** The most items. */
  readonly first: number;
  /** Exclusive: the page starts after this position. */
  readonly after?: Position | undefined;
  /** Exclusive: the page ends before this position. */
  readonly before?: Position | undefined;
  /** The page is the last one between the two, not the first. */
  readonly isFromEnd?: boolean | undefined;
}

/** A position in a newest-first list: the time, and the id that breaks ties. */
export interface PagePosition {
  readonly timestamp: Date;
  readonly id: string;
}

/** A position in another order: a text that sorts, and the id that breaks ties. */
export interface RankedPosition {
  readonly rank: string;
  readonly id: string;
}

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
  /** The number of items of the whole list, at most COUNTED_MAX + 1. Called only on request. */
  readonly count: () => Promise<number>;
}

/** Lists are counted exactly up to this, because a count reads row by row. */
export const COUNTED_MAX = 10_000;
/** The most rows that a count reads. */
export const COUNT_TAKE = COUNTED_MAX + 1;

const CURSOR_PATTERN = /^([A-Za-z]{1,32})\.(\d{1,15})\.([0-9a-f-]{36})$/;
/** The last moment that every database writes as a date. */
const TIMESTAMP_MAX = Date.UTC(9999, 11, 31);

/** `list` names the list in letters; another list refuses the cursor. */
export function encodeCursor(position: PagePosition, list: string): string {
  return Buffer.from(`${list}.${position.timestamp.getTime()}.${position.id}`).toString("base64url");
}

/** Longer than any list name, time and id in base64url. */
const CURSOR_CHARS_MAX = 1_000;

/** Null when the cursor was not made by `encodeCursor` for this list. */
export function decodeCursor(cursor: string, list: string): PagePosition | null {
  if (cursor.length > CURSOR_CHARS_MAX) return null;
  const match = CURSOR_PATTERN.exec(Buffer.from(cursor, "base64url").toString("latin1"));
  if (match?.[1] !== list || Number(match[2]) > TIMESTAMP_MAX) return null;
  const position = { timestamp: new Date(Number(match[2])), id: match[3] as string };
  if (!isUuid(position.id)) return null;
  // Node ignores invalid characters of base64url.
  return encodeCursor(position, list) === cursor ? position : null;
}

export interface Cursors<Position> {
  /** `list` names the list; another list refuses the cursor. */
  encode(position: Position, list: string): string;
  /** Null unless made by `encode` for this list. */
  decode(cursor: string, list: string): Position | null;
}

export const NEWEST_FIRST: Cursors<PagePosition> = { encode: encodeCursor, decode: decodeCursor };

/** Base64url of the longest list name, rank and id. */
const RANKED_CURSOR_CHARS_MAX = 10_000;

export const RANKED: Cursors<RankedPosition> = {
  encode: ({ rank, id }, list) => Buffer.from(JSON.stringify([list, rank, id])).toString("base64url"),
  decode: (cursor, list) => {
    if (cursor.length > RANKED_CURSOR_CHARS_MAX) return null;
    const [ofList, rank, id] = readTexts(Buffer.from(cursor, "base64url").toString("utf8"));
    if (ofList !== list || rank === undefined || id === undefined) return null;
    const position = { rank, id };
    return RANKED.encode(position, list) === cursor ? position : null;
  },
};

/** Empty for text that is no JSON array of texts. */
function readTexts(json: string): readonly string[] {
  try {
    const value: unknown = JSON.parse(json);
    return Array.isArray(value) && value.every((item) => typeof item === "string") ? value : [];
  } catch {
    return [];
  }
}

type TimeColumn = "createdAt" | "timestamp";
type IdColumn = "id" | "transactionId";
type Bound<By extends TimeColumn, Id extends IdColumn> = Partial<Record<By, { readonly lte: Date } | { readonly gte: Date }>> & {
  readonly OR: (
    | Record<By, { readonly lt: Date } | { readonly gt: Date }>
    | Record<Id, { readonly lt: string } | { readonly gt: string }>
  )[];
};

/**
 * Prisma arguments of one page: add `where` to the query's own; `take` is one row more than the page. Each clause is `(time, id) <
 * (timestamp, id)` in Prisma's form; its first half alone bounds the time, so that an index scan on the two columns starts where the page
 * begins. An OR of both halves would scan from the newest row. A page from the end is read backwards, and `toPage` reverses it.
 */
export function newestFirst<By extends TimeColumn = "createdAt", Id extends IdColumn = "id">(
  { first, after, before, isFromEnd = false }: PageRequest,
  by = "createdAt" as By,
  id = "id" as Id,
) {
  const time = <Value>(value: Value) => ({ [by]: value }) as Record<By, Value>;
  const tie = <Value>(value: Value) => ({ [id]: value }) as Record<Id, Value>;
  const bounds: Bound<By, Id>[] = [];
  if (after) bounds.push({ ...time({ lte: after.timestamp }), OR: [time({ lt: after.timestamp }), tie({ lt: after.id })] });
  if (before) bounds.push({ ...time({ gte: before.timestamp }), OR: [time({ gt: before.timestamp }), tie({ gt: before.id })] });
  const direction = isFromEnd ? ("asc" as const) : ("desc" as const);
  return { where: { AND: bounds }, orderBy: [time(direction), tie(direction)], take: first + 1 };
}

/** Drops the extra row, which shows whether the list continues, and restores the list's order. */
export function toPage<Item>(rows: readonly Item[], page: PageRequest<unknown>, count: () => Promise<number>): Page<Item> {
  const { first, after, before, isFromEnd = false } = page;
  const items = rows.slice(0, first);
  const goesOn = rows.length > first;
  return isFromEnd
    ? { items: items.reverse(), hasPreviousPage: goesOn, hasNextPage: before !== undefined, count }
    : { items, hasPreviousPage: after !== undefined, hasNextPage: goesOn, count };
}

/** A page of a list in memory, sorted by these positions. */
export function pageOfRanked<Item>(
  items: readonly Item[],
  positionOf: (item: Item) => RankedPosition,
  direction: "asc" | "desc",
  { first, after, before, isFromEnd = false }: PageRequest<RankedPosition>,
): Page<Item> {
  const sign = direction === "asc" ? 1 : -1;
  const compare = (one: RankedPosition, other: RankedPosition) => sign * compareRanked(one, other);
  const all = items.map((item) => ({ item, position: positionOf(item) }));
  all.sort((one, other) => compare(one.position, other.position));
  const between = all.filter(({ position }) => (!after || compare(position, after) > 0) && (!before || compare(position, before) < 0));
  const goesOn = between.length > first;
  return {
    items: (isFromEnd ? between.slice(-first) : between.slice(0, first)).map(({ item }) => item),
    hasPreviousPage: isFromEnd ? goesOn : after !== undefined,
    hasNextPage: isFromEnd ? before !== undefined : goesOn,
    count: async () => Math.min(all.length, COUNT_TAKE),
  };
}

function compareRanked(one: RankedPosition, other: RankedPosition): number {
  if (one.rank !== other.rank) return one.rank < other.rank ? -1 : 1;
  if (one.id === other.id) return 0;
  return one.id < other.id ? -1 : 1;
}
