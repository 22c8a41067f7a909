/**
 * Counts tokens where no upstream has counted them: what a prompt will cost before it is sent, and what an answer cost when
 * its upstream does not say. The vocabulary is OpenAI's o200k_base for every model; others differ by some ten percent.
 *
 * Ordinary amounts of text are counted exactly. What exceeds the bounds below, in length or by being made to be slow (long runs
 * without a break, random letters), is sampled at places that nobody can foresee and answered a little high: no call takes more than
 * a few milliseconds, those in turns with everybody else in between, and nobody can write a prompt that counts for less than it is.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { O200K_TOKEN_SPLIT_REGEX } from "gpt-tokenizer/encodingParams/constants";
import { LRUCache } from "lru-cache";
import { type BytePairs, loadBytePairs, type MergeAllowance } from "./byte-pairs.js";
import { type ChatReader, readChat } from "./chat-prompt.js";
import { ownValue } from "./own-values.js";

/** Of one text or one chat. Measured: ordinary text takes 40-80 ns a character, so this much takes 3 to 5 ms. */
export const TEXT_CHARS_EXACT = 65_536;
/** After so many, everybody else has their turn. */
const TURN_CHARS = 8_192;
/** A text costs at least as much as this many characters, however short. */
const TEXT_CHARS_CHARGED_MIN = 32;
/** Measured: a byte that has to be merged takes 0.3-0.5 us. */
const MERGED_BYTES_MAX = 8_192;
const SAMPLE_CHARS = 256;
const SAMPLES = 64;
const SAMPLES_IN_TURN = TURN_CHARS / SAMPLE_CHARS;
/** What is sampled is answered this much higher. */
const SAMPLED_MARGIN = 1.05;

/** OpenAI's published counting of chats: 3 tokens around each message, 1 more for a name, 3 before the answer. */
const TOKENS_PER_MESSAGE = 3;
const TOKENS_PER_NAME = 1;
const TOKENS_BEFORE_ANSWER = 3;
/** Around one tool call or tool declaration, beside its text. */
const TOKENS_PER_TOOL = 8;

/**
 * What parts that are not text count for, whatever they hold: a 1024 x 1024 picture in high detail (4 tiles of 170 and a base of
 * 85) and in low detail, half a minute of sound at 10 tokens a second, some pages of a document, ten seconds of film.
 */
const IMAGE_TOKENS = 765;
const IMAGE_LOW_DETAIL_TOKENS = 85;
const PART_TOKENS: Readonly<Record<string, number>> = { input_audio: 300, file: 1_500, video_url: 2_580 };

const SPLIT = new RegExp(O200K_TOKEN_SPLIT_REGEX.source, "gu");

let bytePairs: BytePairs | null = null;

/** Counts of texts met lately: a conversation sends all its earlier messages again with each turn. */
const recentCounts = new LRUCache<string, number>({
  max: 10_000,
  maxSize: 4 * 1024 * 1024,
  sizeCalculation: (_count, text) => text.length,
});
/** Shorter texts are counted faster than they are found. */
const RECENT_CHARS_MIN = 16;

/** Loads the vocabulary (some 50 ms, once), so that no request waits for it. */
export function warmUpTokenizer(): void {
  bytePairs ??= loadBytePairs();
}

/** Tokens of a text. Special tokens such as `<|endoftext|>` count as the plain text that they are. */
export function countTextTokens(text: string): number {
  return countTexts([text]);
}

/** What of a chat request a model reads beside its messages. */
export interface ChatDeclarations {
  readonly tools?: unknown;
  /** What tools were called before. */
  readonly functions?: unknown;
  /** A JSON schema is read like any other text. */
  readonly response_format?: unknown;
}

/**
 * Tokens of a chat request's `messages`, and of the tools, functions and schemas that go with them, as an OpenAI upstream would count
 * them. Takes what a caller sent: whatever has not the shape of a message counts as nothing.
 */
export function countChatTokens(messages: unknown, { tools, functions, response_format }: ChatDeclarations = {}): number {
  const count = new ChatCount();
  readChat({ messages, tools, functions, response_format }, count);
  return count.tokens + countTexts(count.texts);
}

/** The texts of a chat request, and the tokens of what is not text, as an OpenAI upstream would count them. */
export class ChatCount implements ChatReader {
  readonly texts: string[] = [];
  tokens = TOKENS_BEFORE_ANSWER;
  /** Pictures, sound, films and files: what a model reads of them only its upstream can tell. */
  readonly parts: Readonly<Record<string, unknown>>[] = [];
  /** Fields that nobody here knows. */
  readonly unknowns: unknown[] = [];

  beginMessage(): void {
    this.tokens += TOKENS_PER_MESSAGE;
  }

  role(role: string): void {
    this.texts.push(role);
  }

  author(name: string): void {
    this.tokens += TOKENS_PER_NAME;
    this.texts.push(name);
  }

  text(text: string): void {
    this.texts.push(text);
  }

  beginCall(): void {
    this.tokens += TOKENS_PER_TOOL;
  }

  name(name: string): void {
    this.texts.push(name);
  }

  media(part: Readonly<Record<string, unknown>>): void {
    this.parts.push(part);
    this.tokens += part.type === "image_url" ? imageTokens(part.image_url) : (ownValue(PART_TOKENS, String(part.type)) ?? 0);
  }

  label(): void {
    // The upstream's alone.
  }

  unknown(value: unknown): void {
    this.unknowns.push(value);
  }

  endMessages(): void {
    // Nothing is counted for that.
  }

  declarations(declared: readonly unknown[]): void {
    this.tokens += TOKENS_PER_TOOL * declared.length;
    this.texts.push(JSON.stringify(declared));
  }

  schema({ type, json_schema: schema }: Readonly<Record<string, unknown>>): void {
    if (type === "json_schema" && schema) this.texts.push(JSON.stringify(schema));
  }
}

function imageTokens(image: unknown): number {
  return isRecord(image) && image.detail === "low" ? IMAGE_LOW_DETAIL_TOKENS : IMAGE_TOKENS;
}

/** As `countTexts`, in turns. */
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

/** Everything in a message, or a streamed piece of one, that an upstream bills as output: content, reasoning, refusal, tool calls. */
export function countDeltaTokens(delta: unknown): number {
  if (!isRecord(delta)) return 0;
  const found: Found = { texts: [], tokens: 0 };
  findSaid(delta, found);
  return found.tokens + countTexts(found.texts);
}

/** The texts of a message, and the tokens of what is not text. */
interface Found {
  readonly texts: string[];
  tokens: number;
}

function findSaid(message: Readonly<Record<string, unknown>>, found: Found): void {
  const { content } = message;
  if (Array.isArray(content)) for (const part of content) findInPart(part, found);
  else findText(content, found);
  findText(message.reasoning_content ?? message.reasoning, found);
  findText(message.refusal, found);
  if (Array.isArray(message.tool_calls)) for (const call of message.tool_calls) findInToolCall(call, found);
}

function findInPart(part: unknown, found: Found): void {
  if (!isRecord(part) || typeof part.type !== "string") return;
  if (part.type === "text") findText(part.text, found);
  else if (part.type === "refusal") findText(part.refusal, found);
  else if (part.type === "image_url") found.tokens += imageTokens(part.image_url);
  else found.tokens += ownValue(PART_TOKENS, part.type) ?? 0;
}

function findInToolCall(call: unknown, found: Found): void {
  if (!isRecord(call)) return;
  if (isRecord(call.custom)) {
    found.tokens += TOKENS_PER_TOOL;
    findText(call.custom.name, found);
    findText(call.custom.input, found);
  }
  if (!isRecord(call.function)) return;
  if (typeof call.function.name === "string") {
    found.tokens += TOKENS_PER_TOOL;
    findText(call.function.name, found);
  }
  findText(call.function.arguments, found);
}

function findText(value: unknown, found: Found): void {
  if (typeof value === "string" && value !== "") found.texts.push(value);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/** What one call may still spend on counting exactly. */
interface Allowance extends MergeAllowance {
  chars: number;
}

/** Tokens of texts that stand apart: each exactly while the allowance lasts, the others together by sampling. */
export function countTexts(texts: readonly string[]): number {
  const counting = count(texts);
  for (;;) {
    const { done, value } = counting.next();
    if (done) return value;
  }
}

/** Yields after each turn's worth of work, and returns the tokens. */
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

/** Null: that takes more than the allowance. Undefined: it is to be counted, and has been taken from the allowance. */
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

/** Of the pieces that begin from `from` on and before `to`; `SPLIT.lastIndex` is then where the last of them ends. */
function splitAndCount(text: string, allowance: Allowance, from = 0, to = text.length): number | null {
  warmUpTokenizer();
  const pairs = bytePairs as BytePairs;
  let tokens = 0;
  SPLIT.lastIndex = from;
  const end = Math.min(to, text.length);
  // Every character belongs to a piece, so each piece begins where the one before it ended; asking for no match object is faster.
  for (let start = from; start < end && SPLIT.test(text); start = SPLIT.lastIndex) {
    const count = pairs.countPiece(text, start, SPLIT.lastIndex, allowance);
    if (count === null) return null;
    tokens += count;
  }
  return tokens;
}

/** An estimate from samples: one at a random place of each of SAMPLES equal stretches. */
function* sampleTokens(text: string): Counting {
  const allowance: Allowance = { chars: text.length, mergedBytes: MERGED_BYTES_MAX };
  const stretch = text.length / SAMPLES;
  const chars = Math.max(1, Math.min(SAMPLE_CHARS, Math.floor(stretch)));
  const first = Math.floor(Math.random() * SAMPLES);
  let sampledChars = 0;
  let sampledTokens = 0;
  for (let sample = 0; sample < SAMPLES; sample += 1) {
    // 25 and 64 have no common divisor: every stretch once, and an early end still leaves them spread over the whole text.
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
