/** Keyset pages, newest first: the shape that every list service answers and both faces present. */

import { isUuid } from "./ids.js";

export interface PageRequest<Position = PagePosition> {
  /** How many items at most. */
  readonly first: number;
  /** Exclusive: the position after which the page begins. */
  readonly after?: Position | undefined;
  /** Exclusive: the position before which the page ends. */
  readonly before?: Position | undefined;
  /** The page is the last that lies between the two, and not the first. */
  readonly isFromEnd?: boolean | undefined;
}

/** A place in a newest-first list: the time, and the id that breaks ties. */
export interface PagePosition {
  readonly timestamp: Date;
  readonly id: string;
}

/** A place in a list in another order: a text that stands for it there, and the id that breaks ties. */
export interface RankedPosition {
  readonly rank: string;
  readonly id: string;
}

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly hasNextPage: boolean;
  readonly hasPreviousPage: boolean;
  /** How many items the whole list has, up to COUNTED_MAX and one more. Asked for when somebody wants to know. */
  readonly count: () => Promise<number>;
}

/** Lists are counted exactly up to here. A count is read through, row by row. */
export const COUNTED_MAX = 10_000;
/** How many rows a count takes of a list at most. */
export const COUNT_TAKE = COUNTED_MAX + 1;

const CURSOR_PATTERN = /^([A-Za-z]{1,32})\.(\d{1,15})\.([0-9a-f-]{36})$/;
/** The last moment that every database writes as a date. */
const TIMESTAMP_MAX = Date.UTC(9999, 11, 31);

/** `list` says which list the position is one of, in letters: no other takes it. */
export function encodeCursor(position: PagePosition, list: string): string {
  return Buffer.from(`${list}.${position.timestamp.getTime()}.${position.id}`).toString("base64url");
}

/** Longer than any list's name, a moment and an id are in base64url. */
const CURSOR_CHARS_MAX = 1_000;

/** Null when the cursor was not made by `encodeCursor` for this list. */
export function decodeCursor(cursor: string, list: string): PagePosition | null {
  if (cursor.length > CURSOR_CHARS_MAX) return null;
  const match = CURSOR_PATTERN.exec(Buffer.from(cursor, "base64url").toString("latin1"));
  if (match?.[1] !== list || Number(match[2]) > TIMESTAMP_MAX) return null;
  const position = { timestamp: new Date(Number(match[2])), id: match[3] as string };
  if (!isUuid(position.id)) return null;
  // Node reads over what is not base64url.
  return encodeCursor(position, list) === cursor ? position : null;
}

/** How places are written as cursors. */
export interface Cursors<Position> {
  /** `list` says which list the position is one of: no other takes it. */
  encode(position: Position, list: string): string;
  /** Null for what `encode` has not made for this list. */
  decode(cursor: string, list: string): Position | null;
}

export const NEWEST_FIRST: Cursors<PagePosition> = { encode: encodeCursor, decode: decodeCursor };

/** Base64url of the longest that a list's name, a rank and an id can be. */
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

/** Empty for what is no JSON array of texts. */
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
 * What a list query asks of Prisma for one page: `where` belongs into the query's own, `take` is one row more than the page holds. Each
 * clause is `(time, id) < (timestamp, id)` as Prisma can write it; its first half alone bounds the time, so that an index on the two
 * columns is entered where the page begins. An OR of both halves alone would be read through from the newest row on. A page from the
 * end is read backwards, and turned around by `toPage`.
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

/** Cuts the one row too many that a list query asks for to learn whether the list goes on, and puts the page in the list's order. */
export function toPage<Item>(rows: readonly Item[], page: PageRequest<unknown>, count: () => Promise<number>): Page<Item> {
  const { first, after, before, isFromEnd = false } = page;
  const items = rows.slice(0, first);
  const goesOn = rows.length > first;
  return isFromEnd
    ? { items: items.reverse(), hasPreviousPage: goesOn, hasNextPage: before !== undefined, count }
    : { items, hasPreviousPage: after !== undefined, hasNextPage: goesOn, count };
}
