/**
 * CSRF tokens prove that a form was shown to the browser that sends it. A token is an HMAC over its binding (a session, or a cookie of the
 * browser) and its expiry; nothing is stored.
 */
import { permissionDenied } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { isSignedWith, type RotatingSecret, signWith } from "../../lib/rotating-secret.js";
import { isAtHost } from "../../lib/urls.js";
import { FORM_TOKEN_SECONDS } from "../../limits.js";
import type { BrowserRequest } from "../access/access.js";
import { SESSION_COOKIE_SECONDS } from "./limits.js";

const FORMAT = /^(\d{1,12})\.([A-Za-z0-9_-]{43})$/;

export class CsrfTokens {
  constructor(
    private readonly secret: RotatingSecret,
    private readonly clock: Clock,
  ) {}

  create(binding: string): string {
    const expires = Math.floor(this.clock.now().getTime() / 1000) + FORM_TOKEN_SECONDS;
    return `${expires}.${signWith(this.secret, contentOf(binding, expires)).toString("base64url")}`;
  }

  /** Throws FORBIDDEN for a token that is missing, forged, expired or bound to another session. */
  verify(binding: string, token: string): void {
    const [, expires, signature = ""] = FORMAT.exec(token) ?? [];
    const isOurs = isSignedWith(this.secret, contentOf(binding, Number(expires ?? 0)), Buffer.from(signature, "base64url"));
    if (expires === undefined || !isOurs || Number(expires) * 1000 <= this.clock.now().getTime()) {
      throw permissionDenied("The form has expired or was not sent from this site. Reload the page and try again.");
    }
  }
}

function contentOf(binding: string, expires: number): string {
  return `form\n${expires}\n${binding}`;
}

// The session cookie, read by one set of rules for both faces. It counts only for requests of our own pages, because browsers also add it
// to requests of other sites (docs/spec/sessions.md#cookies). With a separate sign-in host it counts only there: outputs of models are
// served on the other hosts, and script in them must find no session.

const COOKIE = "sluice_session";
/** A random token of the sign-in library, with room for longer ones. */
const TOKEN = /^[A-Za-z0-9_-]{32,128}$/;

export class SessionCookie {
  /** `ownUrls`: addresses of our pages, the authorization host last. `host`: the only host where the cookie counts; null is any. */
  constructor(
    private readonly ownUrls: () => readonly string[],
    private readonly host: string | null = null,
  ) {}

  /** Whether the cookie counts on the host of the request. */
  countsAt({ headers }: Pick<BrowserRequest, "headers">): boolean {
    return this.host === null || isAtHost(headers, this.host);
  }

  /** The sign-in address. */
  get url(): string {
    return this.ownUrls().at(-1) ?? "";
  }

  /** The token of a request that the cookie counts for; else null. */
  tokenOf(request: BrowserRequest): string | null {
    const { cookie } = request.headers;
    // Most requests have a key and no cookie.
    if (cookie === undefined || !cookie.includes(COOKIE) || !this.countsAt(request) || !this.isFromOwnPage(request)) return null;
    return this.read(cookie);
  }

  /** As `tokenOf`, for a WebSocket upgrade, where the check of the Origin header is the only protection. */
  tokenOfUpgrade(request: BrowserRequest): string | null {
    const { headers } = request;
    if (
      !this.countsAt(request) ||
      headers.cookie === undefined ||
      headers.origin === undefined ||
      !this.isOwnOrigin(headers.origin, headers.host)
    )
      return null;
    return this.read(headers.cookie);
  }

  /** Reads the token from a Cookie header. Null when there is none or more than one, as another site may have planted the second. */
  read(cookies: string | undefined): string | null {
    if (cookies === undefined) return null;
    const prefix = `${this.name}=`;
    const found = cookies
      .split(";")
      .map((pair) => pair.trim())
      .filter((pair) => pair.startsWith(prefix));
    const token = found[0]?.slice(prefix.length) ?? "";
    return found.length === 1 && TOKEN.test(token) ? token : null;
  }

  /** A `Set-Cookie` line. */
  create(token: string): string {
    return `${this.name}=${token}; Max-Age=${SESSION_COOKIE_SECONDS}; ${this.attributes}`;
  }

  /** A `Set-Cookie` line that ends it. */
  clear(): string {
    return `${this.name}=; Max-Age=0; ${this.attributes}`;
  }

  /** The `__Host-` prefix over https: no other host of the domain and no attacker on the network can set the cookie. */
  private get name(): string {
    return this.isSecure ? `__Host-${COOKIE}` : COOKIE;
  }

  private get attributes(): string {
    return `Path=/; HttpOnly; SameSite=Lax${this.isSecure ? "; Secure" : ""}`;
  }

  private get isSecure(): boolean {
    return this.url.startsWith("https:");
  }

  /** Reads Sec-Fetch-Site when the browser sends it, else Origin. */
  isFromOtherOrigin({ headers }: Pick<BrowserRequest, "headers">): boolean {
    const site = headers["sec-fetch-site"];
    if (site !== undefined) return site !== "same-origin" && site !== "none";
    return headers.origin !== undefined && !this.isOwnOrigin(headers.origin, headers.host);
  }

  /** Browsers omit Origin from plain GET requests, and send `Sec-Fetch-Site: none` for pages that a person opens. */
  private isFromOwnPage(request: BrowserRequest): boolean {
    if (this.isFromOtherOrigin(request)) return false;
    const { method, headers } = request;
    const isReading = method === "GET" || method === "HEAD";
    const site = headers["sec-fetch-site"];
    return isReading || site === "same-origin" || (site === undefined && headers.origin !== undefined);
  }

  private isOwnOrigin(origin: string, host: string | undefined): boolean {
    if (!URL.canParse(origin)) return false;
    const page = new URL(origin);
    return page.host === host?.toLowerCase() || this.ownUrls().some((own) => new URL(own).origin === page.origin);
  }
}
