/** The chat meter reads an answer on its way to the client: delivered output, and the upstream's report (docs/architecture.md#meter). */
import { type ChatBody, type ChatCompletion, type ChatDelta, reasoningIn } from "../../../formats/openai-chat/schema.js";
import type { ChatChunk } from "../../../formats/openai-chat/stream.js";
import { isRecord } from "../../../lib/json.js";
import { countTextTokens } from "../../../lib/tokenizer.js";
import { NO_USAGE, type ReportedUsage, type UsageQuantities } from "../../../lib/usage.js";
import type { ChatAnswer } from "../../../providers/provider.js";
import type { Model } from "../../catalog/model.js";
import { costOf, type RateCard } from "../../catalog/pricing.js";
import { chargedRates } from "../planned-charge.js";
import { boundInput, boundOutput, inputTokensOf, outputTokensOf, promptTokensMost } from "../plausible.js";
import type { UsageSource } from "../receipt.js";
import type { Candidate } from "../routing/candidate.js";
import type { GenerationRun } from "../run.js";
import type { ChatPlan } from "./planned.js";
import { type Plausible, UNBOUNDED } from "./plausible.js";

/** Fewest average characters per token: dividing by it never counts too few tokens. */
const CHARS_PER_TOKEN_MIN = 2;

/** OpenAI's "Audio and speech": a generated audio token is 50 ms; streamed audio is 16-bit mono at 24 kHz. */
const SOUND_TOKENS_PER_SECOND = 20;
const PCM_BYTES_PER_SECOND = 48_000;
const BYTES_PER_BASE64_CHAR = 0.75;
/** Unspecified: usual bitrates of compressed formats. */
const SOUND_BYTES_PER_SECOND: ReadonlyMap<unknown, number> = new Map([
  ["mp3", 16_000],
  ["aac", 16_000],
  ["opus", 6_000],
  ["flac", 24_000],
]);
/** Unspecified: Google's count of an image of 1024 x 1024, for an upstream without a report. */
const TOKENS_PER_PICTURE = 1_290;

export interface MeteredUsage {
  readonly usage: ReportedUsage;
  readonly source: UsageSource;
  /** The report as received, to pass on unchanged. */
  readonly report?: unknown;
  /** The reported usage, where it exceeded the plausible amounts. */
  readonly reported?: ReportedUsage | undefined;
  /** What the gateway counted, where a report is charged. */
  readonly counted?: (() => ReportedUsage) | undefined;
}

/** An upstream's report, which covers the output delivered until then. */
interface Report {
  readonly usage: ReportedUsage;
  readonly raw: unknown;
  /** See `ChatMeter.delivery`. */
  readonly delivery: number;
}

/** Vocabularies differ: a report of this fraction of our count, or this many tokens less, may still be right. */
const VOCABULARY_PART = 2;
const VOCABULARY_TOKENS = 8;
/** Usual characters per token: a report of at least this density need not be compared with a count. */
const CHARS_PER_TOKEN_LIKELY = 6;
/** Unspecified: a model whose report exceeds its visible output by this factor and this many tokens has hidden reasoning. */
const HIDDEN_FACTOR = 2;
const HIDDEN_TOKENS_MIN = 100;
/** OpenAI's largest image in high quality is 6,240 tokens, and grows with its area. */
const TOKENS_PER_PICTURE_MOST = 16_640;

export class ChatMeter {
  private last: Report | null = null;
  /** The largest of earlier reports: running totals do not shrink. */
  private largest: Report | null = null;
  private readonly text = new DeliveredText();
  private readonly reasoning = new DeliveredText();
  private soundChars = 0;
  private pictures = 0;

  constructor(
    private readonly promptTokens: number,
    /** The request, which names the audio format. */
    private readonly body: ChatBody = {},
  ) {}

  read(chunk: ChatChunk): void {
    if (chunk.text !== undefined) {
      this.text.add(chunk.text);
      return;
    }
    for (const choice of chunk.object.choices ?? []) if (choice.delta) this.readDelta(choice.delta);
    if (chunk.usage) this.addReport(chunk.usage, chunk.report);
  }

  readCompletion(completion: ChatCompletion, usage: ReportedUsage | null): void {
    for (const choice of completion.choices ?? []) if (choice.message) this.readDelta(choice.message);
    if (usage) this.addReport(usage, completion.usage);
  }

  get hasOutput(): boolean {
    return this.delivery > 0;
  }

  /** An upper bound on delivered output tokens; cheap. */
  get outputTokensMax(): number {
    return this.text.tokensMax + this.reasoning.tokensMax + this.soundTokens + this.pictures * TOKENS_PER_PICTURE;
  }

  /** Counted by piece: cheap for any length, and slightly high. */
  soFar(): UsageQuantities {
    return this.counted(this.text.countGrowth(), this.reasoning.countGrowth());
  }

  delivered(): UsageQuantities {
    return this.counted(this.text.countWhole(), this.reasoning.countWhole());
  }

  /** Usage of a finished answer: the upstream's report as far as it is believed, else the counted output. */
  complete(plausible: Plausible | null = UNBOUNDED): MeteredUsage {
    return this.metered("estimated", plausible);
  }

  partial(plausible: Plausible | null = UNBOUNDED): MeteredUsage {
    return this.metered("partial", plausible);
  }

  get hidesOutput(): boolean {
    if (this.last === null) return false;
    const { outputTextTokens, outputReasoningTokens } = this.last.usage;
    const reported = outputTextTokens + outputReasoningTokens - HIDDEN_TOKENS_MIN;
    if (reported <= this.text.tokensMax + this.reasoning.tokensMax) return false;
    return reported > HIDDEN_FACTOR * (this.text.countWhole() + this.reasoning.countWhole());
  }

  /** Grows with everything delivered. */
  private get delivery(): number {
    return this.text.chars + this.reasoning.chars + this.soundChars + this.pictures;
  }

  private addReport(usage: ReportedUsage, raw: unknown): void {
    const { last, largest } = this;
    if (last !== null && (largest === null || tokensIn(last) > tokensIn(largest))) this.largest = last;
    this.last = { usage, raw, delivery: this.delivery };
  }

  private metered(countedAs: UsageSource, plausible: Plausible | null): MeteredUsage {
    const { last } = this;
    if (last === null) return { usage: this.delivered(), source: countedAs };
    if (plausible === null) return { usage: last.usage, source: "provider", report: last.raw, counted: () => this.delivered() };
    const believed = this.believes(last) ? last : this.largest !== null && this.believes(this.largest) ? this.largest : null;
    if (believed === null) return this.bound(this.deliveredFor(), countedAs, plausible);
    const isPromptCounted = countedAs === "partial" && inputTokensOf(believed.usage) === 0;
    const usage = isPromptCounted ? { ...believed.usage, inputTextTokens: this.promptTokens } : believed.usage;
    const source = isPromptCounted && outputTokensOf(usage) === 0 ? countedAs : "provider";
    return this.bound(usage, source, plausible, isPromptCounted ? undefined : believed.raw);
  }

  /**
   * A report before later output must not be below the delivered output; one that covers everything must not be clearly below it. Zeros are
   * never believed.
   */
  private believes({ usage, delivery }: Report): boolean {
    if (!this.hasOutput) return true;
    const reported = outputTokensOf(usage);
    if (reported === 0) return false;
    const chars = this.text.chars + this.reasoning.chars;
    if (delivery < this.delivery)
      return reported >= chars + this.soundTokens + this.pictures * TOKENS_PER_PICTURE || reported >= outputTokensOf(this.delivered());
    if (reported * CHARS_PER_TOKEN_LIKELY >= chars) return true;
    const counted = this.text.countWhole() + this.reasoning.countWhole();
    return reported * VOCABULARY_PART >= counted || reported + VOCABULARY_TOKENS >= counted;
  }

  /** The prompt's part of reports may be right even if none is believed. */
  private deliveredFor(): ReportedUsage {
    const { last, largest, promptTokens } = this;
    const counted = this.delivered();
    const report = [last, largest].find((each) => each !== null && inputTokensOf(each.usage) * VOCABULARY_PART >= promptTokens);
    return report ? { ...report.usage, ...outputOf(counted) } : counted;
  }

  private bound(usage: ReportedUsage, source: UsageSource, plausible: Plausible, report?: unknown): MeteredUsage {
    let bound = usage;
    if (inputTokensOf(usage) > promptTokensMost(this.promptTokens)) bound = boundInput(bound, plausible.promptMost());
    if (source === "provider" && outputTokensOf(usage) > plausible.outputMost) bound = boundOutput(bound, this.outputMost(plausible));
    const counted = () => this.delivered();
    return bound === usage ? { usage, source, report, counted } : { usage: bound, source: "bounded", reported: usage, counted };
  }

  /** Delivered output counts, even beyond the upstream's limit. */
  private outputMost({ outputMost }: Plausible): number {
    const delivered = (BigInt(outputTokensOf(this.delivered())) * TOLERANCE_PERCENT) / 100n;
    return Math.max(outputMost + this.pictures * TOKENS_PER_PICTURE_MOST, Number(delivered));
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

  /** By duration. */
  private get soundTokens(): number {
    if (this.soundChars === 0) return 0;
    const { audio } = this.body;
    const format = typeof audio === "object" && audio !== null && "format" in audio ? audio.format : null;
    const bytesPerSecond = SOUND_BYTES_PER_SECOND.get(format) ?? PCM_BYTES_PER_SECOND;
    return Math.ceil((this.soundChars * BYTES_PER_BASE64_CHAR * SOUND_TOKENS_PER_SECOND) / bytesPerSecond);
  }

  /** Reads everything in a delta that upstreams bill as output: text, refusals, reasoning, tool calls, audio, images. */
  private readDelta(delta: ChatDelta): void {
    const { audio, images } = delta;
    if (typeof audio === "object" && audio !== null) {
      if ("data" in audio && typeof audio.data === "string") this.soundChars += audio.data.length;
      if ("transcript" in audio) this.text.add(audio.transcript);
    }
    if (Array.isArray(images)) this.pictures += images.length;
    this.text.add(delta.content);
    if (Array.isArray(delta.content)) for (const part of delta.content) if (isRecord(part)) this.reasoning.add(part.thinking);
    this.text.add(delta.refusal);
    this.reasoning.add(reasoningIn(delta));
    for (const call of delta.tool_calls ?? []) {
      this.text.add(call.function?.name);
      this.text.add(call.function?.arguments);
      this.text.add(call.custom?.input);
    }
    if (isRecord(delta.function_call)) {
      this.text.add(delta.function_call.name);
      this.text.add(delta.function_call.arguments);
    }
  }
}

class DeliveredText {
  chars = 0;
  private readonly pieces: string[] = [];
  private countedPieces = 0;
  private countedChars = 0;
  private countedTokens = 0;

  get tokensMax(): number {
    return this.countedTokens + Math.ceil((this.chars - this.countedChars) / CHARS_PER_TOKEN_MIN);
  }

  /** Adds a string, or content parts of which some have text. */
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

// How much of an answer may be passed on for its hold, which is extended for delivered output.

/** Percentage of the hold beyond which an answer is checked: tokenizers differ by that much. */
const TOLERANCE_PERCENT = 125n;

export function isFarBeyond(costNanocredits: bigint, heldNanocredits: bigint): boolean {
  return costNanocredits * 100n > heldNanocredits * TOLERANCE_PERCENT;
}

/**
 * Extends the hold for a whole answer that costs more, as a stream of the same length would have; for community models not beyond the
 * request's limit. Resolves with the tokens that may be passed on, or null for all.
 */
export async function holdDelivered(
  plan: ChatPlan,
  run: GenerationRun,
  served: Candidate,
  answer: ChatAnswer,
  metered: MeteredUsage,
): Promise<number | null> {
  if (plan.isFree) return null;
  const rates = chargedRates(plan, served);
  const { model } = served;
  const delivered = () => deliveredBy(plan, answer);
  const cost = costOf(model.isCommunity ? delivered() : metered.usage, rates);
  const isExact = model.isCommunity && !plan.isCapped;
  const isWithin = () => (isExact ? cost <= run.heldNanocredits : !isFarBeyond(cost, run.heldNanocredits));
  if (isWithin()) return null;
  if (!(model.isCommunity && plan.isCapped)) await run.meter(served, cost, false, () => metered.usage);
  if (isWithin()) return null;
  const visible = delivered();
  const visibleCost = costOf(visible, rates) - costOf({ ...visible, outputTextTokens: 0, outputReasoningTokens: 0 }, rates);
  const left = run.heldNanocredits - (cost - visibleCost);
  const tokens = visible.outputTextTokens + visible.outputReasoningTokens;
  return left <= 0n || visibleCost === 0n ? 0 : Number((BigInt(tokens) * left) / visibleCost);
}

function deliveredBy({ promptTokens, body }: ChatPlan, { completion }: ChatAnswer): UsageQuantities {
  const meter = new ChatMeter(promptTokens, body);
  meter.readCompletion(completion, null);
  return meter.delivered();
}

/** Learns from a finished answer how much is written, and whether its model hides output. For community models only visible output counts. */
export function learnFrom({ output }: ChatPlan, model: Model, meter: ChatMeter, usage: UsageQuantities, source: UsageSource): void {
  if (source === "provider" && meter.hidesOutput) output.learnHidden(model.id);
  const { outputTextTokens, outputReasoningTokens } = model.isCommunity ? meter.soFar() : usage;
  output.learn(outputTextTokens + outputReasoningTokens);
}

/** How many delivered tokens exceed the hold. */
export function tokensBeyond(usage: UsageQuantities, held: bigint, rates: RateCard): number {
  const cost = costOf(usage, rates);
  const outputCost = cost - costOf({ ...usage, ...NO_OUTPUT }, rates);
  if (cost <= held || outputCost === 0n) return 0;
  return Number((BigInt(outputTokensOf(usage)) * (cost - held) + outputCost - 1n) / outputCost);
}

const NO_OUTPUT = { outputTextTokens: 0, outputReasoningTokens: 0, outputAudioTokens: 0, outputImageTokens: 0 };

function outputOf({ outputTextTokens, outputReasoningTokens, outputAudioTokens, outputImageTokens }: UsageQuantities): typeof NO_OUTPUT {
  return { outputTextTokens, outputReasoningTokens, outputAudioTokens, outputImageTokens };
}

function tokensIn({ usage }: Report): number {
  return inputTokensOf(usage) + outputTokensOf(usage);
}
