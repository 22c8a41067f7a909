/** How deep a JSON text nests, found before it is parsed, so that no recursive reader ever meets what it cannot survive. */

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
