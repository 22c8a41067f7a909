/**
 * Counts the tokens of a piece of text by byte-pair merging, with OpenAI's o200k_base vocabulary. `gpt-tokenizer`'s own merging is
 * quadratic, so one long Chinese sentence or a thousand letters in a row would block the process; here a heap yields the next pair to
 * merge.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

// OpenAI's o200k_base vocabulary: tokens as byte strings, and their ranks. Read from the `.tiktoken` file of `gpt-tokenizer` into typed
// arrays of some 4 MB (docs/decisions/vocabulary-in-typed-arrays.md).

/** Larger than every rank: no token. */
export const NO_RANK = 0x7fff_ffff;

/** A slot of the table has a rank in its low bits, and above them the same bits of the token's mixed hash. */
const RANK_BITS = 18;
const RANK_MASK = 2 ** RANK_BITS - 1;
/** The 199,998 tokens fill less than two fifths of the slots. */
const TABLE_BITS = 19;
const TABLE_MASK = 2 ** TABLE_BITS - 1;
/** Differs from every full slot: there are fewer ranks than its low bits say. */
const EMPTY = -1;

const HASH_BASE = 0x2c1b_3c6d;

const LINE_FEED = 0x0a;
const SPACE = 0x20;
const PADDING = 0x3d;
/** Six bits by the character code of a base64 digit. */
const BASE64_VALUES = new Uint8Array(256);
for (const [value, digit] of [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"].entries()) {
  BASE64_VALUES[digit.charCodeAt(0)] = value;
}

/**
 * Extends a hash by one byte; the hash of no bytes is 0. It is polynomial, so that the hash of any part follows from those of its prefix
 * and of the whole (`Vocabulary.hashBetween`).
 */
export function extendHash(hash: number, byte: number): number {
  return (Math.imul(hash, HASH_BASE) + byte) | 0;
}

class Vocabulary {
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

  /** The hash of `length` bytes, at most `longest`, from the hash of all bytes before them and the hash up to their end. */
  hashBetween(before: number, upToEnd: number, length: number): number {
    return (upToEnd - Math.imul(before, this.powers[length] as number)) | 0;
  }

  /** The rank of the token in `bytes` from `start` to `end`, with this `hash`; NO_RANK for no token. */
  rankOf(bytes: Uint8Array, start: number, end: number, hash: number): number {
    const { table } = this;
    const mixed = mixHash(hash);
    for (let slot = mixed & TABLE_MASK; ; slot = (slot + 1) & TABLE_MASK) {
      const entry = table[slot] as number;
      if (entry === EMPTY) return NO_RANK;
      // The bits above the rank rule out nearly all other tokens without reading their bytes.
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

/** Takes some 50 ms; done once, on first use. */
export function loadVocabulary(): Vocabulary {
  const file = createRequire(import.meta.url).resolve("gpt-tokenizer/data/o200k_base.tiktoken");
  return parseVocabulary(readFileSync(file));
}

/** Parses lines of a token in base64, a space, and the token's rank, which is the line number. Overwrites `file`. */
function parseVocabulary(file: Uint8Array): Vocabulary {
  const ends = new Int32Array(2 ** RANK_BITS);
  const count = decodeTokens(file, ends);
  const bytes = new Uint8Array(file.subarray(0, ends[count - 1]));
  let longest = 0;
  for (let rank = 1; rank < count; rank += 1) longest = Math.max(longest, (ends[rank] as number) - (ends[rank - 1] as number));
  return new Vocabulary(bytes, ends, tabulate(bytes, ends.subarray(0, count)), longest);
}

/**
 * Decodes the tokens to the front of the file, over the part already read, and stores their ends; returns their number. One plain loop,
 * which is compiled soonest, as it runs once.
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

export interface BytePairs {
  /**
   * Tokens in the piece of `text` from `start` to `end`. A piece that is not one token uses up its UTF-8 bytes of `allowance`; null,
   * without merging, when too few are left.
   */
  countPiece(text: string, start: number, end: number, allowance: MergeAllowance): number | null;
}

/** Bytes that may still be merged; below 0 after a refusal. */
export interface MergeAllowance {
  mergedBytes: number;
}

/** A heap key is `rank * POSITIONS + position`, exact in a double: the lowest rank first, then the leftmost. */
const POSITIONS = 2 ** 21;

const ENCODER = new TextEncoder();

/** Takes some 50 ms and 4 MB; done once, on first use. */
export function loadBytePairs(): BytePairs {
  return new HeapMerger(loadVocabulary());
}

class HeapMerger implements BytePairs {
  // Scratch space, reused by every call and grown as needed.
  /** The piece in UTF-8, and the hash of the bytes before each position. */
  private bytes = new Uint8Array(0);
  private hashes = new Int32Array(0);
  // A segment of the piece is identified by the position of its first byte.
  private next = new Int32Array(0);
  private previous = new Int32Array(0);
  /** Rank of the token that a segment and its successor would form; NO_RANK once the segment is merged into another. */
  private rank = new Int32Array(0);
  private heap = new Float64Array(0);
  private heapSize = 0;

  constructor(private readonly vocabulary: Vocabulary) {}

  countPiece(text: string, start: number, end: number, allowance: MergeAllowance): number | null {
    const { vocabulary } = this;
    let length = end - start;
    // There are at least as many bytes as characters, so a piece that is too long in characters is not read.
    if (length <= Math.max(vocabulary.longest, allowance.mergedBytes)) {
      length = this.read(text, start, end);
      if (length <= vocabulary.longest && vocabulary.rankOf(this.bytes, 0, length, this.hashes[length] as number) !== NO_RANK) return 1;
    }
    allowance.mergedBytes -= length;
    return allowance.mergedBytes < 0 ? null : this.countMerged(length);
  }

  /** Fills `bytes` and `hashes`; returns the number of bytes. */
  private read(text: string, start: number, end: number): number {
    // A UTF-16 unit takes at most three bytes; characters of four bytes are two units.
    if (this.bytes.length < 3 * (end - start)) this.grow(3 * (end - start));
    const { bytes, hashes } = this;
    const length = this.encode(text, start, end);
    let hash = 0;
    for (let at = 0; at < length; at += 1) {
      hash = extendHash(hash, bytes[at] as number);
      hashes[at + 1] = hash;
    }
    return length;
  }

  private encode(text: string, start: number, end: number): number {
    const { bytes } = this;
    for (let at = start; at < end; at += 1) {
      const code = text.charCodeAt(at);
      if (code >= 0x80) return ENCODER.encodeInto(text.slice(start, end), bytes).written;
      bytes[at - start] = code;
    }
    return end - start;
  }

  private grow(length: number): void {
    const size = Math.max(256, 2 * length);
    this.bytes = new Uint8Array(size);
    this.hashes = new Int32Array(size + 1);
    this.next = new Int32Array(size);
    this.previous = new Int32Array(size);
    this.rank = new Int32Array(size);
    // A merge adds at most two keys, and there are fewer merges than bytes.
    this.heap = new Float64Array(3 * size);
  }

  private countMerged(length: number): number {
    this.begin(length);
    let count = length;
    while (this.heapSize > 0) {
      const key = this.pop();
      const rank = Math.floor(key / POSITIONS);
      const at = key - rank * POSITIONS;
      // A stale key: the pair has changed or is gone.
      if (this.rank[at] !== rank) continue;
      this.merge(at, length);
      count -= 1;
    }
    return count;
  }

  private begin(length: number): void {
    this.heapSize = 0;
    for (let at = 0; at < length; at += 1) {
      this.next[at] = at + 1;
      this.previous[at] = at - 1;
    }
    for (let at = 0; at < length; at += 1) this.rerank(at, length);
  }

  /** Merges the segment at `at` with its successor. */
  private merge(at: number, length: number): void {
    const eaten = this.next[at] as number;
    const following = this.next[eaten] as number;
    this.rank[eaten] = NO_RANK;
    this.next[at] = following;
    if (following < length) this.previous[following] = at;
    this.rerank(at, length);
    const before = this.previous[at] as number;
    if (before >= 0) this.rerank(before, length);
  }

  private rerank(at: number, length: number): void {
    const { vocabulary, hashes } = this;
    const middle = this.next[at] as number;
    let rank = NO_RANK;
    if (middle < length) {
      const end = this.next[middle] as number;
      if (end - at <= vocabulary.longest) {
        const hash = vocabulary.hashBetween(hashes[at] as number, hashes[end] as number, end - at);
        rank = vocabulary.rankOf(this.bytes, at, end, hash);
      }
    }
    this.rank[at] = rank;
    if (rank !== NO_RANK) this.push(rank * POSITIONS + at);
  }

  private push(key: number): void {
    const { heap } = this;
    let at = this.heapSize;
    this.heapSize += 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent] as number;
      if (above <= key) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = key;
  }

  private pop(): number {
    const { heap } = this;
    const top = heap[0] as number;
    this.heapSize -= 1;
    const size = this.heapSize;
    const key = heap[size] as number;
    let at = 0;
    for (let child = 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && (heap[child + 1] as number) < (heap[child] as number)) child += 1;
      const below = heap[child] as number;
      if (below >= key) break;
      heap[at] = below;
      at = child;
    }
    heap[at] = key;
    return top;
  }
}
