/** The page on which a key is made, and the one that shows it, once. */
import type { AppError } from "../../errors.js";
import { API_KEY_NAME_CHARS_MAX } from "../../limits.js";
import type { ApiKeyRow } from "../../services/api-keys/api-key-rows.js";
import { GRANT_DAYS_MAX } from "../../services/api-keys/limits.js";
import { PERMISSION_WORDS } from "./decision-fields.js";
import type { FormFields } from "./form.js";
import { errorSummary, type FieldsByParam, invalidMark } from "./form-errors.js";
import type { SignedInPage } from "./home.js";
import { type Html, html } from "./html.js";
import { choice, everyModelOrSome, type ListedModel } from "./model-choice.js";
import type { Page } from "./page.js";
import { hiddenFields } from "./sign-in.js";
import { credits, moment } from "./words.js";

const FIELDS: FieldsByParam = new Map([
  ["name", { id: "name", label: "The name" }],
  ["budget", { id: "budget", label: "The budget" }],
  ["expiry", { id: "expiry", label: "The time" }],
  ["models", { id: "models", label: "The models" }],
  ["permissions", { id: "permissions", label: "Permissions" }],
]);

const KEY_PERMISSION_WORDS: ReadonlyMap<string, string> = new Map([
  ...Object.entries(PERMISSION_WORDS),
  ["keys", "Your keys: make, change and revoke them. Only for programs that manage keys: whoever has such a key can make others"],
]);

export interface NewKeyPage extends SignedInPage {
  /** The key to be, sealed. */
  readonly sealed: string;
  readonly models: readonly ListedModel[];
  readonly refused?: { readonly error: AppError; readonly fields: FormFields };
}

export function newKeyPage({ base, formToken, sealed, models, refused }: NewKeyPage): Page {
  const { error, fields } = refused ?? {};
  const ticked = new Set([fields?.permissions ?? []].flat());
  const body = html`<h1>Make a key</h1>
<p>A program shows it to spend your credits. Give each program one of its own, with no more than it needs.</p>
${error ? errorSummary(error, FIELDS) : ""}
<form method="post" action="${base}/home/keys/new">
${hiddenFields(formToken)}
<input type="hidden" name="new_key" value="${sealed}">
<label for="name">Name</label>
<input type="text" id="name" name="name" value="${textOf(fields?.name)}" maxlength="${API_KEY_NAME_CHARS_MAX}" required autocomplete="off" aria-describedby="name-hint"${invalidMark(error, FIELDS, "name")}>
<small id="name-hint">Tells it from your other keys, such as the name of the program.</small>
<label for="budget">Budget in credits <small>(may be left empty)</small></label>
<input type="number" inputmode="decimal" id="budget" name="budget" value="${textOf(fields?.budget)}" min="0.000000001" step="any" autocomplete="off" aria-describedby="budget-hint"${invalidMark(error, FIELDS, "budget")}>
<small id="budget-hint">What it may spend in all. Empty: as much as your balance has.</small>
<label for="expiry">Days until it expires <small>(may be left empty)</small></label>
<input type="number" id="expiry" name="expiry" value="${textOf(fields?.expiry)}" min="1" max="${GRANT_DAYS_MAX}" autocomplete="off" aria-describedby="expiry-hint"${invalidMark(error, FIELDS, "expiry")}>
<small id="expiry-hint">1 to ${GRANT_DAYS_MAX} days. Empty: it works until you revoke it.</small>
${everyModelOrSome(models, { isEveryModel: fields?.model_choice !== "chosen", models: new Set([fields?.models ?? []].flat()) })}
<fieldset id="permissions">
<legend>What it may do beside generating</legend>
${[...KEY_PERMISSION_WORDS].map(([name, words]) => choice("checkbox", "permissions", name, ticked.has(name), words))}
</fieldset>
<div class="buttons"><button type="submit" class="primary">Make the key</button><a class="button" href="${base}/home">Leave it</a></div>
</form>`;
  return { title: "Make a key", body };
}

export interface MadeKey {
  readonly apiKey: ApiKeyRow;
  readonly key: string;
  /** A command that uses it. */
  readonly command: string;
}

/** `made` is null once it has been shown. */
export function madeKeyPage({ base }: Pick<SignedInPage, "base">, made: MadeKey | null): Page {
  const body = made === null ? shownBefore() : shownNow(made);
  return {
    title: made === null ? "The key was shown" : "Your new key",
    body: html`${body}
<div class="buttons"><a class="button primary" href="${base}/home">To your account</a><a class="button" href="${base}/home/keys/new">Make another</a></div>`,
  };
}

function shownNow({ apiKey, key, command }: MadeKey): Html {
  const { name, creditBudget, expiresAt } = apiKey;
  return html`<h1>Your new key</h1>
<p class="note" role="status"><strong>Copy it now: it is shown this once.</strong> The gateway keeps no copy that it could show again.</p>
<p>Key <strong><bdi>${name}</bdi></strong>:</p>
<pre class="secret"><code>${key}</code></pre>
<dl><dt>Budget</dt><dd>${creditBudget === null ? "no limit but your balance" : credits(creditBudget)}</dd>
<dt>Expires</dt><dd>${expiresAt === null ? "never" : moment(expiresAt)}</dd></dl>
<h2>Try it</h2>
<p>Paste this into a terminal:</p>
<pre class="command"><code>${command}</code></pre>`;
}

function shownBefore(): Html {
  return html`<h1>The key was shown</h1>
<p>A new key is shown once, right after it was made, and the gateway keeps no copy. If you did not copy it, revoke it among your keys and make another.</p>`;
}

function textOf(value: FormFields[string] | undefined): string {
  return typeof value === "string" ? value : "";
}
