/**
 * Routes of the catalog's models, for operators (docs/spec/routing.md#operators): their state in this process, and changes over those that
 * are configured, without a restart. A change holds for the next request of this process when it is answered, and of every other process
 * within a second.
 */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { conflict, notFound, wrongField } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { closest } from "../../lib/issue-words.js";
import { type Page, type PageRequest, pageOfRanked, type RankedPosition } from "../../lib/pagination.js";
import { type Database, lockName } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import { requireOperator } from "../access/permissions.js";
import { type AuditRecord, recordAct } from "../audit/audit-log.js";
import type { RoutedModel } from "../catalog/assemble.js";
import type { Catalog } from "../catalog/catalog.js";
import { isCommunityId } from "../catalog/community.js";
import { priceAboveOf } from "../catalog/route-entry.js";
import { isOfRoute, type ModelOverrides, type RouteOverride, UNCHANGED } from "../catalog/route-overrides.js";
import { storableText } from "../requests/input.js";
import {
  type AddRouteInput,
  changedBy,
  fromStored,
  isStored,
  type RemoveRouteInput,
  type ResetRoutesInput,
  type SetRoutingInput,
  statesNothing,
  toStored,
  type UpdateRouteInput,
} from "./changes.js";
import { assertValid } from "./checks.js";
import { ROUTE_ABOVE_PRICE, type RouteDirectory } from "./directory.js";
import { factsOf } from "./facts.js";
import { type ModelRoutes, modelPosition, type RouteStates, toModelRoutes, toUnconfigured } from "./view.js";

const CLOSEST = { count: 3, charsMax: 253 } as const;

export const routesFilter = z.strictObject({
  model: storableText.min(1).max(253).nullish(),
  upstream: storableText.min(1).max(253).nullish(),
  changed: z.boolean().nullish(),
});
export type RoutesFilter = z.output<typeof routesFilter>;

export interface ChangedRoutes {
  readonly model: ModelRoutes;
  /** For the operator, such as a price above the model's. */
  readonly warnings: readonly string[];
}

export interface OperatorRoutesDependencies {
  readonly database: Database;
  readonly events: Events;
  readonly clock: Clock;
  readonly catalog: Catalog;
  readonly directory: RouteDirectory;
  readonly states: RouteStates;
}

interface Change {
  readonly act: AuditRecord["act"];
  readonly modelId: string;
  readonly allowsNone: boolean;
  readonly edit: (overrides: ModelOverrides) => ModelOverrides;
}

export class OperatorRoutes {
  constructor(private readonly deps: OperatorRoutesDependencies) {}

  /** By model. Rejects with BAD_REQUEST for an unknown model or upstream, with the closest names. */
  async list(ctx: RequestContext, filter: RoutesFilter, page: PageRequest<RankedPosition>): Promise<Page<ModelRoutes>> {
    requireOperator(ctx);
    const { catalog, directory } = this.deps;
    const { model, upstream, changed } = filter;
    if (upstream != null && !catalog.upstreams.has(upstream) && !this.isOfStored(upstream)) throw this.noUpstream(upstream);
    const wanted = model == null ? null : this.idOf(model);
    const configured = catalog.routed.map(({ id }) => id);
    const stored = [...directory.stored.keys()].filter((id) => !configured.includes(id));
    const ids = [...configured, ...stored].filter((id) => (wanted === null || id === wanted) && (!changed || directory.stored.has(id)));
    const isThere = ({ routes, ignored }: ModelRoutes) =>
      upstream == null || routes.some(({ route }) => route.upstreamId === upstream) || ignored.some((each) => each.upstream === upstream);
    return pageOfRanked(ids.map((id) => this.shown(id)).filter(isThere), modelPosition, "asc", page);
  }

  /** Returns the routes of models by canonical id, without those that are neither configured nor changed. */
  getMany(ctx: RequestContext, ids: readonly string[]): ModelRoutes[] {
    requireOperator(ctx);
    const { catalog, directory } = this.deps;
    const there = new Set([...catalog.routed.map(({ id }) => id), ...directory.stored.keys()]);
    return ids.filter((id) => there.has(id)).map((id) => this.shown(id));
  }

  /** Changes settings of a route, of all keys of its upstream or of one. */
  async update(ctx: RequestContext, input: UpdateRouteInput): Promise<ChangedRoutes> {
    requireOperator(ctx);
    if (statesNothing(input)) throw wrongField("weight", "state a setting to change: enabled, priority, weight, limits or prices");
    const model = this.known(input.model);
    const route = this.routeOf(model, input.upstream, input.upstream_model);
    const key = input.key_number ?? null;
    if (key !== null && key > route.keys) throw wrongField("key_number", `the upstream ${input.upstream} has ${route.keys} of them`);
    const edit = ({ routing, routes }: ModelOverrides) => {
      const isIt = (each: RouteOverride) => isOfRoute(each, route.upstream, route.upstreamModel) && each.key === key;
      const former = routes.find(isIt) ?? { upstream: route.upstream, upstreamModel: route.upstreamModel, key, isAdded: false };
      return { routing, routes: [...routes.filter((each) => !isIt(each)), changedBy(former, input)] };
    };
    return this.write(ctx, { act: "update_route", modelId: model.id, allowsNone: input.allow_none === true, edit });
  }

  /** Adds a route to an upstream that is configured. Rejects with CONFLICT when the model has it. */
  async add(ctx: RequestContext, input: AddRouteInput): Promise<ChangedRoutes> {
    requireOperator(ctx);
    const { upstream, upstream_model: upstreamModel } = input;
    const model = this.known(input.model);
    if (!this.deps.catalog.upstreams.has(upstream)) throw this.noUpstream(upstream);
    const edit = ({ routing, routes }: ModelOverrides) => {
      const isThere = model.stated.routes.some((each) => each.upstreamId === upstream && each.upstreamModel === upstreamModel);
      if (isThere || routes.some((each) => each.isAdded && isOfRoute(each, upstream, upstreamModel)))
        throw conflict(`The model ${model.id} has the route ${upstream} with the name ${upstreamModel}: change it with updateRoute.`);
      const others = routes.filter((each) => !(each.key === null && isOfRoute(each, upstream, upstreamModel)));
      return { routing, routes: [...others, changedBy<RouteOverride>({ upstream, upstreamModel, key: null, isAdded: true }, input)] };
    };
    return this.write(ctx, { act: "add_route", modelId: model.id, allowsNone: false, edit });
  }

  /** Removes a route that an operator added. Rejects with CONFLICT for a configured one. */
  async remove(ctx: RequestContext, input: RemoveRouteInput): Promise<ChangedRoutes> {
    requireOperator(ctx);
    const modelId = this.idOf(input.model);
    const model = this.configured(modelId);
    const edit = ({ routing, routes }: ModelOverrides) => {
      const isNamed = (each: { readonly upstream: string; readonly upstreamModel: string }) =>
        each.upstream === input.upstream && (input.upstream_model == null || each.upstreamModel === input.upstream_model);
      const added = routes.filter((each) => each.isAdded && isNamed(each));
      const [first, second] = added;
      if (second) throw wrongField("upstream_model", `the model has several routes to ${input.upstream}: name one of them`);
      if (!first) {
        const isConfigured = model?.stated.routes.some(({ upstreamId: upstream, upstreamModel }) => isNamed({ upstream, upstreamModel }));
        if (isConfigured) throw conflict("This route is configured: disable it with updateRoute, or take it out of the configuration.");
        throw notFound("route");
      }
      return { routing, routes: routes.filter((each) => !isOfRoute(each, first.upstream, first.upstreamModel)) };
    };
    return this.write(ctx, { act: "remove_route", modelId, allowsNone: input.allow_none === true, edit });
  }

  /**
   * Removes the changes of a route, of one of its keys, or without an upstream of the whole model with its order. An added route is not
   * configured, so it is removed.
   */
  async reset(ctx: RequestContext, input: ResetRoutesInput): Promise<ChangedRoutes> {
    requireOperator(ctx);
    const { upstream, upstream_model: upstreamModel, key_number: key } = input;
    if (upstream == null && (upstreamModel != null || key != null)) throw wrongField("upstream", "is required to name one of the routes");
    const modelId = this.idOf(input.model);
    const edit = (overrides: ModelOverrides) => {
      if (upstream == null) return UNCHANGED;
      const isReset = (each: RouteOverride) =>
        each.upstream === upstream && (upstreamModel == null || each.upstreamModel === upstreamModel) && (key == null || each.key === key);
      if (!overrides.routes.some(isReset)) throw notFound("change of this route");
      return { routing: overrides.routing, routes: overrides.routes.filter((each) => !isReset(each)) };
    };
    return this.write(ctx, { act: "reset_routes", modelId, allowsNone: input.allow_none === true, edit });
  }

  /** Sets the order of routes of one priority. Null: as configured. */
  async setRouting(ctx: RequestContext, { model, routing }: SetRoutingInput): Promise<ChangedRoutes> {
    requireOperator(ctx);
    const { id } = this.known(model);
    return this.write(ctx, { act: "set_routing", modelId: id, allowsNone: false, edit: ({ routes }) => ({ routing, routes }) });
  }

  private async write(ctx: RequestContext, { act, modelId, allowsNone, edit }: Change): Promise<ChangedRoutes> {
    const { database, directory, events, clock, catalog } = this.deps;
    const model = this.configured(modelId);
    const next = await database.prisma.$transaction(async (transaction) => {
      // Changes of one model follow each other.
      await lockName(transaction, `routes of ${modelId}`);
      const row = await transaction.routeOverrides.findUnique({ where: { modelId } });
      const before = (row && fromStored(row.changes)) ?? UNCHANGED;
      const edited = edit(before);
      const after: ModelOverrides = { ...edited, routes: edited.routes.filter(isStored) };
      if (model) assertValid(model, before, after, allowsNone, (id) => catalog.upstreams.get(id));
      if (after.routing === null && after.routes.length === 0) await transaction.routeOverrides.deleteMany({ where: { modelId } });
      else {
        const data = { changes: toStored(after), updatedAt: clock.now() };
        await transaction.routeOverrides.upsert({ where: { modelId }, create: { modelId, ...data }, update: data });
      }
      await recordAct(transaction, ctx, { act, before: factsOf(modelId, before, after), after: factsOf(modelId, after, before) });
      return after;
    });
    events.publish("routes-changed", { modelId });
    await directory.upToDate();
    ctx.log.info({ model: modelId, act }, "an operator changed the routes of a model");
    return { model: this.shown(modelId), warnings: model ? this.warningsOf(ctx, model, next) : [] };
  }

  /** Logs them too, as at the start. */
  private warningsOf(ctx: RequestContext, { id, stated }: RoutedModel, { routes }: ModelOverrides): readonly string[] {
    return routes.flatMap(({ upstream, upstreamModel, prices }) => {
      const price = priceAboveOf(prices, stated.prices);
      if (price === null) return [];
      ctx.log.warn({ event: "route-above-price", model: id, route: upstream, price }, ROUTE_ABOVE_PRICE);
      return [`The route ${upstream} (${upstreamModel}) costs more than ${id}: its ${price} is above the model's, so callers pay less.`];
    });
  }

  private shown(id: string): ModelRoutes {
    const { catalog, directory, states } = this.deps;
    const overrides = directory.stored.get(id)?.overrides ?? null;
    const model = this.configured(id);
    return model
      ? toModelRoutes(model, overrides ?? UNCHANGED, (upstream) => catalog.upstreams.get(upstream), states)
      : toUnconfigured(id, overrides);
  }

  private configured(id: string): RoutedModel | undefined {
    return this.deps.catalog.routed.find((model) => model.id === id);
  }

  /** Throws BAD_REQUEST for a model that is not configured. */
  private known(name: string): RoutedModel {
    const { routed } = this.deps.catalog;
    const model = routed.find(({ id }) => id === name) ?? routed.find(({ aliases }) => aliases.includes(name));
    if (model) return model;
    if (isCommunityId(name)) throw wrongField("model", "is registered by an account, which states its one upstream");
    const near = closest(routed, name, { ...CLOSEST, namesOf: ({ id, aliases }) => [id, ...aliases] }).map(({ id }) => id);
    throw wrongField("model", `there is no model ${JSON.stringify(name)}. The closest are: ${near.join(", ")}`);
  }

  /** As `known`, but also of a model that only has stored changes. */
  private idOf(name: string): string {
    return this.deps.directory.stored.has(name) ? name : this.known(name).id;
  }

  private routeOf({ id, definition }: RoutedModel, upstream: string, upstreamModel: string | null | undefined) {
    const { upstreams } = this.deps.catalog;
    const to = definition.routes.filter(({ upstreamId }) => upstreamId === upstream);
    const named = upstreamModel == null ? to : to.filter((each) => each.upstreamModel === upstreamModel);
    const [route, other] = named;
    if (route === undefined && to.length > 0)
      throw wrongField(
        "upstream_model",
        `the model has no such route to ${upstream}, but ${namesIn(to.map((each) => each.upstreamModel))}`,
      );
    if (route === undefined && upstreams.has(upstream)) {
      const own = namesIn(definition.routes.map(({ upstreamId }) => upstreamId));
      throw wrongField("upstream", `the model ${id} has no route to ${upstream}, but to ${own}. Add one with addRoute`);
    }
    if (route === undefined) throw this.noUpstream(upstream);
    if (other)
      throw wrongField("upstream_model", `the model has several routes to ${upstream}: ${namesIn(to.map((each) => each.upstreamModel))}`);
    return { upstream, upstreamModel: route.upstreamModel, keys: 1 + (upstreams.get(upstream)?.furtherApiKeys?.length ?? 0) };
  }

  private noUpstream(name: string) {
    const near = closest([...this.deps.catalog.upstreams.keys()], name, { ...CLOSEST, namesOf: (id: string) => [id] });
    return wrongField("upstream", `there is no upstream ${JSON.stringify(name)}. The closest are: ${near.join(", ")}`);
  }

  private isOfStored(upstream: string): boolean {
    return [...this.deps.directory.stored.values()].some(({ overrides }) => overrides?.routes.some((each) => each.upstream === upstream));
  }
}

function namesIn(names: readonly string[]): string {
  return [...new Set(names)].slice(0, 10).join(", ");
}
