/**
 * The meter of a realtime session: reported usage, and counted output of responses under way, in case no report follows. A response reads
 * everything said before it, so its input is known before it begins.
 */
import { RecentIds } from "../../../lib/bounded.js";
import { isRecord } from "../../../lib/json.js";
import { ownValue } from "../../../lib/own-values.js";
import { countTextTokens } from "../../../lib/tokenizer.js";
import { amountsOf, NO_USAGE, USAGE_AMOUNT_MAX, USAGE_KINDS, type UsageQuantities } from "../../../lib/usage.js";
import { base64Bytes, PCM_BYTES_PER_SECOND, type RealtimeReading, type RealtimeUsage } from "../../../providers/openai/realtime-events.js";
import type { Metered } from "../metered.js";
import { boundInput, boundOutput, inputTokensOf, outputTokensOf, PICTURE_TOKENS_MOST, promptTokensMost } from "../plausible.js";
import { RealtimeAudioBuffer } from "./audio-buffer.js";
import { type EventReader, readEvent } from "./event-texts.js";

/** OpenAI's measure: an input token is 100 ms of audio, an output token 50 ms. */
export const INPUT_MS_PER_TOKEN = 100;
const OUTPUT_TOKENS_PER_SECOND = 20;
/** An image of 1024 x 1024 in high detail, as the tokenizer counts it. */
const IMAGE_TOKENS = 765;
/** Upper bounds for vendors that count unlike OpenAI: 32 tokens per second of audio (Google), and the most for an image. */
const AUDIO_FACTOR_MOST = 3.2;
const IMAGE_FACTOR_MOST = PICTURE_TOKENS_MOST / 2 / IMAGE_TOKENS;
/** A report of this fraction of the delivered output may be right, because vendors count differently. */
const DELIVERED_PART = 2;
/** Remembered reports, so that a repeated one counts once. */
export const REPORTS_REMEMBERED = 1_000;
/** Number of requested responses that are held for until they begin or are refused. */
const ASKED_MAX = 16;

interface AnswerUnderWay {
  readonly input: UsageQuantities;
  readonly texts: string[];
  /** All texts counted piece by piece: cheap, and never below the exact count. */
  textTokensMax: number;
  audioBytes: number;
  /** A report before its end. */
  reported: UsageQuantities | null;
  isGivenUp: boolean;
}

/** Upper bounds of a report. */
export interface RealtimeBounds {
  /** Most output tokens of one response; null: unknown. */
  readonly outputMost: number | null;
}

type TextCount = (answer: AnswerUnderWay) => number;
const exactly: TextCount = ({ texts }) => (texts.length === 0 ? 0 : countTextTokens(texts.join("")));
const atMost: TextCount = ({ textTokensMax }) => textTokensMax;

export class RealtimeMeter {
  readonly buffer = new RealtimeAudioBuffer();
  private readonly context = new Context();
  private readonly answers = new Map<string, AnswerUnderWay>();
  /** Requested responses that have not begun, by the requesting events' ids. */
  private asked: readonly unknown[] = [];
  private reported: UsageQuantities = NO_USAGE;
  private readonly reports = new RecentIds(REPORTS_REMEMBERED);
  private isEstimated = false;
  private beyond: UsageQuantities | null = null;
  private hasWork = false;
  private outputBytesPerSecond = PCM_BYTES_PER_SECOND;
  /** The client's limits on output tokens: that of the session, and the largest of single responses. */
  private sessionCap: number | null = null;
  private answerCap = 0;
  /** A response may come without a limit of its own: it was requested so, or speech may begin one. */
  private isUncapped = false;

  /** `bounds`: null where reports are believed. */
  constructor(private readonly bounds: RealtimeBounds | null = null) {}

  get isUnderWay(): boolean {
    return this.answers.size > 0;
  }

  get hasUsage(): boolean {
    return this.hasWork;
  }

  /** Responses that have not ended, by id; empty ids are those without one. */
  get awaited(): readonly string[] {
    const begun = [...this.answers].filter(([, { isGivenUp }]) => !isGivenUp).map(([id]) => id);
    return this.asked.length > 0 && !begun.includes("") ? [...begun, ""] : begun;
  }

  readUpstream(reading: RealtimeReading): void {
    switch (reading.kind) {
      case "session":
        this.buffer.bytesPerSecond = reading.session.inputBytesPerSecond ?? this.buffer.bytesPerSecond;
        this.outputBytesPerSecond = reading.session.outputBytesPerSecond ?? this.outputBytesPerSecond;
        break;
      case "created":
        this.answer(reading.responseId);
        break;
      case "delta":
        this.addDelta(this.answer(reading.responseId), reading.text, reading.audioBytes);
        break;
      case "done":
        this.finish(reading.responseId, reading.status, reading.usage);
        break;
      case "usage":
        this.addReport(reading.responseId, reading.reportId, reading.usage);
        break;
      case "speech":
        this.buffer.noteSpeech(reading);
        break;
      case "cleared":
        this.buffer.clear();
        break;
    }
  }

  /** Returns the length of the item in milliseconds. */
  commit(): number {
    const milliseconds = this.buffer.commit();
    this.context.add({ audio: Math.ceil(milliseconds / INPUT_MS_PER_TOKEN) });
    return milliseconds;
  }

  readCaller(event: Readonly<Record<string, unknown>>): void {
    if (event.type === "response.create") this.asked = [...this.asked, event.event_id].slice(-ASKED_MAX);
    this.readCaps(event);
    if (event.type === "input_audio_buffer.append") {
      if (typeof event.audio === "string") this.buffer.append(base64Bytes(event.audio));
      return;
    }
    const count = new EventCount();
    readEvent(event, count);
    const audio = Math.ceil(this.buffer.toMilliseconds(count.audioBytes) / INPUT_MS_PER_TOKEN);
    this.context.add({ text: count.textTokens, audio, images: count.images * IMAGE_TOKENS });
  }

  /** The event with this id requests no response after all: it was refused or not sent. Null: the first requesting one. */
  withdrawRequest(eventId: unknown): void {
    const at = eventId === null ? 0 : this.asked.indexOf(eventId);
    if (at !== -1) this.asked = this.asked.toSpliced(at, 1);
  }

  /** Usage outside of responses, at the session's price; only the first report with this id counts. */
  report(reportId: string | null, usage: RealtimeUsage): void {
    if (reportId !== null && !this.reports.add(reportId)) return;
    this.hasWork = true;
    const quantities = toQuantities(usage);
    this.reported = addUsage(
      this.reported,
      this.bounds ? this.bound(quantities, this.context.next(), Number.POSITIVE_INFINITY) : quantities,
    );
  }

  /** The upstream has no such response under way: the delivered part is all. */
  giveUp(responseId: string): void {
    const answer = this.answers.get(responseId);
    if (answer) answer.isGivenUp = true;
    if (responseId === "") this.asked = [];
  }

  /** As if the session ended now. */
  soFar(): Metered {
    const quantities = this.sum(exactly, 0);
    if (this.beyond !== null) return { quantities, source: "bounded", reported: addUsage(quantities, this.beyond) };
    if (this.isUnderWay) return { quantities, source: "partial" };
    return { quantities, source: this.isEstimated ? "estimated" : "provider" };
  }

  /** With requested responses: the amount to hold before more is sent. */
  atRisk(): UsageQuantities {
    return this.sum(exactly, this.asked.length);
  }

  /** As `atRisk`, cheap and possibly high. */
  atRiskMax(): UsageQuantities {
    return this.sum(atMost, this.asked.length);
  }

  private sum(count: TextCount, asked: number): UsageQuantities {
    let sum = this.reported;
    for (const answer of this.answers.values()) sum = addUsage(sum, this.soFarOf(answer, count));
    for (let left = asked; left > 0; left -= 1) sum = addUsage(sum, this.context.next());
    return sum;
  }

  private answer(id: string): AnswerUnderWay {
    const known = this.answers.get(id);
    if (known) return known;
    this.asked = this.asked.slice(1);
    const input = this.context.next();
    const begun = { input, texts: [], textTokensMax: 0, audioBytes: 0, reported: null, isGivenUp: false };
    this.answers.set(id, begun);
    return begun;
  }

  private addDelta(answer: AnswerUnderWay, text: string, audioBytes: number): void {
    this.hasWork = true;
    if (text !== "") {
      answer.texts.push(text);
      answer.textTokensMax += countTextTokens(text);
    }
    answer.audioBytes += audioBytes;
  }

  private addReport(responseId: string, reportId: string | null, usage: RealtimeUsage): void {
    if (responseId === "") {
      this.report(reportId, usage);
    } else if (!this.reports.has(idOfResponse(responseId))) {
      this.hasWork = true;
      const answer = this.answer(responseId);
      const quantities = toQuantities(usage);
      answer.reported = this.bounds ? this.bound(quantities, answer.input) : quantities;
    }
  }

  private finish(id: string, status: string, usage: UsageQuantities | null): void {
    // Some upstreams omit the response's id.
    const begunAs = this.answers.has(id) ? id : "";
    const answer = this.answers.get(begunAs);
    if (!answer) this.asked = this.asked.slice(1);
    this.answers.delete(begunAs);
    const isFirst = id === "" || this.reports.add(idOfResponse(id));
    // A response that begins again is another one, as some upstreams reuse ids.
    if (!isFirst && !answer) return;
    const hasFailed = status === "failed";
    // A response that failed before any output is the upstream's error and free, even with reported usage.
    if (hasFailed && !isDelivered(answer)) return;
    this.hasWork = true;
    const input = answer?.input ?? this.context.next();
    const final = this.finalOf(answer, input, hasFailed ? null : usage);
    this.reported = addUsage(this.reported, final);
    this.context.read(input, final);
  }

  /** A final report is believed unless it is clearly below the delivered output; an earlier one must not be below it. */
  private finalOf(answer: AnswerUnderWay | undefined, input: UsageQuantities, usage: UsageQuantities | null): UsageQuantities {
    if (usage !== null && this.believes(answer, usage)) return this.bounds ? this.bound(usage, input) : usage;
    const final = answer ? this.soFarOf(answer, exactly) : this.counted(null, exactly);
    if (final !== answer?.reported) this.isEstimated = true;
    return final;
  }

  private believes(answer: AnswerUnderWay | undefined, usage: UsageQuantities): boolean {
    if (!this.bounds || !answer || !isDelivered(answer)) return true;
    const reported = outputTokensOf(usage);
    // Some vendors do not count a transcript beside the audio.
    const delivered = Math.max(exactly(answer), this.soundTokens(answer));
    return reported > 0 && reported * DELIVERED_PART >= delivered;
  }

  /** The larger of its last report and the count. */
  private soFarOf(answer: AnswerUnderWay, count: TextCount): UsageQuantities {
    const { reported } = answer;
    const counted = this.counted(answer, count);
    if (reported === null || (this.bounds && outputTokensOf(reported) < outputTokensOf(counted))) return counted;
    return reported;
  }

  private bound(usage: UsageQuantities, input: UsageQuantities, outputMost = this.outputMost): UsageQuantities {
    const { inputCachedTokens, inputTextTokens, inputAudioTokens, inputImageTokens } = input;
    const media = inputAudioTokens * AUDIO_FACTOR_MOST + inputImageTokens * IMAGE_FACTOR_MOST;
    const promptMost = promptTokensMost(Math.ceil(inputCachedTokens + inputTextTokens + media));
    const bound = amountsOf(boundOutput(boundInput(usage, promptMost), outputMost));
    if (inputTokensOf(bound) < inputTokensOf(usage) || outputTokensOf(bound) < outputTokensOf(usage)) {
      this.beyond = addUsage(this.beyond ?? NO_USAGE, lessOf(usage, bound));
    }
    return bound;
  }

  private get outputMost(): number {
    const own = this.bounds?.outputMost ?? Number.POSITIVE_INFINITY;
    if (this.sessionCap === null && (this.isUncapped || this.answerCap === 0)) return own;
    return Math.min(own, Math.max(this.sessionCap ?? 0, this.answerCap));
  }

  private readCaps({ type, session, response }: Readonly<Record<string, unknown>>): void {
    if (isRecord(session)) this.sessionCap = capIn(session) ?? this.sessionCap;
    const cap = isRecord(response) ? capIn(response) : null;
    this.answerCap = Math.max(this.answerCap, cap ?? 0);
    if (type === "input_audio_buffer.append" || (type === "response.create" && cap === null)) this.isUncapped = true;
  }

  private counted(answer: AnswerUnderWay | null, count: TextCount): UsageQuantities {
    const input = answer?.input ?? this.context.next();
    if (!answer) return input;
    return { ...input, outputTextTokens: count(answer), outputAudioTokens: this.soundTokens(answer) };
  }

  private soundTokens({ audioBytes }: AnswerUnderWay): number {
    return Math.ceil((audioBytes / this.outputBytesPerSecond) * OUTPUT_TOKENS_PER_SECOND);
  }
}

function isDelivered(answer: AnswerUnderWay | undefined): boolean {
  return answer !== undefined && (answer.texts.length > 0 || answer.audioBytes > 0);
}

/** Output token limit of a session or response, by its general and beta name; "inf" is none. */
function capIn({ max_output_tokens: general, max_response_output_tokens: beta }: Readonly<Record<string, unknown>>): number | null {
  const stated = general ?? beta;
  return typeof stated === "number" && Number.isInteger(stated) && stated > 0 ? stated : null;
}

interface Said {
  readonly text?: number;
  readonly audio?: number;
  readonly images?: number;
}

/** The next response's input: the cached part, which an earlier response read or wrote, and the part since then. */
class Context {
  private known = 0;
  private fresh = { text: 0, audio: 0, images: 0 };

  add({ text = 0, audio = 0, images = 0 }: Said): void {
    this.fresh = { text: this.fresh.text + text, audio: this.fresh.audio + audio, images: this.fresh.images + images };
  }

  next(): UsageQuantities {
    const { text, audio, images } = this.fresh;
    return { ...NO_USAGE, inputCachedTokens: this.known, inputTextTokens: text, inputAudioTokens: audio, inputImageTokens: images };
  }

  /** `expected` is the result of `next` when the response began: everything said since then is still unread. */
  read(expected: UsageQuantities, final: UsageQuantities): void {
    this.fresh = {
      text: Math.max(0, this.fresh.text - expected.inputTextTokens),
      audio: Math.max(0, this.fresh.audio - expected.inputAudioTokens),
      images: Math.max(0, this.fresh.images - expected.inputImageTokens),
    };
    const input = final.inputTextTokens + final.inputCachedTokens + final.inputAudioTokens + final.inputImageTokens;
    this.known = input + final.outputTextTokens + final.outputAudioTokens;
  }
}

function idOfResponse(id: string): string {
  return `response:${id}`;
}

function lessOf(a: UsageQuantities, b: UsageQuantities): UsageQuantities {
  const rest = amountsOf(a);
  for (const kind of USAGE_KINDS) rest[kind] = Math.max(0, a[kind] - b[kind]);
  return rest;
}

/** Sums are capped at a usage row's maximum. */
function addUsage(a: UsageQuantities, b: UsageQuantities): UsageQuantities {
  const sum = { ...NO_USAGE };
  for (const kind of Object.keys(sum) as (keyof UsageQuantities)[]) sum[kind] = Math.min(a[kind] + b[kind], USAGE_AMOUNT_MAX);
  return sum;
}

/** Length is converted to audio tokens. */
function toQuantities(usage: RealtimeUsage): UsageQuantities {
  if (usage.type === "tokens") return usage.quantities;
  return { ...NO_USAGE, inputAudioTokens: Math.ceil(usage.milliseconds / INPUT_MS_PER_TOKEN) };
}

/** Counts an event's content, as far as possible. */
class EventCount implements EventReader {
  textTokens = 0;
  images = 0;
  audioBytes = 0;

  text(text: string): void {
    this.textTokens += countTextTokens(text);
  }

  declarations(declared: readonly unknown[]): void {
    if (declared.length > 0) this.textTokens += countTextTokens(JSON.stringify(declared));
  }

  media(part: Readonly<Record<string, unknown>>, key: string): void {
    if (key === "image_url") this.images += 1;
    else this.audioBytes += base64Bytes(String(ownValue(part, key)));
  }

  field(): void {
    // Read by the upstream, not by the model.
  }
}
