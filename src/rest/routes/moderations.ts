/** POST /v1/moderations: OpenAI's wire format (docs/spec/moderations.md). */
import { moderationsInput } from "../../services/generation/moderations.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { receiptHeaders } from "../headers.js";
import type { Route } from "../route.js";

export function addModerationRoutes(route: Route, endpoint: Endpoint, { moderations }: Pick<Services, "moderations">): void {
  route("/v1/moderations", {
    POST: endpoint({
      isForAgents: true,
      isGeneration: true,
      body: moderationsInput,
      handler: async (ctx, { body, exchange }) => {
        const { moderation, receipt } = await moderations.create(ctx, body);
        exchange.setHeaders(receiptHeaders(receipt));
        return moderation;
      },
    }),
  });
}
