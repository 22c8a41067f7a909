/** Counts of tokens before a chat is sent. */
import { parsePermitted, requireCaller } from "../../services/access/permissions.js";
import { chatCompletionInput } from "../../services/generation/chat/plan.js";
import type { TokenCount as TokenCountObject } from "../../services/generation/chat/token-count.js";
import { builder } from "../builder.js";
import { ChatCompletionInput, toChatBody } from "./chat-input.js";

const TokenCount = builder.objectRef<TokenCountObject>("TokenCount").implement({
  description: "An estimate of a conversation's tokens.",
  fields: (t) => ({
    inputTokens: t.exposeInt("inputTokens", { description: "The tokens of the messages, tools and response format." }),
    modelId: t.exposeID("modelId", { description: "The canonical ID of the model." }),
  }),
});

builder.queryField("countTokens", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: TokenCount,
    nullable: true,
    description: "Estimates the input tokens of a chat completion. It is not charged and calls no upstream, and counts for rate limits.",
    args: { input: t.arg({ type: ChatCompletionInput, required: true, description: "The conversation and the parameters." }) },
    resolve: (_root, { input }, ctx) => {
      const body = parsePermitted(ctx, requireCaller, chatCompletionInput, () => toChatBody(input));
      return ctx.services.tokenCounts.count(ctx, body);
    },
  }),
);
