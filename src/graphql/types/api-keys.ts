/** API keys (docs/spec/keys.md): the caller's own, and the one that it calls with. */
import type { AccountPermission } from "../../context.js";
import { formatNanocredits } from "../../lib/money.js";
import { parsePermitted, requireKeyManager } from "../../services/access/permissions.js";
import { type KeyTerms, WORTH_COLUMNS } from "../../services/api-keys/api-key-tree.js";
import type { SelectedApiKey, ShownWorth } from "../../services/api-keys/api-keys.js";
import { createApiKeyInput, updateApiKeyInput } from "../../services/api-keys/api-keys-input.js";
import { builder } from "../builder.js";
import { readId } from "../global-ids.js";
import { batchedBy } from "../loaders.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { selectionOf } from "../selection.js";
import { App, appOf } from "./apps.js";

const NEEDS_KEYS = "Needs a secret key with the permission KEYS.";

export const ApiKeyType = builder.enumType("ApiKeyType", {
  description: "What a key is for.",
  values: {
    SECRET: { value: "secret", description: "`sk_`: for servers." },
    PUBLISHABLE: { value: "publishable", description: "`pk_`: for clients, rate limited; anyone who sees it can spend its budget." },
  } as const,
});

export const AccountPermissionEnum = builder.enumType("AccountPermission", {
  description: "What a key may do with the account that it belongs to.",
  values: {
    PROFILE: { value: "profile", description: "See who the account is: name, e-mail address, tier." },
    BALANCE: { value: "balance", description: "See what the account can spend." },
    USAGE: { value: "usage", description: "See what the account has used, and its jobs." },
    KEYS: { value: "keys", description: "Manage the account: its keys, models, agents, webhooks. Only a signed-in person gives it." },
  } as const,
});

const ApiKeyOrigin = builder.enumType("ApiKeyOrigin", {
  description: "How the account came by a key.",
  values: {
    CREATED: { value: "created", description: "The account has made it." },
    REDIRECT_FLOW: { value: "redirect_flow", description: "Granted to an app in the browser." },
    DEVICE_FLOW: { value: "device_flow", description: "Granted to an app on a device." },
  } as const,
});

export const ApiKeyFilter = builder.inputType("ApiKeyFilter", {
  description: "Which keys: those that answer to all of it.",
  fields: (t) => ({
    origins: t.field({
      type: [ApiKeyOrigin],
      description: "Those that the account came by in one of these ways. REDIRECT_FLOW and DEVICE_FLOW: the keys that apps act with.",
    }),
    types: t.field({ type: [ApiKeyType], description: "Those of one of these types. PUBLISHABLE: the keys that apps show." }),
  }),
});

type KeyInTree = KeyTerms & { readonly id: string; readonly ancestorIds: string[] };

const worthOf = batchedBy<KeyInTree, ShownWorth>((ctx, keys) => ctx.services.apiKeys.worthsOf(ctx, keys));

export const ApiKey = builder.prismaObject("ApiKey", {
  description: "An API key of the caller's account. Its value is shown once, by `createApiKey`.",
  interfaces: [Node],
  select: { id: true, createdAt: true },
  extensions: nodesReadBy(async (ctx, ids, info) =>
    byId(await ctx.services.apiKeys.getMany(ctx, ids, selectionOf(ctx, info, [], "ApiKey"))),
  ),
  fields: (t) => ({
    parentId: t.exposeID("parentId", {
      nullable: true,
      description:
        "The REST id of the key that made it: it draws on that key's budget too, may do nothing that it may not, and ends with it. Null: no key did.",
    }),
    name: t.exposeString("name", { description: "What its account calls it." }),
    type: t.field({ type: ApiKeyType, description: "What it is for.", select: { type: true }, resolve: ({ type }) => type }),
    prefix: t.string({
      description: "`sk` or `pk`.",
      select: { type: true },
      resolve: ({ type }) => (type === "secret" ? "sk" : "pk"),
    }),
    start: t.exposeString("start", { description: "The first ten characters of the key, to tell it from others." }),
    permissions: t.field({
      type: [AccountPermissionEnum],
      description: "What it may do with the account, as far as the keys that made it may, too.",
      select: WORTH_COLUMNS,
      resolve: async (row, _args, ctx) => [...(await worthOf(ctx, row)).permissions] as AccountPermission[],
    }),
    allowedModels: t.field({
      type: ["String"],
      nullable: true,
      description: "The models that it may call, as far as the keys that made it may, too. Null: all. Empty: none.",
      select: WORTH_COLUMNS,
      resolve: async (row, _args, ctx) => {
        const { allowedModels } = await worthOf(ctx, row);
        return allowedModels && [...allowedModels];
      },
    }),
    creditBudget: t.field({
      type: "Credits",
      nullable: true,
      description:
        "The credits that it can still spend: the smallest of what remains of its budget and of those of the keys that made it. Null: no limit but the balance.",
      select: WORTH_COLUMNS,
      resolve: async (row, _args, ctx) => {
        const { creditBudget } = await worthOf(ctx, row);
        return creditBudget === null ? null : formatNanocredits(creditBudget);
      },
    }),
    spent: t.field({
      type: "Credits",
      description: "What it, and the keys that it has made, have spent in all.",
      select: { spentNanocredits: true },
      resolve: ({ spentNanocredits }) => formatNanocredits(spentNanocredits),
    }),
    expiresAt: t.field({
      type: "DateTime",
      nullable: true,
      description: "When it ends, by itself or with a key that made it. Null: never.",
      select: WORTH_COLUMNS,
      resolve: async (row, _args, ctx) => (await worthOf(ctx, row)).expiresAt,
    }),
    expiresIn: t.int({
      nullable: true,
      description: "Whole seconds until it ends. Null: never.",
      select: WORTH_COLUMNS,
      resolve: async (row, _args, ctx) => (await worthOf(ctx, row)).expiresIn,
    }),
    isValid: t.boolean({
      description: "Neither revoked nor at its end.",
      select: WORTH_COLUMNS,
      resolve: async (row, _args, ctx) => (await worthOf(ctx, row)).isValid,
    }),
    isRateLimited: t.boolean({
      description: "Whether its requests are limited in number, as those of publishable keys are.",
      select: { type: true },
      resolve: ({ type }) => type === "publishable",
    }),
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When it was made." }),
    lastUsedAt: t.expose("lastUsedAt", {
      type: "DateTime",
      nullable: true,
      description: "When it was last used, to the minute. Null: never.",
    }),
    revokedAt: t.expose("revokedAt", { type: "DateTime", nullable: true, description: "When it was revoked. Null: it was not." }),
    origin: t.field({
      type: ApiKeyOrigin,
      description: "How the account came by it.",
      select: { origin: true },
      resolve: ({ origin }) => origin,
    }),
    appId: t.exposeID("appKeyId", {
      nullable: true,
      description:
        "The REST id of the app that it was granted to, which is that of its app key. Null: none, or one that does not say who it is.",
    }),
    app: t.field({
      type: App,
      nullable: true,
      description: "The app that it was granted to. Null: none, or one that does not say who it is.",
      select: { appKeyId: true, name: true },
      resolve: async ({ appKeyId, name }, _args, ctx) =>
        appKeyId === null ? null : ((await appOf(ctx, appKeyId)) ?? { id: appKeyId, name }),
    }),
    redirectUrls: t.exposeStringList("redirectUrls", {
      description: "Of an app key: where its consent flow may return to. Empty: anywhere that is safe.",
    }),
  }),
});

builder.queryField("apiKey", (t) =>
  t.field({
    type: ApiKey,
    nullable: true,
    description: "The key that this request was made with. Works with any key.",
    deprecationReason: "Use `me { currentApiKey }`.",
    resolve: (_root, _args, ctx, info) => ctx.services.apiKeys.currentSelected(ctx, selectionOf(ctx, info)),
  }),
);

const CreateApiKeyInput = builder.inputType("CreateApiKeyInput", {
  description: "The key to be made.",
  fields: (t) => ({
    name: t.string({ required: true, description: "What to call it." }),
    type: t.field({ type: ApiKeyType, defaultValue: "secret", description: "What it is for." }),
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
  readonly apiKey: SelectedApiKey;
  readonly key: string;
}

const CreateApiKeyPayload = builder.objectRef<CreatedApiKey>("CreateApiKeyPayload").implement({
  description: "A new key.",
  fields: (t) => ({
    apiKey: t.field({ type: ApiKey, description: "What is known of it from now on.", resolve: ({ apiKey }) => apiKey }),
    key: t.exposeString("key", { description: "The key itself. It is shown this once and cannot be asked for again." }),
  }),
});

builder.mutationField("createApiKey", (t) =>
  t.field({
    type: CreateApiKeyPayload,
    nullable: true,
    description: `Makes a key. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreateApiKeyInput, required: true, description: "The key to be made." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const { apiKeys } = ctx.services;
      const { apiKey, key } = await apiKeys.create(ctx, parsePermitted(ctx, requireKeyManager, createApiKeyInput, input));
      return { apiKey: await apiKeys.get(ctx, apiKey.id, selectionOf(ctx, info, ["apiKey"])), key };
    },
  }),
);

const UpdateApiKeyInput = builder.inputType("UpdateApiKeyInput", {
  description: "Only the fields that are sent change.",
  fields: (t) => ({
    id: t.id({ required: true, description: "Which key." }),
    name: t.string({ description: "What to call it." }),
    allowedModels: t.stringList({ description: "Null: all. Empty: none." }),
    creditBudget: t.field({ type: "Credits", description: "What remains from now on. Null: no limit of its own." }),
    expiresIn: t.int({ description: "Seconds from now. Null: never." }),
    redirectUrls: t.stringList({ description: "Instead of those that are registered. Null or empty: anywhere that is safe." }),
  }),
});

const UpdateApiKeyPayload = builder.objectRef<{ readonly apiKey: SelectedApiKey }>("UpdateApiKeyPayload").implement({
  description: "A key that has been changed.",
  fields: (t) => ({ apiKey: t.field({ type: ApiKey, description: "As it now is.", resolve: ({ apiKey }) => apiKey }) }),
});

builder.mutationField("updateApiKey", (t) =>
  t.field({
    type: UpdateApiKeyPayload,
    nullable: true,
    description: `Changes a key. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: UpdateApiKeyInput, required: true, description: "Which key, and what changes." }) },
    resolve: async (_root, { input: { id, ...changes } }, ctx, info) => {
      const { apiKeys } = ctx.services;
      const input = parsePermitted(ctx, requireKeyManager, updateApiKeyInput, changes);
      const apiKey = await apiKeys.update(ctx, readId(id, "ApiKey", "id"), input);
      return { apiKey: await apiKeys.get(ctx, apiKey.id, selectionOf(ctx, info, ["apiKey"])) };
    },
  }),
);

const RevokeApiKeyInput = builder.inputType("RevokeApiKeyInput", {
  description: "The key to be revoked.",
  fields: (t) => ({ id: t.id({ required: true, description: "Which key." }) }),
});

const RevokeApiKeyPayload = builder.objectRef<{ readonly apiKey: SelectedApiKey }>("RevokeApiKeyPayload").implement({
  description: "A key that has been revoked.",
  fields: (t) => ({ apiKey: t.field({ type: ApiKey, description: "What is still known of it.", resolve: ({ apiKey }) => apiKey }) }),
});

builder.mutationField("revokeApiKey", (t) =>
  t.field({
    type: RevokeApiKeyPayload,
    nullable: true,
    description: `Revokes a key for good, and every key that descends from it; not the one that this request is made with. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: RevokeApiKeyInput, required: true, description: "Which key." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const { apiKeys } = ctx.services;
      const { id } = await apiKeys.revoke(ctx, readId(input.id, "ApiKey", "id"));
      return { apiKey: await apiKeys.get(ctx, id, selectionOf(ctx, info, ["apiKey"])) };
    },
  }),
);
