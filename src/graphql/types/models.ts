/** The model catalog (docs/spec/models.md): public, and cut to what the key may call when there is one. */
import { wrongField } from "../../errors.js";
import { formatPicocredits } from "../../lib/money.js";
import { CATALOG_SEARCH_CHARS_MAX } from "../../limits.js";
import { HEALTH_STATUSES, type ModelHealth as Health } from "../../services/catalog/community.js";
import {
  type Category,
  CONTENT_KINDS,
  IMAGE_PRICINGS,
  MODALITIES,
  MODALITY_TRAITS,
  type Modality as ModalityName,
} from "../../services/catalog/modality.js";
import {
  CAPABILITIES,
  type Capability,
  type Model as ModelRow,
  type PendingModelChange,
  SAFETY_FEATURES,
} from "../../services/catalog/model.js";
import { type BilledKind, billedKinds } from "../../services/catalog/pricing.js";
import type { ModelVisibility } from "../../services/community-models/common-input.js";
import { builder, enumValues } from "../builder.js";
import { readId } from "../global-ids.js";
import { byId, Node, nodesReadBy } from "../nodes.js";

/** Said of registered models and of agents alike (docs/spec/agents.md#record, docs/spec/community-models.md#record). */
export const VisibilityEnum = builder.enumType("Visibility", {
  description: "PRIVATE: its owner alone may call it. PUBLIC: everybody may.",
  values: enumValues<ModelVisibility>(["private", "public"]),
});

export const Modality = builder.enumType("Modality", {
  description: "What a model does.",
  values: enumValues(MODALITIES),
});

const ModelCategory = builder.enumType("ModelCategory", {
  description: "The coarser groups that the catalog is listed by.",
  values: enumValues<Category>(["text", "image", "video", "audio", "embedding", "realtime"]),
});

export const ContentKind = builder.enumType("ContentKind", {
  description: "What goes into a model or comes out of it.",
  values: Object.fromEntries(CONTENT_KINDS.map((kind) => [kind === "3d" ? "THREE_D" : kind.toUpperCase(), { value: kind }])),
});

const ModelCapability = builder.enumType("ModelCapability", { values: enumValues(CAPABILITIES) });

export const SafetyFeature = builder.enumType("SafetyFeature", {
  description: "Checks of the input that a caller cannot switch off.",
  values: enumValues(SAFETY_FEATURES),
});

export const ImagePricing = builder.enumType("ImagePricing", {
  description: "REQUEST: an image generation is charged once. TOKENS: the image tokens that the upstream reports are charged.",
  values: enumValues(IMAGE_PRICINGS),
});

const ModelFlags = builder.objectRef<ModelRow["flags"]>("ModelFlags").implement({
  fields: (t) => ({
    paid: t.exposeBoolean("paid", { description: "Something of it has a price." }),
    alpha: t.exposeBoolean("alpha", { description: "May change or go without notice." }),
  }),
});

const BILLED_KINDS = [
  "inputTextTokens",
  "inputCachedTokens",
  "inputCacheWriteTokens",
  "inputAudioTokens",
  "inputImageTokens",
  "outputTextTokens",
  "outputReasoningTokens",
  "outputAudioTokens",
  "outputImageTokens",
  "outputVideoMilliseconds",
  "outputAudioMilliseconds",
  "imageRequests",
  "characters",
  "inputAudioMilliseconds",
] as const satisfies readonly BilledKind[];

type Priced = Pick<ModelRow, "modality" | "imagePricing" | "rates">;

const ModelPricing = builder.objectRef<Priced>("ModelPricing").implement({
  description:
    'Credits per unit of each kind that the model is billed by, so that a usage record\'s amounts times these are its cost, unless the prompt was long or a field of the request has a price of its own. Null: not billed. "0": free.',
  fields: (t) =>
    Object.fromEntries(
      BILLED_KINDS.map((kind) => [
        // Prices of what is measured in time are per second.
        kind.replace("Milliseconds", "Seconds"),
        t.field({ type: "Credits", nullable: true, resolve: (model) => priceOf(model, kind) }),
      ]),
    ),
});

function priceOf(model: Priced, kind: BilledKind): string | null {
  return billedKinds(model).includes(kind) ? formatPicocredits(model.rates[kind]) : null;
}

const ModelHealthStatus = builder.enumType("ModelHealthStatus", {
  description: "UNKNOWN: there were too few calls to tell. UNRELIABLE: so many of them failed that lists leave the model out.",
  values: enumValues(HEALTH_STATUSES),
});

export const ModelHealth = builder.objectRef<Health>("ModelHealth").implement({
  description: "How others' calls of a registered model went in the last 24 hours.",
  fields: (t) => ({
    status: t.expose("status", { type: ModelHealthStatus }),
    successRate: t.exposeFloat("successRate", { nullable: true, description: "Of 1. Null: it was not called." }),
    requests: t.exposeInt("requests", { description: "Those that the caller got wrong or left are not counted." }),
  }),
});

const ModelPendingChange = builder.objectRef<PendingModelChange>("ModelPendingChange").implement({
  description: "What a registered model will be from a moment on. Null: stays as it is.",
  fields: (t) => ({
    effectiveAt: t.expose("effectiveAt", { type: "DateTime" }),
    visibility: t.expose("visibility", { type: VisibilityEnum, nullable: true }),
    paidOnly: t.exposeBoolean("paidOnly", { nullable: true }),
    imagePricing: t.expose("imagePricing", { type: ImagePricing, nullable: true }),
    pricing: t.field({ type: ModelPricing, nullable: true, description: "All of its prices.", resolve: ({ pricing }) => pricing }),
  }),
});

export const Model = builder.objectRef<ModelRow>("Model").implement({
  description: "A model that can be called. Its `restId` is the canonical id, `publisher/name`, that requests name it by.",
  interfaces: [Node],
  extensions: nodesReadBy((ctx, ids) => byId(ids.flatMap((id) => ctx.services.catalog.shown(ctx, id) ?? []))),
  fields: (t) => ({
    aliases: t.field({ type: ["String"], description: "Other names that requests may use.", resolve: (model) => [...model.aliases] }),
    publisher: t.exposeString("publisher", { description: "Who made it, not who runs it." }),
    brandUrl: t.exposeString("brandUrl", { nullable: true }),
    title: t.exposeString("title"),
    description: t.exposeString("description", { nullable: true }),
    modality: t.expose("modality", { type: Modality }),
    category: t.field({ type: ModelCategory, resolve: (model) => MODALITY_TRAITS[model.modality].category }),
    inputModalities: t.field({ type: [ContentKind], resolve: (model) => [...model.inputModalities] }),
    outputModalities: t.field({ type: [ContentKind], resolve: (model) => [...model.outputModalities] }),
    capabilities: t.field({ type: [ModelCapability], resolve: (model) => [...model.capabilities] }),
    flags: t.field({ type: ModelFlags, resolve: (model) => model.flags }),
    pricing: t.field({ type: ModelPricing, resolve: (model) => model }),
    imagePricing: t.expose("imagePricing", { type: ImagePricing }),
    contextLength: t.exposeInt("contextLength", { nullable: true, description: "In tokens." }),
    voices: t.field({ type: ["String"], resolve: (model) => [...model.voices] }),
    paidOnly: t.exposeBoolean("paidOnly", { description: "Draws CRYPTO and PACK credits, never TIER credits." }),
    perUserRpm: t.exposeFloat("perUserRpm", {
      nullable: true,
      description: "Requests a minute of one account; 0.5 is one in two minutes.",
    }),
    isDefault: t.exposeBoolean("isDefault", { description: "Serves requests of its modality that name no model." }),
    fallbacks: t.field({
      type: ["ID"],
      description: "Tried in this order when its upstream fails.",
      resolve: (model, _args, ctx) => [...ctx.services.catalog.namedFallbacks(ctx.caller, model)],
    }),
    requiredSafetyFeatures: t.field({ type: [SafetyFeature], resolve: (model) => [...model.requiredSafetyFeatures] }),
    isCommunity: t.exposeBoolean("isCommunity", { description: "Registered by an account." }),
    isAgent: t.exposeBoolean("isAgent"),
    owner: t.exposeString("owner", { nullable: true, description: "The handle of the account that registered it." }),
    isPrivate: t.exposeBoolean("isPrivate", { description: "Only its owner's to call, for nothing." }),
    health: t.field({ type: ModelHealth, resolve: (model, _args, ctx) => ctx.services.catalog.healthOf(model) }),
    pendingChange: t.field({
      type: ModelPendingChange,
      nullable: true,
      description: "What its owner has scheduled.",
      resolve: ({ pendingChange }) => pendingChange,
    }),
    addedAt: t.expose("addedAt", { type: "DateTime" }),
  }),
});

const ModelReliability = builder.enumType("ModelReliability", {
  description: "ALL: registered models whose calls mostly fail, too.",
  values: enumValues(["all"] as const),
});

builder.queryField("models", (t) =>
  t.field({
    type: [Model],
    description: "The models that can be called, the default of each modality first. Needs no key.",
    args: {
      modality: t.arg({ type: Modality }),
      search: t.arg.string({ description: "Words of the id, title or description." }),
      capability: t.arg({ type: ModelCapability }),
      community: t.arg.boolean({ description: "True: only those that accounts have registered. False: none of those." }),
      reliability: t.arg({ type: ModelReliability }),
    },
    resolve: async (_root, args, ctx) => [...(await ctx.services.catalog.list(ctx, toFilter(args)))],
  }),
);

interface ModelsArgs {
  readonly modality?: ModalityName | null | undefined;
  readonly search?: string | null | undefined;
  readonly capability?: Capability | null | undefined;
  readonly community?: boolean | null | undefined;
  readonly reliability?: "all" | null | undefined;
}

function toFilter({ modality, search, capability, community, reliability }: ModelsArgs) {
  if (search && search.length > CATALOG_SEARCH_CHARS_MAX) {
    throw wrongField("search", `must have at most ${CATALOG_SEARCH_CHARS_MAX} characters`);
  }
  return {
    ...(modality && { modalities: [modality] }),
    ...(search && { search }),
    ...(capability && { capability }),
    ...(community != null && { community }),
    ...(reliability && { reliability }),
  };
}

builder.queryField("model", (t) =>
  t.field({
    type: Model,
    nullable: true,
    description: "One model by its id or an alias. Needs no key.",
    args: { id: t.arg.id({ required: true, description: "Which one, by either id or by an alias." }) },
    resolve: (_root, { id }, ctx) => ctx.services.catalog.get(ctx, readId(id, "Model", "id")),
  }),
);
