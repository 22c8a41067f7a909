/**
 * Frames between the gateway and a guest, over the guest's standard input and output: the length of the header and of the bytes, four bytes
 * each, big-endian; the header, a JSON object; and the bytes.
 *
 * Also bundled into the guest's program: Web APIs only.
 */

export interface Frame {
  /** Any JSON value: the reader checks it. */
  readonly header: unknown;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

export interface FrameBounds {
  readonly headerBytesMax: number;
  readonly bytesMax: number;
}

export class FrameError extends Error {
  override readonly name = "FrameError";
}

const LENGTHS_BYTES = 8;
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });
const NOTHING = new Uint8Array(0);

export function encodeFrame(header: object, bytes: Uint8Array = NOTHING): Uint8Array<ArrayBuffer> {
  const json = encoder.encode(JSON.stringify(header));
  const frame = new Uint8Array(LENGTHS_BYTES + json.length + bytes.length);
  const lengths = new DataView(frame.buffer);
  lengths.setUint32(0, json.length);
  lengths.setUint32(4, bytes.length);
  frame.set(json, LENGTHS_BYTES);
  frame.set(bytes, LENGTHS_BYTES + json.length);
  return frame;
}

/** Assembles frames from chunks. Keeps at most one unfinished frame. */
export class FrameReader {
  private chunks: Uint8Array[] = [];
  private buffered = 0;
  /** Bytes needed before the next attempt to parse. */
  private wanted = LENGTHS_BYTES;

  constructor(private readonly bounds: FrameBounds) {}

  /** Returns the frames that this chunk completes. Throws FrameError for a malformed one; read nothing after that. */
  push(chunk: Uint8Array): Frame[] {
    this.chunks.push(chunk);
    this.buffered += chunk.length;
    const frames: Frame[] = [];
    while (this.buffered >= this.wanted) {
      const frame = this.take();
      if (frame) frames.push(frame);
    }
    return frames;
  }

  private take(): Frame | null {
    const whole = this.chunks.length === 1 ? (this.chunks[0] ?? NOTHING) : concat(this.chunks, this.buffered);
    const lengths = new DataView(whole.buffer, whole.byteOffset, whole.length);
    const headerEnd = LENGTHS_BYTES + lengths.getUint32(0);
    const end = headerEnd + lengths.getUint32(4);
    if (headerEnd - LENGTHS_BYTES > this.bounds.headerBytesMax) throw new FrameError("A frame's header is too long.");
    if (end - headerEnd > this.bounds.bytesMax) throw new FrameError("A frame is too long.");
    this.chunks = [whole];
    this.wanted = end;
    if (whole.length < end) return null;
    this.chunks = [whole.subarray(end)];
    this.buffered -= end;
    this.wanted = LENGTHS_BYTES;
    return { header: parseHeader(whole.subarray(LENGTHS_BYTES, headerEnd)), bytes: new Uint8Array(whole.subarray(headerEnd, end)) };
  }
}

function parseHeader(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(bytes));
  } catch {
    throw new FrameError("A frame's header is not JSON.");
  }
}

function concat(chunks: readonly Uint8Array[], length: number): Uint8Array {
  const whole = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}
