/** The moderation models of the safety features. */
import type { Catalog } from "../catalog/catalog.js";
import type { Moderator } from "../safety/moderation.js";
import type { Upstreams } from "./upstreams.js";

/** The model and its fallbacks, when the configuration names an existing moderation model; otherwise none. */
export function moderatorsOf(catalog: Catalog, upstreams: Upstreams, name: string | null): readonly Moderator[] {
  const model = name === null ? null : catalog.find(name);
  if (model?.modality !== "moderation") return [];
  return [model, ...catalog.fallbacksOf(model)].map((each) => ({
    provider: upstreams.serving({}, each, "moderation"),
    upstreamModel: each.upstreamModel,
  }));
}
