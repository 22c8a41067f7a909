/** The moderation models of the safety features. */
import type { Catalog } from "../catalog/catalog.js";
import type { Moderator } from "../safety/moderation.js";
import type { Upstreams } from "./upstreams.js";

/** The routes of the model and of its fallbacks, when the configuration names an existing moderation model; otherwise none. */
export function moderatorsOf(catalog: Catalog, upstreams: Upstreams, name: string | null): readonly Moderator[] {
  const model = name === null ? null : catalog.find(name);
  if (model?.modality !== "moderation") return [];
  return [model, ...catalog.fallbacksOf(model)].flatMap((each) =>
    each.routes.map((route) => ({
      provider: upstreams.serving({}, { model: each, route }, "moderation"),
      upstreamModel: route.upstreamModel,
    })),
  );
}
