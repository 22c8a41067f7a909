/** The receipt of a chat that is settled, and what of it the last chunk of a stream tells. */
import type { Settlement } from "../../credits/credits.js";
import type { Receipt } from "../receipt.js";
import { joinWarnings } from "../warnings.js";
import { cutWarning } from "./chat-cut.js";
import type { MeteredUsage } from "./chat-meter.js";
import type { ChatPlan } from "./chat-plan.js";

type Course = Pick<
  Receipt,
  "modelUsed" | "status" | "heldNanocredits" | "childCostNanocredits" | "upstreamMs" | "responseMs" | "firstTokenMs" | "cancelPolicy"
>;

export interface SettledChat extends Course {
  readonly metered: MeteredUsage;
  readonly settlement: Settlement;
  readonly warnings: readonly string[];
  /** Output tokens at which the hold cut it; null: it did not. */
  readonly cutAt: number | null;
}

export function toChatReceipt(plan: ChatPlan, { metered, settlement, warnings, cutAt, ...course }: SettledChat): Receipt {
  return {
    generationId: plan.generationId,
    model: plan.model.id,
    usage: metered.usage,
    usageSource: metered.source,
    costNanocredits: settlement.chargedNanocredits,
    meterSource: settlement.meterSource,
    gatewayMs: Math.max(0, performance.now() - plan.startedAt - course.upstreamMs),
    warnings: joinWarnings(plan.notes, warnings, cutAt === null ? [] : [cutWarning(cutAt)]),
    isCut: cutAt !== null,
    safety: plan.safety,
    ...course,
  };
}

/**
 * `receipt` of a stream's last chunk: what the headers of a whole answer tell and those of a stream could not yet, because a fallback
 * may be found and time goes by after they have left. The names are those of usage rows.
 */
export function toStreamReceipt(receipt: Receipt): Readonly<Record<string, unknown>> {
  const { generationId, model, modelUsed, gatewayMs, upstreamMs, responseMs, firstTokenMs, warnings } = receipt;
  return {
    generation_id: generationId,
    model_used: modelUsed,
    fallback: modelUsed === model ? null : modelUsed,
    gateway_ms: toMicroseconds(gatewayMs),
    upstream_ms: toMicroseconds(upstreamMs),
    response_time_ms: Math.round(responseMs),
    time_to_first_token_ms: firstTokenMs === null ? null : Math.round(firstTokenMs),
    ...(warnings.length > 0 && { warnings }),
  };
}

/** As exact as `Server-Timing`. */
function toMicroseconds(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000;
}
