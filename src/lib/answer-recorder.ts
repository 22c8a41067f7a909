/**
 * Records a response while it is written, and holds its end back until the record is stored. It replaces the methods of one response, so
 * that its writer needs no change.
 */
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";

export interface RecordedAnswer {
  readonly statusCode: number;
  /** Headers of the answer, not of its connection or request; names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Headers of the connection, of the request, of every answer, or measured. */
const UNRECORDED_HEADER =
  /^(?:access-control-.*|connection|content-length|content-security-policy|date|keep-alive|referrer-policy|server-timing|transfer-encoding|vary|x-content-type-options|x-request-id|request-id)$/;
/** `: keep-alive` of an event stream. */
const COMMENT = 0x3a;

export class AnswerRecorder {
  private statusCode: number | null = null;
  private headers: Record<string, string> = {};
  private chunks: Buffer[] = [];
  private bytes = 0;
  private hasEnded = false;
  /**
   * All chunks of an answer with a declared length, which is complete with its last byte. Null for one that ends with its connection or a
   * chunk.
   */
  private held: Buffer[] | null = null;

  /** `store` gets null when the answer is larger than `bytesMax`; the response ends when it has settled. */
  constructor(
    private readonly res: ServerResponse,
    private readonly bytesMax: number,
    store: (answer: RecordedAnswer | null) => Promise<void>,
  ) {
    const own = { writeHead: res.writeHead.bind(res), write: res.write.bind(res), end: res.end.bind(res) };
    const writeHead = (statusCode: number, headers: OutgoingHttpHeaders = {}) => {
      this.statusCode = statusCode;
      const all = lowerCased({ ...res.getHeaders(), ...headers });
      this.headers = recorded(all);
      this.held = all["content-length"] === undefined ? null : [];
      return own.writeHead(statusCode, headers);
    };
    const write = (chunk: Uint8Array | string, encoding?: BufferEncoding) => {
      const bytes = toBytes(chunk, encoding);
      this.add(bytes);
      return this.held ? true : own.write(bytes);
    };
    const end = (chunk?: Uint8Array | string, encoding?: BufferEncoding) => {
      if (this.hasEnded) return res;
      // A stream that ended because its reader disconnected is incomplete. An answer of declared length is complete, even unread.
      if (res.closed && this.held === null) return own.end();
      this.hasEnded = true;
      const bytes = chunk === undefined ? undefined : toBytes(chunk, encoding);
      if (bytes !== undefined) this.add(bytes);
      const finish = () => void own.end(this.held ? Buffer.concat(this.held) : bytes);
      store(this.answer()).then(finish, finish);
      return res;
    };
    Object.assign(res, { writeHead, write, end });
  }

  /** The response ended completely: its answer is stored, or is being stored. */
  get isEnded(): boolean {
    return this.hasEnded;
  }

  /** Part of the answer has been written. */
  get isBegun(): boolean {
    return this.statusCode !== null;
  }

  /** The answer so far; null when it is empty or too large. */
  answer(): RecordedAnswer | null {
    if (this.statusCode === null || this.bytes > this.bytesMax) return null;
    return { statusCode: this.statusCode, headers: this.headers, body: Buffer.concat(this.chunks) };
  }

  stop(): void {
    for (const method of ["writeHead", "write", "end"] as const) Reflect.deleteProperty(this.res, method);
  }

  private add(bytes: Buffer): void {
    this.held?.push(bytes);
    const isComment = bytes[0] === COMMENT && this.headers["content-type"]?.startsWith("text/event-stream");
    if (isComment) return;
    this.bytes += bytes.byteLength;
    if (this.bytes > this.bytesMax) this.chunks = [];
    else this.chunks.push(bytes);
  }
}

/** A copy, because the writer may reuse its memory. */
function toBytes(chunk: Uint8Array | string, encoding?: BufferEncoding): Buffer {
  return typeof chunk === "string" ? Buffer.from(chunk, encoding) : Buffer.from(chunk);
}

function lowerCased(headers: OutgoingHttpHeaders): Record<string, string> {
  const stated = Object.entries(headers).filter(([, value]) => value !== undefined);
  return Object.fromEntries(stated.map(([name, value]) => [name.toLowerCase(), String(value)]));
}

function recorded(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !UNRECORDED_HEADER.test(name)));
}
