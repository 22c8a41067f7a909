/**
 * The terms of a grant: what an app requests, what a person approves, and the limits of the key (docs/spec/authorization.md#grants). A
 * person can only narrow the request.
 */
import * as z from "zod";
import { invalidInput } from "../../errors.js";
import { formatNanocredits, parseNanocredits } from "../../lib/money.js";
import { API_KEY_ALLOWED_MODELS_MAX, CREDITS_MAX } from "../../limits.js";
import type { Model } from "../catalog/model.js";
import { positiveCredits } from "../credits/credits-amount.js";
import { grantRefusal } from "../credits/refusals.js";
import type { RefusedFunds } from "../credits/refused-funds.js";
import { storableText } from "../requests/input.js";
import { GRANT_BUDGET_DEFAULT, GRANT_DAYS_DEFAULT, GRANT_DAYS_MAX } from "./limits.js";

/** Without `keys`: apps do not manage keys (docs/spec/keys.md#permissions). */
export const GRANTABLE_PERMISSIONS = ["profile", "balance", "usage"] as const;
export type GrantablePermission = (typeof GRANTABLE_PERMISSIONS)[number];

export interface GrantTerms {
  /** Canonical ids, at least one; null: every model, future ones included. */
  readonly models: readonly string[] | null;
  /** Nanocredits, more than 0. A granted key always has a budget. */
  readonly creditBudget: bigint;
  /** 1 to 365, counted from the key's creation. */
  readonly expiresInDays: number;
  readonly permissions: readonly GrantablePermission[];
  /** Percent that the app earns on top of prices. */
  readonly marginPercent: number;
}

const wholeDays = `must be a whole number of days from 1 to ${GRANT_DAYS_MAX}`;
export const days = z.int(wholeDays).min(1, wholeDays).max(GRANT_DAYS_MAX, wholeDays);
export const budget = positiveCredits;
export const permission = z.enum(GRANTABLE_PERMISSIONS);
export const modelNames = z.array(storableText.min(1).max(253)).max(API_KEY_ALLOWED_MODELS_MAX);

/** `profile,balance` or `profile balance`, as a query parameter or an OAuth scope; may be empty. `account:profile` is `profile`. */
export const permissionList = z
  .string()
  .transform((text) => [
    ...new Set(
      text
        .split(/[\s,]+/)
        .filter(Boolean)
        .map((name) => name.replace(/^account:/, "")),
    ),
  ])
  .pipe(z.array(permission));

const dayCount = z
  .string()
  .trim()
  .regex(/^\d{1,4}$/, wholeDays)
  .transform(Number)
  .pipe(days);

const creditsText = z
  .string()
  .meta({ pattern: "^\\s*\\d+(?:\\.\\d{1,9})?\\s*$" })
  .transform((text, issues) => {
    const nanocredits = parseNanocredits(text.trim());
    if (nanocredits !== null && nanocredits > 0n && nanocredits <= BigInt(CREDITS_MAX) * 10n ** 9n) return nanocredits;
    issues.addIssue(`must be an amount of credits above 0 and up to ${CREDITS_MAX}, such as 2.5`);
    return z.NEVER;
  });

/** The four query parameters of an app's request, as text (docs/spec/authorization.md#grants). */
export const termsQuery = {
  models: z
    .string()
    .transform((text) => [...new Set(text.split(",").map((name) => name.trim()))].filter(Boolean))
    .pipe(modelNames)
    .optional()
    .describe("A comma-separated list of model IDs that the app wants to use. Defaults to all models."),
  budget: creditsText.optional().describe("The budget in credits. Defaults to 5."),
  expiry: dayCount.optional().describe("The lifetime of the key in days. Defaults to 30."),
  permissions: permissionList.optional().describe("A comma-separated list of profile, balance and usage."),
};
export type TermsQuery = z.output<z.ZodObject<typeof termsQuery>>;

/** Finds a model that the caller may see, by id or alias. Throws BAD_REQUEST at `models`, suggesting the closest names. */
export type FindModel = (name: string) => Model;

/** Computes the requested terms, with defaults for absent ones. Throws BAD_REQUEST for an unknown model. */
export function toRequestedTerms(findModel: FindModel, requested: TermsQuery, marginPercent: number): GrantTerms {
  const {
    models = [],
    budget: creditBudget = GRANT_BUDGET_DEFAULT,
    expiry: expiresInDays = GRANT_DAYS_DEFAULT,
    permissions = [],
  } = requested;
  return { models: models.length === 0 ? null : toModelIds(findModel, models), creditBudget, expiresInDays, permissions, marginPercent };
}

/** The person's choice; absent fields stay as requested. */
export const grantChoice = z.strictObject({
  models: modelNames.nullable().optional(),
  creditBudget: budget.optional(),
  expiresInDays: days.optional(),
  permissions: z.array(permission).optional(),
});
export type GrantChoice = z.output<typeof grantChoice>;

/** One form field: absent, once or several times. */
const checkboxes = z
  .union([z.string(), z.array(z.string())])
  .optional()
  .transform((value) => (value === undefined ? [] : typeof value === "string" ? [value] : value));

/**
 * The same as form fields: `model_choice` (`all` or `chosen`; default `chosen`) with the checkboxes `models`, `budget` in credits, `expiry`
 * in days, the checkboxes `permissions`. An unticked checkbox is not granted.
 */
export const grantFormFields = {
  model_choice: z.enum(["all", "chosen"]).default("chosen"),
  models: checkboxes.pipe(modelNames),
  budget: creditsText,
  expiry: dayCount,
  permissions: checkboxes.pipe(z.array(permission)),
};
export type GrantForm = z.output<z.ZodObject<typeof grantFormFields>>;

export function toGrantChoice({ model_choice, models, budget: creditBudget, expiry: expiresInDays, permissions }: GrantForm): GrantChoice {
  return { models: model_choice === "all" ? null : models, creditBudget, expiresInDays, permissions };
}

/** The most that can be granted of a requested budget: not more than the account's balance. */
export function grantableBudget({ creditBudget }: GrantTerms, balance: bigint): bigint {
  return creditBudget < balance ? creditBudget : balance;
}

/**
 * Narrows the request to the choice of an account with that balance. Throws BAD_REQUEST, naming the field, for a choice wider than the
 * request or a budget beyond the balance, and INSUFFICIENT_BALANCE when the balance is empty.
 */
export function narrowTerms(
  findModel: FindModel,
  requested: GrantTerms,
  choice: GrantChoice,
  balance: bigint,
  funds: Pick<RefusedFunds, "topUp" | "topUpUrl">,
): GrantTerms {
  if (balance <= 0n) throw grantRefusal(choice.creditBudget ?? requested.creditBudget, balance, funds);
  const {
    creditBudget = grantableBudget(requested, balance),
    expiresInDays = requested.expiresInDays,
    permissions = requested.permissions,
  } = choice;
  if (creditBudget > requested.creditBudget) {
    throw invalidInput(
      `The budget can be at most the ${formatNanocredits(requested.creditBudget)} credits that were asked for.`,
      "creditBudget",
    );
  }
  if (creditBudget > balance) {
    throw invalidInput(`The budget can be at most the ${formatNanocredits(balance)} credits that your account has.`, "creditBudget");
  }
  if (expiresInDays > requested.expiresInDays) {
    throw invalidInput(`Access can last for at most the ${requested.expiresInDays} days that were asked for.`, "expiresInDays");
  }
  if (permissions.some((name) => !requested.permissions.includes(name))) {
    throw invalidInput("A permission that was not asked for cannot be granted.", "permissions");
  }
  return {
    models: narrowModels(findModel, requested.models, choice.models),
    creditBudget,
    expiresInDays,
    permissions: [...new Set(permissions)],
    marginPercent: requested.marginPercent,
  };
}

function narrowModels(
  findModel: FindModel,
  requested: GrantTerms["models"],
  chosen: readonly string[] | null | undefined,
): GrantTerms["models"] {
  if (chosen === undefined) return requested;
  if (chosen === null) {
    if (requested !== null) throw invalidInput("Only models that were asked for can be granted.", "models");
    return null;
  }
  if (chosen.length === 0) throw invalidInput("Choose at least one model, or deny.", "models");
  const ids = toModelIds(findModel, chosen);
  if (requested !== null && ids.some((id) => !requested.includes(id)))
    throw invalidInput("Only models that were asked for can be granted.", "models");
  return ids;
}

function toModelIds(findModel: FindModel, names: readonly string[]): string[] {
  return [...new Set(names.map((name) => findModel(name).id))];
}

/** Terms in a JSON column: nanocredits are digits. */
export interface StoredTerms {
  readonly models: readonly string[] | null;
  readonly creditBudget: string;
  readonly expiresInDays: number;
  readonly permissions: readonly GrantablePermission[];
  /** Absent in terms that an older process stored. */
  readonly marginPercent?: number;
}

export function toStoredTerms({ creditBudget, ...terms }: GrantTerms): StoredTerms {
  return { ...terms, creditBudget: String(creditBudget) };
}

export function fromStoredTerms({ models, creditBudget, expiresInDays, permissions, marginPercent = 0 }: StoredTerms): GrantTerms {
  return { models, creditBudget: BigInt(creditBudget), expiresInDays, permissions, marginPercent };
}
