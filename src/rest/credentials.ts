/** The credential of a request: `Authorization: Bearer <key>` or `?key=<key>`; the header wins (Spec 5.2, decisions "Keys"). */
import type { IncomingMessage } from "node:http";
import { assertOneAuthorization, readBearer } from "../services/bearer.js";
import type { Query } from "./query.js";

/** Null when there is none. Throws BAD_REQUEST when there is more than one in the header, UNAUTHORIZED for another scheme. */
export function readToken(req: IncomingMessage, query: Query): string | null {
  const header = req.headers.authorization;
  if (header === undefined) return query.key === "" ? null : query.key;
  assertOneAuthorization(req.rawHeaders);
  return readBearer(header);
}
