/** POST /text and GET /text/{prompt}: text generation with a plain-text answer (docs/spec/chat.md#text). */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import type { Exchange } from "../../http/exchange.js";
import { type ChatCompletionInput, chatCompletionInput } from "../../services/generation/chat/plan.js";
import { textQuery } from "../../services/generation/chat/text.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { cachedHeaders, receiptHeaders } from "../headers.js";
import { EVENT_STREAM, sent } from "../openapi/answer.js";
import { HELLO, nonBlankPathText, STREAMED } from "../openapi/schemas.js";
import type { Route } from "../route.js";
import { sendChatStream } from "../streaming.js";

const plainText = sent("text/plain", EVENT_STREAM);
const byPrompt = z.object({ prompt: nonBlankPathText("A description of the content to generate. May contain slashes.") });

export function addTextRoutes(route: Route, endpoint: Endpoint, { text }: Pick<Services, "text">): void {
  route("/text", {
    POST: endpoint({
      id: "createText",
      tag: "Text",
      summary: "Creates a chat completion and returns plain text.",
      description: `The body is that of a chat completion. ${STREAMED}`,
      answer: plainText,
      example: { body: { model: "sandbox/text", messages: HELLO } },
      isForAgents: true,
      isGeneration: true,
      body: chatCompletionInput,
      presetFormat: "chat",
      handler: (ctx, { body, exchange }) => answerText(text, ctx, exchange, body),
    }),
  });
  route("/text/*prompt", {
    GET: endpoint({
      id: "getText",
      tag: "Text",
      summary: "Generates plain text from a prompt.",
      answer: plainText,
      example: { parameters: { prompt: "Hello!", model: "sandbox/text" } },
      isForAgents: true,
      takesModels: true,
      isBounded: true,
      params: byPrompt,
      query: textQuery,
      handler: async (ctx, { params: { prompt }, query, exchange }) => {
        if (query.stream) return sendChatStream(exchange, ctx, await text.getStream(ctx, prompt, query));
        const answer = await text.get(ctx, prompt, query);
        exchange.setHeaders(cachedHeaders(answer));
        exchange.sendText(answer.text);
      },
    }),
    // Unspecified: checks the key and the parameters as GET does, and generates nothing.
    HEAD: endpoint({
      id: null,
      isForAgents: true,
      isBounded: true,
      params: byPrompt,
      query: textQuery,
      handler: (_ctx, { exchange }) => {
        exchange.writeHead(200, { "Cache-Control": "private, no-store", "Content-Type": "text/plain; charset=utf-8" });
        exchange.res.end();
      },
    }),
  });
}

async function answerText(text: Services["text"], ctx: RequestContext, exchange: Exchange, input: ChatCompletionInput): Promise<void> {
  if (input.stream) return sendChatStream(exchange, ctx, text.stream(ctx, input));
  const answer = await text.create(ctx, input);
  exchange.setHeaders(receiptHeaders(answer.receipt));
  exchange.sendText(answer.text);
}
