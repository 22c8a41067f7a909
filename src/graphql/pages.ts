/** Relay connections over the services' keyset pages, newest first, read forwards and backwards. */
import { wrongField } from "../errors.js";
import { COUNTED_MAX, decodeCursor, encodeCursor, type Page, type PagePosition, type PageRequest } from "../lib/pagination.js";
import { PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX } from "../limits.js";
import { builder } from "./builder.js";

export const pageArgs = builder.args((t) => ({
  first: t.int({ description: `How many from the beginning, 1 to ${PAGE_SIZE_MAX}: ${PAGE_SIZE_DEFAULT} unless stated.` }),
  after: t.string({ description: "The `endCursor` of the page before." }),
  last: t.int({ description: `How many from the end, 1 to ${PAGE_SIZE_MAX}, instead of \`first\`.` }),
  before: t.string({ description: "The `startCursor` of the page behind." }),
}));

export interface PageArgs {
  readonly first?: number | null | undefined;
  readonly after?: string | null | undefined;
  readonly last?: number | null | undefined;
  readonly before?: string | null | undefined;
}

builder.globalConnectionField("totalCount", (t) =>
  t.int({
    description: `How many there are in all. Counted up to ${COUNTED_MAX}: ${COUNTED_MAX + 1} says that there are more.`,
    resolve: (connection) => connection.count(),
  }),
);

/** BAD_REQUEST with the argument as param when one is out of bounds, made by hand, or of another list. */
export function toPageRequest({ first, after, last, before }: PageArgs, list: string): PageRequest {
  const isFromEnd = last !== undefined && last !== null;
  if (isFromEnd && first !== undefined && first !== null) throw wrongField("last", "cannot be asked for together with `first`");
  const size = last ?? first ?? PAGE_SIZE_DEFAULT;
  if (size < 1 || size > PAGE_SIZE_MAX) throw wrongField(isFromEnd ? "last" : "first", `must be from 1 to ${PAGE_SIZE_MAX}`);
  return { first: size, after: positionOf(after, "after", list), before: positionOf(before, "before", list), isFromEnd };
}

function positionOf(cursor: string | null | undefined, param: string, list: string): PagePosition | undefined {
  if (cursor === undefined || cursor === null) return undefined;
  const position = decodeCursor(cursor, list);
  if (position === null) throw wrongField(param, "must be a cursor that this list has answered");
  return position;
}

/** `list` is the one that `toPageRequest` was given. */
export function toConnection<Item>({ items, count, ...page }: Page<Item>, list: string, positionOf: (item: Item) => PagePosition) {
  const edges = items.map((item) => ({ cursor: encodeCursor(positionOf(item), list), node: item }));
  return {
    edges,
    count,
    pageInfo: { ...page, startCursor: edges.at(0)?.cursor ?? null, endCursor: edges.at(-1)?.cursor ?? null },
  };
}

/** The place of a row in a list that is sorted by when its rows were made. */
export function createdPosition({ id, createdAt }: { readonly id: string; readonly createdAt: Date }): PagePosition {
  return { id, timestamp: createdAt };
}

/** What a page costs: each of its fields as often as the page can be long. An invalid size is refused by the resolver. */
export function pageCost({ first, last }: PageArgs): { field: number; multiplier: number } {
  return { field: 1, multiplier: Math.max(1, last ?? first ?? PAGE_SIZE_DEFAULT) };
}
