/** Registered models of the account, agents among them (docs/spec/community-models.md). */
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
export const RPM = "Requests a minute of one account; 0.5 is one in two minutes. Null: no limit.";

export const UpstreamApiEnum = builder.enumType("UpstreamApi", {
  description: "The chat format of OpenAI's that an upstream speaks. The gateway serves both of its own from either.",
  values: describedValues<UpstreamApi>({ chat_completions: "Chat Completions.", responses: "Responses." }),
});

export const AdvertisedCapabilityEnum = builder.enumType("AdvertisedCapability", {
  description: "What an owner may say that a text model can do.",
  values: describedValues<AdvertisedCapability>({
    tool_calling: "Calls the functions that a request offers it.",
    reasoning: "Thinks before it answers.",
  }),
});

export const PRICES = {
  promptTextPrice: "Of a token of text that goes in.",
  promptCachedPrice: "Of a token that the upstream reads from its prompt cache.",
  promptCacheWritePrice: "Of a token that the upstream writes to its prompt cache.",
  promptAudioPrice: "Of a token of sound that goes in; of a transcription, of a second of its recording.",
  promptImagePrice: "Of a token of a picture that goes in.",
  completionTextPrice: "Of a token of text that comes out.",
  completionReasoningPrice: "Of a token of thinking.",
  completionAudioPrice: "Of a token of sound that comes out; of speech, of a character that is read out.",
  completionImagePrice: "Of a picture, or of a token of one.",
  completionVideoPrice: "Of a second of video.",
} as const satisfies Record<PriceField, string>;

const PriceFieldEnum = builder.enumType("PriceField", {
  description: "The prices of a model, by the names of their fields.",
  values: Object.fromEntries(
    PRICE_FIELDS.map((value) => [value.replace(/[A-Z]/g, "_$&").toUpperCase(), { value, description: PRICES[value] }]),
  ) as Record<string, { readonly value: PriceField }>,
});

/** One field for each price, in the order of docs/spec/credits.md#prices. */
export function perPriceField<Field>(create: (field: PriceField) => Field): Record<PriceField, Field> {
  return Object.fromEntries(PRICE_FIELDS.map((field) => [field, create(field)])) as Record<PriceField, Field>;
}

const PendingModelChange = builder.objectRef<PendingView>("CommunityModelPendingChange").implement({
  description: "What a model will be from a moment on. Null: stays as it is.",
  fields: (t) => ({
    effectiveAt: t.expose("effectiveAt", { type: "DateTime", description: "From then on." }),
    visibility: t.expose("visibility", { type: VisibilityEnum, nullable: true, description: "Who may call it then." }),
    isPaidOnly: t.exposeBoolean("paidOnly", { nullable: true, description: "Whether it then draws CRYPTO and PACK credits only." }),
    imagePricing: t.expose("imagePricing", { type: ImagePricing, nullable: true, description: "What is then charged for a picture." }),
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
  description: "Who offers an account's models.",
  fields: (t) => ({
    name: t.exposeString("name", { nullable: true, description: "What its owner is called." }),
    url: t.exposeString("url", { nullable: true, description: "The address of its owner's page at GitHub." }),
    iconUrl: t.exposeString("iconUrl", { nullable: true, description: "The address of its picture." }),
  }),
});

const CommunityModelUsage = builder.objectRef<ModelUsage>("CommunityModelUsage").implement({
  description: "What others have asked of a registered model, in sum.",
  fields: (t) => ({
    requests: t.exposeInt("requests", { description: "Their generations that were charged." }),
    cost: t.field({
      type: "Credits",
      description: "What they have spent on it.",
      resolve: ({ costNanocredits }) => formatNanocredits(costNanocredits),
    }),
    from: t.expose("from", { type: "DateTime", description: "Where the first of the days begins, in UTC." }),
  }),
});

interface UsageWanted {
  readonly modelId: string;
  readonly days: number | undefined;
}

const usageOf = batchedBy<UsageWanted, ModelUsage>(async (ctx, wanted) => {
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

/** Every type of row selects what it is told by, and nothing more: what is sealed is never read. */
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

/** What a registered model may be. */
export const COMMUNITY_MODEL_TYPES = Object.values(TYPE_NAMES);

export const CommunityModel = builder.prismaInterface("CommunityModel", {
  description: "A model that the account has registered; agents are among them.",
  interfaces: [Node],
  select: ROW,
  resolveType: ({ type }) => TYPE_NAMES[type],
  fields: (t) => ({
    modelId: t.id({
      description: "The REST id of the model, by which it is called: `community/<owner>/<name>`.",
      select: MODEL_ID_COLUMNS,
      resolve: modelIdOf,
    }),
    model: t.field({
      type: Model,
      nullable: true,
      description: "The model, as the catalog shows it. Null: it is not the calling key's to call.",
      select: MODEL_ID_COLUMNS,
      resolve: (row, _args, ctx) => ctx.services.catalog.shown(ctx, modelIdOf(row)),
    }),
    name: t.exposeString("name", { description: "The last part of `modelId`." }),
    title: t.exposeString("title", { description: "What people call it." }),
    description: t.exposeString("description", { nullable: true, description: "What it is good for." }),
    visibility: t.field({
      type: VisibilityEnum,
      description: "Who may call it.",
      select: TERMS_COLUMNS,
      resolve: (row, _args, ctx) => ctx.services.communityModels.termsOf(row).visibility,
    }),
    requiredSafetyFeatures: t.field({
      type: [SafetyFeature],
      description: "The checks of the input that every request has.",
      select: { requiredSafetyFeatures: true },
      resolve: ({ requiredSafetyFeatures }) => requiredSafetyFeatures as (typeof SafetyFeature.$inferType)[],
    }),
    pending: t.field({
      type: PendingModelChange,
      nullable: true,
      description: "What is scheduled. Null: nothing.",
      select: TERMS_COLUMNS,
      resolve: (row, _args, ctx) => ctx.services.communityModels.termsOf(row).pending,
    }),
    health: t.field({
      type: ModelHealth,
      description: "How others' calls of it went.",
      resolve: ({ id }, _args, ctx) => ctx.services.catalog.healthOf({ communityModelId: id }),
    }),
    usage: t.field({
      type: CommunityModelUsage,
      nullable: true,
      description: "What others have spent on it, under the id that it is called by now.",
      args: usageDailyDaysArg,
      select: MODEL_ID_COLUMNS,
      resolve: (row, args, ctx) => usageOf(ctx, { modelId: modelIdOf(row), days: toDays(args) }),
    }),
    provider: t.field({
      type: CommunityModelProvider,
      description: "Who offers it.",
      select: { account: { select: PROVIDER_COLUMNS } },
      resolve: ({ account }, _args, ctx) => ctx.services.communityModels.providerFrom(account),
    }),
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When it was registered." }),
    updatedAt: t.expose("updatedAt", { type: "DateTime", description: "When it was last changed." }),
  }),
});

/** How `node` finds a registered model of one of the types. */
export function readBy(typeName: (typeof COMMUNITY_MODEL_TYPES)[number]) {
  return nodesReadBy(async (ctx, ids, info) => {
    const rows = await ctx.services.communityModels.getMany(ctx, ids, selectionOf(ctx, info, [], typeName));
    return byId(rows.filter(({ type }) => TYPE_NAMES[type] === typeName));
  });
}

const AdvertisedMetadata = builder
  .objectRef<{ readonly advertisedCapabilities: readonly string[]; readonly advertisedContextLength: number | null }>("AdvertisedMetadata")
  .implement({
    description: "What the owner says of a text model.",
    fields: (t) => ({
      capabilities: t.field({
        type: [AdvertisedCapabilityEnum],
        description: "What it can do.",
        resolve: ({ advertisedCapabilities }) => advertisedCapabilities as AdvertisedCapability[],
      }),
      contextLength: t.exposeInt("advertisedContextLength", { nullable: true, description: "In tokens. Null: not said." }),
    }),
  });

export const ProxyModel = builder.prismaObject("CommunityModel", {
  variant: "ProxyModel",
  description: "A model that an upstream of the account's runs. Its credential is never shown.",
  interfaces: [Node, CommunityModel],
  select: ROW,
  extensions: readBy("ProxyModel"),
  fields: (t) => ({
    modality: t.field({ type: Modality, description: "What it does.", select: { modality: true }, resolve: ({ modality }) => modality }),
    upstreamModel: t.string({
      description: "The upstream's own name for it.",
      select: { upstreamModel: true, name: true },
      resolve: ({ upstreamModel, name }) => upstreamModel ?? name,
    }),
    imagePricing: t.field({
      type: ImagePricing,
      description: "What is charged for a picture.",
      select: TERMS_COLUMNS,
      resolve: (row, _args, ctx) => ctx.services.communityModels.termsOf(row).imagePricing,
    }),
    inputModalities: t.field({
      type: [ContentKind],
      description: "What goes into it.",
      select: { inputModalities: true },
      resolve: ({ inputModalities }) => inputModalities as (typeof ContentKind.$inferType)[],
    }),
    advertised: t.field({
      type: AdvertisedMetadata,
      description: "What the owner says of it.",
      select: { advertisedCapabilities: true, advertisedContextLength: true },
      resolve: (row) => row,
    }),
    perUserRpm: t.exposeFloat("perUserRpm", { nullable: true, description: RPM }),
    isPaidOnly: t.boolean({
      description: "Draws CRYPTO and PACK credits, never TIER credits.",
      select: TERMS_COLUMNS,
      resolve: (row, _args, ctx) => ctx.services.communityModels.termsOf(row).paidOnly,
    }),
    fallbackIds: t.field({
      type: ["ID"],
      description: "The REST ids of the models that are tried in this order when its upstream fails.",
      select: { fallbacks: true },
      resolve: ({ fallbacks }) => fallbacks,
    }),
    fallbacks: t.field({
      type: [Model],
      description: "The models that are tried in this order when its upstream fails, of those that the caller may call.",
      select: { fallbacks: true },
      resolve: ({ fallbacks }, _args, ctx) => fallbacks.flatMap((id) => ctx.services.catalog.shown(ctx, id) ?? []),
    }),
    fallbackCandidates: t.field({
      type: [FallbackCandidate],
      nullable: true,
      description: `The models that could be fallbacks of it, the account's own first; at most ${FALLBACK_CANDIDATES_MAX}.`,
      complexity: { field: FALLBACK_CANDIDATES_MAX, multiplier: FALLBACK_CANDIDATES_MAX },
      resolve: async ({ id }, _args, ctx) => [...(await ctx.services.communityModels.fallbackCandidates(ctx, id))],
    }),
    api: t.expose("api", { type: UpstreamApiEnum, nullable: true, description: "Of a text model: the format that its upstream speaks." }),
    url: t.string({
      nullable: true,
      description: "Of a text model: the exact endpoint.",
      select: { modality: true, url: true },
      resolve: ({ modality, url }) => (modality === "text" ? url : null),
    }),
    baseUrl: t.string({
      nullable: true,
      description: "Of other media: the base of the media API, or the endpoint.",
      select: { modality: true, url: true },
      resolve: ({ modality, url }) => (modality === "text" ? null : url),
    }),
    statedPrices: t.field({
      type: [PriceFieldEnum],
      description: "The prices that the owner has stated; the others come to what they fall back to.",
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
  description: "An agent that its owner runs: called like a text model, without a credential and for nothing.",
  interfaces: [Node, CommunityModel],
  select: ROW,
  extensions: readBy("EndpointAgentModel"),
  fields: (t) => ({
    inputModalities: t.field({
      type: [ContentKind],
      description: "What goes into it.",
      select: { inputModalities: true },
      resolve: ({ inputModalities }) => inputModalities as (typeof ContentKind.$inferType)[],
    }),
    outputModalities: t.field({
      type: [ContentKind],
      description: "What comes out of it.",
      select: { outputModalities: true },
      resolve: ({ outputModalities }) => outputModalities as (typeof ContentKind.$inferType)[],
    }),
    // Never null; nullable as a ProxyModel's are, so that one document can ask both.
    api: t.expose("api", { type: UpstreamApiEnum, nullable: true, description: "The format that it speaks." }),
    url: t.exposeString("url", { nullable: true, description: "The exact endpoint." }),
    upstreamModel: t.string({
      description: "The endpoint's own name for it.",
      select: { upstreamModel: true, name: true },
      resolve: ({ upstreamModel, name }) => upstreamModel ?? name,
    }),
    perUserRpm: t.exposeFloat("perUserRpm", { nullable: true, description: RPM }),
  }),
});

export const FallbackCandidate = builder.objectRef<FallbackCandidateView>("FallbackCandidate").implement({
  description: "A model that could be a fallback of another one.",
  fields: (t) => ({
    modelId: t.exposeID("modelId", { description: "The REST id of the model: what `fallbackIds` holds." }),
    model: t.field({
      type: Model,
      nullable: true,
      description: "The model. Null: it is not the calling key's to call.",
      resolve: ({ modelId }, _args, ctx) => ctx.services.catalog.shown(ctx, modelId),
    }),
    title: t.exposeString("title", { description: "What people call it." }),
    description: t.exposeString("description", { nullable: true, description: "What it is good for." }),
    isOwn: t.exposeBoolean("isOwn", { description: "Whether it is the account's own." }),
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
