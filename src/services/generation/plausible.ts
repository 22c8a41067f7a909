/**
 * How much an upstream can have used at most for what it was asked and for what it delivered (docs/spec/credits.md#reported-usage). A report
 * beyond that is charged as far as the bound.
 */
import type { ReportedUsage } from "../../lib/usage.js";
import type { BillableQuantities } from "../catalog/pricing.js";
import { SANDBOX_UPSTREAM } from "../catalog/sandbox.js";
import type { GenerationTask } from "./admission.js";
import type { UsageSource } from "./receipt.js";

/** Decided: vocabularies differ, and vendors add instructions of their own to what was sent. */
const PROMPT_FACTOR = 2;
const PROMPT_TOKENS_MORE = 1_000;

/** A picture in a prompt counts at most for that many tokens: GPT-4o mini's, of 8 tiles of 5,667 and a base of 2,833, are twice any other model's. */
export const PICTURE_TOKENS_MOST = 50_000;

/** Tokens that a prompt can come to of which the gateway has counted so many. */
export function promptTokensMost(counted: number): number {
  return PROMPT_FACTOR * counted + PROMPT_TOKENS_MORE;
}

/** Decided: how much more of a recording than was measured an upstream can have heard. */
export const MORE_HEARD_MS_MAX = 1_000;

/** Characters that are looked at one by one; of more, every second, third and so on. */
const CHARS_LOOKED_AT = 1_000_000;
const [ZERO, NINE] = [0x30, 0x39];

/**
 * What a text counts for beyond our count of it, where only the bound is asked for: some vocabularies have a token for each digit, and for each
 * byte of letters beyond ASCII. Half of those, because the bound is twice the count.
 */
export function vocabularyMargin(text: string): number {
  // Letters of 2 bytes are 1 character, of 3 bytes 1, of 4 bytes 2: their bytes are at most twice what they have beyond their characters.
  const beyondAscii = Buffer.byteLength(text) - text.length;
  const step = Math.ceil(text.length / CHARS_LOOKED_AT) || 1;
  let digits = 0;
  for (let at = 0; at < text.length; at += step) {
    const code = text.charCodeAt(at);
    if (code >= ZERO && code <= NINE) digits += step;
  }
  return beyondAscii + Math.ceil(digits / PROMPT_FACTOR);
}

/** Whether what upstreams report of the task is looked at: not where nothing is charged, nor where a caller dictates the report (docs/sandbox-models.md). */
export function isJudged({ isFree }: Pick<GenerationTask, "isFree">, { upstreamId }: { readonly upstreamId: string }): boolean {
  return !isFree && upstreamId !== SANDBOX_UPSTREAM.id;
}

const INPUT_KINDS = ["inputTextTokens", "inputCachedTokens", "inputCacheWriteTokens", "inputAudioTokens", "inputImageTokens"] as const;
const OUTPUT_KINDS = ["outputTextTokens", "outputReasoningTokens", "outputAudioTokens", "outputImageTokens"] as const;
type TokenKind = (typeof INPUT_KINDS)[number] | (typeof OUTPUT_KINDS)[number];

export function inputTokensOf(usage: ReportedUsage): number {
  return sumOf(usage, INPUT_KINDS);
}

export function outputTokensOf(usage: ReportedUsage): number {
  return sumOf(usage, OUTPUT_KINDS);
}

/** The same tokens when there are no more of them than that; else each kind of input, or of output, cut in one proportion. */
export function boundInput(usage: ReportedUsage, most: number): ReportedUsage {
  return boundKinds(usage, INPUT_KINDS, most);
}

export function boundOutput(usage: ReportedUsage, most: number): ReportedUsage {
  return boundKinds(usage, OUTPUT_KINDS, most);
}

function boundKinds(usage: ReportedUsage, kinds: readonly TokenKind[], most: number): ReportedUsage {
  const total = sumOf(usage, kinds);
  if (total <= most) return usage;
  const cut: { -readonly [Kind in keyof ReportedUsage]: ReportedUsage[Kind] } = { ...usage };
  const share = (amount: number) => Number((BigInt(amount) * BigInt(most)) / BigInt(total));
  let largest = kinds[0] as TokenKind;
  let left = most;
  for (const kind of kinds) {
    if (usage[kind] > usage[largest]) largest = kind;
    cut[kind] = share(usage[kind]);
    left -= cut[kind];
  }
  // What rounding down has left over.
  cut[largest] += left;
  if (usage.inputCacheWriteHourTokens !== undefined) {
    cut.inputCacheWriteHourTokens = Math.min(usage.inputCacheWriteHourTokens, cut.inputCacheWriteTokens);
  }
  return cut;
}

function sumOf(usage: ReportedUsage, kinds: readonly TokenKind[]): number {
  let sum = 0;
  for (const kind of kinds) sum += usage[kind];
  return sum;
}

/** What is charged of a report on a prompt alone, of which so many tokens were counted and whose texts are these. */
export function judgedPrompt(reported: ReportedUsage, counted: number, texts: () => Iterable<string>): Judged {
  const total = inputTokensOf(reported);
  if (total <= promptTokensMost(counted)) return judged(reported, reported);
  let more = 0;
  for (const text of texts()) more += vocabularyMargin(text);
  return judged(reported, boundInput(reported, promptTokensMost(counted + more)));
}

interface Judged {
  readonly quantities: BillableQuantities;
  readonly source: UsageSource;
  /** What the upstream reported, where that was more than is plausible. */
  readonly reported?: BillableQuantities;
}

/** What is charged of a report, and of what it was bound to. */
export function judged(reported: BillableQuantities, bound: BillableQuantities): Judged {
  return bound === reported ? { quantities: bound, source: "provider" } : { quantities: bound, source: "bounded", reported };
}

/** Said in the receipt of a charge that was bounded. */
export const BOUNDED_WARNING =
  "The upstream reported more usage than is plausible for this request: the most that is plausible was charged.";
