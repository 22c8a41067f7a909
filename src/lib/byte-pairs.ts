/**
 * Counts the tokens of one piece of text by byte-pair merging, with OpenAI's o200k_base vocabulary. `gpt-tokenizer`'s own
 * merging takes time in proportion to the square of a piece, which one long Chinese sentence or a run of a thousand letters
 * turns into a stall of the whole process; here the next pair to merge comes from a heap.
 */
import { extendHash, loadVocabulary, NO_RANK, type Vocabulary } from "./vocabulary.js";

export interface BytePairs {
  /**
   * Tokens of the piece of `text` from `start` to `end`. A piece that is not one token takes its UTF-8 bytes from `allowance`;
   * null, and nothing is merged, when that has not so many left.
   */
  countPiece(text: string, start: number, end: number, allowance: MergeAllowance): number | null;
}

/** How many bytes may still be merged; below 0 once a piece was refused. */
export interface MergeAllowance {
  mergedBytes: number;
}

/** A heap key is `rank * POSITIONS + position`, exact in a double: the lowest rank first, then the leftmost. */
const POSITIONS = 2 ** 21;

const ENCODER = new TextEncoder();

/** Takes some 50 ms and 4 MB: done once, and not before it is needed. */
export function loadBytePairs(): BytePairs {
  return new HeapMerger(loadVocabulary());
}

class HeapMerger implements BytePairs {
  // Scratch space, reused by every call and grown when a longer piece comes.
  /** The piece in UTF-8, and the hash of all that is before each place in it. */
  private bytes = new Uint8Array(0);
  private hashes = new Int32Array(0);
  // A segment of the piece is known by the place of its first byte.
  private next = new Int32Array(0);
  private previous = new Int32Array(0);
  /** Rank of the token that a segment and the one after it would make; NO_RANK once the segment is part of another. */
  private rank = new Int32Array(0);
  private heap = new Float64Array(0);
  private heapSize = 0;

  constructor(private readonly vocabulary: Vocabulary) {}

  countPiece(text: string, start: number, end: number, allowance: MergeAllowance): number | null {
    const { vocabulary } = this;
    let length = end - start;
    // There are at least as many bytes as characters: what is too long by those alone is not even read.
    if (length <= Math.max(vocabulary.longest, allowance.mergedBytes)) {
      length = this.read(text, start, end);
      if (length <= vocabulary.longest && vocabulary.rankOf(this.bytes, 0, length, this.hashes[length] as number) !== NO_RANK) return 1;
    }
    allowance.mergedBytes -= length;
    return allowance.mergedBytes < 0 ? null : this.countMerged(length);
  }

  /** Fills `bytes` and `hashes`; answers the number of bytes. */
  private read(text: string, start: number, end: number): number {
    // No character takes more than three bytes; those of four are two characters to JavaScript.
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
    // A merge adds two keys at most, and there are fewer merges than bytes.
    this.heap = new Float64Array(3 * size);
  }

  private countMerged(length: number): number {
    this.begin(length);
    let count = length;
    while (this.heapSize > 0) {
      const key = this.pop();
      const rank = Math.floor(key / POSITIONS);
      const at = key - rank * POSITIONS;
      // The pair has changed since this key was made, or is gone.
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

  /** Makes one segment of the one at `at` and the one after it. */
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
