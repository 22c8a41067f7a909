/**
 * Request bodies, read by hand, each within an allowance: whole or piece by piece. Type and size are refused before a byte is read, and
 * text is checked before it reaches a parser. How long a whole request may take is the server's `requestTimeout`.
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
 * The body as an object. Throws UNSUPPORTED_MEDIA_TYPE, PAYLOAD_TOO_LARGE, SERVICE_UNAVAILABLE or BAD_REQUEST. Of a key that appears twice
 * the last one counts; a `__proto__` key is a property like any other.
 */
export async function readJsonBody(req: IncomingMessage, allowance: BodyAllowance, bytesMax = JSON_BODY_BYTES_MAX): Promise<JsonObject> {
  assertJson(req);
  const bytes = await readWhole(req, { bytesMax }, allowance);
  return bytes.length > TURN_BYTES ? parseInTurns(bytes) : parseJsonObject(bytes);
}

/** True for a body that says it is JSON. */
export function isJson(req: IncomingMessage): boolean {
  return JSON_MEDIA_TYPE.test(req.headers["content-type"] ?? "");
}

/** A text in UTF-8, whatever it is of. Throws UNSUPPORTED_MEDIA_TYPE when it is encoded or compressed otherwise, PAYLOAD_TOO_LARGE, SERVICE_UNAVAILABLE or BAD_REQUEST. */
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

/** A form with its files, as it came: its parts are looked at where they are taken apart. Throws as above. */
export async function readFormBody(req: IncomingMessage, allowance: BodyAllowance, bytesMax: number): Promise<Buffer<ArrayBuffer>> {
  assertPlain(req);
  return readWhole(req, { bytesMax, hasFiles: true }, allowance);
}

/** A body of any type, as it came. Throws UNSUPPORTED_MEDIA_TYPE when it is compressed, or PAYLOAD_TOO_LARGE. */
export async function readBytesBody(req: IncomingMessage, allowance: BodyAllowance, bytesMax: number): Promise<Buffer> {
  assertPlain(req);
  return readWhole(req, { bytesMax }, allowance);
}

/**
 * A file of any type, piece by piece, as fast as it is taken; whoever stops early leaves the rest unread. Throws
 * UNSUPPORTED_MEDIA_TYPE when it is compressed, and what `readPieces` throws.
 */
export function streamBody(req: IncomingMessage, allowance: BodyAllowance, bytesMax = Number.POSITIVE_INFINITY): AsyncGenerator<Buffer> {
  assertPlain(req);
  return readPieces(req, bytesMax, allowance);
}

/** As above, of a body that must say it is JSON. */
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

/** Throws UNSUPPORTED_MEDIA_TYPE for a body that is compressed. */
export function assertPlain(req: IncomingMessage): void {
  const encoding = req.headers["content-encoding"];
  if (encoding !== undefined && encoding.toLowerCase() !== "identity") throw unsupported("The body must not be compressed.");
}

function unsupported(message: string): AppError {
  return new AppError("UNSUPPORTED_MEDIA_TYPE", message);
}

/** Throws BAD_REQUEST for what is not a JSON object in UTF-8, exceeds the bounds of JSON, or holds a text that cannot be stored. */
export function parseJsonObject(bytes: Buffer): JsonObject {
  if (bytes.length === 0) throw invalidInput("The body is empty; a JSON object was expected.");
  const text = decodeText(bytes, JSON_BOUNDS);
  const value = toJsonObject(parseJson(text));
  if (text.includes(UNICODE_ESCAPE)) assertStorable(value);
  return value;
}

/** Unspecified: a larger body is looked through and decoded in turns with everybody else; parsing it takes a turn of its own. */
export const TURN_BYTES = 64 * 1024;
/** Measured: the slowest piece of that size takes 10 ms to decode. */
const PIECE_BYTES = 512 * 1024;

async function parseInTurns(bytes: Buffer): Promise<JsonObject> {
  const { text, hasEscape } = await decodeInTurns(bytes, JSON_BOUNDS);
  const value = toJsonObject(parseJson(text));
  await nextTurn();
  if (!hasEscape) return value;
  assertStorable(value);
  await nextTurn();
  return value;
}

function toJsonObject(value: unknown): JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalidInput("The body must be a JSON object.");
  return value as JsonObject;
}

function assertStorable(value: JsonObject): void {
  const found = findUnstorable(value);
  if (found !== null) throw wrongField(found.path, found.problem);
}

/** The structure is that of the brackets, colons and commas, whether or not the text is JSON. */
function decodeText(bytes: Buffer, bounds: JsonBounds): string {
  assertEncoding(bytes);
  const excess = jsonExcess(bytes, bounds);
  if (excess !== null) throw invalidInput(`The body ${excess}.`);
  return bytes.toString("utf8");
}

/** Across two pieces. */
const SPLIT_ESCAPE = Buffer.from(UNICODE_ESCAPE);

interface Decoded {
  readonly text: string;
  /** It has an escape by which a text of it may be one that cannot be stored. */
  readonly hasEscape: boolean;
}

/** `noun`: what the bytes are, for the text of a refusal. Throws BAD_REQUEST. */
export async function decodeInTurns(bytes: Buffer, bounds: JsonBounds, noun = "The body"): Promise<Decoded> {
  assertEncoding(bytes);
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
  return { text, hasEscape };
}

function assertEncoding(bytes: Buffer): void {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf)
    throw invalidInput("The body begins with a byte order mark; send plain UTF-8.");
  if (!isUtf8(bytes)) throw invalidInput("The body is not valid UTF-8.");
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // The parser's own message quotes the body, so only the place is taken from it.
    const place = error instanceof Error ? /at position \d+/.exec(error.message)?.[0] : undefined;
    throw invalidInput(place === undefined ? "The body is not valid JSON." : `The body is not valid JSON (${place}).`);
  }
}

/** The caller left before the body was complete: there is nobody to answer. */
export class BodyAborted extends Error {
  override readonly name = "BodyAborted";
}

/** Null when the length is not known beforehand. */
export function declaredBytesOf({ headers }: IncomingMessage): number | null {
  if (headers["transfer-encoding"] !== undefined) return null;
  return Number(headers["content-length"] ?? 0);
}

/** Throws PAYLOAD_TOO_LARGE as soon as it is known, SERVICE_UNAVAILABLE, BAD_REQUEST when it comes too slowly, or BodyAborted. */
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
      // Every request closes in the end, nearly all of them after their bodies; one that breaks off closes too.
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

/** Piece by piece, as fast as it is taken; whoever stops early leaves the rest unread. Throws as above. */
async function* readPieces(req: IncomingMessage, bytesMax: number, allowance: BodyAllowance): AsyncGenerator<Buffer> {
  let giveUp: (error: Error) => void = ignore;
  const slow = new Promise<never>((_, reject) => {
    giveUp = reject;
  });
  slow.catch(ignore);
  const onSlow = (error: Error) => giveUp(error);
  const most = allowance.begin({ declaredBytes: declaredBytesOf(req), bytesMax, hasFiles: true, onSlow });
  // The request itself stays as it is, for the answer goes over the same connection.
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
    // Of a body that comes too slowly there is one under way, which ends with the connection.
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
