/** API keys (docs/spec/keys.md). */
import type { AccountPermission } from "../../context.js";
import { formatNanocredits } from "../../lib/money.js";
import { parsePermitted, requireKeyMaker } from "../../services/access/permissions.js";
import type { ApiKeyOrder as Order } from "../../services/api-keys/api-key-list.js";
import { type KeyTerms, WORTH_COLUMNS } from "../../services/api-keys/api-key-tree.js";
import type { SelectedApiKey, ShownWorth } from "../../services/api-keys/api-keys.js";
import { createApiKeyInput, updateApiKeyInput } from "../../services/api-keys/api-keys-input.js";
import { builder, describedValues } from "../builder.js";
import { readId } from "../global-ids.js";
import { batchedBy } from "../loaders.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { OrderDirection } from "../pages.js";
import { selectionOf } from "../selection.js";
import { App, appOf } from "./apps.js";

const NEEDS_KEYS = "Needs a secret key with the permission KEYS.";

export const ApiKeyType = builder.enumType("ApiKeyType", {
  description: "The type of an API key.",
  values: {
    SECRET: { value: "secret", description: "`sk_`: for servers." },
    PUBLISHABLE: {
      value: "publishable",
      description: "`pk_`: for client apps, rate limited. Anyone who sees the key can spend its budget.",
    },
  } as const,
});

export const AccountPermissionEnum = builder.enumType("AccountPermission", {
  description: "A permission of a key on its account.",
  values: {
    PROFILE: { value: "profile", description: "Read the profile: name, e-mail address, tier." },
    BALANCE: { value: "balance", description: "Read the balance." },
    USAGE: { value: "usage", description: "Read usage and jobs." },
    KEYS: { value: "keys", description: "Manage the account: keys, models, agents, webhooks. Only a signed-in person can grant it." },
  } as const,
});

const ApiKeyOrigin = builder.enumType("ApiKeyOrigin", {
  description: "How a key was created.",
  values: {
    CREATED: { value: "created", description: "Created by the account." },
    REDIRECT_FLOW: { value: "redirect_flow", description: "Granted to an app in the browser." },
    DEVICE_FLOW: { value: "device_flow", description: "Granted to an app on a device." },
    RUN: { value: "run", description: "The key of a run. Lists leave these keys out unless they are asked for." },
  } as const,
});

export const ApiKeyFilter = builder.inputType("ApiKeyFilter", {
  description: "Filters for keys. A key must match all of them.",
  fields: (t) => ({
    origins: t.field({
      type: [ApiKeyOrigin],
      description: "Keys of one of these origins. REDIRECT_FLOW and DEVICE_FLOW are the keys of connected apps.",
    }),
    externalId: t.string({ description: "The key with this external ID." }),
    search: t.string({ description: "Part of the name or of the first characters of the key, in any case; or the REST ID." }),
    types: t.field({ type: [ApiKeyType], description: "Keys of one of these types. PUBLISHABLE keys serve as app keys." }),
  }),
});

const ApiKeyOrderField = builder.enumType("ApiKeyOrderField", {
  description: "The field to sort keys by. Keys with equal values are sorted by ID.",
  values: describedValues<Order["field"]>({
    created_at: "The time of creation.",
    name: "The display name.",
    spent: "The credits that the key and its descendants have spent.",
    last_used_at: "The last use. Keys that were never used come last.",
  }),
});

export const ApiKeyOrder = builder.inputType("ApiKeyOrder", {
  description: "The sort order of keys.",
  fields: (t) => ({
    field: t.field({ type: ApiKeyOrderField, required: true, defaultValue: "created_at", description: "The field to sort by." }),
    direction: t.field({ type: OrderDirection, required: true, defaultValue: "desc", description: "The direction." }),
  }),
});

type KeyInTree = KeyTerms & { readonly id: string; readonly ancestorIds: string[] };

const worthOf = batchedBy<KeyInTree, ShownWorth>((ctx, keys) => ctx.services.apiKeys.worthsOf(ctx, keys));

export const ApiKey = builder.prismaObject("ApiKey", {
  description: "An API key of the caller's account. The key itself is shown once, by `createApiKey`.",
  interfaces: [Node],
  select: { id: true, createdAt: true },
  extensions: nodesReadBy(async (ctx, ids, info) =>
    byId(await ctx.services.apiKeys.getMany(ctx, ids, selectionOf(ctx, info, [], "ApiKey"))),
  ),
  fields: (t) => ({
    parentId: t.exposeID("parentId", {
      nullable: true,
      description:
        "The REST ID of the key that created this one. This key also draws on the parent's budget, cannot exceed the parent's permissions, and ends with it. Null when no key created it.",
    }),
    name: t.exposeString("name", { description: "The display name." }),
    type: t.field({ type: ApiKeyType, description: "The type of the key.", select: { type: true }, resolve: ({ type }) => type }),
    prefix: t.string({
      description: "The prefix of the key: `sk` or `pk`.",
      select: { type: true },
      resolve: ({ type }) => (type === "secret" ? "sk" : "pk"),
    }),
    start: t.exposeString("start", { description: "The first ten characters of the key, for display." }),
    permissions: t.field({
      type: [AccountPermissionEnum],
      description: "Permissions on the account, limited by those of the keys that created it.",
      select: WORTH_COLUMNS,
      resolve: async (row, _args, ctx) => [...(await worthOf(ctx, row)).permissions] as AccountPermission[],
    }),
    allowedModels: t.field({
      type: ["String"],
      nullable: true,
      description: "Models that the key may call, limited by those of the keys that created it. Null: all models. Empty: none.",
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
        "The credits that the key can still spend: the smallest remaining budget of the key and the keys that created it. Null: limited only by the balance.",
      select: WORTH_COLUMNS,
      resolve: async (row, _args, ctx) => {
        const { creditBudget } = await worthOf(ctx, row);
        return creditBudget === null ? null : formatNanocredits(creditBudget);
      },
    }),
    spent: t.field({
      type: "Credits",
      description: "The total spent by this key and the keys that it created.",
      select: { spentNanocredits: true },
      resolve: ({ spentNanocredits }) => formatNanocredits(spentNanocredits),
    }),
    expiresAt: t.field({
      type: "DateTime",
      nullable: true,
      description: "When the key expires, by its own expiry or a parent's. Null: never.",
      select: WORTH_COLUMNS,
      resolve: async (row, _args, ctx) => (await worthOf(ctx, row)).expiresAt,
    }),
    expiresIn: t.int({
      nullable: true,
      description: "Whole seconds until the key expires. Null: never.",
      select: WORTH_COLUMNS,
      resolve: async (row, _args, ctx) => (await worthOf(ctx, row)).expiresIn,
    }),
    isValid: t.boolean({
      description: "Whether the key is neither revoked nor expired.",
      select: WORTH_COLUMNS,
      resolve: async (row, _args, ctx) => (await worthOf(ctx, row)).isValid,
    }),
    isRateLimited: t.boolean({
      description: "Whether the key's requests are rate limited, as for publishable keys.",
      select: { type: true },
      resolve: ({ type }) => type === "publishable",
    }),
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When the key was created." }),
    lastUsedAt: t.expose("lastUsedAt", {
      type: "DateTime",
      nullable: true,
      description: "When the key was last used, to the minute. Null: never.",
    }),
    revokedAt: t.expose("revokedAt", { type: "DateTime", nullable: true, description: "When the key was revoked. Null when it was not." }),
    origin: t.field({
      type: ApiKeyOrigin,
      description: "How the key was created.",
      select: { origin: true },
      resolve: ({ origin }) => origin,
    }),
    appId: t.exposeID("appKeyId", {
      nullable: true,
      description:
        "The REST ID of the app that the key was granted to, which is the ID of its app key. Null when there is no app, or it did not identify itself.",
    }),
    app: t.field({
      type: App,
      nullable: true,
      description: "The app that the key was granted to. Null when there is no app, or it did not identify itself.",
      select: { appKeyId: true, name: true },
      resolve: async ({ appKeyId, name }, _args, ctx) =>
        appKeyId === null ? null : ((await appOf(ctx, appKeyId)) ?? { id: appKeyId, name }),
    }),
    resource: t.exposeString("resource", {
      nullable: true,
      description: "The address that the key was granted for: `/mcp` or the base of the gateway. Null: not bound to one.",
    }),
    redirectUrls: t.exposeStringList("redirectUrls", {
      description: "For app keys: the URLs that the consent flow may redirect to. Empty: any safe URL.",
    }),
    marginPercent: t.exposeInt("marginPercent", {
      description:
        "Percent that an app earns on top of prices: of an app key, the margin that it asks for; of a granted key, the agreed one.",
    }),
    marginPercentMax: t.int({
      nullable: true,
      description: "For an app key: the highest margin that the operator allows. 0: apps take none. Null for secret keys.",
      select: { type: true },
      resolve: ({ type }, _args, ctx) => (type === "publishable" ? ctx.services.appMargins.marginPercentMax : null),
    }),
    isManagement: t.exposeBoolean("isManagement", {
      description: "Whether the key only creates, changes and revokes keys, and generates nothing.",
    }),
    externalId: t.exposeID("externalId", {
      nullable: true,
      description: "The name that a provisioning tool gave the key. Null: none.",
    }),
  }),
});

const CreateApiKeyInput = builder.inputType("CreateApiKeyInput", {
  description: "Parameters of `createApiKey`.",
  fields: (t) => ({
    name: t.string({ required: true, description: "The display name." }),
    type: t.field({ type: ApiKeyType, defaultValue: "secret", description: "The type of the key." }),
    expiresIn: t.int({ description: "Seconds until the key expires, at most 365 days. Omitted: never, or with the key that creates it." }),
    allowedModels: t.stringList({
      description:
        "IDs or aliases of models that the key may call, among those of the creating key. Omitted or null: all of those. Empty: none.",
    }),
    creditBudget: t.field({
      type: "Credits",
      description:
        "The budget in credits. Omitted or null: no budget of its own. A key that another key creates also draws on that key's budget.",
    }),
    externalId: t.string({
      description:
        "A name of your own, unique among the account's keys. When a key has it already, that key is returned without its secret, or CONFLICT when its definition differs.",
    }),
    isManagement: t.boolean({
      description:
        "True: a key that only creates, changes, lists and revokes keys below it, within its own limits. Only a signed-in person creates one.",
    }),
    redirectUrls: t.stringList({
      description:
        "For a publishable key used as an app key: the exact URLs that the consent flow may redirect to, at most 10. Omitted or null: any safe URL.",
    }),
    accountPermissions: t.field({
      type: [AccountPermissionEnum],
      description: "Permissions, among those of the creating key. Defaults to none. A key cannot grant KEYS.",
    }),
  }),
});

interface CreatedApiKey {
  readonly apiKey: SelectedApiKey;
  readonly key: string | null;
}

const CreateApiKeyPayload = builder.objectRef<CreatedApiKey>("CreateApiKeyPayload").implement({
  description: "The result of `createApiKey`.",
  fields: (t) => ({
    apiKey: t.field({ type: ApiKey, description: "The key without its secret.", resolve: ({ apiKey }) => apiKey }),
    key: t.exposeString("key", {
      nullable: true,
      description: "The key itself. It is shown once and cannot be read again. Null when a key with the `externalId` existed.",
    }),
  }),
});

builder.mutationField("createApiKey", (t) =>
  t.field({
    type: CreateApiKeyPayload,
    nullable: true,
    description: `Creates an API key. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreateApiKeyInput, required: true, description: "The key to create." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const { apiKeys } = ctx.services;
      const { apiKey, key } = await apiKeys.create(ctx, parsePermitted(ctx, requireKeyMaker, createApiKeyInput, input));
      return { apiKey: await apiKeys.get(ctx, apiKey.id, selectionOf(ctx, info, ["apiKey"])), key };
    },
  }),
);

const UpdateApiKeyInput = builder.inputType("UpdateApiKeyInput", {
  description: "Parameters of `updateApiKey`. Omitted fields do not change.",
  fields: (t) => ({
    id: t.id({ required: true, description: "The ID of the key." }),
    name: t.string({ description: "The display name." }),
    allowedModels: t.stringList({ description: "IDs or aliases of models that the key may call. Null: all. Empty: none." }),
    creditBudget: t.field({ type: "Credits", description: "The credits that the key can spend from now on. Null: no budget of its own." }),
    expiresIn: t.int({ description: "Seconds from now until the key expires. Null: never." }),
    redirectUrls: t.stringList({ description: "Replaces the registered redirect URLs. Null or empty: any safe URL." }),
  }),
});

const UpdateApiKeyPayload = builder.objectRef<{ readonly apiKey: SelectedApiKey }>("UpdateApiKeyPayload").implement({
  description: "The result of `updateApiKey`.",
  fields: (t) => ({ apiKey: t.field({ type: ApiKey, description: "The key after the change.", resolve: ({ apiKey }) => apiKey }) }),
});

builder.mutationField("updateApiKey", (t) =>
  t.field({
    type: UpdateApiKeyPayload,
    nullable: true,
    description: `Updates an API key. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: UpdateApiKeyInput, required: true, description: "The key and its changes." }) },
    resolve: async (_root, { input: { id, ...changes } }, ctx, info) => {
      const { apiKeys } = ctx.services;
      const input = parsePermitted(ctx, requireKeyMaker, updateApiKeyInput, changes);
      const apiKey = await apiKeys.update(ctx, readId(id, "ApiKey", "id"), input);
      return { apiKey: await apiKeys.get(ctx, apiKey.id, selectionOf(ctx, info, ["apiKey"])) };
    },
  }),
);

const RevokeApiKeyInput = builder.inputType("RevokeApiKeyInput", {
  description: "Parameters of `revokeApiKey`.",
  fields: (t) => ({ id: t.id({ required: true, description: "The ID of the key." }) }),
});

const RevokeApiKeyPayload = builder.objectRef<{ readonly apiKey: SelectedApiKey }>("RevokeApiKeyPayload").implement({
  description: "The result of `revokeApiKey`.",
  fields: (t) => ({ apiKey: t.field({ type: ApiKey, description: "The revoked key.", resolve: ({ apiKey }) => apiKey }) }),
});

builder.mutationField("revokeApiKey", (t) =>
  t.field({
    type: RevokeApiKeyPayload,
    nullable: true,
    description: `Revokes a key permanently, with every key that descends from it. The key that authenticates this request cannot be revoked. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: RevokeApiKeyInput, required: true, description: "The key to revoke." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const { apiKeys } = ctx.services;
      const { id } = await apiKeys.revoke(ctx, readId(input.id, "ApiKey", "id"));
      return { apiKey: await apiKeys.get(ctx, id, selectionOf(ctx, info, ["apiKey"])) };
    },
  }),
);
