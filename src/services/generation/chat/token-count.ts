/** The estimate of a chat's input tokens, as for a hold, for routes that count without a charge. */

import type { RequestContext } from "../../../context.js";
import { ChatCount } from "../../../formats/openai-chat/count.js";
import { readChat } from "../../../formats/openai-chat/prompt.js";
import type { ChatBody } from "../../../formats/openai-chat/schema.js";
import { countInTurns } from "../../../lib/tokenizer.js";
import { requireCaller } from "../../access/permissions.js";
import type { RateLimits } from "../../access/rate-limits.js";
import type { Catalog } from "../../catalog/catalog.js";
import { parseInput } from "../../requests/input.js";
import { resolveRequested } from "../requested-model.js";
import { type ChatCompletionInput, chatCompletionInput } from "./plan.js";

export interface TokenCount {
  /** Canonical id. */
  readonly modelId: string;
  readonly inputTokens: number;
}

/** Counts tokens of chats before they are sent. */
export class TokenCounts {
  constructor(
    private readonly catalog: Catalog,
    private readonly limits: RateLimits,
  ) {}

  /** Estimates the input tokens of a chat without a charge. It is limited, and rejects, as a generation of the same content does. */
  async count(ctx: RequestContext, input: ChatCompletionInput): Promise<TokenCount> {
    const caller = requireCaller(ctx);
    const model = resolveRequested(ctx, this.catalog, input.model, "text");
    await this.limits.admit(this.limits.nameOf(caller, ctx.clientAddress), caller, model);
    return { modelId: model.id, inputTokens: await countChat(input) };
  }
}

/** Throws BAD_REQUEST for a chat that is not valid. */
export async function countChat(chat: ChatBody): Promise<number> {
  const count = new ChatCount();
  readChat(parseInput(chatCompletionInput, chat), count);
  return count.tokens + (await countInTurns(count.texts));
}
