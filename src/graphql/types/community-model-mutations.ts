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
import type { EndpointAgentView, ProxyView } from "../../services/community-models/view.js";
import { builder } from "../builder.js";
import {
  AdvertisedCapabilityEnum,
  CommunityModel,
  EndpointAgentModel,
  NEEDS_KEYS,
  ProxyModel,
  perPriceField,
  RPM,
  UpstreamApiEnum,
} from "./community-models.js";
import { ContentKind, ImagePricing, Modality, SafetyFeature, VisibilityEnum } from "./models.js";

const NAME = "1 to 120 letters, digits and the characters . _ : -";
const TITLE = "1 to 42 characters.";
const DESCRIPTION = "At most 1,000 characters.";
const PUBLISHING = "PRIVATE unless stated. PUBLIC needs community publisher access, and comes after three hours.";
const TOKEN = "The upstream's credential: stored encrypted, never shown.";
const TEXT_URL = "Of a text model: the exact endpoint, with its path and query.";
const BASE_URL = "Of other media: the base of the media API, or the endpoint; of video the exact endpoint.";
const FALLBACKS = "At most three callable ids, tried in this order when the upstream fails. None is dearer than this model.";

const AdvertisedInput = builder.inputType("AdvertisedInput", {
  fields: (t) => ({
    capabilities: t.field({ type: [AdvertisedCapabilityEnum], description: "None unless stated." }),
    contextLength: t.int({ description: "In tokens, at most 10,000,000." }),
  }),
});

const CreateCommunityModelInput = builder.inputType("CreateCommunityModelInput", {
  fields: (t) => ({
    name: t.string({ required: true, description: NAME }),
    title: t.string({ required: true, description: TITLE }),
    description: t.string({ description: DESCRIPTION }),
    visibility: t.field({ type: VisibilityEnum, description: PUBLISHING }),
    modality: t.field({ type: Modality, description: "TEXT unless stated; IMAGE, VIDEO, TRANSCRIPTION, SPEECH or EMBEDDING." }),
    api: t.field({ type: UpstreamApiEnum, description: "Of a text model: required." }),
    url: t.string({ description: `${TEXT_URL} Required.` }),
    baseUrl: t.string({ description: `${BASE_URL} Required.` }),
    bearerToken: t.string({ required: true, description: TOKEN }),
    upstreamModel: t.string({ description: "The upstream's own name for it; the name unless stated." }),
    inputModalities: t.field({ type: [ContentKind], description: "What its modality takes unless stated." }),
    requiredSafetyFeatures: t.field({ type: [SafetyFeature], description: "None unless stated." }),
    advertised: t.field({ type: AdvertisedInput }),
    perUserRpm: t.float({ description: RPM }),
    paidOnly: t.boolean({ description: "False unless stated." }),
    fallbacks: t.idList({ description: FALLBACKS }),
    imagePricing: t.field({ type: ImagePricing, description: "REQUEST unless stated." }),
    ...perPriceField(() => t.field({ type: "Price" })),
  }),
});

builder.mutationField("createCommunityModel", (t) =>
  t.field({
    type: ProxyModel,
    nullable: true,
    description: `Registers a model that an upstream of the account's runs. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreateCommunityModelInput, required: true }) },
    resolve: async (_root, { input }, ctx) =>
      (await ctx.services.communityModels.create(
        ctx,
        parsePermitted(ctx, requireKeyManager, createCommunityModelInput, input),
      )) as ProxyView,
  }),
);

const CreateEndpointAgentInput = builder.inputType("CreateEndpointAgentInput", {
  fields: (t) => ({
    name: t.string({ required: true, description: NAME }),
    title: t.string({ required: true, description: TITLE }),
    description: t.string({ description: DESCRIPTION }),
    visibility: t.field({ type: VisibilityEnum, description: PUBLISHING }),
    requiredSafetyFeatures: t.field({ type: [SafetyFeature], description: "None unless stated." }),
    inputModalities: t.field({ type: [ContentKind], description: "TEXT unless stated; TEXT, IMAGE, AUDIO and VIDEO." }),
    outputModalities: t.field({ type: [ContentKind], description: "TEXT unless stated." }),
    api: t.field({ type: UpstreamApiEnum, required: true }),
    url: t.string({ required: true, description: "The exact endpoint, with its path and query." }),
    upstreamModel: t.string({ description: "The name unless stated." }),
    perUserRpm: t.float({ description: RPM }),
  }),
});

builder.mutationField("createEndpointAgent", (t) =>
  t.field({
    type: EndpointAgentModel,
    nullable: true,
    description: `Registers an agent that its owner runs: called like a text model, without a credential and for nothing. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreateEndpointAgentInput, required: true }) },
    resolve: async (_root, { input }, ctx) =>
      (await ctx.services.communityModels.createEndpointAgent(
        ctx,
        parsePermitted(ctx, requireKeyManager, createEndpointAgentInput, input),
      )) as EndpointAgentView,
  }),
);

const UpdateCommunityModelInput = builder.inputType("UpdateCommunityModelInput", {
  description: "Only the fields that are sent change. On a public model another `paidOnly`, `imagePricing` or price waits for three hours.",
  fields: (t) => ({
    id: t.id({ required: true }),
    name: t.string({ description: `${NAME} Not of a public model.` }),
    title: t.string({ description: TITLE }),
    description: t.string({ description: `${DESCRIPTION} Null: none.` }),
    visibility: t.field({ type: VisibilityEnum, description: "PRIVATE at once; PUBLIC after three hours." }),
    api: t.field({ type: UpstreamApiEnum, description: "Of a text model or an endpoint agent." }),
    url: t.string({ description: `${TEXT_URL} Another one needs the bearerToken again.` }),
    baseUrl: t.string({ description: `${BASE_URL} Another one needs the bearerToken again.` }),
    bearerToken: t.string({ description: TOKEN }),
    upstreamModel: t.string(),
    inputModalities: t.field({ type: [ContentKind] }),
    outputModalities: t.field({ type: [ContentKind], description: "Of an endpoint agent." }),
    requiredSafetyFeatures: t.field({ type: [SafetyFeature] }),
    advertised: t.field({ type: AdvertisedInput, description: "All of it anew. Null: nothing." }),
    perUserRpm: t.float({ description: RPM }),
    paidOnly: t.boolean(),
    fallbacks: t.idList({ description: `${FALLBACKS} Empty: none.` }),
    imagePricing: t.field({ type: ImagePricing }),
    ...perPriceField(() => t.field({ type: "Price", description: "Null: no longer stated." })),
  }),
});

builder.mutationField("updateCommunityModel", (t) =>
  t.field({
    type: CommunityModel,
    nullable: true,
    description: `Changes a model or an endpoint agent; other agents are changed by updateAgent. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: UpdateCommunityModelInput, required: true }) },
    resolve: (_root, { input: { id, ...changes } }, ctx) =>
      ctx.services.communityModels.update(ctx, id, parsePermitted(ctx, requireKeyManager, updateCommunityModelInput, changes)),
  }),
);

const DeleteCommunityModelPayload = builder.objectRef<{ readonly id: string }>("DeleteCommunityModelPayload").implement({
  fields: (t) => ({ id: t.exposeID("id") }),
});

builder.mutationField("deleteCommunityModel", (t) =>
  t.field({
    type: DeleteCommunityModelPayload,
    nullable: true,
    description: `Removes a model, or an agent with all that is kept to run it. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: {
      input: t.arg({
        type: builder.inputType("DeleteCommunityModelInput", { fields: (f) => ({ id: f.id({ required: true }) }) }),
        required: true,
      }),
    },
    resolve: async (_root, { input }, ctx) => ({ id: await ctx.services.communityModels.delete(ctx, input.id) }),
  }),
);

const CommunityModelTest = builder.objectRef<Test>("CommunityModelTest").implement({
  description: "How an upstream answered when it was probed. Nothing of what it said is told.",
  fields: (t) => ({
    ok: t.exposeBoolean("ok", { description: "It answers as a model of its modality does." }),
    status: t.exposeInt("status", { nullable: true, description: "The upstream's HTTP status; null without one." }),
    upstreamCode: t.exposeString("upstreamCode", {
      nullable: true,
      description: "Why, in a word of the gateway's own, such as model_not_found; null when it is not known.",
    }),
    latencyMs: t.exposeInt("latencyMs", { nullable: true, description: "To the whole answer; null without one." }),
    message: t.exposeString("message"),
  }),
});

const TestCommunityModelInput = builder.inputType("TestCommunityModelInput", {
  description: "A registered model by its id alone, or an upstream as it would be registered.",
  fields: (t) => ({
    id: t.id({ description: "Of a model of the account: it is probed with what it was registered with." }),
    modality: t.field({ type: Modality, description: "TEXT unless stated." }),
    api: t.field({ type: UpstreamApiEnum, description: "Of a text model: required." }),
    url: t.string({ description: "Of a text model: required." }),
    baseUrl: t.string({ description: "Of other media: required." }),
    bearerToken: t.string({ description: "Without it, none is sent." }),
    upstreamModel: t.string({ description: "Required unless there is an id." }),
  }),
});

builder.mutationField("testCommunityModel", (t) =>
  t.field({
    type: CommunityModelTest,
    nullable: true,
    description: `Calls an upstream once, as cheaply as its modality allows; once in 30 seconds. ${NEEDS_KEYS}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: TestCommunityModelInput, required: true }) },
    resolve: (_root, { input }, ctx) =>
      ctx.services.communityModelProbe.test(ctx, parsePermitted(ctx, requireKeyManager, testCommunityModelInput, input)),
  }),
);
