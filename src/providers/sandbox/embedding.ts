/**
 * The sandbox's embedding model: words, stems and letters, hashed into a vector of length 1. Texts with common words point the same way;
 * meaning is not understood (docs/sandbox-models.md).
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { stemmer } from "stemmer";
import { countTexts } from "../../lib/tokenizer.js";
import type { EmbeddingAnswer, EmbeddingCall, EmbeddingProvider } from "../media.js";
import type { UpstreamTimeouts } from "../provider.js";
import { begin, reportTokens } from "./media/calls.js";
import { refuse } from "./refusal.js";

const DIMENSIONS_DEFAULT = 256;
const DIMENSIONS_MAX = 4_096;
/** Time of reading between two turns of the event loop. */
const SLICE_MS = 8;

const WORD = /[\p{L}\p{N}\p{M}]+/gu;
/** Scripts without spaces, where letters are treated as words. */
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u;
/** They carry grammar, not topic. */
const FUNCTION_WORDS = new Set(
  (
    "a an and are as at be been but by can could did do does for from had has have he her his how i if in into is it its may me my no not of on or our " +
    "she should so some such than that the their them then there these they this to up us was we were what when where which who why will with would you your"
  ).split(" "),
);
const WEIGHTS = { stem: 1, functionWord: 0.12, pair: 0.35, letters: 0.3, token: 1 } as const;
const WORD_CHARS_MAX = 64;

export function createSandboxEmbeddingProvider({ timeouts }: { readonly timeouts: UpstreamTimeouts }): EmbeddingProvider {
  return { embed: (call) => embed(timeouts, call) };
}

async function embed(timeouts: UpstreamTimeouts, call: EmbeddingCall): Promise<EmbeddingAnswer> {
  const texts = call.inputs.filter((input) => typeof input === "string");
  const [first = ""] = texts;
  const directives = await begin(first, "input", call.signal, timeouts);
  const dimensions = call.dimensions ?? DIMENSIONS_DEFAULT;
  if (!Number.isInteger(dimensions) || dimensions < 1 || dimensions > DIMENSIONS_MAX) {
    throw refuse(`The sandbox's vectors have 1 to ${DIMENSIONS_MAX} dimensions.`, "dimensions");
  }
  const slice = new Slice(call.signal);
  const vectors: Float32Array[] = [];
  for (const [index, input] of call.inputs.entries()) {
    // The text with directives is embedded without them.
    const text = index === call.inputs.indexOf(first) ? (directives.text ?? directives.prompt) : input;
    vectors.push(await toVector(text, dimensions, slice));
  }
  const tokens = call.inputs.reduce((sum, input) => sum + (typeof input === "string" ? 0 : input.length), countTexts(texts));
  return { vectors, usage: reportTokens(directives, { inputText: tokens }), warnings: [] };
}

async function toVector(input: string | readonly number[], dimensions: number, slice: Slice): Promise<Float32Array> {
  const sums = new Float64Array(dimensions);
  const add = (feature: string, weight: number) => {
    const hash = hashOf(feature);
    // Signed features cancel out as often as they add up when they collide.
    const index = (hash >>> 1) % dimensions;
    sums[index] = (sums[index] ?? 0) + (hash & 1 ? weight : -weight);
  };
  if (typeof input !== "string") {
    for (const token of input) add(`t:${token}`, WEIGHTS.token);
  } else {
    let before = "";
    for (const [word] of input.normalize("NFKC").toLowerCase().matchAll(WORD)) {
      before = addWord(word.slice(0, WORD_CHARS_MAX), before, add);
      if (slice.isOver()) await slice.next();
    }
  }
  // Text without features, such as punctuation, still gets a direction.
  if (sums.every((sum) => sum === 0)) add(`x:${String(input)}`, 1);
  return normalise(sums);
}

/** Adds a word's features; returns its stem, for the next one. */
function addWord(word: string, before: string, add: (feature: string, weight: number) => void): string {
  if (UNSPACED.test(word)) {
    const letters = [...word];
    for (const [index, letter] of letters.entries()) {
      add(`l:${letter}`, WEIGHTS.letters);
      if (index > 0) add(`p:${letters[index - 1]}${letter}`, WEIGHTS.stem);
    }
    return word;
  }
  if (FUNCTION_WORDS.has(word)) {
    add(`s:${word}`, WEIGHTS.functionWord);
    return before;
  }
  const stem = stemmer(word);
  add(`s:${stem}`, WEIGHTS.stem);
  if (before !== "") add(`p:${before} ${stem}`, WEIGHTS.pair);
  const framed = `^${word}$`;
  // Long words have more parts, but no more weight.
  const weight = WEIGHTS.letters / Math.sqrt(Math.max(1, framed.length - 2));
  for (const size of [3, 4]) for (let at = 0; at + size <= framed.length; at += 1) add(`l:${framed.slice(at, at + size)}`, weight);
  return stem;
}

function normalise(sums: Float64Array): Float32Array {
  const length = Math.sqrt(sums.reduce((total, sum) => total + sum * sum, 0));
  return Float32Array.from(sums, (sum) => (length === 0 ? 0 : sum / length));
}

/** FNV-1a over UTF-16 units, mixed once more because its low bits are weak. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** A time slice, after which the event loop turns. */
class Slice {
  private endsAt = performance.now() + SLICE_MS;

  constructor(private readonly signal: AbortSignal) {}

  isOver(): boolean {
    return performance.now() > this.endsAt;
  }

  async next(): Promise<void> {
    await nextTurn();
    this.signal.throwIfAborted();
    this.endsAt = performance.now() + SLICE_MS;
  }
}
