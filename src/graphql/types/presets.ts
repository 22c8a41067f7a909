/** Presets of the account. */
import type { Page, PageRequest } from "../../lib/pagination.js";
import { parsePermitted, requireKeyManager } from "../../services/access/permissions.js";
import { PRESET_EARLIER_MAX, PRESETS_PER_ACCOUNT_MAX } from "../../services/presets/limits.js";
import { createPresetInput, earlierOf, type SelectedPreset, updatePresetInput } from "../../services/presets/presets.js";
import { builder } from "../builder.js";
import { readId } from "../global-ids.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { createdPosition, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { connectionSelectionOf, selectionOf } from "../selection.js";
import { ProviderInput, toProviderWire } from "../wishes.js";
import { Account } from "./accounts.js";

const PROVIDER = "Wishes about the upstreams that may serve. Null: none.";
const MODELS = "Models to try when the model fails, at most 8.";
const NEEDS_KEYS = "Needs a secret key with the permission KEYS.";
const NAME = "The name: lower-case letters, digits and hyphens, unique in the account.";
const MODEL = "The model's ID. Null: the default model.";
const SYSTEM_PROMPT = "The system prompt. Null: none.";
const PARAMETERS =
  "Parameters as in the body of a chat completion: `temperature`, `top_p`, `max_tokens`, `seed`, `presence_penalty`, `frequency_penalty`, `reasoning_effort`, `stop`, `tools`, `tool_choice` and `response_format`.";

const Preset = builder.prismaObject("Preset", {
  description: "A named set of models, wishes, system prompt and parameters.",
  interfaces: [Node],
  select: { id: true, createdAt: true },
  extensions: nodesReadBy(async (ctx, ids, info) =>
    byId(await ctx.services.presets.getMany(ctx, ids, selectionOf(ctx, info, [], "Preset"))),
  ),
  fields: (t) => ({
    name: t.exposeString("name", { description: NAME }),
    version: t.exposeInt("version", {
      description: "1 at first, and one more after each change of the set. A new name is no change of it.",
    }),
    modelId: t.exposeID("model", { nullable: true, description: MODEL }),
    systemPrompt: t.exposeString("systemPrompt", { nullable: true, description: SYSTEM_PROMPT }),
    parameters: t.field({
      type: "JSON",
      description: PARAMETERS,
      select: { parameters: true },
      resolve: ({ parameters }) => parameters,
    }),
    provider: t.field({
      type: "JSON",
      nullable: true,
      description: `${PROVIDER} In the form of the body of a request.`,
      select: { provider: true },
      resolve: ({ provider }) => provider,
    }),
    models: t.exposeStringList("models", { description: MODELS }),
    earlierVersions: t.field({
      type: ["JSON"],
      description: `The sets of earlier versions that are kept, newest first, each with its \`version\`: at most ${PRESET_EARLIER_MAX}.`,
      select: { earlier: true },
      resolve: (row) => [...earlierOf(row)],
    }),
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When the preset was created." }),
    updatedAt: t.expose("updatedAt", { type: "DateTime", description: "When the preset was last changed." }),
  }),
});

builder.prismaObjectField(Account, "presets", (t) =>
  t.field({
    type: builder.connectionObject(
      { type: Preset, name: "PresetConnection", description: "A page of presets." },
      { name: "PresetEdge", description: "A preset and its cursor." },
    ),
    nullable: true,
    description: `Presets of the account, newest first. ${NEEDS_KEYS}`,
    args: pageArgs,
    complexity: pageCost,
    resolve: async ({ id }, args, ctx, info) => {
      ctx.services.accounts.assertOwn(ctx, id);
      const page: PageRequest = toPageRequest(args, "presets");
      const presets: Page<SelectedPreset> = await ctx.services.presets.list(ctx, page, connectionSelectionOf(ctx, info));
      return toConnection(presets, "presets", createdPosition);
    },
  }),
);

interface PresetPayload {
  readonly preset: SelectedPreset;
}

const CreatePresetInput = builder.inputType("CreatePresetInput", {
  description: "Parameters of `createPreset`.",
  fields: (t) => ({
    name: t.string({ required: true, description: NAME }),
    model: t.string({ description: MODEL }),
    systemPrompt: t.string({ description: SYSTEM_PROMPT }),
    parameters: t.field({ type: "JSON", description: `${PARAMETERS} Defaults to none.` }),
    provider: t.field({ type: ProviderInput, description: PROVIDER }),
    models: t.stringList({ description: MODELS }),
  }),
});

const CreatePresetPayload = builder.objectRef<PresetPayload>("CreatePresetPayload").implement({
  description: "The result of `createPreset`.",
  fields: (t) => ({ preset: t.field({ type: Preset, description: "The new preset.", resolve: ({ preset }) => preset }) }),
});

builder.mutationField("createPreset", (t) =>
  t.field({
    type: CreatePresetPayload,
    nullable: true,
    description: `Creates a preset. An account has at most ${PRESETS_PER_ACCOUNT_MAX}. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreatePresetInput, required: true, description: "The preset to create." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const { presets } = ctx.services;
      const id = await presets.create(ctx, parsePermitted(ctx, requireKeyManager, createPresetInput, toSet(input)));
      return { preset: await presets.get(ctx, id, selectionOf(ctx, info, ["preset"])) };
    },
  }),
);

const UpdatePresetInput = builder.inputType("UpdatePresetInput", {
  description: "Parameters of `updatePreset`. Omitted fields do not change.",
  fields: (t) => ({
    id: t.id({ required: true, description: "The ID of the preset." }),
    name: t.string({ description: NAME }),
    model: t.string({ description: MODEL }),
    systemPrompt: t.string({ description: SYSTEM_PROMPT }),
    parameters: t.field({ type: "JSON", description: `${PARAMETERS} Replaces all of them.` }),
    provider: t.field({ type: ProviderInput, description: `${PROVIDER} Replaces all of them.` }),
    models: t.stringList({ description: `${MODELS} Replaces all of them.` }),
  }),
});

const UpdatePresetPayload = builder.objectRef<PresetPayload>("UpdatePresetPayload").implement({
  description: "The result of `updatePreset`.",
  fields: (t) => ({ preset: t.field({ type: Preset, description: "The preset after the change.", resolve: ({ preset }) => preset }) }),
});

builder.mutationField("updatePreset", (t) =>
  t.field({
    type: UpdatePresetPayload,
    nullable: true,
    description: `Updates a preset. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: UpdatePresetInput, required: true, description: "The preset and its changes." }) },
    resolve: async (_root, { input: { id: given, ...changes } }, ctx, info) => {
      const { presets } = ctx.services;
      const input = parsePermitted(ctx, requireKeyManager, updatePresetInput, toSet(changes));
      const id = readId(given, "Preset", "id");
      await presets.update(ctx, id, input);
      return { preset: await presets.get(ctx, id, selectionOf(ctx, info, ["preset"])) };
    },
  }),
);

/** With the wishes in the form of REST. */
function toSet<Stated extends { readonly provider?: typeof ProviderInput.$inferInput | null | undefined }>(stated: Stated) {
  return stated.provider ? { ...stated, provider: toProviderWire(stated.provider) } : stated;
}

const DeletePresetPayload = builder.objectRef<{ readonly id: string }>("DeletePresetPayload").implement({
  description: "The result of `deletePreset`.",
  fields: (t) => ({ deletedId: t.exposeID("id", { description: "The REST ID of the deleted preset." }) }),
});

builder.mutationField("deletePreset", (t) =>
  t.field({
    type: DeletePresetPayload,
    nullable: true,
    description: `Deletes a preset. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: {
      input: t.arg({
        type: builder.inputType("DeletePresetInput", {
          description: "Parameters of `deletePreset`.",
          fields: (f) => ({ id: f.id({ required: true, description: "The ID of the preset." }) }),
        }),
        required: true,
        description: "The preset to delete.",
      }),
    },
    resolve: async (_root, { input }, ctx) => ({ id: await ctx.services.presets.delete(ctx, readId(input.id, "Preset", "id")) }),
  }),
);
