/** Changes of the routes of the catalog's models, by operators (docs/spec/routing.md#operators). */
import { formatPicocredits } from "../../lib/money.js";
import { parsePermitted, requireOperator } from "../../services/access/permissions.js";
import { CATALOG_PRICE_FIELDS, type CatalogPriceField } from "../../services/catalog/pricing.js";
import { addRouteInput, removeRouteInput, resetRoutesInput, setRoutingInput, updateRouteInput } from "../../services/routes/changes.js";
import type { ChangedRoutes } from "../../services/routes/operator-routes.js";
import { builder } from "../builder.js";
import { ModelRoutes, modelIn, PRICES, perPrice, RoutingEnum } from "./routes.js";

const LimitsInput = builder.inputType("RouteLimitsInput", {
  description: "Limits of one key at its upstream, kept by not calling it. Omitted: none.",
  fields: (t) => ({
    rpm: t.int({ description: "Requests a minute, at least 1." }),
    tpm: t.int({ description: "Tokens a minute, of prompts and answers, at least 1." }),
    concurrent: t.int({ description: "Requests at once, at least 1." }),
  }),
});

const PricesInput = builder.inputType("RoutePricesInput", {
  description:
    "What the operator pays, in credits per unit. They replace all prices of the route. Omitted: the price that it falls back to, or free.",
  fields: (t) => perPrice((field) => t.field({ type: "Price", description: PRICES[field] })),
});

const WIRE_MODEL = { extensions: { wireName: "model" } } as const;
const NULL_RESETS = "Null: as configured.";
const MODEL = "The model, by its ID or an alias.";
const UPSTREAM = "The ID of the upstream.";
const UPSTREAM_MODEL = "The upstream's own name of the model. Required if the model has several routes to the upstream.";
const ALLOWS_NONE =
  "True: the change may leave the model without an enabled route, so that it cannot be called. Otherwise that is refused.";

const UpdateRouteInput = builder.inputType("UpdateRouteInput", {
  description: "Parameters of `updateRoute`. Omitted settings do not change.",
  fields: (t) => ({
    modelId: t.id({ required: true, description: MODEL, ...WIRE_MODEL }),
    upstream: t.string({ required: true, description: UPSTREAM }),
    upstreamModel: t.string({ description: UPSTREAM_MODEL }),
    keyNumber: t.int({ description: "The number of the key, from 1. Omitted: all keys of the upstream." }),
    isEnabled: t.boolean({ description: `Whether the route is called. ${NULL_RESETS}`, extensions: { wireName: "enabled" } }),
    priority: t.int({ description: `Routes with a lower number are tried first, 0 to 1000000. ${NULL_RESETS}` }),
    weight: t.float({
      description: `The share of calls within the priority, 0 to 1000000. 0: only after all others. All keys share it, unless \`keyNumber\` names one. ${NULL_RESETS}`,
    }),
    limits: t.field({ type: LimitsInput, description: `Limits of each key. ${NULL_RESETS}` }),
    prices: t.field({ type: PricesInput, description: `What the operator pays. ${NULL_RESETS}` }),
    allowsNone: t.boolean({ description: ALLOWS_NONE, extensions: { wireName: "allow_none" } }),
  }),
});

const AddRouteInput = builder.inputType("AddRouteInput", {
  description: "Parameters of `addRoute`.",
  fields: (t) => ({
    modelId: t.id({ required: true, description: MODEL, ...WIRE_MODEL }),
    upstream: t.string({ required: true, description: "The ID of a configured upstream." }),
    upstreamModel: t.string({ required: true, description: "The upstream's own name of the model." }),
    isEnabled: t.boolean({ description: "Whether the route is called. Defaults to true.", extensions: { wireName: "enabled" } }),
    priority: t.int({ description: "Routes with a lower number are tried first, 0 to 1000000. Defaults to 0." }),
    weight: t.float({ description: "The share of calls within the priority, 0 to 1000000, shared by the upstream's keys. Defaults to 1." }),
    limits: t.field({ type: LimitsInput, description: "Limits of each key. Defaults to none." }),
    prices: t.field({ type: PricesInput, description: "What the operator pays. Defaults to unknown." }),
  }),
});

const RemoveRouteInput = builder.inputType("RemoveRouteInput", {
  description: "Parameters of `removeRoute`.",
  fields: (t) => ({
    modelId: t.id({ required: true, description: MODEL, ...WIRE_MODEL }),
    upstream: t.string({ required: true, description: UPSTREAM }),
    upstreamModel: t.string({ description: UPSTREAM_MODEL }),
    allowsNone: t.boolean({ description: ALLOWS_NONE, extensions: { wireName: "allow_none" } }),
  }),
});

const ResetRoutesInput = builder.inputType("ResetRoutesInput", {
  description: "Parameters of `resetRoutes`.",
  fields: (t) => ({
    modelId: t.id({ required: true, description: MODEL, ...WIRE_MODEL }),
    upstream: t.string({ description: "The ID of the upstream. Omitted: all changes of the model, its order and added routes too." }),
    upstreamModel: t.string({ description: "The upstream's own name of the model. Omitted: all routes to the upstream." }),
    keyNumber: t.int({ description: "The number of the key, from 1. Omitted: all changes of the route." }),
    allowsNone: t.boolean({ description: ALLOWS_NONE, extensions: { wireName: "allow_none" } }),
  }),
});

const SetRoutingInput = builder.inputType("SetRoutingInput", {
  description: "Parameters of `setRouting`.",
  fields: (t) => ({
    modelId: t.id({ required: true, description: MODEL, ...WIRE_MODEL }),
    routing: t.field({ type: RoutingEnum, description: `The order. ${NULL_RESETS}` }),
  }),
});

function changePayload(mutation: string) {
  return builder.objectRef<ChangedRoutes>(`${mutation.charAt(0).toUpperCase()}${mutation.slice(1)}Payload`).implement({
    description: `The result of \`${mutation}\`.`,
    fields: (t) => ({
      model: t.field({ type: ModelRoutes, description: "The routes of the model after the change.", resolve: ({ model }) => model }),
      warnings: t.stringList({
        description: "Oddities of the changed routes, such as a price above the model's.",
        resolve: ({ warnings }) => [...warnings],
      }),
    }),
  });
}

interface RouteSettingsInput {
  readonly isEnabled?: boolean | null | undefined;
  readonly prices?: Readonly<Partial<Record<CatalogPriceField, bigint | null | undefined>>> | null | undefined;
}

/** Prices of MODELS_FILE are decimal texts. */
function settingsIn<Input extends RouteSettingsInput>({ isEnabled, prices, ...same }: Input) {
  return { ...same, enabled: isEnabled, prices: prices && pricesIn(prices) };
}

function pricesIn(prices: NonNullable<RouteSettingsInput["prices"]>): Readonly<Record<string, string>> {
  const stated = CATALOG_PRICE_FIELDS.map((field) => [field, prices[field]] as const);
  return Object.fromEntries(stated.flatMap(([field, price]) => (price == null ? [] : [[field, formatPicocredits(price)]])));
}

builder.mutationField("updateRoute", (t) =>
  t.field({
    type: changePayload("updateRoute"),
    nullable: true,
    description:
      "Changes a route of a model: whether it is called, priority, weight, limits, and what the operator pays. The change holds for the next request, on every process within a second, and after a restart. Operators only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: UpdateRouteInput, required: true, description: "The route and its settings." }) },
    resolve: (_root, { input: { modelId, upstreamModel, keyNumber, allowsNone, ...input } }, ctx) => {
      const read = () => ({
        ...settingsIn(input),
        ...{ model: modelIn(modelId, "modelId"), upstream_model: upstreamModel, key_number: keyNumber, allow_none: allowsNone },
      });
      return ctx.services.operatorRoutes.update(ctx, parsePermitted(ctx, requireOperator, updateRouteInput, read));
    },
  }),
);

builder.mutationField("addRoute", (t) =>
  t.field({
    type: changePayload("addRoute"),
    nullable: true,
    description: "Adds a route to a model, to an upstream that is configured. Operators only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: AddRouteInput, required: true, description: "The route and its settings." }) },
    resolve: (_root, { input: { modelId, upstreamModel, ...input } }, ctx) => {
      const read = () => ({ ...settingsIn(input), model: modelIn(modelId, "modelId"), upstream_model: upstreamModel });
      return ctx.services.operatorRoutes.add(ctx, parsePermitted(ctx, requireOperator, addRouteInput, read));
    },
  }),
);

builder.mutationField("removeRoute", (t) =>
  t.field({
    type: changePayload("removeRoute"),
    nullable: true,
    description: "Removes a route that an operator added. A configured route is disabled with `updateRoute` instead. Operators only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: RemoveRouteInput, required: true, description: "The route." }) },
    resolve: (_root, { input: { modelId, upstreamModel, allowsNone, ...input } }, ctx) => {
      const read = () => ({ ...input, model: modelIn(modelId, "modelId"), upstream_model: upstreamModel, allow_none: allowsNone });
      return ctx.services.operatorRoutes.remove(ctx, parsePermitted(ctx, requireOperator, removeRouteInput, read));
    },
  }),
);

builder.mutationField("resetRoutes", (t) =>
  t.field({
    type: changePayload("resetRoutes"),
    nullable: true,
    description:
      "Resets a route, or all routes of a model, to the configured settings. Removes added routes, and changes that have no effect. Operators only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: ResetRoutesInput, required: true, description: "The routes." }) },
    resolve: (_root, { input: { modelId, upstream, upstreamModel, keyNumber, allowsNone } }, ctx) => {
      const place = { upstream, upstream_model: upstreamModel, key_number: keyNumber };
      const read = () => ({ ...place, model: modelIn(modelId, "modelId"), allow_none: allowsNone });
      return ctx.services.operatorRoutes.reset(ctx, parsePermitted(ctx, requireOperator, resetRoutesInput, read));
    },
  }),
);

builder.mutationField("setRouting", (t) =>
  t.field({
    type: changePayload("setRouting"),
    nullable: true,
    description: "Sets how the routes of one priority of a model are ordered. Operators only.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: SetRoutingInput, required: true, description: "The model and the order." }) },
    resolve: (_root, { input: { modelId, routing } }, ctx) => {
      const read = () => ({ model: modelIn(modelId, "modelId"), routing: routing ?? null });
      return ctx.services.operatorRoutes.setRouting(ctx, parsePermitted(ctx, requireOperator, setRoutingInput, read));
    },
  }),
);
