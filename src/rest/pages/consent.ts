/** The consent page: who asks, for what, where the answer goes, and who is asked (docs/spec/authorization.md). */
import type { AccountRow } from "../../services/accounts/accounts.js";
import type { RedirectUrl } from "../../services/api-keys/redirect-url.js";
import type { AuthorizationRequest } from "../../services/authorizations/authorizations.js";
import { nameOf, whoAsks } from "./asking-app.js";
import { decisionFields, type Refused } from "./decision-fields.js";
import { type Html, html } from "./html.js";
import type { ListedModel } from "./model-choice.js";
import type { Page } from "./page.js";
import { hiddenFields } from "./sign-in.js";

export interface Consent {
  readonly request: AuthorizationRequest;
  readonly person: AccountRow;
  /** Nanocredits of the account. */
  readonly balance: bigint;
  /** Those that there are. */
  readonly models: readonly ListedModel[];
  readonly formToken: string;
  readonly base: string;
  /** The path that the app sent the person to: whoever signs in as somebody else comes back to it. */
  readonly returnTo: string | undefined;
  /** What was entered, and what is wrong with it. */
  readonly refused?: Refused;
}

export function consentPage({ request, person, balance, models, formToken, base, returnTo, refused }: Consent): Page {
  const { redirect, asked, creditBudgetMax } = request;
  const name = nameOf(request);
  const body = html`<h1>Let <bdi>${name}</bdi> spend your credits?</h1>
<div class="who"><span>Signed in as ${whoIsAsked(person)}</span>
<form method="post" action="${base}/sign-out">${hiddenFields(formToken, returnTo)}<button type="submit" class="small">Use another account</button></form></div>
${whoAsks(request)}
<form method="post" action="${base}/authorize">
${hiddenFields(formToken, returnTo)}
<input type="hidden" name="request_id" value="${request.id}">
${decisionFields({ asked, creditBudgetMax, balance, person, models, refused })}
</form>`;
  return { title: `Let ${name} spend your credits?`, body, formTargets: formTargetsOf(redirect) };
}

/**
 * Browsers hold not only our redirect to `form-action` but every further one: an app that sends the person on from where it is
 * returned to, to another of its origins, would lead nowhere (docs/decisions/consent-form-targets.md).
 */
function formTargetsOf({ origin, isLoopback }: RedirectUrl): string[] {
  return [origin, "https:", ...(isLoopback ? ["http:"] : [])];
}

function whoIsAsked({ handle, email }: AccountRow): Html {
  return html`<strong>${handle}</strong>${email === null ? "" : html` <small>${email}</small>`}`;
}
