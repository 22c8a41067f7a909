/**
 * Bounds the structure of JSON from outside before it is parsed: nesting, keys of all objects, and values. The cost of a parser, and of
 * every walk through its result, depends on these, not on bytes.
 */

export interface JsonBounds {
  /** `[]` is 1 deep. */
  readonly depthMax: number;
  /** Of all objects together; repeated keys count each time. */
  readonly keysMax: number;
  /** Objects, arrays, texts, numbers, true, false and null, including the root. */
  readonly valuesMax: number;
  /** Keys and string values: a parser looks each short one up. */
  readonly textsMax: number;
  /** Objects and arrays: each costs as much as four numbers. */
  readonly bracketsMax: number;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACKET = 0x5d;
const CLOSE_BRACE = 0x7d;
const LAST_WHITE_SPACE = 0x20;
/** Class of a byte outside of strings; braces count as brackets. */
const PLAIN = 0;
const KINDS = new Uint8Array(256);
for (const byte of [QUOTE, COMMA, COLON, OPEN_BRACKET, CLOSE_BRACKET]) KINDS[byte] = byte;
KINDS[OPEN_BRACE] = OPEN_BRACKET;
KINDS[CLOSE_BRACE] = CLOSE_BRACKET;
/** Strings longer than this are skipped by native search, so long texts and images cost almost nothing. */
const NEAR_BYTES = 48;
/** `"":1,`, `1,` and `"",`: fewest bytes per key, value and text. */
const KEY_BYTES_MIN = 5;
const VALUE_BYTES_MIN = 2;
const TEXT_BYTES_MIN = 3;
/** Matches after which a native search has cost as much as the scan. */
const SEARCHED_MAX = 20_000;

/**
 * Names the exceeded bound, such as "has more than 20000 keys"; null within the bounds. The text may be invalid JSON: it is then checked as
 * far as brackets and strings can be recognized.
 */
export function jsonExcess(bytes: Uint8Array, bounds: JsonBounds): string | null {
  const text = toBuffer(bytes);
  return isWithin(text, bounds) ? null : new JsonScan(text, bounds).advance(text.length);
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** Most bodies have too few brackets, colons and commas in all to exceed a bound, which a native search shows. */
function isWithin(text: Buffer, { depthMax, keysMax, valuesMax, textsMax, bracketsMax }: JsonBounds): boolean {
  const { length } = text;
  const openMax = Math.min(depthMax, bracketsMax);
  // Each level takes a byte to open.
  if (length > openMax) {
    const braces = countUpTo(text, OPEN_BRACE, openMax + 1);
    if (braces > openMax || braces + countUpTo(text, OPEN_BRACKET, openMax + 1 - braces) > openMax) return false;
  }
  if (length > KEY_BYTES_MIN * keysMax && countUpTo(text, COLON, SEARCHED_MAX) >= Math.min(keysMax, SEARCHED_MAX)) return false;
  if (length > TEXT_BYTES_MIN * textsMax && countUpTo(text, QUOTE, SEARCHED_MAX) >= Math.min(textsMax, SEARCHED_MAX)) return false;
  // Brackets are few by now.
  return length <= VALUE_BYTES_MIN * valuesMax || countUpTo(text, COMMA, SEARCHED_MAX) + depthMax < Math.min(valuesMax, SEARCHED_MAX);
}

function countUpTo(text: Buffer, byte: number, limit: number): number {
  let count = 0;
  for (let at = text.indexOf(byte); at !== -1 && count < limit; at = text.indexOf(byte, at + 1)) count += 1;
  return count;
}

/** Parses several JSON texts under common bounds, such as those within one request. */
export class BoundedJson {
  private keysLeft: number;
  private valuesLeft: number;
  private textsLeft: number;
  private bracketsLeft: number;

  constructor(private readonly bounds: JsonBounds) {
    this.keysLeft = bounds.keysMax;
    this.valuesLeft = bounds.valuesMax;
    this.textsLeft = bounds.textsMax;
    this.bracketsLeft = bounds.bracketsMax;
  }

  /** Throws JsonExcessError, or the parser's SyntaxError, which quotes the text. */
  parse(json: string | Buffer): unknown {
    const bytes = typeof json === "string" ? Buffer.from(json) : json;
    const { bounds } = this;
    const left = {
      depthMax: bounds.depthMax,
      keysMax: this.keysLeft,
      valuesMax: this.valuesLeft,
      textsMax: this.textsLeft,
      bracketsMax: this.bracketsLeft,
    };
    const scan = new JsonScan(bytes, left);
    if (scan.advance(bytes.length) !== null) throw new JsonExcessError(jsonExcess(bytes, bounds) ?? sayTogether(bounds));
    this.keysLeft -= scan.keys;
    this.valuesLeft -= scan.values;
    this.textsLeft -= scan.texts;
    this.bracketsLeft -= scan.brackets;
    return JSON.parse(typeof json === "string" ? json : bytes.toString());
  }
}

/** Its message follows the name of the parsed text. */
export class JsonExcessError extends SyntaxError {
  override readonly name = "JsonExcessError";
}

/** One scan of a text, at once or in pieces. */
export class JsonScan {
  private at = 0;
  private depth = 0;
  keys = 0;
  /** The root is one. */
  values = 1;
  texts = 0;
  brackets = 0;
  /** Position of the last bracket while nothing was found in it; -1: none. */
  private opened = -1;
  /** `at` is inside a string. */
  private isInString = false;

  constructor(
    private readonly text: Buffer,
    private readonly bounds: JsonBounds,
  ) {}

  /** Scans to `to`, or a little further. Returns the message of an exceeded bound. */
  advance(to: number): string | null {
    const { text } = this;
    const { depthMax, keysMax, valuesMax, textsMax, bracketsMax } = this.bounds;
    let { at, depth, keys, values, texts, brackets, opened } = this;
    if (this.isInString) at = this.crossString(at, to);
    for (; at < to; at += 1) {
      const kind = KINDS[text[at] as number];
      if (kind === PLAIN) continue;
      if (kind === QUOTE) {
        opened = -1;
        texts += 1;
        if (texts > textsMax) return `has more than ${textsMax} texts and names of fields`;
        at = this.crossString(at + 1, to) - 1;
      } else if (kind === COMMA) {
        opened = -1;
        values += 1;
        if (values > valuesMax) return `has more than ${valuesMax} values`;
      } else if (kind === COLON) {
        keys += 1;
        if (keys > keysMax) return `has more than ${keysMax} keys`;
      } else if (kind === OPEN_BRACKET) {
        depth += 1;
        brackets += 1;
        opened = at;
        if (depth > depthMax) return `is nested more than ${depthMax} levels deep`;
        if (brackets > bracketsMax) return `has more than ${bracketsMax} objects and lists`;
      } else {
        depth -= 1;
        // Each value of a list but the last is followed by a comma.
        if (opened === -1 || !isBlank(text, opened + 1, at)) values += 1;
        opened = -1;
        if (values > valuesMax) return `has more than ${valuesMax} values`;
      }
    }
    this.at = at;
    this.depth = depth;
    this.keys = keys;
    this.values = values;
    this.texts = texts;
    this.brackets = brackets;
    this.opened = opened;
    return null;
  }

  /** Returns the index after the closing quote of the string around `from`; for a long string possibly only as far as `to`. */
  private crossString(from: number, to: number): number {
    const { text } = this;
    const { length } = text;
    this.isInString = true;
    let at = from;
    while (at < to) {
      const near = Math.min(at + NEAR_BYTES, length);
      while (at < near) {
        const byte = text[at];
        if (byte === QUOTE) {
          this.isInString = false;
          return at + 1;
        }
        at += byte === BACKSLASH ? 2 : 1;
      }
      // `at` is at a character boundary: the next quote closes the string unless an odd number of backslashes is before it, counted back to
      // here.
      const quote = text.indexOf(QUOTE, at);
      if (quote === -1) return length;
      let before = quote - 1;
      while (before >= at && text[before] === BACKSLASH) before -= 1;
      at = quote + 1;
      if ((quote - 1 - before) % 2 === 0) {
        this.isInString = false;
        return at;
      }
    }
    return at;
  }
}

function sayTogether({ keysMax, valuesMax, textsMax, bracketsMax }: JsonBounds): string {
  return `has, with those before it, more than ${keysMax} keys, ${valuesMax} values, ${textsMax} texts or ${bracketsMax} objects and lists`;
}

function isBlank(text: Buffer, from: number, to: number): boolean {
  for (let at = from; at < to; at += 1) if ((text[at] as number) > LAST_WHITE_SPACE) return false;
  return true;
}
