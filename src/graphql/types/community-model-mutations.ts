/**
 * Registering, changing and removing community models (docs/spec/community-models.md#operations), and the probe of an upstream
 * (docs/spec/community-models.md#probe).
 */
import { parsePermitted, requireKeyManager } from "../../services/access/permissions.js";
import {
  createCommunityModelInput,
  createEndpointAgentInput,
  updateCommunityModelInput,
} from "../../services/community-models/models-input.js";
import { type CommunityModelTest as Test, testCommunityModelInput } from "../../services/community-models/probe.js";
import type { SelectedModel } from "../../services/community-models/repository.js";
import { builder } from "../builder.js";
import type { GraphQLContext } from "../context.js";
import { readId } from "../global-ids.js";
import { selectionOf } from "../selection.js";
import {
  AdvertisedCapabilityEnum,
  CommunityModel,
  EndpointAgentModel,
  NEEDS_KEYS,
  PRICES,
  ProxyModel,
  perPriceField,
  RPM,
  readModelId,
  UpstreamApiEnum,
} from "./community-models.js";
import { ContentKind, ImagePricing, Modality, SafetyFeature, VisibilityEnum } from "./models.js";

const NAME = "The last part of the id that it is called by: 1 to 120 letters, digits and the characters . _ : -";
const TITLE = "What people call it, in 1 to 42 characters.";
const DESCRIPTION = "What it is good for, in at most 1,000 characters.";
const PUBLISHING = "Who may call it. PUBLIC needs community publisher access, and comes after three hours.";
const TOKEN = "The upstream's credential: stored encrypted, never shown.";
const TEXT_URL = "Of a text model: the exact endpoint, with its path and query.";
const BASE_URL = "Of other media: the base of the media API, or the endpoint; of video the exact endpoint.";
const FALLBACKS = "At most three ids of registered models, tried in this order when the upstream fails. None is dearer than this model.";
const SAFETY = "The checks of the input that every request has.";
const PAID_ONLY = "Whether it draws CRYPTO and PACK credits only, never TIER credits.";
const MODALITIES = "TEXT, IMAGE, VIDEO, TRANSCRIPTION, SPEECH or EMBEDDING.";

/** What the service calls these fields. */
const IS_PAID_ONLY = { extensions: { wireName: "paidOnly" } } as const;
const FALLBACK_IDS = { extensions: { wireName: "fallbacks" } } as const;

interface NamedHere {
  readonly isPaidOnly?: boolean | null | undefined;
  readonly fallbackIds?: readonly string[] | null | undefined;
}

/** In the words of the service. Whoever may not ask is told that before ids are looked at. */
function inServiceWords<Input extends NamedHere>(ctx: GraphQLContext, { isPaidOnly, fallbackIds, ...input }: Input) {
  requireKeyManager(ctx);
  return {
    ...input,
    ...(isPaidOnly !== undefined && { paidOnly: isPaidOnly }),
    ...(fallbackIds !== undefined && {
      fallbacks: fallbackIds?.map((id, place) => readId(id, "Model", `fallbackIds.${place}`)) ?? null,
    }),
  };
}

const AdvertisedInput = builder.inputType("AdvertisedInput", {
  description: "What the owner says of a text model.",
  fields: (t) => ({
    capabilities: t.field({
      type: [AdvertisedCapabilityEnum],
      required: true,
      defaultValue: [],
      description: "What it can do.",
    }),
    contextLength: t.int({ description: "In tokens, at most 10,000,000. Null: not said." }),
  }),
});

const CreateCommunityModelInput = builder.inputType("CreateCommunityModelInput", {
  description: "The model to be registered.",
  fields: (t) => ({
    name: t.string({ required: true, description: NAME }),
    title: t.string({ required: true, description: TITLE }),
    description: t.string({ description: DESCRIPTION }),
    visibility: t.field({ type: VisibilityEnum, required: true, defaultValue: "private", description: PUBLISHING }),
    modality: t.field({ type: Modality, required: true, defaultValue: "text", description: `What it does: ${MODALITIES}` }),
    api: t.field({ type: UpstreamApiEnum, description: "Of a text model: the format that its upstream speaks. Required." }),
    url: t.string({ description: `${TEXT_URL} Required.` }),
    baseUrl: t.string({ description: `${BASE_URL} Required.` }),
    bearerToken: t.string({ required: true, description: TOKEN }),
    upstreamModel: t.string({ description: "The upstream's own name for it. Omitted: its name here." }),
    inputModalities: t.field({ type: [ContentKind], description: "What goes into it. Omitted: what its modality takes." }),
    requiredSafetyFeatures: t.field({ type: [SafetyFeature], required: true, defaultValue: [], description: SAFETY }),
    advertised: t.field({ type: AdvertisedInput, description: "What its owner says of it." }),
    perUserRpm: t.float({ description: RPM }),
    isPaidOnly: t.boolean({ ...IS_PAID_ONLY, required: true, defaultValue: false, description: PAID_ONLY }),
    fallbackIds: t.idList({ ...FALLBACK_IDS, required: true, defaultValue: [], description: FALLBACKS }),
    imagePricing: t.field({ type: ImagePricing, required: true, defaultValue: "request", description: "What is charged for a picture." }),
    ...perPriceField((field) => t.field({ type: "Price", description: PRICES[field] })),
  }),
});

const CreateCommunityModelPayload = builder.objectRef<{ readonly communityModel: SelectedModel }>("CreateCommunityModelPayload").implement({
  description: "A model that has been registered.",
  fields: (t) => ({ communityModel: t.expose("communityModel", { type: ProxyModel, description: "The model." }) }),
});

builder.mutationField("createCommunityModel", (t) =>
  t.field({
    type: CreateCommunityModelPayload,
    nullable: true,
    description: `Registers a model that an upstream of the account's runs. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreateCommunityModelInput, required: true, description: "The model." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const { communityModels } = ctx.services;
      const asked = parsePermitted(ctx, requireKeyManager, createCommunityModelInput, inServiceWords(ctx, input));
      const { id } = await communityModels.create(ctx, asked);
      return { communityModel: await communityModels.getSelected(ctx, id, selectionOf(ctx, info, ["communityModel"])) };
    },
  }),
);

const CreateEndpointAgentInput = builder.inputType("CreateEndpointAgentInput", {
  description: "The agent to be registered.",
  fields: (t) => ({
    name: t.string({ required: true, description: NAME }),
    title: t.string({ required: true, description: TITLE }),
    description: t.string({ description: DESCRIPTION }),
    visibility: t.field({ type: VisibilityEnum, required: true, defaultValue: "private", description: PUBLISHING }),
    requiredSafetyFeatures: t.field({ type: [SafetyFeature], required: true, defaultValue: [], description: SAFETY }),
    inputModalities: t.field({
      type: [ContentKind],
      required: true,
      defaultValue: ["text"],
      description: "What goes into it: TEXT, IMAGE, AUDIO and VIDEO.",
    }),
    outputModalities: t.field({ type: [ContentKind], required: true, defaultValue: ["text"], description: "What comes out of it." }),
    api: t.field({ type: UpstreamApiEnum, required: true, description: "The format that it speaks." }),
    url: t.string({ required: true, description: "The exact endpoint, with its path and query." }),
    upstreamModel: t.string({ description: "The endpoint's own name for it. Omitted: its name here." }),
    perUserRpm: t.float({ description: RPM }),
  }),
});

const CreateEndpointAgentPayload = builder.objectRef<{ readonly agent: SelectedModel }>("CreateEndpointAgentPayload").implement({
  description: "An agent that has been registered.",
  fields: (t) => ({ agent: t.expose("agent", { type: EndpointAgentModel, description: "The agent." }) }),
});

builder.mutationField("createEndpointAgent", (t) =>
  t.field({
    type: CreateEndpointAgentPayload,
    nullable: true,
    description: `Registers an agent that its owner runs: called like a text model, without a credential and for nothing. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreateEndpointAgentInput, required: true, description: "The agent." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const { communityModels } = ctx.services;
      const asked = parsePermitted(ctx, requireKeyManager, createEndpointAgentInput, input);
      const { id } = await communityModels.createEndpointAgent(ctx, asked);
      return { agent: await communityModels.getSelected(ctx, id, selectionOf(ctx, info, ["agent"])) };
    },
  }),
);

const UpdateCommunityModelInput = builder.inputType("UpdateCommunityModelInput", {
  description:
    "Only the fields that are sent change. On a public model another `isPaidOnly`, `imagePricing` or price waits for three hours.",
  fields: (t) => ({
    id: t.id({ required: true, description: "Which model." }),
    name: t.string({ description: `${NAME} Not of a public model.` }),
    title: t.string({ description: TITLE }),
    description: t.string({ description: `${DESCRIPTION} Null: none.` }),
    visibility: t.field({ type: VisibilityEnum, description: "Who may call it: PRIVATE at once; PUBLIC after three hours." }),
    api: t.field({ type: UpstreamApiEnum, description: "Of a text model or an endpoint agent: the format that its upstream speaks." }),
    url: t.string({ description: `${TEXT_URL} Another one needs the bearerToken again.` }),
    baseUrl: t.string({ description: `${BASE_URL} Another one needs the bearerToken again.` }),
    bearerToken: t.string({ description: TOKEN }),
    upstreamModel: t.string({ description: "The upstream's own name for it." }),
    inputModalities: t.field({ type: [ContentKind], description: "What goes into it." }),
    outputModalities: t.field({ type: [ContentKind], description: "Of an endpoint agent: what comes out of it." }),
    requiredSafetyFeatures: t.field({ type: [SafetyFeature], description: SAFETY }),
    advertised: t.field({ type: AdvertisedInput, description: "What its owner says of it: all of it anew. Null: nothing." }),
    perUserRpm: t.float({ description: RPM }),
    isPaidOnly: t.boolean({ ...IS_PAID_ONLY, description: PAID_ONLY }),
    fallbackIds: t.idList({ ...FALLBACK_IDS, description: `${FALLBACKS} Empty: none.` }),
    imagePricing: t.field({ type: ImagePricing, description: "What is charged for a picture." }),
    ...perPriceField((field) => t.field({ type: "Price", description: `${PRICES[field]} Null: no longer stated.` })),
  }),
});

const UpdateCommunityModelPayload = builder.objectRef<{ readonly communityModel: SelectedModel }>("UpdateCommunityModelPayload").implement({
  description: "A model that has been changed.",
  fields: (t) => ({ communityModel: t.expose("communityModel", { type: CommunityModel, description: "As it now is." }) }),
});

builder.mutationField("updateCommunityModel", (t) =>
  t.field({
    type: UpdateCommunityModelPayload,
    nullable: true,
    description: `Changes a model or an endpoint agent; other agents are changed by updateAgent. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: UpdateCommunityModelInput, required: true, description: "Which model, and what changes." }) },
    resolve: async (_root, { input: { id, ...changes } }, ctx, info) => {
      const { communityModels } = ctx.services;
      const asked = parsePermitted(ctx, requireKeyManager, updateCommunityModelInput, inServiceWords(ctx, changes));
      const changed = await communityModels.update(ctx, readModelId(id), asked);
      return { communityModel: await communityModels.getSelected(ctx, changed.id, selectionOf(ctx, info, ["communityModel"])) };
    },
  }),
);

const DeleteCommunityModelInput = builder.inputType("DeleteCommunityModelInput", {
  description: "The model to be removed.",
  fields: (t) => ({ id: t.id({ required: true, description: "Which model." }) }),
});

const DeleteCommunityModelPayload = builder.objectRef<{ readonly communityModel: SelectedModel }>("DeleteCommunityModelPayload").implement({
  description: "A model that has been removed.",
  fields: (t) => ({ communityModel: t.expose("communityModel", { type: CommunityModel, description: "As it was." }) }),
});

builder.mutationField("deleteCommunityModel", (t) =>
  t.field({
    type: DeleteCommunityModelPayload,
    nullable: true,
    description: `Removes a model, or an agent with all that is kept to run it. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: DeleteCommunityModelInput, required: true, description: "Which model." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const { communityModels } = ctx.services;
      const communityModel = await communityModels.getSelected(ctx, readModelId(input.id), selectionOf(ctx, info, ["communityModel"]));
      await communityModels.delete(ctx, communityModel.id);
      return { communityModel };
    },
  }),
);

const CommunityModelTest = builder.objectRef<Test>("CommunityModelTest").implement({
  description: "How an upstream answered when it was probed. Nothing of what it said is told.",
  fields: (t) => ({
    isOk: t.exposeBoolean("ok", { description: "It answers as a model of its modality does." }),
    status: t.exposeInt("status", { nullable: true, description: "The upstream's HTTP status. Null: it gave none." }),
    upstreamCode: t.exposeString("upstreamCode", {
      nullable: true,
      description: "Why, in a word of the gateway's own, such as model_not_found. Null: it is not known.",
    }),
    latencyMs: t.exposeInt("latencyMs", { nullable: true, description: "Milliseconds to the whole answer. Null: there was none." }),
    message: t.exposeString("message", { description: "The same in a sentence." }),
  }),
});

const TestCommunityModelInput = builder.inputType("TestCommunityModelInput", {
  description: "A registered model by its id alone, or an upstream as it would be registered.",
  fields: (t) => ({
    id: t.id({ description: "Of a model of the account: it is probed with what it was registered with." }),
    modality: t.field({ type: Modality, description: `What it does: ${MODALITIES} Omitted: TEXT.` }),
    api: t.field({ type: UpstreamApiEnum, description: "Of a text model: the format that it speaks. Required." }),
    url: t.string({ description: `${TEXT_URL} Required.` }),
    baseUrl: t.string({ description: `${BASE_URL} Required.` }),
    bearerToken: t.string({ description: "The upstream's credential. Omitted: none is sent." }),
    upstreamModel: t.string({ description: "The upstream's own name for the model. Required unless there is an id." }),
  }),
});

const TestCommunityModelPayload = builder.objectRef<{ readonly test: Test }>("TestCommunityModelPayload").implement({
  description: "An upstream that has been probed.",
  fields: (t) => ({ test: t.expose("test", { type: CommunityModelTest, description: "How it answered." }) }),
});

builder.mutationField("testCommunityModel", (t) =>
  t.field({
    type: TestCommunityModelPayload,
    nullable: true,
    description: `Calls an upstream once, as cheaply as its modality allows; once in 30 seconds. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: TestCommunityModelInput, required: true, description: "Which upstream." }) },
    resolve: async (_root, { input }, ctx) => {
      const asked = { ...input, ...(input.id != null && { id: readModelId(input.id) }) };
      const test = await ctx.services.communityModelProbe.test(ctx, parsePermitted(ctx, requireKeyManager, testCommunityModelInput, asked));
      return { test };
    },
  }),
);
