/** What requests and sockets come with: a key (docs/spec/http.md#credentials), or the cookie of a signed-in browser. */
import type { Caller } from "../context.js";
import { invalidInput } from "../errors.js";
import type { Access } from "../services/access/access.js";
import type { Credential } from "../services/access/revocation-watch.js";

/** Who that is. A session that is not good is nobody. */
export function authenticate(access: Access, { key, sessionToken }: Credential, clientAddress: string): Caller | Promise<Caller> {
  return sessionToken === null ? access.authenticate(key, clientAddress) : access.authenticateSession(sessionToken, clientAddress);
}

/** The key in `?key=`; null when there is none. Throws BAD_REQUEST when there are two. */
export function readQueryKey(url: string): string | null {
  const mark = url.indexOf("?");
  if (mark === -1) return null;
  const keys = new URLSearchParams(url.slice(mark)).getAll("key");
  if (keys.length > 1) throw invalidInput("The query parameter key was sent more than once.", "key");
  return keys[0] || null;
}
