/**
 * Reads request bodies within an allowance, whole or piece by piece. Type and size are checked before a byte is read, and text is checked
 * before it is parsed. The server's `requestTimeout` bounds the time of a whole request.
 */
import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { StringDecoder } from "node:string_decoder";
import { setImmediate as nextTurn } from "node:timers/promises";
import { AppError, invalidInput, payloadTooLarge, wrongField } from "../errors.js";
import { type JsonBounds, JsonScan, jsonExcess } from "../lib/json-bounds.js";
import { findUnstorable, UNICODE_ESCAPE } from "../lib/storable-text.js";
import { JSON_BODY_BYTES_MAX, JSON_BOUNDS } from "../limits.js";
import type { BodyAllowance, BodyOptions } from "../services/requests/body-budget.js";

export type JsonObject = Record<string, unknown>;

const JSON_MEDIA_TYPE = /^(?:application\/json|[a-z]+\/[a-z0-9!#$&^_.-]+\+json)\s*(?:;|$)/i;
const CHARSET = /;\s*charset\s*=\s*"?([^";\s]+)/i;

/**
 * Returns the body as an object. Throws UNSUPPORTED_MEDIA_TYPE, PAYLOAD_TOO_LARGE, SERVICE_UNAVAILABLE or BAD_REQUEST. The last of
 * duplicate keys counts; `__proto__` is an ordinary property.
 */
export async function readJsonBody(req: IncomingMessage, allowance: BodyAllowance, bytesMax = JSON_BODY_BYTES_MAX): Promise<JsonObject> {
  assertJson(req);
  const bytes = await readWhole(req, { bytesMax }, allowance);
  return bytes.length > TURN_BYTES ? parseInTurns(bytes) : parseJsonObject(bytes);
}

/** As above, for bytes that have been received. `noun` names them in error messages. */
export function parseJsonBytes(bytes: Buffer, noun: string): JsonObject | Promise<JsonObject> {
  return bytes.length > TURN_BYTES ? parseInTurns(bytes, noun) : parseJsonObject(bytes, noun);
}

/** True when the body's type is JSON. */
export function isJson(req: IncomingMessage): boolean {
  return JSON_MEDIA_TYPE.test(req.headers["content-type"] ?? "");
}

/**
 * Reads UTF-8 text of any type. Throws UNSUPPORTED_MEDIA_TYPE for another or compressed encoding, PAYLOAD_TOO_LARGE, SERVICE_UNAVAILABLE or
 * BAD_REQUEST.
 */
export async function readTextBody(
  req: IncomingMessage,
  allowance: BodyAllowance,
  { bytesMax, bounds }: { readonly bytesMax: number; readonly bounds: JsonBounds },
): Promise<string> {
  assertUtf8(req.headers["content-type"] ?? "");
  assertPlain(req);
  const bytes = await readWhole(req, { bytesMax }, allowance);
  return bytes.length > TURN_BYTES ? (await decodeInTurns(bytes, bounds)).text : decodeText(bytes, bounds);
}

/** Reads a form with its files unparsed. Throws as above. */
export async function readFormBody(req: IncomingMessage, allowance: BodyAllowance, bytesMax: number): Promise<Buffer<ArrayBuffer>> {
  assertPlain(req);
  return readWhole(req, { bytesMax, hasFiles: true }, allowance);
}

/** Reads a body of any type. Throws UNSUPPORTED_MEDIA_TYPE when it is compressed, or PAYLOAD_TOO_LARGE. */
export async function readBytesBody(req: IncomingMessage, allowance: BodyAllowance, bytesMax: number): Promise<Buffer> {
  assertPlain(req);
  return readWhole(req, { bytesMax }, allowance);
}

/**
 * Streams a file of any type at the reader's pace; a reader that stops early leaves the rest unread. Throws UNSUPPORTED_MEDIA_TYPE when it
 * is compressed, and as `readPieces`.
 */
export function streamBody(req: IncomingMessage, allowance: BodyAllowance, bytesMax = Number.POSITIVE_INFINITY): AsyncGenerator<Buffer> {
  assertPlain(req);
  return readPieces(req, bytesMax, allowance);
}

/** As above, for a body whose type must be JSON. */
export function streamJsonBody(req: IncomingMessage, allowance: BodyAllowance, bytesMax: number): AsyncGenerator<Buffer> {
  assertJson(req);
  return streamBody(req, allowance, bytesMax);
}

function assertJson(req: IncomingMessage): void {
  const contentType = req.headers["content-type"];
  if (contentType === undefined) throw unsupported("The Content-Type header is missing: send application/json.");
  if (contentType !== "application/json") {
    if (!JSON_MEDIA_TYPE.test(contentType)) throw unsupported("The body must be JSON: send Content-Type: application/json.");
    assertUtf8(contentType);
  }
  assertPlain(req);
}

function assertUtf8(contentType: string): void {
  const charset = CHARSET.exec(contentType)?.[1]?.toLowerCase();
  if (charset !== undefined && charset !== "utf-8" && charset !== "utf8") throw unsupported("The body must be encoded in UTF-8.");
}

/** Throws UNSUPPORTED_MEDIA_TYPE for a compressed body. */
export function assertPlain(req: IncomingMessage): void {
  const encoding = req.headers["content-encoding"];
  if (encoding !== undefined && encoding.toLowerCase() !== "identity") throw unsupported("The body must not be compressed.");
}

function unsupported(message: string): AppError {
  return new AppError("UNSUPPORTED_MEDIA_TYPE", message);
}

/** Throws BAD_REQUEST for anything but a JSON object in UTF-8 within the bounds of JSON, whose texts can all be stored. */
export function parseJsonObject(bytes: Buffer, noun = "The body"): JsonObject {
  if (bytes.length === 0) throw invalidInput(`${noun} is empty; a JSON object was expected.`);
  const text = decodeText(bytes, JSON_BOUNDS, noun);
  const value = toJsonObject(parseJson(text, noun), noun);
  if (text.includes(UNICODE_ESCAPE)) assertStorable(value);
  return value;
}

/** Unspecified: a larger body is scanned and decoded in turns of the event loop; parsing takes one turn. */
export const TURN_BYTES = 64 * 1024;
/** Measured: the slowest piece of that size takes 10 ms to decode. */
const PIECE_BYTES = 512 * 1024;

async function parseInTurns(bytes: Buffer, noun = "The body"): Promise<JsonObject> {
  const { text, hasEscape } = await decodeInTurns(bytes, JSON_BOUNDS, noun);
  const value = toJsonObject(parseJson(text, noun), noun);
  await nextTurn();
  if (!hasEscape) return value;
  assertStorable(value);
  await nextTurn();
  return value;
}

function toJsonObject(value: unknown, noun: string): JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalidInput(`${noun} must be a JSON object.`);
  return value as JsonObject;
}

function assertStorable(value: JsonObject): void {
  const found = findUnstorable(value);
  if (found !== null) throw wrongField(found.path, found.problem);
}

/** Bounds brackets, colons and commas, whether or not the text is JSON. */
function decodeText(bytes: Buffer, bounds: JsonBounds, noun = "The body"): string {
  assertEncoding(bytes, noun);
  const excess = jsonExcess(bytes, bounds);
  if (excess !== null) throw invalidInput(`${noun} ${excess}.`);
  return bytes.toString("utf8");
}

/** An escape across two pieces. */
const SPLIT_ESCAPE = Buffer.from(UNICODE_ESCAPE);

interface Decoded {
  readonly text: string;
  /** It has an escape, so a text of it may be one that cannot be stored. */
  readonly hasEscape: boolean;
}

/** `noun` names the bytes in error messages. Throws BAD_REQUEST. */
export async function decodeInTurns(bytes: Buffer, bounds: JsonBounds, noun = "The body"): Promise<Decoded> {
  assertEncoding(bytes, noun);
  const scan = new JsonScan(bytes, bounds);
  const decoder = new StringDecoder("utf8");
  let text = "";
  let hasEscape = false;
  for (let from = 0; from < bytes.length; from += PIECE_BYTES) {
    const to = Math.min(from + PIECE_BYTES, bytes.length);
    const excess = scan.advance(to);
    if (excess !== null) throw invalidInput(`${noun} ${excess}.`);
    const piece = bytes.subarray(from, to);
    hasEscape ||= piece.includes(UNICODE_ESCAPE) || bytes.subarray(Math.max(0, from - 1), from + 1).equals(SPLIT_ESCAPE);
    text += decoder.write(piece);
    await nextTurn();
  }
  // V8 joins the pieces when a character is read: in a turn of its own, not in the parser's.
  text.charCodeAt(0);
  await nextTurn();
  return { text, hasEscape };
}

function assertEncoding(bytes: Buffer, noun: string): void {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf)
    throw invalidInput(`${noun} begins with a byte order mark; send plain UTF-8.`);
  if (!isUtf8(bytes)) throw invalidInput(`${noun} is not valid UTF-8.`);
}

function parseJson(text: string, noun: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // The parser's own message quotes the body, so only the position is used.
    const place = error instanceof Error ? /at position \d+/.exec(error.message)?.[0] : undefined;
    throw invalidInput(place === undefined ? `${noun} is not valid JSON.` : `${noun} is not valid JSON (${place}).`);
  }
}

/** The client disconnected before the body was complete; no answer is possible. */
export class BodyAborted extends Error {
  override readonly name = "BodyAborted";
}

/** Null when the length is not declared. */
export function declaredBytesOf({ headers }: IncomingMessage): number | null {
  if (headers["transfer-encoding"] !== undefined) return null;
  return Number(headers["content-length"] ?? 0);
}

/** Throws PAYLOAD_TOO_LARGE as early as possible, SERVICE_UNAVAILABLE, BAD_REQUEST when it arrives too slowly, or BodyAborted. */
async function readWhole(
  req: IncomingMessage,
  rules: Pick<BodyOptions, "bytesMax" | "hasFiles">,
  allowance: BodyAllowance,
): Promise<Buffer<ArrayBuffer>> {
  let giveUp: (error: Error) => void = ignore;
  const most = allowance.begin({
    bytesMax: rules.bytesMax,
    hasFiles: rules.hasFiles ?? false,
    declaredBytes: declaredBytesOf(req),
    onSlow: (error) => giveUp(error),
  });
  try {
    return await new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      let size = 0;
      let isWhole = false;
      giveUp = (error) => {
        req.off("data", onData);
        req.pause();
        reject(error);
      };
      const onData = (chunk: Buffer) => {
        chunks.push(chunk);
        size += chunk.length;
        try {
          allowance.came(chunk.length);
          if (size > most) throw payloadTooLarge(most);
        } catch (error) {
          giveUp(error as Error);
        }
      };
      const onEnd = () => {
        isWhole = true;
        resolve(chunks.length === 1 && chunks[0] ? (chunks[0] as Buffer<ArrayBuffer>) : Buffer.concat(chunks, size));
      };
      // Every request closes in the end, usually after its body; an aborted one closes too.
      const onClose = () => {
        if (!isWhole) reject(new BodyAborted());
      };
      if (req.destroyed) {
        onClose();
        return;
      }
      req.on("data", onData);
      req.on("end", onEnd);
      req.on("close", onClose);
    });
  } finally {
    allowance.end();
  }
}

/** Yields pieces at the reader's pace; a reader that stops early leaves the rest unread. Throws as above. */
async function* readPieces(req: IncomingMessage, bytesMax: number, allowance: BodyAllowance): AsyncGenerator<Buffer> {
  let giveUp: (error: Error) => void = ignore;
  const slow = new Promise<never>((_, reject) => {
    giveUp = reject;
  });
  slow.catch(ignore);
  const onSlow = (error: Error) => giveUp(error);
  const most = allowance.begin({ declaredBytes: declaredBytesOf(req), bytesMax, hasFiles: true, onSlow });
  // Keeps the request alive, as the answer uses the same connection.
  const pieces: AsyncIterator<Buffer> = req.iterator({ destroyOnReturn: false });
  try {
    for (let size = 0; ; ) {
      const { value, done } = await Promise.race([nextPiece(req, pieces), slow]);
      if (done) return;
      size += value.length;
      allowance.came(value.length);
      if (size > most) throw payloadTooLarge(most);
      yield value;
    }
  } finally {
    allowance.end();
    // A body that arrives too slowly has a read pending, which ends with the connection.
    void pieces.return?.().catch(ignore);
  }
}

async function nextPiece(req: IncomingMessage, pieces: AsyncIterator<Buffer>): Promise<IteratorResult<Buffer>> {
  try {
    return await pieces.next();
  } catch (error) {
    throw req.complete ? error : new BodyAborted();
  }
}

function ignore(): void {}
