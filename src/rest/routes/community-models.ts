/** Community models of the account (docs/spec/community-models.md). */
import * as z from "zod";
import { formatPicocredits } from "../../lib/money.js";
import { requireKeyManager } from "../../services/access/permissions.js";
import type { UpstreamApi } from "../../services/catalog/model.js";
import { PRICE_FIELDS, type PriceField } from "../../services/catalog/pricing.js";
import type { ModelProvider } from "../../services/community-models/community-models.js";
import {
  createCommunityModelInput,
  createEndpointAgentInput,
  updateCommunityModelInput,
} from "../../services/community-models/models-input.js";
import { testCommunityModelInput } from "../../services/community-models/probe.js";
import type { CommonView, CommunityModelView, FallbackCandidate, PendingView, ProxyView } from "../../services/community-models/view.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { json } from "../openapi/answer.js";
import type { Operation } from "../openapi/contract.js";
import { pathId, time } from "../openapi/schemas.js";
import type { Route } from "../route.js";

const price = z.number().min(0).describe("The price in credits per unit. Prices that are not stated show their default.");
const prices = Object.fromEntries(PRICE_FIELDS.map((field) => [field, price])) as Record<PriceField, typeof price>;
const changedPrice = price.optional();
const changedPrices = Object.fromEntries(PRICE_FIELDS.map((field) => [field, changedPrice])) as Record<PriceField, typeof changedPrice>;
const perUserRpm = z
  .number()
  .nullable()
  .describe("The limit of requests per minute and account. 0.5 means one in two minutes. Null: no limit.");
const imagePricing = z.enum(["request", "tokens"]);
const api = z.enum(["chat_completions", "responses"]);

const common = {
  id: z.string(),
  modelId: z.string().describe("The ID used to call the model: `community/<owner>/<name>`."),
  name: z.string(),
  title: z.string(),
  description: z.string().nullable(),
  visibility: z.enum(["private", "public"]),
  requiredSafetyFeatures: z.array(z.string()),
  pending: z
    .looseObject({
      effectiveAt: time,
      visibility: z.literal("public").optional(),
      paidOnly: z.boolean().optional(),
      imagePricing: imagePricing.optional(),
      ...changedPrices,
    })
    .meta({ id: "PendingChange" })
    .nullable()
    .describe("The scheduled change of the model."),
  createdAt: time,
  updatedAt: time,
};

const proxy = {
  ...common,
  type: z.literal("proxy"),
  upstreamModel: z.string(),
  imagePricing,
  inputModalities: z.array(z.string()),
  advertised: z.looseObject({ capabilities: z.array(z.string()), contextLength: z.int().nullable() }),
  perUserRpm,
  paidOnly: z.boolean(),
  fallbacks: z.array(z.string()),
  ...prices,
};

const communityModel = json(
  "CommunityModel",
  z.union([
    z
      .looseObject({ ...proxy, modality: z.literal("text"), api, url: z.string().describe("The exact URL of the endpoint.") })
      .meta({ id: "CommunityTextModel" }),
    z
      .looseObject({
        ...proxy,
        modality: z.enum(["image", "video", "transcription", "speech", "embedding"]),
        baseUrl: z.string().describe("The base URL of the media API, or the endpoint."),
      })
      .meta({ id: "CommunityMediaModel" }),
    z
      .looseObject({
        ...common,
        type: z.literal("endpoint_agent"),
        inputModalities: z.array(z.string()),
        outputModalities: z.array(z.string()),
        api,
        url: z.string(),
        upstreamModel: z.string(),
        perUserRpm,
      })
      .meta({ id: "EndpointAgent" }),
    z.looseObject({ ...common, type: z.enum(["prompt_agent", "code_agent"]) }).meta({ id: "AgentModel" }),
  ]),
);

const communityModelList = json(
  "CommunityModelList",
  z.object({
    data: z.array(communityModel.schema),
    provider: z.looseObject({ name: z.string().nullable(), url: z.string().nullable(), iconUrl: z.string().nullable() }),
  }),
);

const fallbackCandidates = json(
  "FallbackCandidateList",
  z.object({
    data: z.array(
      z.looseObject({
        modelId: z.string().describe("The ID to use in `fallbacks`."),
        title: z.string(),
        description: z.string().nullable(),
        isOwn: z.boolean(),
        ...prices,
      }),
    ),
  }),
);

const testResult = json(
  "CommunityModelTest",
  z.object({
    ok: z.boolean(),
    status: z.int().nullable().describe("The HTTP status of the upstream. Null when there was no response."),
    upstreamCode: z.string().nullable().describe("The gateway's code for the failure, such as model_not_found."),
    latencyMs: z.int().nullable(),
    message: z.string(),
  }),
);

const byModel = z.object({ communityModel: pathId("The ID of a registered model, as in `GET /account/my-models`.") });

const REGISTERED = { name: "my-model", title: "My model", api: "chat_completions", url: "https://example.com/v1/chat/completions" };

export function addCommunityModelRoutes(route: Route, endpoint: Endpoint, { communityModels }: Pick<Services, "communityModels">): void {
  const updateBy = (words: Pick<Operation, "id" | "summary" | "description">) =>
    endpoint({
      ...words,
      tag: "Community models",
      answer: communityModel,
      example: { body: { title: "My own model" } },
      requires: requireKeyManager,
      params: byModel,
      body: updateCommunityModelInput,
      handler: async (ctx, { params, body }) => toCommunityModel(await communityModels.update(ctx, params.communityModel, body)),
    });
  route("/my-models", {
    GET: endpoint({
      id: "listMyModels",
      tag: "Community models",
      summary: "Lists the account's models and agents, newest first, and the account's provider profile.",
      answer: communityModelList,
      handler: async (ctx) => {
        const { models, provider } = await communityModels.list(ctx);
        return toModelList(models, provider);
      },
    }),
    POST: endpoint({
      id: "createMyModel",
      tag: "Community models",
      summary: "Registers a model that runs on the account's own upstream.",
      description:
        "The model is called as `community/<owner>/<name>`. The upstream's credential is stored encrypted and never shown. A public model needs community publisher access and becomes public after three hours.",
      answer: communityModel,
      errors: ["409"],
      example: { body: { ...REGISTERED, upstreamModel: "my-model-1", bearerToken: "my-upstream-key", promptTextPrice: 0.000001 } },
      requires: requireKeyManager,
      body: createCommunityModelInput,
      handler: async (ctx, { body }) => toCommunityModel(await communityModels.create(ctx, body)),
    }),
  });
  // Before the ids, as these are fixed words.
  route("/my-models/endpoint-agents", {
    POST: endpoint({
      id: "createEndpointAgent",
      tag: "Community models",
      summary: "Registers an agent that its owner hosts. It is called like a text model, without a credential, and is free.",
      answer: communityModel,
      errors: ["409"],
      example: { body: { ...REGISTERED, name: "my-endpoint", title: "My endpoint" } },
      requires: requireKeyManager,
      body: createEndpointAgentInput,
      handler: async (ctx, { body }) => toCommunityModel(await communityModels.createEndpointAgent(ctx, body)),
    }),
  });
  route("/my-models/:communityModel", {
    GET: endpoint({
      id: "getMyModel",
      tag: "Community models",
      summary: "Returns a registered model.",
      answer: communityModel,
      params: byModel,
      handler: async (ctx, { params }) => toCommunityModel(await communityModels.get(ctx, params.communityModel)),
    }),
    PATCH: updateBy({
      id: "updateMyModel",
      summary: "Updates a model. Omitted fields do not change.",
      description:
        "On a public model, changes of `paidOnly`, `imagePricing` and prices take effect after three hours; until then they are in `pending`. Making a model private takes effect at once. A new URL requires `bearerToken` again.",
    }),
    DELETE: endpoint({
      id: "deleteMyModel",
      tag: "Community models",
      summary: "Deletes a model, or an agent with all its data.",
      answer: json("DeletedCommunityModel", z.object({ id: z.string() })),
      params: byModel,
      handler: async (ctx, { params }) => ({ id: await communityModels.delete(ctx, params.communityModel) }),
    }),
  });
  route("/my-models/:communityModel/update", {
    POST: updateBy({
      id: "postMyModelUpdate",
      summary: "Updates a model, for clients that cannot send PATCH. Omitted fields do not change.",
    }),
  });
  route("/my-models/:communityModel/fallback-candidates", {
    GET: endpoint({
      id: "listFallbackCandidates",
      tag: "Community models",
      summary: "Lists models that can be fallbacks of this model, the account's own first.",
      answer: fallbackCandidates,
      params: byModel,
      handler: async (ctx, { params }) => {
        const candidates = await communityModels.fallbackCandidates(ctx, params.communityModel);
        return { data: candidates.map(toFallbackCandidate) };
      },
    }),
  });
}

/** The probe of an upstream (docs/spec/community-models.md#probe). */
export function addCommunityModelTestRoutes(
  route: Route,
  endpoint: Endpoint,
  { communityModelProbe }: Pick<Services, "communityModelProbe">,
): void {
  route("/my-models/test", {
    POST: endpoint({
      id: "testMyModel",
      tag: "Community models",
      summary: "Tests an upstream with one call, as cheap as its modality allows.",
      description:
        "Limited to one test in 30 seconds per account. Send the `id` of a registered model, or the settings of an upstream as for a registration. Image and video models are called without a prompt, so that they generate nothing.",
      answer: testResult,
      errors: ["404"],
      example: { body: { api: REGISTERED.api, url: REGISTERED.url, upstreamModel: "my-model-1" } },
      requires: requireKeyManager,
      body: testCommunityModelInput,
      handler: (ctx, { body }) => communityModelProbe.test(ctx, body),
    }),
  });
}

// A model in REST's form (docs/spec/community-models.md#record).

function toModelList(models: readonly CommunityModelView[], { name, url, iconUrl }: ModelProvider) {
  return { data: models.map(toCommunityModel), provider: { name, url, iconUrl } };
}

function toCommunityModel(view: CommunityModelView) {
  switch (view.type) {
    case "proxy":
      return { ...toCommon(view), ...toProxy(view), type: view.type };
    case "endpoint_agent": {
      const { type, inputModalities, outputModalities, api, url, upstreamModel, perUserRpm } = view;
      return { ...toCommon(view), inputModalities, outputModalities, api, url, upstreamModel, perUserRpm, type };
    }
    default:
      return { ...toCommon(view), type: view.type };
  }
}

function toFallbackCandidate({ modelId, title, description, isOwn, prices }: FallbackCandidate) {
  return { modelId, title, description, isOwn, ...toPrices(prices) };
}

function toCommon(view: CommonView) {
  const { id, modelId, name, title, description, visibility, requiredSafetyFeatures, pending, createdAt, updatedAt } = view;
  return {
    ...{ id, modelId, name, title, description, visibility, requiredSafetyFeatures },
    ...{ pending: pending && toPending(pending), createdAt, updatedAt },
  };
}

function toProxy(view: ProxyView) {
  const { upstreamModel, imagePricing, inputModalities, advertised, perUserRpm, paidOnly, fallbacks, prices, modality, api, url } = view;
  return {
    ...{ upstreamModel, imagePricing, inputModalities, advertised, perUserRpm, paidOnly, fallbacks },
    ...toPrices(prices),
    // A text model has a format.
    ...(modality === "text" ? { modality, api: api as UpstreamApi, url } : { modality, baseUrl: url }),
  };
}

/** Unchanged fields are left out. */
function toPending({ effectiveAt, visibility, paidOnly, imagePricing, prices }: PendingView) {
  return {
    effectiveAt,
    ...(visibility !== null && { visibility }),
    ...(paidOnly !== null && { paidOnly }),
    ...(imagePricing !== null && { imagePricing }),
    ...toPrices(prices),
  };
}

/** Credits per unit, as JSON numbers; never used in calculations. */
function toPrices<Prices extends Readonly<Partial<Record<PriceField, bigint>>>>(
  prices: Prices,
): { readonly [Field in keyof Prices]: number } {
  const given = PRICE_FIELDS.flatMap((field): [PriceField, number][] => {
    const price = prices[field];
    return price === undefined ? [] : [[field, Number(formatPicocredits(price))]];
  });
  return Object.fromEntries(given) as { [Field in keyof Prices]: number };
}
