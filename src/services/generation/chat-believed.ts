/** How far the usage of a chat is believed that an account's upstream reports: as far as the hold goes, which what was delivered extends. */
import type { UsageQuantities } from "../../lib/usage.js";
import type { LedgerRecord } from "../../store/ledger.js";
import type { Model } from "../catalog/model.js";
import type { OpenCharge } from "../credits/credits.js";
import { costOf } from "../pricing.js";
import type { ChatMeter, MeteredUsage } from "./chat-meter.js";
import type { ChatPlan } from "./chat-plan.js";
import { withinHold } from "./within-hold.js";

/** What may be charged: cut to the hold when it is an account's upstream that answered. */
export function believed({ model: { rates } }: ChatPlan, charge: OpenCharge, model: Model, metered: MeteredUsage): MeteredUsage {
  if (!model.isCommunity) return metered;
  const { quantities, source } = withinHold({ quantities: metered.usage, source: metered.source }, rates, charge.heldAmount);
  return { usage: quantities, source };
}

/** For an answer that came whole: a stream of the same length would have asked for more as it came. Nothing beyond what the caller stated. */
export async function extendToDelivered(plan: ChatPlan, charge: OpenCharge, meter: ChatMeter, record: () => LedgerRecord): Promise<void> {
  const cost = costOf(meter.delivered(), plan.model.rates);
  if (!plan.isCapped && cost > charge.heldAmount) await charge.meter(cost, false, record);
}

/** What is learned of a model's answers: of an account's upstream what it has written, whatever it says. */
export function outputTokensOf(model: Model, meter: ChatMeter, reported: UsageQuantities): number {
  const { outputTextTokens, outputReasoningTokens } = model.isCommunity ? meter.soFar() : reported;
  return outputTextTokens + outputReasoningTokens;
}
