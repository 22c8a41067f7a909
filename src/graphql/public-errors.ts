/**
 * Errors as callers see them, the same on every transport: the platform's own with their code, refusals of GraphQL itself as
 * BAD_REQUEST, and all others as INTERNAL_ERROR with a fixed message, logged once.
 */
import { GraphQLError } from "graphql";
import type { AppError } from "../errors.js";
import { codeOfRefusal, type ErrorScope, explain, headersOf, statusOf } from "../http/errors.js";
import { withoutQuotes } from "../lib/error-summary.js";
import { locationsOf } from "./documents/places.js";

/** Suggestions that graphql-js appends to messages. They would reveal the schema to callers who may not read it. */
const SUGGESTION = "Did you mean ";
/**
 * graphql-js repeats refused values in full. Longer messages are shortened to their beginning and end, which state the problem and
 * its place.
 */
const MESSAGE_CHARS_MAX = 1_000;
/** Codes of Apollo's protocol for persisted queries, in addition to the platform's. Clients act on them. */
export const PERSISTED_QUERY_NOT_FOUND = "PERSISTED_QUERY_NOT_FOUND";
export const PERSISTED_QUERY_NOT_IN_LIST = "PERSISTED_QUERY_NOT_IN_LIST";
const PROTOCOL_CODES: ReadonlySet<unknown> = new Set([PERSISTED_QUERY_NOT_FOUND, PERSISTED_QUERY_NOT_IN_LIST]);

/** Messages of GraphQL itself that name fields, arguments, types and variables. Others may quote a value, such as a prompt. */
const NAMES_ONLY =
  /^(?:Cannot query field |Unknown argument |Unknown type |Field "|Variable "\$\w{1,200}" of (?:required|non-null) type |The operation )/;
const REFUSED_VALUE = "The document or a value in it is not valid. The answer named the place.";

interface HttpExtension {
  readonly status?: number;
  readonly spec?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
}

/** By default the caller may not read the schema. */
export interface PublicErrorScope extends ErrorScope {
  readonly isSchemaOpen?: boolean;
}

const publicErrors = new WeakSet<GraphQLError>();

/** Maps an error once. A mapped error is returned unchanged. */
export function toPublicError(error: unknown, scope: PublicErrorScope): GraphQLError {
  if (error instanceof GraphQLError && publicErrors.has(error)) return error;
  const mapped = map(error, scope);
  const summary = NAMES_ONLY.test(mapped.message) ? withoutQuotes(mapped.message) : REFUSED_VALUE;
  scope.note?.refused(String(mapped.extensions.code), summary, mapped.path?.[0]);
  publicErrors.add(mapped);
  return mapped;
}

export function toPublicErrors(errors: readonly unknown[], scope: PublicErrorScope): GraphQLError[] {
  return errors.map((error) => toPublicError(error, scope));
}

function map(error: unknown, scope: PublicErrorScope): GraphQLError {
  const root = rootOf(error);
  const path = pathOf(error);
  // Invalid variables contain the scalar's own error; errors of resolvers have a path.
  if (error instanceof GraphQLError && root instanceof GraphQLError && path === undefined) return mapRefusal(error, scope);
  const reported = explain(root, scope, "operation", { path });
  // An error with a path is part of an answer whose other fields are valid, so the status is 200.
  const http = reported !== root && path === undefined ? { status: statusOf(reported.code) } : undefined;
  return build(error, reported.message, toExtensions(reported, scope.requestId), http);
}

/** An error before anything ran, on a transport with a status for it. */
export function toRefusal(error: AppError, scope: PublicErrorScope): GraphQLError {
  const reported = explain(error, scope, "operation");
  const http = { status: statusOf(reported.code), headers: headersOf(reported) };
  const refusal = build(null, reported.message, toExtensions(reported, scope.requestId), http);
  publicErrors.add(refusal);
  return refusal;
}

export function toExtensions({ code, param, details, retryAfterSeconds }: PublicErrorFields, requestId: string): Record<string, unknown> {
  const stated = Object.entries({ code, param, details, retryAfterSeconds }).filter(([, value]) => value !== undefined);
  return { ...Object.fromEntries(stated), requestId, timestamp: new Date().toISOString() };
}

type PublicErrorFields = { readonly code: string } & Partial<Pick<AppError, "param" | "details" | "retryAfterSeconds">>;

/** The extensions of an error that precedes the operation. */
const BAD_REQUEST = statusOf("BAD_REQUEST");

/** A document or request that was refused before anything ran. */
function mapRefusal(error: GraphQLError, scope: PublicErrorScope): GraphQLError {
  const { http = { status: BAD_REQUEST }, code: reason } = error.extensions as { http?: HttpExtension; code?: unknown };
  if (PROTOCOL_CODES.has(reason)) return build(error, error.message, toExtensions({ code: String(reason) }, scope.requestId), http);
  const code = codeOfRefusal(http.status ?? BAD_REQUEST) ?? "BAD_REQUEST";
  // `spec`: 200 for clients that accept plain application/json. GraphQL over HTTP prescribes it for well-formed requests with invalid
  // documents; Yoga reports malformed requests as BAD_REQUEST too.
  const spec = code === "BAD_REQUEST" && reason !== "BAD_REQUEST" && http.status === BAD_REQUEST;
  const message = shortened((scope.isSchemaOpen ? error.message : withoutSuggestion(error.message)).trim());
  return build(error, message, toExtensions({ code }, scope.requestId), { ...http, spec });
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

function build(error: unknown, message: string, extensions: Readonly<Record<string, unknown>>, http?: HttpExtension): GraphQLError {
  const place = error instanceof GraphQLError ? error : null;
  const built = new GraphQLError(message, { path: place?.path ?? null, extensions: { ...extensions, ...(http && { http }) } });
  // Locations of syntax errors are known. graphql-js would compute them again, and those of nodes only from their `loc`.
  const locations = place?.locations ?? locationsOf(place?.nodes);
  if (locations) Object.defineProperty(built, "locations", { value: locations, enumerable: true });
  return built;
}

function pathOf(error: unknown): readonly (string | number)[] | undefined {
  return error instanceof GraphQLError ? error.path : undefined;
}

function rootOf(error: unknown): unknown {
  let root = error;
  while (root instanceof GraphQLError && root.originalError !== undefined) root = root.originalError;
  return root;
}
