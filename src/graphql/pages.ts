/** Relay connections over the services' keyset pages: forward only, newest first. */
import { wrongField } from "../errors.js";
import { decodeCursor, encodeCursor, type Page, type PagePosition, type PageRequest } from "../lib/pagination.js";
import { PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX } from "../limits.js";
import { builder } from "./builder.js";

export const pageArgs = builder.args((t) => ({
  first: t.int({ defaultValue: PAGE_SIZE_DEFAULT, description: `How many at most: 1 to ${PAGE_SIZE_MAX}.` }),
  after: t.string({ description: "The `endCursor` of the page before." }),
}));

interface PageArgs {
  readonly first?: number | null | undefined;
  readonly after?: string | null | undefined;
}

/** BAD_REQUEST with param `first` or `after` when they are out of bounds or made by hand. */
export function toPageRequest({ first, after }: PageArgs): PageRequest {
  const size = first ?? PAGE_SIZE_DEFAULT;
  if (size < 1 || size > PAGE_SIZE_MAX) throw wrongField("first", `must be from 1 to ${PAGE_SIZE_MAX}`);
  if (after === undefined || after === null) return { first: size };
  const position = decodeCursor(after);
  if (position === null) throw wrongField("after", "must be a cursor that this list has answered");
  return { first: size, after: position };
}

export function toConnection<Item>(page: Page<Item>, args: PageArgs, positionOf: (item: Item) => PagePosition) {
  const edges = page.items.map((item) => ({ cursor: encodeCursor(positionOf(item)), node: item }));
  return {
    edges,
    pageInfo: {
      hasNextPage: page.hasNextPage,
      hasPreviousPage: args.after !== undefined && args.after !== null,
      startCursor: edges.at(0)?.cursor ?? null,
      endCursor: edges.at(-1)?.cursor ?? null,
    },
  };
}

/** What a page costs: each of its fields as often as the page can be long. An invalid size is refused by the resolver. */
export function pageCost({ first }: PageArgs): { field: number; multiplier: number } {
  return { field: 1, multiplier: Math.max(1, first ?? PAGE_SIZE_DEFAULT) };
}
