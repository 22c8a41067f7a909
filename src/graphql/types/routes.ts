/** Routes of the catalog's models, for operators (docs/spec/routing.md#operators). */
import { formatPicocredits } from "../../lib/money.js";
import { RANKED } from "../../lib/pagination.js";
import { parsePermitted, requireOperator } from "../../services/access/permissions.js";
import { CATALOG_PRICE_FIELDS, type CatalogPriceField, type StatedPrices } from "../../services/catalog/pricing.js";
import type { DataPolicy, Quantization, RouteLimits, Routing } from "../../services/catalog/route.js";
import type { IgnoredReason } from "../../services/catalog/route-overrides.js";
import type { RouteStatus, WaitCode } from "../../services/generation/routing/health.js";
import type { RouteSetting } from "../../services/routes/changes.js";
import { routesFilter } from "../../services/routes/operator-routes.js";
import { type IgnoredChange, type ModelRoutes as ModelRoutesView, modelPosition, type ShownRoute } from "../../services/routes/view.js";
import { builder, describedValues } from "../builder.js";
import { readId } from "../global-ids.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { pageArgs, pageCost, toConnection, toPageRequest } from "../pages.js";
import { PRICES as TEN_PRICES } from "./community-models.js";
import { Modality } from "./models.js";

export const PRICES: Readonly<Record<CatalogPriceField, string>> = {
  ...TEN_PRICES,
  promptCacheWriteHourPrice: "The price per token written to the upstream's prompt cache for an hour.",
};

export function perPrice<Field>(create: (field: CatalogPriceField) => Field): Record<CatalogPriceField, Field> {
  return Object.fromEntries(CATALOG_PRICE_FIELDS.map((field) => [field, create(field)])) as Record<CatalogPriceField, Field>;
}

export const RoutingEnum = builder.enumType("Routing", {
  description: "How the routes of one priority are ordered.",
  values: describedValues<Routing>({
    weight: "At random: each route is first as often as its share of the weights.",
    price: "The lowest price of the operator first.",
    latency: "The shortest time to a stream's first token or a whole answer first.",
    throughput: "The shortest time for each token of output first.",
  }),
});

const CircuitEnum = builder.enumType("RouteCircuit", {
  description: "Whether an upstream is called after failures.",
  values: describedValues<RouteStatus["circuit"]>({
    closed: "It is called.",
    open: "It is not called.",
    half_open: "One call at a time probes it.",
  }),
});

const WaitCodeEnum = builder.enumType("RouteWaitCode", {
  description: "Why a route is not called now.",
  values: describedValues<WaitCode>({
    credential_refused: "The upstream refused the key.",
    payment_required: "The operator's account at the upstream has no funds left.",
    rate_limited: "The upstream limits requests of the key.",
    circuit_open: "The upstream failed too often.",
    limit_reached: "A stated limit of the route is reached.",
  }),
});

const DataPolicyEnum = builder.enumType("RouteDataPolicy", {
  description: "What an upstream does with requests.",
  values: describedValues<"zero_retention" | "no_training" | "training">({
    zero_retention: "It keeps nothing.",
    no_training: "It keeps requests without training on them.",
    training: "It may train on requests.",
  }),
});

const SettingEnum = builder.enumType("RouteSetting", {
  description: "A setting of a route that operators change.",
  values: describedValues<RouteSetting>({
    enabled: "Whether the route is called.",
    priority: "The priority.",
    weight: "The weight.",
    limits: "The limits.",
    prices: "The operator's prices.",
  }),
});

const IgnoredReasonEnum = builder.enumType("IgnoredRouteReason", {
  description: "Why a change of a route has no effect.",
  values: describedValues<IgnoredReason>({
    no_model: "The model is not configured.",
    no_route: "The model has no such route.",
    no_upstream: "The upstream is not configured.",
    no_key: "The upstream has no such key.",
  }),
});

const Limits = builder.objectRef<RouteLimits>("RouteLimits").implement({
  description: "Limits of one key at its upstream. Null: none.",
  fields: (t) => ({
    rpm: t.exposeInt("rpm", { nullable: true, description: "Requests a minute." }),
    tpm: t.exposeInt("tpm", { nullable: true, description: "Tokens a minute, of prompts and answers." }),
    concurrent: t.exposeInt("concurrent", { nullable: true, description: "Requests at once." }),
  }),
});

const Prices = builder.objectRef<StatedPrices>("RoutePrices").implement({
  description: "What the operator pays, in credits per unit. Null: the price that it falls back to.",
  fields: (t) =>
    perPrice((field) =>
      t.field({
        type: "Price",
        nullable: true,
        description: PRICES[field],
        resolve: (prices) => {
          const price = prices[field];
          return price === undefined ? null : formatPicocredits(price);
        },
      }),
    ),
});

const dateOf = (ms: number | undefined | null) => (ms == null ? null : new Date(ms));

const ModelRoute = builder.objectRef<ShownRoute>("ModelRoute").implement({
  description: "A way from a model to an upstream, with one of its keys, and its state in the process that answers.",
  fields: (t) => ({
    id: t.id({ description: "The ID of the route within its model, as in receipts.", resolve: ({ route }) => route.id }),
    upstream: t.string({ description: "The ID of the upstream.", resolve: ({ route }) => route.upstreamId }),
    upstreamModel: t.string({ description: "The upstream's own name of the model.", resolve: ({ route }) => route.upstreamModel }),
    keyNumber: t.int({
      description: "The number of the key among those of the upstream, from 1.",
      resolve: ({ route }) => route.keyIndex + 1,
    }),
    keyCount: t.exposeInt("keyCount", { description: "The number of the upstream's keys." }),
    keyId: t.id({ description: "Names upstream and key. Never the key itself.", resolve: ({ route }) => route.keyId }),
    isEnabled: t.exposeBoolean("isEnabled", { description: "Whether the route is called." }),
    isAdded: t.exposeBoolean("isAdded", { description: "Whether an operator added the route to the model." }),
    changed: t.field({
      type: [SettingEnum],
      description: "The settings that differ from the configured ones.",
      resolve: ({ changed }) => [...changed],
    }),
    priority: t.int({ description: "Routes with a lower number are tried first.", resolve: ({ route }) => route.priority }),
    weight: t.float({
      description: "The share of calls within the priority. Keys of an upstream share its weight.",
      resolve: ({ route }) => route.weight,
    }),
    prices: t.field({
      type: Prices,
      nullable: true,
      description: "What the operator pays. Null: unknown, or the prices of the model.",
      resolve: ({ route }) => route.prices,
    }),
    isAtModelPrice: t.boolean({
      description: "Whether the operator pays the prices of the model.",
      resolve: ({ route }) => route.isAtModelPrice,
    }),
    limits: t.field({ type: Limits, nullable: true, description: "Limits of the key. Null: none.", resolve: ({ route }) => route.limits }),
    regions: t.stringList({ description: "Regions, such as `eu`. Empty: unknown.", resolve: ({ route }) => [...route.regions] }),
    dataPolicy: t.field({
      type: DataPolicyEnum,
      nullable: true,
      description: "What the upstream does with requests. Null: unknown.",
      resolve: ({ route: { dataPolicy } }) => (dataPolicy === null ? null : POLICIES[dataPolicy]),
    }),
    quantization: t.string({
      nullable: true,
      description: "The number format of the weights, such as `fp8`. Null: unknown.",
      resolve: ({ route }): Quantization | null => route.quantization,
    }),
    maxFirstTokenMs: t.int({
      nullable: true,
      description: "The longest wait for a stream's first token, in milliseconds, while another route is left. Null: not stated.",
      resolve: ({ route }) => route.firstTokenMs,
    }),
    circuit: t.field({
      type: CircuitEnum,
      description: "Whether the upstream is called after failures.",
      resolve: ({ status }) => status.circuit,
    }),
    circuitOpenUntil: t.field({
      type: "DateTime",
      nullable: true,
      description: "When a call may probe the upstream. Null unless the circuit is open.",
      resolve: ({ status }) => dateOf(status.openUntil),
    }),
    coolingDownUntil: t.field({
      type: "DateTime",
      nullable: true,
      description: "Until when the key is not called. Null: it may be called.",
      resolve: ({ status }) => dateOf(status.coolingDown?.until),
    }),
    coolingDownCode: t.field({
      type: WaitCodeEnum,
      nullable: true,
      description: "Why the key is not called. Null: it may be called.",
      resolve: ({ status }) => status.coolingDown?.code ?? null,
    }),
    requestsAtOnce: t.int({
      nullable: true,
      description: "Requests under way. Null for a route without limits, whose requests are not counted.",
      resolve: ({ status }) => status.use?.running ?? null,
    }),
    requestsThisMinute: t.int({
      nullable: true,
      description: "Requests of this minute. Null for a route without limits.",
      resolve: ({ status }) => status.use?.requests ?? null,
    }),
    tokensThisMinute: t.float({
      nullable: true,
      description: "Tokens of this minute, as a whole number. Null for a route without limits.",
      resolve: ({ status }) => status.use?.tokens ?? null,
    }),
    firstTokenMs: t.float({
      nullable: true,
      description: "The median time to a stream's first token or a whole answer, in milliseconds. Null: not measured.",
      resolve: ({ times }) => times.firstMs,
    }),
    tokenMs: t.float({
      nullable: true,
      description: "The median time for each token of output, in milliseconds. Null: not measured.",
      resolve: ({ times }) => times.tokenMs,
    }),
  }),
});

const POLICIES: Readonly<Record<DataPolicy, "zero_retention" | "no_training" | "training">> = {
  "zero-retention": "zero_retention",
  "no-training": "no_training",
  training: "training",
};

const IgnoredRouteChange = builder.objectRef<IgnoredChange>("IgnoredRouteChange").implement({
  description: "A stored change of a route that has no effect.",
  fields: (t) => ({
    upstream: t.exposeString("upstream", { description: "The ID of the upstream." }),
    upstreamModel: t.exposeString("upstreamModel", { description: "The upstream's own name of the model." }),
    keyNumber: t.exposeInt("key", { nullable: true, description: "The number of the key. Null: all keys." }),
    isAdded: t.exposeBoolean("isAdded", { description: "Whether an operator added the route to the model." }),
    changed: t.field({ type: [SettingEnum], description: "The changed settings.", resolve: ({ changed }) => [...changed] }),
    reason: t.expose("reason", { type: IgnoredReasonEnum, description: "Why the change has no effect." }),
  }),
});

export const ModelRoutes = builder.objectRef<ModelRoutesView>("ModelRoutes").implement({
  description: "The routes of a model. The `restId` is the ID of the model.",
  interfaces: [Node],
  extensions: nodesReadBy(async (ctx, ids) => byId(ctx.services.operatorRoutes.getMany(ctx, ids))),
  fields: (t) => ({
    modelId: t.exposeID("id", { description: "The canonical ID of the model." }),
    modality: t.expose("modality", { type: Modality, nullable: true, description: "The task of the model. Null: it is not configured." }),
    isOffered: t.exposeBoolean("isOffered", { description: "Whether the model has an enabled route, and so can be called." }),
    routing: t.expose("routing", { type: RoutingEnum, nullable: true, description: "How routes of one priority are ordered." }),
    configuredRouting: t.expose("configuredRouting", {
      type: RoutingEnum,
      nullable: true,
      description: "The order without an operator's change. Null: the model is not configured.",
    }),
    routes: t.field({ type: [ModelRoute], description: "The routes, disabled ones too.", resolve: ({ routes }) => [...routes] }),
    ignored: t.field({
      type: [IgnoredRouteChange],
      description: "Stored changes that have no effect, because their model, route, upstream or key is not configured.",
      resolve: ({ ignored }) => [...ignored],
    }),
  }),
});

const RoutesFilter = builder.inputType("RoutesFilter", {
  description: "Filters for routes. A model must match all of them.",
  fields: (t) => ({
    modelId: t.id({ description: "The model, by its ID or an alias." }),
    upstream: t.string({ description: "Models with a route to this upstream." }),
    isChanged: t.boolean({ description: "True: models of which an operator changed something." }),
  }),
});

/** Each model has several routes. */
const ROUTES_COST = 5;

builder.queryField("modelRoutes", (t) =>
  t.field({
    type: builder.connectionObject(
      { type: ModelRoutes, name: "ModelRoutesConnection", description: "A page of models with their routes." },
      { name: "ModelRoutesEdge", description: "A model with its routes, and its cursor." },
    ),
    nullable: true,
    description: "The routes of the gateway's models, by model, with their state in the process that answers. Operators only.",
    args: { ...pageArgs, filter: t.arg({ type: RoutesFilter, description: "Filters. Defaults to all models." }) },
    complexity: (args) => ({ ...pageCost(args), field: ROUTES_COST }),
    resolve: async (_root, { filter, ...args }, ctx) => {
      const input = () => ({ model: modelIn(filter?.modelId, "filter.modelId"), upstream: filter?.upstream, changed: filter?.isChanged });
      const parsed = parsePermitted(ctx, requireOperator, routesFilter, input);
      const page = await ctx.services.operatorRoutes.list(ctx, parsed, toPageRequest(args, "modelRoutes", RANKED));
      return toConnection(page, "modelRoutes", modelPosition, RANKED);
    },
  }),
);

export function modelIn(id: string | null | undefined, param: string): string | null {
  return id == null ? null : readId(id, "Model", param);
}
