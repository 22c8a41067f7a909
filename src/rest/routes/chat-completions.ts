/** POST /v1/chat/completions: OpenAI's wire format (docs/spec/chat.md#chat-completions). */
import * as z from "zod";
import { chatCompletionInput } from "../../services/generation/chat/plan.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { receiptHeaders } from "../headers.js";
import { EVENT_STREAM, json, writtenJson } from "../openapi/answer.js";
import { amount, calledModel, HELLO, nullableText, STREAMED, seconds } from "../openapi/schemas.js";
import type { Route } from "../route.js";
import { sendChatStream } from "../streaming.js";

const message = z.looseObject({
  role: z.string().optional(),
  content: z.union([z.string(), z.array(z.unknown())]).nullish(),
  refusal: nullableText.optional(),
  tool_calls: z
    .array(
      z.looseObject({
        id: z.string().optional(),
        type: z.string().optional(),
        function: z.looseObject({ name: z.string().optional(), arguments: z.string().optional() }).optional(),
      }),
    )
    .nullish(),
});

const chatCompletion = json(
  "ChatCompletion",
  z.looseObject({
    id: z.string().optional(),
    object: z.string().optional(),
    created: seconds.optional(),
    model: calledModel,
    choices: z.array(z.looseObject({ index: z.int().optional(), message: message.nullish(), finish_reason: nullableText.optional() })),
    usage: z.looseObject({ prompt_tokens: amount, completion_tokens: amount, total_tokens: amount }).nullish(),
  }),
);

export function addChatCompletionRoutes(route: Route, endpoint: Endpoint, { chat }: Pick<Services, "chat">): void {
  route("/v1/chat/completions", {
    POST: endpoint({
      id: "createChatCompletion",
      tag: "Text",
      summary: "Creates a chat completion, in OpenAI's wire format.",
      description: `${STREAMED} The last chunk before \`[DONE]\` has the usage and the \`receipt\`, with what the headers of a stream cannot contain: the model that answered and the timings. Unknown fields are passed to the upstream unchanged, except for fields that affect the price: those are rejected with 400, which names the field.`,
      answer: writtenJson(chatCompletion, EVENT_STREAM),
      example: { body: { model: "sandbox/text", messages: HELLO } },
      isForAgents: true,
      isGeneration: true,
      presetFormat: "chat",
      body: chatCompletionInput,
      handler: async (ctx, { body, exchange }) => {
        if (body.stream) return sendChatStream(exchange, ctx, chat.stream(ctx, body));
        const { bytes, receipt } = await chat.create(ctx, body);
        exchange.setHeaders(receiptHeaders(receipt));
        exchange.sendBytes(bytes, "application/json; charset=utf-8");
      },
    }),
  });
}
