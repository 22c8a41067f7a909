/**
 * Authenticates requests for both faces. Anonymous requests are counted by client address before any work is done for them
 * (docs/spec/rate-limits.md#anonymous-requests). A key takes precedence over a session cookie.
 */
import type { Caller, SessionCaller } from "../../context.js";
import { AppError, credentialRefused, invalidInput, permissionDenied } from "../../errors.js";
import { headerText } from "../../lib/header-text.js";
import type { RateLimits } from "./rate-limits.js";

export interface BrowserRequest {
  readonly method?: string | undefined;
  /** The connection of the request. */
  readonly socket?: object | undefined;
  readonly headers: {
    readonly cookie?: string | undefined;
    readonly host?: string | undefined;
    readonly origin?: string | undefined;
    readonly "sec-fetch-site"?: string | string[] | undefined;
  };
}

export interface KeyAuthenticator {
  /**
   * Finds the caller of a key: synchronous when cached, else a promise. Throws or rejects with UNAUTHORIZED. `connection` is likely to send
   * the same key again.
   */
  authenticate(key: string | null, connection?: object): Caller | Promise<Caller>;
}

/** Reads the session token of a browser request; null when there is none or it does not count. */
export interface CookieReader {
  /** The sign-in address. */
  readonly url: string;
  countsAt(request: Pick<BrowserRequest, "headers">): boolean;
  read(cookies: string | undefined): string | null;
  tokenOf(request: BrowserRequest): string | null;
  tokenOfUpgrade(request: BrowserRequest): string | null;
  /** True when the browser says that a page of another origin makes the request. Other programs say nothing about that. */
  isFromOtherOrigin(request: Pick<BrowserRequest, "headers">): boolean;
}

export interface SessionFinder {
  /** Null for a token that is not good. Rejects with ACCOUNT_SUSPENDED. */
  find(token: string): Promise<SessionCaller | null>;
}

const ANONYMOUS: Caller = { kind: "anonymous" };

export class Access {
  constructor(
    private readonly apiKeys: KeyAuthenticator,
    private readonly sessions: SessionFinder,
    private readonly cookie: CookieReader,
    private readonly limits: RateLimits,
  ) {}

  /**
   * Finds the caller of the key or, without one, of the session cookie of `request`. Synchronous when cached, else a promise. Throws or
   * rejects with UNAUTHORIZED for a bad key, with ACCOUNT_SUSPENDED, and with RATE_LIMITED after too many bad ones. A bad session is an
   * anonymous caller.
   */
  authenticate(key: string | null, clientAddress: string, request?: BrowserRequest): Caller | Promise<Caller> {
    const token = key === null && request ? this.cookie.tokenOf(request) : null;
    if (token !== null) return this.authenticateSession(token, clientAddress);
    try {
      const caller = this.apiKeys.authenticate(key, request?.socket);
      if (caller instanceof Promise) return caller.catch((error: unknown) => this.refuse(error, clientAddress));
      return caller.kind === "anonymous" ? this.limits.countAnonymous(clientAddress).then(() => caller) : caller;
    } catch (error) {
      return this.refuse(error, clientAddress);
    }
  }

  /** Finds a caller by another credential. Rejects as `find` does, and with RATE_LIMITED after too many that are bad. */
  async authenticateBy<Found>(find: () => Promise<Found>, clientAddress: string): Promise<Found> {
    return find().catch((error: unknown) => this.refuse(error, clientAddress));
  }

  /** The token to look the caller up again after the request. Null without a cookie that counts. */
  sessionTokenOf(request: BrowserRequest): string | null {
    return this.cookie.tokenOf(request);
  }

  /** As `sessionTokenOf`, for a WebSocket upgrade. */
  sessionTokenOfUpgrade(request: BrowserRequest): string | null {
    return this.cookie.tokenOfUpgrade(request);
  }

  /** See CookieReader. */
  isFromOtherOrigin(request: Pick<BrowserRequest, "headers">): boolean {
    return this.cookie.isFromOtherOrigin(request);
  }

  /**
   * For operations that open or end sessions. Throws BAD_REQUEST on a host where a session cookie does not count, and FORBIDDEN for a page
   * of another origin.
   */
  assertMaySignIn(request: BrowserRequest): void {
    if (!this.cookie.countsAt(request)) throw invalidInput(`Sessions are not accepted at this host. Use ${this.cookie.url} instead.`);
    if (this.isFromOtherOrigin(request)) {
      throw permissionDenied(
        `Sign-up, sign-in and sign-out are only accepted from pages of this gateway. Send the user to ${this.cookie.url} instead.`,
      );
    }
  }

  /** Finds the caller of a session token; null for a bad one. Rejects with RATE_LIMITED when anonymous requests are too many. */
  async authenticateSession(token: string | null, clientAddress: string): Promise<Caller> {
    const caller = token === null ? null : await this.sessions.find(token);
    if (caller === null) await this.limits.countAnonymous(clientAddress);
    return caller ?? ANONYMOUS;
  }

  /** For pages, which read no key and check the origin of forms themselves. Rejects as `authenticateSession` does. */
  identifySession(cookies: string | undefined, clientAddress: string): Promise<Caller> {
    return this.authenticateSession(this.cookie.read(cookies), clientAddress);
  }

  /** Counts a bad key as an anonymous request, so that guessing is not cheaper. */
  private async refuse(error: unknown, clientAddress: string): Promise<never> {
    if (error instanceof AppError && error.code === "UNAUTHORIZED") await this.limits.countAnonymous(clientAddress);
    throw error;
  }
}

// The `Authorization` header and `WWW-Authenticate`, read by one set of rules for both faces (docs/spec/http.md#credentials).

const BEARER = /^bearer +(\S.*)$/i;

/**
 * Reads the key of `Authorization: Bearer <key>`. Throws UNAUTHORIZED for another scheme and for text that cannot be a key, such as two of
 * them.
 */
export function readBearer(authorization: string): string {
  const key = BEARER.exec(authorization)?.[1];
  if (key === undefined) throw credentialRefused(faultOf(authorization.trim()));
  if (/\s/.test(key)) throw credentialRefused("The Authorization header must hold the word Bearer and one key.");
  return key;
}

/** Names the fault by the header's scheme only: the credential is not repeated. */
function faultOf(authorization: string): string {
  if (/^bearer$/i.test(authorization)) {
    return "The Authorization header holds no key after the word Bearer: is the variable that should hold it set?";
  }
  if (authorization !== "" && !/\s/.test(authorization)) {
    return "The Authorization header lacks the word Bearer before the key: it must read Bearer <API key>.";
  }
  return "The Authorization header must read: Bearer <API key>.";
}

/** Throws BAD_REQUEST when the header came twice. Node keeps only the first, so the raw list is counted. */
export function assertOneAuthorization(rawHeaders: readonly string[]): void {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length === "authorization".length && name.toLowerCase() === "authorization") count += 1;
  }
  if (count > 1) throw invalidInput("The Authorization header was sent more than once.", "Authorization");
}

/**
 * `WWW-Authenticate` of a 401 (RFC 6750, 3), without an error for a request that had no credential. `resourceMetadata` says where clients
 * learn how to sign in (RFC 9728 5.1).
 */
export function challengeOf({ message, isCredentialRefused }: AppError, resourceMetadata?: string): string {
  const parameters = [
    ...(isCredentialRefused ? ['error="invalid_token"', `error_description="${headerText("quoted", message)}"`] : []),
    ...(resourceMetadata === undefined ? [] : [`resource_metadata="${headerText("quoted", resourceMetadata)}"`]),
  ];
  return parameters.length === 0 ? "Bearer" : `Bearer ${parameters.join(", ")}`;
}
