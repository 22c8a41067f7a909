/**
 * Counts tokens that no upstream has counted: to estimate a prompt's cost, and the cost of an answer without reported usage. The vocabulary
 * is OpenAI's o200k_base for every model; others differ by some ten percent.
 *
 * Ordinary amounts of text are counted exactly. Text beyond the bounds below, in length or in cost (long unbroken runs, random letters), is
 * sampled at random places and estimated slightly high. So no call takes more than a few milliseconds, calls in turns yield to the event
 * loop, and no prompt can be written to count for less than it is.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { O200K_TOKEN_SPLIT_REGEX } from "gpt-tokenizer/encodingParams/constants";
import { LRUCache } from "lru-cache";
import { type BytePairs, loadBytePairs, type MergeAllowance } from "./byte-pairs.js";

/** Of one text or one chat. Measured: ordinary text takes 40-80 ns a character, so this takes 3 to 5 ms. */
export const TEXT_CHARS_EXACT = 65_536;
/** Characters between two turns of the event loop. */
const TURN_CHARS = 8_192;
/** Even a short text costs as much as this many characters. */
const TEXT_CHARS_CHARGED_MIN = 32;
/** Measured: merging takes 0.3-0.5 us a byte. */
const MERGED_BYTES_MAX = 8_192;
const SAMPLE_CHARS = 256;
const SAMPLES = 64;
const SAMPLES_IN_TURN = TURN_CHARS / SAMPLE_CHARS;
const SAMPLED_MARGIN = 1.05;

const SPLIT = new RegExp(O200K_TOKEN_SPLIT_REGEX.source, "gu");

let bytePairs: BytePairs | null = null;

/** Counts of recent texts: a conversation repeats its earlier messages each turn. */
const recentCounts = new LRUCache<string, number>({
  max: 10_000,
  maxSize: 4 * 1024 * 1024,
  sizeCalculation: (_count, text) => text.length,
});
/** Shorter texts are counted faster than looked up. */
const RECENT_CHARS_MIN = 16;

/** Loads the vocabulary (some 50 ms, once), so that no request waits for it. */
export function warmUpTokenizer(): void {
  bytePairs ??= loadBytePairs();
}

/** Counts a text. Special tokens such as `<|endoftext|>` count as plain text. */
export function countTextTokens(text: string): number {
  return countTexts([text]);
}

/** As `countTexts`, yielding to the event loop. */
export function countInTurns(texts: readonly string[]): number | Promise<number> {
  const counting = count(texts);
  const { done, value } = counting.next();
  return done ? value : takeTurns(counting);
}

async function takeTurns(counting: Counting): Promise<number> {
  for (;;) {
    await nextTurn();
    const { done, value } = counting.next();
    if (done) return value;
  }
}

/** Work left for exact counting in one call. */
interface Allowance extends MergeAllowance {
  chars: number;
}

/** Tokens of separate texts: each exactly while the allowance lasts, the others together by sampling. */
export function countTexts(texts: readonly string[]): number {
  const counting = count(texts);
  for (;;) {
    const { done, value } = counting.next();
    if (done) return value;
  }
}

/** Yields after each turn's work, and returns the tokens. */
type Counting = Generator<undefined, number>;

function* count(texts: readonly string[]): Counting {
  const allowance: Allowance = { chars: TEXT_CHARS_EXACT, mergedBytes: MERGED_BYTES_MAX };
  const others: string[] = [];
  let tokens = 0;
  let charsInTurn = 0;
  for (const text of texts) {
    let counted = countAtOnce(text, allowance);
    if (counted === undefined) {
      counted = 0;
      for (let start = 0; start < text.length; ) {
        const added = splitAndCount(text, allowance, start, start + TURN_CHARS - charsInTurn);
        if (added === null) {
          counted = null;
          break;
        }
        counted += added;
        const end = SPLIT.lastIndex || text.length;
        charsInTurn += end - start;
        start = end;
        if (charsInTurn < TURN_CHARS) continue;
        charsInTurn = 0;
        yield;
      }
      if (counted !== null) recentCounts.set(text, counted);
    }
    if (counted === null) others.push(text);
    else tokens += counted;
  }
  if (others.length === 0) return tokens;
  yield;
  return tokens + (yield* sampleTokens(others.join("\n")));
}

/** Null: beyond the allowance. Undefined: to be counted, and already taken from the allowance. */
function countAtOnce(text: string, allowance: Allowance): number | null | undefined {
  if (allowance.chars <= 0 || text.length > TEXT_CHARS_EXACT) return null;
  if (text.length < RECENT_CHARS_MIN) {
    allowance.chars -= TEXT_CHARS_CHARGED_MIN;
    return splitAndCount(text, allowance);
  }
  const known = recentCounts.get(text);
  if (known !== undefined) {
    allowance.chars -= TEXT_CHARS_CHARGED_MIN;
    return known;
  }
  if (text.length > allowance.chars) return null;
  allowance.chars -= text.length;
  return undefined;
}

/** Counts the pieces that begin between `from` and `to`; `SPLIT.lastIndex` is then the end of the last one. */
function splitAndCount(text: string, allowance: Allowance, from = 0, to = text.length): number | null {
  warmUpTokenizer();
  const pairs = bytePairs as BytePairs;
  let tokens = 0;
  SPLIT.lastIndex = from;
  const end = Math.min(to, text.length);
  // Pieces are contiguous, so each starts at the end of the previous one; `test` avoids a match object.
  for (let start = from; start < end && SPLIT.test(text); start = SPLIT.lastIndex) {
    const count = pairs.countPiece(text, start, SPLIT.lastIndex, allowance);
    if (count === null) return null;
    tokens += count;
  }
  return tokens;
}

/** Estimates from samples, one at a random place of each of SAMPLES equal stretches. */
function* sampleTokens(text: string): Counting {
  const allowance: Allowance = { chars: text.length, mergedBytes: MERGED_BYTES_MAX };
  const stretch = text.length / SAMPLES;
  const chars = Math.max(1, Math.min(SAMPLE_CHARS, Math.floor(stretch)));
  const first = Math.floor(Math.random() * SAMPLES);
  let sampledChars = 0;
  let sampledTokens = 0;
  for (let sample = 0; sample < SAMPLES; sample += 1) {
    // 25 and 64 are coprime: each stretch is visited once, and an early end still covers the whole text.
    const stretchStart = ((first + sample * 25) % SAMPLES) * stretch;
    const start = Math.floor(stretchStart + Math.random() * (stretch - chars));
    const counted = splitAndCount(text.slice(start, start + chars), allowance);
    if (counted === null) break;
    sampledChars += chars;
    sampledTokens += counted;
    if (sample % SAMPLES_IN_TURN === SAMPLES_IN_TURN - 1) yield;
  }
  return Math.ceil((text.length / sampledChars) * sampledTokens * SAMPLED_MARGIN);
}
