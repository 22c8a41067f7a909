/** The `Authorization` header and its counterpart in answers, which both faces treat by the same rules (docs/spec/http.md#credentials). */
import { type AppError, credentialRefused, invalidInput } from "../../errors.js";

const BEARER = /^bearer +(\S.*)$/i;
/** What a header may hold between quotes (RFC 6750, 3): visible ASCII and spaces, without quotes and backslashes. */
const NOT_QUOTABLE = /[^\x20-\x21\x23-\x5b\x5d-\x7e]/g;

/** The key in `Authorization: Bearer <key>`. Throws UNAUTHORIZED for another scheme, and for what cannot be a key, such as two of them. */
export function readBearer(authorization: string): string {
  const key = BEARER.exec(authorization)?.[1];
  if (key === undefined) throw credentialRefused(faultOf(authorization.trim()));
  if (/\s/.test(key)) throw credentialRefused("The Authorization header must hold the word Bearer and one key.");
  return key;
}

/** The header's words alone are looked at: what stands where a key should is not repeated. */
function faultOf(authorization: string): string {
  if (/^bearer$/i.test(authorization)) {
    return "The Authorization header holds no key after the word Bearer: is the variable that should hold it set?";
  }
  if (authorization !== "" && !/\s/.test(authorization)) {
    return "The Authorization header lacks the word Bearer before the key: it must read Bearer <API key>.";
  }
  return "The Authorization header must read: Bearer <API key>.";
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

/** `WWW-Authenticate` of a 401 (RFC 6750, 3): a caller who has presented nothing is told no error. */
export function challengeOf({ message, isCredentialRefused }: AppError): string {
  if (!isCredentialRefused) return "Bearer";
  return `Bearer error="invalid_token", error_description="${message.replace(NOT_QUOTABLE, "'")}"`;
}
