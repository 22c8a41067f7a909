/** Routes and candidates of tests that make their own models. */
import type { Model } from "../../src/services/catalog/model.js";
import { type Route, type RouteDefinition, toRoutes } from "../../src/services/catalog/route.js";
import type { Candidate } from "../../src/services/generation/routing/candidate.js";

export function routeTo(upstreamId: string, upstreamModel: string, more: Partial<RouteDefinition> = {}): Route {
  return toRoutes([{ upstreamId, upstreamModel, ...more }], { modality: "text", imagePricing: "request" }, () => undefined)[0];
}

export function candidateOf(model: Pick<Model, "id"> & Partial<Model>, route: Route): Candidate {
  return { model: { ...model, routes: [route] } as Model, route };
}
