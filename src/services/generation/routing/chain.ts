/** From a request's wishes to its models, in the order of attempts, and to the wishes of its routes (docs/spec/routing.md#wishes). */
import type { PriceLimits, ProviderWishes, RequestContext, RequestWishes } from "../../../context.js";
import { AppError, wrongField } from "../../../errors.js";
import { closest } from "../../../lib/issue-words.js";
import { parseNanocredits } from "../../../lib/money.js";
import { requireCaller } from "../../access/permissions.js";
import type { Catalog } from "../../catalog/catalog.js";
import type { Modality } from "../../catalog/modality.js";
import type { Model } from "../../catalog/model.js";
import { type BilledKind, dearestOf, type RateCard } from "../../catalog/pricing.js";
import { type RequestFields, takesFields, withRequestRates } from "../../catalog/request-rates.js";
import type { Route } from "../../catalog/route.js";
import { namesOf } from "../../catalog/wish-fields.js";
import type { RouteWishes } from "./order.js";

export interface WishedChain {
  /** The first model with a route. */
  readonly model: Model;
  readonly fallbacks: readonly Model[];
  readonly wishes: RouteWishes;
  readonly isChargedAsServed: boolean;
}

interface Requested {
  readonly ctx: RequestContext;
  readonly catalog: Pick<Catalog, "resolve" | "fallbacksOf" | "models">;
  /** With the rates of the request's fields. */
  readonly model: Model;
  readonly modality: Modality;
  readonly fields: RequestFields;
}

/** Why wishes leave a route out. */
export type WishCode = "not_in_only" | "ignored" | "too_expensive" | "data_collection" | "quantization" | "parameters";

/** Charged by tokens, in the same units for every model. */
const SEVERAL_MODELS: ReadonlySet<Modality> = new Set(["text", "embedding"]);

/** Throws BAD_REQUEST or FORBIDDEN for a model of the list, and BAD_REQUEST naming `provider` when no route is left. */
export function wishedChain(requested: Requested, { provider, models }: RequestWishes, format?: RouteWishes): WishedChain {
  const { catalog, model, fields } = requested;
  if (provider !== null) assertKnown(provider, catalog.models);
  const named = models.length === 0 ? [] : namedModels(requested, models);
  const wishes = toRouteWishes(provider ?? {}, fields, format);
  const isTaken = (route: Route, of: Model) => (wishes.accepts?.(of, route) ?? true) && takesFields(of, route, fields);
  const [first, ...rest] = [model, ...named].filter((each) => each.routes.some((route) => isTaken(route, each)));
  if (first === undefined) throw refuseAll([model, ...named], provider ?? {}, fields);
  const isChargedAsServed = named.length > 0;
  const fallbacks = isChargedAsServed ? rest : provider?.allow_fallbacks === false ? [] : catalog.fallbacksOf(first);
  return { model: first, fallbacks, wishes, isChargedAsServed };
}

/** `model` at the highest price of all, and with all kinds of output, so that its hold covers each of them. */
export function dearestModel(model: Model, fallbacks: readonly Model[]): Model {
  if (fallbacks.length === 0) return model;
  const all = [model, ...fallbacks];
  const capabilities = new Set(all.flatMap((each) => each.capabilities));
  if (all.some(({ prices }) => prices.completionReasoningPrice !== undefined)) capabilities.add("reasoning");
  return {
    ...model,
    rates: dearestOf(all.map(({ rates }) => rates)),
    capabilities: [...capabilities],
    outputModalities: [...new Set(all.flatMap((each) => each.outputModalities))],
    paidOnly: all.some(({ paidOnly }) => paidOnly),
  };
}

function namedModels({ ctx, catalog, model, modality, fields }: Requested, names: readonly string[]): readonly Model[] {
  if (!SEVERAL_MODELS.has(modality))
    throw wrongField("models", "is for chats and embeddings, whose models have the same units of price. Name one model");
  const caller = requireCaller(ctx);
  const named = new Map<string, Model>();
  for (const [index, name] of names.entries()) {
    const found = resolveAt(`models.${index}`, () => catalog.resolve(caller, name, modality));
    if (found.isAgent) throw wrongField(`models.${index}`, "is an agent, which cannot be a fallback");
    if (found.id !== model.id && !named.has(found.id)) named.set(found.id, withRequestRates(found, fields));
  }
  if (named.size > 0 && model.isAgent) throw wrongField("models", "an agent has no fallbacks. Leave it out");
  return [...named.values()];
}

function resolveAt(param: string, resolve: () => Model): Model {
  try {
    return resolve();
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const message = `${param}: ${error.message}`;
    throw new AppError(error.code, message, { param, details: { fieldErrors: { [param]: [error.message] }, formErrors: [] } });
  }
}

/** Pure. `format` is what the request's own format asks of a route. */
export function toRouteWishes(provider: ProviderWishes, fields: RequestFields, format: RouteWishes = {}): RouteWishes {
  const { order, sort, allow_fallbacks } = provider;
  const ordered = order == null || order.length === 0 ? undefined : [...namesOf(order)];
  const isFree = Object.values(provider).every((value) => value == null);
  const { accepts } = format;
  return {
    ...format,
    ...(!isFree && {
      accepts: (model: Model, route: Route) => (accepts?.(model, route) ?? true) && whyNot(model, route, provider, fields) === null,
    }),
    routing: sort ?? format.routing,
    order: ordered,
    isOrderOnly: allow_fallbacks === false,
  };
}

/** Null: the route may serve. */
function whyNot(model: Model, route: Route, provider: ProviderWishes, fields: RequestFields): WishCode | null {
  const { order, only, ignore, allow_fallbacks, max_price, data_collection, quantizations, require_parameters } = provider;
  const name = route.upstreamName.toLowerCase();
  if (only != null && !namesOf(only).has(name)) return "not_in_only";
  if (allow_fallbacks === false && order != null && order.length > 0 && !namesOf(order).has(name)) return "not_in_only";
  if (namesOf(ignore).has(name)) return "ignored";
  if (max_price != null && isAbove(model.rates, max_price)) return "too_expensive";
  if (data_collection === "deny" && route.dataPolicy !== "zero-retention" && route.dataPolicy !== "no-training") return "data_collection";
  if (quantizations != null && !quantizations.includes(route.quantization ?? "unknown")) return "quantization";
  if (require_parameters === true && !hasAbilities(model, fields)) return "parameters";
  return null;
}

/** Fields that a vendor does not take are never sent to it; these also need an ability of the model. */
function hasAbilities({ modality, capabilities }: Model, { tools, reasoning_effort: effort }: RequestFields): boolean {
  if (modality !== "text") return true;
  if (Array.isArray(tools) && tools.length > 0 && !capabilities.includes("tools")) return false;
  return effort == null || effort === "none" || capabilities.includes("reasoning");
}

function isAbove(rates: RateCard, { prompt, completion, request, image }: PriceLimits): boolean {
  const dearest = rates.longContext === undefined ? rates : dearestOf([rates]);
  const exceeds = (kinds: readonly BilledKind[], limit: string | null | undefined, units: bigint) => {
    const nanocredits = limit == null ? null : parseNanocredits(limit);
    // Rates are picocredits of one unit.
    return nanocredits !== null && kinds.some((kind) => dearest[kind] * units > nanocredits * 1_000n);
  };
  const perRequest = request == null ? null : parseNanocredits(request);
  return (
    exceeds(["inputTextTokens"], prompt, 1_000_000n) ||
    exceeds(["outputTextTokens", "outputReasoningTokens"], completion, 1_000_000n) ||
    exceeds(["imageRequests"], image, 1n) ||
    (perRequest !== null && (rates.perRequest ?? 0n) > perRequest * 1_000n)
  );
}

const CLOSEST = { namesOf: (name: string) => [name], count: 3, charsMax: 100 } as const;
const COMMUNITY = "community";

function assertKnown({ order, only, ignore }: ProviderWishes, models: readonly Model[]): void {
  const stated = [
    ["order", order],
    ["only", only],
    ["ignore", ignore],
  ] as const;
  if (stated.every(([, names]) => names == null || names.length === 0)) return;
  const known = new Map([[COMMUNITY, COMMUNITY]]);
  for (const { routes } of models) for (const { upstreamName } of routes) known.set(upstreamName.toLowerCase(), upstreamName);
  for (const [field, names] of stated) {
    for (const [index, name] of (names ?? []).entries()) {
      if (known.has(name.toLowerCase())) continue;
      const near = closest([...known.values()], name, CLOSEST);
      throw wrongField(`provider.${field}.${index}`, `there is no upstream ${JSON.stringify(name)}. The closest are: ${near.join(", ")}`);
    }
  }
}

const WORDS: Readonly<Record<WishCode, string>> = {
  not_in_only: "is not named by only, or by order without fallbacks",
  ignored: "is named by ignore",
  too_expensive: "costs more than max_price",
  data_collection: "may keep data, or has no stated policy",
  quantization: "has another quantization",
  parameters: "does not support all parameters",
};

function refuseAll(models: readonly Model[], provider: ProviderWishes, fields: RequestFields): AppError {
  const reasons = new Map<string, { route: string; code: WishCode; retryAfterSeconds: null }>();
  for (const model of models) {
    for (const route of model.routes) {
      const code = whyNot(model, route, provider, fields) ?? "parameters";
      reasons.set(`${route.upstreamName} ${code}`, { route: route.upstreamName, code, retryAfterSeconds: null });
    }
  }
  const list = [...reasons.values()];
  const said = list.slice(0, 5).map(({ route, code }) => `${route} ${WORDS[code]}`);
  const message = `The wishes leave no upstream of ${models.map(({ id }) => id).join(", ")}: ${said.join("; ")}. Relax them, or name another model.`;
  const param = "provider";
  return new AppError("BAD_REQUEST", message, {
    param,
    details: { fieldErrors: { [param]: [message] }, formErrors: [], reasons: list },
  });
}
