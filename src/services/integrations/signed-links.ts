/** Signed links, `<JSON in base64url>.<HMAC-SHA-256 in base64url>`, which cannot be forged. Nothing is stored. The content is readable. */
import type * as z from "zod";
import { isSignedWith, type RotatingSecret, signWith } from "../../lib/rotating-secret.js";
import { SIGNED_LINK_CHARS_MAX } from "./limits.js";

const FORMAT = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{43})$/;

export class SignedLinks<Content extends object> {
  /** Each purpose has its own secret, so that a link is good for one purpose only. */
  constructor(
    private readonly secret: RotatingSecret,
    private readonly schema: z.ZodType<Content>,
  ) {}

  sign(content: Content): string {
    const text = Buffer.from(JSON.stringify(content)).toString("base64url");
    return `${text}.${signWith(this.secret, text).toString("base64url")}`;
  }

  /** Null for a forged link. */
  read(link: string): Content | null {
    if (link.length > SIGNED_LINK_CHARS_MAX) return null;
    const [, text = "", signature = ""] = FORMAT.exec(link) ?? [];
    if (text === "" || !isSignedWith(this.secret, text, Buffer.from(signature, "base64url"))) return null;
    return this.schema.parse(JSON.parse(Buffer.from(text, "base64url").toString()));
  }
}
