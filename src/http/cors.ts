/**
 * CORS (docs/spec/http.md#other-origins): pages of other sites may send requests with a key of their own and read the answers. Cookies
 * count for our own pages only.
 */
import type { OutgoingHttpHeaders } from "node:http";

/** For every answer to a request with a key: browsers keep cookies out of such requests. */
export const READABLE_BY_ANY_PAGE = { "Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "*" } as const;

/** Headers that scripts may always send, beside those that they request. */
const ALLOWED_HEADERS = "Authorization, Content-Type, Idempotency-Key, X-Request-Id";
const HEADER_NAME = /^[A-Za-z0-9-]{1,64}$/;
/** Unspecified: official SDKs send about a dozen `x-stainless-*` headers. */
const REFLECTED_HEADERS_MAX = 40;
const PREFLIGHT_MAX_AGE_SECONDS = 86_400;

/** Headers of a preflight answer: `asked` is its Access-Control-Request-Headers. */
export function preflightHeaders(methods: readonly string[], requested: string | undefined): OutgoingHttpHeaders {
  const allow = methods.join(", ");
  return {
    Allow: allow,
    "Access-Control-Allow-Methods": allow,
    "Access-Control-Allow-Headers": allowedHeaders(requested),
    "Access-Control-Max-Age": String(PREFLIGHT_MAX_AGE_SECONDS),
    Vary: "Access-Control-Request-Headers",
  };
}

/** Reflects requested header names, because SDKs send telemetry headers of changing names. */
function allowedHeaders(requested: string | undefined): string {
  const names = (requested ?? "")
    .split(",")
    .map((name) => name.trim())
    .filter((name) => HEADER_NAME.test(name));
  return [ALLOWED_HEADERS, ...names.slice(0, REFLECTED_HEADERS_MAX)].join(", ");
}
