/** Models that make variations of an image (docs/spec/images.md#variations). */
import type { RequestContext } from "../../../context.js";
import { invalidInput } from "../../../errors.js";
import type { Catalog } from "../../catalog/catalog.js";
import { resolveRequested } from "../requested-model.js";

/** Models that a refusal names. */
const NAMED_MAX = 10;

/**
 * The name of the model for variations: the stated one, else the first that makes them, the default image model before others. Rejects with
 * BAD_REQUEST naming the models that do.
 */
export async function nameForVariations(ctx: RequestContext, catalog: Catalog, name: string | null | undefined): Promise<string> {
  const model = name == null ? null : resolveRequested(ctx, catalog, name, "image");
  if (name != null && model?.hasVariations) return name;
  const able = (await catalog.list(ctx, { modalities: ["image"] })).filter(({ hasVariations }) => hasVariations).map(({ id }) => id);
  const [first] = able;
  if (model === null && first !== undefined) return first;
  const subject = model === null ? "No model here makes variations" : `${model.id} makes no variations`;
  const others = first === undefined || model === null ? "" : ` Models that do: ${able.slice(0, NAMED_MAX).join(", ")}.`;
  throw invalidInput(`${subject}.${others} POST /v1/images/edits takes an image and a prompt.`, "model");
}
