/** Community models of the account (docs/spec/community-models.md). */

import type { Exchange } from "../../http/exchange.js";
import { requireKeyManager } from "../../services/access/permissions.js";
import {
  createCommunityModelInput,
  createEndpointAgentInput,
  updateCommunityModelInput,
} from "../../services/community-models/models-input.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { toCommunityModel, toFallbackCandidate, toModelList } from "../presenters/community-models.js";
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
  // Before the ids: these are words.
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
