/**
 * Mutations for community models (docs/spec/community-models.md#operations), and the test of an upstream
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

const NAME = "The last part of the model ID: 1 to 120 letters, digits and the characters . _ : -";
const TITLE = "The display name, 1 to 42 characters.";
const DESCRIPTION = "A description of the model, at most 1,000 characters.";
const PUBLISHING = "Who may call the model. PUBLIC needs community publisher access, and takes effect after three hours.";
const TOKEN = "The upstream's credential. Stored encrypted, never shown.";
const TEXT_URL = "For text models: the exact URL of the endpoint, with path and query.";
const BASE_URL = "For other media: the base URL of the media API, or the endpoint. For video: the exact URL of the endpoint.";
const FALLBACKS =
  "At most three IDs of registered models, tried in this order when the upstream fails. None may be more expensive than this model.";
const SAFETY = "Safety checks of the input that apply to every request.";
const PAID_ONLY = "Whether the model can be paid with CRYPTO and PACK credits only, never with TIER credits.";
const MODALITIES = "TEXT, IMAGE, VIDEO, TRANSCRIPTION, SPEECH or EMBEDDING.";

const IS_PAID_ONLY = { extensions: { wireName: "paidOnly" } } as const;
const FALLBACK_IDS = { extensions: { wireName: "fallbacks" } } as const;

interface NamedHere {
  readonly isPaidOnly?: boolean | null | undefined;
  readonly fallbackIds?: readonly string[] | null | undefined;
}

/** Converts IDs for the service. Callers without the permission are rejected before IDs are read. */
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
  description: "Capabilities and limits that the owner states for a text model.",
  fields: (t) => ({
    capabilities: t.field({
      type: [AdvertisedCapabilityEnum],
      required: true,
      defaultValue: [],
      description: "The model's capabilities.",
    }),
    contextLength: t.int({ description: "The context length in tokens, at most 10,000,000. Null when not stated." }),
  }),
});

const CreateCommunityModelInput = builder.inputType("CreateCommunityModelInput", {
  description: "Parameters of `createCommunityModel`.",
  fields: (t) => ({
    name: t.string({ required: true, description: NAME }),
    title: t.string({ required: true, description: TITLE }),
    description: t.string({ description: DESCRIPTION }),
    visibility: t.field({ type: VisibilityEnum, required: true, defaultValue: "private", description: PUBLISHING }),
    modality: t.field({ type: Modality, required: true, defaultValue: "text", description: `The modality of the model: ${MODALITIES}` }),
    api: t.field({ type: UpstreamApiEnum, description: "For text models: the API format of the upstream. Required." }),
    url: t.string({ description: `${TEXT_URL} Required.` }),
    baseUrl: t.string({ description: `${BASE_URL} Required.` }),
    bearerToken: t.string({ required: true, description: TOKEN }),
    upstreamModel: t.string({ description: "The name of the model at the upstream. Defaults to `name`." }),
    inputModalities: t.field({
      type: [ContentKind],
      description: "The kinds of input that the model accepts. Defaults to those of its modality.",
    }),
    requiredSafetyFeatures: t.field({ type: [SafetyFeature], required: true, defaultValue: [], description: SAFETY }),
    advertised: t.field({ type: AdvertisedInput, description: "Capabilities and limits that the owner states." }),
    perUserRpm: t.float({ description: RPM }),
    isPaidOnly: t.boolean({ ...IS_PAID_ONLY, required: true, defaultValue: false, description: PAID_ONLY }),
    fallbackIds: t.idList({ ...FALLBACK_IDS, required: true, defaultValue: [], description: FALLBACKS }),
    imagePricing: t.field({ type: ImagePricing, required: true, defaultValue: "request", description: "How images are priced." }),
    ...perPriceField((field) => t.field({ type: "Price", description: PRICES[field] })),
  }),
});

const CreateCommunityModelPayload = builder.objectRef<{ readonly communityModel: SelectedModel }>("CreateCommunityModelPayload").implement({
  description: "The result of `createCommunityModel`.",
  fields: (t) => ({ communityModel: t.expose("communityModel", { type: ProxyModel, description: "The new model." }) }),
});

builder.mutationField("createCommunityModel", (t) =>
  t.field({
    type: CreateCommunityModelPayload,
    nullable: true,
    description: `Registers a model that runs on the account's own upstream. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreateCommunityModelInput, required: true, description: "The model to register." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const { communityModels } = ctx.services;
      const request = parsePermitted(ctx, requireKeyManager, createCommunityModelInput, inServiceWords(ctx, input));
      const { id } = await communityModels.create(ctx, request);
      return { communityModel: await communityModels.getSelected(ctx, id, selectionOf(ctx, info, ["communityModel"])) };
    },
  }),
);

const CreateEndpointAgentInput = builder.inputType("CreateEndpointAgentInput", {
  description: "Parameters of `createEndpointAgent`.",
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
      description: "The kinds of input that the agent accepts: TEXT, IMAGE, AUDIO and VIDEO.",
    }),
    outputModalities: t.field({
      type: [ContentKind],
      required: true,
      defaultValue: ["text"],
      description: "The kinds of output that the agent produces.",
    }),
    api: t.field({ type: UpstreamApiEnum, required: true, description: "The API format of the endpoint." }),
    url: t.string({ required: true, description: "The exact URL of the endpoint, with path and query." }),
    upstreamModel: t.string({ description: "The name of the agent at the endpoint. Defaults to `name`." }),
    perUserRpm: t.float({ description: RPM }),
  }),
});

const CreateEndpointAgentPayload = builder.objectRef<{ readonly agent: SelectedModel }>("CreateEndpointAgentPayload").implement({
  description: "The result of `createEndpointAgent`.",
  fields: (t) => ({ agent: t.expose("agent", { type: EndpointAgentModel, description: "The new agent." }) }),
});

builder.mutationField("createEndpointAgent", (t) =>
  t.field({
    type: CreateEndpointAgentPayload,
    nullable: true,
    description: `Registers an agent that its owner hosts. It is called like a text model, without a credential, and is free. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreateEndpointAgentInput, required: true, description: "The agent to register." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const { communityModels } = ctx.services;
      const request = parsePermitted(ctx, requireKeyManager, createEndpointAgentInput, input);
      const { id } = await communityModels.createEndpointAgent(ctx, request);
      return { agent: await communityModels.getSelected(ctx, id, selectionOf(ctx, info, ["agent"])) };
    },
  }),
);

const UpdateCommunityModelInput = builder.inputType("UpdateCommunityModelInput", {
  description:
    "Parameters of `updateCommunityModel`. Omitted fields do not change. On a public model, changes of `isPaidOnly`, `imagePricing` and prices take effect after three hours.",
  fields: (t) => ({
    id: t.id({ required: true, description: "The ID of the model." }),
    name: t.string({ description: `${NAME} Cannot change on a public model.` }),
    title: t.string({ description: TITLE }),
    description: t.string({ description: `${DESCRIPTION} Null removes it.` }),
    visibility: t.field({
      type: VisibilityEnum,
      description: "Who may call the model. PRIVATE takes effect at once, PUBLIC after three hours.",
    }),
    api: t.field({ type: UpstreamApiEnum, description: "For text models and endpoint agents: the API format of the upstream." }),
    url: t.string({ description: `${TEXT_URL} A new URL requires \`bearerToken\` again.` }),
    baseUrl: t.string({ description: `${BASE_URL} A new URL requires \`bearerToken\` again.` }),
    bearerToken: t.string({ description: TOKEN }),
    upstreamModel: t.string({ description: "The name of the model at the upstream." }),
    inputModalities: t.field({ type: [ContentKind], description: "The kinds of input that the model accepts." }),
    outputModalities: t.field({ type: [ContentKind], description: "For endpoint agents: the kinds of output that the agent produces." }),
    requiredSafetyFeatures: t.field({ type: [SafetyFeature], description: SAFETY }),
    advertised: t.field({
      type: AdvertisedInput,
      description: "Replaces everything that the owner states about the model. Null removes it.",
    }),
    perUserRpm: t.float({ description: RPM }),
    isPaidOnly: t.boolean({ ...IS_PAID_ONLY, description: PAID_ONLY }),
    fallbackIds: t.idList({ ...FALLBACK_IDS, description: `${FALLBACKS} Empty: no fallbacks.` }),
    imagePricing: t.field({ type: ImagePricing, description: "How images are priced." }),
    ...perPriceField((field) => t.field({ type: "Price", description: `${PRICES[field]} Null removes the stated price.` })),
  }),
});

const UpdateCommunityModelPayload = builder.objectRef<{ readonly communityModel: SelectedModel }>("UpdateCommunityModelPayload").implement({
  description: "The result of `updateCommunityModel`.",
  fields: (t) => ({ communityModel: t.expose("communityModel", { type: CommunityModel, description: "The model after the change." }) }),
});

builder.mutationField("updateCommunityModel", (t) =>
  t.field({
    type: UpdateCommunityModelPayload,
    nullable: true,
    description: `Updates a model or an endpoint agent. Use updateAgent for other agents. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: UpdateCommunityModelInput, required: true, description: "The model and its changes." }) },
    resolve: async (_root, { input: { id, ...changes } }, ctx, info) => {
      const { communityModels } = ctx.services;
      const request = parsePermitted(ctx, requireKeyManager, updateCommunityModelInput, inServiceWords(ctx, changes));
      const changed = await communityModels.update(ctx, readModelId(id), request);
      return { communityModel: await communityModels.getSelected(ctx, changed.id, selectionOf(ctx, info, ["communityModel"])) };
    },
  }),
);

const DeleteCommunityModelInput = builder.inputType("DeleteCommunityModelInput", {
  description: "Parameters of `deleteCommunityModel`.",
  fields: (t) => ({ id: t.id({ required: true, description: "The ID of the model." }) }),
});

const DeleteCommunityModelPayload = builder.objectRef<{ readonly communityModel: SelectedModel }>("DeleteCommunityModelPayload").implement({
  description: "The result of `deleteCommunityModel`.",
  fields: (t) => ({ communityModel: t.expose("communityModel", { type: CommunityModel, description: "The model before its deletion." }) }),
});

builder.mutationField("deleteCommunityModel", (t) =>
  t.field({
    type: DeleteCommunityModelPayload,
    nullable: true,
    description: `Deletes a model, or an agent with all its data. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: DeleteCommunityModelInput, required: true, description: "The model to delete." }) },
    resolve: async (_root, { input }, ctx, info) => {
      const { communityModels } = ctx.services;
      const communityModel = await communityModels.getSelected(ctx, readModelId(input.id), selectionOf(ctx, info, ["communityModel"]));
      await communityModels.delete(ctx, communityModel.id);
      return { communityModel };
    },
  }),
);

const CommunityModelTest = builder.objectRef<Test>("CommunityModelTest").implement({
  description: "The result of a test call to an upstream. It contains nothing of the upstream's answer.",
  fields: (t) => ({
    isOk: t.exposeBoolean("ok", { description: "Whether the upstream answered as a model of its modality should." }),
    status: t.exposeInt("status", { nullable: true, description: "The HTTP status of the upstream. Null when there was no response." }),
    upstreamCode: t.exposeString("upstreamCode", {
      nullable: true,
      description: "The gateway's code for the failure, such as model_not_found. Null when the cause is unknown.",
    }),
    latencyMs: t.exposeInt("latencyMs", {
      nullable: true,
      description: "Milliseconds until the complete answer. Null when there was none.",
    }),
    message: t.exposeString("message", { description: "The result in a sentence." }),
  }),
});

const TestCommunityModelInput = builder.inputType("TestCommunityModelInput", {
  description:
    "Parameters of `testCommunityModel`: the ID of a registered model, or the settings of an upstream that is not yet registered.",
  fields: (t) => ({
    id: t.id({ description: "The ID of a model of the account, which is tested with its registered settings." }),
    modality: t.field({ type: Modality, description: `The modality of the model: ${MODALITIES} Defaults to TEXT.` }),
    api: t.field({ type: UpstreamApiEnum, description: "For text models: the API format of the upstream. Required." }),
    url: t.string({ description: `${TEXT_URL} Required.` }),
    baseUrl: t.string({ description: `${BASE_URL} Required.` }),
    bearerToken: t.string({ description: "The upstream's credential. When omitted, none is sent." }),
    upstreamModel: t.string({ description: "The name of the model at the upstream. Required when `id` is omitted." }),
  }),
});

const TestCommunityModelPayload = builder.objectRef<{ readonly test: Test }>("TestCommunityModelPayload").implement({
  description: "The result of `testCommunityModel`.",
  fields: (t) => ({ test: t.expose("test", { type: CommunityModelTest, description: "The outcome of the test." }) }),
});

builder.mutationField("testCommunityModel", (t) =>
  t.field({
    type: TestCommunityModelPayload,
    nullable: true,
    description: `Tests an upstream with one call, as cheap as its modality allows. Limited to one in 30 seconds. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: TestCommunityModelInput, required: true, description: "The upstream to test." }) },
    resolve: async (_root, { input }, ctx) => {
      const request = { ...input, ...(input.id != null && { id: readModelId(input.id) }) };
      const test = await ctx.services.communityModelProbe.test(
        ctx,
        parsePermitted(ctx, requireKeyManager, testCommunityModelInput, request),
      );
      return { test };
    },
  }),
);
