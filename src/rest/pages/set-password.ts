/** The page of a password link (docs/spec/sessions.md#password-links): a new password for an account whose owner forgot theirs. */
import * as z from "zod";
import type { AppError } from "../../errors.js";
import type { Services } from "../../services/services.js";
import { PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN } from "../../services/sessions/limits.js";
import { passwordLinkToken, setPasswordInput } from "../../services/sessions/password-links.js";
import type { Route } from "../route.js";
import { errorSummary, type FieldsByParam } from "./form-errors.js";
import { html } from "./html.js";
import type { Page } from "./page.js";
import type { PageEndpoint } from "./page-endpoint.js";
import { hiddenFields } from "./sign-in.js";

const FIELDS: FieldsByParam = new Map([
  ["password", { id: "password", label: "The password" }],
  ["token", { id: "token", label: "The link" }],
]);

/** The address holds the token. */
const WITHOUT_REFERRER = { "Referrer-Policy": "no-referrer" };

export function addSetPasswordPages(route: Route, page: PageEndpoint, { passwordLinks }: Pick<Services, "passwordLinks">): void {
  route("/set-password", {
    GET: page({
      query: z.object({ token: passwordLinkToken }),
      handler: async (ctx, { query, base, formToken }) => {
        const email = await passwordLinks.show(ctx, query.token);
        return setPasswordPage({ base, formToken, token: query.token, email });
      },
      onRefused: (_ctx, { error }) => refusedPage(error),
    }),
    POST: page({
      form: setPasswordInput,
      handler: async (ctx, { form, base }) => {
        await passwordLinks.use(ctx, form);
        return donePage(base);
      },
      onRefused: async (ctx, { error, fields, request: { base, formToken } }) => {
        const token = typeof fields.token === "string" ? fields.token : "";
        // A wrong password is corrected in the form; a link that is not good has no form.
        if (error.code !== "BAD_REQUEST" || error.param === "token") return refusedPage(error);
        const email = await passwordLinks.show(ctx, token);
        return setPasswordPage({ base, formToken, token, email, error });
      },
    }),
  });
}

interface SetPasswordPage {
  readonly base: string;
  readonly formToken: string;
  readonly token: string;
  readonly email: string;
  readonly error?: AppError;
}

function setPasswordPage({ base, formToken, token, email, error }: SetPasswordPage): Page {
  const body = html`<h1>Set a new password</h1>
<p>For the account of <strong><bdi>${email}</bdi></strong>. All sessions will be signed out. API keys keep working.</p>
${error ? errorSummary(error, FIELDS) : ""}
<form method="post" action="${base}/set-password">
${hiddenFields(formToken)}
<input type="hidden" name="token" value="${token}">
<label for="password">New password <small>(at least ${PASSWORD_CHARS_MIN} characters)</small></label>
<input id="password" name="password" type="password" autocomplete="new-password" minlength="${PASSWORD_CHARS_MIN}" maxlength="${PASSWORD_CHARS_MAX}" required autofocus>
<div class="buttons"><button class="primary">Set password</button></div>
</form>`;
  return { title: "Set a new password", body, headers: WITHOUT_REFERRER };
}

function refusedPage(error: AppError): Page {
  const body = html`<h1>Set a new password</h1>\n${errorSummary(error, FIELDS)}`;
  return { title: "Set a new password", body, headers: WITHOUT_REFERRER };
}

function donePage(base: string): Page {
  const body = html`<h1>Password changed</h1>
<p>You can now sign in with the new password.</p>
<div class="buttons"><a href="${base}/sign-in">Sign in</a></div>`;
  return { title: "Password changed", body };
}
