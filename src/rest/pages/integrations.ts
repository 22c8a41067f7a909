/** The development broker's connection page, and the callback page of every broker (docs/spec/connected-apps.md#broker). */

import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { ownValue } from "../../lib/own-values.js";
import type { AccountRow } from "../../services/accounts/accounts.js";
import type { ConnectedApp, ConnectedAppStatus } from "../../services/integrations/broker.js";
import { type ConnectionView, connectionChoice } from "../../services/integrations/development-broker.js";
import type { ConnectionOutcome } from "../../services/integrations/integrations.js";
import { CONNECTION_ALIAS_CHARS_MAX, SIGNED_LINK_CHARS_MAX } from "../../services/integrations/limits.js";
import type { Services } from "../../services/services.js";
import type { Route } from "../route.js";
import { NO_DEFAULT } from "./decision-fields.js";
import type { FormFields } from "./form.js";
import { type Html, html } from "./html.js";
import type { Page } from "./page.js";
import type { PageEndpoint } from "./page-endpoint.js";
import { hiddenFields } from "./sign-in.js";
import { moment } from "./words.js";

interface ConnectionPage {
  readonly view: ConnectionView;
  readonly token: string;
  /** The signed-in person, or null. */
  readonly person: AccountRow | null;
  readonly formToken: string;
  readonly base: string;
  /** Entered values and their errors. */
  readonly refused?: { readonly message: string; readonly alias: string };
}

interface StateWords {
  readonly title: (name: string) => string;
  readonly text: string;
}

const NOT_CONNECTED = (name: string) => `${name} is not connected`;

const STATES: Readonly<Record<ConnectedAppStatus, StateWords>> = {
  initiated: { title: (name) => `${name} is not connected yet`, text: "It is waiting for approval." },
  active: { title: (name) => `${name} is connected`, text: "You can use it now." },
  failed: {
    title: NOT_CONNECTED,
    text: "The connection was denied or failed. Start again to retry.",
  },
  expired: { title: NOT_CONNECTED, text: "The request expired. Start again to retry." },
  inactive: {
    title: (name) => `${name} is disabled`,
    text: "The connection is kept, but cannot be used until you enable it.",
  },
};

const UNKNOWN: StateWords = {
  title: (name) => `Connections of ${name}`,
  text: "The broker did not name the connection. These are the current connections of the account.",
};

const REMOVED: StateWords = { title: NOT_CONNECTED, text: "The connection was not found. Start again to retry." };

function connectionPage(shown: ConnectionPage): Page {
  const { app, callbackUrl, isForeign } = shown.view;
  const name = app.name ?? app.toolkit;
  const title = app.status === "initiated" ? `Connect ${name}?` : STATES[app.status].title(name);
  const body = html`<h1>${title}</h1>
${personSection(shown)}
${isForeign ? NOT_YOURS : ownConnection(shown)}`;
  return { title, body, formTargets: [new URL(callbackUrl).origin] };
}

const NOT_YOURS = html`<p class="note"><strong>This is not your connection.</strong> It belongs to a different account. If someone sent you here, close this page.</p>`;

/** The callback page. The link alone identifies the person. */
function outcomePage({ app, apps, handle, isForeign, toolkit }: ConnectionOutcome, person: AccountRow | null): Page {
  const state = app ? STATES[app.status] : apps.length > 0 ? UNKNOWN : REMOVED;
  const title = state.title(app?.name ?? apps[0]?.name ?? toolkit);
  const body = html`<h1>${title}</h1>
<p role="status">${state.text}</p>
<dl><dt>Account</dt><dd>${handle}</dd>${app ? nameRow(app) : ""}</dl>
${app ? "" : listOf(apps)}
${
  isForeign && person
    ? html`<p class="note"><strong>This is not your account.</strong> You are signed in as ${person.handle}. If someone sent you here, they can now use the app you connected: revoke the access in that app.</p>`
    : ""
}
<p class="soft">You can close this page.</p>`;
  return { title, body };
}

function listOf(apps: readonly ConnectedApp[]): Html {
  return html`<ul class="plain">${apps.map(({ alias, id, status }) => html`<li><bdi>${alias ?? id}</bdi>: ${status}</li>`)}</ul>`;
}

function nameRow({ alias }: ConnectedApp): Html | "" {
  return alias === null ? "" : html`<dt>Name</dt><dd><bdi>${alias}</bdi></dd>`;
}

function personSection({ view, person, formToken, base, token }: ConnectionPage): Html {
  if (!person) return html`<div class="who"><span>For the account <strong>${view.handle}</strong></span></div>`;
  const back = `${base}/integrations/connect?token=${token}`;
  const email = person.email === null ? "" : html` <small>${person.email}</small>`;
  const whose = view.isForeign ? html`<br><small>The connection is for the account <strong>${view.handle}</strong></small>` : "";
  return html`<div class="who"><span>Signed in as <strong>${person.handle}</strong>${email}${whose}</span>
<form method="post" action="${base}/sign-out">${hiddenFields(formToken, back)}<button type="submit" class="small">Switch account</button></form></div>`;
}

function ownConnection({ view, token, formToken, base, refused }: ConnectionPage): Html {
  const { app } = view;
  const isOpen = app.status === "initiated";
  return html`${refused ? html`<p class="error" role="alert" id="wrong">${refused.message}</p>` : ""}
${isOpen ? approvalSection(view) : outcomeSection(app)}
<form method="post" action="${base}/integrations/connect">
${hiddenFields(formToken)}
<input type="hidden" name="token" value="${token}">
${isOpen ? decision(refused) : switches(app.status)}
</form>`;
}

function approvalSection({ app, expiresAt }: ConnectionView): Html {
  return html`<p>${app.description}</p>
<p class="note"><strong>This is the development broker.</strong> It has no sign-in: Allow marks the connection as active, as if you had signed in to ${app.name ?? app.toolkit}.</p>
<p>Continue only if you started this yourself.</p>
${expiresAt ? html`<p class="soft">This request expires on ${moment(expiresAt)}.</p>` : ""}`;
}

function outcomeSection(app: ConnectedApp): Html {
  return html`<p role="status">${STATES[app.status].text}</p>
${app.alias === null ? "" : html`<dl>${nameRow(app)}</dl>`}`;
}

function decision(refused: ConnectionPage["refused"]): Html {
  return html`${NO_DEFAULT}
<label for="alias">Connection name <small>(optional)</small></label>
<input type="text" id="alias" name="alias" value="${refused?.alias ?? ""}" maxlength="${CONNECTION_ALIAS_CHARS_MAX}" autocomplete="off" aria-describedby="${refused ? "wrong alias-hint" : "alias-hint"}">
<small id="alias-hint">Distinguishes connections of the same app, for example Work or Home.</small>
<div class="buttons">
<button type="submit" name="decision" value="approve" class="primary">Allow</button>
<button type="submit" name="decision" value="refuse" formnovalidate>Deny</button>
</div>`;
}

function switches(status: ConnectedAppStatus): Html | "" {
  if (status === "active")
    return html`<div class="buttons"><button type="submit" name="decision" value="switch-off">Disable</button></div>`;
  if (status !== "inactive") return "";
  return html`<div class="buttons"><button type="submit" name="decision" value="switch-on" class="primary">Enable</button></div>`;
}

// Routes: approval of a connection, and the callback.

/** A malformed link is treated as a wrong one. */
const link = z.string().max(SIGNED_LINK_CHARS_MAX).catch("");
const connectQuery = z.object({ token: link });
const callbackQuery = z.object({ state: link, connection: z.string().max(SIGNED_LINK_CHARS_MAX).optional().catch(undefined) });
/** Refusing needs no other fields. */
const decisionForm = z.discriminatedUnion("decision", [
  z.object({ decision: z.literal("approve"), token: link, alias: connectionChoice.shape.alias }),
  z.object({ decision: z.literal("refuse"), token: link }),
  z.object({ decision: z.literal("switch-on"), token: link }),
  z.object({ decision: z.literal("switch-off"), token: link }),
]);

type Needed = Pick<Services, "accounts" | "developmentBroker" | "integrations">;
type Shown = Omit<ConnectionPage, "view">;

export function addIntegrationPages(route: Route, page: PageEndpoint, { accounts, developmentBroker, integrations }: Needed): void {
  const show = async (ctx: RequestContext, shown: Shown) =>
    connectionPage({ ...shown, view: await developmentBroker.view(ctx, shown.token) });
  const personOf = async (ctx: RequestContext) => (ctx.caller.kind === "session" ? await accounts.me(ctx) : null);

  route("/integrations/connect", {
    GET: page({
      query: connectQuery,
      handler: async (ctx, { query: { token }, formToken, base }) => show(ctx, { token, formToken, base, person: await personOf(ctx) }),
    }),
    POST: page({
      form: decisionForm,
      handler: async (ctx, { form, base }) => {
        const { decision, token } = form;
        if (decision === "switch-on" || decision === "switch-off") {
          await developmentBroker.switchTo(ctx, token, decision === "switch-on" ? "active" : "inactive");
          return { redirectTo: `${base}/integrations/connect?token=${token}` };
        }
        const choice = decision === "approve" ? { isApproved: true, alias: form.alias } : { isApproved: false };
        return { redirectTo: await developmentBroker.decide(ctx, token, choice) };
      },
      onRefused: async (ctx, { error, fields, request: { formToken, base } }) => {
        if (error.code === "NOT_FOUND") throw error;
        const refused = { message: messageOf(error.param, error.message), alias: textOf(fields, "alias") };
        return show(ctx, { token: textOf(fields, "token"), formToken, base, person: await personOf(ctx), refused });
      },
    }),
  });
  route("/integrations/callback", {
    GET: page({
      query: callbackQuery,
      handler: async (ctx, { query }) => outcomePage(await integrations.outcome(ctx, query), await personOf(ctx)),
    }),
  });
}

function messageOf(param: string | undefined, message: string): string {
  return param === "alias" ? `A name has at most ${CONNECTION_ALIAS_CHARS_MAX} characters.` : message;
}

function textOf(fields: FormFields, name: string): string {
  const value = ownValue(fields, name);
  return typeof value === "string" ? value : "";
}
