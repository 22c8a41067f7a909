/** POST /text and GET /text/{prompt}: text generation with a plain-text answer (docs/spec/chat.md#text). */
import type { RequestContext } from "../../context.js";
import { wrongField } from "../../errors.js";
import type { Exchange } from "../../http/exchange.js";
import { type ChatCompletionInput, chatCompletionInput } from "../../services/generation/chat/plan.js";
import { textQuery } from "../../services/generation/chat/text.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { cachedHeaders, receiptHeaders } from "../headers.js";
import type { Route } from "../route.js";
import { sendChatStream } from "../streaming.js";

export function addTextRoutes(route: Route, endpoint: Endpoint, { text }: Pick<Services, "text">): void {
  route("/text", {
    POST: endpoint({
      isForAgents: true,
      isGeneration: true,
      body: chatCompletionInput,
      handler: (ctx, { body, exchange }) => answerText(text, ctx, exchange, body),
    }),
  });
  route("/text/*prompt", {
    GET: endpoint({
      isForAgents: true,
      isBounded: true,
      query: textQuery,
      handler: async (ctx, { query, exchange }) => {
        const prompt = promptOf(exchange);
        if (query.stream) return sendChatStream(exchange, ctx, await text.getStream(ctx, prompt, query));
        const answer = await text.get(ctx, prompt, query);
        exchange.setHeaders(cachedHeaders(answer));
        exchange.sendText(answer.text);
      },
    }),
    // Unspecified: checks the key and the parameters as GET does, and generates nothing.
    HEAD: endpoint({
      isForAgents: true,
      isBounded: true,
      query: textQuery,
      handler: (_ctx, { exchange }) => {
        promptOf(exchange);
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

function promptOf(exchange: Exchange): string {
  const prompt = exchange.parameter("prompt");
  if (prompt.trim() === "") throw wrongField("prompt", "must not be empty");
  return prompt;
}
