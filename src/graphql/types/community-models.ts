/** Community models of the account (docs/spec/community-models.md). */
import { formatPicocredits } from "../../lib/money.js";
import { UPSTREAM_APIS } from "../../services/catalog/model.js";
import { PRICE_FIELDS, type PriceField } from "../../services/catalog/pricing.js";
import type { ModelProvider, OwnModelChange } from "../../services/community-models/community-models.js";
import { FALLBACK_CANDIDATES_MAX } from "../../services/community-models/limits.js";
import { ADVERTISED_CAPABILITIES } from "../../services/community-models/models-input.js";
import { MODEL_CHANGES } from "../../services/community-models/repository.js";
import type {
  CommunityModelView,
  EndpointAgentView,
  FallbackCandidate as FallbackCandidateView,
  ManagedAgentView,
  PendingView,
  ProxyView,
} from "../../services/community-models/view.js";
import { builder, enumValues } from "../builder.js";
import { cancellable } from "../cancellable.js";
import { createdPosition, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { Account } from "./accounts.js";
import { ContentKind, ImagePricing, Modality, SafetyFeature, VisibilityEnum } from "./models.js";

export const NEEDS_KEYS = "Needs a secret key with the permission KEYS.";
export const RPM = "Requests a minute of one account; 0.5 is one in two minutes. Null: no limit.";

export const UpstreamApiEnum = builder.enumType("UpstreamApi", {
  description: "The chat format of OpenAI's that an upstream speaks. The gateway serves both of its own from either.",
  values: enumValues(UPSTREAM_APIS),
});

export const AdvertisedCapabilityEnum = builder.enumType("AdvertisedCapability", {
  description: "What an owner may say that a text model can do.",
  values: enumValues(ADVERTISED_CAPABILITIES),
});

const PriceFieldEnum = builder.enumType("PriceField", {
  description: "The price fields of a model, by their names.",
  values: Object.fromEntries(PRICE_FIELDS.map((field) => [toUpperSnake(field), { value: field }])) as Record<
    string,
    { readonly value: PriceField }
  >,
});

/** One field for each price, in the order of docs/spec/credits.md#prices. */
export function perPriceField<Field>(create: (field: PriceField) => Field): Record<PriceField, Field> {
  return Object.fromEntries(PRICE_FIELDS.map((field) => [field, create(field)])) as Record<PriceField, Field>;
}

function toUpperSnake(name: string): string {
  return name.replace(/[A-Z]/g, "_$&").toUpperCase();
}

const PendingModelChange = builder.objectRef<PendingView>("CommunityModelPendingChange").implement({
  description: "What a model will be from a moment on. Null: stays as it is.",
  fields: (t) => ({
    effectiveAt: t.expose("effectiveAt", { type: "DateTime" }),
    visibility: t.expose("visibility", { type: VisibilityEnum, nullable: true }),
    paidOnly: t.exposeBoolean("paidOnly", { nullable: true }),
    imagePricing: t.expose("imagePricing", { type: ImagePricing, nullable: true }),
    ...perPriceField((field) =>
      t.field({
        type: "Price",
        nullable: true,
        resolve: ({ prices }: PendingView) => {
          const price = prices[field];
          return price === undefined ? null : formatPicocredits(price);
        },
      }),
    ),
  }),
});

/** What a registered model may be. */
export const COMMUNITY_MODEL_TYPES = ["ProxyModel", "EndpointAgentModel", "PromptAgent", "CodeAgent"] as const;

export const CommunityModel = builder.interfaceRef<CommunityModelView>("CommunityModel").implement({
  description: "A model that the account has registered; agents are among them.",
  resolveType: ({ type }) => TYPE_NAMES[type],
  fields: (t) => ({
    id: t.exposeID("id"),
    modelId: t.exposeID("modelId", { description: "What it is called by: `community/<owner>/<name>`." }),
    name: t.exposeString("name"),
    title: t.exposeString("title"),
    description: t.exposeString("description", { nullable: true }),
    visibility: t.expose("visibility", { type: VisibilityEnum }),
    requiredSafetyFeatures: t.field({ type: [SafetyFeature], resolve: (view) => [...view.requiredSafetyFeatures] }),
    pending: t.expose("pending", { type: PendingModelChange, nullable: true, description: "What is scheduled; null: nothing." }),
    createdAt: t.expose("createdAt", { type: "DateTime" }),
    updatedAt: t.expose("updatedAt", { type: "DateTime" }),
  }),
});

const TYPE_NAMES = {
  proxy: "ProxyModel",
  prompt_agent: "PromptAgentModel",
  code_agent: "CodeAgentModel",
  endpoint_agent: "EndpointAgentModel",
} as const satisfies Record<CommunityModelView["type"], string>;

const AdvertisedMetadata = builder.objectRef<ProxyView["advertised"]>("AdvertisedMetadata").implement({
  description: "What the owner says of a text model.",
  fields: (t) => ({
    capabilities: t.field({ type: [AdvertisedCapabilityEnum], resolve: ({ capabilities }) => [...capabilities] }),
    contextLength: t.exposeInt("contextLength", { nullable: true, description: "In tokens." }),
  }),
});

export const ProxyModel = builder.objectRef<ProxyView>("ProxyModel").implement({
  description: "A model that an upstream of the account's runs. Its credential is never shown.",
  interfaces: [CommunityModel],
  fields: (t) => ({
    modality: t.expose("modality", { type: Modality }),
    upstreamModel: t.exposeString("upstreamModel", { description: "The upstream's own name for it." }),
    imagePricing: t.expose("imagePricing", { type: ImagePricing }),
    inputModalities: t.field({ type: [ContentKind], resolve: (view) => [...view.inputModalities] }),
    advertised: t.expose("advertised", { type: AdvertisedMetadata }),
    perUserRpm: t.exposeFloat("perUserRpm", { nullable: true, description: RPM }),
    paidOnly: t.exposeBoolean("paidOnly", { description: "Draws CRYPTO and PACK credits, never TIER credits." }),
    fallbacks: t.field({
      type: ["ID"],
      description: "Tried in this order when its upstream fails.",
      resolve: (view) => [...view.fallbacks],
    }),
    api: t.expose("api", { type: UpstreamApiEnum, nullable: true, description: "Of a text model." }),
    url: t.string({
      nullable: true,
      description: "Of a text model: the exact endpoint.",
      resolve: (view) => (isText(view) ? view.url : null),
    }),
    baseUrl: t.string({
      nullable: true,
      description: "Of other media: the base of the media API, or the endpoint.",
      resolve: (view) => (isText(view) ? null : view.url),
    }),
    statedPrices: t.field({
      type: [PriceFieldEnum],
      description: "The prices that the owner has stated; the others come to what they fall back to.",
      resolve: ({ stated }) => PRICE_FIELDS.filter((field) => stated[field] !== undefined),
    }),
    ...perPriceField((field) => t.field({ type: "Price", resolve: ({ prices }: ProxyView) => formatPicocredits(prices[field]) })),
  }),
});

function isText({ modality }: ProxyView): boolean {
  return modality === "text";
}

export const EndpointAgentModel = builder.objectRef<EndpointAgentView>("EndpointAgentModel").implement({
  description: "An agent that its owner runs: called like a text model, without a credential and for nothing.",
  interfaces: [CommunityModel],
  fields: (t) => ({
    inputModalities: t.field({ type: [ContentKind], resolve: (view) => [...view.inputModalities] }),
    outputModalities: t.field({ type: [ContentKind], resolve: (view) => [...view.outputModalities] }),
    // Never null; nullable as a ProxyModel's are, so that one document can ask both.
    api: t.expose("api", { type: UpstreamApiEnum, nullable: true }),
    url: t.exposeString("url", { nullable: true, description: "The exact endpoint." }),
    upstreamModel: t.exposeString("upstreamModel"),
    perUserRpm: t.exposeFloat("perUserRpm", { nullable: true, description: RPM }),
  }),
});

for (const [name, description] of [
  ["PromptAgentModel", "A prompt agent as a model: `agent(id)` has the rest of it."],
  ["CodeAgentModel", "A code agent as a model: `agent(id)` has the rest of it."],
] as const) {
  builder.objectRef<ManagedAgentView>(name).implement({ description, interfaces: [CommunityModel], fields: () => ({}) });
}

const CommunityModelProvider = builder.objectRef<ModelProvider>("CommunityModelProvider").implement({
  description: "Who offers the account's models.",
  fields: (t) => ({
    name: t.exposeString("name", { nullable: true }),
    url: t.exposeString("url", { nullable: true }),
    iconUrl: t.exposeString("iconUrl", { nullable: true }),
  }),
});

builder.objectField(Account, "communityModels", (t) =>
  t.field({
    type: builder.connectionObject({ type: CommunityModel, name: "CommunityModelConnection" }, { name: "CommunityModelEdge" }),
    nullable: true,
    description: `The account's models and agents, newest first. ${NEEDS_KEYS}`,
    args: pageArgs,
    complexity: pageCost,
    resolve: async (_row, args, ctx) =>
      toConnection(
        await ctx.services.communityModels.listPage(ctx, toPageRequest(args, "communityModels")),
        "communityModels",
        createdPosition,
      ),
  }),
);

builder.objectField(Account, "communityModelProvider", (t) =>
  t.field({
    type: CommunityModelProvider,
    nullable: true,
    description: `Who offers the account's models. ${NEEDS_KEYS}`,
    resolve: (_row, _args, ctx) => ctx.services.communityModels.provider(ctx),
  }),
);

builder.queryField("communityModel", (t) =>
  t.field({
    type: CommunityModel,
    nullable: true,
    description: `One of the account's models. ${NEEDS_KEYS}`,
    args: { id: t.arg.id({ required: true }) },
    resolve: (_root, { id }, ctx) => ctx.services.communityModels.get(ctx, id),
  }),
);

const FallbackCandidate = builder.objectRef<FallbackCandidateView>("FallbackCandidate").implement({
  description: "A model that could be a fallback of another one.",
  fields: (t) => ({
    modelId: t.exposeID("modelId", { description: "What `fallbacks` holds." }),
    title: t.exposeString("title"),
    description: t.exposeString("description", { nullable: true }),
    isOwn: t.exposeBoolean("isOwn", { description: "The account's own." }),
    ...perPriceField((field) =>
      t.field({ type: "Price", resolve: ({ prices }: FallbackCandidateView) => formatPicocredits(prices[field]) }),
    ),
  }),
});

builder.queryField("fallbackCandidates", (t) =>
  t.field({
    type: [FallbackCandidate],
    nullable: true,
    description: `The models that could be fallbacks of one of the account's models, the account's own first; at most 100. ${NEEDS_KEYS}`,
    args: { communityModelId: t.arg.id({ required: true }) },
    complexity: { field: 1, multiplier: FALLBACK_CANDIDATES_MAX },
    resolve: async (_root, { communityModelId }, ctx) => [
      ...(await ctx.services.communityModels.fallbackCandidates(ctx, communityModelId)),
    ],
  }),
);

const CommunityModelChangeKind = builder.enumType("CommunityModelChangeKind", {
  description: "UPDATED: by its owner, or because what was scheduled has come due.",
  values: enumValues(MODEL_CHANGES),
});

const CommunityModelChange = builder.objectRef<OwnModelChange>("CommunityModelChange").implement({
  description: "What became of one of the account's models.",
  fields: (t) => ({
    id: t.exposeID("id"),
    change: t.expose("change", { type: CommunityModelChangeKind }),
    model: t.expose("model", { type: CommunityModel, nullable: true, description: "As it is now; null when it is deleted." }),
  }),
});

builder.subscriptionField("communityModelChanged", (t) =>
  t.field({
    type: CommunityModelChange,
    description: `Each change of the account's models, and each scheduled change when it comes due. ${NEEDS_KEYS}`,
    subscribe: (_root, _args, ctx) => cancellable(ctx, (live) => ctx.services.communityModels.changed(live), ctx.closing),
    resolve: (change) => change,
  }),
);
