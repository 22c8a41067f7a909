/** How much of a chat's answer may be passed on for what is held, which what was delivered extends. */
import type { UsageQuantities } from "../../../lib/usage.js";
import type { ChatAnswer } from "../../../providers/provider.js";
import type { Model } from "../../catalog/model.js";
import { costOf, type RateCard } from "../../catalog/pricing.js";
import type { GenerationRun } from "../run.js";
import { ChatMeter, type MeteredUsage } from "./chat-meter.js";
import type { ChatPlan } from "./chat-plan.js";

/** How far an answer may be beyond its hold before that is looked into, in hundredths: tokenizers differ by so much. */
const TOLERANCE_PERCENT = 125n;

export function isFarBeyond(costNanocredits: bigint, heldNanocredits: bigint): boolean {
  return costNanocredits * 100n > heldNanocredits * TOLERANCE_PERCENT;
}

/**
 * An answer that came whole and costs more than is held for it: more is held for what was delivered, as a stream of the same length would
 * have asked for it as it came; of an account's upstream nothing beyond what the caller stated. Resolves with the tokens that may be
 * passed on when that is not all of them, else with null.
 */
export async function holdDelivered(
  plan: ChatPlan,
  run: GenerationRun,
  model: Model,
  answer: ChatAnswer,
  metered: MeteredUsage,
): Promise<number | null> {
  if (plan.isFree) return null;
  const { rates } = plan.model;
  const delivered = () => deliveredBy(plan, answer);
  const cost = costOf(model.isCommunity ? delivered() : metered.usage, rates);
  const isExact = model.isCommunity && !plan.isCapped;
  const isWithin = () => (isExact ? cost <= run.heldNanocredits : !isFarBeyond(cost, run.heldNanocredits));
  if (isWithin()) return null;
  if (!(model.isCommunity && plan.isCapped)) await run.meter(model, cost, false, () => metered.usage);
  if (isWithin()) return null;
  const visible = delivered();
  const visibleCost = costOf(visible, rates) - costOf({ ...visible, outputTextTokens: 0, outputReasoningTokens: 0 }, rates);
  const left = run.heldNanocredits - (cost - visibleCost);
  const tokens = visible.outputTextTokens + visible.outputReasoningTokens;
  return left <= 0n || visibleCost === 0n ? 0 : Number((BigInt(tokens) * left) / visibleCost);
}

/** What can be seen of an answer, whatever is reported of it. */
function deliveredBy({ promptTokens, body }: ChatPlan, { completion }: ChatAnswer): UsageQuantities {
  const meter = new ChatMeter(promptTokens, body);
  meter.readCompletion(completion, null);
  return meter.delivered();
}

/** What is learned of a model's answers: of an account's upstream what it has written, whatever it says. */
export function outputTokensOf(model: Model, meter: ChatMeter, reported: UsageQuantities): number {
  const { outputTextTokens, outputReasoningTokens } = model.isCommunity ? meter.soFar() : reported;
  return outputTextTokens + outputReasoningTokens;
}

export function outputTokens({ outputTextTokens, outputReasoningTokens, outputAudioTokens, outputImageTokens }: UsageQuantities): number {
  return outputTextTokens + outputReasoningTokens + outputAudioTokens + outputImageTokens;
}

/** How many of the tokens that came are not paid for by so much. */
export function tokensBeyond(usage: UsageQuantities, held: bigint, rates: RateCard): number {
  const cost = costOf(usage, rates);
  const outputCost = cost - costOf({ ...usage, ...NO_OUTPUT }, rates);
  if (cost <= held || outputCost === 0n) return 0;
  return Number((BigInt(outputTokens(usage)) * (cost - held) + outputCost - 1n) / outputCost);
}

const NO_OUTPUT = { outputTextTokens: 0, outputReasoningTokens: 0, outputAudioTokens: 0, outputImageTokens: 0 };
