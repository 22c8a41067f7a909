/**
 * Keys made on a page, shown once on the page after the form.
 *
 * 1. `begin`: the form carries the text of the future key, sealed for the session. A form that is sent repeatedly, by a second click
 *    or from the history, asks for the same key.
 * 2. `create`: makes that key. The text goes to the next page, sealed again for the same session and a few minutes.
 * 3. `reveal`: opens it, while the key is good.
 *
 * The sealed text is worthless without this deployment's secret and the session. The gateway stores the key's HMAC only.
 */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { conflict, permissionDenied } from "../../errors.js";
import { createApiKeyText } from "../../lib/api-key-format.js";
import type { Clock } from "../../lib/clock.js";
import { FORM_TOKEN_SECONDS, KEY_FORM_REPEAT_SECONDS, KEY_REVEAL_SECONDS } from "../../limits.js";
import { isUniqueViolation } from "../../store/database.js";
import { requireSession } from "../access/permissions.js";
import type { SecretBox } from "../secrets/secret-box.js";
import type { ApiKeyRow } from "./api-key-rows.js";
import type { ApiKeys } from "./api-keys.js";
import type { CreateApiKeyInput } from "./api-keys-input.js";

type Page = "form" | "reveal";

const SECONDS: Readonly<Record<Page, number>> = { form: FORM_TOKEN_SECONDS, reveal: KEY_REVEAL_SECONDS };
const sealedText = z.base64url().max(1_024);
const OPENED = /^(\d{1,12})\.(sk_[0-9A-Za-z]{43})$/;

export class KeyReveals {
  constructor(
    private readonly apiKeys: ApiKeys,
    private readonly box: SecretBox,
    private readonly clock: Clock,
  ) {}

  /** Step 1. */
  begin(ctx: RequestContext): string {
    return this.seal(requireSession(ctx).sessionId, "form", createApiKeyText("sk"));
  }

  /**
   * Step 2. Resolves with the sealed text for the next page. Rejects with FORBIDDEN for another session's form, CONFLICT for a form that
   * made its key before, and as `ApiKeys.create` does.
   */
  async create(ctx: RequestContext, sealed: string, input: CreateApiKeyInput): Promise<string> {
    const { sessionId } = requireSession(ctx);
    const text = this.open(sessionId, "form", sealed);
    if (text === null) throw permissionDenied("The form is out of date. Open the page again and repeat what you did.");
    const made = await this.apiKeys.findByText(ctx, text);
    if (made) this.assertRepeated(made);
    else {
      await this.apiKeys.create(ctx, input, text).catch((error: unknown) => {
        // The same form was sent twice at once, and the other request made the key.
        if (!isUniqueViolation(error)) throw error;
      });
    }
    return this.seal(sessionId, "reveal", text);
  }

  /** Step 3. Null when it has been shown or has expired, or when the key is no longer good. */
  async reveal(ctx: RequestContext, sealed: string): Promise<{ readonly apiKey: ApiKeyRow; readonly key: string } | null> {
    const { sessionId } = requireSession(ctx);
    const key = this.open(sessionId, "reveal", sealed);
    const apiKey = key === null ? null : await this.apiKeys.findByText(ctx, key);
    return key === null || apiKey === null ? null : { apiKey, key };
  }

  /** Accepts a second click. A later repeat may have other values, so it must not succeed. */
  private assertRepeated({ createdAt }: ApiKeyRow): void {
    if (this.clock.now().getTime() - createdAt.getTime() <= KEY_FORM_REPEAT_SECONDS * 1000) return;
    throw conflict("This form has made its key already. Open the page again to make another one.");
  }

  private seal(sessionId: string, page: Page, text: string): string {
    const expires = Math.floor(this.clock.now().getTime() / 1000) + SECONDS[page];
    return Buffer.from(this.box.seal(placeOf(sessionId, page), `${expires}.${text}`)).toString("base64url");
  }

  private open(sessionId: string, page: Page, sealed: string): string | null {
    if (!sealedText.safeParse(sealed).success) return null;
    try {
      const [, expires = "0", text = ""] = OPENED.exec(this.box.open(placeOf(sessionId, page), Buffer.from(sealed, "base64url"))) ?? [];
      return Number(expires) * 1000 > this.clock.now().getTime() ? text : null;
    } catch {
      // Changed, or sealed for another session.
      return null;
    }
  }
}

function placeOf(sessionId: string, page: Page) {
  return { table: "new key", rowId: sessionId, column: page };
}
