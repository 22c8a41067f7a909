/** Reranking of documents as a mutation (docs/spec/embeddings.md#reranking). */
import { type RerankedDocument, type RerankResult, rerankInput } from "../../services/generation/rerank.js";
import { builder } from "../builder.js";
import { EXTRA_DESCRIPTION, MAX_COST_DESCRIPTION, SAFE_DESCRIPTION, toSafeText, withExtra } from "../extra.js";
import { PROVIDER_DESCRIPTION, ProviderInput, wishedInput } from "../wishes.js";
import { Model, SafetyFeature } from "./models.js";
import { Receipt } from "./receipts.js";

const RerankInput = builder.inputType("RerankInput", {
  description: "Parameters of `rerank`.",
  fields: (t) => ({
    model: t.string({ description: "A model ID or alias. Defaults to the default rerank model." }),
    query: t.string({ required: true, description: "The text that the documents are compared with." }),
    documents: t.stringList({ required: true, description: "The documents, 1 to 1,000 texts." }),
    topN: t.int({
      description: "How many of the most relevant documents are returned. Defaults to all.",
      extensions: { wireName: "top_n" },
    }),
    safe: t.field({ type: [SafetyFeature], description: SAFE_DESCRIPTION }),
    maxCost: t.field({ type: "Credits", description: MAX_COST_DESCRIPTION }),
    provider: t.field({ type: ProviderInput, description: PROVIDER_DESCRIPTION }),
    extra: t.field({ type: "JSON", description: EXTRA_DESCRIPTION }),
  }),
});

const RankedDocument = builder.objectRef<RerankedDocument>("RankedDocument").implement({
  description: "A document and its relevance.",
  fields: (t) => ({
    index: t.exposeInt("index", { description: "The place of the document in the request, from 0." }),
    relevanceScore: t.exposeFloat("relevance_score", { description: "The relevance to the query. A higher score is more relevant." }),
    document: t.string({ description: "The document.", resolve: ({ document }) => document?.text ?? "" }),
  }),
});

const RerankPayload = builder.objectRef<RerankResult>("RerankPayload").implement({
  description: "The result of `rerank`.",
  fields: (t) => ({
    modelId: t.id({ description: "The canonical ID of the requested model.", resolve: ({ reranking }) => reranking.model }),
    model: t.field({
      type: Model,
      nullable: true,
      description: "The requested model. Null when it is no longer offered to the caller.",
      resolve: ({ reranking }, _args, ctx) => ctx.services.catalog.shown(ctx, reranking.model),
    }),
    results: t.field({
      type: [RankedDocument],
      description: "The documents, the most relevant first.",
      resolve: ({ reranking }) => [...reranking.results],
    }),
    searchUnits: t.int({
      description: "The number of searches: each is a query with up to 100 documents.",
      resolve: ({ reranking }) => reranking.meta.billed_units.search_units,
    }),
    receipt: t.field({ type: Receipt, description: "The receipt of the generation.", resolve: ({ receipt }) => receipt }),
  }),
});

builder.mutationField("rerank", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: RerankPayload,
    nullable: true,
    description: "Sorts documents by their relevance to a query. The charge is committed before the answer is returned.",
    args: { input: t.arg({ type: RerankInput, required: true, description: "The query and the documents." }) },
    resolve: async (_root, { input }, ctx) => {
      const wished = await wishedInput(ctx, input, rerankInput, () => toBody(input));
      return ctx.services.rerankings.create(wished.ctx, wished.input);
    },
  }),
);

function toBody({ model, query, documents, topN, safe, extra }: typeof RerankInput.$inferInput): Record<string, unknown> {
  return withExtra({ model, query, documents, top_n: topN, return_documents: true, safe: toSafeText(safe) }, extra);
}
