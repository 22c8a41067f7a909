/** Query parameters common to several lists. */
import * as z from "zod";
import { decodeCursor } from "../lib/pagination.js";

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
