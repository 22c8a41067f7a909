/** POST /v1/messages and its token count: Anthropic's Messages format (docs/spec/messages.md). */
import * as z from "zod";
import type { AppError } from "../../errors.js";
import { toMessageFailure } from "../../formats/anthropic-messages/answer.js";
import { toErrorEnvelope } from "../../http/errors.js";
import { messageCountInput, messageInput } from "../../services/generation/chat/messages.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { receiptHeaders } from "../headers.js";
import { EVENT_STREAM, json, jsonOr } from "../openapi/answer.js";
import { amount, calledModel, HELLO, STREAMED } from "../openapi/schemas.js";
import type { Route } from "../route.js";
import { sendMessageStream } from "../streaming.js";

const message = json(
  "Message",
  z.looseObject({
    id: z.string(),
    type: z.literal("message"),
    role: z.literal("assistant"),
    model: calledModel,
    content: z.array(z.looseObject({ type: z.string() })),
    stop_reason: z.enum(["end_turn", "max_tokens", "tool_use", "refusal"]),
    stop_sequence: z.null(),
    usage: z.looseObject({
      input_tokens: amount,
      cache_creation_input_tokens: amount,
      cache_read_input_tokens: amount,
      output_tokens: amount,
    }),
  }),
);

const tokenCount = json("MessageTokenCount", z.object({ input_tokens: amount }));

/** The gateway's envelope with the fields and types of Anthropic's. */
export function toMessageErrorBody(error: AppError, requestId: string): object {
  const envelope = toErrorEnvelope(error, requestId);
  return { ...envelope, ...toMessageFailure(envelope.error, envelope.status) };
}

export function addMessageRoutes(route: Route, endpoint: Endpoint, { messages }: Pick<Services, "messages">): void {
  route("/v1/messages", {
    POST: endpoint({
      id: "createMessage",
      tag: "Text",
      summary: "Creates a message in Anthropic's Messages format, with any text model.",
      description: `${STREAMED} The event \`message_delta\` has the usage, its cost and the \`receipt\`. The key may be sent as \`x-api-key\`. Unknown fields and \`anthropic-beta\` features are left out and listed in \`X-Warnings\`. Tools that Anthropic runs are rejected with 400.`,
      answer: jsonOr(message, EVENT_STREAM),
      example: { body: { model: "sandbox/text", max_tokens: 100, messages: HELLO } },
      isForAgents: true,
      isGeneration: true,
      toErrorBody: toMessageErrorBody,
      body: messageInput,
      handler: async (ctx, { body, exchange }) => {
        if (body.stream) return sendMessageStream(exchange, ctx, messages.stream(ctx, body));
        const { message: answer, receipt } = await messages.create(ctx, body);
        exchange.setHeaders(receiptHeaders(receipt));
        return answer;
      },
    }),
  });
  route("/v1/messages/count_tokens", {
    POST: endpoint({
      id: "countMessageTokens",
      tag: "Text",
      summary: "Estimates the input tokens of a message, without a charge.",
      answer: tokenCount,
      example: { body: { model: "sandbox/text", messages: HELLO } },
      isForAgents: true,
      toErrorBody: toMessageErrorBody,
      body: messageCountInput,
      handler: async (ctx, { body }) => ({ input_tokens: await messages.countTokens(ctx, body) }),
    }),
  });
}
