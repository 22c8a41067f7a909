/** Vendor keys of the account (docs/spec/vendor-keys.md). */
import type { Page, PageRequest } from "../../lib/pagination.js";
import { parsePermitted, requireKeyManager } from "../../services/access/permissions.js";
import { VENDOR_KEYS_PER_ACCOUNT_MAX } from "../../services/vendor-keys/limits.js";
import { createVendorKeyInput, type SelectedVendorKey, updateVendorKeyInput } from "../../services/vendor-keys/vendor-keys.js";
import { builder, describedValues } from "../builder.js";
import { readId } from "../global-ids.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { createdPosition, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { connectionSelectionOf, selectionOf } from "../selection.js";
import { Account } from "./accounts.js";

const NEEDS_KEYS = "Needs a secret key with the permission KEYS.";
const NAME = "The name, unique among the account's vendor keys.";
const SECRET = "The key itself. It is stored sealed and never returned.";
const MODELS = "IDs of the models whose calls use the key. Null: every model of the vendor.";
const API_KEYS =
  "REST IDs of the API keys whose calls use it, with the keys below them. Null: every secret key and session of the account.";
const ENABLED = "Whether calls use the key.";

const VendorKeyUse = builder.enumType("VendorKeyUse", {
  description: "When calls use a vendor key.",
  values: describedValues({
    before: "Before the operator's keys, which serve when it fails.",
    after: "After the operator's keys, when those fail.",
    only: "Instead of the operator's keys: when it fails, the call fails.",
  }),
});

const VendorKeyRefusal = builder.enumType("VendorKeyRefusal", {
  description: "Why a vendor refuses a key.",
  values: describedValues({
    credential_refused: "The vendor does not accept the key.",
    payment_required: "The account at the vendor has no funds left.",
  }),
});
type Refusal = "credential_refused" | "payment_required";

const VendorKey = builder.prismaObject("VendorKey", {
  description: "A key of the account at a vendor, used beside or instead of the operator's keys.",
  interfaces: [Node],
  select: { id: true, createdAt: true },
  extensions: nodesReadBy(async (ctx, ids, info) =>
    byId(await ctx.services.vendorKeys.getMany(ctx, ids, selectionOf(ctx, info, [], "VendorKey"))),
  ),
  fields: (t) => ({
    vendor: t.exposeString("vendor", { description: "The ID of the upstream that gets it." }),
    name: t.exposeString("name", { description: NAME }),
    ending: t.string({
      nullable: true,
      description: "The last four characters of the secret. Null for a short one.",
      select: { ending: true },
      resolve: ({ ending }) => (ending === "" ? null : ending),
    }),
    use: t.field({ type: VendorKeyUse, description: "When calls use it.", select: { use: true }, resolve: ({ use }) => use }),
    modelIds: t.idList({
      nullable: true,
      description: MODELS,
      select: { models: true },
      resolve: ({ models }) => (models.length === 0 ? null : models),
    }),
    apiKeyIds: t.idList({
      nullable: true,
      description: API_KEYS,
      select: { apiKeyIds: true },
      resolve: ({ apiKeyIds }) => (apiKeyIds.length === 0 ? null : apiKeyIds),
    }),
    isEnabled: t.exposeBoolean("isEnabled", { description: ENABLED }),
    refusal: t.field({
      type: VendorKeyRefusal,
      nullable: true,
      description: "Why the vendor refuses the key. Null: it was accepted last.",
      select: { refusal: true },
      resolve: ({ refusal }) => refusal as Refusal | null,
    }),
    refusedAt: t.expose("refusedAt", { type: "DateTime", nullable: true, description: "Since when the vendor refuses the key." }),
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When the key was added." }),
    updatedAt: t.expose("updatedAt", { type: "DateTime", description: "When the key was last changed." }),
  }),
});

const VendorKeyTerms = builder.objectRef<{ readonly vendors: readonly string[]; readonly feePercent: string }>("VendorKeyTerms").implement({
  description: "The terms of vendor keys on this gateway.",
  fields: (t) => ({
    vendors: t.stringList({ description: "The vendors that take vendor keys.", resolve: ({ vendors }) => [...vendors] }),
    feePercent: t.exposeString("feePercent", {
      description: "The percentage of a model's price that a call by a vendor key is charged, as a decimal.",
    }),
  }),
});

builder.prismaObjectField(Account, "vendorKeyTerms", (t) =>
  t.field({
    type: VendorKeyTerms,
    nullable: true,
    description: `The terms of vendor keys. ${NEEDS_KEYS}`,
    resolve: ({ id }, _args, ctx) => {
      ctx.services.accounts.assertOwn(ctx, id);
      return ctx.services.vendorKeys.terms(ctx);
    },
  }),
);

builder.prismaObjectField(Account, "vendorKeys", (t) =>
  t.field({
    type: builder.connectionObject(
      { type: VendorKey, name: "VendorKeyConnection", description: "A page of vendor keys." },
      { name: "VendorKeyEdge", description: "A vendor key and its cursor." },
    ),
    nullable: true,
    description: `Vendor keys of the account, newest first. ${NEEDS_KEYS}`,
    args: pageArgs,
    complexity: pageCost,
    resolve: async ({ id }, args, ctx, info) => {
      ctx.services.accounts.assertOwn(ctx, id);
      const page: PageRequest = toPageRequest(args, "vendorKeys");
      const keys: Page<SelectedVendorKey> = await ctx.services.vendorKeys.list(ctx, page, connectionSelectionOf(ctx, info));
      return toConnection(keys, "vendorKeys", createdPosition);
    },
  }),
);

interface VendorKeyPayload {
  readonly vendorKey: SelectedVendorKey;
}

const CreateVendorKeyInput = builder.inputType("CreateVendorKeyInput", {
  description: "Parameters of `createVendorKey`.",
  fields: (t) => ({
    vendor: t.string({ required: true, description: "The ID of the upstream that gets it, of `vendorKeyTerms`." }),
    name: t.string({ description: `${NAME} Defaults to the vendor.` }),
    secret: t.string({ required: true, description: SECRET }),
    use: t.field({ type: VendorKeyUse, defaultValue: "before", description: "When calls use it." }),
    models: t.stringList({ description: MODELS }),
    apiKeyIds: t.idList({ description: API_KEYS }),
    enabled: t.boolean({ defaultValue: true, description: ENABLED }),
  }),
});

const CreateVendorKeyPayload = builder.objectRef<VendorKeyPayload>("CreateVendorKeyPayload").implement({
  description: "The result of `createVendorKey`.",
  fields: (t) => ({ vendorKey: t.field({ type: VendorKey, description: "The new vendor key.", resolve: ({ vendorKey }) => vendorKey }) }),
});

builder.mutationField("createVendorKey", (t) =>
  t.field({
    type: CreateVendorKeyPayload,
    nullable: true,
    description: `Adds a key of the account at a vendor, after the vendor has accepted it. An account has at most ${VENDOR_KEYS_PER_ACCOUNT_MAX}. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreateVendorKeyInput, required: true, description: "The vendor key to add." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const { vendorKeys } = ctx.services;
      const id = await vendorKeys.create(ctx, parsePermitted(ctx, requireKeyManager, createVendorKeyInput, readApiKeyIds(input)));
      return { vendorKey: await vendorKeys.get(ctx, id, selectionOf(ctx, info, ["vendorKey"])) };
    },
  }),
);

const UpdateVendorKeyInput = builder.inputType("UpdateVendorKeyInput", {
  description: "Parameters of `updateVendorKey`. Omitted fields do not change.",
  fields: (t) => ({
    id: t.id({ required: true, description: "The ID of the vendor key." }),
    name: t.string({ description: NAME }),
    secret: t.string({ description: `${SECRET} A new one is checked at the vendor first.` }),
    use: t.field({ type: VendorKeyUse, description: "When calls use it." }),
    models: t.stringList({ description: MODELS }),
    apiKeyIds: t.idList({ description: API_KEYS }),
    enabled: t.boolean({ description: ENABLED }),
  }),
});

const UpdateVendorKeyPayload = builder.objectRef<VendorKeyPayload>("UpdateVendorKeyPayload").implement({
  description: "The result of `updateVendorKey`.",
  fields: (t) => ({
    vendorKey: t.field({ type: VendorKey, description: "The vendor key after the change.", resolve: ({ vendorKey }) => vendorKey }),
  }),
});

builder.mutationField("updateVendorKey", (t) =>
  t.field({
    type: UpdateVendorKeyPayload,
    nullable: true,
    description: `Updates a vendor key. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: UpdateVendorKeyInput, required: true, description: "The vendor key and its changes." }) },
    resolve: async (_root, { input: { id: given, ...changes } }, ctx, info) => {
      const { vendorKeys } = ctx.services;
      const input = parsePermitted(ctx, requireKeyManager, updateVendorKeyInput, readApiKeyIds(changes));
      const id = readId(given, "VendorKey", "id");
      await vendorKeys.update(ctx, id, input);
      return { vendorKey: await vendorKeys.get(ctx, id, selectionOf(ctx, info, ["vendorKey"])) };
    },
  }),
);

const DeleteVendorKeyPayload = builder.objectRef<{ readonly id: string }>("DeleteVendorKeyPayload").implement({
  description: "The result of `deleteVendorKey`.",
  fields: (t) => ({ deletedId: t.exposeID("id", { description: "The REST ID of the deleted vendor key." }) }),
});

builder.mutationField("deleteVendorKey", (t) =>
  t.field({
    type: DeleteVendorKeyPayload,
    nullable: true,
    description: `Deletes a vendor key. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: {
      input: t.arg({
        type: builder.inputType("DeleteVendorKeyInput", {
          description: "Parameters of `deleteVendorKey`.",
          fields: (f) => ({ id: f.id({ required: true, description: "The ID of the vendor key." }) }),
        }),
        required: true,
        description: "The vendor key to delete.",
      }),
    },
    resolve: async (_root, { input }, ctx) => ({ id: await ctx.services.vendorKeys.delete(ctx, readId(input.id, "VendorKey", "id")) }),
  }),
);

/** Global and REST IDs; a wrong one is left to the schema. */
function readApiKeyIds<Input extends { readonly apiKeyIds?: readonly (string | number)[] | null | undefined }>(input: Input) {
  const { apiKeyIds } = input;
  if (apiKeyIds == null) return input;
  return { ...input, apiKeyIds: apiKeyIds.map((id, index) => readId(String(id), "ApiKey", `apiKeyIds.${index}`)) };
}
