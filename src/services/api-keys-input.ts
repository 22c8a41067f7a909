/** What is said of an API key by whoever makes or changes it (Spec 4.5, decisions "Keys"). */
import * as z from "zod";
import { API_KEY_ALLOWED_MODELS_MAX, API_KEY_EXPIRES_IN_SECONDS_MAX, API_KEY_NAME_CHARS_MAX } from "../limits.js";
import { redirectUrls } from "./authorizations/redirect-url.js";
import { creditsAmount } from "./credits/credits-amount.js";
import { storableText } from "./input.js";

const permissionName = z.enum(["profile", "balance", "usage", "keys"]);
const editableFields = {
  name: storableText.trim().min(1).max(API_KEY_NAME_CHARS_MAX),
  expiresIn: z.int().min(1).max(API_KEY_EXPIRES_IN_SECONDS_MAX).nullable(),
  allowedModels: z.array(storableText.min(1).max(253)).max(API_KEY_ALLOWED_MODELS_MAX).nullable(),
  creditBudget: creditsAmount.nullable(),
  /** Of an app key; null or empty: its flows may return to any address that is safe. */
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
});
export type CreateApiKeyInput = z.output<typeof createApiKeyInput>;

export const updateApiKeyInput = z.strictObject(editableFields).partial();
export type UpdateApiKeyInput = z.output<typeof updateApiKeyInput>;
