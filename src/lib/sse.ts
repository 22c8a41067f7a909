/**
 * Parses and writes server-sent events (HTML Living Standard, section 9.2.6). Lines may end in LF, CRLF or CR in any mixture, and a chunk
 * may end anywhere, also inside a character.
 *
 * No byte is read twice: `indexOf` finds the next line end, and the pieces of an unfinished line are kept until it is complete, so the cost
 * of an event is linear in its length for any chunks.
 */

export interface SseEvent {
  /** The values of the event's `data` lines, joined by a line feed. */
  readonly data: string;
  /** The value of its `event` field; null when absent. */
  readonly event: string | null;
  /**
   * The data as one well-formed event, `data: <line>\n` for each line and an empty line, without comments and other fields. A slice of the
   * chunk when the event had exactly that form.
   */
  readonly bytes: Buffer;
  /** The position of its data in the chunk, when the event had exactly that form. */
  readonly line?: RawLine;
}

/** A part of a chunk; offsets of bytes are those of characters in `raw`, the chunk as Latin-1. */
export interface RawLine {
  readonly raw: string;
  readonly start: number;
  readonly end: number;
}

export interface SseScanner {
  /** Returns the events that this chunk completes. Throws SseEventTooLargeError once an event exceeds the bound, and from then on. */
  push(chunk: Buffer): SseEvent[];
  /** The body has ended: an event without its closing empty line counts as complete. */
  end(): SseEvent[];
  /** The last `id`; null when absent. */
  readonly lastEventId: string | null;
  /** The last `retry`, in milliseconds; null when absent. */
  readonly retryMs: number | null;
  /** Bytes without data since the last call: comments, empty lines, other fields. Each line counts as SILENT_LINE_BYTES_MIN at least. */
  takeSilentBytes(): number;
}

export class SseEventTooLargeError extends Error {
  override readonly name = "SseEventTooLargeError";

  constructor(bound: string) {
    super(`A server-sent event is larger than ${bound}.`);
  }
}

export interface SseScannerOptions {
  /** Bound on an event, counted over its `data` lines, and on any single line. */
  readonly eventBytesMax: number;
}

export function createSseScanner(options: SseScannerOptions): SseScanner {
  return new Scanner(options.eventBytesMax);
}

/** Writes one event. Line ends inside `data` make several `data` lines. */
export function formatSseEvent(data: string, event?: string): Buffer {
  const lines = LINE_END.test(data) ? data.split(LINE_ENDS).join("\ndata: ") : data;
  return Buffer.from(event === undefined ? `data: ${lines}\n\n` : `event: ${event}\ndata: ${lines}\n\n`);
}

const LINE_END = /[\r\n]/;
const LINE_ENDS = /\r\n|\r|\n/;
const LF = 0x0a;
const CR = 0x0d;
const COLON = 0x3a;
const SPACE = 0x20;
const DATA = Buffer.from("data");
const EVENT = Buffer.from("event");
const ID = Buffer.from("id");
const RETRY = Buffer.from("retry");
const DIGITS = /^\d{1,9}$/;
const DATA_BEGINS = "data: ";
const EVENT_BEGINS = "event: ";
/** Any other name is read line by line. */
const PLAIN_NAME = /^[a-z_.]{1,64}$/;
const DATA_PREFIX = Buffer.from(DATA_BEGINS);
const LINE_FEED = Buffer.from("\n");
const EVENT_END = Buffer.from("\n\n");
/** Per event: its lines are kept separately until it is complete. */
const EVENT_LINES_MAX = 65_536;
/** The least count of a line that is no data. */
const SILENT_LINE_BYTES_MIN = 16;
const BYTE_ORDER_MARK = Buffer.from("\uFEFF");

/** An event as received. Its text is decoded on demand. */
class WholeEvent implements SseEvent, RawLine {
  readonly event = null;

  constructor(
    private readonly chunk: Buffer,
    readonly raw: string,
    readonly start: number,
    readonly end: number,
  ) {}

  get data(): string {
    return this.chunk.toString("utf8", this.start, this.end);
  }

  get bytes(): Buffer {
    return this.chunk.subarray(this.start - DATA_BEGINS.length, this.end + EVENT_END.length);
  }

  get line(): RawLine {
    return this;
  }
}

/** The same with a name, as formats with several kinds of events send. */
class NamedEvent implements SseEvent {
  constructor(
    readonly event: string,
    private readonly chunk: Buffer,
    private readonly start: number,
    private readonly end: number,
  ) {}

  get data(): string {
    return this.chunk.toString("utf8", this.start, this.end);
  }

  get bytes(): Buffer {
    return this.chunk.subarray(this.start - DATA_BEGINS.length, this.end + EVENT_END.length);
  }
}

class Scanner implements SseScanner {
  lastEventId: string | null = null;
  retryMs: number | null = null;
  /** The beginning of an unfinished line. */
  private parts: Buffer[] = [];
  private partsBytes = 0;
  private values: Buffer[] = [];
  /** The unfinished event, when its only data line and both line feeds are contiguous in memory. */
  private whole: Buffer | null = null;
  private dataBytes = 0;
  private eventName: string | null = null;
  private isFirstLine = true;
  /** The last chunk ended in CR: a LF at the start of the next one belongs to it. */
  private skipsLineFeed = false;
  private failure: SseEventTooLargeError | null = null;
  private silentBytes = 0;

  constructor(private readonly eventBytesMax: number) {}

  push(chunk: Buffer): SseEvent[] {
    if (this.failure) throw this.failure;
    const events: SseEvent[] = [];
    let at = 0;
    if (this.skipsLineFeed && chunk.length > 0) {
      this.skipsLineFeed = false;
      if (chunk[0] === LF) at = 1;
    }
    if (this.isBetweenEvents) at = this.takeWhole(chunk, at, events);
    // -1 is none; a position behind is searched again.
    let lf = -2;
    let cr = -2;
    for (;;) {
      if (this.partsBytes === 0) at = this.skipSilence(chunk, at);
      if (at >= chunk.length) return events;
      if (lf !== -1 && lf < at) lf = chunk.indexOf(LF, at);
      if (cr !== -1 && cr < at) cr = chunk.indexOf(CR, at);
      if (lf === -1 && cr === -1) break;
      if (lf !== -1 && (cr === -1 || lf < cr)) {
        this.takeLine(chunk.subarray(at, lf), events);
        at = lf + 1;
      } else {
        this.takeLine(chunk.subarray(at, cr), events);
        at = cr + 1;
        if (at === chunk.length) this.skipsLineFeed = true;
        else if (chunk[at] === LF) at += 1;
      }
      if (this.failure) return this.deliverThenFail(events);
    }
    this.keepPart(chunk.subarray(at));
    return this.failure ? this.deliverThenFail(events) : events;
  }

  end(): SseEvent[] {
    if (this.failure) throw this.failure;
    const events: SseEvent[] = [];
    if (this.partsBytes > 0) this.takeLine(Buffer.alloc(0), events);
    if (this.failure) throw this.failure;
    this.dispatch(events);
    return events;
  }

  takeSilentBytes(): number {
    const { silentBytes } = this;
    this.silentBytes = 0;
    return silentBytes;
  }

  /** Skips comments, and empty lines between events, without making lines. Returns the start of other content. */
  private skipSilence(chunk: Buffer, from: number): number {
    const { length } = chunk;
    const isBetween = this.values.length === 0 && this.eventName === null;
    let at = from;
    while (at < length) {
      const first = chunk[at];
      let end = at;
      if (first === COLON) while (end < length && chunk[end] !== LF && chunk[end] !== CR) end += 1;
      else if (!isBetween || (first !== LF && first !== CR)) break;
      // An unfinished comment, or one that is too long for a line.
      if (end === length || end - at > this.eventBytesMax) break;
      at = end + 1;
      if (chunk[end] === CR) {
        if (at === length) this.skipsLineFeed = true;
        else if (chunk[at] === LF) at += 1;
      }
    }
    if (at > from) this.isFirstLine = false;
    this.silentBytes += at - from;
    return at;
  }

  /** No part of an event is pending. */
  private get isBetweenEvents(): boolean {
    return this.partsBytes === 0 && this.values.length === 0 && this.eventName === null;
  }

  /** Takes events of the usual form: `data: ...`, LF, LF, or with `event: <name>`, LF before it. Returns the end of the last one. */
  private takeWhole(chunk: Buffer, from: number, events: SseEvent[]): number {
    const raw = chunk.toString("latin1");
    if (raw.includes("\r", from)) return from;
    let at = from;
    for (;;) {
      const nameEnd = raw.startsWith(EVENT_BEGINS, at) ? raw.indexOf("\n", at) : at - 1;
      const dataAt = nameEnd + 1;
      if (dataAt < at || !raw.startsWith(DATA_BEGINS, dataAt)) return at;
      const end = raw.indexOf("\n", dataAt);
      if (end === -1 || raw.charCodeAt(end + 1) !== LF || end - dataAt > this.eventBytesMax) return at;
      if (dataAt === at) events.push(new WholeEvent(chunk, raw, at + DATA_BEGINS.length, end));
      else {
        const name = raw.slice(at + EVENT_BEGINS.length, dataAt - 1);
        if (!PLAIN_NAME.test(name)) return at;
        this.silentBytes += Math.max(dataAt - 1 - at, SILENT_LINE_BYTES_MIN);
        events.push(new NamedEvent(name, chunk, dataAt + DATA_BEGINS.length, end));
      }
      this.isFirstLine = false;
      at = end + 2;
    }
  }

  private keepPart(part: Buffer): void {
    this.parts.push(part);
    this.partsBytes += part.length;
    if (this.dataBytes + this.partsBytes > this.eventBytesMax) this.failure = new SseEventTooLargeError(`${this.eventBytesMax} bytes`);
  }

  /** Completes a line: `rest` is its end, the kept parts are its beginning. */
  private takeLine(rest: Buffer, events: SseEvent[]): void {
    let line = rest;
    let whole: Buffer | null = null;
    if (this.dataBytes + this.partsBytes + rest.length > this.eventBytesMax) {
      this.failure = new SseEventTooLargeError(`${this.eventBytesMax} bytes`);
      return;
    }
    if (this.partsBytes > 0) {
      this.parts.push(rest, EVENT_END);
      whole = Buffer.concat(this.parts);
      line = whole.subarray(0, -EVENT_END.length);
      this.parts = [];
      this.partsBytes = 0;
    }
    if (this.isFirstLine) {
      this.isFirstLine = false;
      if (startsWith(line, BYTE_ORDER_MARK)) {
        line = line.subarray(BYTE_ORDER_MARK.length);
        whole = whole === null ? null : whole.subarray(BYTE_ORDER_MARK.length);
      }
    }
    if (line.length === 0) this.dispatch(events);
    else this.readField(line, whole);
  }

  private readField(line: Buffer, whole: Buffer | null): void {
    if (isField(line, DATA)) {
      this.whole = whole !== null && this.values.length === 0 && startsWith(line, DATA_PREFIX) ? whole : null;
      this.values.push(fieldValue(line, DATA));
      this.dataBytes += line.length;
      if (this.values.length > EVENT_LINES_MAX) this.failure = new SseEventTooLargeError(`${EVENT_LINES_MAX} lines`);
      return;
    }
    this.silentBytes += Math.max(line.length, SILENT_LINE_BYTES_MIN);
    if (isField(line, EVENT)) {
      this.eventName = fieldValue(line, EVENT).toString() || null;
    } else if (isField(line, ID)) {
      this.lastEventId = fieldValue(line, ID).toString() || null;
    } else if (isField(line, RETRY)) {
      const value = fieldValue(line, RETRY).toString();
      if (DIGITS.test(value)) this.retryMs = Number(value);
    }
  }

  private dispatch(events: SseEvent[]): void {
    const { values, whole } = this;
    const [first] = values;
    if (first !== undefined) {
      const data = values.length === 1 ? first.toString() : values.map((value) => value.toString()).join("\n");
      events.push({ data, event: this.eventName, bytes: whole ?? joinLines(values) });
      this.values = [];
      this.whole = null;
      this.dataBytes = 0;
    }
    this.eventName = null;
  }

  /** Events before the one that is too large are still returned; the next call throws. */
  private deliverThenFail(events: SseEvent[]): SseEvent[] {
    this.parts = [];
    this.values = [];
    this.whole = null;
    if (events.length === 0 && this.failure) throw this.failure;
    return events;
  }
}

function startsWith(bytes: Buffer, prefix: Buffer): boolean {
  return bytes.length >= prefix.length && prefix.compare(bytes, 0, prefix.length) === 0;
}

/** Whether a line is the field `name`, with or without a value. */
function isField(line: Buffer, name: Buffer): boolean {
  return startsWith(line, name) && (line.length === name.length || line[name.length] === COLON);
}

/** The value after the colon, less one space. */
function fieldValue(line: Buffer, name: Buffer): Buffer {
  const start = name.length + 1;
  return line.subarray(line[start] === SPACE ? start + 1 : start);
}

function joinLines(values: readonly Buffer[]): Buffer {
  const pieces: Buffer[] = [];
  for (const value of values) pieces.push(DATA_PREFIX, value, LINE_FEED);
  pieces.push(LINE_FEED);
  return Buffer.concat(pieces);
}
