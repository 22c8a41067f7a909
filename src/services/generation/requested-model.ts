import type { RequestContext } from "../../context.js";
import { requireCaller } from "../access/permissions.js";
import type { Catalog } from "../catalog/catalog.js";
import type { Modality } from "../catalog/modality.js";
import type { Model } from "../catalog/model.js";

/** As `Catalog.resolve` for the caller, and notes the name before it is looked up, so that the log of a refused request has it. */
export function resolveRequested(
  ctx: RequestContext,
  catalog: Pick<Catalog, "resolve">,
  name: string | null | undefined,
  modality: Modality,
  served?: readonly Modality[],
): Model {
  const caller = requireCaller(ctx);
  ctx.note?.requested(name);
  return catalog.resolve(caller, name ?? undefined, modality, served);
}
