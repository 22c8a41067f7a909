/**
 * CSRF tokens: proof that a form was shown to the browser that sends it. A token is an HMAC over what it is bound to (a session, or
 * a cookie of the browser) and the time until which it is good; nothing is stored.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { permissionDenied } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { FORM_TOKEN_SECONDS } from "../../limits.js";

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
