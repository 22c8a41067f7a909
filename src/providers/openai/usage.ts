/**
 * The `usage` object of OpenAI's formats as usage quantities: chat's names (`prompt_tokens`) and the newer ones
 * (`input_tokens`), with the details that OpenAI and others report.
 */
import { isRecord } from "../../lib/json.js";
import { type ReportedUsage, USAGE_AMOUNT_MAX } from "../../lib/usage.js";

/**
 * Null when there is no report, or none that can be believed: an amount that is negative, fractional, not a number or beyond what
 * a usage row holds, or no input and output totals. Zeros are believed. The kinds never add up to more than the totals: a detail
 * that claims more than is left counts for what is left.
 */
export function toUsage(raw: unknown): ReportedUsage | null {
  if (!isRecord(raw)) return null;
  const amounts = new Amounts();
  const input = amounts.take(raw.prompt_tokens ?? raw.input_tokens);
  const output = amounts.take(raw.completion_tokens ?? raw.output_tokens);
  const total = amounts.take(raw.total_tokens);
  const inputDetails = toRecord(raw.prompt_tokens_details ?? raw.input_tokens_details);
  const outputDetails = toRecord(raw.completion_tokens_details ?? raw.output_tokens_details);
  const cached = amounts.take(inputDetails.cached_tokens ?? raw.prompt_cache_hit_tokens) ?? 0;
  const cacheWrite = amounts.take(inputDetails.cache_write_tokens ?? inputDetails.cache_creation_tokens) ?? 0;
  const hourWrite = amounts.take(hourWrites(raw, inputDetails));
  const inputAudio = amounts.take(inputDetails.audio_tokens) ?? 0;
  const inputImage = amounts.take(inputDetails.image_tokens) ?? 0;
  const reasoning = amounts.take(outputDetails.reasoning_tokens) ?? 0;
  const outputAudio = amounts.take(outputDetails.audio_tokens) ?? 0;
  const outputImage = amounts.take(outputDetails.image_tokens) ?? 0;

  const totals = toTotals(input, output, total, reasoning);
  if (totals === null || !amounts.areBelievable) return null;
  const ofInput = new Share(totals.input);
  const ofOutput = new Share(totals.output);
  const inputCachedTokens = ofInput.take(cached);
  const inputCacheWriteTokens = ofInput.take(cacheWrite);
  const inputAudioTokens = ofInput.take(inputAudio);
  const inputImageTokens = ofInput.take(inputImage);
  const outputReasoningTokens = ofOutput.take(reasoning);
  const outputAudioTokens = ofOutput.take(outputAudio);
  const outputImageTokens = ofOutput.take(outputImage);
  const usage: ReportedUsage = {
    inputTextTokens: ofInput.rest,
    inputCachedTokens,
    inputCacheWriteTokens,
    inputAudioTokens,
    inputImageTokens,
    outputTextTokens: ofOutput.rest,
    outputReasoningTokens,
    outputAudioTokens,
    outputImageTokens,
    outputVideoMilliseconds: 0,
    outputAudioMilliseconds: 0,
  };
  return hourWrite === null ? usage : { ...usage, inputCacheWriteHourTokens: Math.min(hourWrite, inputCacheWriteTokens) };
}

/** Of the tokens written to a cache those that are kept for an hour: under Anthropic's name, wherever a server puts it. */
function hourWrites(raw: Readonly<Record<string, unknown>>, inputDetails: Readonly<Record<string, unknown>>): unknown {
  const kinds = inputDetails.cache_creation_token_details ?? inputDetails.cache_creation ?? raw.cache_creation;
  return toRecord(kinds).ephemeral_1h_input_tokens;
}

/**
 * Input and output, one of which may have to be worked out of the total. Some upstreams leave reasoning out of
 * `completion_tokens`, which the total gives away: it then belongs to the output as well.
 */
function toTotals(input: number | null, output: number | null, total: number | null, reasoning: number) {
  if (input !== null && output !== null) {
    const leavesOutReasoning = reasoning > 0 && total === input + output + reasoning;
    return { input, output: leavesOutReasoning ? output + reasoning : output };
  }
  if (total === null) return null;
  if (input !== null && total >= input) return { input, output: total - input };
  if (output !== null && total >= output) return { input: total - output, output };
  return null;
}

/** Reads amounts and remembers whether one was impossible. */
class Amounts {
  areBelievable = true;

  /** Null when it is not stated. */
  take(value: unknown): number | null {
    if (value === undefined || value === null) return null;
    if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= USAGE_AMOUNT_MAX) return value;
    this.areBelievable = false;
    return null;
  }
}

/** A total that kinds are taken out of. */
class Share {
  constructor(public rest: number) {}

  take(amount: number): number {
    const taken = Math.min(amount, this.rest);
    this.rest -= taken;
    return taken;
  }
}

function toRecord(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}
