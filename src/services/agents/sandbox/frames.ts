/**
 * Frames: how the gateway and a guest talk over the guest's standard input and output. Each is the length of its header and the length
 * of its bytes, four bytes each, the most significant first; the header, a JSON object; and the bytes.
 *
 * Bundled into the guest's program too: Web APIs only.
 */

export interface Frame {
  /** Any JSON value: whoever reads it checks it. */
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

/** Puts frames together from chunks that end anywhere. Keeps no more than one unfinished frame. */
export class FrameReader {
  private chunks: Uint8Array[] = [];
  private buffered = 0;
  /** Bytes that must be there before it is worth looking again. */
  private wanted = LENGTHS_BYTES;

  constructor(private readonly bounds: FrameBounds) {}

  /** The frames that this chunk completes. Throws FrameError for what is none; nothing may be read after that. */
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
