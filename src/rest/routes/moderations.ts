/** POST /v1/moderations: OpenAI's wire format (docs/spec/moderations.md). */
import * as z from "zod";
import { moderationsInput } from "../../services/generation/moderations.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { receiptHeaders } from "../headers.js";
import { json } from "../openapi/answer.js";
import { calledModel, MILL } from "../openapi/schemas.js";
import type { Route } from "../route.js";

const moderation = json(
  "Moderation",
  z.looseObject({
    id: z.string(),
    model: calledModel,
    results: z.array(
      z.looseObject({
        flagged: z.boolean(),
        categories: z.record(z.string(), z.boolean()),
        category_scores: z.record(z.string(), z.number()),
      }),
    ),
  }),
);

export function addModerationRoutes(route: Route, endpoint: Endpoint, { moderations }: Pick<Services, "moderations">): void {
  route("/v1/moderations", {
    POST: endpoint({
      id: "createModeration",
      tag: "Moderation",
      summary: "Moderates text and images, in OpenAI's wire format.",
      answer: moderation,
      example: { body: { model: "sandbox/moderation", input: MILL } },
      isForAgents: true,
      isGeneration: true,
      body: moderationsInput,
      handler: async (ctx, { body, exchange }) => {
        const { moderation: found, receipt } = await moderations.create(ctx, body);
        exchange.setHeaders(receiptHeaders(receipt));
        return found;
      },
    }),
  });
}
