/** The page of a connection that the development broker keeps, and the page on which connections of every broker end (Spec 4.6). */
import { CONNECTION_ALIAS_CHARS_MAX } from "../../limits-integrations.js";
import type { AccountRow } from "../../services/accounts.js";
import type { ConnectedApp, ConnectedAppStatus } from "../../services/integrations/broker.js";
import type { ConnectionView } from "../../services/integrations/development-broker.js";
import type { ConnectionOutcome } from "../../services/integrations.js";
import { type Html, html } from "./html.js";
import type { Page } from "./page.js";
import { hiddenFields } from "./sign-in.js";

export interface ConnectionPage {
  readonly view: ConnectionView;
  /** The link that the page was opened with. */
  readonly token: string;
  /** Who is signed in; null is nobody. */
  readonly person: AccountRow | null;
  readonly formToken: string;
  readonly base: string;
  /** What was entered, and what is wrong with it. */
  readonly refused?: { readonly message: string; readonly alias: string };
}

/** What is said of a connection: what its state is called, and what it means. */
const STATES: Readonly<Record<ConnectedAppStatus, readonly [title: (name: Html) => Html, text: string]>> = {
  initiated: [(name) => html`${name} is not connected yet`, "Nobody has approved it yet."],
  active: [(name) => html`${name} is connected`, "It can be used from now on."],
  failed: [
    (name) => html`${name} is not connected`,
    "It was refused, or something went wrong. Nothing can be used. To try again, begin it anew.",
  ],
  expired: [(name) => html`${name} is not connected`, "Its time is over. To try again, begin it anew."],
  inactive: [
    (name) => html`${name} is switched off`,
    "It stays among the connected apps, and cannot be used until it is switched on again.",
  ],
};

export function connectionPage(shown: ConnectionPage): Page {
  const { view, token, formToken, base, refused } = shown;
  const { app, isForeign, callbackUrl } = view;
  const isOpen = app.status === "initiated";
  const [title] = STATES[app.status];
  const body = html`<h1>${isOpen ? html`Connect ${nameOf(app)}?` : title(nameOf(app))}</h1>
${whoIsAsked(shown)}
${refused ? html`<p class="error" role="alert" id="wrong">${refused.message}</p>` : ""}
${isOpen ? whatIsAsked(view) : whatBecame(app)}
${
  isForeign
    ? html`<p class="note"><strong>This is not your connection.</strong> It belongs to another account than the one that you are signed in to. If somebody sent you here, close this page.</p>`
    : html`<form method="post" action="${base}/integrations/connect">
${hiddenFields(formToken)}
<input type="hidden" name="token" value="${token}">
${isOpen ? decision(refused) : switches(app.status)}
</form>`
}`;
  const text = isOpen ? `Connect ${app.name ?? app.toolkit}?` : `${app.name ?? app.toolkit}: ${app.status}`;
  return { title: text, body, formTargets: [new URL(callbackUrl).origin] };
}

/** Where a broker sends people back to. It knows them by the link alone. */
export function outcomePage({ app, apps, handle, isForeign, toolkit }: ConnectionOutcome, person: AccountRow | null): Page {
  const name = html`<bdi>${app?.name ?? apps[0]?.name ?? toolkit}</bdi>`;
  const [title, text] = app ? STATES[app.status] : UNKNOWN;
  const body = html`<h1>${title(name)}</h1>
<p role="status">${text}</p>
<dl><dt>Account</dt><dd>${handle}</dd>${app?.alias ? html`<dt>Called</dt><dd><bdi>${app.alias}</bdi></dd>` : ""}</dl>
${app || apps.length === 0 ? "" : listOf(apps)}
${
  isForeign && person
    ? html`<p class="note"><strong>This is not your account.</strong> You are signed in as ${person.handle}. If somebody sent you here, they can use what you have just opened to them: take their access back where you gave it.</p>`
    : ""
}
<p class="soft">You can close this page.</p>`;
  return { title: `${app?.name ?? toolkit}: ${app?.status ?? "connections"}`, body };
}

const UNKNOWN: readonly [title: (name: Html) => Html, text: string] = [
  (name) => html`Back from ${name}`,
  "The broker does not say which connection this was about. This is how those of the account stand now.",
];

function listOf(apps: readonly ConnectedApp[]): Html {
  const items = apps.map(({ alias, id, status }) => html`<li><bdi>${alias ?? id}</bdi>: ${status}</li>`);
  return html`<ul class="plain">${items}</ul>`;
}

function nameOf({ name, toolkit }: ConnectedApp): Html {
  return html`<bdi>${name ?? toolkit}</bdi>`;
}

function whoIsAsked({ view, person, formToken, base, token }: ConnectionPage): Html {
  if (!person) return html`<div class="who"><span>For the account <strong>${view.handle}</strong></span></div>`;
  const back = `${base}/integrations/connect?token=${token}`;
  const whose = view.isForeign ? html`<br><small>The connection is for the account <strong>${view.handle}</strong></small>` : "";
  return html`<div class="who"><span>Signed in as <strong>${person.handle}</strong>${person.email === null ? "" : html` <small>${person.email}</small>`}${whose}</span>
<form method="post" action="${base}/sign-out">${hiddenFields(formToken, back)}<button type="submit" class="small">Use another account</button></form></div>`;
}

function whatIsAsked({ app, expiresAt }: ConnectionView): Html {
  return html`<p>${app.description}</p>
<p class="note"><strong>This is the development broker.</strong> There is nothing to sign in to: allowing it marks the connection as active, as if you had signed in to ${nameOf(app)}.</p>
<p>Continue only if you started this yourself.${expiresAt ? html` <span class="soft">It can be allowed until ${timeOf(expiresAt)}.</span>` : ""}</p>`;
}

function whatBecame({ status, alias }: ConnectedApp): Html {
  const [, text] = STATES[status];
  return html`<p role="status">${text}</p>
${alias === null ? "" : html`<dl><dt>Called</dt><dd><bdi>${alias}</bdi></dd></dl>`}`;
}

/** The form's first button is the one that Enter presses in a field: consent is a button of its own. */
const NO_DEFAULT = html`<button type="submit" disabled hidden></button>`;

function decision(refused: ConnectionPage["refused"]): Html {
  return html`${NO_DEFAULT}
<label for="alias">Name of this connection <small>(may be left empty)</small></label>
<input type="text" id="alias" name="alias" value="${refused?.alias ?? ""}" maxlength="${CONNECTION_ALIAS_CHARS_MAX}" autocomplete="off" aria-describedby="${refused ? "wrong alias-hint" : "alias-hint"}">
<small id="alias-hint">Tells it from others of the same app: Work, Home.</small>
<div class="buttons">
<button type="submit" name="decision" value="approve" class="primary">Allow</button>
<button type="submit" name="decision" value="refuse" formnovalidate>Refuse</button>
</div>`;
}

function switches(status: ConnectedAppStatus): Html | "" {
  if (status === "active")
    return html`<div class="buttons"><button type="submit" name="decision" value="switch-off">Switch off</button></div>`;
  if (status !== "inactive") return "";
  return html`<div class="buttons"><button type="submit" name="decision" value="switch-on" class="primary">Switch on</button></div>`;
}

/** 22 November 2026, 03:10 UTC. */
function timeOf(date: Date): Html {
  const text = date.toISOString();
  const day = date.toLocaleDateString("en-GB", { day: "numeric", month: "long", year: "numeric", timeZone: "UTC" });
  return html`<time datetime="${text}">${day}, ${text.slice(11, 16)} UTC</time>`;
}
