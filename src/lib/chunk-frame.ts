/**
 * What the chunks of a streamed chat have in common. Most of them differ from each other in the text that they bring and in nothing else, so
 * once one of them has been read as JSON, the others are compared with it: what stands around the text is the same, byte by byte, and the
 * text is one JSON string to its end. Such a chunk means what the first one means with another text, and needs no reading of its own.
 *
 * Bytes are kept as Latin-1 strings here, one character for each, because V8 searches and compares strings faster than Node does buffers.
 */
import { randomBytes } from "node:crypto";
import { isRecord } from "./json.js";
import type { RawLine } from "./sse.js";

/** An event of a frame. */
export interface Framed {
  readonly frame: ChunkFrame;
  /** The strings that differ, as they are written between their quotes: the text first. */
  readonly fillings: readonly string[];
}

/** Stands for the strings that differ: nobody else can know it, so it is found where it was put. */
const MARK = randomBytes(16).toString("hex");
const [QUOTE, BACKSLASH, SPACE] = [0x22, 0x5c, 0x20];
/** V8 copies a piece of a string that is shorter than this. */
const COPIED_CHARS_MAX = 13;
/** How a field and the beginning of its text are written, close together and as Python writes it. */
const TEXT_BEGINS = ['"content":"', '"content": "'];
/** A string of random length with which OpenAI hides how long the text is. */
const PADDING_BEGINS = ['"obfuscation":"', '"obfuscation": "'];

export class ChunkFrame {
  /** What is the same in all of them, with a mark for each string that differs: data and object of an event. */
  private readonly sample: Buffer;
  private readonly object: Readonly<Record<string, unknown>>;

  private constructor(
    /** What stands before, between and after the strings that differ. */
    private readonly literals: readonly string[],
  ) {
    this.sample = Buffer.from(literals.join(MARK), "latin1");
    this.object = JSON.parse(this.sample.toString());
  }

  /** Of a chunk that has been read, all of which is `object`; null when others cannot be told by it. */
  static of({ raw, start, end }: RawLine, object: Readonly<Record<string, unknown>>): ChunkFrame | null {
    if (!saysOnlyText(object)) return null;
    const text = raw.slice(start, end);
    const literals = cutOut(text, TEXT_BEGINS);
    if (literals === null) return null;
    const [head = "", rest = ""] = literals;
    const padded = typeof object.obfuscation === "string" ? cutOut(rest, PADDING_BEGINS) : null;
    const frame = new ChunkFrame(padded === null ? literals : [head, ...padded]);
    return frame.isReadAsText() ? frame : null;
  }

  /** What differs in an event that is otherwise the same; null when it is another one. */
  match({ raw, start, end }: RawLine): readonly string[] | null {
    const { literals } = this;
    const fillings: string[] = [];
    let at = start;
    for (let index = 0; ; index++) {
      const literal = literals[index] ?? "";
      const begin = at;
      at += literal.length;
      if (raw.slice(begin, at) !== literal) return null;
      if (index === literals.length - 1) return at === end ? fillings : null;
      const close = endOfString(raw, at, end);
      if (close === -1) return null;
      fillings.push(raw.slice(at, close));
      at = close;
    }
  }

  /** The same around what `rewrite` makes of a chunk; null when that cannot be told. It is given an event's data, and the object that it holds. */
  rewritten(rewrite: (data: Buffer, object: Readonly<Record<string, unknown>>) => Uint8Array | null): readonly string[] | null {
    const bytes = rewrite(this.sample, this.object);
    if (bytes === null) return null;
    const literals = Buffer.from(bytes).toString("latin1").split(MARK);
    return literals.length === this.literals.length ? literals : null;
  }

  /** Whether it is the text of the first choice that was cut out, and nothing else of that name. */
  private isReadAsText(): boolean {
    const { choices, obfuscation } = this.object;
    const choice: unknown = Array.isArray(choices) ? choices[0] : null;
    const delta = isRecord(choice) ? choice.delta : null;
    return isRecord(delta) && delta.content === MARK && (this.literals.length === 2 || obfuscation === MARK);
  }
}

/** The text that a filling stands for; null when it is no JSON string. */
export function textOfFilling(filling: string): string | null {
  let hasEscapes = false;
  let isAscii = true;
  for (let index = 0; index < filling.length; index++) {
    const code = filling.charCodeAt(index);
    if (code === BACKSLASH) hasEscapes = true;
    else if (code >= 0x80) isAscii = false;
  }
  // A longer piece of a string keeps all of the string in memory.
  if (isAscii && !hasEscapes && filling.length < COPIED_CHARS_MAX) return filling;
  const text = Buffer.from(filling, "latin1").toString();
  if (!hasEscapes) return text;
  try {
    return JSON.parse(`"${text}"`);
  } catch {
    return null;
  }
}

/** One choice, under way, that says a text. */
function saysOnlyText({ choices, usage, error }: Readonly<Record<string, unknown>>): boolean {
  if (!Array.isArray(choices) || choices.length !== 1 || usage != null || error != null) return false;
  const [choice] = choices;
  if (!isRecord(choice) || !isRecord(choice.delta) || choice.finish_reason != null) return false;
  // Whatever else it says counts, too.
  const { content, refusal, reasoning_content: thought, reasoning, tool_calls: calls, audio, images } = choice.delta;
  const others = [refusal, thought, reasoning, calls, audio, images];
  return typeof content === "string" && others.every((other) => other == null || other === "");
}

/** What stands before and after the string that begins so, without its quotes. */
function cutOut(text: string, beginnings: readonly string[]): readonly [string, string] | null {
  for (const beginning of beginnings) {
    const at = text.indexOf(beginning);
    if (at === -1) continue;
    const from = at + beginning.length;
    const to = endOfString(text, from, text.length);
    return to === -1 ? null : [text.slice(0, from), text.slice(to)];
  }
  return null;
}

/** Where the quote is that ends the string; -1 when there is none before `end`. */
function endOfString(text: string, from: number, end: number): number {
  for (let at = from; at < end; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at;
    if (code === BACKSLASH) at += 1;
    else if (code < SPACE) return -1;
  }
  return -1;
}
