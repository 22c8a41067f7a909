/**
 * Errors as callers see them, the same on every transport: the platform's own with their code, everything that GraphQL
 * itself refuses as BAD_REQUEST, and anything else as INTERNAL_ERROR behind one fixed message, logged once.
 */
import { GraphQLError, type GraphQLErrorOptions } from "graphql";
import type { Logger } from "pino";
import { AppError, type ErrorCode } from "../errors.js";
import type { RequestNote } from "../lib/request-note.js";

const INTERNAL_MESSAGE = "Something went wrong in the gateway. Quote the request id when you report it.";
/** What graphql-js appends to its messages would spell out the schema to a guesser. */
const SUGGESTION = "Did you mean ";
/** graphql-js repeats what it refuses, whole. Of a longer message the beginning and the end are told, which say what and where. */
const MESSAGE_CHARS_MAX = 1_000;
/** Limits refuse from inside the parser and the validator, which is no matter of syntax. */
const LIMIT_PREFIX = /^Syntax Error: (?=(?:Query|Aliases|Directives|Token) )/;

/** The HTTP status of each code, for answers that hold nothing but the error. */
export const HTTP_STATUSES: Readonly<Record<ErrorCode, number>> = {
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

/** Codes of what GraphQL over HTTP refuses before there is an operation; any other status is a BAD_REQUEST. */
const CODES_BY_STATUS: Readonly<Record<number, ErrorCode>> = {
  403: "FORBIDDEN",
  405: "METHOD_NOT_ALLOWED",
  413: "PAYLOAD_TOO_LARGE",
  415: "UNSUPPORTED_MEDIA_TYPE",
};

/** What an error is told with and logged to. */
export interface ErrorScope {
  readonly requestId: string;
  readonly log: Logger;
  /** Aborted: the caller has gone, and what fails because of it is no fault. */
  readonly signal?: AbortSignal;
  readonly note?: RequestNote | undefined;
}

interface HttpExtension {
  readonly status?: number;
  readonly spec?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
}

const publicErrors = new WeakSet<GraphQLError>();

/** Maps an error once: what it has answered it answers again unchanged. */
export function toPublicError(error: unknown, scope: ErrorScope): GraphQLError {
  if (error instanceof GraphQLError && publicErrors.has(error)) return error;
  const mapped = map(error, scope);
  scope.note?.refused(String(mapped.extensions.code));
  publicErrors.add(mapped);
  return mapped;
}

export function toPublicErrors(errors: readonly unknown[], scope: ErrorScope): GraphQLError[] {
  return errors.map((error) => toPublicError(error, scope));
}

function map(error: unknown, scope: ErrorScope): GraphQLError {
  const root = rootOf(error);
  if (root instanceof AppError) {
    const { code, param, details, retryAfterSeconds } = root;
    if (code === "INTERNAL_ERROR" && !root.isExpected) return mapUnexpected(error, root, scope);
    if (HTTP_STATUSES[code] >= HTTP_STATUSES.INTERNAL_ERROR && scope.signal?.aborted !== true)
      scope.log.warn({ code, err: root }, "operation not served");
    return build(error, root.message, scope, { code, param, details, retryAfterSeconds });
  }
  // Wrong variables arrive with the scalar's own refusal inside; what fails in a resolver has a path.
  if (error instanceof GraphQLError && root instanceof GraphQLError && error.path === undefined) return mapRefusal(error, scope);
  return mapUnexpected(error, root, scope);
}

function mapUnexpected(error: unknown, root: unknown, scope: ErrorScope): GraphQLError {
  if (scope.signal?.aborted !== true) scope.log.error({ err: root, path: pathOf(error) }, "operation failed");
  // With a path there is an answer around it, whose other fields stand: the status is then 200.
  const http = pathOf(error) === undefined ? { status: HTTP_STATUSES.INTERNAL_ERROR } : undefined;
  return build(error, INTERNAL_MESSAGE, scope, { code: "INTERNAL_ERROR" }, http);
}

/** A document or request that was refused before anything ran. */
function mapRefusal(error: GraphQLError, scope: ErrorScope): GraphQLError {
  const { http = { status: HTTP_STATUSES.BAD_REQUEST }, code: reason } = error.extensions as { http?: HttpExtension; code?: unknown };
  const code = CODES_BY_STATUS[http.status ?? HTTP_STATUSES.BAD_REQUEST] ?? "BAD_REQUEST";
  // `spec`: 200 to those who accept plain application/json. As GraphQL over HTTP has it, that is for requests that are
  // well-formed, whatever is wrong with their documents; those that are not, Yoga calls BAD_REQUEST too.
  const spec = code === "BAD_REQUEST" && reason !== "BAD_REQUEST" && http.status === HTTP_STATUSES.BAD_REQUEST;
  const message = shortened(withoutSuggestion(error.message.replace(LIMIT_PREFIX, "")).trim());
  return build(error, message, scope, { code }, { ...http, spec });
}

function withoutSuggestion(message: string): string {
  const start = message.endsWith("?") ? message.lastIndexOf(SUGGESTION) : -1;
  return start === -1 ? message : message.slice(0, start);
}

function shortened(message: string): string {
  if (message.length <= MESSAGE_CHARS_MAX) return message;
  const half = MESSAGE_CHARS_MAX / 2;
  return `${message.slice(0, half)} … ${message.slice(-half)}`;
}

function build(
  error: unknown,
  message: string,
  scope: ErrorScope,
  fields: Readonly<Record<string, unknown>>,
  http?: HttpExtension,
): GraphQLError {
  const stated = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
  const extensions = { ...stated, requestId: scope.requestId, timestamp: new Date().toISOString(), ...(http && { http }) };
  return new GraphQLError(message, { ...placeOf(error), extensions });
}

function placeOf(error: unknown): GraphQLErrorOptions {
  if (!(error instanceof GraphQLError)) return {};
  const { nodes, source, positions, path } = error;
  return { nodes: nodes ?? null, source: source ?? null, positions: positions ?? null, path: path ?? null };
}

function pathOf(error: unknown): readonly (string | number)[] | undefined {
  return error instanceof GraphQLError ? error.path : undefined;
}

/** The error that was thrown, behind the locations that GraphQL wraps around it. */
function rootOf(error: unknown): unknown {
  let root = error;
  while (root instanceof GraphQLError && root.originalError !== undefined) root = root.originalError;
  return root;
}
