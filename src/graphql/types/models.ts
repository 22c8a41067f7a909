/** The model catalog (docs/spec/models.md). It is public. With a key it lists only the models that the key may call. */
import { formatPicocredits } from "../../lib/money.js";
import { RANKED } from "../../lib/pagination.js";
import type { ModelHealth as Health } from "../../services/catalog/community.js";
import {
  type Category,
  type ContentKind as Content,
  type ImagePricing as ImagePricingName,
  MODALITY_TRAITS,
  type Modality as ModalityName,
} from "../../services/catalog/modality.js";
import type { Capability, SafetyFeature as Feature, Model as ModelRow, PendingModelChange } from "../../services/catalog/model.js";
import { modelPosition, type ModelOrder as Order } from "../../services/catalog/model-list.js";
import type { PricedModel } from "../../services/catalog/price-history.js";
import { type BilledKind, billedKinds } from "../../services/catalog/pricing.js";
import type { ModelVisibility } from "../../services/community-models/common-input.js";
import { builder, describedValues } from "../builder.js";
import { readId } from "../global-ids.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { OrderDirection, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";

/** Shared by registered models and agents (docs/spec/agents.md#record, docs/spec/community-models.md#record). */
export const VisibilityEnum = builder.enumType("Visibility", {
  description: "Who may call a registered model.",
  values: describedValues<ModelVisibility>({ private: "Only its owner, free of charge.", public: "Everyone." }),
});

export const Modality = builder.enumType("Modality", {
  description: "The task that a model performs.",
  values: describedValues<ModalityName>({
    text: "Generates text.",
    image: "Generates images.",
    video: "Generates videos.",
    speech: "Generates speech from text.",
    music: "Generates music.",
    transcription: "Transcribes recordings.",
    embedding: "Creates embeddings of text.",
    rerank: "Sorts documents by their relevance to a query.",
    realtime: "Holds spoken conversations over one connection.",
    moderation: "Classifies harmful content.",
  }),
});

const ModelCategory = builder.enumType("ModelCategory", {
  description: "The groups of the catalog, broader than modalities.",
  values: describedValues<Category>({
    text: "Text and moderation.",
    image: "Images.",
    video: "Videos.",
    audio: "Speech, music and transcription.",
    embedding: "Embeddings and reranking.",
    realtime: "Realtime conversations.",
  }),
});

const CONTENT_DESCRIPTIONS: Readonly<Record<Content, string>> = {
  text: "Text.",
  image: "Images.",
  audio: "Audio.",
  video: "Videos.",
  embedding: "Embeddings.",
  "3d": "3D models.",
};

export const ContentKind = builder.enumType("ContentKind", {
  description: "A kind of input or output of a model.",
  values: Object.fromEntries(
    (Object.entries(CONTENT_DESCRIPTIONS) as [Content, string][]).map(([value, description]) => [
      // A GraphQL name begins with a letter.
      value === "3d" ? "THREE_D" : value.toUpperCase(),
      { value, description },
    ]),
  ),
});

const ModelCapability = builder.enumType("ModelCapability", {
  description: "A capability of a text model besides text generation.",
  values: describedValues<Capability>({
    tools: "Calls functions that the request defines.",
    reasoning: "Reasons before it answers.",
    search: "Searches the web.",
    code_exec: "Runs code.",
    vision: "Reads images.",
  }),
});

export const SafetyFeature = builder.enumType("SafetyFeature", {
  description: "A safety check of the input. A caller cannot disable those that a model requires.",
  values: describedValues<Feature>({
    privacy: "Redacts e-mail and network addresses, and phone, card and account numbers.",
    secrets: "Redacts credentials and keys.",
    sexual: "Blocks sexual content.",
    violence: "Blocks violent and hateful content.",
    shield: "Blocks attempts to override the model's instructions.",
  }),
});

export const ImagePricing = builder.enumType("ImagePricing", {
  description: "How images are priced.",
  values: describedValues<ImagePricingName>({
    request: "Per request.",
    tokens: "By the image tokens that the upstream reports.",
  }),
});

const ModelFlags = builder.objectRef<ModelRow["flags"]>("ModelFlags").implement({
  description: "Flags of a model.",
  fields: (t) => ({
    isPaid: t.exposeBoolean("paid", { description: "Whether any price is not zero." }),
    isAlpha: t.exposeBoolean("alpha", { description: "Whether the model may change or be removed without notice." }),
  }),
});

const BILLED_KINDS = {
  inputTextTokens: "Price per input text token.",
  inputCachedTokens: "Price per token read from the upstream's prompt cache.",
  inputCacheWriteTokens: "Price per token written to the upstream's prompt cache.",
  inputAudioTokens: "Price per input audio token.",
  inputImageTokens: "Price per input image token.",
  outputTextTokens: "Price per output text token.",
  outputReasoningTokens: "Price per reasoning token.",
  outputAudioTokens: "Price per output audio token.",
  outputImageTokens: "Price per output image token.",
  outputVideoMilliseconds: "Price per second of output video.",
  outputAudioMilliseconds: "Price per second of output audio.",
  imageRequests: "Price per image.",
  searchUnits: "Price per search, a query with up to 100 documents.",
  characters: "Price per character of the text to speak.",
  inputAudioMilliseconds: "Price per second of the input recording.",
} as const satisfies Partial<Record<BilledKind, string>>;

export const ModelPricing = builder.objectRef<PricedModel>("ModelPricing").implement({
  description:
    'Prices in credits per unit. The cost of a usage record is its amounts times these prices, except for long prompts and request fields that have their own prices. Null: not billed. "0": free.',
  fields: (t) =>
    Object.fromEntries(
      (Object.entries(BILLED_KINDS) as [keyof typeof BILLED_KINDS, string][]).map(([kind, description]) => [
        // Kinds measured in milliseconds have prices per second.
        kind.replace("Milliseconds", "Seconds"),
        t.field({ type: "Credits", nullable: true, description, resolve: (model) => priceOf(model, kind) }),
      ]),
    ),
});

function priceOf(model: PricedModel, kind: BilledKind): string | null {
  return billedKinds(model).includes(kind) ? formatPicocredits(model.rates[kind]) : null;
}

const ModelHealthStatus = builder.enumType("ModelHealthStatus", {
  description: "The health of a registered model, measured by calls of other accounts.",
  values: describedValues<Health["status"]>({
    unknown: "Too few calls to tell. Also the status of all models that are not registered by an account.",
    healthy: "Most calls succeed.",
    unreliable: "So many calls fail that lists omit the model.",
  }),
});

export const ModelHealth = builder.objectRef<Health>("ModelHealth").implement({
  description: "The health of a registered model: calls of other accounts in the last 24 hours.",
  fields: (t) => ({
    status: t.expose("status", { type: ModelHealthStatus, description: "The status of the model." }),
    successRate: t.exposeFloat("successRate", {
      nullable: true,
      description: "The share of successful calls, 0 to 1. Null when there were no calls.",
    }),
    requests: t.exposeInt("requests", {
      description: "The number of calls. Calls with an error of the caller, and calls that the caller left, are not counted.",
    }),
  }),
});

const ModelPendingChange = builder.objectRef<PendingModelChange>("ModelPendingChange").implement({
  description: "A scheduled change of a registered model. Fields that do not change are null.",
  fields: (t) => ({
    effectiveAt: t.expose("effectiveAt", { type: "DateTime", description: "When the change takes effect." }),
    visibility: t.expose("visibility", { type: VisibilityEnum, nullable: true, description: "Who may call the model after the change." }),
    isPaidOnly: t.exposeBoolean("paidOnly", {
      nullable: true,
      description: "Whether the model can be paid with CRYPTO and PACK credits only after the change.",
    }),
    imagePricing: t.expose("imagePricing", { type: ImagePricing, nullable: true, description: "How images are priced after the change." }),
    pricing: t.field({
      type: ModelPricing,
      nullable: true,
      description: "All prices of the model after the change.",
      resolve: ({ pricing }) => pricing,
    }),
  }),
});

const ModelRef = builder.objectRef<ModelRow>("Model");

export const Model = ModelRef.implement({
  description: "A model that can be called. The `restId` is the canonical ID, `publisher/name`, which requests use.",
  interfaces: [Node],
  extensions: nodesReadBy((ctx, ids) => byId(ids.flatMap((id) => ctx.services.catalog.shown(ctx, id) ?? []))),
  fields: (t) => ({
    aliases: t.field({ type: ["String"], description: "Other IDs that requests may use.", resolve: (model) => [...model.aliases] }),
    publisher: t.exposeString("publisher", { description: "The publisher of the model, who made it." }),
    brandUrl: t.exposeString("brandUrl", { nullable: true, description: "The URL of the publisher's logo." }),
    title: t.exposeString("title", { description: "The display name." }),
    description: t.exposeString("description", { nullable: true, description: "A description of the model." }),
    modality: t.expose("modality", { type: Modality, description: "The modality of the model." }),
    category: t.field({
      type: ModelCategory,
      description: "The group of the catalog that lists the model.",
      resolve: (model) => MODALITY_TRAITS[model.modality].category,
    }),
    inputModalities: t.field({
      type: [ContentKind],
      description: "The kinds of input that the model accepts.",
      resolve: (model) => [...model.inputModalities],
    }),
    outputModalities: t.field({
      type: [ContentKind],
      description: "The kinds of output that the model produces.",
      resolve: (model) => [...model.outputModalities],
    }),
    capabilities: t.field({
      type: [ModelCapability],
      description: "Capabilities besides text generation.",
      resolve: (model) => [...model.capabilities],
    }),
    flags: t.field({ type: ModelFlags, description: "Flags of the model.", resolve: (model) => model.flags }),
    pricing: t.field({ type: ModelPricing, description: "The prices of the model.", resolve: (model) => model }),
    imagePricing: t.expose("imagePricing", { type: ImagePricing, description: "How images are priced." }),
    contextLength: t.exposeInt("contextLength", { nullable: true, description: "The context length in tokens. Null when unknown." }),
    voices: t.field({
      type: ["String"],
      description: "The voices that requests may name, for speech models.",
      resolve: (model) => [...model.voices],
    }),
    isPaidOnly: t.exposeBoolean("paidOnly", {
      description: "Whether the model can be paid with CRYPTO and PACK credits only, never with TIER credits.",
    }),
    perUserRpm: t.exposeFloat("perUserRpm", {
      nullable: true,
      description: "The limit of requests per minute and account. 0.5 means one in two minutes. Null: no limit of its own.",
    }),
    isDefault: t.exposeBoolean("isDefault", { description: "Whether the model serves requests of its modality that name no model." }),
    fallbackIds: t.field({
      type: ["ID"],
      description: "The REST IDs of the fallbacks, tried in this order when the upstream fails.",
      resolve: (model, _args, ctx) => [...ctx.services.catalog.namedFallbacks(ctx.caller, model)],
    }),
    fallbacks: t.field({
      type: [ModelRef],
      description: "The fallbacks that the caller may call, tried in this order when the upstream fails.",
      resolve: (model, _args, ctx) =>
        ctx.services.catalog.namedFallbacks(ctx.caller, model).flatMap((id) => ctx.services.catalog.shown(ctx, id) ?? []),
    }),
    requiredSafetyFeatures: t.field({
      type: [SafetyFeature],
      description: "Safety checks of the input that apply to every request.",
      resolve: (model) => [...model.requiredSafetyFeatures],
    }),
    isCommunity: t.exposeBoolean("isCommunity", { description: "Whether an account registered the model." }),
    isAgent: t.exposeBoolean("isAgent", { description: "Whether the model is an agent, which calls other models to answer." }),
    ownerHandle: t.exposeString("owner", {
      nullable: true,
      description: "The handle of the account that registered the model. Null when no account did.",
    }),
    isPrivate: t.exposeBoolean("isPrivate", { description: "Whether only the owner may call the model, free of charge." }),
    health: t.field({
      type: ModelHealth,
      description: "The health of the model, measured by calls of other accounts.",
      resolve: (model, _args, ctx) => ctx.services.catalog.healthOf(model),
    }),
    pendingChange: t.field({
      type: ModelPendingChange,
      nullable: true,
      description: "The change that the owner has scheduled. Null when there is none.",
      resolve: ({ pendingChange }) => pendingChange,
    }),
    retiresAt: t.expose("retiresAt", {
      type: "DateTime",
      nullable: true,
      description: "When the upstream of the model stops to serve it. Null: not known.",
    }),
    addedAt: t.expose("addedAt", { type: "DateTime", description: "When the model was added to the catalog." }),
  }),
});

const ModelFilter = builder.inputType("ModelFilter", {
  description: "Filters for models. A model must match all of them. Omitted filters match every model.",
  fields: (t) => ({
    search: t.string({
      description: "Words of the ID, an alias, the title, the description or the publisher, case-insensitive; at most 253 characters.",
    }),
    modalities: t.field({ type: [Modality], description: "Models of one of these modalities." }),
    capabilities: t.field({ type: [ModelCapability], description: "Models with all of these capabilities." }),
    publishers: t.stringList({ description: "Models of one of these publishers, at most 100." }),
    isCommunity: t.boolean({ description: "True: models that accounts registered. False: all others." }),
    isFree: t.boolean({ description: "True: models without any price. False: all others." }),
    maxInputPrice: t.field({
      type: "Price",
      description:
        "The highest price per unit of input: a text token, or a second of a recording. Input that is not billed counts as free.",
    }),
    maxOutputPrice: t.field({
      type: "Price",
      description:
        "The highest price per unit of output: a text token, an image or image token, a second, or a character to speak. Output that is not billed counts as free.",
    }),
    healthStatuses: t.field({
      type: [ModelHealthStatus],
      description: "Models with one of these statuses. Defaults to all except UNRELIABLE, of which only the caller's own are listed.",
    }),
  }),
});

const ModelOrderField = builder.enumType("ModelOrderField", {
  description: "The field to sort models by. Models with equal values are sorted by ID.",
  values: describedValues<Order["field"]>({
    default: "By modality. Within a modality: the default model first, stable before alpha, registered models last.",
    title: "The title, case-insensitive.",
    price: "The price per unit of output, or else of input. Units differ between modalities, so filter by one.",
    added_at: "The time when the model was added to the catalog.",
  }),
});

const ModelOrder = builder.inputType("ModelOrder", {
  description: "The sort order of models.",
  fields: (t) => ({
    field: t.field({ type: ModelOrderField, required: true, defaultValue: "default", description: "The field to sort by." }),
    direction: t.field({ type: OrderDirection, required: true, defaultValue: "asc", description: "The direction." }),
  }),
});

builder.queryField("models", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: builder.connectionObject(
      { type: Model, name: "ModelConnection", description: "A page of models." },
      { name: "ModelEdge", description: "A model and its cursor." },
    ),
    nullable: true,
    description: "The models that can be called. Needs no key.",
    args: {
      ...pageArgs,
      filter: t.arg({ type: ModelFilter, description: "Filters. Defaults to all models." }),
      orderBy: t.arg({
        type: ModelOrder,
        required: true,
        defaultValue: { field: "default", direction: "asc" },
        description: "The sort order.",
      }),
    },
    complexity: pageCost,
    resolve: async (_root, { filter, orderBy, ...args }, ctx) => {
      const list = `models.${orderBy.field}.${orderBy.direction}`;
      const page = await ctx.services.catalog.page(ctx, filter ?? {}, orderBy, toPageRequest(args, list, RANKED));
      return toConnection(page, list, (model) => modelPosition(model, orderBy), RANKED);
    },
  }),
);

builder.queryField("model", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: Model,
    nullable: true,
    description: "A single model. Needs no key.",
    args: { id: t.arg.id({ required: true, description: "The canonical ID, node ID or an alias." }) },
    resolve: (_root, { id }, ctx) => ctx.services.catalog.get(ctx, readId(id, "Model", "id")),
  }),
);
