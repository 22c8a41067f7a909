/** Figures of models in the last day, and the history of their prices. */
import { PRICES_SHOWN_MAX } from "../../services/catalog/limits.js";
import type { Model as ModelRow } from "../../services/catalog/model.js";
import type { PriceChange } from "../../services/catalog/price-history.js";
import type { ModelActivity as ActivityRow } from "../../services/usage/model-activity.js";
import { builder } from "../builder.js";
import { batchedBy, batchedByMap } from "../loaders.js";
import { Model, ModelPricing } from "./models.js";
import { UsageTimes } from "./usage-lists.js";

const ModelActivity = builder.objectRef<ActivityRow>("ModelActivity").implement({
  description: "Requests of all accounts to a model in the last 24 hours, without those of the last seconds.",
  fields: (t) => ({
    from: t.expose("from", {
      type: "DateTime",
      description: "The start of the first hour. Later than a day ago for a model that very many accounts call.",
    }),
    requests: t.exposeInt("requests", { description: "The number of generations, without failed ones." }),
    failedRequests: t.exposeInt("failedRequests", {
      description: "The number of generations that failed on all candidates, not because of the caller.",
    }),
    successRate: t.exposeFloat("successRate", {
      nullable: true,
      description: "The share of generations that did not fail, 0 to 1. Null when there were no generations.",
    }),
    responseTimeMs: t.expose("responseTimeMs", {
      type: UsageTimes,
      nullable: true,
      description: "The time from the request to the end of its answer. Null when there were no generations.",
    }),
    timeToFirstTokenMs: t.expose("timeToFirstTokenMs", {
      type: UsageTimes,
      nullable: true,
      description: "The time from the request to the first token. Null when no answer was streamed.",
    }),
  }),
});

const ModelPriceChange = builder.objectRef<PriceChange>("ModelPriceChange").implement({
  description: "Prices of a model, from the time when this gateway first had them.",
  fields: (t) => ({
    since: t.expose("since", { type: "DateTime", description: "When the prices were first known." }),
    pricing: t.field({ type: ModelPricing, description: "The prices.", resolve: ({ priced }) => priced }),
  }),
});

const loadActivity = batchedByMap((ctx, ids) => ctx.services.modelActivities.activityOf(ids));

const loadPrices = batchedBy<ModelRow, readonly PriceChange[]>(async (ctx, models) => {
  const prices = await ctx.services.priceHistory.pricesOf(models);
  return models.map(({ id }) => prices.get(id) ?? []);
});

builder.objectFields(Model, (t) => ({
  activity: t.field({
    type: ModelActivity,
    nullable: true,
    description: "Requests of all accounts to the model in the last 24 hours.",
    resolve: (model, _args, ctx) => loadActivity(ctx, model.id),
  }),
  priceHistory: t.field({
    type: [ModelPriceChange],
    description: `The model's prices while it was public, newest first; at most ${PRICES_SHOWN_MAX}.`,
    complexity: { field: 1, multiplier: PRICES_SHOWN_MAX },
    resolve: async (model, _args, ctx) => [...(await loadPrices(ctx, model))],
  }),
}));
