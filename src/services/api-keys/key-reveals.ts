/**
 * Keys that people make on a page, each of which is shown once, on the page that comes after the form was sent.
 *
 * 1. `begin`: the form carries the text of the key to be, sealed for the session that it is shown to. However often a form is sent, by
 *    a second click or from the history, it asks for one and the same key.
 * 2. `create`: makes that key. The text goes along to the next page sealed again, for a few minutes and the same session.
 * 3. `reveal`: opens it, while the key is good.
 *
 * What a browser is given between the pages is worth nothing without this deployment's secret and the session; the gateway itself keeps
 * the key's HMAC and no more, as of every key.
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

  /** Step 2; resolves with what the next page opens. Rejects with FORBIDDEN for a form that is not this session's, CONFLICT for one that has made its key before, and as `ApiKeys.create` does. */
  async create(ctx: RequestContext, sealed: string, input: CreateApiKeyInput): Promise<string> {
    const { sessionId } = requireSession(ctx);
    const text = this.open(sessionId, "form", sealed);
    if (text === null) throw permissionDenied("The form is out of date. Open the page again and repeat what you did.");
    const made = await this.apiKeys.findByText(ctx, text);
    if (made) this.assertRepeated(made);
    else {
      await this.apiKeys.create(ctx, input, text).catch((error: unknown) => {
        // The same form, sent twice at once: the other made the key.
        if (!isUniqueViolation(error)) throw error;
      });
    }
    return this.seal(sessionId, "reveal", text);
  }

  /** Step 3. Null: it has been shown, or its time is over, or the key has ended since. */
  async reveal(ctx: RequestContext, sealed: string): Promise<{ readonly apiKey: ApiKeyRow; readonly key: string } | null> {
    const { sessionId } = requireSession(ctx);
    const key = this.open(sessionId, "reveal", sealed);
    const apiKey = key === null ? null : await this.apiKeys.findByText(ctx, key);
    return key === null || apiKey === null ? null : { apiKey, key };
  }

  /** A second click is answered like the first. What comes later may say something else, and must not be taken for done. */
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
      // Changed, or another session's.
      return null;
    }
  }
}

function placeOf(sessionId: string, page: Page) {
  return { table: "new key", rowId: sessionId, column: page };
}
