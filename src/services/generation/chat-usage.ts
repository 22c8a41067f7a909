/** Usage as OpenAI's chat format reports it. */
import { toCreditsNumber } from "../../lib/money.js";
import type { UsageQuantities } from "../../lib/usage.js";

/** The `usage` object of a chat completion, for an upstream that reported none. */
export function toReportedUsage(usage: UsageQuantities): Record<string, unknown> {
  const cached = usage.inputCachedTokens + usage.inputCacheWriteTokens;
  const promptTokens = usage.inputTextTokens + cached + usage.inputAudioTokens + usage.inputImageTokens;
  const completionTokens = usage.outputTextTokens + usage.outputReasoningTokens + usage.outputAudioTokens + usage.outputImageTokens;
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    completion_tokens_details: { reasoning_tokens: usage.outputReasoningTokens },
  };
}

/** A stream's headers have gone when its cost is known, so its usage carries the cost, in credits. */
export function withCost(reported: unknown, usage: UsageQuantities, costNanocredits: bigint): Record<string, unknown> {
  const base = reported && typeof reported === "object" ? reported : toReportedUsage(usage);
  return { ...base, cost: toCreditsNumber(costNanocredits) };
}
