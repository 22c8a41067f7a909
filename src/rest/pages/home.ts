/** Home: what a signed-in person has, their keys, what was used lately, and where to go on. */
import type { AccountRow, Balance } from "../../services/accounts/accounts.js";
import type { ApiKeyRow } from "../../services/api-keys/api-key-rows.js";
import type { UsageRow } from "../../services/usage/usage.js";
import { type Html, html } from "./html.js";
import type { Page } from "./page.js";
import { hiddenFields } from "./sign-in.js";
import { type GatewayInfo, gatewayLinks } from "./start.js";
import { countOf, credits, moment } from "./words.js";

export interface SignedInPage {
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
  /** The newest, of the last days. */
  readonly usage: readonly UsageRow[];
  readonly usageDays: number;
  readonly now: Date;
  /** What has just been done. */
  readonly done: "revoked" | undefined;
}

export function homePage(home: Home): Page {
  const { base, formToken, gateway, person, keys, hasMoreKeys, done } = home;
  const email = person.email === null ? "" : html` <small>${person.email}</small>`;
  const body = html`<h1>Your account</h1>
<div class="who"><span>Signed in as <strong>${person.handle}</strong>${email}</span>
<form method="post" action="${base}/sign-out">${hiddenFields(formToken)}<button type="submit" class="small">Sign out</button></form></div>
${done === "revoked" ? html`<p class="note" role="status">The key is revoked. Whatever uses it stops working within a second.</p>` : ""}
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

/** All of the keys. */
export function keysPage({ base, formToken, keys, now }: SignedInPage & Pick<Home, "keys" | "now">): Page {
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
