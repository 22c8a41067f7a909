/**
 * Chat completions (docs/spec/chat.md#chat-completions): one answer, or a stream. Both faces enter here
 * (docs/architecture.md#a-generation-end-to-end).
 */

import type { RequestContext } from "../../../context.js";
import { upstreamFailed } from "../../../errors.js";
import type { ChatCompletion } from "../../../lib/chat-format.js";
import type { ChatAnswer } from "../../../providers/provider.js";
import type { Model } from "../../catalog/model.js";
import { costOf } from "../../catalog/pricing.js";
import type { OpenCharge } from "../../credits/credits.js";
import { noteFailure } from "../attempts.js";
import { CallerGone, Cancellation } from "../cancellation.js";
import { takeGenerationId } from "../generation-id.js";
import { misspeltChatFields } from "../misspelt-fields.js";
import type { Receipt } from "../receipt.js";
import { allInCallersWords } from "../upstream-words.js";
import { admitChat } from "./chat-admission.js";
import { completeChat } from "./chat-attempts.js";
import { type ChatDependencies, chatProviderFor, openCharge } from "./chat-charge.js";
import { cutCompletion } from "./chat-cut.js";
import type { ChatCompletionInput } from "./chat-input.js";
import { ChatMeter, type MeteredUsage } from "./chat-meter.js";
import { type ChatPlan, planChat, toLedgerRecord } from "./chat-plan.js";
import { toChatReceipt } from "./chat-receipt.js";
import { type ChatCompletionStream, ChatStreamRun } from "./chat-stream.js";
import { toReportedUsage } from "./chat-usage.js";
import { capUsage, holdDelivered, outputTokensOf } from "./usage-cap.js";

export interface ChatCompletionResult {
  /** The JSON document to answer. */
  readonly bytes: Uint8Array;
  readonly completion: ChatCompletion;
  readonly receipt: Receipt;
}

export class ChatCompletions {
  constructor(private readonly deps: ChatDependencies) {}

  /**
   * Resolves when the charge is committed, whether or not its caller is still there. `notes` are what the caller of a request in another
   * format is warned of.
   */
  async create(ctx: RequestContext, input: ChatCompletionInput, notes = misspeltChatFields(input)): Promise<ChatCompletionResult> {
    const planned = planChat(ctx, takeGenerationId(ctx), input, this.deps.catalog, this.deps.estimates, false, notes);
    // No asynchronous step where nothing limits and nothing is checked: callers with secret keys are on the fast path.
    const admitted = admitChat(ctx, planned, input, this.deps.admission);
    const plan = admitted ? await admitted : planned;
    const charge = openCharge(this.deps.credits, plan);
    if (!charge.isComfortable) await charge.held;
    return this.finish(ctx, plan, charge);
  }

  /** From the hold to the settlement. */
  private async finish(ctx: RequestContext, plan: ChatPlan, charge: OpenCharge): Promise<ChatCompletionResult> {
    const { healthReporter, estimates, running } = this.deps;
    const cancellation = new Cancellation(ctx.signal, this.deps.totalMs);
    running.begin(cancellation);
    cancellation.followHold(charge);
    // What an upstream has begun is paid for, so it is finished whoever waits. Nobody pays for what is free.
    if (!plan.isFree) cancellation.outlast(Number.POSITIVE_INFINITY);
    const outputTokensMax = plan.hold.capFor(charge.heldAmount);
    const calledAt = performance.now();
    try {
      const { model, answer } = await completeChat({
        plan,
        providerOf: chatProviderFor(this.deps, ctx, plan.generationId),
        waiting: cancellation,
        outputTokensMax,
        onFailure: (candidate, error) => noteFailure(healthReporter, plan.caller, candidate, error, cancellation.signal),
        onLimit: (limit) => estimates.learnLimit(plan.caller.accountId, plan.model.id, limit),
      });
      healthReporter.succeeded(plan.caller, model);
      const upstreamMs = performance.now() - calledAt;
      await charge.held;
      const status = cancellation.isCallerGone ? "cancelled" : "ok";
      return await this.conclude(ctx, plan, charge, model, answer, { status, upstreamMs, outputTokensMax });
    } catch (error) {
      // Nothing was delivered, so nothing is charged. A settlement that failed has concluded the charge itself.
      if (!charge.isConcluded) await charge.release();
      throw error instanceof CallerGone ? upstreamFailed("The caller left before the answer came.", { cause: error }) : error;
    } finally {
      cancellation.dispose();
      running.end(cancellation);
    }
  }

  /** See ChatCompletionStream. Nothing is thrown here: a refusal is the rejection of `opened`. */
  stream(ctx: RequestContext, input: ChatCompletionInput, notes = misspeltChatFields(input)): ChatCompletionStream {
    return new ChatStreamRun(ctx, input, notes, this.deps);
  }

  private async conclude(
    ctx: RequestContext,
    plan: ChatPlan,
    charge: OpenCharge,
    model: Model,
    answer: ChatAnswer,
    { status, upstreamMs, outputTokensMax }: Pick<Receipt, "status" | "upstreamMs"> & { readonly outputTokensMax: number | null },
  ): Promise<ChatCompletionResult> {
    const meter = new ChatMeter(plan.promptTokens, plan.body);
    meter.readCompletion(answer.completion, answer.usage, model.isCommunity);
    const reported = meter.complete();
    this.deps.estimates.learn(plan.caller.accountId, plan.model.id, outputTokensOf(model, meter, reported.usage));
    const recordOf = (metered: MeteredUsage) =>
      toLedgerRecord(plan, { modelUsed: model.id, usage: metered.usage, usageSource: metered.source, status, firstTokenMs: null });
    const tokensPassed = await holdDelivered(plan, charge, model, answer, reported, () => recordOf(reported));
    const metered = capUsage(plan, charge, model, reported);
    const cost = costOf(metered.usage, plan.model.rates);
    const record = recordOf(metered);
    const settlement = await charge.settle(cost, record);
    const passed = tokensPassed === null ? answer : cutAnswer(answer, tokensPassed);
    const cutAt = tokensPassed ?? outputTokensMax;
    const receipt = toChatReceipt(plan, {
      modelUsed: model.id,
      metered,
      settlement,
      status,
      childCostNanocredits: this.deps.admission.childCosts.of(plan.model, plan.generationId),
      heldNanocredits: charge.heldAmount,
      upstreamMs,
      responseMs: record.responseTimeMs,
      firstTokenMs: null,
      warnings: allInCallersWords(answer.warnings ?? [], model),
      cutAt: endsAtLength(passed) ? cutAt : null,
      cancelPolicy: plan.isFree ? "stop" : "finish",
    });
    this.deps.admission.concluded(ctx, plan, receipt);
    return { ...withUsage(passed, metered), receipt };
  }
}

function cutAnswer(answer: ChatAnswer, tokens: number): ChatAnswer {
  const completion = cutCompletion(answer.completion, tokens);
  return { ...answer, completion, bytes: Buffer.from(JSON.stringify(completion)) };
}

function endsAtLength({ completion }: ChatAnswer): boolean {
  return completion.choices?.some((choice) => choice.finish_reason === "length") ?? false;
}

/** Clients read `usage`: where none was reported that was believed, it is what was charged for. Otherwise the bytes pass as they came. */
function withUsage(answer: ChatAnswer, metered: MeteredUsage): { bytes: Uint8Array; completion: ChatCompletion } {
  if (metered.source === "provider") return { bytes: answer.bytes, completion: answer.completion };
  const completion = { ...answer.completion, usage: toReportedUsage(metered.usage) };
  return { bytes: Buffer.from(JSON.stringify(completion)), completion };
}
