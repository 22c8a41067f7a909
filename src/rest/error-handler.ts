/**
 * Errors as REST answers them: one envelope on every route (docs/spec/errors.md). The only other shape is the
 * `error` event of a stream that has begun, which carries the same `error` object (streaming.ts).
 */
import type { OutgoingHttpHeaders } from "node:http";
import { AppError, type ErrorCode } from "../errors.js";
import { INERT_POLICY, NO_SNIFFING } from "../lib/inert-answer.js";
import { challengeOf } from "../services/access/bearer.js";
import { BodyAborted } from "../services/requests/request-body.js";
import type { Exchange } from "./exchange.js";

export const STATUSES: Record<ErrorCode, number> = {
  BAD_REQUEST: 400,
  CONTENT_BLOCKED: 400,
  UNAUTHORIZED: 401,
  INSUFFICIENT_BALANCE: 402,
  KEY_BUDGET_EXHAUSTED: 402,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  CONFLICT: 409,
  PAYLOAD_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  UPGRADE_REQUIRED: 426,
  RATE_LIMITED: 429,
  INTERNAL_ERROR: 500,
  UPSTREAM_ERROR: 502,
  SERVICE_UNAVAILABLE: 503,
  UPSTREAM_TIMEOUT: 504,
};

/** The `type` by which clients of OpenAI's API sort errors. */
const TYPES: Record<ErrorCode, string> = {
  BAD_REQUEST: "invalid_request_error",
  CONTENT_BLOCKED: "invalid_request_error",
  UNAUTHORIZED: "authentication_error",
  INSUFFICIENT_BALANCE: "insufficient_quota",
  KEY_BUDGET_EXHAUSTED: "insufficient_quota",
  FORBIDDEN: "permission_error",
  NOT_FOUND: "invalid_request_error",
  METHOD_NOT_ALLOWED: "invalid_request_error",
  CONFLICT: "invalid_request_error",
  PAYLOAD_TOO_LARGE: "invalid_request_error",
  UNSUPPORTED_MEDIA_TYPE: "invalid_request_error",
  UPGRADE_REQUIRED: "invalid_request_error",
  RATE_LIMITED: "rate_limit_error",
  INTERNAL_ERROR: "api_error",
  UPSTREAM_ERROR: "api_error",
  SERVICE_UNAVAILABLE: "api_error",
  UPSTREAM_TIMEOUT: "api_error",
};

/** Official SDKs repeat 409 and 5xx by themselves; on these, repeating is useless or pays twice. */
const NEVER_RETRIED: ReadonlySet<ErrorCode> = new Set(["INSUFFICIENT_BALANCE", "KEY_BUDGET_EXHAUSTED", "FORBIDDEN", "CONFLICT"]);

/** Statuses that Express's own errors carry (a path that cannot be decoded). */
const CODES_BY_STATUS: Readonly<Record<number, ErrorCode>> = {
  400: "BAD_REQUEST",
  404: "NOT_FOUND",
  405: "METHOD_NOT_ALLOWED",
  413: "PAYLOAD_TOO_LARGE",
  415: "UNSUPPORTED_MEDIA_TYPE",
};

/** Unspecified: an unread body up to this size is read and dropped, so that the connection serves the next request. */
const UNREAD_BODY_BYTES_MAX = 64 * 1024;
/** Unspecified: how long a refused body is still taken in. Closing at once would reset the connection before the caller reads why. */
const LINGER_MS = 2_000;

export interface ErrorObject {
  readonly code: ErrorCode;
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly requestId: string;
  readonly timestamp: string;
  readonly details?: AppError["details"];
}

export interface ErrorEnvelope {
  readonly status: number;
  readonly success: false;
  readonly error: ErrorObject;
}

export function toErrorEnvelope(error: AppError, requestId: string): ErrorEnvelope {
  return { status: STATUSES[error.code], success: false, error: toErrorObject(error, requestId) };
}

export function toErrorObject(error: AppError, requestId: string): ErrorObject {
  const { code, message, param, details } = error;
  const base = { code, message, type: TYPES[code], param: param ?? null, requestId, timestamp: new Date().toISOString() };
  return details === undefined ? base : { ...base, details };
}

/**
 * Whatever was thrown, as the error to tell the caller. What is not ours to explain is logged, once and here, and told
 * as INTERNAL_ERROR without a word of what it was.
 */
export function explain(error: unknown, exchange: Exchange): AppError {
  const known = error instanceof AppError ? error : fromExpress(error);
  // The route and not the path, of which prompts and links are a part.
  const line = { method: exchange.req.method, route: exchange.note.route };
  exchange.note.refused(known?.code ?? "INTERNAL_ERROR");
  if (known === null || (known.code === "INTERNAL_ERROR" && !known.isExpected)) {
    exchange.log.error({ ...line, err: error }, "request failed");
    return new AppError("INTERNAL_ERROR", "Something went wrong in the gateway. Quote the request id when you report it.");
  }
  if (STATUSES[known.code] >= 500) exchange.log.warn({ ...line, code: known.code, err: known }, "request not served");
  return known;
}

function fromExpress(error: unknown): AppError | null {
  if (!(error instanceof Error) || !("status" in error) || typeof error.status !== "number") return null;
  const code = CODES_BY_STATUS[error.status];
  return code === undefined ? null : new AppError(code, error.message);
}

/** Answers with the envelope; says nothing when the caller has gone, and breaks an answer off that has already begun. */
export function sendError(exchange: Exchange, error: unknown): void {
  if (error instanceof BodyAborted || exchange.isGone) return;
  const told = explain(error, exchange);
  if (exchange.res.headersSent) {
    exchange.res.destroy();
    return;
  }
  const body = Buffer.from(JSON.stringify(toErrorEnvelope(told, exchange.requestId)));
  exchange.clearHeaders();
  const headers = { ...headersOf(told), "Content-Type": "application/json; charset=utf-8", "Cache-Control": "private, no-store" };
  sendRefusal(exchange, STATUSES[told.code], headers, body);
}

/** For an answer that may be given before the request's body has been read, or without reading it. */
export function sendRefusal(exchange: Exchange, status: number, headers: OutgoingHttpHeaders, body: Buffer): void {
  const isBodyRefused = hasUnreadBody(exchange);
  const connection = isBodyRefused ? { Connection: "close" } : {};
  exchange.writeHead(status, { ...headers, ...connection, "Content-Length": body.byteLength });
  if (isBodyRefused) endAfterLinger(exchange, body);
  else exchange.res.end(body);
}

/** The envelope as an answer to keep. */
export function toErrorAnswer(error: AppError, requestId: string): { statusCode: number; headers: Record<string, string>; body: Buffer } {
  const headers = { ...headersOf(error), "content-type": "application/json; charset=utf-8", "cache-control": "private, no-store" };
  return { statusCode: STATUSES[error.code], headers, body: Buffer.from(JSON.stringify(toErrorEnvelope(error, requestId))) };
}

export function headersOf(error: AppError): Record<string, string> {
  const headers: Record<string, string> = {};
  if (error.retryAfterSeconds !== undefined) headers["Retry-After"] = String(error.retryAfterSeconds);
  if (error.allow !== undefined) headers.Allow = error.allow.join(", ");
  if (error.code === "UNAUTHORIZED") headers["WWW-Authenticate"] = challengeOf(error);
  if (error.code === "UPGRADE_REQUIRED") headers.Upgrade = "websocket";
  if (isNeverRetried(error)) headers["x-should-retry"] = "false";
  return headers;
}

/** Of an answer in JSON outside of every route: the connection ends with it. */
export function lastHeadersOf(body: string, requestId: string): Record<string, string | number> {
  return {
    "Content-Type": "application/json; charset=utf-8",
    "Content-Length": Buffer.byteLength(body),
    "Cache-Control": "private, no-store",
    "Access-Control-Allow-Origin": "*",
    "X-Content-Type-Options": NO_SNIFFING,
    "Content-Security-Policy": INERT_POLICY,
    "X-Request-Id": requestId,
    Connection: "close",
  };
}

/** A conflict that says when to try again passes by itself. */
function isNeverRetried({ code, isFinal, retryAfterSeconds }: AppError): boolean {
  return isFinal || (NEVER_RETRIED.has(code) && !(code === "CONFLICT" && retryAfterSeconds !== undefined));
}

/** True when more is to come than is worth reading only to keep the connection. */
function hasUnreadBody({ req }: Exchange): boolean {
  if (req.complete) return false;
  if (req.headers["transfer-encoding"] !== undefined) return true;
  return Number(req.headers["content-length"] ?? 0) > UNREAD_BODY_BYTES_MAX;
}

/**
 * A lingering close: the answer and the end of our side are sent, and what the caller still sends is dropped until it
 * hangs up, its body ends, or LINGER_MS are over.
 */
function endAfterLinger({ req, res }: Exchange, body: Buffer): void {
  const { socket } = req;
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(timer));
  req.once("end", () => socket.destroySoon());
  req.resume();
  res.write(body, () => socket.end());
}
