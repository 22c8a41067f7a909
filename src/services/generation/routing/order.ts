/** The order in which the routes of a model are tried (docs/spec/routing.md#choice). Pure: the state comes as a snapshot. */
import type { Model } from "../../catalog/model.js";
import type { Route } from "../../catalog/route.js";

/** What a request asks of the routes that may serve it. */
export interface RouteWishes {
  /** Routes that may serve; absent: all. */
  readonly accepts?: ((model: Model, route: Route) => boolean) | undefined;
}

export const NO_WISHES: RouteWishes = {};

export interface RoutingSnapshot {
  /** At least 0 and less than 1. */
  random(): number;
}

/** The acceptable routes: by priority, within one by weight at random. Those of weight 0 follow the others of their priority. */
export function orderRoutes(model: Model, wishes: RouteWishes, snapshot: RoutingSnapshot): readonly Route[] {
  const { accepts } = wishes;
  const accepted = accepts ? model.routes.filter((route) => accepts(model, route)) : model.routes;
  if (accepted.length < 2) return accepted;
  const keyed = accepted.map((route) => ({ route, key: weightKey(route.weight, snapshot.random()) }));
  return keyed.sort((one, other) => one.route.priority - other.route.priority || other.key - one.key).map(({ route }) => route);
}

/** Sorted by it, highest first, routes come in a random order in which each is first as often as its share of the weights. */
function weightKey(weight: number, random: number): number {
  return weight > 0 ? Math.log(1 - random) / weight : Number.NEGATIVE_INFINITY;
}
