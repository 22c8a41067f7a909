/** Registered models and agents of the account (docs/spec/community-models.md). */
import { notFound } from "../../errors.js";
import { formatNanocredits, formatPicocredits } from "../../lib/money.js";
import type { AgentType, UpstreamApi } from "../../services/catalog/model.js";
import { PRICE_FIELDS, type PriceField } from "../../services/catalog/pricing.js";
import { type ModelProvider, type ModelUsage, PROVIDER_COLUMNS } from "../../services/community-models/community-models.js";
import { FALLBACK_CANDIDATES_MAX } from "../../services/community-models/limits.js";
import type { AdvertisedCapability } from "../../services/community-models/models-input.js";
import { communityModelId, TERMS_COLUMNS } from "../../services/community-models/record.js";
import type { FallbackCandidate as FallbackCandidateView, PendingView } from "../../services/community-models/view.js";
import { builder, describedValues } from "../builder.js";
import { readId } from "../global-ids.js";
import { batchedBy } from "../loaders.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { selectionOf } from "../selection.js";
import { ContentKind, ImagePricing, Modality, Model, ModelHealth, SafetyFeature, VisibilityEnum } from "./models.js";
import { toDays, usageDailyDaysArg } from "./usage.js";

export const NEEDS_KEYS = "Needs a secret key with the permission KEYS.";
export const RPM = "The limit of requests per minute and account. 0.5 means one in two minutes. Null: no limit.";

export const UpstreamApiEnum = builder.enumType("UpstreamApi", {
  description: "The OpenAI chat format that an upstream speaks. The gateway converts between the two.",
  values: describedValues<UpstreamApi>({ chat_completions: "Chat Completions.", responses: "Responses." }),
});

export const AdvertisedCapabilityEnum = builder.enumType("AdvertisedCapability", {
  description: "A capability that an owner may state for a text model.",
  values: describedValues<AdvertisedCapability>({
    tool_calling: "Calls functions that the request defines.",
    reasoning: "Reasons before it answers.",
  }),
});

export const PRICES = {
  promptTextPrice: "The price per input text token.",
  promptCachedPrice: "The price per token read from the upstream's prompt cache.",
  promptCacheWritePrice: "The price per token written to the upstream's prompt cache.",
  promptAudioPrice: "The price per input audio token. For transcription: per second of the recording.",
  promptImagePrice: "The price per input image token.",
  completionTextPrice: "The price per output text token.",
  completionReasoningPrice: "The price per reasoning token.",
  completionAudioPrice: "The price per output audio token. For speech: per character of the text.",
  completionImagePrice: "The price per image, or per output image token.",
  completionVideoPrice: "The price per second of video.",
} as const satisfies Record<PriceField, string>;

const PriceFieldEnum = builder.enumType("PriceField", {
  description: "The prices of a model, named as their fields.",
  values: Object.fromEntries(
    PRICE_FIELDS.map((value) => [value.replace(/[A-Z]/g, "_$&").toUpperCase(), { value, description: PRICES[value] }]),
  ) as Record<string, { readonly value: PriceField }>,
});

/** One field per price, in the order of docs/spec/credits.md#prices. */
export function perPriceField<Field>(create: (field: PriceField) => Field): Record<PriceField, Field> {
  return Object.fromEntries(PRICE_FIELDS.map((field) => [field, create(field)])) as Record<PriceField, Field>;
}

const PendingModelChange = builder.objectRef<PendingView>("CommunityModelPendingChange").implement({
  description: "A scheduled change of a registered model. Fields that do not change are null.",
  fields: (t) => ({
    effectiveAt: t.expose("effectiveAt", { type: "DateTime", description: "When the change takes effect." }),
    visibility: t.expose("visibility", { type: VisibilityEnum, nullable: true, description: "Who may call the model after the change." }),
    isPaidOnly: t.exposeBoolean("paidOnly", {
      nullable: true,
      description: "Whether the model can be paid with CRYPTO and PACK credits only after the change.",
    }),
    imagePricing: t.expose("imagePricing", { type: ImagePricing, nullable: true, description: "How images are priced after the change." }),
    ...perPriceField((field) =>
      t.field({
        type: "Price",
        nullable: true,
        description: PRICES[field],
        resolve: ({ prices }: PendingView) => {
          const price = prices[field];
          return price === undefined ? null : formatPicocredits(price);
        },
      }),
    ),
  }),
});

export const CommunityModelProvider = builder.objectRef<ModelProvider>("CommunityModelProvider").implement({
  description: "The provider of an account's models, as callers see it.",
  fields: (t) => ({
    name: t.exposeString("name", { nullable: true, description: "The display name of the owner." }),
    url: t.exposeString("url", { nullable: true, description: "The URL of the owner's GitHub profile." }),
    iconUrl: t.exposeString("iconUrl", { nullable: true, description: "The URL of the account's picture." }),
  }),
});

const CommunityModelUsage = builder.objectRef<ModelUsage>("CommunityModelUsage").implement({
  description: "Usage of a registered model by other accounts.",
  fields: (t) => ({
    requests: t.exposeInt("requests", { description: "The number of charged generations." }),
    cost: t.field({
      type: "Credits",
      description: "The amount that other accounts spent.",
      resolve: ({ costNanocredits }) => formatNanocredits(costNanocredits),
    }),
    from: t.expose("from", { type: "DateTime", description: "The start of the first day, in UTC." }),
  }),
});

interface UsageSelection {
  readonly modelId: string;
  readonly days: number | undefined;
}

const usageOf = batchedBy<UsageSelection, ModelUsage>(async (ctx, wanted) => {
  const lengths = [...new Set(wanted.map(({ days }) => days))];
  const sums = await Promise.all(
    lengths.map(async (days) => {
      const modelIds = wanted.flatMap((each) => (each.days === days ? [each.modelId] : []));
      return [days, await ctx.services.communityModels.usageOf(ctx, [...new Set(modelIds)], days)] as const;
    }),
  );
  const byDays = new Map(sums);
  return wanted.map(({ modelId, days }) => byDays.get(days)?.get(modelId) ?? notFound("model"));
});

/** Every row type selects only the columns that it shows. Encrypted columns are never read. */
const ROW = { id: true, type: true, createdAt: true } as const;
const MODEL_ID_COLUMNS = { name: true, account: { select: { handle: true } } } as const;

interface Named {
  readonly name: string;
  readonly account: { readonly handle: string };
}

function modelIdOf({ name, account }: Named): string {
  return communityModelId(account.handle, name);
}

const TYPE_NAMES = {
  proxy: "ProxyModel",
  prompt_agent: "PromptAgent",
  code_agent: "CodeAgent",
  endpoint_agent: "EndpointAgentModel",
} as const satisfies Record<AgentType | "proxy", string>;

export const COMMUNITY_MODEL_TYPES = Object.values(TYPE_NAMES);

export const CommunityModel = builder.prismaInterface("CommunityModel", {
  description: "A registered model of the account, or an agent.",
  interfaces: [Node],
  select: ROW,
  resolveType: ({ type }) => TYPE_NAMES[type],
  fields: (t) => ({
    modelId: t.id({
      description: "The REST ID of the model, used to call it: `community/<owner>/<name>`.",
      select: MODEL_ID_COLUMNS,
      resolve: modelIdOf,
    }),
    model: t.field({
      type: Model,
      nullable: true,
      description: "The catalog entry of the model. Null when the calling key may not call it.",
      select: MODEL_ID_COLUMNS,
      resolve: (row, _args, ctx) => ctx.services.catalog.shown(ctx, modelIdOf(row)),
    }),
    name: t.exposeString("name", { description: "The last part of `modelId`." }),
    title: t.exposeString("title", { description: "The display name." }),
    description: t.exposeString("description", { nullable: true, description: "A description of the model." }),
    visibility: t.field({
      type: VisibilityEnum,
      description: "Who may call the model.",
      select: TERMS_COLUMNS,
      resolve: (row, _args, ctx) => ctx.services.communityModels.termsOf(row).visibility,
    }),
    requiredSafetyFeatures: t.field({
      type: [SafetyFeature],
      description: "Safety checks of the input that apply to every request.",
      select: { requiredSafetyFeatures: true },
      resolve: ({ requiredSafetyFeatures }) => requiredSafetyFeatures as (typeof SafetyFeature.$inferType)[],
    }),
    pending: t.field({
      type: PendingModelChange,
      nullable: true,
      description: "The scheduled change. Null when there is none.",
      select: TERMS_COLUMNS,
      resolve: (row, _args, ctx) => ctx.services.communityModels.termsOf(row).pending,
    }),
    health: t.field({
      type: ModelHealth,
      description: "Health of the model, measured by calls of other accounts.",
      resolve: ({ id }, _args, ctx) => ctx.services.catalog.healthOf({ communityModelId: id }),
    }),
    usage: t.field({
      type: CommunityModelUsage,
      nullable: true,
      description: "Usage of the model by other accounts, under its current ID.",
      args: usageDailyDaysArg,
      select: MODEL_ID_COLUMNS,
      resolve: (row, args, ctx) => usageOf(ctx, { modelId: modelIdOf(row), days: toDays(args) }),
    }),
    provider: t.field({
      type: CommunityModelProvider,
      description: "The provider of the model, as callers see it.",
      select: { account: { select: PROVIDER_COLUMNS } },
      resolve: ({ account }, _args, ctx) => ctx.services.communityModels.providerFrom(account),
    }),
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When the model was registered." }),
    updatedAt: t.expose("updatedAt", { type: "DateTime", description: "When the model was last changed." }),
  }),
});

/** Lets `node` load a registered model of one of the types. */
export function readBy(typeName: (typeof COMMUNITY_MODEL_TYPES)[number]) {
  return nodesReadBy(async (ctx, ids, info) => {
    const rows = await ctx.services.communityModels.getMany(ctx, ids, selectionOf(ctx, info, [], typeName));
    return byId(rows.filter(({ type }) => TYPE_NAMES[type] === typeName));
  });
}

const AdvertisedMetadata = builder
  .objectRef<{ readonly advertisedCapabilities: readonly string[]; readonly advertisedContextLength: number | null }>("AdvertisedMetadata")
  .implement({
    description: "Capabilities and limits that the owner states for a text model.",
    fields: (t) => ({
      capabilities: t.field({
        type: [AdvertisedCapabilityEnum],
        description: "The model's capabilities.",
        resolve: ({ advertisedCapabilities }) => advertisedCapabilities as AdvertisedCapability[],
      }),
      contextLength: t.exposeInt("advertisedContextLength", {
        nullable: true,
        description: "The context length in tokens. Null when not stated.",
      }),
    }),
  });

export const ProxyModel = builder.prismaObject("CommunityModel", {
  variant: "ProxyModel",
  description: "A model that runs on the account's own upstream. Its credential is never shown.",
  interfaces: [Node, CommunityModel],
  select: ROW,
  extensions: readBy("ProxyModel"),
  fields: (t) => ({
    modality: t.field({
      type: Modality,
      description: "The modality of the model.",
      select: { modality: true },
      resolve: ({ modality }) => modality,
    }),
    upstreamModel: t.string({
      description: "The name of the model at the upstream.",
      select: { upstreamModel: true, name: true },
      resolve: ({ upstreamModel, name }) => upstreamModel ?? name,
    }),
    imagePricing: t.field({
      type: ImagePricing,
      description: "How images are priced.",
      select: TERMS_COLUMNS,
      resolve: (row, _args, ctx) => ctx.services.communityModels.termsOf(row).imagePricing,
    }),
    inputModalities: t.field({
      type: [ContentKind],
      description: "The kinds of input that the model accepts.",
      select: { inputModalities: true },
      resolve: ({ inputModalities }) => inputModalities as (typeof ContentKind.$inferType)[],
    }),
    advertised: t.field({
      type: AdvertisedMetadata,
      description: "Capabilities and limits that the owner states.",
      select: { advertisedCapabilities: true, advertisedContextLength: true },
      resolve: (row) => row,
    }),
    perUserRpm: t.exposeFloat("perUserRpm", { nullable: true, description: RPM }),
    isPaidOnly: t.boolean({
      description: "Whether the model can be paid with CRYPTO and PACK credits only, never with TIER credits.",
      select: TERMS_COLUMNS,
      resolve: (row, _args, ctx) => ctx.services.communityModels.termsOf(row).paidOnly,
    }),
    fallbackIds: t.field({
      type: ["ID"],
      description: "The REST IDs of the fallbacks, tried in this order when the upstream fails.",
      select: { fallbacks: true },
      resolve: ({ fallbacks }) => fallbacks,
    }),
    fallbacks: t.field({
      type: [Model],
      description: "The fallbacks that the caller may call, tried in this order when the upstream fails.",
      select: { fallbacks: true },
      resolve: ({ fallbacks }, _args, ctx) => fallbacks.flatMap((id) => ctx.services.catalog.shown(ctx, id) ?? []),
    }),
    fallbackCandidates: t.field({
      type: [FallbackCandidate],
      nullable: true,
      description: `Models that can be fallbacks of this model, the account's own first; at most ${FALLBACK_CANDIDATES_MAX}.`,
      complexity: { field: FALLBACK_CANDIDATES_MAX, multiplier: FALLBACK_CANDIDATES_MAX },
      resolve: async ({ id }, _args, ctx) => [...(await ctx.services.communityModels.fallbackCandidates(ctx, id))],
    }),
    api: t.expose("api", { type: UpstreamApiEnum, nullable: true, description: "For text models: the API format of the upstream." }),
    url: t.string({
      nullable: true,
      description: "For text models: the exact URL of the endpoint.",
      select: { modality: true, url: true },
      resolve: ({ modality, url }) => (modality === "text" ? url : null),
    }),
    baseUrl: t.string({
      nullable: true,
      description: "For other media: the base URL of the media API, or the endpoint.",
      select: { modality: true, url: true },
      resolve: ({ modality, url }) => (modality === "text" ? null : url),
    }),
    statedPrices: t.field({
      type: [PriceFieldEnum],
      description: "The prices that the owner has stated. Other prices use their defaults.",
      select: TERMS_COLUMNS,
      resolve: (row, _args, ctx) => {
        const { stated } = ctx.services.communityModels.termsOf(row);
        return PRICE_FIELDS.filter((field) => stated[field] !== undefined);
      },
    }),
    ...perPriceField((field) =>
      t.field({
        type: "Price",
        description: PRICES[field],
        select: TERMS_COLUMNS,
        resolve: (row, _args, ctx) => formatPicocredits(ctx.services.communityModels.termsOf(row).prices[field]),
      }),
    ),
  }),
});

export const EndpointAgentModel = builder.prismaObject("CommunityModel", {
  variant: "EndpointAgentModel",
  description: "An agent that its owner hosts. It is called like a text model, without a credential, and is free.",
  interfaces: [Node, CommunityModel],
  select: ROW,
  extensions: readBy("EndpointAgentModel"),
  fields: (t) => ({
    inputModalities: t.field({
      type: [ContentKind],
      description: "The kinds of input that the agent accepts.",
      select: { inputModalities: true },
      resolve: ({ inputModalities }) => inputModalities as (typeof ContentKind.$inferType)[],
    }),
    outputModalities: t.field({
      type: [ContentKind],
      description: "The kinds of output that the agent produces.",
      select: { outputModalities: true },
      resolve: ({ outputModalities }) => outputModalities as (typeof ContentKind.$inferType)[],
    }),
    // Never null, but nullable like the fields of ProxyModel, so that one document can select both.
    api: t.expose("api", { type: UpstreamApiEnum, nullable: true, description: "The API format of the endpoint." }),
    url: t.exposeString("url", { nullable: true, description: "The exact URL of the endpoint." }),
    upstreamModel: t.string({
      description: "The name of the agent at the endpoint.",
      select: { upstreamModel: true, name: true },
      resolve: ({ upstreamModel, name }) => upstreamModel ?? name,
    }),
    perUserRpm: t.exposeFloat("perUserRpm", { nullable: true, description: RPM }),
  }),
});

export const FallbackCandidate = builder.objectRef<FallbackCandidateView>("FallbackCandidate").implement({
  description: "A model that can be a fallback of another model.",
  fields: (t) => ({
    modelId: t.exposeID("modelId", { description: "The REST ID of the model, for `fallbackIds`." }),
    model: t.field({
      type: Model,
      nullable: true,
      description: "The model. Null when the calling key may not call it.",
      resolve: ({ modelId }, _args, ctx) => ctx.services.catalog.shown(ctx, modelId),
    }),
    title: t.exposeString("title", { description: "The display name." }),
    description: t.exposeString("description", { nullable: true, description: "A description of the model." }),
    isOwn: t.exposeBoolean("isOwn", { description: "Whether the model belongs to the account." }),
    ...perPriceField((field) =>
      t.field({
        type: "Price",
        description: PRICES[field],
        resolve: ({ prices }: FallbackCandidateView) => formatPicocredits(prices[field]),
      }),
    ),
  }),
});

export const readModelId = (id: string, param = "id") => readId(id, COMMUNITY_MODEL_TYPES, param);
