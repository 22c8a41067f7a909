/** POST /v1/chat/completions: OpenAI's wire format (docs/spec/chat.md#chat-completions). */
import { chatCompletionInput } from "../../services/generation/chat/plan.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { receiptHeaders } from "../headers.js";
import type { Route } from "../route.js";
import { sendChatStream } from "../streaming.js";

export function addChatCompletionRoutes(route: Route, endpoint: Endpoint, { chat }: Pick<Services, "chat">): void {
  route("/v1/chat/completions", {
    POST: endpoint({
      isForAgents: true,
      isGeneration: true,
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
