/**
 * Transcription of the client's audio by a realtime session's upstream: another model with its own price, so it is held and charged as a
 * separate generation, part of the session's (`parent_request_id`).
 *
 * 1. `use`: the first `session.update` that names a model. The session keeps that model, so that late results have one price.
 * 2. Each item of audio is expected to be transcribed; its report, or its measured length, is charged.
 * 3. `conclude`: charged once, at the end of the session; nothing without transcription.
 */
import type { RequestContext } from "../../../context.js";
import { AppError, invalidInput } from "../../../errors.js";
import { RecentIds } from "../../../lib/bounded.js";
import { NO_USAGE, USAGE_AMOUNT_MAX } from "../../../lib/usage.js";
import { REALTIME_TRANSCRIPTION_MS_HELD } from "../../../limits.js";
import type { RealtimeReading, RealtimeUsage } from "../../../providers/openai/realtime-events.js";
import type { Catalog } from "../../catalog/catalog.js";
import type { Model } from "../../catalog/model.js";
import { type BillableQuantities, costOf } from "../../catalog/pricing.js";
import type { Route } from "../../catalog/route.js";
import { NO_WORDS } from "../admission.js";
import type { Generations } from "../generations.js";
import type { Metered } from "../metered.js";
import type { GenerationPlan } from "../planned-charge.js";
import { isJudged, MORE_HEARD_MS_MAX } from "../plausible.js";
import type { UsageStatus } from "../receipt.js";
import type { Candidate } from "../routing/candidate.js";
import type { GenerationRun } from "../run.js";
import type { RealtimeAudioBuffer } from "./audio-buffer.js";
import { INPUT_MS_PER_TOKEN, REPORTS_REMEMBERED } from "./meter.js";

class TranscriptMeter {
  /** Milliseconds. */
  private readonly measured = new Map<string, number>();
  private readonly expected = new Set<string>();
  private readonly finished = new RecentIds(REPORTS_REMEMBERED);
  private readonly reports = new RecentIds(REPORTS_REMEMBERED);
  private reportedMs = 0;
  private hasReport = false;
  private isEstimated = false;
  private beyondMs = 0;

  get isAwaited(): boolean {
    return this.expected.size > 0;
  }

  get hasUsage(): boolean {
    return this.hasReport || this.isAwaited;
  }

  measure(itemId: string, milliseconds: number): void {
    this.measured.set(itemId, milliseconds);
    for (const oldest of this.measured.keys()) {
      if (this.measured.size <= REPORTS_REMEMBERED) break;
      if (!this.expected.has(oldest)) this.measured.delete(oldest);
    }
  }

  expect(itemId: string): void {
    this.expected.add(itemId);
  }

  /** A piece of a transcript. Some upstreams transcribe audio that is no item yet: that much audio counts then. */
  noteProgress(itemId: string, milliseconds: number): void {
    if (this.finished.has(itemId)) return;
    if (!this.measured.has(itemId)) this.measure(itemId, milliseconds);
    this.expect(itemId);
  }

  /**
   * A repeated report counts once; without a credible one the measured length counts. `givenMs`: all audio of the session, for an
   * unmeasured item; null where reports are believed.
   */
  finish(itemId: string, reportId: string | null, usage: RealtimeUsage | null, givenMs: number | null): void {
    const measured = this.measured.get(itemId);
    this.forget(itemId);
    if (reportId !== null && !this.reports.add(reportId)) return;
    this.hasReport = true;
    if (usage === null) this.isEstimated = true;
    const heardMs = usage === null ? (measured ?? 0) : toMilliseconds(usage);
    const mostMs = givenMs === null || usage === null ? heardMs : Math.ceil(measured ?? givenMs) + MORE_HEARD_MS_MAX;
    this.reportedMs += Math.min(heardMs, mostMs);
    this.beyondMs += Math.max(0, heardMs - mostMs);
  }

  fail(itemId: string): void {
    this.forget(itemId);
  }

  private forget(itemId: string): void {
    this.expected.delete(itemId);
    this.measured.delete(itemId);
    this.finished.add(itemId);
  }

  /** With `more` milliseconds about to be sent. */
  soFar(more = 0): Metered {
    let milliseconds = this.reportedMs + more;
    for (const itemId of this.expected) milliseconds += this.measured.get(itemId) ?? 0;
    const quantities = lasting(milliseconds);
    if (this.beyondMs > 0) return { quantities, source: "bounded", reported: lasting(milliseconds + this.beyondMs) };
    return { quantities, source: this.isAwaited ? "partial" : this.isEstimated ? "estimated" : "provider" };
  }
}

function lasting(milliseconds: number): BillableQuantities {
  return { ...NO_USAGE, inputAudioMilliseconds: Math.min(milliseconds, USAGE_AMOUNT_MAX) };
}

/** Transcription has a price per second. Audio tokens, or input tokens where not separated, are 100 ms each. */
function toMilliseconds(usage: RealtimeUsage): number {
  if (usage.type === "duration") return usage.milliseconds;
  const { inputAudioTokens, inputTextTokens } = usage.quantities;
  return (inputAudioTokens || inputTextTokens) * INPUT_MS_PER_TOKEN;
}

interface TranscribedSession {
  readonly ctx: RequestContext;
  readonly generations: Generations;
  readonly catalog: Catalog;
  readonly plan: GenerationPlan;
  readonly answering: Candidate;
  readonly buffer: RealtimeAudioBuffer;
  readonly totalMs: number;
}

export class RealtimeTranscription {
  private readonly meter = new TranscriptMeter();
  private opened: GenerationRun | null = null;
  private opening: Promise<GenerationRun> | null = null;
  /** As requested by the client, and as confirmed by the upstream. */
  private isWanted = false;
  private isOn = false;
  /** The id of the event that commits the client's audio, until the upstream has accepted it. */
  private handedIn: unknown = null;

  constructor(private readonly session: TranscribedSession) {}

  get model(): Model | null {
    return this.opened?.plan.model ?? null;
  }

  /** The upstream has audio that it will report. */
  get isAwaited(): boolean {
    return this.handedIn !== null || this.meter.isAwaited;
  }

  get isHandedIn(): boolean {
    return this.handedIn !== null;
  }

  /**
   * Sets the model; null keeps the current one. Resolves with the upstream's name for it when the first minute is held. Throws as a
   * transcription does, naming `param`.
   */
  async use(name: string | null, param: string): Promise<string> {
    if (!this.opened && name === null) throw invalidInput("Name the model that transcribes.", param);
    const { model } = (this.opened ?? (await this.open(name ?? "", param))).plan;
    if (name !== null && name !== model.id && !model.aliases.includes(name)) {
      throw invalidInput(`A session keeps the model that transcribes in it, ${model.id}: open another session for another.`, param);
    }
    this.isWanted = true;
    return routeBeside(this.session, model)?.upstreamModel ?? "";
  }

  stop(): void {
    this.isWanted = false;
  }

  /** The event with this id, about to be sent, makes an item of the client's audio. */
  handIn(eventId: unknown): void {
    if (this.isWanted) this.handedIn = eventId;
  }

  refused(eventId: string): void {
    if (eventId === this.handedIn) this.handedIn = null;
  }

  settleHandedIn(): void {
    this.handedIn = null;
  }

  expect(itemId: string, milliseconds: number): void {
    this.handedIn = null;
    this.meter.measure(itemId, milliseconds);
    if (this.opened && this.isOn) this.meter.expect(itemId);
  }

  /** False for usage of another model, when none was named. */
  read(reading: RealtimeReading): boolean {
    if (!this.opened) return false;
    const { buffer } = this.session;
    switch (reading.kind) {
      case "session":
        this.isOn = reading.session.isTranscribing ?? this.isWanted;
        break;
      case "transcribing":
        this.meter.noteProgress(reading.itemId, buffer.milliseconds);
        break;
      case "transcribed":
        this.meter.finish(reading.itemId, reading.reportId, reading.usage, this.isJudged ? buffer.totalMilliseconds : null);
        break;
      case "untranscribed":
        this.meter.fail(reading.itemId);
        break;
    }
    return true;
  }

  /** Stores the meter and extends the hold, unless capped. Returns the error that stops further audio. */
  async check(isCapped: boolean): Promise<AppError | null> {
    if (!this.opened) return null;
    const { plan } = this.opened;
    const { quantities } = this.meter.soFar();
    return this.opened.meter(servedBeside(this.session, plan.model), this.costAtRisk(plan), isCapped, () => quantities);
  }

  get exceedsHold(): boolean {
    if (!this.opened) return false;
    const cost = this.costAtRisk(this.opened.plan);
    return cost > 0n && cost >= this.opened.heldNanocredits;
  }

  async conclude(isCut: boolean): Promise<void> {
    await this.opening?.catch(() => undefined);
    if (!this.opened) return;
    const run = this.opened;
    try {
      if (!this.meter.hasUsage) return await run.release();
      const metered = this.meter.soFar();
      const status: UsageStatus = isCut || this.meter.isAwaited ? "cancelled" : "ok";
      run.noteUpstream();
      await run.settle({ ...metered, ...servedBeside(this.session, run.plan.model), status, warnings: [], cancelPolicy: "read-to-usage" });
    } finally {
      run.end();
    }
  }

  private get isJudged(): boolean {
    return this.opened !== null && isJudged(this.opened.plan, this.session.answering);
  }

  private costAtRisk({ model }: GenerationPlan): bigint {
    const more = this.isHandedIn ? this.session.buffer.milliseconds : 0;
    return costOf(this.meter.soFar(more).quantities, model.rates);
  }

  private open(name: string, param: string): Promise<GenerationRun> {
    this.opening = beginRun(this.session, name, param).then((opened) => {
      this.opened = opened;
      return opened;
    });
    return this.opening;
  }
}

async function beginRun(session: TranscribedSession, name: string, param: string): Promise<GenerationRun> {
  const { ctx, generations, totalMs } = session;
  const plan = await planFor(session, name, param);
  await generations.admit(ctx, plan, { words: NO_WORDS });
  // Ended only by the session's end.
  const run = generations.begin(ctx, plan, { signal: new AbortController().signal, totalMs });
  try {
    await run.hold();
    await run.committed();
    run.noteCalled();
    return run;
  } catch (error) {
    await run.release();
    run.end();
    throw error;
  }
}

/** Requires a model that the key may use, at the session's upstream, and without safety features, as the gateway does not read audio. */
async function planFor(session: TranscribedSession, name: string, param: string): Promise<GenerationPlan> {
  const plan = planNamed(session, name, param);
  const { model, caller } = plan;
  if (routeBeside(session, model) === null) {
    const usable = await transcribersBeside(session);
    const hint = usable.length === 0 ? "None is." : `It may be ${usable.join(", ")}.`;
    throw invalidInput(`${model.id} is not run by the upstream of this session. ${hint}`, param);
  }
  if (model.requiredSafetyFeatures.length > 0) {
    throw invalidInput(`${model.id} requires safety features, and those cannot read audio.`, param);
  }
  // Its usage row names the session.
  return { ...plan, caller: { ...caller, run: caller.run ?? { parentRequestId: session.plan.generationId, maxCost: null } } };
}

function planNamed({ ctx, generations }: TranscribedSession, name: string, param: string): GenerationPlan {
  const expected = { ...NO_USAGE, inputAudioMilliseconds: REALTIME_TRANSCRIPTION_MS_HELD };
  try {
    return generations.plan(ctx, "transcription", name, {}, () => expected);
  } catch (error) {
    if (error instanceof AppError && error.param === "model") throw invalidInput(error.message, param);
    throw error;
  }
}

async function transcribersBeside(session: TranscribedSession): Promise<readonly string[]> {
  const models = await session.catalog.list(session.ctx, { modalities: ["transcription"] });
  return models.filter((model) => routeBeside(session, model) !== null).map(({ id }) => id);
}

/** The model's route by the upstream and key of the session; null: none. */
function routeBeside({ answering }: TranscribedSession, { routes }: Model): Route | null {
  return routes.find(({ keyId }) => keyId === answering.route.keyId) ?? null;
}

function servedBeside(session: TranscribedSession, model: Model): Candidate {
  return { model, route: routeBeside(session, model) ?? session.answering.route };
}
