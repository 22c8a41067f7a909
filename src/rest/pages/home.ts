/** Home and key pages without scripts: balance, keys, recent usage and links. */

import * as z from "zod";
import type { RequestContext } from "../../context.js";
import type { AppError } from "../../errors.js";
import type { Exchange } from "../../http/exchange.js";
import { API_KEY_NAME_CHARS_MAX, API_KEYS_PER_ACCOUNT_MAX, KEY_REVEAL_SECONDS, USAGE_DAYS_DEFAULT } from "../../limits.js";
import type { AccountRow, Balance } from "../../services/accounts/accounts.js";
import type { ApiKeyRow } from "../../services/api-keys/api-key-rows.js";
import { apiKeyForm } from "../../services/api-keys/api-keys-input.js";
import { GRANT_DAYS_MAX } from "../../services/api-keys/limits.js";
import type { Model } from "../../services/catalog/model.js";
import type { Services } from "../../services/services.js";
import { USAGE_ROW, type UsageRow } from "../../services/usage/usage.js";
import type { Route } from "../route.js";
import { PERMISSION_WORDS } from "./decision-fields.js";
import type { FormFields } from "./form.js";
import { errorSummary, type FieldsByParam, invalidMark } from "./form-errors.js";
import { type Html, html } from "./html.js";
import { choice, everyModelOrSome, type ListedModel } from "./model-choice.js";
import type { Page } from "./page.js";
import type { PageEndpoint } from "./page-endpoint.js";
import { HOME_PATH } from "./return-to.js";
import { hiddenFields } from "./sign-in.js";
import { type GatewayInfo, gatewayLinks } from "./start.js";
import { countOf, credits, moment } from "./words.js";

interface SignedInPage {
  readonly base: string;
  readonly formToken: string;
}

export interface Home extends SignedInPage {
  readonly gateway: GatewayInfo;
  readonly person: AccountRow;
  readonly balance: Balance;
  /** The newest. */
  readonly keys: readonly ApiKeyRow[];
  readonly hasMoreKeys: boolean;
  /** The newest of the last days. */
  readonly usage: readonly UsageRow[];
  readonly usageDays: number;
  readonly now: Date;
  /** The last action, for a message. */
  readonly done: "revoked" | undefined;
}

function homePage(home: Home): Page {
  const { base, formToken, gateway, person, keys, hasMoreKeys, done } = home;
  const email = person.email === null ? "" : html` <small>${person.email}</small>`;
  const body = html`<h1>Your account</h1>
<div class="who"><span>Signed in as <strong>${person.handle}</strong>${email}</span>
<form method="post" action="${base}/sign-out">${hiddenFields(formToken)}<button type="submit" class="small">Sign out</button></form></div>
${done === "revoked" ? html`<p class="note" role="status">The key is revoked. Whatever uses it stops working within a second.</p>` : ""}
<div class="buttons"><a class="button primary" href="${base}${HOME_PATH}">Open the dashboard</a></div>
${balanceSection(home)}
<h2 id="keys">API keys</h2>
${keys.length === 0 ? html`<p>You have none yet. A program needs one to spend your credits.</p>` : keyList(home, keys)}
<div class="buttons">
<a class="button primary" href="${base}/home/keys/new">Make a key</a>
${hasMoreKeys ? html`<a class="button" href="${base}/home/keys">All keys</a>` : ""}
</div>
${usageSection(home)}
<h2>Read on</h2>
${gatewayLinks(gateway)}
<h2>Sign-in</h2>
<ul>
<li><a href="${base}/sessions">Where you are signed in</a></li>
<li><a href="${base}/password">Change the password</a></li>
</ul>`;
  return { title: "Your account", body };
}

function keysPage({ base, formToken, keys, now }: SignedInPage & Pick<Home, "keys" | "now">): Page {
  const body = html`<h1>API keys</h1>
${keyList({ base, formToken, now }, keys)}
<div class="buttons"><a class="button primary" href="${base}/home/keys/new">Make a key</a><a class="button" href="${base}/home">Back</a></div>`;
  return { title: "API keys", body };
}

function balanceSection({ balance, person }: Home): Html {
  const { tier, nextResetAt } = person;
  const refill = nextResetAt === null ? "not refilled" : html`next refill ${moment(nextResetAt)}`;
  const held =
    balance.held > 0n ? html`<p class="soft">${credits(balance.held)} of it are set aside for what is being generated now.</p>` : "";
  return html`<h2>Balance</h2>
<p class="amount">${credits(balance.balance)}</p>
<dl>
<dt>Free${tier === null ? "" : html` (tier ${tier})`}</dt><dd>${credits(balance.tier)}, ${refill}</dd>
<dt>Bought with crypto</dt><dd>${credits(balance.crypto)}</dd>
<dt>Bought</dt><dd>${credits(balance.pack)}</dd>
</dl>
${held}<p class="soft">Free credits are spent first. One credit is worth one US dollar.</p>`;
}

function keyList(shown: SignedInPage & Pick<Home, "now">, keys: readonly ApiKeyRow[]): Html {
  return html`<ul class="plain keys">
${keys.map((key) => keyItem(shown, key))}
</ul>`;
}

function keyItem({ base, formToken, now }: SignedInPage & Pick<Home, "now">, key: ApiKeyRow): Html {
  const { id, name, start, creditBudget, lastUsedAt, expiresAt } = key;
  return html`<li>
<p><strong><bdi>${name}</bdi></strong> <code>${start}…</code>${kindOf(key)}</p>
<dl>
<dt>Budget left</dt><dd>${creditBudget === null ? "no limit but your balance" : credits(creditBudget)}</dd>
<dt>Last used</dt><dd>${lastUsedAt === null ? "never" : moment(lastUsedAt)}</dd>
<dt>${expiresAt !== null && expiresAt <= now ? "Expired" : "Expires"}</dt><dd>${expiresAt === null ? "never" : moment(expiresAt)}</dd>
</dl>
<details><summary>Revoke<span class="hidden"> ${name}</span></summary>
<form method="post" action="${base}/home/keys/${id}/revoke">${hiddenFields(formToken)}
<p>Whatever uses this key stops working within a second, and so does every key that it has made. This cannot be undone.</p>
<button type="submit" class="danger">Revoke ${name}</button></form></details>
</li>`;
}

function kindOf({ type, origin, parentId }: ApiKeyRow): Html | "" {
  const words = [
    ...(type === "publishable" ? ["publishable"] : []),
    ...(origin === "created" ? [] : ["granted to an app"]),
    ...(parentId === null ? [] : ["made by another key"]),
  ];
  return words.length === 0 ? "" : html` <small>${words.join(", ")}</small>`;
}

function usageSection({ usage, usageDays }: Home): Html {
  if (usage.length === 0)
    return html`<h2>Recent usage</h2>
<p>Nothing was generated in the last ${countOf(usageDays, "day")}.</p>`;
  return html`<h2>Recent usage</h2>
<div class="wide" tabindex="0" role="region" aria-label="Recent usage"><table>
<thead><tr><th scope="col">Time (UTC)</th><th scope="col">Model</th><th scope="col">Cost</th><th scope="col">Key</th></tr></thead>
<tbody>
${usage.map(
  ({ timestamp, model, costNanocredits, apiKeyName, status }) =>
    html`<tr><td><time datetime="${timestamp.toISOString()}">${timestamp.toISOString().slice(5, 16).replace("T", " ")}</time></td><td>${model}${status === "ok" ? "" : html` <small>${status}</small>`}</td><td>${credits(costNanocredits)}</td><td><bdi>${apiKeyName ?? "you"}</bdi></td></tr>
`,
)}</tbody>
</table></div>`;
}

const KEYS_SHOWN = 20;
const USAGE_SHOWN = 10;
const MADE_PATH = "/home/keys/made";

const homeQuery = z.object({ done: z.literal("revoked").optional().catch(undefined) });
const newKeyForm = z.object({ new_key: z.string() }).and(apiKeyForm);
const nothing = z.object({});

type Needed = Pick<Services, "accounts" | "apiKeys" | "catalog" | "keyReveals" | "usage">;

export function addHomePages(route: Route, page: PageEndpoint, services: Needed, gateway: GatewayInfo): void {
  const { accounts, apiKeys, catalog, keyReveals, usage } = services;
  const modelsFor = async (ctx: RequestContext) => catalog.list(ctx, {});

  route("/home", {
    GET: page({
      isSignedIn: true,
      query: homeQuery,
      handler: async (ctx, { base, formToken, query }) => {
        const [person, balance, keys, used] = await Promise.all([
          accounts.me(ctx),
          accounts.balance(ctx),
          apiKeys.list(ctx, { first: KEYS_SHOWN }),
          usage.list(ctx, { page: { first: USAGE_SHOWN } }, USAGE_ROW),
        ]);
        const lists = { keys: keys.items, hasMoreKeys: keys.hasNextPage, usage: used.items, usageDays: USAGE_DAYS_DEFAULT };
        return homePage({ base, formToken, gateway, person, balance, ...lists, now: new Date(), done: query.done });
      },
    }),
  });
  route("/home/keys", {
    GET: page({
      isSignedIn: true,
      handler: async (ctx, { base, formToken }) => {
        const { items } = await apiKeys.list(ctx, { first: API_KEYS_PER_ACCOUNT_MAX });
        return keysPage({ base, formToken, keys: items, now: new Date() });
      },
    }),
  });
  route("/home/keys/new", {
    GET: page({
      isSignedIn: true,
      handler: async (ctx, { base, formToken }) =>
        newKeyPage({ base, formToken, sealed: keyReveals.begin(ctx), models: await modelsFor(ctx) }),
    }),
    POST: page({
      isSignedIn: true,
      form: newKeyForm,
      handler: async (ctx, { form: { new_key, ...input }, base, exchange, isSecure }) => {
        const sealed = await keyReveals.create(ctx, new_key, input);
        // In a cookie that scripts cannot read and only this page gets, so that neither address nor history holds it.
        exchange.addCookie(revealCookie(sealed, KEY_REVEAL_SECONDS, base, isSecure));
        return { redirectTo: base + MADE_PATH };
      },
      onRefused: async (ctx, { error, fields, request: { base, formToken } }) => {
        if (error.code !== "BAD_REQUEST") throw error;
        const sealed = typeof fields.new_key === "string" ? fields.new_key : "";
        return newKeyPage({ base, formToken, sealed, models: await modelsFor(ctx), refused: { error, fields } });
      },
    }),
  });
  route(MADE_PATH, {
    GET: page({
      isSignedIn: true,
      handler: async (ctx, { base, exchange, isSecure }) => {
        const sealed = readRevealCookie(exchange);
        if (sealed === null) return madeKeyPage({ base }, null);
        exchange.addCookie(revealCookie("", 0, base, isSecure));
        const made = await keyReveals.reveal(ctx, sealed);
        if (!made) return madeKeyPage({ base }, null);
        const command = commandFor(made.key, made.apiKey.allowedModels, await modelsFor(ctx), gateway.addresses().baseUrl);
        return madeKeyPage({ base }, { ...made, command });
      },
    }),
  });
  route("/home/keys/:id/revoke", {
    POST: page({
      isSignedIn: true,
      form: nothing,
      handler: async (ctx, { base, exchange }) => {
        await apiKeys.revoke(ctx, exchange.parameter("id"));
        return { redirectTo: `${base}/home?done=revoked` };
      },
    }),
  });
}

const REVEAL_COOKIE = "sluice_new_key";
const REVEAL_COOKIE_PATTERN = /(?:^|;\s*)(?:__Secure-)?sluice_new_key=([A-Za-z0-9_-]{1,1024})(?:;|$)/;

function revealCookie(value: string, seconds: number, base: string, isSecure: boolean): string {
  const [name, secure] = isSecure ? [`__Secure-${REVEAL_COOKIE}`, "; Secure"] : [REVEAL_COOKIE, ""];
  return `${name}=${value}; Max-Age=${seconds}; Path=${base}${MADE_PATH}; HttpOnly; SameSite=Strict${secure}`;
}

function readRevealCookie({ req }: Exchange): string | null {
  return REVEAL_COOKIE_PATTERN.exec(req.headers.cookie ?? "")?.[1] ?? null;
}

// The page that makes a key, and the one that shows it once.

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

interface NewKeyPage extends SignedInPage {
  /** The future key, sealed. */
  readonly sealed: string;
  readonly models: readonly ListedModel[];
  readonly refused?: { readonly error: AppError; readonly fields: FormFields };
}

function newKeyPage({ base, formToken, sealed, models, refused }: NewKeyPage): Page {
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

interface MadeKey {
  readonly apiKey: ApiKeyRow;
  readonly key: string;
  /** A command that uses it. */
  readonly command: string;
}

/** `made` is null once it has been shown. */
function madeKeyPage({ base }: Pick<SignedInPage, "base">, made: MadeKey | null): Page {
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

/** Free, and available unless the operator disables it. */
const SANDBOX = "sandbox/text";

/** A command that calls a model of the key, if possible the sandbox's. A key without text models is shown itself. */
function commandFor(
  key: string,
  allowedModels: readonly string[] | null,
  models: readonly Pick<Model, "id" | "modality">[],
  baseUrl: string,
): string {
  const usable = models.filter(({ id, modality }) => modality === "text" && (allowedModels === null || allowedModels.includes(id)));
  const model = usable.find(({ id }) => id === SANDBOX) ?? usable[0];
  const authorization = `-H "Authorization: Bearer ${key}"`;
  if (!model) return `curl ${baseUrl}/account/key ${authorization}`;
  const body = JSON.stringify({ model: model.id, messages: [{ role: "user", content: "Hello!" }] });
  return `curl ${baseUrl}/v1/chat/completions ${authorization} -H "Content-Type: application/json" -d '${body}'`;
}
