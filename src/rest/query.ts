/** Query parameters common to several lists. */
import * as z from "zod";
import { LOWEST_UUID } from "../lib/ids.js";
import { decodeCursor, encodeCursor, type Page, type PagePosition } from "../lib/pagination.js";
import { queryTime } from "../services/requests/query-values.js";

/** The start of a page: a `nextCursor` of this list. */
export function queryCursor(list: string) {
  return z
    .string()
    .transform((cursor, ctx) => {
      const position = decodeCursor(cursor, list);
      if (position !== null) return position;
      ctx.addIssue("must be a `nextCursor` that this list has answered");
      return z.NEVER;
    })
    .meta({ pattern: "^[A-Za-z0-9_-]+$" });
}

/** For a list by creation, newest first: the `nextCursor` after a page; null after the last one. */
export function nextCursorOf({ items, hasNextPage }: Page<{ readonly id: string; readonly createdAt: Date }>, list: string): string | null {
  const last = hasNextPage ? items.at(-1) : undefined;
  return last ? encodeCursor({ timestamp: last.createdAt, id: last.id }, list) : null;
}

/** The start of a page by the time of the previous page's last row, and its ID where rows share a time. `rows`: their name, such as "Rows". */
export function queryBefore(rows: string, row: string, record: string) {
  return {
    before: queryTime().optional().describe(`${rows} before this ISO 8601 time.`),
    before_id: z
      .uuid(`must be the id of a ${record}`)
      .optional()
      .describe(`The ID of the last ${row} of the previous page, to distinguish ${rows.toLowerCase()} with the same time as \`before\`.`),
  };
}

interface Before {
  readonly before?: Date | undefined;
  readonly before_id?: string | undefined;
}

/** For `refine` of a query with `queryBefore`. */
export const hasBefore = ({ before, before_id: id }: Before): boolean => before !== undefined || id === undefined;
export const NEEDS_BEFORE = { path: ["before_id"], error: "needs `before` too" };

/** Without an id the page starts by time alone. */
export function positionBefore({ before, before_id: id = LOWEST_UUID }: Before): PagePosition | undefined {
  return before && { timestamp: before, id };
}
