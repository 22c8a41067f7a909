/**
 * The largest plausible usage for a request and its delivered output (docs/spec/credits.md#reported-usage). A larger report is charged up
 * to this bound.
 */
import type { ReportedUsage, UsageQuantities } from "../../lib/usage.js";
import type { BillableQuantities } from "../catalog/pricing.js";
import { SANDBOX_UPSTREAM } from "../catalog/sandbox.js";
import type { GenerationTask } from "./admission.js";
import { joinWarnings, NO_WARNINGS, type UsageSource } from "./receipt.js";
import type { Candidate } from "./routing/candidate.js";

/** Decided: vocabularies differ, and vendors add instructions. */
const PROMPT_FACTOR = 2;
const PROMPT_TOKENS_MORE = 1_000;

/** The most tokens of an image in a prompt: GPT-4o mini's, of 8 tiles of 5,667 and a base of 2,833, are twice any other model's. */
export const PICTURE_TOKENS_MOST = 50_000;

export function promptTokensMost(counted: number): number {
  return PROMPT_FACTOR * counted + PROMPT_TOKENS_MORE;
}

/** A vendor's vocabulary may be much denser than ours, and a low report is believed. */
const LEAST_FACTOR = 4;
const LEAST_TOKENS_FEWER = 8;

/** The fewest tokens that a report of a prompt with this count is expected to have. */
export function promptTokensLeast(counted: number): number {
  return counted === 0 ? 0 : Math.max(1, Math.floor(counted / LEAST_FACTOR) - LEAST_TOKENS_FEWER);
}

export const VOCABULARY_NOTE =
  "Vocabularies differ: up to twice the counted tokens of the prompt, and 1,000 more, may be reported and charged.";

/** The amounts that a successful generation can be charged; absent: the expected ones. Computed for quotes alone. */
export interface AmountBounds {
  readonly least?: () => BillableQuantities;
  readonly most?: () => BillableQuantities;
  /** The uncertainties, one sentence each. */
  readonly notes?: () => readonly string[];
}

/** Decided: tolerance of a recording's reported length beyond the measured one. */
export const MORE_HEARD_MS_MAX = 1_000;

/** Files of sound and video end on whole frames, and models round lengths. */
const FILE_MS_MORE = 1_000;
const FILE_MS_LEAST = 1_000;
const FILE_PART_LEAST = 2;

/** Bounds of a quote for a file that is charged by its measured length. */
export function lengthBounds(
  expectedMs: number,
  isStated: boolean,
  toAmounts: (milliseconds: number) => BillableQuantities,
): Required<AmountBounds> {
  return {
    least: () => toAmounts(Math.min(FILE_MS_LEAST, Math.floor(expectedMs / FILE_PART_LEAST))),
    most: () => toAmounts(expectedMs + FILE_MS_MORE),
    notes: () => (isStated ? [LENGTH_NOTE] : [UNSTATED_LENGTH_NOTE, LENGTH_NOTE]),
  };
}

const LENGTH_NOTE = "The length of the file is charged: most allows for a second more than expected.";
const UNSTATED_LENGTH_NOTE = "No length is stated: the model chooses it.";

/** Characters inspected one by one; of longer text every second, third and so on. */
const CHARS_LOOKED_AT = 1_000_000;
const [ZERO, NINE] = [0x30, 0x39];

/**
 * Tokens of a text beyond our count, for the bound only: some vocabularies have a token per digit, and per byte of letters beyond ASCII.
 * Half of those, because the bound is twice the count.
 */
export function vocabularyMargin(text: string): number {
  // Letters of 2 or 3 bytes are 1 UTF-16 unit, of 4 bytes 2: the bytes are at most twice those beyond the units.
  const beyondAscii = Buffer.byteLength(text) - text.length;
  const step = Math.ceil(text.length / CHARS_LOOKED_AT) || 1;
  let digits = 0;
  for (let at = 0; at < text.length; at += step) {
    const code = text.charCodeAt(at);
    if (code >= ZERO && code <= NINE) digits += step;
  }
  return beyondAscii + Math.ceil(digits / PROMPT_FACTOR);
}

/** Whether the task's reports are bounded: not for free work, nor where the client dictates the report (docs/sandbox-models.md). */
export function isJudged({ isFree }: Pick<GenerationTask, "isFree">, { route }: Candidate): boolean {
  return !isFree && route.upstreamId !== SANDBOX_UPSTREAM.id;
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

/** The same tokens within the bound; else each kind is cut in proportion. */
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
  // The remainder of rounding down.
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

/** `more`: tokens that its images may have beside `counted`. */
interface CountedPrompt {
  readonly counted: UsageQuantities;
  readonly more?: number;
  texts(): Iterable<string>;
}

/** The charge of a report on a prompt. Zeros are no report of one. */
export function judgedPrompt(reported: ReportedUsage, { counted, more = 0, texts }: CountedPrompt): Judged {
  const total = inputTokensOf(reported);
  if (total === 0) return { quantities: counted, source: "estimated" };
  const tokens = counted.inputTextTokens + more;
  const countedToo = { counted: () => counted };
  if (total <= promptTokensMost(tokens)) return { ...judged(reported, reported), ...countedToo };
  let margin = 0;
  for (const text of texts()) margin += vocabularyMargin(text);
  return { ...judged(reported, boundInput(reported, promptTokensMost(tokens + margin))), ...countedToo };
}

/** Bounds of a quote for a prompt whose tokens are reported: both in our text tokens, as all kinds of such a model have one price. */
export function promptBounds({ counted, more = 0, texts }: CountedPrompt): Required<AmountBounds> {
  return {
    least: () => ({ ...counted, inputTextTokens: promptTokensLeast(counted.inputTextTokens) }),
    most: () => {
      let tokens = counted.inputTextTokens + more;
      for (const text of texts()) tokens += vocabularyMargin(text);
      return { ...counted, inputTextTokens: promptTokensMost(tokens) };
    },
    notes: () => [VOCABULARY_NOTE],
  };
}

interface Judged {
  readonly quantities: BillableQuantities;
  readonly source: UsageSource;
  readonly reported?: BillableQuantities;
  readonly counted?: () => BillableQuantities;
}

export function judged(reported: BillableQuantities, bound: BillableQuantities): Judged {
  return bound === reported ? { quantities: bound, source: "provider" } : { quantities: bound, source: "bounded", reported };
}

export const BOUNDED_WARNING =
  "The upstream reported more usage than is plausible for this request: the most that is plausible was charged.";

/** Warnings of a receipt. */
export function warningsFor(notes: readonly string[], warnings: readonly string[], isBounded: boolean): readonly string[] {
  if (isBounded) return joinWarnings([BOUNDED_WARNING], notes, warnings);
  return notes.length + warnings.length === 0 ? NO_WARNINGS : joinWarnings(notes, warnings);
}
