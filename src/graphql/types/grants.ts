/** Terms of an app's authorization in both flows: those requested and those granted (docs/spec/authorization.md#grants). */
import { formatNanocredits } from "../../lib/money.js";
import type { GrantTerms as Terms } from "../../services/api-keys/grant-terms.js";
import type { IssuedToken as Token } from "../../services/authorizations/authorization-codes.js";
import { builder } from "../builder.js";
import { AccountPermissionEnum } from "./api-keys.js";

export const SESSION_ONLY = "For signed-in persons only, not for keys.";
export const UNNAMED_APP = "Null when the app did not identify itself.";
export const CREDIT_BUDGET_MAX =
  "The largest budget that can be granted now: the requested budget, or the account's balance when that is lower.";

export const GrantTerms = builder.objectRef<Terms>("GrantTerms").implement({
  description: "The terms of a key for an app.",
  fields: (t) => ({
    models: t.field({
      type: ["String"],
      nullable: true,
      description: "Canonical IDs of models. Null: all models, future ones included.",
      resolve: ({ models }) => models && [...models],
    }),
    creditBudget: t.field({
      type: "Credits",
      description: "The total credits that the key can spend.",
      resolve: ({ creditBudget }) => formatNanocredits(creditBudget),
    }),
    expiresInDays: t.exposeInt("expiresInDays", { description: "The lifetime in days, from the moment when the app fetches its key." }),
    permissions: t.field({
      type: [AccountPermissionEnum],
      description: "Permissions on the account.",
      resolve: ({ permissions }) => [...permissions],
    }),
    marginPercent: t.exposeInt("marginPercent", { description: "Percent that the app earns on top of prices. The key pays it." }),
  }),
});

export const IssuedToken = builder.objectRef<Token>("IssuedToken").implement({
  description: "A granted key.",
  fields: (t) => ({
    accessToken: t.exposeString("accessToken", { description: "The secret key. It is shown only once." }),
    scope: t.field({
      type: [AccountPermissionEnum],
      description: "Permissions on the account.",
      resolve: ({ scope }) => [...scope],
    }),
    expiresIn: t.exposeInt("expiresIn", { description: "Seconds until the key expires." }),
  }),
});

export const CHOICE_DESCRIPTION =
  "Omitted terms are granted as requested, the budget up to `creditBudgetMax`. Terms can only be narrowed, and no budget can exceed the balance.";

type InputFields = PothosSchemaTypes.InputFieldBuilder<(typeof builder)["$inferSchemaTypes"], "InputObject">;

/** Arguments with which a person narrows the requested terms. */
export function choiceFields(t: InputFields) {
  return {
    models: t.stringList({ description: "IDs or aliases of models, at least one, among those requested." }),
    creditBudget: t.field({ type: "Credits", description: "The total credits that the key can spend." }),
    expiresInDays: t.int({ description: "The lifetime in days, from the moment when the app fetches its key." }),
    permissions: t.field({ type: [AccountPermissionEnum], description: "Permissions on the account." }),
  };
}

/** Treats null like an omitted field. */
export function withoutNulls(input: object): object {
  return Object.fromEntries(Object.entries(input).filter(([, value]) => value !== null));
}
