/**
 * Cuts large texts out of a JSON document before it is parsed: an image in base64 is megabytes that would become a string, be scanned, and
 * be serialized again. Cut out, it stays the received bytes.
 */
import { ownValue, setOwnValue } from "./own-values.js";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const WHITE_SPACE = new Set([0x20, 0x09, 0x0a, 0x0d]);
/** Shorter texts are parsed as fast as they are cut. */
const CUT_BYTES_MIN = 1_024;

interface CutJson {
  /** The document, with each cut text replaced by its index in `texts`. */
  readonly rest: Buffer;
  readonly texts: readonly Buffer[];
}

/**
 * Cuts the values of all fields of this name that are long strings without an escape. In invalid JSON it may cut anything, and `rest` is
 * then invalid too: quotes outside of strings only delimit them, and inside they are escaped.
 */
export function cutTexts(json: Buffer, name: string): CutJson {
  const key = Buffer.from(`"${name}"`);
  const kept: Buffer[] = [];
  const texts: Buffer[] = [];
  let keptTo = 0;
  for (let at = json.indexOf(key); at !== -1; at = json.indexOf(key, at + 1)) {
    const start = valueStart(json, at + key.length);
    if (start === null || json[at - 1] === BACKSLASH) continue;
    const end = json.indexOf(QUOTE, start);
    const text = json.subarray(start, end === -1 ? start : end);
    if (text.length < CUT_BYTES_MIN || text.includes(BACKSLASH)) continue;
    kept.push(json.subarray(keptTo, start - 1), Buffer.from(String(texts.length)));
    texts.push(text);
    keptTo = end + 1;
    at = end;
  }
  if (texts.length === 0) return { rest: json, texts };
  return { rest: Buffer.concat([...kept, json.subarray(keptTo)]), texts };
}

/** The first byte of the string after a key; null for another value. */
function valueStart(json: Buffer, afterKey: number): number | null {
  const colon = skipWhiteSpace(json, afterKey);
  if (json[colon] !== COLON) return null;
  const quote = skipWhiteSpace(json, colon + 1);
  return json[quote] === QUOTE ? quote + 1 : null;
}

function skipWhiteSpace(json: Buffer, from: number): number {
  let at = from;
  while (WHITE_SPACE.has(json[at] ?? 0)) at += 1;
  return at;
}

/** Characters decoded at a time: short strings are allocated and freed faster than long ones. */
const PIECE_CHARS = 32 * 1_024;
const PADDING = 0x3d;
/** Node writes nothing, or throws, without room for a whole group of bytes. */
const GROUP_BYTES = 3;
const scratch = Buffer.alloc((PIECE_CHARS / 4) * 3 + GROUP_BYTES);

/** Whether this ASCII text is entirely base64, of at least one byte. Decodes it in pieces, and keeps nothing. */
export function isBase64(text: Buffer): boolean {
  const size = decodedSize(text);
  // No number of bytes leaves one character over.
  if (size === 0 || (text.length - paddingOf(text)) % 4 === 1) return false;
  let decoded = 0;
  for (let from = 0; from < text.length; from += PIECE_CHARS) {
    decoded += scratch.write(text.toString("latin1", from, from + PIECE_CHARS), "base64");
  }
  // Node skips other characters, so there would be fewer bytes.
  return decoded === size;
}

/** Decodes base64 in ASCII. */
export function decodeBase64(text: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(decodedSize(text) + GROUP_BYTES);
  let at = 0;
  for (let from = 0; from < text.length; from += PIECE_CHARS) {
    at += bytes.write(text.toString("latin1", from, from + PIECE_CHARS), at, "base64");
  }
  return bytes.subarray(0, at);
}

function decodedSize(text: Buffer): number {
  return Math.floor(((text.length - paddingOf(text)) * 3) / 4);
}

function paddingOf(text: Buffer): number {
  if (text.at(-1) !== PADDING) return 0;
  return text.at(-2) === PADDING ? 2 : 1;
}

/** An object that is not an array. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The objects of a list; empty for anything else. */
export function recordsOf(value: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

/** A copy that shares only texts and bytes with the value, whose nesting is bounded like a body's. */
export function copyJson<Value>(value: Value): Value {
  if (Array.isArray(value)) return value.map((item: unknown) => copyJson(item)) as Value;
  if (!isRecord(value) || ArrayBuffer.isView(value)) return value;
  const copy: Record<string, unknown> = {};
  for (const name of Object.keys(value)) setOwnValue(copy, name, copyJson(ownValue(value, name)));
  return copy as Value;
}
