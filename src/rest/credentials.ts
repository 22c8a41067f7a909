/** The credential of a request: `Authorization: Bearer <key>` or `?key=<key>`; the header wins (docs/spec/http.md#credentials). */
import type { IncomingMessage } from "node:http";
import { assertOneAuthorization, readBearer } from "../services/access/bearer.js";
import type { Query } from "./query.js";

/** Null when there is none. Throws BAD_REQUEST when the header came twice, UNAUTHORIZED for what is no key; the query is looked at only without it. */
export function readToken(req: IncomingMessage, source: { readonly query: Query }): string | null {
  const header = req.headers.authorization;
  if (header === undefined) return source.query.key === "" ? null : source.query.key;
  assertOneAuthorization(req.rawHeaders);
  return readBearer(header);
}
