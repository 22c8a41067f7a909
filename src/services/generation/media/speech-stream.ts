/**
 * Speech that is passed on while it is made, from the hold to the settlement.
 *
 * 1. `begin`: limits and safety, hold, call the upstreams in turn until one sends its first bytes. Until then a failure is an
 *    ordinary error. The price depends on the text alone, so what it will cost is known when the answer begins.
 * 2. Everything but what is withheld passes on as it comes; that goes out once the charge is committed.
 * 3. A caller who leaves after an upstream has accepted the text pays the whole price: the upstream has read all of it. So does one
 *    who takes so long to listen that the time runs out. An upstream that breaks off is not paid for.
 */
import type { RequestContext } from "../../../context.js";
import { upstreamFailed } from "../../../errors.js";
import type { GeneratedType } from "../../../lib/content-types.js";
import { createId } from "../../../lib/ids.js";
import { NO_USAGE } from "../../../lib/usage.js";
import type { SpeechStream } from "../../../providers/media.js";
import { ProviderError } from "../../../providers/provider.js";
import type { Model } from "../../catalog/model.js";
import { costOf } from "../../catalog/pricing.js";
import type { OpenCharge } from "../../credits/credits.js";
import { servable } from "../../safety/features.js";
import { type Answered, attempt } from "../attempts.js";
import { CallerGone, Cancellation } from "../cancellation.js";
import type { GenerationOutcome, GenerationPlan, Generations, GenerationWork } from "../generations.js";
import type { Receipt } from "../receipt.js";
import { toCallerError } from "../upstream-errors.js";
import { allInCallersWords } from "../upstream-words.js";
import { joinWarnings } from "../warnings.js";

/** What an answer that has begun will cost. Only which bucket pays is not known yet. */
export type Quote = Omit<Receipt, "meterSource">;

export interface SpokenStream {
  readonly generationId: string;
  /** Limits, safety features and the balance have been looked at; `opened` tells what came of it. */
  readonly admitted: Promise<void>;
  /** An upstream has begun to answer and the hold is committed; rejects with the AppError otherwise, which `chunks` then throws too. */
  readonly opened: Promise<{ readonly contentType: GeneratedType; readonly quote: Quote }>;
  /** Throws an AppError when the answer fails on the way; `return()` closes the upstream and settles. */
  readonly chunks: AsyncIterableIterator<Uint8Array>;
  /** Once it has ended and was charged. */
  receipt(): Receipt | null;
}

export interface PreparedSpeech {
  readonly plan: GenerationPlan;
  readonly work: Pick<GenerationWork<SpeechStream>, "texts" | "safe" | "call">;
}

export interface SpeechStreamDependencies {
  readonly generations: Generations;
  /** A generation's total, in milliseconds. */
  readonly totalMs: number;
  /** How many of the bytes that have come are held back until more come or the charge is committed. */
  readonly withhold: (bytes: number) => number;
}

interface Begun extends Answered<SpeechStream> {
  readonly plan: GenerationPlan;
  readonly charge: OpenCharge;
  readonly first: Uint8Array;
  readonly rest: AsyncIterator<Uint8Array>;
  readonly course: Pick<GenerationOutcome, "firstByteMs" | "warnings" | "safety">;
}

const DONE = { done: true, value: undefined } as const;

export class SpeechStreamRun implements SpokenStream {
  readonly generationId: string;
  readonly admitted: Promise<void>;
  readonly opened: SpokenStream["opened"];
  readonly chunks: SpokenStream["chunks"];
  private readonly cancellation: Cancellation;
  private readonly begun: Promise<Begun>;
  private isFirstRead = false;
  private isEnded = false;
  private isPulling = false;
  /** Thrown by the next pull: it came while nobody was asking. */
  private failure: { readonly reason: unknown } | null = null;
  /** The last of what has come. */
  private withheld: Uint8Array = new Uint8Array();
  private readonly generations: Generations;
  private readonly totalMs: number;
  private pending: Promise<unknown> = Promise.resolve();
  private finalReceipt: Receipt | null = null;
  private calledAt = 0;
  private upstreamMs = 0;
  /** How long the reader has kept the stream waiting. */
  private readerMs = 0;
  private handedOutAt: number | null = null;

  /** `prepared` may be a refusal, which is then that of the stream. */
  constructor(
    private readonly ctx: RequestContext,
    prepared: () => PreparedSpeech,
    private readonly deps: SpeechStreamDependencies,
  ) {
    this.generations = deps.generations;
    this.totalMs = deps.totalMs;
    this.cancellation = new Cancellation(ctx.signal, deps.totalMs);
    const { plan, refusal } = attemptPreparation(prepared);
    this.generationId = plan?.plan.generationId ?? createId();
    let noteAdmitted = () => {};
    this.admitted = new Promise((resolve) => {
      noteAdmitted = resolve;
    });
    this.begun = plan ? this.begin(plan, noteAdmitted) : Promise.reject(refusal);
    this.begun.then(noteAdmitted, noteAdmitted);
    this.opened = this.begun.then((begun) => ({ contentType: begun.answer.contentType, quote: this.quote(begun) }));
    this.opened.then(
      () => this.followClock(),
      () => this.cancellation.dispose(),
    );
    this.chunks = {
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

  private async begin({ plan, work }: PreparedSpeech, noteAdmitted: () => void): Promise<Begun> {
    let charge: OpenCharge | null = null;
    try {
      const { texts, safety } = await this.generations.admit(this.ctx, plan, work);
      charge = this.generations.open(plan);
      if (!charge.isComfortable) await charge.held;
      noteAdmitted();
      this.cancellation.followHold(charge);
      this.calledAt = performance.now();
      const answered = await this.callUpstream(plan, charge, (model) => work.call(model, this.cancellation.signal, texts), safety);
      await charge.held;
      const { stream, first, rest } = answered.answer;
      const warnings = allInCallersWords(stream.warnings, answered.model);
      const course = { firstByteMs: performance.now() - plan.startedAt, warnings, safety };
      return { plan, charge, model: answered.model, answer: stream, first, rest, course };
    } catch (error) {
      if (charge && !charge.isConcluded) await charge.release();
      throw error instanceof CallerGone ? upstreamFailed("The caller left before the answer came.", { cause: error }) : error;
    }
  }

  private async callUpstream(
    plan: GenerationPlan,
    charge: OpenCharge,
    call: (model: Model) => Promise<SpeechStream>,
    safety: GenerationOutcome["safety"],
  ): Promise<Answered<Pick<Begun, "first" | "rest"> & { readonly stream: SpeechStream }>> {
    let accepted: Answered<SpeechStream> | null = null;
    try {
      return await attempt(
        servable(plan.candidates, safety?.applied),
        this.cancellation,
        async (model) => {
          accepted = null;
          const stream = await call(model);
          accepted = { model, answer: stream };
          const rest = stream.chunks[Symbol.asyncIterator]();
          const first = await readChunk(rest);
          if (first === null) throw new ProviderError("invalid-response", "The upstream answered no sound.");
          return { stream, first, rest };
        },
        (model, error) => this.noteFailure(plan, model, error),
      );
    } catch (error) {
      const begun = accepted as Answered<SpeechStream> | null;
      if (begun && this.cancellation.isCallerGone) {
        const warnings = allInCallersWords(begun.answer.warnings, begun.model);
        await this.conclude(plan, charge, begun.model, { firstByteMs: null, warnings, safety }, "cancelled");
      }
      throw error;
    }
  }

  /** Time runs out while the reader is waited for: nobody may ever ask for more. */
  private followClock(): void {
    const { signal } = this.cancellation;
    const stop = () => {
      if (this.isPulling || this.isEnded) return;
      this.failure = { reason: signal.reason };
      void this.stop();
    };
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  }

  private track<Result>(work: Promise<Result>): Promise<Result> {
    this.pending = work.catch(() => undefined);
    return work;
  }

  private async pull(): Promise<IteratorResult<Uint8Array>> {
    if (this.failure) {
      const { reason } = this.failure;
      this.failure = null;
      throw reason;
    }
    if (this.isEnded) return DONE;
    this.isPulling = true;
    if (this.handedOutAt !== null) this.readerMs += performance.now() - this.handedOutAt;
    const begun = await this.begun.catch((error: unknown) => {
      this.isEnded = true;
      throw error;
    });
    try {
      return await this.pullFrom(begun);
    } catch (error) {
      this.isEnded = true;
      await this.endEarly(begun, this.isReaderAtFault);
      throw toCallerError(error, begun.model);
    } finally {
      this.isPulling = false;
      this.handedOutAt = performance.now();
      if (this.isEnded) this.cancellation.dispose();
    }
  }

  private async pullFrom(begun: Begun): Promise<IteratorResult<Uint8Array>> {
    for (;;) {
      const chunk = this.isFirstRead ? await this.readNext(begun) : begun.first;
      this.isFirstRead = true;
      this.upstreamMs = performance.now() - this.calledAt;
      const passed = chunk === null ? await this.finish(begun) : this.withhold(chunk);
      if (passed.byteLength > 0) return { done: false, value: passed };
      if (chunk === null) return DONE;
    }
  }

  private async readNext({ plan, model, rest }: Begun): Promise<Uint8Array | null> {
    try {
      return await readChunk(rest);
    } catch (error) {
      if (!this.isReaderAtFault) this.noteFailure(plan, model, error);
      throw error;
    }
  }

  private get isReaderAtFault(): boolean {
    return this.cancellation.isCallerGone || this.readerMs >= this.totalMs / 2;
  }

  private withhold(chunk: Uint8Array): Uint8Array {
    const held = this.withheld.byteLength;
    const end = chunk.byteLength - this.deps.withhold(held + chunk.byteLength);
    const passed = held === 0 ? chunk.subarray(0, end) : Buffer.concat([this.withheld, chunk.subarray(0, end)]);
    this.withheld = chunk.subarray(end);
    return passed;
  }

  private async finish({ plan, charge, model, course }: Begun): Promise<Uint8Array> {
    this.isEnded = true;
    this.generations.noteSuccess(plan, model);
    await this.conclude(plan, charge, model, course, "ok");
    return this.withheld;
  }

  /** The caller leaves: at once, also while an upstream is being waited for. */
  private async leave(): Promise<IteratorResult<Uint8Array>> {
    this.cancellation.leave();
    await this.pending;
    await this.stop();
    return DONE;
  }

  private async stop(): Promise<void> {
    if (this.isEnded) return;
    this.isEnded = true;
    await this.begun.then((begun) => this.endEarly(begun, true)).catch(() => undefined);
    this.cancellation.dispose();
  }

  private async endEarly({ plan, charge, model, rest, course }: Begun, isReaderAtFault: boolean): Promise<void> {
    // Not awaited: an upstream that hangs must not delay the settlement.
    Promise.resolve(rest.return?.()).catch(() => undefined);
    if (charge.isConcluded) return;
    if (isReaderAtFault) await this.conclude(plan, charge, model, course, "cancelled");
    else await charge.release();
  }

  private async conclude(
    plan: GenerationPlan,
    charge: OpenCharge,
    model: Model,
    course: Begun["course"],
    status: Receipt["status"],
  ): Promise<void> {
    const metered = { quantities: plan.expected, source: status === "ok" ? "estimated" : "partial" } as const;
    const outcome = { ...course, ...metered, modelUsed: model.id, status, upstreamMs: this.upstreamMs };
    this.finalReceipt = await this.generations.conclude(this.ctx, plan, charge, outcome);
  }

  private noteFailure(plan: GenerationPlan, model: Model, error: unknown): void {
    this.generations.noteFailure(plan, model, error, this.cancellation.signal);
  }

  private quote({ plan, charge, model, course: { firstByteMs, ...course } }: Begun): Quote {
    const responseMs = performance.now() - plan.startedAt;
    const upstreamMs = performance.now() - this.calledAt;
    return {
      generationId: plan.generationId,
      model: plan.model.id,
      modelUsed: model.id,
      usage: NO_USAGE,
      usageSource: "estimated",
      status: "ok",
      costNanocredits: costOf(plan.expected, plan.model.rates),
      heldNanocredits: charge.heldAmount,
      gatewayMs: responseMs - upstreamMs,
      upstreamMs,
      responseMs,
      firstTokenMs: firstByteMs,
      ...course,
      warnings: joinWarnings(plan.notes, course.warnings),
    };
  }
}

/** A refusal is told where every other failure is. */
function attemptPreparation(prepared: () => PreparedSpeech): { readonly plan?: PreparedSpeech; readonly refusal?: unknown } {
  try {
    return { plan: prepared() };
  } catch (refusal) {
    return { refusal };
  }
}

/** Of at least one byte; null at the end. */
async function readChunk(chunks: AsyncIterator<Uint8Array>): Promise<Uint8Array | null> {
  for (;;) {
    const { done, value } = await chunks.next();
    if (done) return null;
    if (value.byteLength > 0) return value;
  }
}
