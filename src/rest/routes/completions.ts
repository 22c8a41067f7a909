/** POST /v1/completions: OpenAI's format before chats (docs/spec/chat.md#completions). */
import * as z from "zod";
import { completionInput } from "../../services/generation/chat/completions.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { receiptHeaders } from "../headers.js";
import { EVENT_STREAM, json, writtenJson } from "../openapi/answer.js";
import { amount, calledModel, nullableText, STREAMED, seconds } from "../openapi/schemas.js";
import type { Route } from "../route.js";
import { sendCompletionStream } from "../streaming.js";

const completion = json(
  "Completion",
  z.looseObject({
    id: z.string(),
    object: z.literal("text_completion"),
    created: seconds,
    model: calledModel,
    choices: z.array(z.looseObject({ index: z.int(), text: z.string(), logprobs: z.null(), finish_reason: nullableText })),
    usage: z.looseObject({ prompt_tokens: amount, completion_tokens: amount, total_tokens: amount }),
  }),
);

export function addCompletionRoutes(route: Route, endpoint: Endpoint, { completions }: Pick<Services, "completions">): void {
  route("/v1/completions", {
    POST: endpoint({
      id: "createCompletion",
      tag: "Text",
      summary: "Completes a prompt, in OpenAI's wire format before chats.",
      description: `${STREAMED} The prompt is sent to a text model as a message of the user. It is one text: tokens and lists of prompts are rejected with 400.`,
      answer: writtenJson(completion, EVENT_STREAM),
      example: { body: { model: "sandbox/text", prompt: "Hello!" } },
      isForAgents: true,
      isGeneration: true,
      body: completionInput,
      presetFormat: "completions",
      handler: async (ctx, { body, exchange }) => {
        if (body.stream) return sendCompletionStream(exchange, ctx, completions.stream(ctx, body));
        const { completion: answer, receipt } = await completions.create(ctx, body);
        exchange.setHeaders(receiptHeaders(receipt));
        exchange.sendJson(answer);
      },
    }),
  });
}
