/**
 * Access: who makes a request. Both faces ask here, so that requests of nobody in particular are counted by their client
 * address wherever they arrive, before any work is done for them
 * (docs/spec/rate-limits.md#anonymous-requests). A key wins over a session's cookie.
 */
import type { Caller, SessionCaller } from "../../context.js";
import { AppError, credentialRefused, invalidInput, permissionDenied } from "../../errors.js";
import { headerText } from "../../lib/header-text.js";
import type { RateLimits } from "./rate-limits.js";

/** What a request says of the browser that it comes from. */
export interface BrowserRequest {
  readonly method?: string | undefined;
  /** The connection over which it came. */
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
   * At once for a key that is known, else a promise. Throws or rejects with UNAUTHORIZED for one that is not good. `connection`: what it
   * came over, which is likely to bring it again.
   */
  authenticate(key: string | null, connection?: object): Caller | Promise<Caller>;
}

/** The session's token in what a browser sends; null where there is none, or where it does not count. */
export interface CookieReader {
  /** Where people sign in. */
  readonly url: string;
  countsAt(request: Pick<BrowserRequest, "headers">): boolean;
  read(cookies: string | undefined): string | null;
  tokenOf(request: BrowserRequest): string | null;
  tokenOfUpgrade(request: BrowserRequest): string | null;
  /** True when a browser says that a page of another origin makes the request. Programs say nothing of where they come from. */
  isFromOtherOrigin(request: Pick<BrowserRequest, "headers">): boolean;
}

export interface SessionFinder {
  /** Null for a token that is not good. */
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
   * The caller behind a key, or, without one, behind the session cookie of `request`. At once for a key that is known, else a
   * promise. Throws or rejects with UNAUTHORIZED for a key that is not good, and with RATE_LIMITED instead of either when
   * there were too many; a session that is not good is nobody.
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

  /** For what outlives a request: the token by which its caller can be looked up again. Null without a cookie that counts. */
  sessionTokenOf(request: BrowserRequest): string | null {
    return this.cookie.tokenOf(request);
  }

  /** As `sessionTokenOf`, for the upgrade to a WebSocket. */
  sessionTokenOfUpgrade(request: BrowserRequest): string | null {
    return this.cookie.tokenOfUpgrade(request);
  }

  /** See CookieReader. */
  isFromOtherOrigin(request: Pick<BrowserRequest, "headers">): boolean {
    return this.cookie.isFromOtherOrigin(request);
  }

  /**
   * Of what makes or ends sessions. Throws BAD_REQUEST where nobody can be signed in, because a cookie set there would be worth nothing, and
   * FORBIDDEN for a page of another origin.
   */
  assertMaySignIn(request: BrowserRequest): void {
    if (!this.cookie.countsAt(request)) throw invalidInput(`Nobody is signed in at this host. Ask at ${this.cookie.url} instead.`);
    if (this.isFromOtherOrigin(request)) {
      throw permissionDenied(`Pages of another origin may not sign people up, in or out. Send the person to ${this.cookie.url} instead.`);
    }
  }

  /** Nobody for a token that is not good. Rejects with RATE_LIMITED when nobody in particular asks too often. */
  async authenticateSession(token: string | null, clientAddress: string): Promise<Caller> {
    const caller = token === null ? null : await this.sessions.find(token);
    if (caller === null) await this.limits.countAnonymous(clientAddress);
    return caller ?? ANONYMOUS;
  }

  /** For pages, which look at no key and check by themselves where a form comes from. Rejects as `authenticateSession` does. */
  identifySession(cookies: string | undefined, clientAddress: string): Promise<Caller> {
    return this.authenticateSession(this.cookie.read(cookies), clientAddress);
  }

  /** A wrong key is counted like none: guessing must not be cheaper. */
  private async refuse(error: unknown, clientAddress: string): Promise<never> {
    if (error instanceof AppError && error.code === "UNAUTHORIZED") await this.limits.countAnonymous(clientAddress);
    throw error;
  }
}

// The `Authorization` header and its counterpart in answers, which both faces treat by the same rules (docs/spec/http.md#credentials).

const BEARER = /^bearer +(\S.*)$/i;

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
  return `Bearer error="invalid_token", error_description="${headerText("quoted", message)}"`;
}
