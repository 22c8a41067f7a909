/** Reads a `usage` object of OpenAI's formats, in any of the dialects of `usage-dialects.ts`, as usage quantities. */
import { isRecord } from "../../lib/json.js";
import { type ReportedUsage, USAGE_AMOUNT_MAX } from "../../lib/usage.js";
import { UNREAD, USAGE, type UsageMeaning, type UsageTable } from "./usage-dialects.js";

/** Is given the names in a report that no table knows, each once: of nested ones the path, dotted. */
export type NoteUnknown = (names: readonly string[]) => void;

/**
 * Null when there is no report, or none that can be believed: an amount that is negative, fractional, not a number or beyond what
 * a usage row holds, or no input and output totals. Zeros are read as zeros. The kinds never add up to more than the totals: a detail
 * that claims more than is left counts for what is left.
 */
export function toUsage(raw: unknown, noteUnknown?: NoteUnknown): ReportedUsage | null {
  if (!isRecord(raw)) return null;
  const amounts = new Amounts();
  amounts.read(raw, USAGE, "");
  if (amounts.unknown.length > 0) noteUnknown?.(amounts.unknown);
  return amounts.areBelievable ? toQuantities(amounts) : null;
}

/** Of what puts nothing out, as embeddings do: most servers report no output then. */
export function toInputUsage(raw: unknown, noteUnknown?: NoteUnknown): ReportedUsage | null {
  return isRecord(raw) ? toUsage({ ...raw, completion_tokens: raw.completion_tokens ?? raw.output_tokens ?? 0 }, noteUnknown) : null;
}

/** Names of a report that are not in the table. */
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
  /** Of the output. */
  readonly reasoning: number;
  /** Of the input, as far as the total alone tells. */
  readonly inputAudio: number;
}

/**
 * Input and output, one of which may have to be worked out of the total. What the total counts beyond the two was left out of them: tokens
 * read from a cache or written to it (Anthropic's), sound (Mistral's), and reasoning (xAI's; at Gemini's OpenAI address, which names it nowhere).
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
  // Perplexity counts what it thinks beside what it writes, and in no total.
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

/** Whether Anthropic's amounts of the cache are beside the input, as in its own format, or among it, as OpenAI's format has them. */
function isCacheBeside(amounts: Amounts, input: number, left: number, cache: number, total: number | null): boolean {
  if (cache > input || (total !== null && left === cache)) return true;
  const isNamedAsAnthropic = amounts.get("promptTotal") === null && amounts.get("cachedBeside") !== null;
  return isNamedAsAnthropic && (total === null || left >= cache);
}

function bounded(totals: Totals): Totals | null {
  return totals.input <= USAGE_AMOUNT_MAX && totals.output <= USAGE_AMOUNT_MAX ? totals : null;
}

/** Unspecified: names of one report that are told. */
const UNKNOWN_MAX = 20;
/** No table holds another that holds a third. */
const LEVELS_MAX = 3;

/** The amounts of a report by what they mean, whether one was impossible, and the names that mean nothing here. */
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

  /** Null when it is not stated. */
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

/** A total that kinds are taken out of. */
class Share {
  constructor(public rest: number) {}

  take(amount: number): number {
    const taken = Math.min(amount, this.rest);
    this.rest -= taken;
    return taken;
  }
}
