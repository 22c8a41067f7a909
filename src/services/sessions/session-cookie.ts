/**
 * The cookie that a signed-in browser sends, which both faces read by the same rules. It counts for requests of our own pages only:
 * browsers add it to requests that other sites make, too (docs/spec/sessions.md#cookies). Where people sign in at a host of its own it
 * counts there alone: what models make is answered at the other hosts, and whatever a browser makes of that must find nobody signed in.
 */

import { isAtHost } from "../../lib/urls.js";
import type { BrowserRequest } from "../access/access.js";
import { SESSION_COOKIE_SECONDS } from "./limits.js";

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

  /** What the browser says: Sec-Fetch-Site where it does, else Origin, which it leaves out of plain GET requests. */
  private isFromOwnPage({ method, headers }: BrowserRequest): boolean {
    const isReading = method === "GET" || method === "HEAD";
    const site = headers["sec-fetch-site"];
    if (site !== undefined) return site === "same-origin" || (site === "none" && isReading);
    return headers.origin === undefined ? isReading : this.isOwnOrigin(headers.origin, headers.host);
  }

  private isOwnOrigin(origin: string, host: string | undefined): boolean {
    if (!URL.canParse(origin)) return false;
    const asked = new URL(origin);
    return asked.host === host?.toLowerCase() || this.ownUrls().some((own) => new URL(own).origin === asked.origin);
  }
}
