/**
 * Errors over HTTP: the table of statuses, the classification of thrown errors, and the envelope (docs/spec/errors.md). GraphQL errors,
 * OAuth bodies and OpenAI's error events present the same decisions.
 */
import type { OutgoingHttpHeaders } from "node:http";
import type { Logger } from "pino";
import { AppError, type ErrorCode } from "../errors.js";
import { INERT_POLICY, NO_SNIFFING } from "../lib/inert-answer.js";
import { ownValue } from "../lib/own-values.js";
import type { RequestNote } from "../lib/request-note.js";
import { challengeOf } from "../services/access/access.js";
import { BodyAborted } from "./body.js";
import type { Exchange } from "./exchange.js";

const STATUSES: Readonly<Record<ErrorCode, number>> = {
  BAD_REQUEST: 400,
  CONTENT_BLOCKED: 400,
  UNAUTHORIZED: 401,
  INSUFFICIENT_BALANCE: 402,
  KEY_BUDGET_EXHAUSTED: 402,
  MAX_COST_EXCEEDED: 402,
  FORBIDDEN: 403,
  ACCOUNT_SUSPENDED: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  CONFLICT: 409,
  PAYLOAD_TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  MISDIRECTED_REQUEST: 421,
  UPGRADE_REQUIRED: 426,
  RATE_LIMITED: 429,
  INTERNAL_ERROR: 500,
  UPSTREAM_ERROR: 502,
  SERVICE_UNAVAILABLE: 503,
  UPSTREAM_TIMEOUT: 504,
};

/** The `type` by which clients of OpenAI's API classify errors, where it differs from that of other 4xx or 5xx. */
const TYPES: ReadonlyMap<number, string> = new Map([
  [STATUSES.UNAUTHORIZED, "authentication_error"],
  [STATUSES.INSUFFICIENT_BALANCE, "insufficient_quota"],
  [STATUSES.FORBIDDEN, "permission_error"],
  [STATUSES.RATE_LIMITED, "rate_limit_error"],
]);

/** Codes for refusals of the frameworks below; of several codes with one status the first applies. */
const REFUSALS: readonly ErrorCode[] = [
  "BAD_REQUEST",
  "FORBIDDEN",
  "NOT_FOUND",
  "METHOD_NOT_ALLOWED",
  "PAYLOAD_TOO_LARGE",
  "UNSUPPORTED_MEDIA_TYPE",
];
const CODES_BY_STATUS: ReadonlyMap<number, ErrorCode> = new Map(REFUSALS.map((code) => [STATUSES[code], code]));

/** Official SDKs retry 409 and 5xx by themselves; for these codes a retry is useless or pays twice. */
const NEVER_RETRIED: ReadonlySet<ErrorCode> = new Set([
  "INSUFFICIENT_BALANCE",
  "KEY_BUDGET_EXHAUSTED",
  "MAX_COST_EXCEEDED",
  "FORBIDDEN",
  "CONFLICT",
]);

const INTERNAL_MESSAGE = "Something went wrong in the gateway. Quote the request id when you report it.";
/** Unspecified: an unread body up to this size is read and dropped, so that the connection can be reused. */
const UNREAD_BODY_BYTES_MAX = 64 * 1024;
/** Unspecified: how long a refused body is still read. Closing at once would reset the connection before the client reads the answer. */
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

/** Writes an error's body; routes of other vendors' formats have their own. */
export type ToErrorBody = (error: AppError, requestId: string) => object;

export function statusOf(code: ErrorCode): number {
  return STATUSES[code];
}

/** Status of a finished operation, as if it had been an HTTP request. */
export function statusOfNote({ code }: RequestNote): number {
  return code === null ? 200 : statusOfText(code);
}

/** The status of an error code; 500 for a text that is none. */
export function statusOfText(code: string): number {
  return ownValue(STATUSES, code) ?? STATUSES.INTERNAL_ERROR;
}

/** Null for statuses that frameworks do not refuse requests with. */
export function codeOfRefusal(status: number): ErrorCode | null {
  return CODES_BY_STATUS.get(status) ?? null;
}

/** An error of the gateway or an upstream, which the client cannot fix. */
export function isServerError(code: ErrorCode): boolean {
  return statusOf(code) >= 500;
}

export function toErrorEnvelope(error: AppError, requestId: string): ErrorEnvelope {
  return { status: statusOf(error.code), success: false, error: toErrorObject(error, requestId) };
}

export function toErrorObject(error: AppError, requestId: string): ErrorObject {
  const { code, message, param, details } = error;
  const base = { code, message, type: typeOf(code), param: param ?? null, requestId, timestamp: new Date().toISOString() };
  return details === undefined ? base : { ...base, details };
}

function typeOf(code: ErrorCode): string {
  return TYPES.get(STATUSES[code]) ?? (isServerError(code) ? "api_error" : "invalid_request_error");
}

export interface ErrorScope {
  readonly requestId: string;
  readonly log: Logger;
  readonly note?: RequestNote | undefined;
  readonly method?: string;
  /** Aborted: the client has disconnected, and resulting errors are no faults. */
  readonly signal?: AbortSignal | undefined;
}

const logged = new WeakSet<AppError>();

/**
 * Converts anything thrown to the error for the client. Unexpected errors are logged here, once, and answered as INTERNAL_ERROR without
 * details. `what` names the failed work; `more` is added to the log line.
 */
export function explain(
  error: unknown,
  scope: ErrorScope,
  what = "request",
  more: Readonly<Record<string, unknown>> & { readonly path?: readonly (string | number)[] | undefined } = {},
): AppError {
  const isOurs = error instanceof AppError && (error.code !== "INTERNAL_ERROR" || error.isExpected || logged.has(error));
  const reported = isOurs ? error : new AppError("INTERNAL_ERROR", INTERNAL_MESSAGE);
  scope.note?.refused(reported.code, reported.summary, more.path?.[0]);
  if (!isServerError(reported.code) || logged.has(reported) || scope.signal?.aborted === true) return reported;
  logged.add(reported);
  // Logs the route instead of the path, which can hold prompts and links.
  const line = { ...(scope.method !== undefined && { method: scope.method }), route: scope.note?.route, ...more, err: error };
  if (isOurs) scope.log.warn({ ...line, code: reported.code }, `${what} not served`);
  else scope.log.error(line, `${what} failed`);
  return reported;
}

/**
 * Answers with the envelope; does nothing when the client is gone, and aborts an answer that has begun. A 401 names `resourceMetadata`
 * (RFC 9728 5.1).
 */
export function sendError(exchange: Exchange, error: unknown, resourceMetadata?: string, toBody: ToErrorBody = toErrorEnvelope): void {
  if (error instanceof BodyAborted || exchange.isGone) return;
  const reported = explain(error, exchange);
  if (exchange.res.headersSent) {
    exchange.res.destroy();
    return;
  }
  const body = Buffer.from(JSON.stringify(toBody(reported, exchange.requestId)));
  exchange.clearHeaders();
  const headers = {
    ...headersOf(reported, resourceMetadata),
    "Content-Type": "application/json; charset=utf-8",
    "Cache-Control": "private, no-store",
  };
  sendRefusal(exchange, statusOf(reported.code), headers, body);
}

/** For answers sent before the request's body was read, or without reading it. */
export function sendRefusal(exchange: Exchange, status: number, headers: OutgoingHttpHeaders, body: Buffer): void {
  const isBodyRefused = hasUnreadBody(exchange);
  const connection = isBodyRefused ? { Connection: "close" } : {};
  exchange.writeHead(status, { ...headers, ...connection, "Content-Length": body.byteLength });
  if (isBodyRefused) endAfterLinger(exchange, body);
  else exchange.res.end(body);
}

export function toErrorAnswer(
  error: AppError,
  requestId: string,
  toBody: ToErrorBody = toErrorEnvelope,
): { statusCode: number; headers: Record<string, string>; body: Buffer } {
  const headers = { ...headersOf(error), "content-type": "application/json; charset=utf-8", "cache-control": "private, no-store" };
  return { statusCode: statusOf(error.code), headers, body: Buffer.from(JSON.stringify(toBody(error, requestId))) };
}

export function headersOf(error: AppError, resourceMetadata?: string): Record<string, string> {
  const headers: Record<string, string> = {};
  if (error.retryAfterSeconds !== undefined) headers["Retry-After"] = String(error.retryAfterSeconds);
  if (error.allow !== undefined) headers.Allow = error.allow.join(", ");
  if (error.code === "UNAUTHORIZED") headers["WWW-Authenticate"] = challengeOf(error, resourceMetadata);
  if (error.code === "UPGRADE_REQUIRED") headers.Upgrade = "websocket";
  if (isNeverRetried(error)) headers["x-should-retry"] = "false";
  return headers;
}

/** For a JSON answer outside of routes: closes the connection. */
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

/** A conflict with a retry time passes by itself. */
function isNeverRetried({ code, isFinal, retryAfterSeconds }: AppError): boolean {
  return isFinal || (NEVER_RETRIED.has(code) && !(code === "CONFLICT" && retryAfterSeconds !== undefined));
}

/** True when the unread body is too large to read just to keep the connection. */
function hasUnreadBody({ req }: Exchange): boolean {
  if (req.complete) return false;
  if (req.headers["transfer-encoding"] !== undefined) return true;
  return Number(req.headers["content-length"] ?? 0) > UNREAD_BODY_BYTES_MAX;
}

/**
 * A lingering close: sends the answer and closes our side, then drops received bytes until the client closes, the body ends, or LINGER_MS
 * pass.
 */
function endAfterLinger({ req, res }: Exchange, body: Buffer): void {
  const { socket } = req;
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(timer));
  req.once("end", () => socket.destroySoon());
  req.resume();
  res.write(body, () => socket.end());
}
