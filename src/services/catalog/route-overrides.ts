/** Operators' changes of routes, over those that the sources state (docs/spec/routing.md#operators). Pure. */
import type { ModelDefinition } from "./model.js";
import {
  type FindUpstream,
  keyCountOf,
  type RouteChange,
  type RouteDefinition,
  type Routing,
  toPlacedRoutes,
  withChange,
} from "./route.js";

export interface RouteOverride extends RouteChange {
  readonly upstream: string;
  readonly upstreamModel: string;
  /** From 1; null: all keys. */
  readonly key: number | null;
  /** The operator added this route to the model. */
  readonly isAdded: boolean;
}

export interface ModelOverrides {
  /** Null: as configured. */
  readonly routing: Routing | null;
  readonly routes: readonly RouteOverride[];
}

/** By the model's canonical id. */
export type RouteOverrides = ReadonlyMap<string, ModelOverrides>;

export const NO_OVERRIDES: RouteOverrides = new Map();
export const UNCHANGED: ModelOverrides = { routing: null, routes: [] };

/** Why a change has no effect: its model, its route, its upstream or its key is not configured. */
export type IgnoredReason = "no_model" | "no_route" | "no_upstream" | "no_key";

export interface IgnoredOverride {
  readonly override: RouteOverride;
  readonly reason: IgnoredReason;
}

export interface OverriddenModel {
  readonly definition: ModelDefinition;
  /** As its source states it. */
  readonly stated: ModelDefinition;
  readonly ignored: readonly IgnoredOverride[];
}

const NONE_IGNORED: readonly IgnoredOverride[] = [];

export function withOverrides(stated: ModelDefinition, overrides: ModelOverrides | undefined, find: FindUpstream): OverriddenModel {
  if (overrides === undefined) return { definition: stated, stated, ignored: NONE_IGNORED };
  const { routing, routes } = overrides;
  const ignored: IgnoredOverride[] = [];
  const all = new Map(stated.routes.map((route) => [nameOf(route.upstreamId, route.upstreamModel), route]));
  for (const override of routes) {
    if (!override.isAdded || all.has(nameOf(override.upstream, override.upstreamModel))) continue;
    if (find(override.upstream) === undefined) ignored.push({ override, reason: "no_upstream" });
    else
      all.set(nameOf(override.upstream, override.upstreamModel), { upstreamId: override.upstream, upstreamModel: override.upstreamModel });
  }
  for (const override of routes) {
    const name = nameOf(override.upstream, override.upstreamModel);
    const route = all.get(name);
    if (route !== undefined && override.key === null) all.set(name, withChange(route, override));
    else if (route !== undefined && override.key !== null && override.key <= keyCountOf(find(override.upstream)))
      all.set(name, withKeyChange(route, override.key - 1, override));
    else if (!override.isAdded) ignored.push({ override, reason: route === undefined ? "no_route" : "no_key" });
  }
  const definition = { ...stated, routes: [...all.values()], ...(routing !== null && { routing }) };
  return { definition, stated, ignored };
}

/** Whether an enabled route is left. */
export function hasRoute({ modality, imagePricing = "request", routes }: ModelDefinition, find: FindUpstream): boolean {
  if (routes.every(({ isEnabled, ofKeys }) => isEnabled !== false && ofKeys === undefined)) return true;
  return toPlacedRoutes(routes, { modality, imagePricing }, find).some(({ isEnabled }) => isEnabled);
}

export function isOfRoute(override: RouteOverride, upstream: string, upstreamModel: string): boolean {
  return override.upstream === upstream && override.upstreamModel === upstreamModel;
}

function withKeyChange(route: RouteDefinition, keyIndex: number, change: RouteChange): RouteDefinition {
  return { ...route, ofKeys: new Map([...(route.ofKeys ?? []), [keyIndex, change]]) };
}

function nameOf(upstream: string, upstreamModel: string): string {
  return JSON.stringify([upstream, upstreamModel]);
}
