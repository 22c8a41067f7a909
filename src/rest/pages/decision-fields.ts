/**
 * The fields of a consent form in which a person narrows an app's request (models, budget, expiry and permissions, as read by
 * `grantFormFields`) and decides. Needs no script.
 */
import type { AppError } from "../../errors.js";
import { formatNanocredits } from "../../lib/money.js";
import type { AccountRow } from "../../services/accounts/accounts.js";
import type { GrantablePermission, GrantTerms } from "../../services/api-keys/grant-terms.js";
import type { FormFields } from "./form.js";
import { errorSummary, type FieldsByParam, invalidMark } from "./form-errors.js";
import { type Html, html } from "./html.js";
import { choice, everyModelOrSome, type ListedModel, someOf } from "./model-choice.js";
import { countOf, credits, days, moment } from "./words.js";

/** The request and the deciding person. */
export interface Decision {
  readonly asked: GrantTerms;
  /** True: permissions are not ticked, as clients that register ask for every one. */
  readonly isUnverified?: boolean;
  /** Nanocredits: the most that can be granted. */
  readonly creditBudgetMax: bigint;
  /** Nanocredits of the account. */
  readonly balance: bigint;
  readonly person: AccountRow;
  readonly models: readonly ListedModel[];
  /** Entered values and their errors. */
  readonly refused?: Refused | undefined;
}

export interface Refused {
  readonly error: AppError;
  readonly fields: FormFields;
}

/** Data that each permission reveals, of the account and not only of the key. */
export const PERMISSION_WORDS: Readonly<Record<GrantablePermission, string>> = {
  profile: "Your profile: your name, e-mail address, picture, GitHub name and tier",
  balance: "Your balance: your available credits",
  usage: "Your usage: models, times and costs, but no prompts or answers",
};

const FIELDS: FieldsByParam = new Map([
  ["models", { id: "models", label: "Models" }],
  ...["budget", "creditBudget"].map((name) => [name, { id: "budget", label: "The budget" }] as const),
  ...["expiry", "expiresInDays"].map((name) => [name, { id: "expiry", label: "The expiry" }] as const),
  ["permissions", { id: "permissions", label: "Permissions" }],
]);

/** Enter in a field presses the form's first button, so this one prevents accidental consent. */
export const NO_DEFAULT = html`<button type="submit" disabled hidden></button>`;

/** Values of the fields. */
interface Entered {
  readonly isEveryModel: boolean;
  readonly models: ReadonlySet<string>;
  readonly budget: string;
  readonly expiry: string;
  readonly permissions: ReadonlySet<string>;
}

/** The fields, and the buttons that send `decision`. */
export function decisionFields(decision: Decision): Html {
  if (decision.creditBudgetMax <= 0n) return nothingToGrant(decision);
  const { refused } = decision;
  return html`${NO_DEFAULT}
${refused ? errorSummary(refused.error, FIELDS) : ""}
<p>${summaryOf(decision)}</p>
<p>You can narrow the access below.</p>
${termsFields(decision)}
<p class="soft">It cannot create or change keys. You can revoke its access at any time, under Apps.</p>
<div class="buttons">
<button type="submit" name="decision" value="approve" class="primary">Allow</button>
<button type="submit" name="decision" value="deny" formnovalidate>Deny</button>
</div>`;
}

/** An empty account cannot grant a budget, which every key needs. */
function nothingToGrant({ asked, person }: Decision): Html {
  const { nextResetAt } = person;
  const refill = nextResetAt === null ? "" : html` Your free credits are refilled on ${moment(nextResetAt)}.`;
  return html`${NO_DEFAULT}
<div class="note" role="status"><p><strong>Your account has no credits.</strong> The app requests up to ${credits(asked.creditBudget)}, and you have 0 credits.</p>
<p>To continue, ask the operator of this gateway for credits, then start again in the app.${refill}</p></div>
<div class="buttons"><button type="submit" name="decision" value="deny" formnovalidate>Deny</button></div>`;
}

function summaryOf({ asked, creditBudgetMax, balance }: Decision): Html {
  const models = asked.models === null ? "all models" : countOf(asked.models.length, "model");
  const cut = creditBudgetMax < asked.creditBudget ? html` It requested ${credits(asked.creditBudget)}, which is more than you have.` : "";
  const margin =
    asked.marginPercent === 0
      ? ""
      : html` The app adds <strong>${asked.marginPercent}%</strong> to the price of each request, which its developer earns.`;
  return html`It requests a key for ${models} that is valid for ${days(asked.expiresInDays)} and can spend up to <strong>${credits(creditBudgetMax)}</strong> of your balance of <strong>${credits(balance)}</strong>.${cut}${margin}`;
}

function termsFields(decision: Decision): Html {
  const { asked, models, creditBudgetMax, balance, refused } = decision;
  const entered = refused ? fromFields(refused.fields) : fromTerms(decision);
  const most = formatNanocredits(creditBudgetMax);
  const bound = creditBudgetMax < asked.creditBudget ? "your whole balance" : html`of your balance of ${credits(balance)}`;
  return html`${asked.models === null ? everyModelOrSome(models, entered) : someOf(asked.models, models, entered)}
<fieldset>
<legend>Limits</legend>
<label for="budget">Budget in credits</label>
<input type="number" inputmode="decimal" id="budget" name="budget" value="${entered.budget}" min="0.000000001" max="${most}" step="any" required autocomplete="off" aria-describedby="budget-hint"${invalidMark(refused?.error, FIELDS, "budget")}>
<small id="budget-hint">At most ${credits(creditBudgetMax)}, ${bound}. One credit is worth one US dollar.</small>
<label for="expiry">Expires after (days)</label>
<input type="number" id="expiry" name="expiry" value="${entered.expiry}" min="1" max="${asked.expiresInDays}" required aria-describedby="expiry-hint"${invalidMark(refused?.error, FIELDS, "expiry")}>
<small id="expiry-hint">At most ${days(asked.expiresInDays)}.</small>
</fieldset>
${permissionFields(asked, entered)}`;
}

function permissionFields({ permissions }: GrantTerms, entered: Entered): Html {
  if (permissions.length === 0) return html`<p class="soft" id="permissions">It cannot read your profile, balance or usage.</p>`;
  return html`<fieldset id="permissions">
<legend>Permissions to read</legend>
${permissions.map((name) => choice("checkbox", "permissions", name, entered.permissions.has(name), PERMISSION_WORDS[name]))}
</fieldset>`;
}

function fromTerms({ asked, isUnverified = false, creditBudgetMax }: Decision): Entered {
  return {
    isEveryModel: asked.models === null,
    models: new Set(asked.models ?? []),
    budget: formatNanocredits(creditBudgetMax),
    expiry: String(asked.expiresInDays),
    permissions: new Set(isUnverified ? [] : asked.permissions),
  };
}

function fromFields({ model_choice, models, budget, expiry, permissions }: FormFields): Entered {
  return {
    isEveryModel: model_choice === "all",
    models: new Set(models === undefined ? [] : [models].flat()),
    budget: String(budget ?? ""),
    expiry: String(expiry ?? ""),
    permissions: new Set(permissions === undefined ? [] : [permissions].flat()),
  };
}
