/** Reads a `usage` object in any dialect of `usage-dialects.ts`. */
import { isRecord } from "../../lib/json.js";
import { type ReportedUsage, USAGE_AMOUNT_MAX } from "../../lib/usage.js";
import { UNREAD, USAGE, type UsageMeaning, type UsageTable } from "./usage-dialects.js";

/** Receives unknown names of a report, each once; nested ones as dotted paths. */
export type OnUnknownNames = (names: readonly string[]) => void;

/**
 * Null without a credible report: an amount is negative, fractional, not a number or beyond a usage row's range, or input and output totals
 * are missing. Zeros count as zeros. Kinds never exceed the totals: a larger detail is cut to the rest.
 */
export function toUsage(raw: unknown, onUnknownNames?: OnUnknownNames): ReportedUsage | null {
  if (!isRecord(raw)) return null;
  const amounts = new Amounts();
  amounts.read(raw, USAGE, "");
  if (amounts.unknown.length > 0) onUnknownNames?.(amounts.unknown);
  return amounts.areBelievable ? toQuantities(amounts) : null;
}

/** For models without output, such as embeddings: most servers report none. */
export function toInputUsage(raw: unknown, onUnknownNames?: OnUnknownNames): ReportedUsage | null {
  return isRecord(raw) ? toUsage({ ...raw, completion_tokens: raw.completion_tokens ?? raw.output_tokens ?? 0 }, onUnknownNames) : null;
}

export function unknownNames(raw: unknown, table: UsageTable): readonly string[] {
  const amounts = new Amounts();
  if (isRecord(raw)) amounts.read(raw, table, "");
  return amounts.unknown;
}

function toQuantities(amounts: Amounts): ReportedUsage | null {
  const totals = toTotals(amounts);
  if (totals === null) return null;
  const hourTokens = amounts.get("writtenHour");
  const byLifetime = (hourTokens ?? 0) + amounts.of("writtenShort");
  const written = Math.max(amounts.of("written"), amounts.of("writtenBeside"), byLifetime);
  const ofInput = new Share(totals.input);
  const ofOutput = new Share(totals.output);
  const inputCachedTokens = ofInput.take(Math.max(amounts.of("cached"), amounts.of("cachedBeside")));
  const inputCacheWriteTokens = ofInput.take(written);
  const inputAudioTokens = ofInput.take(Math.max(amounts.of("inputAudio"), totals.inputAudio));
  const inputImageTokens = ofInput.take(amounts.of("inputImage") + amounts.of("inputVideo"));
  const outputReasoningTokens = ofOutput.take(totals.reasoning);
  const outputAudioTokens = ofOutput.take(amounts.of("outputAudio"));
  const outputImageTokens = ofOutput.take(amounts.of("outputImage"));
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
  return hourTokens === null ? usage : { ...usage, inputCacheWriteHourTokens: Math.min(hourTokens, inputCacheWriteTokens) };
}

interface Totals {
  readonly input: number;
  readonly output: number;
  /** Part of the output. */
  readonly reasoning: number;
  /** Part of the input that only the total reveals. */
  readonly inputAudio: number;
}

/**
 * Input and output, one of which may be derived from the total. An excess of the total was left out of both: cache reads or writes
 * (Anthropic), audio (Mistral), and reasoning (xAI, and Gemini's OpenAI address, which does not name it).
 */
function toTotals(amounts: Amounts): Totals | null {
  const total = amounts.get("total");
  const above = amounts.of("reasoningAbove");
  const reasoning = Math.max(amounts.of("reasoning"), above);
  const stated = statedTotals(amounts, total);
  if (stated === null) return null;
  let { input, output } = stated;
  const cache = amounts.of("cachedBeside") + Math.max(amounts.of("writtenBeside"), amounts.of("writtenShort") + amounts.of("writtenHour"));
  let left = total === null ? 0 : Math.max(0, total - input - output);
  if (cache > 0 && isCacheBeside(amounts, input, left, cache, total)) {
    input += cache;
    left = Math.max(0, left - cache);
  }
  input += amounts.of("inputMore");
  if (left > 0 && amounts.of("inputAudioSeconds") > 0) return bounded({ input: input + left, output, reasoning, inputAudio: left });
  if (left > 0) {
    output += left;
    return bounded({ input, output, reasoning: reasoning === left ? reasoning : reasoning + left, inputAudio: 0 });
  }
  // Perplexity reports reasoning beside the output, and in no total.
  const isBeside = above > 0 && (above > output || amounts.get("inputMore") !== null);
  return bounded({ input, output: isBeside ? output + above : output, reasoning, inputAudio: 0 });
}

function statedTotals(amounts: Amounts, total: number | null): { readonly input: number; readonly output: number } | null {
  const prompt = amounts.get("promptTotal");
  const other = amounts.get("inputTotal");
  const input = prompt === null ? other : Math.max(prompt, other ?? 0);
  const output = amounts.get("output");
  if (input !== null && output !== null) return { input, output };
  if (total === null) return null;
  if (input !== null && total >= input) return { input, output: total - input };
  if (output !== null && total >= output) return { input: total - output, output };
  return null;
}

/** Whether Anthropic's cache amounts are beside the input, as in its own format, or part of it, as in OpenAI's. */
function isCacheBeside(amounts: Amounts, input: number, left: number, cache: number, total: number | null): boolean {
  if (cache > input || (total !== null && left === cache)) return true;
  const isNamedAsAnthropic = amounts.get("promptTotal") === null && amounts.get("cachedBeside") !== null;
  return isNamedAsAnthropic && (total === null || left >= cache);
}

function bounded(totals: Totals): Totals | null {
  return totals.input <= USAGE_AMOUNT_MAX && totals.output <= USAGE_AMOUNT_MAX ? totals : null;
}

/** Unspecified: reported unknown names of one report. */
const UNKNOWN_MAX = 20;
/** Tables nest at most three levels. */
const LEVELS_MAX = 3;

/** The amounts of a report by meaning, whether one was impossible, and the unknown names. */
class Amounts {
  areBelievable = true;
  readonly unknown: string[] = [];
  private readonly found = new Map<UsageMeaning, number>();

  read(record: Readonly<Record<string, unknown>>, table: UsageTable, path: string, level = 1): void {
    for (const [name, value] of Object.entries(record)) {
      if (value === undefined || value === null) continue;
      const meaning = table.get(name);
      if (meaning === undefined) {
        if (this.unknown.length < UNKNOWN_MAX) this.unknown.push(path + name);
      } else if (typeof meaning === "object") {
        if (isRecord(value) && level < LEVELS_MAX) this.read(value, meaning.holds, `${path}${name}.`, level + 1);
      } else if (meaning !== UNREAD) this.take(meaning, value);
    }
  }

  /** Null when absent. */
  get(meaning: UsageMeaning): number | null {
    return this.found.get(meaning) ?? null;
  }

  of(meaning: UsageMeaning): number {
    return this.found.get(meaning) ?? 0;
  }

  private take(meaning: UsageMeaning, value: unknown): void {
    const isWhole = typeof value === "number" && value >= 0 && value <= USAGE_AMOUNT_MAX;
    if (!isWhole || (meaning !== "inputAudioSeconds" && !Number.isInteger(value))) {
      this.areBelievable = false;
      return;
    }
    const known = this.found.get(meaning);
    if (known === undefined || value > known) this.found.set(meaning, value);
  }
}

/** A total from which kinds are subtracted. */
class Share {
  constructor(public rest: number) {}

  take(amount: number): number {
    const taken = Math.min(amount, this.rest);
    this.rest -= taken;
    return taken;
  }
}
