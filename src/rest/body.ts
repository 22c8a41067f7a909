/**
 * JSON request bodies, read by hand: type and size are refused before a byte is read, and the text is checked before it
 * reaches the parser.
 */
import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { AppError, invalidInput } from "../errors.js";
import { jsonDepthExceeds } from "../lib/json-depth.js";
import { JSON_BODY_BYTES_MAX, JSON_DEPTH_MAX } from "../limits.js";
import type { BodyAllowance } from "../services/requests/body-budget.js";
import { readPieces, readWhole } from "../services/requests/request-body.js";

export type JsonObject = Record<string, unknown>;

const JSON_MEDIA_TYPE = /^(?:application\/json|[a-z]+\/[a-z0-9!#$&^_.-]+\+json)\s*(?:;|$)/i;
const CHARSET = /;\s*charset\s*=\s*"?([^";\s]+)/i;

/**
 * The body as an object. Throws UNSUPPORTED_MEDIA_TYPE, PAYLOAD_TOO_LARGE, SERVICE_UNAVAILABLE or BAD_REQUEST. Of a key that appears twice
 * the last one counts; a `__proto__` key is a property like any other.
 */
export async function readJsonBody(req: IncomingMessage, allowance: BodyAllowance, bytesMax = JSON_BODY_BYTES_MAX): Promise<JsonObject> {
  assertJson(req);
  return parseJsonObject(await readWhole(req, { bytesMax }, allowance));
}

/** True for a body that says it is JSON. */
export function isJson(req: IncomingMessage): boolean {
  return JSON_MEDIA_TYPE.test(req.headers["content-type"] ?? "");
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
