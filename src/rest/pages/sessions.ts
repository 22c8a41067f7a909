/** The pages on which people see and end their sessions, and change their password. */
import * as z from "zod";
import type { Services } from "../../services/services.js";
import { PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN } from "../../services/sessions/limits.js";
import type { SessionRow } from "../../services/sessions/sessions.js";
import { changePasswordInput } from "../../services/sessions/sign-in.js";
import type { Route } from "../route.js";
import { errorSummary, type FieldsByParam } from "./form-errors.js";
import { type Html, html } from "./html.js";
import type { Page } from "./page.js";
import type { PageEndpoint } from "./page-endpoint.js";
import { HOME_PATH } from "./return-to.js";
import { browserOf, hiddenFields } from "./sign-in.js";
import { moment } from "./words.js";

const nothing = z.object({});
const PASSWORD_FIELDS: FieldsByParam = new Map([
  ["currentPassword", { id: "current", label: "The current password" }],
  ["newPassword", { id: "new", label: "The new password" }],
]);

export function addSessionPages(
  route: Route,
  page: PageEndpoint,
  { accounts, sessions, signIn }: Pick<Services, "accounts" | "sessions" | "signIn">,
): void {
  route("/sessions", {
    GET: page({
      isSignedIn: true,
      handler: async (ctx, { base, formToken }) => {
        const [account, rows] = await Promise.all([accounts.me(ctx), sessions.all(ctx)]);
        return sessionsPage({ base, formToken, who: account.email ?? account.handle, rows });
      },
    }),
  });
  route("/sessions/revoke-others", {
    POST: page({
      isSignedIn: true,
      form: nothing,
      handler: async (ctx, { base }) => {
        await sessions.revokeOthers(ctx);
        return { redirectTo: `${base}/sessions` };
      },
    }),
  });
  route("/sessions/:id/revoke", {
    POST: page({
      isSignedIn: true,
      form: nothing,
      handler: async (ctx, { base, exchange }) => {
        await sessions.revoke(ctx, exchange.parameter("id"));
        return { redirectTo: `${base}/sessions` };
      },
    }),
  });
  route("/password", {
    GET: page({ isSignedIn: true, handler: (_ctx, { base, formToken }) => passwordPage(base, formToken, "") }),
    POST: page({
      isSignedIn: true,
      form: changePasswordInput,
      handler: async (ctx, { form, base, exchange }) => {
        const { cookies } = await signIn.changePassword(ctx, form, browserOf(exchange));
        for (const line of cookies) exchange.addCookie(line);
        return { redirectTo: `${base}/sessions` };
      },
      onRefused: (_ctx, { error, request }) => passwordPage(request.base, request.formToken, errorSummary(error, PASSWORD_FIELDS)),
    }),
  });
}

interface SessionsPage {
  readonly base: string;
  readonly formToken: string;
  readonly who: string;
  readonly rows: readonly SessionRow[];
}

function sessionsPage({ base, formToken, who, rows }: SessionsPage): Page {
  const body = html`<h1>Where you are signed in</h1>
<div class="who"><span>${who}</span>
<form method="post" action="${base}/sign-out">${hiddenFields(formToken)}<button>Sign out</button></form></div>
<ul class="plain">
${rows.map((row) => sessionItem(row, base, formToken))}
</ul>
<div class="buttons">
<form method="post" action="${base}/sessions/revoke-others">${hiddenFields(formToken)}<button class="danger">Sign out everywhere else</button></form>
<a class="button" href="${base}/password">Change the password</a>
<a class="button" href="${base}${HOME_PATH}">Back to the dashboard</a>
</div>`;
  return { title: "Sessions", body };
}

function sessionItem({ id, userAgent, ipAddress, createdAt, expiresAt, isCurrent }: SessionRow, base: string, formToken: string): Html {
  return html`<li>
<p>${userAgent ?? "A browser that does not say which"} ${isCurrent ? html`<strong>(this one)</strong>` : ""}</p>
<p class="soft">Since ${moment(createdAt)} from ${ipAddress ?? "an unknown address"}; until ${moment(expiresAt)} unless it is used.</p>
${
  isCurrent
    ? ""
    : html`<form method="post" action="${base}/sessions/${id}/revoke">${hiddenFields(formToken)}<button class="danger">Sign out there</button></form>`
}
</li>`;
}

function passwordPage(base: string, formToken: string, note: Html | ""): Page {
  const body = html`<h1>Change the password</h1>
${note}
<p>Every other browser is signed out.</p>
<form method="post" action="${base}/password">
${hiddenFields(formToken)}
<label for="current">Current password</label>
<input id="current" name="currentPassword" type="password" autocomplete="current-password" maxlength="${PASSWORD_CHARS_MAX}" required>
<label for="new">New password <small>(${PASSWORD_CHARS_MIN} characters or more)</small></label>
<input id="new" name="newPassword" type="password" autocomplete="new-password" minlength="${PASSWORD_CHARS_MIN}" maxlength="${PASSWORD_CHARS_MAX}" required>
<div class="buttons"><button class="primary">Change it</button><a class="button" href="${base}/sessions">Leave it</a></div>
</form>`;
  return { title: "Change the password", body };
}
