/** The order in which the routes of a model are tried (docs/spec/routing.md#choice). Pure: the state comes as a snapshot. */
import type { Model } from "../../catalog/model.js";
import { BILLED_KINDS } from "../../catalog/pricing.js";
import type { Route, Routing } from "../../catalog/route.js";
import type { Wait } from "./health.js";
import { inAccountsOrder } from "./own-routes.js";
import type { TimesOfRoute } from "./times.js";

/** What a request asks of the routes that may serve it. */
export interface RouteWishes {
  /** Routes that may serve; absent: all. */
  readonly accepts?: ((model: Model, route: Route) => boolean) | undefined;
  /** Instead of the model's own. */
  readonly routing?: Routing | undefined;
  /** The id of the route that served the conversation before: it comes first. */
  readonly preferred?: string | null | undefined;
  /** Names of upstreams in lower case, which come first in this order. */
  readonly order?: readonly string[] | undefined;
  /** No other upstreams than those of `order`, or than the first. */
  readonly isOrderOnly?: boolean | undefined;
}

export const NO_WISHES: RouteWishes = {};

export interface RoutingSnapshot {
  /** At least 0 and less than 1. */
  random(): number;
  /** Null: the route may be called now. */
  waitOf(route: Route): Wait | null;
  timesOf(route: Route): TimesOfRoute;
  /** Milliseconds since 1970 of its last measurement; 0: none. */
  measuredAtOf(route: Route): number;
}

export interface OrderedRoutes {
  /** In the order of attempts. */
  readonly ready: readonly Route[];
  /** Acceptable routes that may not be called now. */
  readonly waiting: readonly WaitingRoute[];
}

export interface WaitingRoute {
  readonly route: Route;
  readonly wait: Wait;
}

/** Unspecified: the share of requests that go to the route measured longest ago, so that a slow route that has become fast is noticed. */
const EXPLORED = 0.05;
const NONE_WAITING: readonly WaitingRoute[] = [];

/**
 * The acceptable routes by priority, within one by the routing. Routes of weight 0 follow the others of their priority. A model's only
 * route is always ready, but for its stated limits: its upstream says best whether it can be called.
 */
export function orderRoutes(model: Model, wishes: RouteWishes, snapshot: RoutingSnapshot): OrderedRoutes {
  const { accepts } = wishes;
  const accepted = accepts ? model.routes.filter((route) => accepts(model, route)) : model.routes;
  const [only] = model.routes;
  if (model.routes.length === 1 && only.limits === null) return { ready: accepted, waiting: NONE_WAITING };
  const ready: Ranked[] = [];
  const waiting: WaitingRoute[] = [];
  const rankOf = rankerOf(model, wishes.routing ?? model.routing, snapshot);
  for (const route of accepted) {
    const wait = snapshot.waitOf(route);
    if (wait !== null && (model.routes.length > 1 || wait.code === "limit_reached")) waiting.push({ route, wait });
    else ready.push({ route, rank: rankOf(route), order: orderKey(route.weight, snapshot.random()) });
  }
  ready.sort(wishes.routing === undefined ? compare : compareRanks);
  return {
    ready: inWishedOrder(
      ready.map(({ route }) => route),
      wishes,
    ),
    waiting,
  };
}

interface Ranked {
  readonly route: Route;
  /** Lower is better. */
  readonly rank: number;
  /** Between equal ranks; higher is better. */
  readonly order: number;
}

function compare(one: Ranked, other: Ranked): number {
  const isLast = Number(one.route.weight === 0) - Number(other.route.weight === 0);
  return one.route.priority - other.route.priority || isLast || one.rank - other.rank || other.order - one.order;
}

/** A routing that the caller wishes outranks the operator's priorities. */
function compareRanks(one: Ranked, other: Ranked): number {
  return one.rank - other.rank || compare(one, other);
}

type Rank = (route: Route) => number;

function rankerOf(model: Model, routing: Routing, snapshot: RoutingSnapshot): Rank {
  if (routing === "price") return (route) => costRank(model, route);
  if (routing === "weight") return () => 0;
  if (snapshot.random() < EXPLORED) return (route) => snapshot.measuredAtOf(route);
  // A route that was not measured yet is tried.
  if (routing === "latency") return (route) => snapshot.timesOf(route).firstMs ?? 0;
  return (route) => snapshot.timesOf(route).tokenMs ?? 0;
}

/** The operator's prices of all kinds together, output and input alike; a route of unknown cost follows those of known cost. */
function costRank({ rates: own }: Model, { rates, isAtModelPrice }: Route): number {
  const known = isAtModelPrice ? own : rates;
  if (known === null) return Number.MAX_VALUE;
  let sum = 0;
  for (const kind of BILLED_KINDS) sum += Number(known[kind]);
  return sum;
}

/** Applied last: the caller's order outranks the operator's. */
function inWishedOrder(ready: readonly Route[], { routing, preferred, order, isOrderOnly }: RouteWishes): readonly Route[] {
  const sticky = preferred == null || routing !== undefined ? undefined : ready.find(({ id }) => id === preferred);
  const routes = inAccountsOrder(sticky === undefined ? ready : [sticky, ...ready.filter((route) => route !== sticky)]);
  if (order === undefined) return isOrderOnly ? routes.slice(0, 1) : routes;
  const rankOf = ({ upstreamName }: Route) => {
    const rank = order.indexOf(upstreamName.toLowerCase());
    return rank === -1 ? order.length : rank;
  };
  return [...routes].sort((one, other) => rankOf(one) - rankOf(other));
}

/** Sorted by it, highest first, routes come in a random order in which each is first as often as its share of the weights. */
function orderKey(weight: number, random: number): number {
  return weight > 0 ? Math.log(1 - random) / weight : Number.NEGATIVE_INFINITY;
}
