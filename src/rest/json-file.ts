/**
 * A JSON object with a file in it, as base64 in one of its fields: the file is decoded while the body arrives, and only the rest of
 * the object is kept, with an empty text where the file was.
 */
import { payloadTooLarge, wrongField } from "../errors.js";
import { Base64Decoder, Base64Error } from "../lib/base64-decoder.js";

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [BRACE, BRACE_END, BRACKET, BRACKET_END] = [0x7b, 0x7d, 0x5b, 0x5d];
const UNICODE_ESCAPE_CHARS = 6;
/** Refused by every decoder. */
const NO_CHARACTER = "!";

type Place = "outside" | "text" | "file";

export class JsonFileReader {
  private readonly decoder = new Base64Decoder();
  private readonly kept: Buffer[] = [];
  private keptBytes = 0;
  private place: Place = "outside";
  private depth = 0;
  private isObject = false;
  private isNameNext = false;
  private isEscaped = false;
  /** Bytes of the text that is being read, when it names a field of the object itself. */
  private name: number[] | null = null;
  private lastName = "";
  private hasFile = false;
  /** The beginning of an escape in the file, cut by the end of a piece. */
  private escaped = "";

  constructor(
    /** The field of the object itself that holds the file. */
    private readonly field: string,
    /** Of everything else. */
    private readonly restBytesMax: number,
  ) {}

  /**
   * The bytes of the file; when there is none, not even an empty piece is yielded. Throws BAD_REQUEST for what is not base64 and for a
   * second file, PAYLOAD_TOO_LARGE for too large a rest, and whatever `body` throws.
   */
  async *read(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const piece of body) {
      let at = 0;
      while (at < piece.length) {
        if (this.place === "file") {
          const { bytes, next } = this.readFile(piece, at);
          at = next;
          yield bytes;
        } else {
          at = this.readRest(piece, at);
          if ((this.place as Place) === "file") yield Buffer.alloc(0);
        }
      }
    }
  }

  /** The object without the file, once all of the body was read. It need not be JSON. */
  rest(): Buffer {
    return Buffer.concat(this.kept, this.keptBytes);
  }

  /** Up to the beginning of the file, or to the end of the piece. */
  private readRest(piece: Buffer, start: number): number {
    let at = start;
    while (at < piece.length && this.place !== "file") {
      this.step(piece[at] as number);
      at += 1;
    }
    this.keep(piece.subarray(start, at));
    return at;
  }

  private step(byte: number): void {
    if (this.place === "text") this.stepInText(byte);
    else if (byte === QUOTE) this.beginText();
    else if (byte === BRACE || byte === BRACKET) {
      this.depth += 1;
      if (this.depth === 1) this.isObject = this.isNameNext = byte === BRACE;
    } else if (byte === BRACE_END || byte === BRACKET_END) this.depth -= 1;
    else if (this.depth === 1 && byte === COMMA) this.isNameNext = true;
    else if (this.depth === 1 && byte === COLON) this.isNameNext = false;
  }

  private stepInText(byte: number): void {
    if (byte === QUOTE && !this.isEscaped) {
      if (this.name) this.lastName = unquote(this.name);
      this.name = null;
      this.place = "outside";
      return;
    }
    this.isEscaped = byte === BACKSLASH && !this.isEscaped;
    this.name?.push(byte);
  }

  private beginText(): void {
    const isOwn = this.depth === 1 && this.isObject;
    if (isOwn && !this.isNameNext && this.lastName === this.field) {
      if (this.hasFile) throw wrongField(this.field, "may be given only once");
      this.hasFile = true;
      this.place = "file";
      return;
    }
    this.place = "text";
    this.name = isOwn && this.isNameNext ? [] : null;
  }

  /** Up to the end of the file, to an escape in it, or to the end of the piece. */
  private readFile(piece: Buffer, start: number): { readonly bytes: Buffer; readonly next: number } {
    if (this.escaped !== "" || piece[start] === BACKSLASH) return this.readEscape(piece, start);
    const quote = piece.indexOf(QUOTE, start);
    const end = quote === -1 ? piece.length : quote;
    const plain = piece.subarray(start, end).indexOf(BACKSLASH);
    if (plain !== -1) return { bytes: this.decode(piece.toString("latin1", start, start + plain)), next: start + plain };
    const bytes = this.decode(piece.toString("latin1", start, end));
    if (quote === -1) return { bytes, next: end };
    this.place = "outside";
    this.keep(piece.subarray(quote, quote + 1));
    return { bytes: Buffer.concat([bytes, this.decoded(() => this.decoder.end())]), next: quote + 1 };
  }

  /** Some encoders write every slash as `\/`, and may write any character as `\uXXXX`. */
  private readEscape(piece: Buffer, start: number): { readonly bytes: Buffer; readonly next: number } {
    let next = start;
    while (next < piece.length && !isWhole(this.escaped)) {
      this.escaped += String.fromCharCode(piece[next] as number);
      next += 1;
    }
    if (!isWhole(this.escaped)) return { bytes: Buffer.alloc(0), next };
    const text = characterOf(this.escaped) ?? NO_CHARACTER;
    this.escaped = "";
    return { bytes: this.decode(text), next };
  }

  private decode(text: string): Buffer {
    return this.decoded(() => this.decoder.push(text));
  }

  private decoded(work: () => Buffer): Buffer {
    try {
      return work();
    } catch (error) {
      throw error instanceof Base64Error ? wrongField(this.field, "must be base64 with its padding") : error;
    }
  }

  private keep(bytes: Buffer): void {
    this.keptBytes += bytes.length;
    if (this.keptBytes > this.restBytesMax) throw payloadTooLarge(this.restBytesMax);
    this.kept.push(bytes);
  }
}

function isWhole(escaped: string): boolean {
  return escaped.length === (escaped[1] === "u" ? UNICODE_ESCAPE_CHARS : 2);
}

/** The character; null for what is none, or none of base64's. */
function characterOf(escaped: string): string | null {
  if (escaped === "\\/") return "/";
  const code = /^\\u00([0-7][0-9a-f])$/i.exec(escaped)?.[1];
  return code === undefined ? null : String.fromCharCode(Number.parseInt(code, 16));
}

function unquote(bytes: readonly number[]): string {
  try {
    return String(JSON.parse(`"${Buffer.from(bytes).toString("utf8")}"`));
  } catch {
    // The parser of the whole object says what is wrong.
    return "";
  }
}
