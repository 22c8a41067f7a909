/** POST /v1/embeddings: OpenAI's wire format (docs/spec/embeddings.md). */
import { embeddingsInput } from "../../services/generation/embeddings.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { receiptHeaders } from "../headers.js";
import type { Route } from "../route.js";

export function addEmbeddingRoutes(route: Route, endpoint: Endpoint, { embeddings }: Pick<Services, "embeddings">): void {
  route("/v1/embeddings", {
    POST: endpoint({
      isForAgents: true,
      isGeneration: true,
      body: embeddingsInput,
      handler: async (ctx, { body, exchange }) => {
        const { bytes, receipt } = await embeddings.create(ctx, body);
        exchange.setHeaders(receiptHeaders(receipt));
        exchange.sendBytes(bytes(), "application/json; charset=utf-8");
      },
    }),
  });
}
