/** /v1/responses: OpenAI's Responses format, stateless (docs/spec/chat.md#responses). */
import * as z from "zod";
import { AppError } from "../../errors.js";
import { responseInput } from "../../services/generation/chat/responses.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { receiptHeaders } from "../headers.js";
import { EVENT_STREAM, json, jsonOr, UPGRADE } from "../openapi/answer.js";
import { amount, calledModel, STREAMED, seconds } from "../openapi/schemas.js";
import type { Route } from "../route.js";
import { sendResponseStream } from "../streaming.js";

export const RESPONSES_PATH = "/v1/responses";

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

const inputTokens = json("ResponseInputTokens", z.object({ object: z.literal("response.input_tokens"), input_tokens: amount }));

const compactedResponse = json(
  "CompactedResponse",
  z.looseObject({
    id: z.string(),
    object: z.literal("response.compaction"),
    created_at: seconds,
    model: calledModel,
    output: z.array(z.looseObject({ type: z.string(), id: z.string() })),
    usage: z.looseObject({ input_tokens: amount, output_tokens: amount, total_tokens: amount }),
  }),
);

export function addResponseRoutes(route: Route, endpoint: Endpoint, { responses }: Pick<Services, "responses">): void {
  route(RESPONSES_PATH, {
    GET: endpoint({
      id: "openResponses",
      tag: "Text",
      summary: "Opens a WebSocket on which responses run one after the other.",
      description:
        'Needs a key. Send `{ "type": "response.create", ... }` with the fields of `POST /v1/responses`, and receive the events of its stream. `previous_response_id` names a response of the same connection, and `input` then has only the new items. `generate: false` keeps an input without an answer or a charge. Each response is charged as over HTTP. A frame that is refused is answered by an `error` event with `status`, and the connection stays open.',
      answer: UPGRADE,
      errors: ["403"],
      isForAgents: true,
      isPublic: true,
      handler: () => {
        throw new AppError("UPGRADE_REQUIRED", "This is a WebSocket: connect to it with an upgrade, or send a POST.");
      },
    }),
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
  route(`${RESPONSES_PATH}/input_tokens`, {
    POST: endpoint({
      id: "countResponseTokens",
      tag: "Text",
      summary: "Estimates the input tokens of a response, without a charge.",
      answer: inputTokens,
      example: { body: { model: "sandbox/text", input: "Hello!" } },
      isForAgents: true,
      body: responseInput,
      handler: async (ctx, { body }) => ({
        object: "response.input_tokens" as const,
        input_tokens: await responses.countTokens(ctx, body),
      }),
    }),
  });
  route(`${RESPONSES_PATH}/compact`, {
    POST: endpoint({
      id: "compactResponse",
      tag: "Text",
      summary: "Has the model summarize a conversation, to continue it with fewer tokens.",
      description:
        "Answers items for the `input` of the next request: the messages of the user, and an item `compaction` that holds the summary of the whole conversation. It is charged as a response of the model.",
      answer: compactedResponse,
      example: { body: { model: "sandbox/text", input: "Hello!" } },
      isForAgents: true,
      isGeneration: true,
      body: responseInput,
      handler: async (ctx, { body, exchange }) => {
        const { compacted, receipt } = await responses.compact(ctx, body);
        exchange.setHeaders(receiptHeaders(receipt));
        return compacted;
      },
    }),
  });
}
