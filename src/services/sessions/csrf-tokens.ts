/**
 * CSRF tokens: proof that a form was shown to the browser that sends it. A token is an HMAC over what it is bound to (a session, or
 * a cookie of the browser) and the time until which it is good; nothing is stored.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { permissionDenied } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { isAtHost } from "../../lib/urls.js";
import { FORM_TOKEN_SECONDS } from "../../limits.js";
import type { BrowserRequest } from "../access/access.js";
import { SESSION_COOKIE_SECONDS } from "./limits.js";

const FORMAT = /^(\d{1,12})\.([A-Za-z0-9_-]{43})$/;

export class CsrfTokens {
  constructor(
    private readonly secret: Buffer,
    private readonly clock: Clock,
  ) {}

  create(binding: string): string {
    const expires = Math.floor(this.clock.now().getTime() / 1000) + FORM_TOKEN_SECONDS;
    return `${expires}.${this.sign(binding, expires).toString("base64url")}`;
  }

  /** Throws FORBIDDEN for a token that is missing, made up, somebody else's or too old. */
  verify(binding: string, token: string): void {
    const [, expires, signature = ""] = FORMAT.exec(token) ?? [];
    const isOurs = timingSafeEqual(Buffer.from(signature.padEnd(43, "A"), "base64url"), this.sign(binding, Number(expires ?? 0)));
    if (expires === undefined || !isOurs || Number(expires) * 1000 <= this.clock.now().getTime()) {
      throw permissionDenied("The form is out of date or was not sent from its own page. Open the page again and repeat what you did.");
    }
  }

  private sign(binding: string, expires: number): Buffer {
    return createHmac("sha256", this.secret).update(`form\n${expires}\n${binding}`).digest();
  }
}

// The cookie that a signed-in browser sends, which both faces read by the same rules. It counts for requests of our own pages only:
// browsers add it to requests that other sites make, too (docs/spec/sessions.md#cookies). Where people sign in at a host of its own it
// counts there alone: what models make is answered at the other hosts, and whatever a browser makes of that must find nobody signed in.

const COOKIE = "sluice_session";
/** A random token as the library makes it, and room for longer ones. */
const TOKEN = /^[A-Za-z0-9_-]{32,128}$/;

export class SessionCookie {
  /** `ownUrls`: where its pages are, the authorization host's last. `host`: the only one where it counts; null is any. */
  constructor(
    private readonly ownUrls: () => readonly string[],
    private readonly host: string | null = null,
  ) {}

  /** Whether anybody can be signed in where this was sent to. */
  countsAt({ headers }: Pick<BrowserRequest, "headers">): boolean {
    return this.host === null || isAtHost(headers, this.host);
  }

  /** Where people sign in. */
  get url(): string {
    return this.ownUrls().at(-1) ?? "";
  }

  /** The token of a request that the cookie counts for; null for any other. */
  tokenOf(request: BrowserRequest): string | null {
    const { cookie } = request.headers;
    // Most requests bring a key and no cookie.
    if (cookie === undefined || !cookie.includes(COOKIE) || !this.countsAt(request) || !this.isFromOwnPage(request)) return null;
    return this.read(cookie);
  }

  /** As `tokenOf`, for the upgrade to a WebSocket: browsers say where it comes from, and no rule of theirs holds it back. */
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

  /** The token in a Cookie header. Null when there is none or more than one: somebody else has planted the other. */
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

  /** Over https no other host of the domain, and nobody on the network, can set a cookie of this name. */
  private get name(): string {
    return this.isSecure ? `__Host-${COOKIE}` : COOKIE;
  }

  private get attributes(): string {
    return `Path=/; HttpOnly; SameSite=Lax${this.isSecure ? "; Secure" : ""}`;
  }

  private get isSecure(): boolean {
    return this.url.startsWith("https:");
  }

  /** What the browser says: Sec-Fetch-Site where it does, else Origin. */
  isFromOtherOrigin({ headers }: Pick<BrowserRequest, "headers">): boolean {
    const site = headers["sec-fetch-site"];
    if (site !== undefined) return site !== "same-origin" && site !== "none";
    return headers.origin !== undefined && !this.isOwnOrigin(headers.origin, headers.host);
  }

  /** A browser leaves the Origin out of plain GET requests, and says "none" of what a person has opened. */
  private isFromOwnPage(request: BrowserRequest): boolean {
    if (this.isFromOtherOrigin(request)) return false;
    const { method, headers } = request;
    const isReading = method === "GET" || method === "HEAD";
    const site = headers["sec-fetch-site"];
    return isReading || site === "same-origin" || (site === undefined && headers.origin !== undefined);
  }

  private isOwnOrigin(origin: string, host: string | undefined): boolean {
    if (!URL.canParse(origin)) return false;
    const asked = new URL(origin);
    return asked.host === host?.toLowerCase() || this.ownUrls().some((own) => new URL(own).origin === asked.origin);
  }
}
