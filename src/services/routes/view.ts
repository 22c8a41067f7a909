/** The routes of a model as operators see them: their settings, changes, and state in this process. */
import type { RankedPosition } from "../../lib/pagination.js";
import type { RoutedModel } from "../catalog/assemble.js";
import type { Model } from "../catalog/model.js";
import { type FindUpstream, keyCountOf, type Route, type Routing, toPlacedRoutes } from "../catalog/route.js";
import { type IgnoredReason, isOfRoute, type ModelOverrides, type RouteOverride, UNCHANGED } from "../catalog/route-overrides.js";
import type { RouteStatus } from "../generation/routing/health.js";
import type { TimesOfRoute } from "../generation/routing/times.js";
import { ROUTE_SETTINGS, type RouteSetting, settingsOf } from "./changes.js";

/** The state of routes in this process. */
export interface RouteStates {
  statusOf(route: Route): RouteStatus;
  timesOf(route: Route): TimesOfRoute;
  /** Takes shares of changed limits. */
  watch(models: readonly Model[]): void;
}

export interface ShownRoute {
  readonly route: Route;
  /** Of the upstream. */
  readonly keyCount: number;
  readonly isEnabled: boolean;
  /** An operator added it to the model. */
  readonly isAdded: boolean;
  readonly changed: readonly RouteSetting[];
  readonly status: RouteStatus;
  readonly times: TimesOfRoute;
}

/** A stored change without effect. */
export interface IgnoredChange {
  readonly upstream: string;
  readonly upstreamModel: string;
  readonly key: number | null;
  readonly isAdded: boolean;
  readonly changed: readonly RouteSetting[];
  readonly reason: IgnoredReason;
}

export interface ModelRoutes {
  readonly id: string;
  /** Null: the model is not configured, and only has changes without effect. */
  readonly modality: Model["modality"] | null;
  readonly isOffered: boolean;
  readonly routing: Routing | null;
  /** Without an operator's change. */
  readonly configuredRouting: Routing | null;
  readonly routes: readonly ShownRoute[];
  readonly ignored: readonly IgnoredChange[];
}

export function modelPosition({ id }: ModelRoutes): RankedPosition {
  return { rank: "", id };
}

export function toModelRoutes(
  model: RoutedModel,
  overrides: ModelOverrides = UNCHANGED,
  find: FindUpstream,
  states: RouteStates,
): ModelRoutes {
  const { id, stated, definition, isOffered, ignored } = model;
  const { modality, imagePricing = "request" } = definition;
  const configured = new Set(stated.routes.map(({ upstreamId, upstreamModel }) => JSON.stringify([upstreamId, upstreamModel])));
  const routes = toPlacedRoutes(definition.routes, { modality, imagePricing }, find).map(({ route, isEnabled }): ShownRoute => {
    const { upstreamId, upstreamModel, keyIndex } = route;
    const own = overrides.routes.filter((each) => isOfRoute(each, upstreamId, upstreamModel));
    const changed = new Set(own.filter(({ key }) => key === null || key === keyIndex + 1).flatMap(settingsOf));
    return {
      route,
      isEnabled,
      keyCount: keyCountOf(find(upstreamId)),
      isAdded: !configured.has(JSON.stringify([upstreamId, upstreamModel])),
      changed: ROUTE_SETTINGS.filter((setting) => changed.has(setting)),
      status: states.statusOf(route),
      times: states.timesOf(route),
    };
  });
  return {
    ...{ id, modality, isOffered, routes },
    routing: definition.routing ?? "weight",
    configuredRouting: stated.routing ?? "weight",
    ignored: ignored.map(({ override, reason }) => toIgnored(override, reason)),
  };
}

/** Of a model that is not configured. */
export function toUnconfigured(id: string, overrides: ModelOverrides | null): ModelRoutes {
  const ignored = (overrides?.routes ?? []).map((override) => toIgnored(override, "no_model"));
  return { id, modality: null, isOffered: false, routing: overrides?.routing ?? null, configuredRouting: null, routes: [], ignored };
}

function toIgnored(override: RouteOverride, reason: IgnoredReason): IgnoredChange {
  const { upstream, upstreamModel, key, isAdded } = override;
  return { upstream, upstreamModel, key, isAdded, changed: settingsOf(override), reason };
}
