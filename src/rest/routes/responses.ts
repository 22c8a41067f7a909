/** /v1/responses: OpenAI's Responses format (docs/spec/chat.md#responses). */
import * as z from "zod";
import { AppError } from "../../errors.js";
import { responseInput } from "../../services/generation/chat/responses.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { receiptHeaders, startedHeaders } from "../headers.js";
import { EVENT_STREAM, json, jsonOr, UPGRADE } from "../openapi/answer.js";
import { amount, calledModel, STREAMED, seconds } from "../openapi/schemas.js";
import type { Route } from "../route.js";
import { sendResponseStream } from "../streaming.js";

export const RESPONSES_PATH = "/v1/responses";

/** Not named `Response`, because generated clients have a type of that name. */
export const modelResponse = json(
  "ModelResponse",
  z.looseObject({
    id: z.string(),
    object: z.literal("response"),
    created_at: seconds,
    status: z
      .enum(["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"])
      .describe("`queued`, `in_progress` and `cancelled` only in the background."),
    model: calledModel,
    output: z.array(z.looseObject({ type: z.string(), id: z.string() })),
    usage: z
      .looseObject({ input_tokens: amount, output_tokens: amount, total_tokens: amount })
      .nullable()
      .describe("Null while it runs, and when nothing was charged."),
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
      tag: "Responses",
      summary: "Opens a WebSocket on which responses run one after the other.",
      description:
        'Needs a key. Send `{ "type": "response.create", ... }` with the fields of `POST /v1/responses`, and receive the events of its stream. `previous_response_id` names a response of the same connection or a stored one, and `input` then has only the new items. `generate: false` keeps an input without an answer or a charge. Each response is charged as over HTTP. A frame that is refused is answered by an `error` event with `status`, and the connection stays open.',
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
      tag: "Responses",
      summary: "Creates a response in OpenAI's Responses format.",
      description: `${STREAMED} Where the gateway stores responses (\`RESPONSES_STORED_DAYS\`), the response is stored unless \`store\` is false, \`previous_response_id\` or \`conversation\` continues stored items, and \`background: true\` answers at once with a response to retrieve. The response in the last event has the \`receipt\`, with the model that answered and the timings. Tools that the model does not support, such as \`web_search\`, are left out and listed in \`X-Warnings\`. Forcing such a tool is rejected with 400.`,
      answer: jsonOr(modelResponse, EVENT_STREAM),
      example: { body: { model: "sandbox/text", input: "Hello!" } },
      isForAgents: true,
      isGeneration: true,
      presetFormat: "responses",
      body: responseInput,
      handler: async (ctx, { body, exchange }) => {
        if (body.stream) return sendResponseStream(exchange, ctx, await responses.stream(ctx, body));
        const { response, receipt, generationId } = await responses.create(ctx, body);
        exchange.setHeaders(receipt === null ? startedHeaders(generationId) : receiptHeaders(receipt));
        return response;
      },
    }),
  });
  route(`${RESPONSES_PATH}/input_tokens`, {
    POST: endpoint({
      id: "countResponseTokens",
      tag: "Responses",
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
      tag: "Responses",
      summary: "Has the model summarize a conversation, to continue it with fewer tokens.",
      description:
        "Answers items for the `input` of the next request: the messages of the user, and an item `compaction` that holds the summary of the whole conversation. It is charged as a response of the model.",
      answer: compactedResponse,
      example: { body: { model: "sandbox/text", input: "Hello!" } },
      isForAgents: true,
      takesModels: true,
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
