/** Routes of the catalog's models, for operators (docs/spec/routing.md#operators). */
import * as z from "zod";
import { RANKED } from "../../lib/pagination.js";
import { PAGE_SIZE_MAX } from "../../limits.js";
import { requireOperator } from "../../services/access/permissions.js";
import { MODALITIES } from "../../services/catalog/modality.js";
import { DATA_POLICIES, QUANTIZATIONS, ROUTINGS } from "../../services/catalog/route.js";
import { queryFlag, queryInteger } from "../../services/requests/query-values.js";
import {
  addRouteInput,
  priceTexts,
  ROUTE_SETTINGS,
  resetRoutesInput,
  setRoutingInput,
  updateRouteInput,
} from "../../services/routes/changes.js";
import { routesFilter } from "../../services/routes/operator-routes.js";
import { type ModelRoutes, modelPosition, type ShownRoute } from "../../services/routes/view.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { json } from "../openapi/answer.js";
import { amount, nullableText, time } from "../openapi/schemas.js";
import type { Route } from "../route.js";

const milliseconds = z.number().nullable();

const shownRoute = z.object({
  id: z.string().describe("The ID of the route within its model, as in receipts."),
  upstream: z.string(),
  upstream_model: z.string().describe("The upstream's own name of the model."),
  key_number: z.int().describe("The number of the key among those of the upstream, from 1."),
  key_count: z.int(),
  key_id: z.string().describe("Names upstream and key. Never the key itself."),
  enabled: z.boolean(),
  added: z.boolean().describe("An operator added the route to the model."),
  changed: z.array(z.enum(ROUTE_SETTINGS)).describe("The settings that differ from the configured ones."),
  priority: z.int(),
  weight: z.number().describe("The share of calls within the priority. Keys of an upstream share its weight."),
  prices: z
    .record(z.string(), z.string())
    .nullable()
    .describe("What the operator pays, in credits per unit. Null: unknown, or the prices of the model."),
  at_model_price: z.boolean(),
  limits: z
    .object({ rpm: amount.nullable(), tpm: amount.nullable(), concurrent: amount.nullable() })
    .nullable()
    .describe("Limits of the key. Null: none."),
  regions: z.array(z.string()),
  data_policy: z.enum(DATA_POLICIES).nullable(),
  quantization: z.enum(QUANTIZATIONS).nullable(),
  max_first_token_ms: z.int().nullable().describe("The longest wait for a stream's first token while another route is left."),
  circuit: z.enum(["closed", "open", "half_open"]),
  circuit_open_until: time.nullable(),
  cooling_down_until: time.nullable().describe("Until when the key is not called. Null: it may be called."),
  cooling_down_code: nullableText,
  requests_at_once: amount.nullable().describe("Requests under way. Null for a route without limits."),
  requests_this_minute: amount.nullable(),
  tokens_this_minute: amount.nullable(),
  first_token_ms: milliseconds.describe("The median time to a stream's first token or a whole answer. Null: not measured."),
  token_ms: milliseconds.describe("The median time for each token of output. Null: not measured."),
});

const modelRoutes = z.object({
  model: z.string(),
  modality: z.enum(MODALITIES).nullable().describe("Null: the model is not configured."),
  offered: z.boolean().describe("The model has an enabled route, and so can be called."),
  routing: z.enum(ROUTINGS).nullable(),
  configured_routing: z.enum(ROUTINGS).nullable(),
  routes: z.array(shownRoute),
  ignored: z
    .array(
      z.object({
        upstream: z.string(),
        upstream_model: z.string(),
        key_number: z.int().nullable(),
        added: z.boolean(),
        changed: z.array(z.enum(ROUTE_SETTINGS)),
        reason: z.enum(["no_model", "no_route", "no_upstream", "no_key"]),
      }),
    )
    .describe("Stored changes that have no effect, because their model, route, upstream or key is not configured."),
});

const routeList = json("ModelRoutesList", z.object({ data: z.array(modelRoutes), next_cursor: nullableText }));
const changedRoutes = json(
  "ChangedRoutes",
  z.object({
    model: modelRoutes,
    warnings: z.array(z.string()).describe("Oddities of the changed routes, such as a price above the model's."),
  }),
);

const LIST = "modelRoutes";

const listQuery = z.object({
  model: routesFilter.shape.model.unwrap().unwrap().optional().describe("The model, by its ID or an alias."),
  upstream: routesFilter.shape.upstream.unwrap().unwrap().optional().describe("Only models with a route to this upstream."),
  changed: queryFlag.optional().describe("Only models of which an operator changed something."),
  limit: queryInteger(z.int().min(1).max(PAGE_SIZE_MAX)).default(PAGE_SIZE_MAX).describe("The maximum number of models."),
  cursor: z
    .string()
    .transform((cursor, ctx) => {
      const position = RANKED.decode(cursor, LIST);
      if (position !== null) return position;
      ctx.addIssue("must be a `next_cursor` that this list has answered");
      return z.NEVER;
    })
    .meta({ pattern: "^[A-Za-z0-9_-]+$" })
    .optional()
    .describe("The `next_cursor` of the previous page."),
});

const text = resetRoutesInput.shape.model;
const resetQuery = z.object({
  model: text.describe("The model, by its ID or an alias."),
  upstream: text.optional().describe("The upstream. Omitted: all changes of the model, its order and added routes too."),
  upstream_model: text.optional().describe("The upstream's own name of the model. Omitted: all routes to the upstream."),
  key_number: queryInteger(z.int().min(1).max(64)).optional().describe("The number of the key. Omitted: all changes of the route."),
  allow_none: queryFlag.optional().describe("Whether the model may be left without an enabled route."),
});

/** The configured model that the examples change. */
const EXAMPLE = { model: "sandbox/text", upstream: "sandbox" };

export function addModelRoutesRoutes(route: Route, endpoint: Endpoint, { operatorRoutes }: Pick<Services, "operatorRoutes">): void {
  const shared = { tag: "Operators", requires: requireOperator } as const;
  route("/operator/routes", {
    GET: endpoint({
      ...shared,
      id: "listModelRoutes",
      summary: "Lists the routes of the gateway's models with their state in the process that answers (operators).",
      answer: routeList,
      example: { parameters: { model: EXAMPLE.model } },
      query: listQuery,
      handler: async (ctx, { query: { limit, cursor, ...filter } }) => {
        const page = await operatorRoutes.list(ctx, filter, { first: limit, after: cursor });
        const last = page.hasNextPage ? page.items.at(-1) : undefined;
        return { data: page.items.map(toModel), next_cursor: last ? RANKED.encode(modelPosition(last), LIST) : null };
      },
    }),
    POST: endpoint({
      ...shared,
      id: "addRoute",
      summary: "Adds a route to a model, to an upstream that is configured (operators).",
      answer: changedRoutes,
      example: { body: { ...EXAMPLE, upstream_model: "text-paid", priority: 1 } },
      body: addRouteInput,
      handler: async (ctx, { body }) => toChanged(await operatorRoutes.add(ctx, body)),
    }),
    PATCH: endpoint({
      ...shared,
      id: "updateRoute",
      summary: "Changes a route of a model, of all keys or of one, for the next request (operators).",
      description: "Omitted settings do not change; null resets one to the configured value. Prices are what the operator pays.",
      answer: changedRoutes,
      example: { body: { ...EXAMPLE, upstream_model: "text", weight: 2 } },
      body: updateRouteInput,
      handler: async (ctx, { body }) => toChanged(await operatorRoutes.update(ctx, body)),
    }),
    DELETE: endpoint({
      ...shared,
      id: "resetRoutes",
      summary: "Resets a route, or all of a model, to the configured settings, and removes added routes (operators).",
      answer: changedRoutes,
      example: { parameters: { model: EXAMPLE.model } },
      query: resetQuery,
      handler: async (ctx, { query }) => toChanged(await operatorRoutes.reset(ctx, query)),
    }),
  });
  route("/operator/routing", {
    PATCH: endpoint({
      ...shared,
      id: "setRouting",
      summary: "Sets how the routes of one priority of a model are ordered; null as configured (operators).",
      answer: changedRoutes,
      example: { body: { model: EXAMPLE.model, routing: "latency" } },
      body: setRoutingInput,
      handler: async (ctx, { body }) => toChanged(await operatorRoutes.setRouting(ctx, body)),
    }),
  });
}

function toChanged({ model, warnings }: Awaited<ReturnType<Services["operatorRoutes"]["update"]>>) {
  return { model: toModel(model), warnings: [...warnings] };
}

function toModel({ id, modality, isOffered, routing, configuredRouting, routes, ignored }: ModelRoutes) {
  return {
    ...{ model: id, modality, offered: isOffered, routing, configured_routing: configuredRouting },
    routes: routes.map(toRoute),
    ignored: ignored.map(({ upstream, upstreamModel, key, isAdded, changed, reason }) => {
      return { upstream, upstream_model: upstreamModel, key_number: key, added: isAdded, changed: [...changed], reason };
    }),
  };
}

const dateOf = (ms: number | null | undefined) => (ms == null ? null : new Date(ms));

function toRoute({ route, keyCount, isEnabled, isAdded, changed, status, times }: ShownRoute) {
  const { id, upstreamId, upstreamModel, keyIndex, keyId, priority, weight, prices, limits } = route;
  return {
    ...{ id, upstream: upstreamId, upstream_model: upstreamModel, key_number: keyIndex + 1, key_count: keyCount, key_id: keyId },
    ...{ enabled: isEnabled, added: isAdded, changed: [...changed], priority, weight },
    prices: prices && { ...priceTexts(prices) },
    at_model_price: route.isAtModelPrice,
    limits: limits && { ...limits },
    regions: [...route.regions],
    ...{ data_policy: route.dataPolicy, quantization: route.quantization, max_first_token_ms: route.firstTokenMs },
    circuit: status.circuit,
    circuit_open_until: dateOf(status.openUntil),
    cooling_down_until: dateOf(status.coolingDown?.until),
    cooling_down_code: status.coolingDown?.code ?? null,
    requests_at_once: status.use?.running ?? null,
    requests_this_minute: status.use?.requests ?? null,
    tokens_this_minute: status.use?.tokens ?? null,
    ...{ first_token_ms: times.firstMs, token_ms: times.tokenMs },
  };
}
