/**
 * What requests and sockets come with: `Authorization: Bearer <key>` or `?key=<key>`, of which the header wins, or, without either, the
 * cookie of a signed-in browser (docs/spec/http.md#credentials).
 */
import type { IncomingMessage } from "node:http";
import type { Caller } from "../context.js";
import type { Access, BrowserRequest } from "../services/access/access.js";
import { assertOneAuthorization, readBearer } from "../services/access/bearer.js";
import type { Credential } from "../services/access/revocation-watch.js";
import type { Query } from "./query.js";

/** Who a credential stands for; null is whoever is signed in in the browser that asks, or nobody. Throws UNAUTHORIZED for one that is not good, RATE_LIMITED when there were too many. */
export interface Authenticator {
  authenticate(token: string | null, clientAddress: string, request?: BrowserRequest): Caller | Promise<Caller>;
}

/** Null when there is none. Throws BAD_REQUEST when the header came twice, UNAUTHORIZED for what is no key; the query is looked at only without it. */
export function readToken(req: IncomingMessage, source: { readonly query: Query }): string | null {
  const header = req.headers.authorization;
  if (header === undefined) return source.query.key === "" ? null : source.query.key;
  assertOneAuthorization(req.rawHeaders);
  return readBearer(header);
}

/** What `read` finds of a credential. Whoever sends one that cannot be read is counted like one who sends none. */
export function readCounted<Found>(authenticator: Authenticator, clientAddress: string, read: () => Found): Found | Promise<never> {
  try {
    return read();
  } catch (error) {
    return refuseUnread(authenticator, clientAddress, error);
  }
}

async function refuseUnread(authenticator: Authenticator, clientAddress: string, error: unknown): Promise<never> {
  await authenticator.authenticate(null, clientAddress);
  throw error;
}

/** Who that is. A session that is not good is nobody. */
export function authenticate(access: Access, { key, sessionToken }: Credential, clientAddress: string): Caller | Promise<Caller> {
  return sessionToken === null ? access.authenticate(key, clientAddress) : access.authenticateSession(sessionToken, clientAddress);
}
