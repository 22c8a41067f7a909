/** POST /v1/embeddings: OpenAI's wire format (docs/spec/embeddings.md). */
import * as z from "zod";
import { embeddingsInput } from "../../services/generation/embeddings.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { receiptHeaders } from "../headers.js";
import { json, writtenJson } from "../openapi/answer.js";
import { amount, calledModel, MILL } from "../openapi/schemas.js";
import type { Route } from "../route.js";

const embeddingList = json(
  "Embeddings",
  z.looseObject({
    object: z.literal("list"),
    model: calledModel,
    data: z.array(
      z.looseObject({
        object: z.literal("embedding"),
        index: z.int(),
        embedding: z.union([z.array(z.number()), z.string()]).describe("Numbers, or base64 of little-endian 32-bit floats."),
      }),
    ),
    usage: z.looseObject({ prompt_tokens: amount, total_tokens: amount }),
  }),
);

export function addEmbeddingRoutes(route: Route, endpoint: Endpoint, { embeddings }: Pick<Services, "embeddings">): void {
  route("/v1/embeddings", {
    POST: endpoint({
      id: "createEmbeddings",
      tag: "Embeddings",
      summary: "Creates embeddings, in OpenAI's wire format.",
      answer: writtenJson(embeddingList),
      example: { body: { model: "sandbox/embedding", input: MILL } },
      isForAgents: true,
      isGeneration: true,
      takesModels: true,
      body: embeddingsInput,
      handler: async (ctx, { body, exchange }) => {
        const { bytes, receipt } = await embeddings.create(ctx, body);
        exchange.setHeaders(receiptHeaders(receipt));
        exchange.sendBytes(bytes(), "application/json; charset=utf-8");
      },
    }),
  });
}
