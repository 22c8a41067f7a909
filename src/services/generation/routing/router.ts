/** Chooses the candidates of a request: the routes of its model, then those of the fallbacks (docs/spec/routing.md). */
import type { Model } from "../../catalog/model.js";
import { type RequestFields, takesFields } from "../../catalog/request-rates.js";
import type { Route } from "../../catalog/route.js";
import type { Candidate } from "./candidate.js";
import { NO_WISHES, orderRoutes, type RouteWishes, type RoutingSnapshot } from "./order.js";

export interface Routed {
  readonly model: Model;
  /** Fallbacks that may serve. */
  readonly fallbacks: readonly Model[];
  /** Fields that reach the upstream. */
  readonly fields: RequestFields;
  readonly wishes?: RouteWishes | undefined;
}

export class Router {
  private readonly snapshot: RoutingSnapshot;

  /** `random` is at least 0 and less than 1. */
  constructor(random: () => number = Math.random) {
    this.snapshot = { random };
  }

  /** In the order of attempts. A request that names no field unknown to some vendor may take every route. */
  candidatesOf({ model, fallbacks, fields, wishes = NO_WISHES }: Routed): readonly Candidate[] {
    const { routes } = model;
    if (routes.length === 1 && fallbacks.length === 0 && !wishes.accepts) return [{ model, route: routes[0] }];
    const candidates: Candidate[] = [];
    for (const each of [model, ...fallbacks]) {
      // The model's only route has been checked with the request.
      const isChecked = each === model && routes.length === 1;
      for (const route of orderRoutes(each, isChecked ? wishes : taking(fields, wishes), this.snapshot))
        candidates.push({ model: each, route });
    }
    return candidates;
  }
}

function taking(fields: RequestFields, { accepts, ...wishes }: RouteWishes): RouteWishes {
  const takes = (model: Model, route: Route) => takesFields(model, route, fields) && (accepts === undefined || accepts(model, route));
  return { ...wishes, accepts: takes };
}
