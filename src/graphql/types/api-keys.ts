/** API keys (docs/spec/keys.md): the caller's own, and the one that it calls with. */
import type { AccountPermission, ApiKeyType as ApiKeyTypeName } from "../../context.js";
import { formatNanocredits } from "../../lib/money.js";
import { parsePermitted, requireKeyManager } from "../../services/access/permissions.js";
import type { ApiKeyRow } from "../../services/api-keys/api-key-rows.js";
import type { CurrentApiKey } from "../../services/api-keys/api-keys.js";
import { createApiKeyInput, updateApiKeyInput } from "../../services/api-keys/api-keys-input.js";
import { builder, enumValues } from "../builder.js";

export const ApiKeyType = builder.enumType("ApiKeyType", {
  description: "SECRET (`sk_`): for servers. PUBLISHABLE (`pk_`): for clients, rate limited; anyone who sees it can spend its budget.",
  values: enumValues<ApiKeyTypeName>(["secret", "publishable"]),
});

export const AccountPermissionEnum = builder.enumType("AccountPermission", {
  description: "What a key may do with the account that it belongs to.",
  values: enumValues<AccountPermission>(["profile", "balance", "usage", "keys"]),
});

const ApiKeyOrigin = builder.enumType("ApiKeyOrigin", {
  description: "CREATED by the account. REDIRECT_FLOW, DEVICE_FLOW: granted to an app.",
  values: enumValues<ApiKeyRow["origin"]>(["created", "redirect_flow", "device_flow"]),
});

const ApiKeyApp = builder.objectRef<NonNullable<ApiKeyRow["app"]>>("ApiKeyApp").implement({
  description: "The app that a key was granted to.",
  fields: (t) => ({
    id: t.exposeID("id", { description: "The id of its app key." }),
    name: t.exposeString("name"),
  }),
});

const ApiKeyDetails = builder.interfaceRef<ApiKeyRow>("ApiKeyDetails").implement({
  description: "What is known of an API key. Its value is shown once, by `createApiKey`.",
  fields: (t) => ({
    id: t.exposeID("id"),
    parentId: t.exposeID("parentId", {
      nullable: true,
      description:
        "The key that made it: it draws on that key's budget too, may do nothing that it may not, and ends with it. Null: no key did.",
    }),
    name: t.exposeString("name"),
    type: t.expose("type", { type: ApiKeyType }),
    prefix: t.exposeString("prefix", { description: "`sk` or `pk`." }),
    start: t.exposeString("start", { description: "The first ten characters of the key, to tell it from others." }),
    permissions: t.field({ type: [AccountPermissionEnum], resolve: (row) => row.permissions as AccountPermission[] }),
    allowedModels: t.field({
      type: ["String"],
      nullable: true,
      description: "The models that it may call, as far as the keys that made it may, too. Null: all. Empty: none.",
      resolve: (row) => row.allowedModels && [...row.allowedModels],
    }),
    creditBudget: t.field({
      type: "Credits",
      nullable: true,
      description:
        "The credits that it can still spend: the smallest of what remains of its budget and of those of the keys that made it. Null: no limit but the balance.",
      resolve: (row) => (row.creditBudget === null ? null : formatNanocredits(row.creditBudget)),
    }),
    expiresAt: t.expose("expiresAt", { type: "DateTime", nullable: true }),
    createdAt: t.expose("createdAt", { type: "DateTime" }),
    lastUsedAt: t.expose("lastUsedAt", { type: "DateTime", nullable: true }),
    revokedAt: t.expose("revokedAt", { type: "DateTime", nullable: true }),
    origin: t.expose("origin", { type: ApiKeyOrigin }),
    app: t.expose("app", { type: ApiKeyApp, nullable: true, description: "Null: none, or one that does not say who it is." }),
    redirectUrls: t.stringList({
      description: "Of an app key: where its consent flow may return to. Empty: anywhere that is safe.",
      resolve: (row) => [...row.redirectUrls],
    }),
  }),
});

export const ApiKey = builder.objectRef<ApiKeyRow>("ApiKey").implement({
  description: "An API key of the caller's account.",
  interfaces: [ApiKeyDetails],
});

const CurrentApiKeyType = builder.objectRef<CurrentApiKey>("CurrentApiKey").implement({
  description: "The key that this request was made with.",
  interfaces: [ApiKeyDetails],
  fields: (t) => ({
    valid: t.exposeBoolean("valid"),
    expiresIn: t.exposeInt("expiresIn", { nullable: true, description: "Whole seconds until it expires. Null: never." }),
    rateLimitEnabled: t.exposeBoolean("rateLimitEnabled"),
  }),
});

builder.queryField("apiKey", (t) =>
  t.field({
    type: CurrentApiKeyType,
    nullable: true,
    description: "The key that this request was made with. Works with any key.",
    resolve: (_root, _args, ctx) => ctx.services.apiKeys.current(ctx),
  }),
);

const CreateApiKeyInput = builder.inputType("CreateApiKeyInput", {
  fields: (t) => ({
    name: t.string({ required: true }),
    type: t.field({ type: ApiKeyType, description: "SECRET unless stated." }),
    expiresIn: t.int({ description: "Seconds from now, at most 365 days. Omitted: never, or when the key that makes it does." }),
    allowedModels: t.stringList({
      description: "Ids or aliases, of those that the key that makes it may call. Omitted or null: all of them. Empty: none.",
    }),
    creditBudget: t.field({
      type: "Credits",
      description: "Omitted or null: no limit of its own. What a key makes draws on that key's budget, too.",
    }),
    redirectUrls: t.stringList({
      description:
        "Of a publishable key that an app shows: where its consent flow may return to, exactly; at most 10. Omitted or null: anywhere that is safe.",
    }),
    accountPermissions: t.field({
      type: [AccountPermissionEnum],
      description: "None unless stated; of those that the key that makes it holds. KEYS cannot be given through a key.",
    }),
  }),
});

interface CreatedApiKey {
  readonly apiKey: ApiKeyRow;
  readonly key: string;
}

const CreateApiKeyPayload = builder.objectRef<CreatedApiKey>("CreateApiKeyPayload").implement({
  fields: (t) => ({
    apiKey: t.field({ type: ApiKey, resolve: ({ apiKey }) => apiKey }),
    key: t.exposeString("key", { description: "The key itself. It is shown this once and cannot be asked for again." }),
  }),
});

builder.mutationField("createApiKey", (t) =>
  t.field({
    type: CreateApiKeyPayload,
    nullable: true,
    description: "Makes a key. Needs a secret key with the permission KEYS.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreateApiKeyInput, required: true }) },
    resolve: (_root, { input }, ctx) => ctx.services.apiKeys.create(ctx, parsePermitted(ctx, requireKeyManager, createApiKeyInput, input)),
  }),
);

const UpdateApiKeyInput = builder.inputType("UpdateApiKeyInput", {
  description: "Only the fields that are sent change.",
  fields: (t) => ({
    id: t.id({ required: true }),
    name: t.string(),
    allowedModels: t.stringList({ description: "Null: all. Empty: none." }),
    creditBudget: t.field({ type: "Credits", description: "What remains from now on. Null: no limit of its own." }),
    expiresIn: t.int({ description: "Seconds from now. Null: never." }),
    redirectUrls: t.stringList({ description: "Instead of those that are registered. Null or empty: anywhere that is safe." }),
  }),
});

builder.mutationField("updateApiKey", (t) =>
  t.field({
    type: ApiKey,
    nullable: true,
    description: "Changes a key. Needs a secret key with the permission KEYS.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: UpdateApiKeyInput, required: true }) },
    resolve: (_root, { input: { id, ...changes } }, ctx) =>
      ctx.services.apiKeys.update(ctx, id, parsePermitted(ctx, requireKeyManager, updateApiKeyInput, changes)),
  }),
);

const RevokeApiKeyInput = builder.inputType("RevokeApiKeyInput", {
  fields: (t) => ({ id: t.id({ required: true }) }),
});

builder.mutationField("revokeApiKey", (t) =>
  t.field({
    type: ApiKey,
    nullable: true,
    description:
      "Revokes a key for good, and every key that descends from it; not the one that this request is made with. Needs a secret key with the permission KEYS.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: RevokeApiKeyInput, required: true }) },
    resolve: (_root, { input }, ctx) => ctx.services.apiKeys.revoke(ctx, input.id),
  }),
);
