/**
 * Recognizes chunks of a streamed chat that differ only in their text. Once one of them has been parsed, others are compared with it: the
 * bytes around the text are the same, and the text is one complete JSON string. Such a chunk means the same with another text, and needs no
 * parsing.
 *
 * Bytes are kept as Latin-1 strings, one character for each, because V8 searches and compares strings faster than Node does buffers.
 */
import { randomBytes } from "node:crypto";
import { isRecord } from "../../lib/json.js";
import type { RawLine } from "../../lib/sse.js";
import { reasoningIn } from "./schema.js";

/** An event of a frame. */
export interface Framed {
  readonly frame: ChunkFrame;
  /** The strings that differ, as written between their quotes: the text first. */
  readonly fillings: readonly string[];
}

/** Marks the strings that differ: random, so that upstreams cannot write it. */
const MARK = randomBytes(16).toString("hex");
const [QUOTE, BACKSLASH, SPACE] = [0x22, 0x5c, 0x20];
/** V8 copies substrings shorter than this. */
const COPIED_CHARS_MAX = 13;
/** The field's start in compact form, and as Python writes it. */
const TEXT_BEGINS = ['"content":"', '"content": "'];
/** A string of random length with which OpenAI hides the length of the text. */
const PADDING_BEGINS = ['"obfuscation":"', '"obfuscation": "'];

export class ChunkFrame {
  /** Data and object of an event, with a mark for each string that differs. */
  private readonly sample: Buffer;
  private readonly object: Readonly<Record<string, unknown>>;

  private constructor(
    /** The parts before, between and after the strings that differ. */
    private readonly literals: readonly string[],
  ) {
    this.sample = Buffer.from(literals.join(MARK), "latin1");
    this.object = JSON.parse(this.sample.toString());
  }

  /** Makes the frame of a parsed chunk; null when the chunk is no pattern for others. */
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

  /** The differing strings of an event that otherwise matches; null for another event. */
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

  /** The parts around the strings after `rewrite`, which gets an event's data and its object; null when they cannot be determined. */
  rewritten(rewrite: (data: Buffer, object: Readonly<Record<string, unknown>>) => Uint8Array | null): readonly string[] | null {
    const bytes = rewrite(this.sample, this.object);
    if (bytes === null) return null;
    const literals = Buffer.from(bytes).toString("latin1").split(MARK);
    return literals.length === this.literals.length ? literals : null;
  }

  /** Whether the part cut out is the text of the first choice, and the only field of that name. */
  private isReadAsText(): boolean {
    const { choices, obfuscation } = this.object;
    const choice: unknown = Array.isArray(choices) ? choices[0] : null;
    const delta = isRecord(choice) ? choice.delta : null;
    return isRecord(delta) && delta.content === MARK && (this.literals.length === 2 || obfuscation === MARK);
  }
}

/** Decodes a filling; null when it is no JSON string. */
export function textOfFilling(filling: string): string | null {
  let hasEscapes = false;
  let isAscii = true;
  for (let index = 0; index < filling.length; index++) {
    const code = filling.charCodeAt(index);
    if (code === BACKSLASH) hasEscapes = true;
    else if (code >= 0x80) isAscii = false;
  }
  // A longer substring would keep the whole string in memory.
  if (isAscii && !hasEscapes && filling.length < COPIED_CHARS_MAX) return filling;
  const text = Buffer.from(filling, "latin1").toString();
  if (!hasEscapes) return text;
  try {
    return JSON.parse(`"${text}"`);
  } catch {
    return null;
  }
}

/** Whether the chunk is one unfinished choice with a text. */
function saysOnlyText({ choices, usage, error }: Readonly<Record<string, unknown>>): boolean {
  if (!Array.isArray(choices) || choices.length !== 1 || usage != null || error != null) return false;
  const [choice] = choices;
  if (!isRecord(choice) || !isRecord(choice.delta) || choice.finish_reason != null) return false;
  // It must have no other content.
  const { content, refusal, tool_calls: calls, function_call: call, audio, images } = choice.delta;
  const others = [refusal, reasoningIn(choice.delta), calls, call, audio, images];
  return typeof content === "string" && others.every((other) => other == null || other === "");
}

/** The text before and after the string that begins so, without its quotes. */
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

/** The position of the closing quote; -1 when there is none before `end`. */
function endOfString(text: string, from: number, end: number): number {
  for (let at = from; at < end; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at;
    if (code === BACKSLASH) at += 1;
    else if (code < SPACE) return -1;
  }
  return -1;
}
