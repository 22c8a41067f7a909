/**
 * A streamed chat completion (see `GenerationStream`).
 *
 * 1. Each batch is passed on as it comes; the meter reads it, and the hold is extended when it runs low.
 * 2. The finishing chunk is withheld, and sent with the usage once the charge is committed.
 * 3. A model with hidden reasoning or audio has done more than was delivered. After a disconnect, the rest is read to its usage report,
 *    within the hold and a bounded time.
 */
import type { AppError } from "../../../errors.js";
import { type Pulled, type PulledIterator, pullFrom } from "../../../fast/pull.js";
import type { ChatChunkBatch } from "../../../formats/openai-chat/stream.js";
import { NO_USAGE } from "../../../lib/usage.js";
import { EXTEND_AT_PERCENT, STREAM_REST_MS } from "../../../limits.js";
import type { CallEnd, ChatProvider } from "../../../providers/provider.js";
import { costOf, type RateCard } from "../../catalog/pricing.js";
import type { Answered, Hedge } from "../attempt.js";
import { allInCallersWords } from "../failures.js";
import { chargedRates } from "../planned-charge.js";
import { outputTokensOf } from "../plausible.js";
import { type CancelPolicy, type CutReason, joinWarnings, type Receipt, type UsageStatus } from "../receipt.js";
import type { Candidate } from "../routing/candidate.js";
import type { GenerationRun, Outcome } from "../run.js";
import type { Delivery, StreamReader } from "../stream.js";
import { type BegunStream, cutWarning, streamOf, withinCap } from "./answer.js";
import { AttemptEnd } from "./first-token.js";
import { ChatMeter, isFarBeyond, learnFrom, type MeteredUsage, tokensBeyond } from "./meter.js";
import { nextCheck } from "./plan.js";
import type { ChatPlan } from "./planned.js";
import { type Plausible, plausibleFor } from "./plausible.js";
import { type ChatStreamBatch, ChatTail } from "./stream-tail.js";

export interface ChatCompletionStream {
  readonly generationId: string;
  /** Resolves when an upstream has begun to answer; rejects with the AppError otherwise, which `events` then throws too. */
  readonly opened: Promise<OpenedChat>;
  /** Warnings about the request itself: known before a call, and included in the warnings of `opened` and the receipt. */
  readonly notes?: readonly string[];
  /** Settles after limits, safety features and balance were checked; absent without checks. `opened` has the result. */
  readonly admitted?: Promise<void>;
  /**
   * The chunks. The last one has `usage` with `cost` and follows the committed charge. `[DONE]` is not included. Throws an AppError when
   * the answer fails; `return()` closes the upstream and charges the delivered part. Lazy: the upstream is called on the first pull.
   */
  readonly events: AsyncIterableIterator<ChatStreamBatch> & PulledIterator<ChatStreamBatch>;
  /** After its end, if something was charged. */
  receipt(): Receipt | null;
  /** Resolves when it is charged after its reader left. */
  settled?(): Promise<void>;
  /** Times so far, in milliseconds. */
  timing(): Pick<Receipt, "gatewayMs" | "upstreamMs">;
  /** From the content cache. */
  readonly isHit?: boolean;
}

type OpenedChat = Pick<Receipt, "model" | "modelUsed" | "cancelPolicy"> &
  Partial<Pick<Receipt, "safety" | "warnings" | "upstream" | "vendorKeyId">>;

interface StreamedChat {
  readonly run: GenerationRun;
  readonly plan: ChatPlan;
  readonly includesUsage: boolean;
  readonly providerOf: (candidate: Candidate) => ChatProvider;
}

/** Calls the candidates until one sends its first batch. The run holds the expected cost. */
export async function openChat(chat: StreamedChat): Promise<ChatReader> {
  const { run, plan } = chat;
  const outputTokensMax = plan.hold.capFor(run.heldNanocredits, run.chargeMost);
  const isReadToItsEnd = !plan.isFree && plan.isHidden;
  if (isReadToItsEnd) run.cancellation.outlast(STREAM_REST_MS);
  const reader = new ChatReader(chat, outputTokensMax, isReadToItsEnd);
  await reader.begin();
  return reader;
}

class ChatReader implements StreamReader<OpenedChat, ChatStreamBatch> {
  private readonly meter: ChatMeter;
  private readonly tail: ChatTail;
  private answered: Answered<Pick<BegunStream, "rest" | "cap">> | null = null;
  private first: Pulled<ChatChunkBatch> | null = null;
  private warnings: readonly string[] = [];
  private checkAtTokens: number;
  /** It was stopped at `max_cost`. */
  private isStopped = false;
  /** The limit of the request that decides its length. */
  private cut: CutReason | undefined;

  constructor(
    private readonly chat: StreamedChat,
    /** The token limit for the upstream that the hold affords. */
    private readonly outputTokensMax: number | null,
    /** Its upstream is read to the end after a disconnect. */
    private readonly isReadToItsEnd: boolean,
  ) {
    const { plan, includesUsage, run } = chat;
    if (outputTokensMax !== null && (plan.hold.isExtended || run.isAtMaxCost)) this.cut = "max_cost";
    this.meter = new ChatMeter(plan.promptTokens, plan.body);
    this.tail = new ChatTail(plan.model.id, includesUsage);
    this.checkAtTokens = Math.floor((plan.hold.outputTokens * Number(EXTEND_AT_PERCENT)) / 100);
  }

  get opened(): OpenedChat {
    const { plan } = this.chat;
    const { model, route } = this.begun;
    return {
      model: plan.model.id,
      modelUsed: model.id,
      upstream: route.upstreamName,
      vendorKeyId: route.vendorKey?.key.id ?? null,
      safety: plan.safety,
      cancelPolicy: this.cancelPolicy,
      warnings: joinWarnings(plan.notes, allInCallersWords(warningsOf(this.first), this.begun)),
    };
  }

  get served(): Candidate {
    return this.begun;
  }

  /** A client that disconnects before the first token pays for the prompt, which the upstream has read. */
  async begin(): Promise<void> {
    const { run, plan, providerOf } = this.chat;
    let accepted: Candidate | null = null;
    const { hedgeAfterMs } = plan.model;
    const acceptedRoutes = hedgeAfterMs === null ? null : new Set<Candidate>();
    const hedge = hedgeAfterMs === null || acceptedRoutes === null ? null : this.hedgeAfter(hedgeAfterMs, acceptedRoutes);
    const { body, outputTokensMax } = withinCap(plan, this.outputTokensMax);
    const { cancellation } = run;
    const asked = { body, outputTokensMax, cancellation, output: plan.output };
    try {
      const call = (candidate: Candidate, ending: CallEnd) => {
        const onAccepted = () => {
          accepted = candidate;
          acceptedRoutes?.add(candidate);
        };
        const open = (end: CallEnd) => streamOf(providerOf(candidate), { ...asked, cancellation: end }, candidate.route, onAccepted);
        const isHedged = ending !== cancellation;
        const isLast = candidate.model.routes.length === 1 || run.attempts.othersLeft === 0;
        if (isLast && !isHedged) return streamOf(providerOf(candidate), asked, candidate.route, onAccepted);
        return new AttemptEnd(ending, isLast ? null : candidate.route.firstTokenMs).begun(open);
      };
      const { model, route, answer } = await run.attempt(call, hedge);
      this.answered = { model, route, answer: { rest: answer.rest, cap: answer.cap } };
      this.first = answer.first;
    } catch (error) {
      if (accepted && run.cancellation.isCallerGone) await this.settle(accepted, this.unfinished(null), "cancelled");
      throw error;
    }
  }

  /** A call that lost, and that its upstream had accepted, has read the prompt at least. */
  private hedgeAfter(afterMs: number, accepted: ReadonlySet<Candidate>): Hedge<BegunStream> {
    const { run, plan } = this.chat;
    const prompt = { ...NO_USAGE, inputTextTokens: plan.promptTokens };
    return {
      afterMs,
      costOf: (candidate) => (accepted.has(candidate) ? run.callCostOf(candidate, prompt) : 0n),
      discard: ({ rest }) => void Promise.resolve(rest.return?.()).catch(() => undefined),
    };
  }

  read(): Delivery<ChatStreamBatch> | Promise<Delivery<ChatStreamBatch>> {
    const pulled = this.readUpstream();
    return pulled instanceof Promise ? pulled.then(this.take) : this.take(pulled);
  }

  private readonly take = ({
    done,
    value: batch,
  }: Pulled<ChatChunkBatch>): Delivery<ChatStreamBatch> | Promise<Delivery<ChatStreamBatch>> => {
    if (done) return this.finish();
    for (const chunk of batch) {
      this.meter.read(chunk);
      if (chunk.warnings) this.warnings = allInCallersWords(chunk.warnings, this.begun);
    }
    if (this.meter.hasOutput) this.chat.run.noteFirstByte();
    const item = this.tail.pass(batch);
    return this.isCheckDue ? this.passChecked(item) : { item, isLast: false };
  };

  private async passChecked(item: ChatStreamBatch | null): Promise<Delivery<ChatStreamBatch>> {
    const refusal = await this.checkHold();
    if (!refusal && !this.isBeyondStatedCap) return { item, isLast: false };
    // The length that the request allows is no failure.
    const isAtMaxCost = refusal?.code === "MAX_COST_EXCEEDED";
    return { item: await this.stopShort(item, isAtMaxCost), isLast: true, refusal: isAtMaxCost ? null : refusal };
  }

  /** The upstream failed or the client disconnected. A failure without delivery costs nothing. */
  async endEarly(): Promise<void> {
    const { run } = this.chat;
    const { begun } = this;
    const { answer } = begun;
    const { isCallerGone } = run.cancellation;
    if (this.isReadToItsEnd && isCallerGone) await this.readRest();
    // Not awaited: a hanging upstream must not delay the settlement.
    Promise.resolve(answer.rest.return?.()).catch(() => undefined);
    if (run.isConcluded) return;
    if (this.meter.hasOutput || isCallerGone) {
      await this.settle(begun, isCallerGone ? this.unfinished(this.plausible) : toMetered(this.meter.partial(this.plausible)), "cancelled");
    } else await run.release();
  }

  private get plausible(): Plausible | null {
    const { plan } = this.chat;
    const { begun } = this;
    return plausibleFor(plan, begun, begun.answer.cap ?? this.outputTokensMax ?? plan.statedCap);
  }

  private get begun(): Answered<Pick<BegunStream, "rest" | "cap">> {
    if (!this.answered) throw new Error("No upstream has begun to answer.");
    return this.answered;
  }

  private get rates(): RateCard {
    return chargedRates(this.chat.plan, this.begun);
  }

  private get cancelPolicy(): CancelPolicy {
    return this.isReadToItsEnd ? "read-to-usage" : "stop";
  }

  private readUpstream(): Pulled<ChatChunkBatch> | Promise<Pulled<ChatChunkBatch>> {
    const { first } = this;
    if (first !== null) {
      this.first = null;
      return this.noteRead(first);
    }
    let pulled: Pulled<ChatChunkBatch> | Promise<Pulled<ChatChunkBatch>>;
    try {
      pulled = pullFrom(this.begun.answer.rest);
    } catch (error) {
      return this.noteFailed(error);
    }
    return pulled instanceof Promise ? pulled.then(this.noteRead, this.noteFailed) : this.noteRead(pulled);
  }

  private readonly noteRead = (pulled: Pulled<ChatChunkBatch>) => {
    this.chat.run.noteUpstream();
    return pulled;
  };

  private readonly noteFailed = (error: unknown): never => {
    this.chat.run.noteFailure(this.begun, error);
    throw error;
  };

  private async finish(): Promise<Delivery<ChatStreamBatch>> {
    const { run, plan } = this.chat;
    const { begun } = this;
    run.noteSuccess(begun);
    const { isCallerGone } = run.cancellation;
    const metered = isCallerGone ? this.unfinished(this.plausible) : toMetered(this.meter.complete(this.plausible));
    learnFrom(plan, begun.model, this.meter, metered.quantities, metered.source);
    return { item: this.tail.close(await this.settle(begun, metered, isCallerGone ? "cancelled" : "ok"), metered.report), isLast: true };
  }

  /** The hold is used up and no extension granted: the answer is cut to the paid part. */
  private async stopShort(passed: ChatStreamBatch | null, isAtMaxCost: boolean): Promise<ChatStreamBatch> {
    const { run } = this.chat;
    this.cut = isAtMaxCost ? "max_cost" : undefined;
    this.isStopped = isAtMaxCost;
    const { begun } = this;
    await begun.answer.rest.return?.();
    const unpaidTokens = tokensBeyond(this.meter.soFar(), run.heldNanocredits, this.rates);
    const metered = { ...toMetered(this.meter.partial(this.plausible)), isCappedToHold: true };
    return this.tail.cutAtLength(passed, unpaidTokens, await this.settle(begun, metered, "cancelled"), metered.report);
  }

  private async readRest(): Promise<void> {
    const { run } = this.chat;
    try {
      while (costOf(this.meter.soFar(), this.rates) < run.heldNanocredits) {
        const { done, value: batch } = await this.readUpstream();
        if (done) return;
        for (const chunk of batch) this.meter.read(chunk);
      }
    } catch {
      // Uses the output received until then.
    }
  }

  /** After a disconnect: a model with hidden reasoning and no report is assumed to have written its usual output. */
  private unfinished(plausible: Plausible | null): ChargedChat {
    const { plan } = this.chat;
    const metered = this.meter.partial(plausible);
    if (!this.isReadToItsEnd || metered.source !== "partial") return toMetered(metered);
    const usual = plan.mean * plan.choices;
    const unseen = Math.max(0, usual - outputTokensOf(metered.usage));
    const quantities = { ...metered.usage, outputReasoningTokens: metered.usage.outputReasoningTokens + unseen };
    return { quantities, source: "partial", isCappedToHold: true };
  }

  private get isBeyondStatedCap(): boolean {
    const { plan, run } = this.chat;
    if (!this.begun.model.isCommunity || !plan.isCapped) return false;
    return isFarBeyond(costOf(this.meter.soFar(), this.rates), run.heldNanocredits);
  }

  private get isCheckDue(): boolean {
    const { plan, run } = this.chat;
    return !plan.isFree && (this.meter.outputTokensMax >= this.checkAtTokens || run.isNoteDue);
  }

  /** Stores the meter, and extends the hold when it runs low. Resolves with the error that stops the stream, or null. */
  private async checkHold(): Promise<AppError | null> {
    const { plan, run } = this.chat;
    const { model } = this.begun;
    const soFar = this.meter.soFar();
    const cost = costOf(soFar, this.rates);
    const tokens = outputTokensOf(soFar);
    // Reasoning may cost more than estimated. Community models are not paid beyond the request's limit.
    const isBeyondCap = tokens > plan.hold.outputTokens;
    const isWithin = cost <= run.heldNanocredits;
    const isStated = plan.isCapped && (isBeyondCap ? model.isCommunity : isWithin);
    const isCapped = isStated || (this.outputTokensMax !== null && !plan.hold.isExtended && isWithin);
    const refusal = await run.meter(this.begun, cost, isCapped, () => soFar);
    this.checkAtTokens = nextCheck(tokens, cost, run.heldNanocredits);
    return refusal;
  }

  private settle({ model, route }: Candidate, charged: ChargedChat, status: UsageStatus): Promise<Receipt> {
    const { warnings, cancelPolicy } = this;
    const { quantities, source, reported, isCappedToHold = false } = charged;
    const cutAt = this.isStopped ? outputTokensOf(quantities) : this.tail.endsAtLength ? this.outputTokensMax : null;
    const isCut = cutAt !== null;
    const allWarnings = isCut ? [...warnings, cutWarning(cutAt, this.cut)] : warnings;
    return this.chat.run.settle({
      model,
      route,
      quantities,
      source,
      reported,
      isCappedToHold,
      status,
      cancelPolicy,
      isCut,
      cut: isCut ? this.cut : undefined,
      warnings: allWarnings,
    });
  }
}

type ChargedChat = Pick<Outcome, "quantities" | "source" | "reported" | "counted" | "isCappedToHold"> & Pick<MeteredUsage, "report">;

function warningsOf(first: BegunStream["first"] | null): readonly string[] {
  return !first || first.done ? [] : (first.value.find(({ warnings }) => warnings)?.warnings ?? []);
}

function toMetered({ usage, source, reported, report, counted }: MeteredUsage): ChargedChat {
  return { quantities: usage, source, reported, report, counted };
}
