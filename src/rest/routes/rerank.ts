/** POST /v1/rerank and /v2/rerank: the format of Cohere and Jina (docs/spec/embeddings.md#reranking). */
import * as z from "zod";
import { rerankInput } from "../../services/generation/rerank.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { receiptHeaders } from "../headers.js";
import { json } from "../openapi/answer.js";
import { amount, calledModel } from "../openapi/schemas.js";
import type { Route } from "../route.js";

const reranking = json(
  "Reranking",
  z.looseObject({
    id: z.string(),
    object: z.literal("list"),
    model: calledModel,
    results: z.array(
      z.looseObject({
        index: z.int().describe("The place of the document in the request, from 0."),
        relevance_score: z.number(),
        document: z.looseObject({ text: z.string() }).optional(),
      }),
    ),
    meta: z.looseObject({ billed_units: z.looseObject({ search_units: amount }) }),
    usage: z.looseObject({ prompt_tokens: amount, total_tokens: amount }),
  }),
);

export function addRerankRoutes(route: Route, endpoint: Endpoint, { rerankings }: Pick<Services, "rerankings">): void {
  for (const [path, id] of [
    ["/v1/rerank", "rerank"],
    ["/v2/rerank", "rerankInVersion2"],
  ] as const) {
    route(path, {
      POST: endpoint({
        id,
        tag: "Embeddings",
        summary: "Sorts documents by their relevance to a query, in the format of Cohere and Jina.",
        answer: reranking,
        example: { body: { model: "sandbox/rerank", query: "A fox", documents: ["The sea is calm.", "A fox ran by."] } },
        isForAgents: true,
        isGeneration: true,
        body: rerankInput,
        handler: async (ctx, { body, exchange }) => {
          const { reranking: sorted, receipt } = await rerankings.create(ctx, body);
          exchange.setHeaders(receiptHeaders(receipt));
          return sorted;
        },
      }),
    });
  }
}
