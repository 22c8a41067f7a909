/**
 * The part of a consent form in which a person narrows what an app asks for (models, budget, expiry and permissions, in the fields
 * that `grantFormFields` reads) and decides. It needs no script.
 */
import { formatNanocredits } from "../../lib/money.js";
import type { GrantablePermission, GrantTerms } from "../../services/authorizations/grant-terms.js";
import type { FormFields } from "./form.js";
import { type Html, html } from "./html.js";

export interface ListedModel {
  readonly id: string;
  readonly title: string;
}

const PERMISSIONS: Readonly<Record<GrantablePermission, string>> = {
  profile: "Your name and e-mail address",
  balance: "Your balance",
  usage: "What you have used, and what it cost",
};

/** The form's first button is the one that Enter presses in a field: consent is a button of its own. */
const NO_DEFAULT = html`<button type="submit" disabled hidden></button>`;

/** What stands in the fields. */
interface Entered {
  readonly isEveryModel: boolean;
  readonly models: ReadonlySet<string>;
  readonly budget: string;
  readonly expiry: string;
  readonly permissions: ReadonlySet<string>;
}

/**
 * The fields, and the buttons that send `decision`. `models` are those that there are; `fields` what the person had entered before
 * something was found wrong with it.
 */
export function decisionFields(asked: GrantTerms, models: readonly ListedModel[], fields: FormFields | null): Html {
  return html`${NO_DEFAULT}
<p>It asks for a key to generate with, paid by you. Leave out whatever you do not want it to have.</p>
${termsFields(asked, models, fields)}
<p class="soft">You can end its access at any time: its key is among your API keys.</p>
<div class="buttons">
<button type="submit" name="decision" value="approve" class="primary">Allow</button>
<button type="submit" name="decision" value="deny" formnovalidate>Deny</button>
</div>`;
}

function termsFields(asked: GrantTerms, models: readonly ListedModel[], fields: FormFields | null): Html {
  const entered = fields ? fromFields(fields) : fromAsked(asked);
  return html`${modelFields(asked, models, entered)}
<fieldset>
<legend>Limits</legend>
<label for="budget">Budget in credits</label>
<input type="text" inputmode="decimal" id="budget" name="budget" value="${entered.budget}" required autocomplete="off" aria-describedby="budget-hint">
<small id="budget-hint">At most ${formatNanocredits(asked.creditBudget)}. One credit is worth one US dollar.</small>
<label for="expiry">Ends after days</label>
<input type="number" id="expiry" name="expiry" value="${entered.expiry}" min="1" max="${asked.expiresInDays}" required aria-describedby="expiry-hint">
<small id="expiry-hint">At most ${asked.expiresInDays}.</small>
</fieldset>
${permissionFields(asked, entered)}`;
}

function modelFields({ models: asked }: GrantTerms, models: readonly ListedModel[], entered: Entered): Html {
  if (asked === null) {
    return html`<fieldset class="models">
<legend>Models that it may use</legend>
${choice("radio", "model_choice", "all", entered.isEveryModel, "Every model, those to come included")}
${choice("radio", "model_choice", "chosen", !entered.isEveryModel, "Only these:")}
${modelList(models, entered)}
</fieldset>`;
  }
  const listed = asked.map((id) => models.find((model) => model.id === id) ?? { id, title: id });
  return html`<fieldset>
<legend>Models that it may use</legend>
${modelList(listed, entered)}
</fieldset>`;
}

function modelList(models: readonly ListedModel[], entered: Entered): Html {
  const choices = models.map(({ id, title }) =>
    choice("checkbox", "models", id, entered.models.has(id), title === id ? html`${id}` : html`${title} <small>${id}</small>`),
  );
  return html`<div class="${models.length > 6 ? "list scroll" : "list"}">${choices}</div>`;
}

function permissionFields({ permissions }: GrantTerms, entered: Entered): Html {
  if (permissions.length === 0) return html`<p class="soft">It cannot read your profile, your balance or your usage.</p>`;
  return html`<fieldset>
<legend>What it may read</legend>
${permissions.map((name) => choice("checkbox", "permissions", name, entered.permissions.has(name), PERMISSIONS[name]))}
</fieldset>`;
}

function choice(type: "checkbox" | "radio", name: string, value: string, isChecked: boolean, label: string | Html): Html {
  return html`<label class="choice"><input type="${type}" name="${name}" value="${value}"${isChecked ? html` checked` : ""}> <span>${label}</span></label>
`;
}

function fromAsked({ models, creditBudget, expiresInDays, permissions }: GrantTerms): Entered {
  return {
    isEveryModel: models === null,
    models: new Set(models ?? []),
    budget: formatNanocredits(creditBudget),
    expiry: String(expiresInDays),
    permissions: new Set(permissions),
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
