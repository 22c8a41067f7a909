/** Input of operations that create, list or change API keys (docs/spec/keys.md#operations). */
import * as z from "zod";
import { inUnit } from "../../lib/issue-words.js";
import { API_KEY_ALLOWED_MODELS_MAX, API_KEY_EXPIRES_IN_SECONDS_MAX, API_KEY_NAME_CHARS_MAX } from "../../limits.js";
import { ApiKeyOrigin, ApiKeyType } from "../../store/generated/prisma/enums.js";
import { creditsAmount } from "../credits/credits-amount.js";
import { nonBlankText, shownText, storableText } from "../requests/input.js";
import { redirectUrls } from "./redirect-url.js";

const permissionName = z.enum(["profile", "balance", "usage", "keys"]);
const externalId = shownText
  .trim()
  .min(1)
  .max(API_KEY_NAME_CHARS_MAX)
  .meta({ allOf: [{ pattern: "\\S" }] });
const editableFields = {
  name: shownText
    .trim()
    .min(1)
    .max(API_KEY_NAME_CHARS_MAX)
    .meta({ allOf: [{ pattern: "\\S" }] }),
  expiresIn: inUnit(z.int().min(1).max(API_KEY_EXPIRES_IN_SECONDS_MAX), "seconds").nullable(),
  allowedModels: z.array(storableText.min(1).max(253)).max(API_KEY_ALLOWED_MODELS_MAX).nullable(),
  creditBudget: creditsAmount.nullable(),
  /** Of an app key; null or empty: any safe address. */
  redirectUrls: redirectUrls.nullable(),
};

export const createApiKeyInput = z.strictObject({
  name: editableFields.name,
  type: z.enum(["secret", "publishable"]).default("secret"),
  expiresIn: editableFields.expiresIn.optional(),
  allowedModels: editableFields.allowedModels.optional(),
  creditBudget: editableFields.creditBudget.optional(),
  accountPermissions: z.array(permissionName).nullable().optional(),
  redirectUrls: editableFields.redirectUrls.optional(),
  /** Unique in the account: a key of this name is created once (docs/spec/keys.md#external-ids). */
  externalId: externalId.nullable().optional(),
  isManagement: z.boolean().nullable().optional(),
});
export type CreateApiKeyInput = z.output<typeof createApiKeyInput>;

export const updateApiKeyInput = z.strictObject(editableFields).partial();
export type UpdateApiKeyInput = z.output<typeof updateApiKeyInput>;

/** Selects keys of an account that match every given field. */
export const apiKeyFilter = z.strictObject({
  origins: z.array(z.enum(ApiKeyOrigin)).min(1).max(Object.keys(ApiKeyOrigin).length).nullish(),
  externalId: nonBlankText.max(API_KEY_NAME_CHARS_MAX).nullish(),
  search: nonBlankText.max(API_KEY_NAME_CHARS_MAX).nullish(),
  types: z.array(z.enum(ApiKeyType)).min(1).max(Object.keys(ApiKeyType).length).nullish(),
});
export type ApiKeyFilter = z.input<typeof apiKeyFilter>;
