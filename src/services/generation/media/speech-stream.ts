/**
 * Speech that is passed on as it is generated (see `GenerationStream`).
 *
 * 1. The price depends on the text only, so the cost is known when the answer begins.
 * 2. All but the withheld bytes are passed on as they come; those are sent once the charge is committed.
 * 3. A client that disconnects after an upstream has accepted the text pays the whole price, because the upstream has read all of it.
 *    So does one that reads so slowly that the time runs out. An upstream that breaks off is not paid.
 */

import { ProviderError } from "../../../formats/upstream-error.js";
import type { GeneratedType } from "../../../lib/content-types.js";
import { NO_USAGE } from "../../../lib/usage.js";
import type { SpeechStream } from "../../../providers/media.js";
import { costOf } from "../../catalog/pricing.js";
import type { Answered } from "../attempt.js";
import { allInCallersWords } from "../failures.js";
import type { GenerationWork, PricedPlan } from "../generations.js";
import { chargedRates } from "../planned-charge.js";
import { joinWarnings, type Receipt, type UsageStatus } from "../receipt.js";
import type { Candidate } from "../routing/candidate.js";
import type { GenerationRun } from "../run.js";
import type { Delivery, ReaderPatience, StreamReader } from "../stream.js";

/** The cost of an answer that has begun. Only the paying bucket is not known yet. */
export type Quote = Omit<Receipt, "meterSource">;

export interface OpenedSpeech {
  readonly contentType: GeneratedType;
  readonly quote: Quote;
}

/** Bytes that belong together, at least one. */
export type Pieces = readonly Uint8Array[];

export interface SpokenStream {
  readonly generationId: string;
  /** Settles after limits, safety features and balance were checked; `opened` has the result. */
  readonly admitted: Promise<void>;
  /**
   * Resolves when an upstream has begun to answer and the hold is committed; rejects with the AppError otherwise, which `chunks` then
   * throws too.
   */
  readonly opened: Promise<OpenedSpeech>;
  /**
   * Throws an AppError when the answer fails; `return()` closes the upstream and settles. Lazy: the upstream is called on the first pull.
   * Chunks have several pieces, so that nothing large is copied.
   */
  readonly chunks: AsyncIterableIterator<Pieces>;
  receipt(): Receipt | null;
}

export interface PreparedSpeech {
  readonly plan: PricedPlan;
  readonly work: Pick<GenerationWork<SpeechStream>, "words" | "safe" | "call">;
}

export interface SpokenText {
  readonly run: GenerationRun;
  readonly plan: PricedPlan;
  readonly call: (candidate: Candidate) => Promise<SpeechStream>;
  /** How many of the received bytes are held back until more arrive or the charge is committed. */
  readonly withhold: (bytes: number) => number;
  readonly totalMs: number;
}

interface BegunSpeech {
  readonly stream: SpeechStream;
  readonly first: Uint8Array;
  readonly rest: AsyncIterator<Uint8Array>;
}

export async function openSpeech(text: SpokenText): Promise<SpeechReader> {
  return new SpeechReader(text, await begin(text));
}

/** A client that disconnects before the first bytes pays for the text, which the upstream has read. */
async function begin({ run, plan, call }: SpokenText): Promise<Answered<BegunSpeech>> {
  let accepted: Answered<SpeechStream> | null = null;
  try {
    return await run.attempt(async (candidate) => {
      accepted = null;
      const stream = await call(candidate);
      accepted = { ...candidate, answer: stream };
      const rest = stream.chunks[Symbol.asyncIterator]();
      const first = await readChunk(rest);
      if (first === null) throw new ProviderError("invalid-response", "The upstream answered no sound.");
      return { stream, first, rest };
    });
  } catch (error) {
    const answered = accepted as Answered<SpeechStream> | null;
    if (answered && run.cancellation.isCallerGone) await settle(run, plan, answered, "cancelled");
    throw error;
  }
}

export class SpeechReader implements StreamReader<OpenedSpeech, Pieces> {
  readonly opened: OpenedSpeech;
  private isFirstRead = false;
  private withheld: Uint8Array = new Uint8Array();

  constructor(
    private readonly text: SpokenText,
    private readonly begun: Answered<BegunSpeech>,
  ) {
    text.run.noteFirstByte();
    this.opened = { contentType: begun.answer.stream.contentType, quote: this.quote() };
  }

  get served(): Candidate {
    return this.begun;
  }

  async read(keptWaitingMs: number): Promise<Delivery<Pieces>> {
    const chunk = this.isFirstRead ? await this.readNext(keptWaitingMs) : this.begun.answer.first;
    this.isFirstRead = true;
    this.text.run.noteUpstream();
    const isLast = chunk === null;
    const passed = isLast ? await this.finish() : this.withhold(chunk);
    return { item: passed.length > 0 ? passed : null, isLast };
  }

  async endEarly(patience: ReaderPatience): Promise<void> {
    const { run } = this.text;
    // Not awaited: a hanging upstream must not delay the settlement.
    Promise.resolve(this.begun.answer.rest.return?.()).catch(() => undefined);
    if (run.isConcluded) return;
    if (this.isReaderAtFault(patience)) await this.settle("cancelled");
    else await run.release();
  }

  /** The client disconnected, the account was suspended, the time ran out while it was awaited, or most of the time passed so. */
  private isReaderAtFault({ isIdle, keptWaitingMs }: ReaderPatience): boolean {
    const { run, totalMs } = this.text;
    const { isCallerGone, isRefused, isTimeUp } = run.cancellation;
    return isCallerGone || isRefused || (isIdle && isTimeUp) || keptWaitingMs >= totalMs / 2;
  }

  private async readNext(keptWaitingMs: number): Promise<Uint8Array | null> {
    try {
      return await readChunk(this.begun.answer.rest);
    } catch (error) {
      const isReaderAtFault = this.isReaderAtFault({ isIdle: false, keptWaitingMs });
      if (!isReaderAtFault) this.text.run.noteFailure(this.begun, error);
      throw error;
    }
  }

  private withhold(chunk: Uint8Array): Pieces {
    const { withheld } = this;
    const end = chunk.byteLength - this.text.withhold(withheld.byteLength + chunk.byteLength);
    this.withheld = chunk.subarray(end);
    return [withheld, chunk.subarray(0, end)].filter(isThere);
  }

  private async finish(): Promise<Pieces> {
    this.text.run.noteSuccess(this.begun);
    await this.settle("ok");
    return [this.withheld].filter(isThere);
  }

  private settle(status: UsageStatus): Promise<Receipt> {
    const { model, route, answer } = this.begun;
    return settle(this.text.run, this.text.plan, { model, route, answer: answer.stream }, status);
  }

  private quote(): Quote {
    const { plan, run } = this.text;
    const { model, answer } = this.begun;
    return {
      generationId: plan.generationId,
      model: plan.model.id,
      modelUsed: model.id,
      upstream: this.begun.route.upstreamName,
      route: this.begun.route.id,
      vendorKeyId: this.begun.route.vendorKey?.key.id ?? null,
      upstreamCostNanocredits: null,
      attempts: run.attempts.failed,
      usage: NO_USAGE,
      usageSource: "estimated",
      status: "ok",
      costNanocredits: costOf(plan.expected, chargedRates(plan, this.begun)),
      heldNanocredits: run.heldNanocredits,
      ...run.timing(),
      responseMs: performance.now() - plan.startedAt,
      firstTokenMs: run.firstByteMs,
      warnings: joinWarnings(plan.notes, allInCallersWords(answer.stream.warnings, this.begun)),
      safety: run.plan.safety,
    };
  }
}

/** The upstream has read the whole text, however much was delivered. */
function settle(
  run: GenerationRun,
  { expected, isFree }: PricedPlan,
  { model, route, answer }: Answered<SpeechStream>,
  status: UsageStatus,
): Promise<Receipt> {
  return run.settle({
    ...{ model, route, status, quantities: expected },
    source: status === "ok" ? "estimated" : "partial",
    warnings: allInCallersWords(answer.warnings, { model, route }),
    cancelPolicy: isFree ? "stop" : "finish",
  });
}

function isThere({ byteLength }: Uint8Array): boolean {
  return byteLength > 0;
}

/** At least one byte; null at the end. */
async function readChunk(chunks: AsyncIterator<Uint8Array>): Promise<Uint8Array | null> {
  for (;;) {
    const { done, value } = await chunks.next();
    if (done) return null;
    if (value.byteLength > 0) return value;
  }
}
