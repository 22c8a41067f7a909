/** POST /v1/responses: OpenAI's Responses format, stateless (docs/spec/chat.md#responses). */
import * as z from "zod";
import { responseInput } from "../../services/generation/chat/responses.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { receiptHeaders } from "../headers.js";
import { EVENT_STREAM, json, jsonOr } from "../openapi/answer.js";
import { amount, calledModel, STREAMED, seconds } from "../openapi/schemas.js";
import type { Route } from "../route.js";
import { sendResponseStream } from "../streaming.js";

/** Not named `Response`, because generated clients have a type of that name. */
const modelResponse = json(
  "ModelResponse",
  z.looseObject({
    id: z.string(),
    object: z.literal("response"),
    created_at: seconds,
    status: z.enum(["completed", "incomplete"]),
    model: calledModel,
    output: z.array(z.looseObject({ type: z.string(), id: z.string() })),
    usage: z.looseObject({ input_tokens: amount, output_tokens: amount, total_tokens: amount }),
  }),
);

export function addResponseRoutes(route: Route, endpoint: Endpoint, { responses }: Pick<Services, "responses">): void {
  route("/v1/responses", {
    POST: endpoint({
      id: "createResponse",
      tag: "Text",
      summary: "Creates a response in OpenAI's Responses format. The response is not stored.",
      description: `${STREAMED} The response in the last event has the \`receipt\`, with the model that answered and the timings. Tools that the model does not support, such as \`web_search\`, are left out and listed in \`X-Warnings\`. Forcing such a tool is rejected with 400.`,
      answer: jsonOr(modelResponse, EVENT_STREAM),
      example: { body: { model: "sandbox/text", input: "Hello!" } },
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
