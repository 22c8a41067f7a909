/**
 * One streamed chat completion, from the hold to the settlement.
 *
 * 1. `begin`: plan, hold, call the upstreams in turn until one sends its first batch. Until then a failure is an ordinary error.
 * 2. Each batch passes on as it comes; the meter reads it on the side and the hold is extended when it runs low.
 * 3. The chunk that finishes the answer is withheld, and goes out with the usage once the charge is committed.
 * 4. Whatever ends it early (the caller leaves, the upstream fails, the hold is used up and no more is granted), what was
 *    delivered is charged, and the upstream's connection closed.
 * 5. A model that thinks or speaks in hidden has done more than what was delivered. When its caller leaves, the rest is read without
 *    them, to the report of its usage, within the hold and a bounded time.
 */

import type { RequestContext } from "../../../context.js";
import { type AppError, upstreamFailed } from "../../../errors.js";
import { EXTEND_AT_PERCENT, STREAM_REST_MS } from "../../../limits.js";
import type { ChatChunkBatch } from "../../../providers/provider.js";
import type { Model } from "../../catalog/model.js";
import { costOf } from "../../catalog/pricing.js";
import type { OpenCharge } from "../../credits/credits.js";
import { type Answered, noteFailure } from "../attempts.js";
import { CallerGone, Cancellation } from "../cancellation.js";
import { capToHold } from "../cap-to-hold.js";
import { takeGenerationId } from "../generation-id.js";
import type { CancelPolicy, Receipt, UsageStatus } from "../receipt.js";
import { toCallerError } from "../upstream-errors.js";
import { allInCallersWords } from "../upstream-words.js";
import { joinWarnings } from "../warnings.js";
import { admitChat } from "./chat-admission.js";
import { type BegunStream, openChatStream } from "./chat-attempts.js";
import { type ChatDependencies, chatProviderFor, openCharge } from "./chat-charge.js";
import { isHidden, nextCheck } from "./chat-hold.js";
import type { ChatCompletionInput } from "./chat-input.js";
import { ChatMeter, type MeteredUsage } from "./chat-meter.js";
import { type ChatPlan, planChat, toLedgerRecord } from "./chat-plan.js";
import { toChatReceipt } from "./chat-receipt.js";
import { type ChatStreamBatch, ChatTail } from "./chat-tail.js";
import { capUsage, isFarBeyond, outputTokens, outputTokensOf, tokensBeyond } from "./usage-cap.js";

export interface ChatCompletionStream {
  /** The generation's own id, known before anything has been asked of an upstream. */
  readonly generationId: string;
  /** An upstream has begun to answer; rejects with the AppError when none did, which `events` then throws too. */
  readonly opened: Promise<Pick<Receipt, "model" | "modelUsed" | "cancelPolicy"> & Partial<Pick<Receipt, "safety" | "warnings">>>;
  /** What the request itself is warned of: known before an upstream is asked, and among the warnings of `opened` and the receipt. */
  readonly notes?: readonly string[];
  /** Limits and safety features are still looked at; absent or null when there are none. `opened` tells what came of it. */
  readonly admitted?: Promise<unknown> | null;
  /**
   * The chunks. The last one carries `usage` with `cost` and comes only after the charge is committed. `[DONE]` is not among
   * them. Throws an AppError when the answer fails on the way; `return()` closes the upstream and charges what was delivered.
   */
  readonly events: AsyncIterableIterator<ChatStreamBatch>;
  /** Once it has ended and something was charged. */
  receipt(): Receipt | null;
  /** Where the time has gone until now, in milliseconds. */
  timing(): Pick<Receipt, "gatewayMs" | "upstreamMs">;
  /** It comes out of the content cache. */
  readonly isHit?: boolean;
}

interface Begun extends Answered<BegunStream> {
  readonly plan: ChatPlan;
  readonly charge: OpenCharge;
  readonly meter: ChatMeter;
  readonly tail: ChatTail;
}

const DONE = { done: true, value: undefined } as const;

export class ChatStreamRun implements ChatCompletionStream {
  readonly generationId: string;
  readonly opened: ChatCompletionStream["opened"];
  readonly events: AsyncIterableIterator<ChatStreamBatch>;
  admitted: Promise<ChatPlan> | null = null;
  private readonly cancellation: Cancellation;
  private readonly begun: Promise<Begun>;
  private tail: ChatTail | null = null;
  private readonly startedAt = performance.now();
  private isFirstRead = false;
  private isEnded = false;
  private pending: Promise<unknown> = Promise.resolve();
  /** Thrown by the next pull: what must reach the caller before it has been given out. */
  private failure: AppError | null = null;
  private warnings: readonly string[] = [];
  private finalReceipt: Receipt | null = null;
  private calledAt = 0;
  private upstreamMs = 0;
  private firstTokenMs: number | null = null;
  /** Output tokens at which the hold is looked at next. */
  private checkAtTokens = 0;
  /** What the upstream was bound to because the hold affords no more. */
  private outputTokensMax: number | null = null;
  /** Its upstream is read on when the caller has left. */
  private isReadToItsEnd = false;

  constructor(
    private readonly ctx: RequestContext,
    input: ChatCompletionInput,
    readonly notes: readonly string[],
    private readonly deps: ChatDependencies,
  ) {
    this.generationId = takeGenerationId(ctx);
    this.cancellation = new Cancellation(ctx.signal, deps.totalMs);
    deps.running.begin(this.cancellation, true);
    this.begun = this.begin(ctx, input);
    this.opened = this.begun.then(({ plan, model, answer }) => ({
      model: plan.model.id,
      modelUsed: model.id,
      safety: plan.safety,
      cancelPolicy: this.cancelPolicy,
      warnings: joinWarnings(notes, allInCallersWords(warningsOf(answer.first), model)),
    }));
    this.opened.catch(() => undefined);
    this.events = {
      next: () => this.track(this.pull()),
      return: () => this.leave(),
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  receipt(): Receipt | null {
    return this.finalReceipt;
  }

  timing(): Pick<Receipt, "gatewayMs" | "upstreamMs"> {
    const now = performance.now();
    const upstreamMs = this.calledAt === 0 ? 0 : now - this.calledAt;
    return { gatewayMs: now - this.startedAt - upstreamMs, upstreamMs };
  }

  private get cancelPolicy(): CancelPolicy {
    return this.isReadToItsEnd ? "read-to-usage" : "stop";
  }

  private async begin(ctx: RequestContext, input: ChatCompletionInput): Promise<Begun> {
    let charge: OpenCharge | null = null;
    try {
      const planned = planChat(ctx, this.generationId, input, this.deps.catalog, this.deps.estimates, true, this.notes);
      this.admitted = admitChat(ctx, planned, input, this.deps.admission);
      const plan = this.admitted ? await this.admitted : planned;
      const meter = new ChatMeter(plan.promptTokens, plan.body);
      const tail = new ChatTail(plan.model.id, input.stream_options?.include_usage === true);
      this.tail = tail;
      charge = openCharge(this.deps.credits, plan);
      if (!charge.isComfortable) await charge.held;
      this.cancellation.followHold(charge);
      this.calledAt = performance.now();
      this.checkAtTokens = Math.floor((plan.hold.outputTokens * Number(EXTEND_AT_PERCENT)) / 100);
      this.outputTokensMax = plan.hold.capFor(charge.heldAmount);
      this.isReadToItsEnd = !plan.isFree && plan.candidates.some(isHidden);
      if (this.isReadToItsEnd) this.cancellation.outlast(STREAM_REST_MS);
      const begun = await this.callUpstream(plan, charge, meter);
      await charge.held;
      return { ...begun, plan, charge, meter, tail };
    } catch (error) {
      if (charge && !charge.isConcluded) await charge.release();
      this.dispose();
      throw error instanceof CallerGone ? upstreamFailed("The caller left before the answer came.", { cause: error }) : error;
    }
  }

  /** A caller who leaves while an upstream works on its first token has had it read the prompt, and pays for that. */
  private async callUpstream(plan: ChatPlan, charge: OpenCharge, meter: ChatMeter): Promise<Answered<BegunStream>> {
    let accepted: Model | null = null;
    try {
      return await openChatStream(
        {
          plan,
          providerOf: chatProviderFor(this.deps, this.ctx, plan.generationId),
          waiting: this.cancellation,
          outputTokensMax: this.outputTokensMax,
          onFailure: (model, error) => this.noteFailure(plan, model, error),
          onLimit: (limit) => this.deps.estimates.learnLimit(plan.caller.accountId, plan.model.id, limit),
        },
        (model) => {
          accepted = model;
        },
      );
    } catch (error) {
      if (accepted && this.cancellation.isCallerGone)
        await this.conclude(plan, charge, accepted, this.unfinished(plan, charge, meter), "cancelled");
      throw error;
    }
  }

  private track<Result>(work: Promise<Result>): Promise<Result> {
    this.pending = work.catch(() => undefined);
    return work;
  }

  private async pull(): Promise<IteratorResult<ChatStreamBatch>> {
    if (this.failure) {
      const { failure } = this;
      this.failure = null;
      throw failure;
    }
    if (this.isEnded) return DONE;
    const begun = await this.begun.catch((error: unknown) => {
      this.isEnded = true;
      throw error;
    });
    try {
      return await this.pullFrom(begun);
    } catch (error) {
      this.isEnded = true;
      await this.endEarly(begun);
      throw toCallerError(error, begun.model);
    } finally {
      if (this.isEnded) this.dispose();
    }
  }

  private async pullFrom(begun: Begun): Promise<IteratorResult<ChatStreamBatch>> {
    for (;;) {
      const { done, value: batch } = await this.readUpstream(begun);
      if (done) return { done: false, value: await this.finish(begun) };
      for (const chunk of batch) {
        begun.meter.read(chunk);
        if (chunk.warnings) this.warnings = allInCallersWords(chunk.warnings, begun.model);
      }
      if (this.firstTokenMs === null && begun.meter.hasOutput) this.firstTokenMs = performance.now() - begun.plan.startedAt;
      const passed = begun.tail.pass(batch);
      if (this.isCheckDue(begun)) {
        const refusal = await this.checkHold(begun);
        if (refusal || this.isBeyondStatedCap(begun)) return { done: false, value: await this.stopShort(begun, passed, refusal) };
      }
      if (passed) return { done: false, value: passed };
    }
  }

  private async readUpstream({ plan, model, answer: { first, rest } }: Begun): Promise<IteratorResult<ChatChunkBatch>> {
    const next = () =>
      rest.next().catch((error: unknown) => {
        this.noteFailure(plan, model, error);
        throw error;
      });
    const result = this.isFirstRead ? await next() : first;
    this.isFirstRead = true;
    this.upstreamMs = performance.now() - this.calledAt;
    return result;
  }

  /** The caller leaves: at once, also while an upstream is being waited for, and without waiting for a rest that is read all the same. */
  private async leave(): Promise<IteratorResult<ChatStreamBatch>> {
    this.cancellation.leave();
    const ended = this.endWithoutCaller();
    if (!this.isReadToItsEnd) await ended;
    return DONE;
  }

  private async endWithoutCaller(): Promise<void> {
    await this.pending;
    if (this.isEnded) return;
    this.isEnded = true;
    await this.begun.then((begun) => this.endEarly(begun)).catch(() => undefined);
    this.dispose();
  }

  private dispose(): void {
    this.cancellation.dispose();
    this.deps.running.end(this.cancellation);
  }

  private async finish(begun: Begun): Promise<ChatStreamBatch> {
    const { plan, charge, model, meter, tail } = begun;
    this.isEnded = true;
    this.deps.healthReporter.succeeded(plan.caller, model);
    const { isCallerGone } = this.cancellation;
    const metered = isCallerGone ? this.unfinished(plan, charge, meter) : meter.complete();
    this.deps.estimates.learn(plan.caller.accountId, plan.model.id, outputTokensOf(model, meter, metered.usage));
    return tail.close(await this.conclude(plan, charge, model, metered, isCallerGone ? "cancelled" : "ok"));
  }

  /** Its hold is used up and no more was granted: what it pays for of what has come is the answer, cut at its length, and the reason follows. */
  private async stopShort(begun: Begun, passed: ChatStreamBatch | null, refusal: AppError | null): Promise<ChatStreamBatch> {
    const { plan, charge, model, meter, tail } = begun;
    this.isEnded = true;
    this.failure = refusal;
    await begun.answer.rest.return?.();
    const unpaidTokens = tokensBeyond(meter.soFar(), charge.heldAmount, plan.model.rates);
    const { quantities: usage, source } = capToHold(toQuantities(meter.partial()), plan.model.rates, charge.heldAmount);
    return tail.cutAtLength(passed, unpaidTokens, await this.conclude(plan, charge, model, { usage, source }, "cancelled"));
  }

  /** The upstream failed or the caller left. Nothing is charged for a failure that delivered nothing. */
  private async endEarly(begun: Begun): Promise<void> {
    const { plan, charge, model, meter, answer } = begun;
    if (this.isReadToItsEnd && this.cancellation.isCallerGone) await this.readRest(begun);
    // Not awaited: an upstream that hangs must not delay the settlement.
    Promise.resolve(answer.rest.return?.()).catch(() => undefined);
    if (charge.isConcluded) return;
    const { isCallerGone } = this.cancellation;
    const metered = isCallerGone ? this.unfinished(plan, charge, meter) : meter.partial();
    if (meter.hasOutput || isCallerGone) await this.conclude(plan, charge, model, metered, "cancelled");
    else await charge.release();
  }

  /** To the report of its usage, or as far as the hold and the time go. */
  private async readRest(begun: Begun): Promise<void> {
    const { plan, charge, meter } = begun;
    try {
      while (costOf(meter.soFar(), plan.model.rates) < charge.heldAmount) {
        const { done, value: batch } = await this.readUpstream(begun);
        if (done) return;
        for (const chunk of batch) meter.read(chunk);
      }
    } catch {
      // What has come until then is what there is.
    }
  }

  /** Of a caller who has left. Where a model thinks in hidden and has not reported, it is taken to have written what it usually does. */
  private unfinished(plan: ChatPlan, charge: OpenCharge, meter: ChatMeter): MeteredUsage {
    const metered = meter.partial();
    if (!this.isReadToItsEnd || metered.source === "provider") return metered;
    const usual = plan.length.mean * plan.choices;
    const unseen = Math.max(0, usual - outputTokens(metered.usage));
    const usage = { ...metered.usage, outputReasoningTokens: metered.usage.outputReasoningTokens + unseen };
    const { quantities } = capToHold(toQuantities({ ...metered, usage }), plan.model.rates, charge.heldAmount);
    return { usage: quantities, source: "partial" };
  }

  /** An account's upstream goes on beyond what the caller stated, and nobody pays it for that. */
  private isBeyondStatedCap({ plan, charge, model, meter }: Begun): boolean {
    return model.isCommunity && plan.isCapped && isFarBeyond(costOf(meter.soFar(), plan.model.rates), charge.heldAmount);
  }

  private noteFailure({ caller }: ChatPlan, model: Model, error: unknown): void {
    noteFailure(this.deps.healthReporter, caller, model, error, this.cancellation.signal);
  }

  private isCheckDue({ plan, charge, meter }: Begun): boolean {
    return !plan.isFree && (meter.outputTokensMax >= this.checkAtTokens || charge.isNoteDue);
  }

  /** Notes the meter, asks for more when the hold runs low. Resolves with why the stream must stop, or null. */
  private async checkHold({ plan, charge, model, meter }: Begun): Promise<AppError | null> {
    const soFar = meter.soFar();
    const cost = costOf(soFar, plan.model.rates);
    const tokens = outputTokens(soFar);
    // Reasoning may cost more than the text that was reckoned with. Nobody pays an account's upstream for more than they stated.
    const isBeyondCap = tokens > plan.hold.outputTokens;
    const isWithin = cost <= charge.heldAmount;
    const isStated = plan.isCapped && (isBeyondCap ? model.isCommunity : isWithin);
    const isCapped = isStated || (this.outputTokensMax !== null && isWithin);
    const refusal = await charge.meter(cost, isCapped, () =>
      toLedgerRecord(plan, {
        modelUsed: model.id,
        usage: soFar,
        usageSource: "partial",
        status: "cancelled",
        firstTokenMs: this.firstTokenMs,
      }),
    );
    this.checkAtTokens = nextCheck(tokens, cost, charge.heldAmount);
    return refusal;
  }

  private async conclude(plan: ChatPlan, charge: OpenCharge, model: Model, metered: MeteredUsage, status: UsageStatus): Promise<Receipt> {
    const { usage, source } = capUsage(plan, charge, model, metered);
    const record = toLedgerRecord(plan, { modelUsed: model.id, usage, usageSource: source, status, firstTokenMs: this.firstTokenMs });
    const heldNanocredits = charge.heldAmount;
    const settlement = await charge.settle(costOf(usage, plan.model.rates), record);
    this.finalReceipt = toChatReceipt(plan, {
      modelUsed: model.id,
      metered: { usage, source },
      settlement,
      status,
      childCostNanocredits: this.deps.admission.childCosts.of(plan.model, plan.generationId),
      heldNanocredits,
      upstreamMs: this.upstreamMs,
      responseMs: record.responseTimeMs,
      firstTokenMs: this.firstTokenMs,
      warnings: this.warnings,
      cutAt: this.tail?.endsAtLength ? this.outputTokensMax : null,
      cancelPolicy: this.cancelPolicy,
    });
    this.deps.admission.concluded(this.ctx, plan, this.finalReceipt);
    return this.finalReceipt;
  }
}

/** A stream begins with what its upstream left out. */
function warningsOf({ done, value }: BegunStream["first"]): readonly string[] {
  return done ? [] : (value.find(({ warnings }) => warnings)?.warnings ?? []);
}

function toQuantities({ usage, source }: MeteredUsage) {
  return { quantities: usage, source };
}
