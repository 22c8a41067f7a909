/**
 * Realtime sessions (decisions "Generation"): OpenAI's realtime events between a caller and an upstream.
 *
 * 1. `open`: plan, limits, hold; only then an upstream is connected. Until then a failure is an ordinary error.
 * 2. Events pass both ways as they come. The meter reads them on the side and the hold is extended when it runs low.
 * 3. Whatever ends the session (either side leaves, the upstream fails, its time is up, its key is revoked, the hold is used up
 *    and no more is granted), the upstream is closed at once and what was used is charged, once. Then the caller is told why.
 */
import type { RequestContext } from "../../context.js";
import { type AppError, upstreamFailed, upstreamTimedOut } from "../../errors.js";
import { NO_USAGE } from "../../lib/usage.js";
import { REALTIME_IDLE_MS_MAX, REALTIME_METER_MS, REALTIME_SESSION_MS_MAX, REALTIME_TICK_MS, REALTIME_TOKENS_HELD } from "../../limits.js";
import type { RealtimeConnection } from "../../providers/media.js";
import type { Model } from "../catalog/model.js";
import type { OpenCharge } from "../credits/credits.js";
import { type BillableQuantities, costOf } from "../pricing.js";
import { isChecked, servable } from "../safety/features.js";
import type { SafetyReport } from "../safety/safety.js";
import type { Admission } from "./admission.js";
import { attempt } from "./attempts.js";
import { CallerGone, Cancellation } from "./cancellation.js";
import { type GenerationPlan, type Generations, toGenerationRecord } from "./generations.js";
import { RealtimeMeter } from "./realtime-meter.js";
import { RealtimeSafety } from "./realtime-safety.js";
import type { Receipt } from "./receipt.js";
import { toCallerError } from "./upstream-errors.js";
import type { Upstreams } from "./upstreams.js";

export interface RealtimeInput {
  readonly model: string | undefined;
  /** The caller's `safe` parameter. */
  readonly safe: string | null;
  /** Further parameters of the address: they reach the upstream as they are. */
  readonly query: Readonly<Record<string, string>>;
  readonly isBeta: boolean;
}

export interface RealtimeSession {
  readonly generationId: string;
  readonly model: string;
  readonly modelUsed: string;
  readonly heldNanocredits: bigint;
  /** Hands a caller's event on; await it before the next. Rejects with an AppError for an event that may not go on. */
  send(text: string): Promise<void>;
  /**
   * The upstream's events. They end once the session is charged, and throw then when it was ended for a reason that the caller must
   * be told. `return()` ends the session as `close` does.
   */
  readonly events: AsyncIterableIterator<string>;
  /** Ends it: without a reason because the caller has left. */
  close(reason?: AppError): void;
  /** Once `events` have ended and something was charged. */
  receipt(): Receipt | null;
}

export interface RealtimeTimes {
  readonly totalMs: number;
  readonly idleMs: number;
}

export interface RealtimeDependencies {
  readonly generations: Generations;
  readonly admission: Admission;
  readonly upstreams: Upstreams;
  readonly times?: RealtimeTimes;
}

const TIMES: RealtimeTimes = { totalMs: REALTIME_SESSION_MS_MAX, idleMs: REALTIME_IDLE_MS_MAX };

export class RealtimeSessions {
  constructor(private readonly deps: RealtimeDependencies) {}

  /** Resolves when an upstream has accepted the session. Throws as every generation does. */
  async open(ctx: RequestContext, input: RealtimeInput): Promise<RealtimeSession> {
    const { generations, upstreams, times = TIMES } = this.deps;
    const plan = generations.plan(ctx, "realtime", input.model, expectedOf);
    const { safety } = await generations.admit(ctx, plan, { texts: [], safe: input.safe });
    const charge = generations.open(plan);
    const cancellation = new Cancellation(ctx.signal, times.totalMs);
    try {
      await charge.held;
      const candidates = servable(plan.candidates, safety?.applied);
      const { signal } = cancellation;
      const { model, answer } = await attempt(candidates, signal, (candidate) =>
        upstreams.serving(ctx, candidate, "realtime").connect({
          upstreamModel: candidate.upstreamModel,
          signal,
          extra: {},
          query: input.query,
          isBeta: input.isBeta,
        }),
      );
      return new RealtimeRun(ctx, { plan, charge, model, safety, connection: answer, safe: input.safe }, cancellation, this.deps);
    } catch (error) {
      cancellation.dispose();
      if (!charge.isConcluded) await charge.release();
      throw error instanceof CallerGone ? upstreamFailed("The caller left before the session was open.", { cause: error }) : error;
    }
  }
}

interface Opened {
  readonly plan: GenerationPlan;
  readonly charge: OpenCharge;
  /** The one that answers. */
  readonly model: Model;
  readonly safety: SafetyReport | null;
  readonly connection: RealtimeConnection;
  readonly safe: string | null;
}

class RealtimeRun implements RealtimeSession {
  readonly events: AsyncIterableIterator<string>;
  private readonly meter = new RealtimeMeter();
  private readonly safety: RealtimeSafety | null;
  private readonly ticking: NodeJS.Timeout;
  private readonly connectedAt = performance.now();
  private readonly idleMs: number;
  private activeAt = performance.now();
  private meteredAt = performance.now();
  private firstByteMs: number | null = null;
  /** Why it was ended, where the caller must be told. */
  private failure: unknown = null;
  private checking: Promise<void> | null = null;
  private isOver = false;
  private finalReceipt: Receipt | null = null;

  constructor(
    private readonly ctx: RequestContext,
    private readonly opened: Opened,
    private readonly cancellation: Cancellation,
    private readonly deps: RealtimeDependencies,
  ) {
    const { plan, safe } = opened;
    this.idleMs = (deps.times ?? TIMES).idleMs;
    this.safety = isChecked(plan.model, safe) ? new RealtimeSafety(ctx, plan.model, safe, deps.admission) : null;
    this.ticking = setInterval(() => this.tick(), Math.min(REALTIME_TICK_MS, this.idleMs));
    this.events = this.relay();
  }

  get generationId(): string {
    return this.opened.plan.generationId;
  }

  get model(): string {
    return this.opened.plan.model.id;
  }

  get modelUsed(): string {
    return this.opened.model.id;
  }

  get heldNanocredits(): bigint {
    return this.opened.charge.heldAmount;
  }

  receipt(): Receipt | null {
    return this.finalReceipt;
  }

  async send(text: string): Promise<void> {
    if (this.isOver) return;
    this.activeAt = performance.now();
    const event = this.safety ? await this.safety.check(text) : text;
    this.meter.readCaller(event);
    await this.opened.connection.send(event);
  }

  close(reason?: AppError): void {
    if (this.isOver) return;
    this.isOver = true;
    if (reason) this.failure = reason;
    this.opened.connection.close();
  }

  private async *relay(): AsyncGenerator<string, void, undefined> {
    try {
      for await (const text of this.opened.connection.events) {
        this.activeAt = performance.now();
        const kind = this.meter.readUpstream(text);
        if (kind === "delta") this.firstByteMs ??= performance.now() - this.opened.plan.startedAt;
        yield text;
        if (kind === "done" || (kind === "delta" && this.isMeterDue)) await this.checkHold();
        if (this.isOver) break;
      }
    } catch (error) {
      if (!(error instanceof CallerGone)) this.failure ??= toCallerError(error);
    } finally {
      await this.conclude();
    }
    if (this.failure) throw this.failure;
  }

  private get isMeterDue(): boolean {
    return performance.now() - this.meteredAt >= REALTIME_METER_MS;
  }

  private tick(): void {
    if (performance.now() - this.activeAt >= this.idleMs) {
      this.close(upstreamTimedOut("The session was silent for too long.", { isFinal: true }));
    } else if (this.opened.charge.isNoteDue) {
      this.checkHold().catch((error: unknown) => this.ctx.log.error({ err: error }, "a realtime session could not be metered"));
    }
  }

  /** Notes the meter, asks for more when the hold runs low, and ends the session when it is used up and no more is granted. */
  private async checkHold(): Promise<void> {
    if (this.isOver || this.opened.charge.isConcluded) return;
    this.checking ??= this.meterOnce().finally(() => {
      this.checking = null;
    });
    await this.checking;
  }

  private async meterOnce(): Promise<void> {
    const { plan, charge, model } = this.opened;
    this.meteredAt = performance.now();
    const { quantities } = this.meter.soFar();
    const refusal = await charge.meter(costOf(quantities, plan.model.rates), false, () =>
      toGenerationRecord(plan, {
        modelUsed: model.id,
        quantities,
        usageSource: "partial",
        status: "cancelled",
        firstByteMs: this.firstByteMs,
      }),
    );
    if (refusal) this.close(refusal);
  }

  /** Nothing is charged for a session that failed before anything came of it. */
  private async conclude(): Promise<void> {
    const { plan, charge, model, safety, connection } = this.opened;
    this.isOver = true;
    clearInterval(this.ticking);
    connection.close();
    this.cancellation.dispose();
    await this.checking?.catch(() => undefined);
    if (this.failure !== null && !this.meter.hasUsage) return charge.release();
    const metered = this.meter.soFar();
    this.finalReceipt = await this.deps.generations.conclude(this.ctx, plan, charge, {
      ...metered,
      modelUsed: model.id,
      status: this.failure !== null || metered.source === "partial" ? "cancelled" : "ok",
      firstByteMs: this.firstByteMs,
      upstreamMs: performance.now() - this.connectedAt,
      warnings: [],
      safety,
    });
  }
}

/** Unspecified: nothing is known of a session before it begins, so some turns are held, and more when those are used up. */
function expectedOf(model: Model): BillableQuantities {
  return {
    ...NO_USAGE,
    [model.inputModalities.includes("audio") ? "inputAudioTokens" : "inputTextTokens"]: REALTIME_TOKENS_HELD,
    [model.outputModalities.includes("audio") ? "outputAudioTokens" : "outputTextTokens"]: REALTIME_TOKENS_HELD,
  };
}
