/**
 * Makes the request context of everything that arrives over HTTP (requests on either face, operations on a WebSocket, realtime sessions),
 * and reads credentials and query.
 */
import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Logger } from "pino";
import type { Caller, Leaving, MaxCost, Quoting, RequestContext, RequestWishes } from "../context.js";
import { invalidInput, wrongField } from "../errors.js";
import { isRunToken, isWellFormedApiKey, isWellFormedRunToken } from "../lib/api-key-format.js";
import { setOwnValue } from "../lib/own-values.js";
import type { RequestNote } from "../lib/request-note.js";
import { unstorableIn } from "../lib/storable-text.js";
import { HOPS_HEADER, REQUEST_ID_PATTERN } from "../limits.js";
import type { Access, BrowserRequest } from "../services/access/access.js";
import { assertOneAuthorization, readBearer } from "../services/access/access.js";
import type { Credential } from "../services/access/revocation-watch.js";
import { MAX_COST_HEADER, readMaxCost } from "../services/credits/max-cost.js";

/** Sources of a context. Its signal and log are created on first use. */
export interface ContextSource {
  /** Its headers; for a WebSocket those of its upgrade. */
  readonly req: Pick<IncomingMessage, "headers">;
  readonly requestId: string;
  readonly note: RequestNote;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly leaving?: Leaving;
}

/**
 * The only constructor of a context from a request, so that every entry point sets all fields. Objects may be made with one as their
 * prototype, as Yoga does.
 */
export class HttpRequestContext implements RequestContext {
  readonly requestId: string;
  readonly note: RequestNote;
  maxCost: MaxCost | undefined;
  wishes: RequestWishes | undefined;
  /** The body before its preset was filled in; undefined: it has none. */
  unfilled: unknown;
  quoting: Quoting | undefined;
  reservedId: RequestContext["reservedId"];
  hasLargeInput = false;
  private madeLog: Logger | undefined;

  /** Throws BAD_REQUEST for an invalid bound. */
  constructor(
    readonly caller: Caller,
    private readonly source: ContextSource,
    readonly clientAddress: string,
  ) {
    this.requestId = source.requestId;
    this.note = source.note;
    source.note.clientAddress = clientAddress;
    if (caller.kind !== "anonymous") source.note.caller = caller;
    if (caller.kind === "key") source.note.apiKeyId = caller.apiKeyId;
    const maxCost = source.req.headers["x-max-cost"];
    this.maxCost = maxCost === undefined ? undefined : readMaxCost(maxCost, MAX_COST_HEADER);
  }

  get host(): string | undefined {
    return this.source.req.headers.host;
  }

  get hops(): number | undefined {
    const header = this.source.req.headers[HOPS_HEADER];
    return header === undefined ? undefined : readHops(header);
  }

  get signal(): AbortSignal {
    return this.source.signal;
  }

  get leaving(): Leaving | undefined {
    return this.source.leaving;
  }

  get log(): Logger {
    this.madeLog ??= this.source.log;
    return this.madeLog;
  }
}

/**
 * The request id (docs/spec/http.md#request-ids): the client's own when it is well-formed, else generated. A credential is not accepted,
 * because ids are logged.
 */
export function requestIdOf({ headers }: Pick<IncomingMessage, "headers">): string {
  const stated = headers["x-request-id"];
  if (typeof stated !== "string" || !REQUEST_ID_PATTERN.test(stated)) return randomUUID();
  return isWellFormedApiKey(stated) || isRunToken(stated) ? randomUUID() : stated;
}

const WHOLE_NUMBER = /^\d{1,9}$/;

/** Infinite when malformed, so that a forged header cannot extend a loop. */
function readHops(header: string | string[]): number {
  return typeof header === "string" && WHOLE_NUMBER.test(header) ? Number(header) : Number.POSITIVE_INFINITY;
}

// Credentials of requests and sockets: `Authorization: Bearer <key>`, else `?key=<key>`, else the cookie of a signed-in browser
// (docs/spec/http.md#credentials).

/**
 * Finds the caller of a credential; without a token that of the browser's session, or null. Throws UNAUTHORIZED for a bad credential,
 * RATE_LIMITED after too many.
 */
export interface Authenticator {
  authenticate(token: string | null, clientAddress: string, request?: BrowserRequest): Caller | Promise<Caller>;
}

/**
 * Null when there is none. Throws BAD_REQUEST when the header came twice, UNAUTHORIZED for text that cannot be a key; the query counts only
 * without the header.
 */
export function readToken(req: IncomingMessage, source: { readonly query: Query }): string | null {
  const header = req.headers.authorization;
  if (header === undefined) return readApiKeyHeader(req) ?? (source.query.key === "" ? null : source.query.key);
  assertOneAuthorization(req.rawHeaders);
  return readBearer(header);
}

/** The key of clients in Anthropic's and Google's formats; null when there is none. Throws as `readToken` does. */
function readApiKeyHeader({ headers: { "x-api-key": ofAnthropic, "x-goog-api-key": ofGoogle } }: IncomingMessage): string | null {
  const header = ofAnthropic || ofGoogle;
  return header === undefined || header === "" ? null : readBearer(`Bearer ${String(header)}`);
}

/** True for a request with the form of a run token; authentication decides whether it is good, which not every route does. */
export function isFromAgent(exchange: { readonly req: IncomingMessage; readonly query: Query }): boolean {
  try {
    return isWellFormedRunToken(readToken(exchange.req, exchange) ?? "");
  } catch {
    // Authentication refuses an unreadable credential.
    return false;
  }
}

/** Reads a credential, and counts an unreadable one like an anonymous request. */
export function readCounted<Found>(authenticator: Authenticator, clientAddress: string, read: () => Found): Found | Promise<never> {
  try {
    return read();
  } catch (error) {
    return refuseUnread(authenticator, clientAddress, error);
  }
}

async function refuseUnread(authenticator: Authenticator, clientAddress: string, error: unknown): Promise<never> {
  await authenticator.authenticate(null, clientAddress);
  throw error;
}

/** Finds the caller of a credential; null for a bad session. */
export function authenticate(access: Access, { key, sessionToken }: Credential, clientAddress: string): Caller | Promise<Caller> {
  return sessionToken === null ? access.authenticate(key, clientAddress) : access.authenticateSession(sessionToken, clientAddress);
}

// Query strings: each name once, well-formed, with the `key` credential separate from the parameters.

export interface Query {
  /** The `key` parameter (docs/spec/http.md#credentials). Never logged. */
  readonly key: string | null;
  /** Every other parameter, decoded, in an object without a prototype. */
  readonly parameters: Readonly<Record<string, string>>;
}

const NO_QUERY: Query = Object.freeze({ key: null, parameters: Object.freeze(Object.create(null)) });
const MALFORMED_ESCAPE = /%(?![0-9A-Fa-f]{2})/;

/** Parses a request target. Throws BAD_REQUEST for a broken escape, a NUL or a repeated name. */
export function parseQuery(url: string): Query {
  const mark = url.indexOf("?");
  if (mark === -1 || mark === url.length - 1) return NO_QUERY;
  const text = url.slice(mark + 1);
  if (MALFORMED_ESCAPE.test(text)) throw invalidInput("The query string holds a malformed percent escape.");
  let key: string | null = null;
  const parameters: Record<string, string> = Object.create(null);
  for (const [name, value] of new URLSearchParams(text)) {
    if (Object.hasOwn(parameters, name) || (name === "key" && key !== null)) throw wrongField(name, "may be given only once");
    if (name === "key") {
      key = value;
      continue;
    }
    const problem = unstorableIn(value);
    if (problem !== null) throw wrongField(name, problem);
    setOwnValue(parameters, name, value);
  }
  return { key, parameters };
}
