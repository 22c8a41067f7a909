/**
 * Bounds the part of an event stream without content: comments, empty lines, and fields and events without text. A vendor's keep-alive is a
 * few bytes a second; a flood of them is unpaid work.
 */

/**
 * Unspecified: bytes that an event without content counts at least, because it is parsed like any other, and at most: some repeat the whole
 * request.
 */
const SILENT_EVENT_BYTES_MIN = 256;
const SILENT_EVENT_BYTES_MAX = 64 * 1024;

export class SseSilenceError extends Error {
  override readonly name = "SseSilenceError";

  constructor(bytesMax: number) {
    super(`The stream carried more than ${bytesMax} bytes without content: comments, empty lines or events that say nothing.`);
  }
}

/** Counts between two pieces of content. */
export class SseSilence {
  private bytes = 0;

  constructor(private readonly bytesMax: number) {}

  /** Resets the count at content. */
  end(): void {
    this.bytes = 0;
  }

  /** Throws SseSilenceError. */
  add(bytes: number): void {
    this.bytes += bytes;
    if (this.bytes > this.bytesMax) throw new SseSilenceError(this.bytesMax);
  }

  /** Throws SseSilenceError. */
  addEvent(bytes: number): void {
    this.add(Math.min(Math.max(bytes, SILENT_EVENT_BYTES_MIN), SILENT_EVENT_BYTES_MAX));
  }
}

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const DATA = Buffer.from("data:");

/** The same for a stream that is parsed elsewhere: the text of every `data` line is content. */
export class RawSseSilence {
  private readonly silence: SseSilence;
  /** Bytes of the line so far, up to one more than those of `data:`. */
  private lineBytes = 0;
  /** The line so far matches `data:`. */
  private isData = true;

  constructor(bytesMax: number) {
    this.silence = new SseSilence(bytesMax);
  }

  /** Throws SseSilenceError. */
  push(chunk: Uint8Array): void {
    let silent = 0;
    let { lineBytes, isData } = this;
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at] as number;
      if (byte === LF || byte === CR) {
        lineBytes = 0;
        isData = true;
        silent += 1;
      } else if (lineBytes < DATA.length) {
        isData &&= byte === DATA[lineBytes];
        lineBytes += 1;
        silent += 1;
      } else if (!isData || byte === SPACE) {
        silent += 1;
      } else {
        // The rest of the line is content too.
        this.silence.add(silent);
        this.silence.end();
        silent = 0;
        const end = lineEnd(chunk, at);
        at = end - 1;
      }
    }
    this.lineBytes = lineBytes;
    this.isData = isData;
    this.silence.add(silent);
  }
}

function lineEnd(chunk: Uint8Array, from: number): number {
  let at = from;
  while (at < chunk.length && chunk[at] !== LF && chunk[at] !== CR) at += 1;
  return at;
}
