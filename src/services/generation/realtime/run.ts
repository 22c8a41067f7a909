/** An open realtime session: steps 2 and 3 of `realtime.ts`. */
import type { RequestContext } from "../../../context.js";
import { type AppError, invalidInput, upstreamFailed, upstreamTimedOut, wrongField } from "../../../errors.js";
import { createId } from "../../../lib/ids.js";
import { jsonExcess } from "../../../lib/json-bounds.js";
import { findUnstorable, UNICODE_ESCAPE } from "../../../lib/storable-text.js";
import {
  JSON_BOUNDS,
  REALTIME_IDLE_MS_MAX,
  REALTIME_METER_MS,
  REALTIME_REPORT_MS,
  REALTIME_SESSION_MS_MAX,
  REALTIME_TICK_MS,
} from "../../../limits.js";
import type { RealtimeConnection } from "../../../providers/media.js";
import { parseRealtimeEvent, type RealtimeReading, readRealtimeEvent } from "../../../providers/openai/realtime-events.js";
import type { Catalog } from "../../catalog/catalog.js";
import { costOf } from "../../catalog/pricing.js";
import { isChecked } from "../../safety/features.js";
import type { Admission } from "../admission.js";
import { CallerGone } from "../cancellation.js";
import { toCallerError } from "../failures.js";
import type { Generations } from "../generations.js";
import { addressesIn } from "../named-addresses.js";
import { chargedRates } from "../planned-charge.js";
import { isJudged } from "../plausible.js";
import type { Receipt } from "../receipt.js";
import type { Candidate } from "../routing/candidate.js";
import type { GenerationRun } from "../run.js";
import type { Upstreams } from "../upstreams.js";
import { RealtimeLeaving } from "./leaving.js";
import { RealtimeMeter } from "./meter.js";
import { permitted, presentedEvent, type RealtimeRules } from "./rules.js";
import { RealtimeSafety } from "./safety.js";
import { RealtimeTranscription } from "./transcription.js";

type Fields = Readonly<Record<string, unknown>>;

export interface RealtimeSession {
  readonly generationId: string;
  readonly model: string;
  readonly modelUsed: string;
  /** The upstream that answers, as shown to callers. */
  readonly upstream: string;
  readonly heldNanocredits: bigint;
  /** Sends a client's event on; await it before the next. Rejects with an AppError for a refused event, or a refused part of one. */
  send(text: string): Promise<void>;
  /**
   * The upstream's events. They end once the session is charged, and then throw the reason if it concerns the client. `return()` ends the
   * session as `close` does.
   */
  readonly events: AsyncIterableIterator<string>;
  /** The client disconnected: work under way is read to its report, for a bounded time. */
  leave(): void;
  close(reason?: AppError): void;
  receipt(): Receipt | null;
}

export interface RealtimeTimes {
  readonly totalMs: number;
  readonly idleMs: number;
  /** How long a report is awaited after a disconnect. */
  readonly reportMs: number;
}

export interface RealtimeDependencies {
  readonly generations: Generations;
  readonly admission: Admission;
  readonly upstreams: Upstreams;
  readonly catalog: Catalog;
  readonly times?: Partial<RealtimeTimes>;
}

interface OpenedSession {
  readonly run: GenerationRun;
  readonly served: Candidate;
  readonly connection: RealtimeConnection;
  readonly safe: string | null;
}

export function timesOf({ times }: RealtimeDependencies): RealtimeTimes {
  return { totalMs: REALTIME_SESSION_MS_MAX, idleMs: REALTIME_IDLE_MS_MAX, reportMs: REALTIME_REPORT_MS, ...times };
}

const COMMIT = "input_audio_buffer.commit";
const NAMING_FIELD = '"model"';
/** Events that start work of an upstream. Each gets an id, by which its refusal is recognized. */
const ASKING: ReadonlySet<unknown> = new Set(["response.create", COMMIT]);

export class RealtimeRun implements RealtimeSession {
  readonly events: AsyncIterableIterator<string>;
  private readonly meter: RealtimeMeter;
  private readonly safety: RealtimeSafety | null;
  private readonly rules: RealtimeRules;
  private readonly ticking: NodeJS.Timeout;
  private readonly times: RealtimeTimes;
  private readonly onGone = () => this.leave();
  private readonly transcription: RealtimeTranscription;
  private activeAt = performance.now();
  private meteredAt = performance.now();
  private failure: unknown = null;
  private checking: Promise<void> | null = null;
  private isOver = false;
  private isLeft = false;
  private isCut = false;
  private waiting: NodeJS.Timeout | undefined;
  private readonly leaving = new RealtimeLeaving();

  constructor(
    private readonly ctx: RequestContext,
    private readonly opened: OpenedSession,
    private readonly deps: RealtimeDependencies,
  ) {
    const { run, served, safe } = opened;
    const { plan } = run;
    const { model } = served;
    this.times = timesOf(deps);
    const outputMost = model.maxOutputTokens ?? model.contextLength;
    this.meter = new RealtimeMeter(isJudged(plan, served) ? { outputMost } : null);
    this.safety = isChecked(plan.caller, plan.model, safe) ? new RealtimeSafety(plan, safe, deps.admission) : null;
    const { generations, catalog } = deps;
    const { totalMs } = this.times;
    const { buffer } = this.meter;
    const transcription = new RealtimeTranscription({ ctx, generations, catalog, plan, answering: served, buffer, totalMs });
    this.transcription = transcription;
    this.rules = {
      model: plan.model,
      modelNames: new Set([plan.model, model].flatMap(({ id, aliases }) => [id, ...aliases])),
      transcribeWith: (name, param) => transcription.use(name, param),
      transcribeNoMore: () => transcription.stop(),
    };
    this.ticking = setInterval(() => this.tick(), Math.min(REALTIME_TICK_MS, this.times.idleMs));
    this.events = this.relay();
    ctx.signal.addEventListener("abort", this.onGone, { once: true });
    if (ctx.signal.aborted) this.leave();
  }

  get generationId(): string {
    return this.opened.run.plan.generationId;
  }

  get model(): string {
    return this.opened.run.plan.model.id;
  }

  get upstream(): string {
    return this.opened.served.route.upstreamName;
  }

  get modelUsed(): string {
    return this.opened.served.model.id;
  }

  get heldNanocredits(): bigint {
    return this.opened.run.heldNanocredits;
  }

  receipt(): Receipt | null {
    return this.opened.run.receipt;
  }

  async send(text: string): Promise<void> {
    if (this.isEnding) return;
    this.activeAt = performance.now();
    const stated = toEvent(text);
    const { event: own, refusal } = await permitted(this.safety ? await this.safety.check(stated) : stated, this.rules);
    const event = withId(own);
    const addresses = addressesIn(event);
    if (addresses.length > 0) await this.deps.admission.addresses.check(addresses, this.ctx.signal);
    if (this.isEnding) return;
    this.meter.readCaller(event);
    if (event.type === COMMIT) this.transcription.handIn(event.event_id);
    if (ASKING.has(event.type) || this.exceedsHold) await this.checkHold();
    if (this.isEnding) return this.meter.withdrawRequest(event.event_id);
    await this.opened.connection.send(JSON.stringify(event));
    if (refusal) throw refusal;
  }

  leave(): void {
    if (this.isEnding) return;
    this.isLeft = true;
    if (!this.isAtWork && !this.mayBeAtWork) {
      this.close();
      return;
    }
    this.isCut = this.isAtWork;
    this.waiting = setTimeout(() => this.close(), this.times.reportMs);
    this.leaving.ask(this.opened.connection, this.meter.awaited, this.mayBeAtWork);
  }

  close(reason?: AppError): void {
    if (this.isOver) return;
    this.isOver = true;
    if (reason) this.failure = reason;
    this.opened.connection.close();
  }

  private get isEnding(): boolean {
    return this.isOver || this.isLeft;
  }

  /** The upstream has work that it will report. */
  private get isAtWork(): boolean {
    return this.meter.awaited.length > 0 || this.transcription.isAwaited;
  }

  /** It may have detected speech in the client's audio and begun to work without reporting it. */
  private get mayBeAtWork(): boolean {
    return this.transcription.isHandedIn || this.meter.buffer.milliseconds > 0;
  }

  private async *relay(): AsyncGenerator<string, void, undefined> {
    try {
      for await (const text of this.opened.connection.events) {
        this.activeAt = performance.now();
        const reading = readRealtimeEvent(text);
        this.read(reading);
        if (this.isOver) break;
        if (!this.isLeft) yield this.presented(text, reading);
        if (this.isCheckDue(reading)) await this.checkHold();
        if (this.isOver || (this.isLeft && !this.isAtWork && !this.leaving.isAwaited)) break;
      }
    } catch (error) {
      if (!(error instanceof CallerGone)) this.failure ??= toCallerError(error, this.opened.served);
    } finally {
      await this.conclude();
    }
    if (this.failure) throw this.failure;
  }

  private read(reading: RealtimeReading): void {
    this.meter.readUpstream(reading);
    const isTaken = this.transcription.read(reading);
    if (reading.kind === "session" && !reading.session.isConversation) {
      this.close(upstreamFailed("The upstream opened a session of a kind that has no price."));
    } else if (reading.kind === "delta") {
      this.opened.run.noteFirstByte();
    } else if (reading.kind === "committed") {
      this.transcription.expect(reading.itemId, this.meter.commit());
    } else if (reading.kind === "transcribed" && !isTaken && reading.usage) {
      // Unrequested transcription is charged at the price of the session's model.
      this.meter.report(reading.reportId, reading.usage);
    } else if (reading.kind === "error") {
      this.readRefusal(reading.eventId);
    }
    if (this.isLeft) this.readLeft(reading);
  }

  private readRefusal(eventId: string | null): void {
    // After a disconnect requested work is awaited, not guessed.
    if (eventId !== null || !this.isLeft) this.meter.withdrawRequest(eventId);
    if (eventId !== null) this.transcription.refused(eventId);
  }

  private readLeft(reading: RealtimeReading): void {
    if (reading.kind === "created") this.isCut = true;
    const cancelled = this.leaving.read(reading, this.isAtWork);
    if (cancelled === null) return;
    this.meter.giveUp(cancelled);
    this.transcription.settleHandedIn();
  }

  /** Replaces upstream model names. Only events that may have one are parsed for it. */
  private presented(text: string, reading: RealtimeReading): string {
    const mayNameModel = reading.kind === "session" || reading.kind === "error" || text.includes(NAMING_FIELD);
    const event = mayNameModel ? parseRealtimeEvent(text) : null;
    if (!event) return text;
    const { served, run } = this.opened;
    return JSON.stringify(
      presentedEvent(event, { served, modelId: run.plan.model.id, transcriberId: this.transcription.model?.id ?? null }),
    );
  }

  private isCheckDue({ kind }: RealtimeReading): boolean {
    if (kind === "delta" && performance.now() - this.meteredAt >= REALTIME_METER_MS) return true;
    if (kind === "other" || kind === "delta") return this.exceedsHold;
    return kind !== "session" && kind !== "error";
  }

  /** Delivered and requested work may exceed the hold. */
  private get exceedsHold(): boolean {
    const { run, served } = this.opened;
    const cost = costOf(this.meter.atRiskMax(), chargedRates(run.plan, served));
    return (cost > 0n && cost >= run.heldNanocredits) || this.transcription.exceedsHold;
  }

  private tick(): void {
    if (performance.now() - this.activeAt >= this.times.idleMs) {
      this.close(upstreamTimedOut("The session was silent for too long.", { isFinal: true }));
    } else if (this.opened.run.isNoteDue) {
      this.checkHold().catch((error: unknown) => this.ctx.log.error({ err: error }, "a realtime session could not be metered"));
    }
  }

  /** Stores the meter, extends the hold when it runs low, and ends the session when that is refused. */
  private async checkHold(): Promise<void> {
    // A check under way does not include later events.
    await this.checking;
    if (this.isOver || this.opened.run.isConcluded) return;
    this.checking ??= this.meterOnce().finally(() => {
      this.checking = null;
    });
    await this.checking;
  }

  private async meterOnce(): Promise<void> {
    const { run, served } = this.opened;
    this.meteredAt = performance.now();
    // After a disconnect the hold is not extended.
    const isCapped = this.isLeft;
    const { quantities } = this.meter.soFar();
    const [refusal, other] = await Promise.all([
      run.meter(served, costOf(this.meter.atRisk(), chargedRates(run.plan, served)), isCapped, () => quantities),
      this.transcription.check(isCapped),
    ]);
    if (refusal ?? other) return this.close(refusal ?? other ?? undefined);
    if (isCapped && this.exceedsHold) this.close();
  }

  private async conclude(): Promise<void> {
    this.isOver = true;
    clearInterval(this.ticking);
    clearTimeout(this.waiting);
    this.ctx.signal.removeEventListener("abort", this.onGone);
    this.opened.connection.close();
    await this.checking?.catch(() => undefined);
    try {
      await Promise.all([this.charge(), this.transcription.conclude(this.isCut || this.failure !== null)]);
    } finally {
      this.opened.run.end();
    }
  }

  /** A session that failed before any usage is not charged. */
  private async charge(): Promise<void> {
    const { run, served } = this.opened;
    if (this.failure !== null && !this.meter.hasUsage) return run.release();
    const metered = this.meter.soFar();
    run.noteUpstream();
    const isWhole = !this.isCut && this.failure === null && !this.meter.isUnderWay;
    await run.settle({ ...metered, ...served, status: isWhole ? "ok" : "cancelled", warnings: [], cancelPolicy: "read-to-usage" });
  }
}

function toEvent(text: string): Fields {
  const excess = jsonExcess(Buffer.from(text), JSON_BOUNDS);
  if (excess !== null) throw invalidInput(`The event ${excess}.`);
  const event = parseRealtimeEvent(text);
  if (!event) throw invalidInput("An event is a JSON object.");
  const unstorable = text.includes(UNICODE_ESCAPE) ? findUnstorable(event) : null;
  if (unstorable !== null) throw wrongField(unstorable.path, unstorable.problem);
  return event;
}

function withId(event: Fields): Fields {
  return ASKING.has(event.type) && typeof event.event_id !== "string" ? { ...event, event_id: createId() } : event;
}
