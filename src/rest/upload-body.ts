/**
 * Bodies of POST {media_url}/upload: a file as a form, as the body itself, or as base64 in JSON, passed on as it arrives; or the
 * announcement of a file that goes straight to the blob store (docs/spec/media.md#direct-uploads).
 */
import type { IncomingMessage } from "node:http";
import * as z from "zod";
import { payloadTooLarge, wrongField } from "../errors.js";
import { isJson, type JsonObject, parseJsonObject, streamBody, streamJsonBody } from "../http/body.js";
import { type FileSink, isForm, receiveForm } from "../http/uploads.js";
import { Base64Decoder, Base64Error } from "../lib/base64-decoder.js";
import { MEDIA_NAME_CHARS_MAX, MEDIA_UPLOAD_BYTES_MAX } from "../services/files/limits.js";
import { createUploadInput } from "../services/files/media-objects-input.js";
import type { BodyAllowance } from "../services/requests/body-budget.js";
import { parseInput, storableText } from "../services/requests/input.js";

/** Bytes beside the file: boundaries and headers of a form, other fields of a JSON body. */
const OVERHEAD_BYTES = 64 * 1024;
/** Some encoders escape characters of base64 with another one; the file itself is counted after decoding. */
const JSON_BYTES_MAX = Math.ceil(MEDIA_UPLOAD_BYTES_MAX / 3) * 4 * 2 + OVERHEAD_BYTES;
const FORM_RULES = {
  files: { file: { countMax: 1, isRequired: true } },
  fileBytesMax: MEDIA_UPLOAD_BYTES_MAX,
  bytesMax: MEDIA_UPLOAD_BYTES_MAX + OVERHEAD_BYTES,
};
const uploadInput = z.strictObject({
  /** Decoded while it arrived: the rest here is empty. */
  data: z
    .string()
    .meta({ minLength: 1, contentEncoding: "base64", pattern: "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$" }),
  contentType: storableText.max(MEDIA_NAME_CHARS_MAX).optional(),
  name: storableText.min(1).max(MEDIA_NAME_CHARS_MAX).optional(),
});

/** For the description. */
export const UPLOAD_BODIES = {
  body: z.union([uploadInput, createUploadInput]),
  form: { ...FORM_RULES, fields: z.object({}) },
  isFile: true,
} as const;

export type UploadBody<Received> =
  | {
      readonly kind: "file";
      readonly received: Received;
      /** The field's name; null when the file is the whole body. */
      readonly field: string | null;
      /** Null: not stated. */
      readonly contentType: string | null;
      readonly name: string | null;
    }
  | { readonly kind: "announcement"; readonly body: JsonObject };

/** As a form's sink; the field is null when the file is the whole body. */
export interface UploadSink<Received> extends Omit<FileSink<Received>, "receive"> {
  receive(content: AsyncIterable<Uint8Array>, field: string | null): Promise<Received>;
}

/** Throws as the sink, UNSUPPORTED_MEDIA_TYPE, PAYLOAD_TOO_LARGE, SERVICE_UNAVAILABLE or BAD_REQUEST; the sink is then empty. */
export function readUploadBody<Received>(
  req: IncomingMessage,
  sink: UploadSink<Received>,
  allowance: BodyAllowance,
): Promise<UploadBody<Received>> {
  if (isForm(req.headers["content-type"])) return readFormFile(req, sink, allowance);
  return isJson(req) ? readJsonFile(req, sink, allowance) : readPlainFile(req, sink, allowance);
}

async function readFormFile<Received>(
  req: IncomingMessage,
  sink: UploadSink<Received>,
  allowance: BodyAllowance,
): Promise<UploadBody<Received>> {
  const { files } = await receiveForm(req, FORM_RULES, sink, allowance);
  const [file] = files;
  if (!file) throw wrongField("file", "is required");
  const { field, received, contentType, name } = file;
  return { kind: "file", received, field, contentType: contentType || null, name: name || null };
}

async function readJsonFile<Received>(
  req: IncomingMessage,
  sink: UploadSink<Received>,
  allowance: BodyAllowance,
): Promise<UploadBody<Received>> {
  const reader = new JsonFileReader("data", OVERHEAD_BYTES);
  const content = reader.read(streamJsonBody(req, allowance, JSON_BYTES_MAX));
  const first = await content.next();
  if (first.done) {
    const body = parseJsonObject(reader.rest());
    if (!Object.hasOwn(body, "data")) return { kind: "announcement", body };
    throw wrongField("data", "expected a string");
  }
  const received = await sink.receive(content, "data");
  try {
    const { contentType, name } = parseInput(uploadInput, parseJsonObject(reader.rest()));
    return { kind: "file", received, field: "data", contentType: contentType ?? null, name: name ?? null };
  } catch (error) {
    await sink.discard(received);
    throw error;
  }
}

async function readPlainFile<Received>(
  req: IncomingMessage,
  sink: UploadSink<Received>,
  allowance: BodyAllowance,
): Promise<UploadBody<Received>> {
  const received = await sink.receive(streamBody(req, allowance, MEDIA_UPLOAD_BYTES_MAX), null);
  return { kind: "file", received, field: null, contentType: req.headers["content-type"] ?? null, name: null };
}

// Decodes a file in base64 from a field of a JSON object while the body arrives; keeps only the rest of the object, with an empty text for
// the file.

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [BRACE, BRACE_END, BRACKET, BRACKET_END] = [0x7b, 0x7d, 0x5b, 0x5d];
const UNICODE_ESCAPE_CHARS = 6;
/** Every decoder refuses it. */
const NO_CHARACTER = "!";

type Place = "outside" | "text" | "file";

class JsonFileReader {
  private readonly decoder = new Base64Decoder();
  private readonly kept: Buffer[] = [];
  private keptBytes = 0;
  private place: Place = "outside";
  private depth = 0;
  private isObject = false;
  private isNameNext = false;
  private isEscaped = false;
  /** Bytes of the current text when it is a top-level field name. */
  private name: number[] | null = null;
  private lastName = "";
  private hasFile = false;
  /** The start of an escape in the file at the end of a piece. */
  private escaped = "";

  constructor(
    /** The top-level field with the file. */
    private readonly field: string,
    /** Bound on everything else. */
    private readonly restBytesMax: number,
  ) {}

  /**
   * Yields the file's bytes; without a file, not even an empty piece. Throws BAD_REQUEST for invalid base64 and for a second file,
   * PAYLOAD_TOO_LARGE for too large a rest, and errors of `body`.
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

  /** The object without the file, after the whole body was read. It may be invalid JSON. */
  rest(): Buffer {
    return Buffer.concat(this.kept, this.keptBytes);
  }

  /** Reads to the start of the file, or to the end of the piece. */
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

  /** Reads to the end of the file, to an escape in it, or to the end of the piece. */
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

  /** Some encoders write every slash as `\/`, or any character as `\uXXXX`. */
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

/** The character; null for an invalid escape, or a character outside of base64. */
function characterOf(escaped: string): string | null {
  if (escaped === "\\/") return "/";
  const code = /^\\u00([0-7][0-9a-f])$/i.exec(escaped)?.[1];
  return code === undefined ? null : String.fromCharCode(Number.parseInt(code, 16));
}

function unquote(bytes: readonly number[]): string {
  try {
    return String(JSON.parse(`"${Buffer.from(bytes).toString("utf8")}"`));
  } catch {
    // The parser of the whole object reports the error.
    return "";
  }
}
