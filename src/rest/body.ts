/**
 * JSON request bodies, read by hand: type and size are refused before a byte is read, and the text is checked before it
 * reaches the parser. How slowly a body may arrive is the server's `requestTimeout`.
 */
import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { AppError, invalidInput, payloadTooLarge } from "../errors.js";
import { jsonDepthExceeds } from "../lib/json-depth.js";
import { JSON_BODY_BYTES_MAX, JSON_DEPTH_MAX } from "../limits.js";

export type JsonObject = Record<string, unknown>;

/** The caller left before the body was complete: there is nobody to answer. */
export class BodyAborted extends Error {
  override readonly name = "BodyAborted";
}

const JSON_MEDIA_TYPE = /^(?:application\/json|[a-z]+\/[a-z0-9!#$&^_.-]+\+json)\s*(?:;|$)/i;
const CHARSET = /;\s*charset\s*=\s*"?([^";\s]+)/i;

/**
 * The body as an object. Throws UNSUPPORTED_MEDIA_TYPE, PAYLOAD_TOO_LARGE or BAD_REQUEST. Of a key that appears twice
 * the last one counts; a `__proto__` key is a property like any other.
 */
export async function readJsonBody(req: IncomingMessage, bytesMax = JSON_BODY_BYTES_MAX): Promise<JsonObject> {
  assertJson(req);
  if (Number(req.headers["content-length"] ?? 0) > bytesMax) throw payloadTooLarge(bytesMax);
  return parseJsonObject(await readBytes(req, bytesMax));
}

/** True for a body that says it is JSON. */
export function isJson(req: IncomingMessage): boolean {
  return JSON_MEDIA_TYPE.test(req.headers["content-type"] ?? "");
}

/** A body of any type, as it came. Throws UNSUPPORTED_MEDIA_TYPE when it is compressed, or PAYLOAD_TOO_LARGE. */
export async function readBytesBody(req: IncomingMessage, bytesMax: number): Promise<Buffer> {
  assertPlain(req);
  if (Number(req.headers["content-length"] ?? 0) > bytesMax) throw payloadTooLarge(bytesMax);
  return readBytes(req, bytesMax);
}

/**
 * A body of any type, piece by piece, as fast as it is taken; whoever stops early leaves the rest unread. Throws
 * UNSUPPORTED_MEDIA_TYPE when it is compressed, PAYLOAD_TOO_LARGE at the first byte too many, or BodyAborted.
 */
export async function* streamBody(req: IncomingMessage, bytesMax = Number.POSITIVE_INFINITY): AsyncGenerator<Buffer> {
  assertPlain(req);
  if (Number(req.headers["content-length"] ?? 0) > bytesMax) throw payloadTooLarge(bytesMax);
  // The request itself stays as it is, for the answer goes over the same connection.
  const pieces: AsyncIterator<Buffer> = req.iterator({ destroyOnReturn: false });
  try {
    for (let size = 0; ; ) {
      const { value, done } = await nextPiece(req, pieces);
      if (done) return;
      size += value.length;
      if (size > bytesMax) throw payloadTooLarge(bytesMax);
      yield value;
    }
  } finally {
    await pieces.return?.();
  }
}

async function nextPiece(req: IncomingMessage, pieces: AsyncIterator<Buffer>): Promise<IteratorResult<Buffer>> {
  try {
    return await pieces.next();
  } catch (error) {
    throw req.complete ? error : new BodyAborted();
  }
}

/** As above, of a body that must say it is JSON. */
export function streamJsonBody(req: IncomingMessage, bytesMax: number): AsyncGenerator<Buffer> {
  assertJson(req);
  return streamBody(req, bytesMax);
}

function assertJson(req: IncomingMessage): void {
  const contentType = req.headers["content-type"];
  if (contentType === undefined) throw unsupported("The Content-Type header is missing: send application/json.");
  if (contentType !== "application/json") {
    if (!JSON_MEDIA_TYPE.test(contentType)) throw unsupported("The body must be JSON: send Content-Type: application/json.");
    const charset = CHARSET.exec(contentType)?.[1]?.toLowerCase();
    if (charset !== undefined && charset !== "utf-8" && charset !== "utf8") throw unsupported("The body must be encoded in UTF-8.");
  }
  assertPlain(req);
}

function assertPlain(req: IncomingMessage): void {
  const encoding = req.headers["content-encoding"];
  if (encoding !== undefined && encoding.toLowerCase() !== "identity") throw unsupported("The body must not be compressed.");
}

function unsupported(message: string): AppError {
  return new AppError("UNSUPPORTED_MEDIA_TYPE", message);
}

function readBytes(req: IncomingMessage, bytesMax: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    let isWhole = false;
    const onData = (chunk: Buffer) => {
      chunks.push(chunk);
      size += chunk.length;
      if (size <= bytesMax) return;
      req.off("data", onData);
      req.pause();
      reject(payloadTooLarge(bytesMax));
    };
    const onEnd = () => {
      isWhole = true;
      resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, size));
    };
    // Every request closes in the end, nearly all of them after their bodies.
    const onClose = () => {
      if (!isWhole) reject(new BodyAborted());
    };
    if (req.destroyed) {
      onClose();
      return;
    }
    req.on("data", onData);
    req.on("end", onEnd);
    req.on("error", onClose);
    req.on("close", onClose);
  });
}

/** Throws BAD_REQUEST for what is not a JSON object in UTF-8. */
export function parseJsonObject(bytes: Buffer): JsonObject {
  if (bytes.length === 0) throw invalidInput("The body is empty; a JSON object was expected.");
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf)
    throw invalidInput("The body begins with a byte order mark; send plain UTF-8.");
  if (!isUtf8(bytes)) throw invalidInput("The body is not valid UTF-8.");
  if (jsonDepthExceeds(bytes, JSON_DEPTH_MAX)) throw invalidInput(`The body is nested more than ${JSON_DEPTH_MAX} levels deep.`);
  const value = parseJson(bytes.toString("utf8"));
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalidInput("The body must be a JSON object.");
  return value as JsonObject;
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
