/** Chat completions (Spec 4.1): one answer, or a stream. Both faces enter here (architecture, "A generation, end to end"). */

import type { RequestContext } from "../../context.js";
import { upstreamFailed } from "../../errors.js";
import type { ChatCompletion } from "../../lib/chat-format.js";
import type { ChatAnswer } from "../../providers/provider.js";
import type { Model } from "../catalog/model.js";
import type { OpenCharge } from "../credits/credits.js";
import { costOf } from "../pricing.js";
import { noteFailure } from "./attempts.js";
import { CallerGone, Cancellation } from "./cancellation.js";
import { admitChat } from "./chat-admission.js";
import { completeChat } from "./chat-attempts.js";
import { believed, extendToDelivered, outputTokensOf } from "./chat-believed.js";
import { type ChatDependencies, openCharge, providersOf } from "./chat-charge.js";
import type { ChatCompletionInput } from "./chat-input.js";
import { ChatMeter, type MeteredUsage } from "./chat-meter.js";
import { type ChatPlan, planChat, toLedgerRecord } from "./chat-plan.js";
import { type ChatCompletionStream, ChatStreamRun } from "./chat-stream.js";
import { toReportedUsage } from "./chat-usage.js";
import { takeGenerationId } from "./generation-id.js";
import type { Receipt } from "./receipt.js";

export interface ChatCompletionResult {
  /** The JSON document to answer. */
  readonly bytes: Uint8Array;
  readonly completion: ChatCompletion;
  readonly receipt: Receipt;
}

export class ChatCompletions {
  constructor(private readonly deps: ChatDependencies) {}

  /** Resolves when the charge is committed. */
  async create(ctx: RequestContext, input: ChatCompletionInput): Promise<ChatCompletionResult> {
    const planned = planChat(ctx, takeGenerationId(ctx), input, this.deps.catalog, this.deps.estimates);
    // No asynchronous step where nothing limits and nothing is checked: callers with secret keys are on the fast path.
    const admitted = admitChat(ctx, planned, input, this.deps.admission);
    const plan = admitted ? await admitted : planned;
    const charge = openCharge(this.deps.credits, plan);
    if (!charge.isComfortable) await charge.held;
    const cancellation = new Cancellation(ctx.signal, this.deps.totalMs);
    cancellation.followHold(charge);
    const calledAt = performance.now();
    try {
      const { signal } = cancellation;
      const { outcomes } = this.deps;
      const { model, answer } = await completeChat(plan, providersOf(this.deps, ctx, plan.generationId), signal, (candidate, error) =>
        noteFailure(outcomes, plan.caller, candidate, error, signal),
      );
      outcomes.succeeded(plan.caller, model);
      const upstreamMs = performance.now() - calledAt;
      await charge.held;
      return await this.conclude(ctx, plan, charge, model, answer, upstreamMs);
    } catch (error) {
      // Nothing was delivered, so nothing is charged. A settlement that failed has concluded the charge itself.
      if (!charge.isConcluded) await charge.release();
      throw error instanceof CallerGone ? upstreamFailed("The caller left before the answer came.", { cause: error }) : error;
    } finally {
      cancellation.dispose();
    }
  }

  /** See ChatCompletionStream. Nothing is thrown here: a refusal is the rejection of `opened`. */
  stream(ctx: RequestContext, input: ChatCompletionInput): ChatCompletionStream {
    return new ChatStreamRun(ctx, input, this.deps);
  }

  private async conclude(
    ctx: RequestContext,
    plan: ChatPlan,
    charge: OpenCharge,
    model: Model,
    answer: ChatAnswer,
    upstreamMs: number,
  ): Promise<ChatCompletionResult> {
    const meter = new ChatMeter(plan.promptTokens);
    meter.readCompletion(answer.completion, answer.usage, model.isCommunity);
    const { usage, source } = meter.complete();
    this.deps.estimates.learn(plan.model.id, outputTokensOf(model, meter, usage));
    const recordOf = (metered: MeteredUsage) =>
      toLedgerRecord(plan, { modelUsed: model.id, usage: metered.usage, usageSource: metered.source, status: "ok", firstTokenMs: null });
    if (model.isCommunity) await extendToDelivered(plan, charge, meter, () => recordOf({ usage, source }));
    const metered = believed(plan, charge, model, { usage, source });
    const cost = costOf(metered.usage, plan.model.rates);
    const record = recordOf(metered);
    const settlement = await charge.settle(cost, record);
    this.deps.admission.charged(ctx, plan.caller, settlement.chargedNanocredits);
    const receipt: Receipt = {
      generationId: plan.generationId,
      model: plan.model.id,
      modelUsed: model.id,
      usage: metered.usage,
      usageSource: metered.source,
      status: "ok",
      costNanocredits: settlement.chargedNanocredits,
      childCostNanocredits: this.deps.admission.childCosts.of(plan.model, plan.generationId),
      heldNanocredits: charge.heldAmount,
      meterSource: settlement.meterSource,
      upstreamMs,
      gatewayMs: performance.now() - plan.startedAt - upstreamMs,
      responseMs: record.responseTimeMs,
      firstTokenMs: null,
      warnings: answer.warnings ?? [],
      safety: plan.safety,
    };
    return { ...withUsage(answer, metered), receipt };
  }
}

/** Clients read `usage`: where none was reported that was believed, it is what was charged for. Otherwise the bytes pass as they came. */
function withUsage(answer: ChatAnswer, metered: MeteredUsage): { bytes: Uint8Array; completion: ChatCompletion } {
  if (metered.source === "provider") return { bytes: answer.bytes, completion: answer.completion };
  const completion = { ...answer.completion, usage: toReportedUsage(metered.usage) };
  return { bytes: Buffer.from(JSON.stringify(completion)), completion };
}
