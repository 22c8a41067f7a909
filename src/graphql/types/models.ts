/** The model catalog (docs/spec/models.md): public, and cut to what the key may call when there is one. */
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
import { type BilledKind, billedKinds } from "../../services/catalog/pricing.js";
import type { ModelVisibility } from "../../services/community-models/common-input.js";
import { builder, describedValues } from "../builder.js";
import { readId } from "../global-ids.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { OrderDirection, pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";

/** Said of registered models and of agents alike (docs/spec/agents.md#record, docs/spec/community-models.md#record). */
export const VisibilityEnum = builder.enumType("Visibility", {
  description: "Who may call a model that an account has registered.",
  values: describedValues<ModelVisibility>({ private: "Its owner alone, for nothing.", public: "Everybody." }),
});

export const Modality = builder.enumType("Modality", {
  description: "What a model does.",
  values: describedValues<ModalityName>({
    text: "Writes text.",
    image: "Makes pictures.",
    video: "Makes videos.",
    speech: "Reads text out.",
    music: "Makes music.",
    transcription: "Writes down what a recording says.",
    embedding: "Turns text into vectors.",
    realtime: "Converses in speech, over one connection.",
    moderation: "Judges whether text is harmful.",
  }),
});

const ModelCategory = builder.enumType("ModelCategory", {
  description: "The coarser groups that the catalog is listed by.",
  values: describedValues<Category>({
    text: "Text, and its moderation.",
    image: "Pictures.",
    video: "Videos.",
    audio: "Speech, music and transcription.",
    embedding: "Vectors.",
    realtime: "Conversations in speech.",
  }),
});

const CONTENT_DESCRIPTIONS: Readonly<Record<Content, string>> = {
  text: "Text.",
  image: "Pictures.",
  audio: "Sound.",
  video: "Videos.",
  embedding: "Vectors.",
  "3d": "Bodies in three dimensions.",
};

export const ContentKind = builder.enumType("ContentKind", {
  description: "What goes into a model or comes out of it.",
  values: Object.fromEntries(
    (Object.entries(CONTENT_DESCRIPTIONS) as [Content, string][]).map(([value, description]) => [
      // A GraphQL name begins with a letter.
      value === "3d" ? "THREE_D" : value.toUpperCase(),
      { value, description },
    ]),
  ),
});

const ModelCapability = builder.enumType("ModelCapability", {
  description: "What a text model can do beside writing.",
  values: describedValues<Capability>({
    tools: "Calls the functions that a request offers it.",
    reasoning: "Thinks before it answers.",
    search: "Searches the web.",
    code_exec: "Runs code.",
    vision: "Sees pictures.",
  }),
});

export const SafetyFeature = builder.enumType("SafetyFeature", {
  description: "Checks of the input that a caller cannot switch off.",
  values: describedValues<Feature>({
    privacy: "Takes out e-mail and network addresses, and numbers of telephones, cards and accounts.",
    secrets: "Takes out credentials and keys.",
    sexual: "Refuses what is sexual.",
    violence: "Refuses what is violent or hateful.",
    shield: "Refuses attempts to talk the model out of its instructions.",
  }),
});

export const ImagePricing = builder.enumType("ImagePricing", {
  description: "What is charged for a picture.",
  values: describedValues<ImagePricingName>({
    request: "A generation is charged once.",
    tokens: "The image tokens that the upstream reports are charged.",
  }),
});

const ModelFlags = builder.objectRef<ModelRow["flags"]>("ModelFlags").implement({
  description: "What to know of a model before calling it.",
  fields: (t) => ({
    isPaid: t.exposeBoolean("paid", { description: "Something of it has a price." }),
    isAlpha: t.exposeBoolean("alpha", { description: "May change or go without notice." }),
  }),
});

const BILLED_KINDS = {
  inputTextTokens: "A token of text that goes in.",
  inputCachedTokens: "A token that the upstream reads from its prompt cache.",
  inputCacheWriteTokens: "A token that the upstream writes to its prompt cache.",
  inputAudioTokens: "A token of sound that goes in.",
  inputImageTokens: "A token of a picture that goes in.",
  outputTextTokens: "A token of text that comes out.",
  outputReasoningTokens: "A token of thinking.",
  outputAudioTokens: "A token of sound that comes out.",
  outputImageTokens: "A token of a picture that comes out.",
  outputVideoMilliseconds: "A second of video that comes out.",
  outputAudioMilliseconds: "A second of sound that comes out.",
  imageRequests: "A picture.",
  characters: "A character that is read out.",
  inputAudioMilliseconds: "A second of a recording that goes in.",
} as const satisfies Partial<Record<BilledKind, string>>;

type Priced = Pick<ModelRow, "modality" | "imagePricing" | "rates">;

const ModelPricing = builder.objectRef<Priced>("ModelPricing").implement({
  description:
    'Credits per unit of each kind that the model is billed by, so that a usage record\'s amounts times these are its cost, unless the prompt was long or a field of the request has a price of its own. Null: not billed. "0": free.',
  fields: (t) =>
    Object.fromEntries(
      (Object.entries(BILLED_KINDS) as [keyof typeof BILLED_KINDS, string][]).map(([kind, description]) => [
        // Prices of what is measured in time are per second.
        kind.replace("Milliseconds", "Seconds"),
        t.field({ type: "Credits", nullable: true, description, resolve: (model) => priceOf(model, kind) }),
      ]),
    ),
});

function priceOf(model: Priced, kind: BilledKind): string | null {
  return billedKinds(model).includes(kind) ? formatPicocredits(model.rates[kind]) : null;
}

const ModelHealthStatus = builder.enumType("ModelHealthStatus", {
  description: "What others' calls say of a registered model.",
  values: describedValues<Health["status"]>({
    unknown: "There were too few calls to tell. Models that nobody registered are always of this status.",
    healthy: "Most of them succeeded.",
    unreliable: "So many of them failed that lists leave the model out.",
  }),
});

export const ModelHealth = builder.objectRef<Health>("ModelHealth").implement({
  description: "How others' calls of a registered model went in the last 24 hours.",
  fields: (t) => ({
    status: t.expose("status", { type: ModelHealthStatus, description: "What they say of it." }),
    successRate: t.exposeFloat("successRate", { nullable: true, description: "Of 1. Null: it was not called." }),
    requests: t.exposeInt("requests", { description: "How many there were. Those that the caller got wrong or left are not counted." }),
  }),
});

const ModelPendingChange = builder.objectRef<PendingModelChange>("ModelPendingChange").implement({
  description: "What a registered model will be from a moment on. Null: stays as it is.",
  fields: (t) => ({
    effectiveAt: t.expose("effectiveAt", { type: "DateTime", description: "From then on." }),
    visibility: t.expose("visibility", { type: VisibilityEnum, nullable: true, description: "Who may call it then." }),
    isPaidOnly: t.exposeBoolean("paidOnly", { nullable: true, description: "Whether it then draws CRYPTO and PACK credits only." }),
    imagePricing: t.expose("imagePricing", { type: ImagePricing, nullable: true, description: "What is then charged for a picture." }),
    pricing: t.field({ type: ModelPricing, nullable: true, description: "All of its prices then.", resolve: ({ pricing }) => pricing }),
  }),
});

const ModelRef = builder.objectRef<ModelRow>("Model");

export const Model = ModelRef.implement({
  description: "A model that can be called. Its `restId` is the canonical id, `publisher/name`, that requests name it by.",
  interfaces: [Node],
  extensions: nodesReadBy((ctx, ids) => byId(ids.flatMap((id) => ctx.services.catalog.shown(ctx, id) ?? []))),
  fields: (t) => ({
    aliases: t.field({ type: ["String"], description: "Other names that requests may use.", resolve: (model) => [...model.aliases] }),
    publisher: t.exposeString("publisher", { description: "Who made it, not who runs it." }),
    brandUrl: t.exposeString("brandUrl", { nullable: true, description: "The address of its publisher's sign." }),
    title: t.exposeString("title", { description: "What people call it." }),
    description: t.exposeString("description", { nullable: true, description: "What it is good for." }),
    modality: t.expose("modality", { type: Modality, description: "What it does." }),
    category: t.field({
      type: ModelCategory,
      description: "The group of the catalog that it is listed in.",
      resolve: (model) => MODALITY_TRAITS[model.modality].category,
    }),
    inputModalities: t.field({ type: [ContentKind], description: "What goes into it.", resolve: (model) => [...model.inputModalities] }),
    outputModalities: t.field({
      type: [ContentKind],
      description: "What comes out of it.",
      resolve: (model) => [...model.outputModalities],
    }),
    capabilities: t.field({
      type: [ModelCapability],
      description: "What it can do beside writing.",
      resolve: (model) => [...model.capabilities],
    }),
    flags: t.field({ type: ModelFlags, description: "What to know before calling it.", resolve: (model) => model.flags }),
    pricing: t.field({ type: ModelPricing, description: "What it costs.", resolve: (model) => model }),
    imagePricing: t.expose("imagePricing", { type: ImagePricing, description: "What is charged for a picture." }),
    contextLength: t.exposeInt("contextLength", { nullable: true, description: "In tokens. Null: not known." }),
    voices: t.field({
      type: ["String"],
      description: "Of a model that speaks: the voices that requests may name.",
      resolve: (model) => [...model.voices],
    }),
    isPaidOnly: t.exposeBoolean("paidOnly", { description: "Draws CRYPTO and PACK credits, never TIER credits." }),
    perUserRpm: t.exposeFloat("perUserRpm", {
      nullable: true,
      description: "Requests a minute of one account; 0.5 is one in two minutes. Null: no limit of its own.",
    }),
    isDefault: t.exposeBoolean("isDefault", { description: "Serves requests of its modality that name no model." }),
    fallbackIds: t.field({
      type: ["ID"],
      description: "The REST ids of the models that are tried in this order when its upstream fails.",
      resolve: (model, _args, ctx) => [...ctx.services.catalog.namedFallbacks(ctx.caller, model)],
    }),
    fallbacks: t.field({
      type: [ModelRef],
      description: "The models that are tried in this order when its upstream fails, of those that the caller may call.",
      resolve: (model, _args, ctx) =>
        ctx.services.catalog.namedFallbacks(ctx.caller, model).flatMap((id) => ctx.services.catalog.shown(ctx, id) ?? []),
    }),
    requiredSafetyFeatures: t.field({
      type: [SafetyFeature],
      description: "The checks of the input that every request has.",
      resolve: (model) => [...model.requiredSafetyFeatures],
    }),
    isCommunity: t.exposeBoolean("isCommunity", { description: "Registered by an account." }),
    isAgent: t.exposeBoolean("isAgent", { description: "Asks other models to answer." }),
    ownerHandle: t.exposeString("owner", {
      nullable: true,
      description: "The handle of the account that registered it. Null: none has.",
    }),
    isPrivate: t.exposeBoolean("isPrivate", { description: "Only its owner's to call, for nothing." }),
    health: t.field({
      type: ModelHealth,
      description: "How others' calls of it went.",
      resolve: (model, _args, ctx) => ctx.services.catalog.healthOf(model),
    }),
    pendingChange: t.field({
      type: ModelPendingChange,
      nullable: true,
      description: "What its owner has scheduled. Null: nothing.",
      resolve: ({ pendingChange }) => pendingChange,
    }),
    addedAt: t.expose("addedAt", { type: "DateTime", description: "When the catalog took it up." }),
  }),
});

const ModelFilter = builder.inputType("ModelFilter", {
  description: "Which models are meant: those that are all of this. What is left out lets every model through.",
  fields: (t) => ({
    search: t.string({
      description: "Words of the id, an alias, the title, the description or the publisher, in any case; at most 253 characters.",
    }),
    modalities: t.field({ type: [Modality], description: "One of these." }),
    capabilities: t.field({ type: [ModelCapability], description: "All of these." }),
    publishers: t.stringList({ description: "One of these, at most 100." }),
    isCommunity: t.boolean({ description: "True: those that accounts have registered. False: the others." }),
    isFree: t.boolean({ description: "True: those of which nothing has a price. False: the others." }),
    maxInputPrice: t.field({
      type: "Price",
      description: "The most that a unit of input may cost: a token of text, or a second of a recording. What is not billed costs nothing.",
    }),
    maxOutputPrice: t.field({
      type: "Price",
      description:
        "The most that a unit of output may cost: a token of text, a picture or a token of one, a second, or a character that is read out. What is not billed costs nothing.",
    }),
    healthStatuses: t.field({
      type: [ModelHealthStatus],
      description: "One of these. Left out: all but UNRELIABLE, of which only the caller's own are shown.",
    }),
  }),
});

const ModelOrderField = builder.enumType("ModelOrderField", {
  description: "What models are sorted by. Those that are alike in it come by their ids.",
  values: describedValues<Order["field"]>({
    default: "The modality, and of each modality the default first, stable before alpha, registered ones last.",
    title: "The title, in any case.",
    price: "What a unit of output costs, else one of input. Units differ between modalities: filter by one.",
    added_at: "When the catalog took it up.",
  }),
});

const ModelOrder = builder.inputType("ModelOrder", {
  description: "How models are sorted.",
  fields: (t) => ({
    field: t.field({ type: ModelOrderField, required: true, defaultValue: "default", description: "What by." }),
    direction: t.field({ type: OrderDirection, required: true, defaultValue: "asc", description: "Which end first." }),
  }),
});

builder.queryField("models", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: builder.connectionObject(
      { type: Model, name: "ModelConnection", description: "Models, page by page." },
      { name: "ModelEdge", description: "A model, and its place in the list." },
    ),
    nullable: true,
    description: "The models that can be called. Needs no key.",
    args: {
      ...pageArgs,
      filter: t.arg({ type: ModelFilter, description: "Which of them." }),
      orderBy: t.arg({
        type: ModelOrder,
        required: true,
        defaultValue: { field: "default", direction: "asc" },
        description: "In which order.",
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
    description: "One model. Needs no key.",
    args: { id: t.arg.id({ required: true, description: "Which one, by either id or by an alias." }) },
    resolve: (_root, { id }, ctx) => ctx.services.catalog.get(ctx, readId(id, "Model", "id")),
  }),
);
