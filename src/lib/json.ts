/**
 * JSON that is looked at before it is parsed: how deep it nests, so that no recursive reader ever meets what it cannot survive, and large
 * texts, which are cut out of it.
 */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACKET = 0x5d;
/** `[` and `{`, `]` and `}` differ in this bit alone. */
const BRACE_BIT = 0x20;
/** What is left of a string after this many bytes is crossed by native searches, so long texts and pictures cost next to nothing. */
const NEAR_BYTES = 48;

/**
 * Whether arrays and objects in this JSON text nest deeper than `max`: `[]` is 1 deep. Brackets inside strings do not count.
 * The text need not be valid: what is not JSON is answered for as far as brackets and strings can be told apart.
 */
export function jsonDepthExceeds(bytes: Uint8Array, max: number): boolean {
  // Each level takes a byte to open.
  if (bytes.length <= max) return false;
  const text = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  // Most bodies hold too few brackets, wherever these stand, to nest so deep: that much a native search knows.
  const openings = countUpTo(text, OPEN_BRACE, max + 1);
  if (openings <= max && openings + countUpTo(text, OPEN_BRACKET, max + 1 - openings) <= max) return false;
  return scanExceeds(text, max);
}

function countUpTo(text: Buffer, byte: number, limit: number): number {
  let count = 0;
  for (let at = text.indexOf(byte); at !== -1 && count < limit; at = text.indexOf(byte, at + 1)) count += 1;
  return count;
}

function scanExceeds(text: Buffer, max: number): boolean {
  const { length } = text;
  let depth = 0;
  for (let at = 0; at < length; at += 1) {
    const byte = text[at] as number;
    if (byte === QUOTE) {
      at = stringEnd(text, at + 1, length);
    } else if (byte >= OPEN_BRACKET) {
      const bracket = byte & ~BRACE_BIT;
      if (bracket === OPEN_BRACKET) {
        depth += 1;
        if (depth > max) return true;
      } else if (bracket === CLOSE_BRACKET) {
        depth -= 1;
      }
    }
  }
  return false;
}

/** The index of the quote that closes the string whose first character is at `from`; the text's length when none does. */
function stringEnd(text: Buffer, from: number, length: number): number {
  let at = from;
  for (;;) {
    const near = Math.min(at + NEAR_BYTES, length);
    while (at < near) {
      const byte = text[at];
      if (byte === QUOTE) return at;
      at += byte === BACKSLASH ? 2 : 1;
    }
    // `at` begins a character, escaped or not: the next quote closes the string unless the backslashes that stand before it,
    // counted back to here, are odd in number.
    const quote = text.indexOf(QUOTE, at);
    if (quote === -1) return length;
    let before = quote - 1;
    while (before >= at && text[before] === BACKSLASH) before -= 1;
    if ((quote - 1 - before) % 2 === 0) return quote;
    at = quote + 1;
  }
}

// Large texts in a JSON document, cut out of it before it is parsed: a picture as base64 is megabytes that would become a string, be
// looked at character by character, and be written again. Cut out, it stays the bytes that came.

const COLON = 0x3a;
const WHITE_SPACE = new Set([0x20, 0x09, 0x0a, 0x0d]);
/** Shorter ones are parsed as fast as they are cut. */
const CUT_BYTES_MIN = 1_024;

interface CutJson {
  /** The document, in which each text that was cut is its index in `texts`. */
  readonly rest: Buffer;
  readonly texts: readonly Buffer[];
}

/**
 * Cuts the values of every field of this name that are long strings without an escape. Of a document that is not JSON it may cut
 * anything, and `rest` is no JSON then either: outside of strings, quotes stand only around them, and inside they are escaped.
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

/** The first byte of the string that follows a key; null when something else does. */
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

/** As many characters as are decoded at a time: short strings are made and forgotten much faster than long ones. */
const PIECE_CHARS = 32 * 1_024;
const PADDING = 0x3d;
/** Node writes nothing, or complains, where no whole group of bytes has room. */
const GROUP_BYTES = 3;
const scratch = Buffer.alloc((PIECE_CHARS / 4) * 3 + GROUP_BYTES);

/** Whether this text in ASCII is base64 throughout, of one byte at least. It is decoded piece by piece, and kept nowhere. */
export function isBase64(text: Buffer): boolean {
  const size = decodedSize(text);
  // No number of bytes leaves one character over.
  if (size === 0 || (text.length - paddingOf(text)) % 4 === 1) return false;
  let decoded = 0;
  for (let from = 0; from < text.length; from += PIECE_CHARS) {
    decoded += scratch.write(text.toString("latin1", from, from + PIECE_CHARS), "base64");
  }
  // Node skips what is not base64: there are fewer bytes then than the characters stand for.
  return decoded === size;
}

/** The bytes that a base64 text in ASCII stands for. */
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
