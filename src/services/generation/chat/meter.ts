/**
 * The chat meter reads an answer on its way to the caller: what has been delivered, and what the upstream
 * reports (docs/architecture.md#meter).
 */
import type { ChatBody, ChatCompletion, ChatDelta } from "../../../lib/chat-format.js";
import { countTextTokens } from "../../../lib/tokenizer.js";
import { NO_USAGE, type ReportedUsage, type UsageQuantities } from "../../../lib/usage.js";
import type { ChatAnswer, ChatChunk } from "../../../providers/provider.js";
import type { Model } from "../../catalog/model.js";
import { costOf, type RateCard } from "../../catalog/pricing.js";
import type { UsageSource } from "../receipt.js";
import type { GenerationRun } from "../run.js";
import type { ChatPlan } from "./plan.js";

/** A token of any text has at least about this many characters on average: dividing by it never counts too few. */
const CHARS_PER_TOKEN_MIN = 2;
/** OpenAI's "Audio and speech": a token of sound that a model makes is 50 ms; streamed sound is 16-bit mono at 24 kHz. */
const SOUND_TOKENS_PER_SECOND = 20;
const PCM_BYTES_PER_SECOND = 48_000;
const BYTES_PER_BASE64_CHAR = 0.75;
/** Unspecified: what the compressed formats usually take. */
const SOUND_BYTES_PER_SECOND: ReadonlyMap<unknown, number> = new Map([
  ["mp3", 16_000],
  ["aac", 16_000],
  ["opus", 6_000],
  ["flac", 24_000],
]);
/** Unspecified: Google's count of one picture of 1024 x 1024, for an upstream that does not say. */
const TOKENS_PER_PICTURE = 1_290;

export interface MeteredUsage {
  readonly usage: ReportedUsage;
  readonly source: UsageSource;
}

export class ChatMeter {
  private reported: ReportedUsage | null = null;
  private readonly text = new DeliveredText();
  private readonly reasoning = new DeliveredText();
  private soundChars = 0;
  private pictures = 0;

  constructor(
    private readonly promptTokens: number,
    /** The request: it names the format of sound. */
    private readonly body: ChatBody = {},
  ) {}

  read(chunk: ChatChunk): void {
    if (chunk.text !== undefined) {
      this.text.add(chunk.text);
      return;
    }
    if (chunk.usage) this.reported = chunk.usage;
    for (const choice of chunk.object.choices ?? []) if (choice.delta) this.readDelta(choice.delta);
  }

  /** A report of somebody who is not believed in everything is `isChecked`: the answer is read all the same. */
  readCompletion(completion: ChatCompletion, usage: ReportedUsage | null, isChecked = false): void {
    this.reported = usage;
    if (usage && !isChecked) return;
    for (const choice of completion.choices ?? []) if (choice.message) this.readDelta(choice.message);
  }

  get hasOutput(): boolean {
    return this.text.chars + this.reasoning.chars + this.soundChars + this.pictures > 0;
  }

  /** More output tokens than this have not been delivered; cheap. */
  get outputTokensMax(): number {
    return this.text.tokensMax + this.reasoning.tokensMax + this.soundTokens + this.pictures * TOKENS_PER_PICTURE;
  }

  /** What has been delivered, counted piece by piece: cheap however long the stream is, and a little high. */
  soFar(): UsageQuantities {
    return this.counted(this.text.countGrowth(), this.reasoning.countGrowth());
  }

  /** What has been delivered, counted as a whole. */
  delivered(): UsageQuantities {
    return this.counted(this.text.countWhole(), this.reasoning.countWhole());
  }

  /** Of an answer that came to its end: the upstream's report, else counted and never 0 for lack of one. */
  complete(): MeteredUsage {
    if (this.reported) return { usage: this.reported, source: "provider" };
    return { usage: this.delivered(), source: "estimated" };
  }

  /** Of an answer that was cut short. */
  partial(): MeteredUsage {
    if (this.reported) return { usage: this.reported, source: "provider" };
    return { usage: this.delivered(), source: "partial" };
  }

  private counted(outputTextTokens: number, outputReasoningTokens: number): UsageQuantities {
    const outputImageTokens = this.pictures * TOKENS_PER_PICTURE;
    const outputAudioTokens = this.soundTokens;
    return {
      ...NO_USAGE,
      inputTextTokens: this.promptTokens,
      outputTextTokens,
      outputReasoningTokens,
      outputAudioTokens,
      outputImageTokens,
    };
  }

  /** By how long it plays. */
  private get soundTokens(): number {
    if (this.soundChars === 0) return 0;
    const { audio } = this.body;
    const format = typeof audio === "object" && audio !== null && "format" in audio ? audio.format : null;
    const bytesPerSecond = SOUND_BYTES_PER_SECOND.get(format) ?? PCM_BYTES_PER_SECOND;
    return Math.ceil((this.soundChars * BYTES_PER_BASE64_CHAR * SOUND_TOKENS_PER_SECOND) / bytesPerSecond);
  }

  /** Everything in a delta that an upstream bills as output: text, refusals, reasoning, tool calls, sound, pictures. */
  private readDelta(delta: ChatDelta): void {
    const { audio, images } = delta;
    if (typeof audio === "object" && audio !== null) {
      if ("data" in audio && typeof audio.data === "string") this.soundChars += audio.data.length;
      if ("transcript" in audio) this.text.add(audio.transcript);
    }
    if (Array.isArray(images)) this.pictures += images.length;
    this.text.add(delta.content);
    this.text.add(delta.refusal);
    // Upstreams name it one way or the other; some send both.
    this.reasoning.add(delta.reasoning_content ?? delta.reasoning);
    for (const call of delta.tool_calls ?? []) {
      this.text.add(call.function?.name);
      this.text.add(call.function?.arguments);
      this.text.add(call.custom?.input);
    }
  }
}

/** The pieces of one kind of output, and how many tokens they make. */
class DeliveredText {
  chars = 0;
  private readonly pieces: string[] = [];
  private countedPieces = 0;
  private countedChars = 0;
  private countedTokens = 0;

  get tokensMax(): number {
    return this.countedTokens + Math.ceil((this.chars - this.countedChars) / CHARS_PER_TOKEN_MIN);
  }

  /** Takes a string, or content parts of which some hold text. */
  add(value: unknown): void {
    if (typeof value === "string" && value !== "") {
      this.pieces.push(value);
      this.chars += value.length;
    } else if (Array.isArray(value)) {
      for (const part of value) if (part && typeof part === "object" && "text" in part) this.add(part.text);
    }
  }

  countGrowth(): number {
    if (this.countedPieces < this.pieces.length) this.countedTokens += countTextTokens(this.pieces.slice(this.countedPieces).join(""));
    this.countedPieces = this.pieces.length;
    this.countedChars = this.chars;
    return this.countedTokens;
  }

  countWhole(): number {
    return this.chars === 0 ? 0 : countTextTokens(this.pieces.join(""));
  }
}

// How much of a chat's answer may be passed on for what is held, which what was delivered extends.

/** How far an answer may be beyond its hold before that is looked into, in hundredths: tokenizers differ by so much. */
const TOLERANCE_PERCENT = 125n;

export function isFarBeyond(costNanocredits: bigint, heldNanocredits: bigint): boolean {
  return costNanocredits * 100n > heldNanocredits * TOLERANCE_PERCENT;
}

/**
 * An answer that came whole and costs more than is held for it: more is held for what was delivered, as a stream of the same length would
 * have asked for it as it came; of an account's upstream nothing beyond what the caller stated. Resolves with the tokens that may be
 * passed on when that is not all of them, else with null.
 */
export async function holdDelivered(
  plan: ChatPlan,
  run: GenerationRun,
  model: Model,
  answer: ChatAnswer,
  metered: MeteredUsage,
): Promise<number | null> {
  if (plan.isFree) return null;
  const { rates } = plan.model;
  const delivered = () => deliveredBy(plan, answer);
  const cost = costOf(model.isCommunity ? delivered() : metered.usage, rates);
  const isExact = model.isCommunity && !plan.isCapped;
  const isWithin = () => (isExact ? cost <= run.heldNanocredits : !isFarBeyond(cost, run.heldNanocredits));
  if (isWithin()) return null;
  if (!(model.isCommunity && plan.isCapped)) await run.meter(model, cost, false, () => metered.usage);
  if (isWithin()) return null;
  const visible = delivered();
  const visibleCost = costOf(visible, rates) - costOf({ ...visible, outputTextTokens: 0, outputReasoningTokens: 0 }, rates);
  const left = run.heldNanocredits - (cost - visibleCost);
  const tokens = visible.outputTextTokens + visible.outputReasoningTokens;
  return left <= 0n || visibleCost === 0n ? 0 : Number((BigInt(tokens) * left) / visibleCost);
}

/** What can be seen of an answer, whatever is reported of it. */
function deliveredBy({ promptTokens, body }: ChatPlan, { completion }: ChatAnswer): UsageQuantities {
  const meter = new ChatMeter(promptTokens, body);
  meter.readCompletion(completion, null);
  return meter.delivered();
}

/** What is learned of a model's answers: of an account's upstream what it has written, whatever it says. */
export function outputTokensOf(model: Model, meter: ChatMeter, reported: UsageQuantities): number {
  const { outputTextTokens, outputReasoningTokens } = model.isCommunity ? meter.soFar() : reported;
  return outputTextTokens + outputReasoningTokens;
}

export function outputTokens({ outputTextTokens, outputReasoningTokens, outputAudioTokens, outputImageTokens }: UsageQuantities): number {
  return outputTextTokens + outputReasoningTokens + outputAudioTokens + outputImageTokens;
}

/** How many of the tokens that came are not paid for by so much. */
export function tokensBeyond(usage: UsageQuantities, held: bigint, rates: RateCard): number {
  const cost = costOf(usage, rates);
  const outputCost = cost - costOf({ ...usage, ...NO_OUTPUT }, rates);
  if (cost <= held || outputCost === 0n) return 0;
  return Number((BigInt(outputTokens(usage)) * (cost - held) + outputCost - 1n) / outputCost);
}

const NO_OUTPUT = { outputTextTokens: 0, outputReasoningTokens: 0, outputAudioTokens: 0, outputImageTokens: 0 };
