/** What an app asks for and what a person grants it, in either flow (docs/spec/authorization.md#grants). */
import { formatNanocredits } from "../../lib/money.js";
import type { GrantTerms as Terms } from "../../services/api-keys/grant-terms.js";
import type { IssuedToken as Token } from "../../services/authorizations/authorization-codes.js";
import { builder } from "../builder.js";
import { AccountPermissionEnum } from "./api-keys.js";

export const SESSION_ONLY = "For a signed-in person; no key will do.";
export const UNNAMED_APP = "Null: it has not said who it is.";
export const CREDIT_BUDGET_MAX =
  "The most that can be granted now: the budget that is asked for, or the account's balance where that is less.";

export const GrantTerms = builder.objectRef<Terms>("GrantTerms").implement({
  description: "What a key may do that is granted to an app.",
  fields: (t) => ({
    models: t.field({
      type: ["String"],
      nullable: true,
      description: "Canonical ids. Null: every model, those to come included.",
      resolve: ({ models }) => models && [...models],
    }),
    creditBudget: t.field({
      type: "Credits",
      description: "The credits that the key can spend in all.",
      resolve: ({ creditBudget }) => formatNanocredits(creditBudget),
    }),
    expiresInDays: t.exposeInt("expiresInDays", { description: "Counted from when the app fetches its key." }),
    permissions: t.field({
      type: [AccountPermissionEnum],
      description: "What the key may do with the account.",
      resolve: ({ permissions }) => [...permissions],
    }),
  }),
});

export const IssuedToken = builder.objectRef<Token>("IssuedToken").implement({
  description: "The key that was granted.",
  fields: (t) => ({
    accessToken: t.exposeString("accessToken", { description: "A secret key. It is shown this once." }),
    scope: t.field({
      type: [AccountPermissionEnum],
      description: "What it may do with the account.",
      resolve: ({ scope }) => [...scope],
    }),
    expiresIn: t.exposeInt("expiresIn", { description: "Seconds until it ends." }),
  }),
});

export const CHOICE_DESCRIPTION =
  "What is left out is granted as it was asked for, the budget at most `creditBudgetMax`; nothing can be widened, and no budget is larger than the balance.";

type InputFields = PothosSchemaTypes.InputFieldBuilder<(typeof builder)["$inferSchemaTypes"], "InputObject">;

/** What a person leaves of what was asked for. */
export function choiceFields(t: InputFields) {
  return {
    models: t.stringList({ description: "Ids or aliases, at least one, of those that were asked for." }),
    creditBudget: t.field({ type: "Credits", description: "The credits that the key can spend in all." }),
    expiresInDays: t.int({ description: "For how many days, from when the app fetches its key." }),
    permissions: t.field({ type: [AccountPermissionEnum], description: "What the key may do with the account." }),
  };
}

/** GraphQL has two ways to leave a field out. */
export function withoutNulls(input: object): object {
  return Object.fromEntries(Object.entries(input).filter(([, value]) => value !== null));
}
