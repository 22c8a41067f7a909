/**
 * The app that requests access: the name of its app key with the owner; or the name that a client gives itself, marked as unverified; or
 * the host of its redirect address, as nothing else is known of an app that does not identify itself (docs/spec/authorization.md#app-keys).
 */
import type { App } from "../../services/authorizations/apps.js";
import type { AuthorizationRequest } from "../../services/authorizations/authorizations.js";
import type { UnverifiedClient } from "../../services/authorizations/client-metadata.js";
import { type Html, html } from "./html.js";

export type RequestingApp = Pick<AuthorizationRequest, "app" | "client" | "redirect" | "isRedirectRegistered" | "resource">;

/** Of an app's name. A host is shown in full, as its end identifies its owner. */
const NAME_CHARS_SHOWN = 60;
/** Control characters, and characters that change text direction or have no width. */
const UNSEEN = /[\p{Cc}\p{Zl}\p{Zp}\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]+/gu;

/** Plain text on one line, cut to leave room for our own words; also for titles. */
export function nameOf({ app, client, redirect }: Pick<RequestingApp, "app" | "client" | "redirect">): string {
  if (app !== null) return shownName(app.name);
  return client?.name == null ? redirect.host : `${shownName(client.name)} (unverified app)`;
}

export function shownName(name: string): string {
  const characters = [...name.replace(UNSEEN, " ").trim()];
  if (characters.length === 0) return "Unnamed app";
  return characters.length <= NAME_CHARS_SHOWN ? characters.join("") : `${characters.slice(0, NAME_CHARS_SHOWN).join("")}…`;
}

export function ownerOf({ owner: { handle, githubUsername } }: App): Html {
  return html`${handle}${githubUsername === null ? "" : html` (GitHub: ${githubUsername})`}`;
}

/** The app and the redirect address, with a warning when it is not registered. */
export function appSection({ app, client, redirect, isRedirectRegistered, resource }: RequestingApp): Html {
  const destination = redirect.isLoopback ? html`this device (<strong>${redirect.host}</strong>)` : html`<strong>${redirect.host}</strong>`;
  const target = html`<dt>Redirects to</dt><dd>${redirect.isLoopback ? redirect.origin : redirect.host}</dd>`;
  const rows = resource === null ? target : html`${target}<dt>Key for</dt><dd>${resource}</dd>`;
  if (client !== null) return whoClaims(client, rows, destination);
  if (app === null) {
    return html`<dl>${rows}</dl>
<p class="note"><strong>Unverified app.</strong> It has not identified itself. The key goes to ${destination}: continue only if you started there.</p>`;
  }
  return html`<dl><dt>Developer</dt><dd>${ownerOf(app)}</dd>${rows}</dl>
${isRedirectRegistered ? "" : html`<p class="note">This app has not registered its redirect URL. The key goes to ${destination}: continue only if you trust it.</p>`}`;
}

/** A client that describes itself. The host of its document is known, but a program on this device can use the document of another. */
function whoClaims({ name, documentHost }: UnverifiedClient, rows: Html, destination: Html): Html {
  const named = name === null ? "" : html`<dt>Name</dt><dd><bdi>${shownName(name)}</bdi></dd>`;
  const described = documentHost === null ? "" : html`<dt>Identified at</dt><dd>${documentHost}</dd>`;
  const claim = name === null ? "It has not identified itself." : "It chose this name itself.";
  return html`<dl>${named}${described}${rows}</dl>
<p class="note"><strong>Unverified app.</strong> ${claim} The key goes to ${destination}: continue only if you started there.</p>`;
}
