/** POST /v1/responses: OpenAI's Responses format, stateless (docs/spec/chat.md#responses). */
import { responseInput } from "../../services/generation/chat/responses-input.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { receiptHeaders } from "../headers.js";
import type { Route } from "../route.js";
import { sendResponseStream } from "../streaming.js";

export function addResponseRoutes(route: Route, endpoint: Endpoint, { responses }: Pick<Services, "responses">): void {
  route("/v1/responses", {
    POST: endpoint({
      isForAgents: true,
      isGeneration: true,
      body: responseInput,
      handler: async (ctx, { body, exchange }) => {
        if (body.stream) return sendResponseStream(exchange, ctx, responses.stream(ctx, body));
        const { response, receipt } = await responses.create(ctx, body);
        exchange.setHeaders(receiptHeaders(receipt));
        return response;
      },
    }),
  });
}
