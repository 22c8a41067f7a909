/** Keyset pages, newest first: the shape that every list service answers and both faces present. */

export interface PageRequest {
  /** How many items at most. */
  readonly first: number;
  /** Exclusive: the position after which the page begins. */
  readonly after?: PagePosition | undefined;
}

/** A place in a newest-first list: the time, and the id that breaks ties. */
export interface PagePosition {
  readonly timestamp: Date;
  readonly id: string;
}

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly hasNextPage: boolean;
}

const CURSOR_PATTERN = /^(\d{1,15})\.([0-9a-f-]{36})$/;
/** The last moment that every database writes as a date. */
const TIMESTAMP_MAX = Date.UTC(9999, 11, 31);

export function encodeCursor(position: PagePosition): string {
  return Buffer.from(`${position.timestamp.getTime()}.${position.id}`).toString("base64url");
}

/** Null when the cursor was not made by `encodeCursor`. */
export function decodeCursor(cursor: string): PagePosition | null {
  const match = CURSOR_PATTERN.exec(Buffer.from(cursor, "base64url").toString("latin1"));
  if (!match || Number(match[1]) > TIMESTAMP_MAX) return null;
  const position = { timestamp: new Date(Number(match[1])), id: match[2] as string };
  // Node reads over what is not base64url.
  return encodeCursor(position) === cursor ? position : null;
}

type TimeColumn = "createdAt" | "timestamp";
type Older<By extends TimeColumn> = Partial<Record<By, { readonly lte: Date }>> & {
  readonly OR?: [Record<By, { readonly lt: Date }>, { readonly id: { readonly lt: string } }];
};

/**
 * What a list query asks of Prisma for one page: `where` belongs into the query's own, `take` is one row more than the page holds. The
 * clause is `(time, id) < (timestamp, id)` as Prisma can write it; its first half alone bounds the time, so that an index on the two
 * columns is entered where the page begins. An OR of both halves alone would be read through from the newest row on.
 */
export function newestFirst<By extends TimeColumn = "createdAt">({ first, after }: PageRequest, by = "createdAt" as By) {
  const column = <Value>(value: Value) => ({ [by]: value }) as Record<By, Value>;
  const where = (
    after ? { ...column({ lte: after.timestamp }), OR: [column({ lt: after.timestamp }), { id: { lt: after.id } }] } : {}
  ) as Older<By>;
  return { where, orderBy: [column("desc" as const), { id: "desc" as const }], take: first + 1 };
}

/** Cuts the one row too many that a list query asks for to learn whether there is a next page. */
export function toPage<Item>(rows: readonly Item[], first: number): Page<Item> {
  return { items: rows.slice(0, first), hasNextPage: rows.length > first };
}
