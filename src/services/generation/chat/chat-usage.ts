/** Usage as OpenAI's chat format reports it. */
import { toCreditsNumber } from "../../../lib/money.js";
import type { UsageQuantities } from "../../../lib/usage.js";
import type { Receipt } from "../receipt.js";

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

type Charged = Pick<Receipt, "usage" | "costNanocredits" | "childCostNanocredits">;

/** A stream's headers have gone when its cost is known, so its usage carries the cost, in credits, and an agent's what it asked for. */
export function withCost(reported: unknown, { usage, costNanocredits, childCostNanocredits }: Charged): Record<string, unknown> {
  const base = reported && typeof reported === "object" ? reported : toReportedUsage(usage);
  const childCost = childCostNanocredits === undefined ? {} : { child_cost: toCreditsNumber(childCostNanocredits) };
  return { ...base, cost: toCreditsNumber(costNanocredits), ...childCost };
}
