/** POST /v1/messages and its token count: Anthropic's Messages format (docs/spec/messages.md). */
import * as z from "zod";
import type { AppError } from "../../errors.js";
import { STOP_REASONS, toMessageFailure } from "../../formats/anthropic-messages/answer.js";
import { toErrorEnvelope } from "../../http/errors.js";
import type { Exchange } from "../../http/exchange.js";
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
    stop_reason: z.enum(STOP_REASONS),
    stop_sequence: z.string().nullable(),
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
function toMessageErrorBody(error: AppError, requestId: string): object {
  const envelope = toErrorEnvelope(error, requestId);
  return { ...envelope, ...toMessageFailure(envelope.error, envelope.status) };
}

/** Features of `anthropic-beta`: names with commas between them, in one header or several. */
function betasOf({ req }: Exchange): readonly string[] {
  const header: string | readonly string[] = req.headers["anthropic-beta"] ?? "";
  const names = [header].flat().join(",").slice(0, BETA_CHARS_MAX).split(",");
  return names.map((name) => name.trim()).filter((name) => name !== "");
}

/** Unspecified; above any real header. */
const BETA_CHARS_MAX = 4_096;

export function addMessageRoutes(route: Route, endpoint: Endpoint, { messages }: Pick<Services, "messages">): void {
  route("/v1/messages", {
    POST: endpoint({
      id: "createMessage",
      tag: "Text",
      summary: "Creates a message in Anthropic's Messages format, with any text model.",
      description: `${STREAMED} The event \`message_delta\` has the usage, its cost and the \`receipt\`. The key may be sent as \`x-api-key\`. Anthropic's models get the fields and \`anthropic-beta\` features that change no price; others are left out and listed in \`X-Warnings\`. Tools that Anthropic runs are rejected with 400 unless the model prices them.`,
      answer: jsonOr(message, EVENT_STREAM),
      example: { body: { model: "sandbox/text", max_tokens: 100, messages: HELLO } },
      isForAgents: true,
      isGeneration: true,
      presetFormat: "messages",
      toErrorBody: toMessageErrorBody,
      requestIdHeader: "request-id",
      body: messageInput,
      handler: async (ctx, { body, exchange }) => {
        const betas = betasOf(exchange);
        if (body.stream) return sendMessageStream(exchange, ctx, messages.stream(ctx, body, betas));
        const { message: answer, receipt } = await messages.create(ctx, body, betas);
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
      requestIdHeader: "request-id",
      body: messageCountInput,
      handler: async (ctx, { body }) => ({ input_tokens: await messages.countTokens(ctx, body) }),
    }),
  });
}
