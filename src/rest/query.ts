/** Parameters of query strings that several lists take. */
import * as z from "zod";
import { decodeCursor } from "../lib/pagination.js";

/** Where a page of this list begins: what it answered as `nextCursor`. */
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
