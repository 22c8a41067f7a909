/**
 * Relay connections over the services' keyset pages, forwards and backwards; newest first, unless their cursors state another order.
 */
import { wrongField } from "../errors.js";
import { COUNTED_MAX, type Cursors, NEWEST_FIRST, type Page, type PagePosition, type PageRequest } from "../lib/pagination.js";
import { PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX } from "../limits.js";
import { builder } from "./builder.js";

export const pageArgs = builder.args((t) => ({
  first: t.int({ description: `The number of items from the start, 1 to ${PAGE_SIZE_MAX}. Defaults to ${PAGE_SIZE_DEFAULT}.` }),
  after: t.string({ description: "The `endCursor` of the previous page." }),
  last: t.int({ description: `The number of items from the end, 1 to ${PAGE_SIZE_MAX}, instead of \`first\`.` }),
  before: t.string({ description: "The `startCursor` of the next page." }),
}));

export interface PageArgs {
  readonly first?: number | null | undefined;
  readonly after?: string | null | undefined;
  readonly last?: number | null | undefined;
  readonly before?: string | null | undefined;
}

builder.globalConnectionField("totalCount", (t) =>
  t.int({
    description: `The total number of items, counted up to ${COUNTED_MAX}. ${COUNTED_MAX + 1} means that there are more.`,
    resolve: (connection) => connection.count(),
  }),
);

export const OrderDirection = builder.enumType("OrderDirection", {
  description: "The direction of a sort order.",
  values: {
    ASC: { value: "asc", description: "Ascending: smallest, earliest or alphabetically first." },
    DESC: { value: "desc", description: "Descending: largest, latest or alphabetically last." },
  } as const,
});

/** Throws BAD_REQUEST with the argument as param when it is out of bounds, not a cursor, or a cursor of another list. */
export function toPageRequest(args: PageArgs, list: string): PageRequest;
export function toPageRequest<Position>(args: PageArgs, list: string, cursors: Cursors<Position>): PageRequest<Position>;
export function toPageRequest(
  { first, after, last, before }: PageArgs,
  list: string,
  cursors: Cursors<unknown> = NEWEST_FIRST,
): PageRequest<unknown> {
  const isFromEnd = last !== undefined && last !== null;
  if (isFromEnd && first !== undefined && first !== null) throw wrongField("last", "cannot be asked for together with `first`");
  const size = last ?? first ?? PAGE_SIZE_DEFAULT;
  if (size < 1 || size > PAGE_SIZE_MAX) throw wrongField(isFromEnd ? "last" : "first", `must be from 1 to ${PAGE_SIZE_MAX}`);
  const positionOf = (cursor: string | null | undefined, param: string) => {
    if (cursor === undefined || cursor === null) return undefined;
    const position = cursors.decode(cursor, list);
    if (position === null) throw wrongField(param, "must be a cursor that this list has answered");
    return position;
  };
  return { first: size, after: positionOf(after, "after"), before: positionOf(before, "before"), isFromEnd };
}

interface Connection<Item> {
  readonly edges: { readonly cursor: string; readonly node: Item }[];
  readonly count: () => Promise<number>;
  readonly pageInfo: {
    readonly hasNextPage: boolean;
    readonly hasPreviousPage: boolean;
    readonly startCursor: string | null;
    readonly endCursor: string | null;
  };
}

/** `list` and `cursors` are those passed to `toPageRequest`. */
export function toConnection<Item>(page: Page<Item>, list: string, positionOf: (item: Item) => PagePosition): Connection<Item>;
export function toConnection<Item, Position>(
  page: Page<Item>,
  list: string,
  positionOf: (item: Item) => Position,
  cursors: Cursors<Position>,
): Connection<Item>;
export function toConnection<Item>(
  { items, count, ...page }: Page<Item>,
  list: string,
  positionOf: (item: Item) => unknown,
  cursors: Cursors<unknown> = NEWEST_FIRST,
): Connection<Item> {
  const edges = items.map((item) => ({ cursor: cursors.encode(positionOf(item), list), node: item }));
  return {
    edges,
    count,
    pageInfo: { ...page, startCursor: edges.at(0)?.cursor ?? null, endCursor: edges.at(-1)?.cursor ?? null },
  };
}

/** The position of a row in a list sorted by creation time. */
export function createdPosition({ id, createdAt }: { readonly id: string; readonly createdAt: Date }): PagePosition {
  return { id, timestamp: createdAt };
}

/** The cost of a page: each of its fields multiplied by the page size. The resolver refuses an invalid size. */
export function pageCost({ first, last }: PageArgs): { field: number; multiplier: number } {
  return { field: 1, multiplier: Math.max(1, last ?? first ?? PAGE_SIZE_DEFAULT) };
}
