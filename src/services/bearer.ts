/** The `Authorization` header, which both faces read by the same rules (Spec 5.2, decisions "Keys"). */
import { invalidInput, unauthenticated } from "../errors.js";

const BEARER = /^bearer +(\S.*)$/i;

/** The key in `Authorization: Bearer <key>`. Throws UNAUTHORIZED for another scheme, and for what cannot be a key, such as two of them. */
export function readBearer(authorization: string): string {
  const key = BEARER.exec(authorization)?.[1];
  if (key === undefined) throw unauthenticated("The Authorization header must read: Bearer <API key>.");
  if (/\s/.test(key)) throw unauthenticated("The Authorization header must hold the word Bearer and one key.");
  return key;
}

/** Throws BAD_REQUEST when the header came twice. Node keeps only the first of several, so the raw list is counted. */
export function assertOneAuthorization(rawHeaders: readonly string[]): void {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length === "authorization".length && name.toLowerCase() === "authorization") count += 1;
  }
  if (count > 1) throw invalidInput("The Authorization header was sent more than once.", "Authorization");
}
