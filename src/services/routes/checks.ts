/** The rules of `MODELS_FILE`, for a model with an operator's changes. */
import { AppError, wrongField } from "../../errors.js";
import type { RoutedModel } from "../catalog/assemble.js";
import type { Upstream } from "../catalog/model.js";
import { unusedPriceProblems } from "../catalog/priced-fields-entry.js";
import { routeProblems, servesVariations } from "../catalog/route-entry.js";
import { hasRoute, type ModelOverrides, withOverrides } from "../catalog/route-overrides.js";

/** Throws BAD_REQUEST naming the field, or CONFLICT when no enabled route is left and that was not asked for. */
export function assertValid(
  { id, stated }: RoutedModel,
  before: ModelOverrides,
  after: ModelOverrides,
  allowsNone: boolean,
  find: (id: string) => Upstream | undefined,
): void {
  const { definition } = withOverrides(stated, after, find);
  const routes = definition.routes.map(({ upstreamId: upstream, upstreamModel, weight, ofKeys }) => {
    const isWeighted = [...(ofKeys?.values() ?? [])].some((change) => (change.weight ?? 0) > 0);
    return { upstream, upstreamModel, weight: isWeighted ? undefined : weight };
  });
  const [problem] = routeProblems(routes);
  if (problem)
    throw wrongField(problem.at === "routes" && routes.every(({ weight }) => weight === 0) ? "weight" : "upstream", problem.problem);
  for (const { prices = {} } of after.routes) {
    const [unused] = unusedPriceProblems(stated, prices);
    if (unused) throw wrongField(`prices.${unused[0]}`, unused[1]);
  }
  if (stated.variations) {
    const unable = definition.routes.map(({ upstreamId }) => find(upstreamId)).find((upstream) => upstream && !servesVariations(upstream));
    if (unable)
      throw wrongField(
        "upstream",
        `the model has variations, which are of upstreams with the wire format openai: ${unable.id} has another`,
      );
  }
  if (allowsNone || hasRoute(definition, find) || !hasRoute(withOverrides(stated, before, find).definition, find)) return;
  const param = "allow_none";
  const message = `This would leave ${id} without an enabled route, so that it could not be called. Enable another route, or send ${param}: true.`;
  throw new AppError("CONFLICT", message, { param });
}
