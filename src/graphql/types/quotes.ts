/** The price of a generation before it (docs/spec/quotes.md). */
import { parsePermitted, requireCaller } from "../../services/access/permissions.js";
import { boundedBy } from "../../services/credits/max-cost.js";
import { type QuoteObject, toQuoteObject } from "../../services/generation/quote.js";
import { quoteInput } from "../../services/generation/quotes.js";
import { builder } from "../builder.js";

type RouteObject = QuoteObject["routes"][number];

const QuoteRoute = builder.objectRef<RouteObject>("QuoteRoute").implement({
  description: "The price of a generation at one upstream.",
  fields: (t) => ({
    upstream: t.exposeString("upstream", { description: "The name of the upstream." }),
    vendorKeyId: t.id({
      nullable: true,
      description: "The REST ID of the account's vendor key by which it is called. Null: a key of the operator.",
      resolve: ({ vendorKeyId }) => vendorKeyId ?? null,
    }),
    least: t.expose("least", { type: "Credits", description: "The least that a successful generation is charged." }),
    expected: t.expose("expected", { type: "Credits", description: "The estimate." }),
    most: t.expose("most", { type: "Credits", description: "The most that the generation can be charged." }),
  }),
});

const Currency = builder.enumType("Currency", {
  description: "The unit of amounts.",
  values: { CREDITS: { value: "credits", description: "Credits of this gateway." } } as const,
});

const Quote = builder.objectRef<QuoteObject>("Quote").implement({
  description: "The price of a generation, as far as it is known before it.",
  fields: (t) => ({
    least: t.expose("least", { type: "Credits", description: "The least that a successful generation is charged." }),
    expected: t.expose("expected", { type: "Credits", description: "The estimate: the usual length of the account's answers." }),
    most: t.expose("most", { type: "Credits", description: "The most that the generation can be charged, which `maxCost` lowers." }),
    currency: t.expose("currency", { type: Currency, description: "The unit of the amounts." }),
    modelId: t.exposeID("model", { description: "The canonical ID of the model." }),
    routes: t.field({
      type: [QuoteRoute],
      description: "The upstreams that may serve it, in their order.",
      resolve: ({ routes }) => [...routes],
    }),
    notes: t.exposeStringList("notes", { description: "The uncertainties, one sentence each." }),
  }),
});

const QuoteInput = builder.inputType("QuoteInput", {
  description: "Parameters of `quote`.",
  fields: (t) => ({
    path: t.string({
      required: true,
      description: "The REST path of the generation, with its query, such as `/v1/chat/completions` or `/text/Hello?model=sandbox/text`.",
    }),
    body: t.field({ type: "JSON", description: "The body of the request, with its wire names. A file of a form is a data URL." }),
    maxCost: t.field({ type: "Credits", description: "The `maxCost` that the generation would state." }),
  }),
});

builder.queryField("quote", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: Quote,
    nullable: true,
    description:
      "Returns what a generation would cost. Nothing is generated, held or charged, and no credits are needed. The request is checked as the generation itself, and counts for rate limits.",
    args: { input: t.arg({ type: QuoteInput, required: true, description: "The request of the generation." }) },
    resolve: async (_root, { input: { maxCost, ...stated } }, ctx) => {
      const input = parsePermitted(ctx, requireCaller, quoteInput, () => stated);
      return toQuoteObject(await ctx.services.quotes.quote(boundedBy(ctx, maxCost), input));
    },
  }),
);
