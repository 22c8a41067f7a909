/**
 * The client of an OAuth request, which many libraries send as `Authorization: Basic` (RFC 6749 2.3.1). Clients here are public: they have a
 * name and no password.
 */
import { isRecord } from "../lib/json.js";
import { ownValue } from "../lib/own-values.js";
import { OAuthError } from "../services/authorizations/oauth-error.js";

const BASIC = /^basic +([A-Za-z0-9+/]+={0,2})$/i;
const SCHEME = /^basic(?: |$)/i;
const MALFORMED =
  "Authorization: Basic must hold the app key as user name and an empty password, each form-encoded, as base64 of `<client_id>:`.";
const PASSWORD =
  "Apps have no secret here. Send client_id in the body and no Authorization header (`none` or `client_secret_post` in most libraries), or Basic with an empty password.";

/** The body with the `client_id` of the header, if any. Other schemes are ignored. Throws OAuthError (`invalid_client`). */
export function withBasicClient(authorization: string | undefined, body: unknown): unknown {
  if (authorization === undefined || !SCHEME.test(authorization) || !isRecord(body)) return body;
  const { name, password } = readBasic(authorization);
  const stated = ownValue(body, "client_id");
  const hasClient = stated !== undefined && stated !== null && stated !== "";
  if (!hasClient && password !== "") throw invalidClient(PASSWORD);
  if (name === "") return body;
  if (hasClient && stated !== name)
    throw invalidClient("client_id in the body is another than in the Authorization header: send one of them.");
  return { ...body, client_id: name };
}

function readBasic(authorization: string): { readonly name: string; readonly password: string } {
  const text = Buffer.from(BASIC.exec(authorization)?.[1] ?? "", "base64").toString("utf8");
  const end = text.indexOf(":");
  if (end === -1) throw invalidClient(MALFORMED);
  try {
    return { name: decodeField(text.slice(0, end)), password: decodeField(text.slice(end + 1)) };
  } catch {
    throw invalidClient(MALFORMED);
  }
}

/** Of application/x-www-form-urlencoded. */
function decodeField(text: string): string {
  return decodeURIComponent(text.replaceAll("+", " "));
}

function invalidClient(description: string): OAuthError {
  return new OAuthError("invalid_client", description, "client_id");
}
