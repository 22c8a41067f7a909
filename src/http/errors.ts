/**
 * Errors on their way out: the one table of what each code is over HTTP, the one judgement of what was thrown, and the envelope
 * (docs/spec/errors.md). GraphQL's errors, the bodies of OAuth and OpenAI's error events present what is decided here.
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

/** The one table of statuses. */
const STATUSES: Readonly<Record<ErrorCode, number>> = {
  BAD_REQUEST: 400,
  CONTENT_BLOCKED: 400,
  UNAUTHORIZED: 401,
  INSUFFICIENT_BALANCE: 402,
  KEY_BUDGET_EXHAUSTED: 402,
  MAX_COST_EXCEEDED: 402,
  FORBIDDEN: 403,
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

/** The `type` by which clients of OpenAI's API sort errors, where it is not that of any other 4xx or 5xx. */
const TYPES: ReadonlyMap<number, string> = new Map([
  [STATUSES.UNAUTHORIZED, "authentication_error"],
  [STATUSES.INSUFFICIENT_BALANCE, "insufficient_quota"],
  [STATUSES.FORBIDDEN, "permission_error"],
  [STATUSES.RATE_LIMITED, "rate_limit_error"],
]);

/** With what the frameworks below refuse a request by themselves; of several codes with one status the first is meant. */
const REFUSALS: readonly ErrorCode[] = [
  "BAD_REQUEST",
  "FORBIDDEN",
  "NOT_FOUND",
  "METHOD_NOT_ALLOWED",
  "PAYLOAD_TOO_LARGE",
  "UNSUPPORTED_MEDIA_TYPE",
];
const CODES_BY_STATUS: ReadonlyMap<number, ErrorCode> = new Map(REFUSALS.map((code) => [STATUSES[code], code]));

/** Official SDKs repeat 409 and 5xx by themselves; on these, repeating is useless or pays twice. */
const NEVER_RETRIED: ReadonlySet<ErrorCode> = new Set([
  "INSUFFICIENT_BALANCE",
  "KEY_BUDGET_EXHAUSTED",
  "MAX_COST_EXCEEDED",
  "FORBIDDEN",
  "CONFLICT",
]);

const INTERNAL_MESSAGE = "Something went wrong in the gateway. Quote the request id when you report it.";
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

export function statusOf(code: ErrorCode): number {
  return STATUSES[code];
}

/** Of what is over: as if it had been answered by itself, over HTTP. */
export function statusOfNote({ code }: RequestNote): number {
  return code === null ? 200 : (ownValue(STATUSES, code) ?? STATUSES.INTERNAL_ERROR);
}

/** Null for a status with which no request is refused before it is understood. */
export function codeOfRefusal(status: number): ErrorCode | null {
  return CODES_BY_STATUS.get(status) ?? null;
}

/** The gateway's own doing, or that of those whom it asks: nothing that the caller could put right. */
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

/** What was asked, as far as an error is told with it and logged. */
export interface ErrorScope {
  readonly requestId: string;
  readonly log: Logger;
  readonly note?: RequestNote | undefined;
  readonly method?: string;
  /** Aborted: the caller has gone, and what fails because of it is no fault. */
  readonly signal?: AbortSignal | undefined;
}

/** Server errors that are in the log. */
const logged = new WeakSet<AppError>();

/**
 * Whatever was thrown, as the error to tell the caller. What is not ours to explain is logged, once and here, and told
 * as INTERNAL_ERROR without a word of what it was. `what` failed: a request, an operation; `more` goes into the line of the log.
 */
export function explain(error: unknown, scope: ErrorScope, what = "request", more: Readonly<Record<string, unknown>> = {}): AppError {
  const isOurs = error instanceof AppError && (error.code !== "INTERNAL_ERROR" || error.isExpected || logged.has(error));
  const told = isOurs ? error : new AppError("INTERNAL_ERROR", INTERNAL_MESSAGE);
  scope.note?.refused(told.code);
  if (!isServerError(told.code) || logged.has(told) || scope.signal?.aborted === true) return told;
  logged.add(told);
  // The route and not the path, of which prompts and links are a part.
  const line = { ...(scope.method !== undefined && { method: scope.method }), route: scope.note?.route, ...more, err: error };
  if (isOurs) scope.log.warn({ ...line, code: told.code }, `${what} not served`);
  else scope.log.error(line, `${what} failed`);
  return told;
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
  sendRefusal(exchange, statusOf(told.code), headers, body);
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
  return { statusCode: statusOf(error.code), headers, body: Buffer.from(JSON.stringify(toErrorEnvelope(error, requestId))) };
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
