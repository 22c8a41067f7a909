/** Community models of the account (docs/spec/community-models.md). */
import type { Exchange } from "../../http/exchange.js";
import { formatPicocredits } from "../../lib/money.js";
import { requireKeyManager } from "../../services/access/permissions.js";
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
import type { Route } from "../route.js";

export function addCommunityModelRoutes(route: Route, endpoint: Endpoint, { communityModels }: Pick<Services, "communityModels">): void {
  const update = endpoint({
    requires: requireKeyManager,
    body: updateCommunityModelInput,
    handler: async (ctx, { body, exchange }) => toCommunityModel(await communityModels.update(ctx, idOf(exchange), body)),
  });
  route("/my-models", {
    GET: endpoint({
      handler: async (ctx) => {
        const { models, provider } = await communityModels.list(ctx);
        return toModelList(models, provider);
      },
    }),
    POST: endpoint({
      requires: requireKeyManager,
      body: createCommunityModelInput,
      handler: async (ctx, { body }) => toCommunityModel(await communityModels.create(ctx, body)),
    }),
  });
  // Before the ids, as these are fixed words.
  route("/my-models/endpoint-agents", {
    POST: endpoint({
      requires: requireKeyManager,
      body: createEndpointAgentInput,
      handler: async (ctx, { body }) => toCommunityModel(await communityModels.createEndpointAgent(ctx, body)),
    }),
  });
  route("/my-models/:communityModel", {
    GET: endpoint({ handler: async (ctx, { exchange }) => toCommunityModel(await communityModels.get(ctx, idOf(exchange))) }),
    PATCH: update,
    DELETE: endpoint({ handler: async (ctx, { exchange }) => ({ id: await communityModels.delete(ctx, idOf(exchange)) }) }),
  });
  route("/my-models/:communityModel/update", { POST: update });
  route("/my-models/:communityModel/fallback-candidates", {
    GET: endpoint({
      handler: async (ctx, { exchange }) => {
        const candidates = await communityModels.fallbackCandidates(ctx, idOf(exchange));
        return { data: candidates.map(toFallbackCandidate) };
      },
    }),
  });
}

function idOf(exchange: Exchange): string {
  return exchange.parameter("communityModel");
}

/** The probe of an upstream (docs/spec/community-models.md#probe). */
export function addCommunityModelTestRoutes(
  route: Route,
  endpoint: Endpoint,
  { communityModelProbe }: Pick<Services, "communityModelProbe">,
): void {
  route("/my-models/test", {
    POST: endpoint({
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
    ...{ ...toPrices(prices), modality },
    ...(modality === "text" ? { api, url } : { baseUrl: url }),
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
function toPrices(prices: Readonly<Partial<Record<PriceField, bigint>>>): Partial<Record<PriceField, number>> {
  const given = PRICE_FIELDS.flatMap((field): [PriceField, number][] => {
    const price = prices[field];
    return price === undefined ? [] : [[field, Number(formatPicocredits(price))]];
  });
  return Object.fromEntries(given);
}
