/**
 * Whether bytes are characters of base64, sixteen at a time: a picture of a megabyte has a million and a half of them, and as strings, which
 * is how Node decodes them, they are garbage of the same size (measured: 0.32 ms and a sixth of a collection, against 0.22 ms).
 */

// i8x16 operations of the SIMD proposal, as WebAssembly encodes them.
const SPLAT = [0xfd, 0x0f];
const EQ = [0xfd, 0x23];
const LESS = [0xfd, 0x26];
const AND = [0xfd, 0x4e];
const OR = [0xfd, 0x50];
const ALL_TRUE = [0xfd, 0x63];
const SUB = [0xfd, 0x71];
const CHARS = [0x20, 0x02];
const constant = (byte: number) => [0x41, ...(byte < 0x40 ? [byte] : [byte | 0x80, 0x00]), ...SPLAT];
const isChar = (char: string) => [...CHARS, ...constant(char.charCodeAt(0)), ...EQ, ...OR];
const name = (text: string) => [text.length, ...Buffer.from(text)];
/** LEB128 in two bytes, which what is shorter may take, too. */
const size = (bytes: number) => [(bytes & 0x7f) | 0x80, bytes >> 7];
const section = (id: number, content: readonly number[]) => [id, ...size(content.length), ...content];

/** (end) => whether every byte from 0 to `end`, a multiple of 16, is one of A-Z, a-z, 0-9, "+", "/", "-" and "_". */
const BODY = [
  // Locals: 1 is the place, 2 sixteen characters, 3 which of sixteen columns have been good so far: all of them.
  ...[0x02, 0x01, 0x7f, 0x02, 0x7b],
  ...[0xfd, 0x0c, ...new Array<number>(16).fill(0xff), 0x21, 0x03],
  ...[0x03, 0x40],
  ...[0x20, 0x01, 0xfd, 0x00, 0x00, 0x00, 0x21, 0x02],
  // Letters, small or not.
  ...[...CHARS, ...constant(0x20), ...OR, ...constant(0x61), ...SUB, ...constant(26), ...LESS],
  // The slash stands before the digits.
  ...[...CHARS, ...constant(0x2f), ...SUB, ...constant(11), ...LESS, ...OR],
  ...[...isChar("+"), ...isChar("-"), ...isChar("_")],
  ...[0x20, 0x03, ...AND, 0x21, 0x03],
  // On to the next sixteen, until the end.
  ...[0x20, 0x01, 0x41, 0x10, 0x6a, 0x22, 0x01, 0x20, 0x00, 0x49, 0x0d, 0x00, 0x0b],
  ...[0x20, 0x03, ...ALL_TRUE, 0x0b],
];
const MODULE = new Uint8Array([
  ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
  ...section(1, [0x01, 0x60, 0x01, 0x7f, 0x01, 0x7f]),
  ...section(3, [0x01, 0x00]),
  ...section(5, [0x01, 0x00, 0x01]),
  ...section(7, [0x02, ...name("memory"), 0x02, 0x00, ...name("check"), 0x00, 0x00]),
  ...section(10, [0x01, ...size(BODY.length), ...BODY]),
]);

const MEMORY_BYTES = 64 * 1024;
const LANES = 16;
const FILLING = "A".charCodeAt(0);

interface Checker {
  readonly view: Uint8Array;
  readonly check: (end: number) => number;
}

let checker: Checker | null | undefined;

/** Null on a processor that cannot do this. */
function loadChecker(): Checker | null {
  if (!WebAssembly.validate(MODULE)) return null;
  const { memory, check } = new WebAssembly.Instance(new WebAssembly.Module(MODULE)).exports;
  return { view: new Uint8Array((memory as WebAssembly.Memory).buffer), check: check as Checker["check"] };
}

/** Whether these bytes are characters of base64, either alphabet, without padding; null where that must be found out in another way. */
export function areBase64Characters(text: Uint8Array): boolean | null {
  checker ??= loadChecker();
  if (checker === null) return null;
  const { view, check } = checker;
  for (let from = 0; from < text.length; from += MEMORY_BYTES) {
    const piece = text.subarray(from, from + MEMORY_BYTES);
    view.set(piece);
    const end = Math.ceil(piece.length / LANES) * LANES;
    view.fill(FILLING, piece.length, end);
    if (check(end) === 0) return false;
  }
  return true;
}
