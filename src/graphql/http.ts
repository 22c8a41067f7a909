/** Reading GraphQL requests from Node and writing Yoga's answers to it, both no faster and no larger than is good. */
import { isUtf8 } from "node:buffer";
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { AppError, invalidInput, payloadTooLarge } from "../errors.js";
import { drained } from "../lib/back-pressure.js";
import { jsonDepthExceeds } from "../lib/json-depth.js";
import { JSON_DEPTH_MAX, SLOW_READER_TIMEOUT_MS } from "../limits.js";
import { isForm } from "./plugins/use-uploads.js";

/** `{ variables: { input: { extra: ... } } }` and a few more around what the scalar JSON allows. */
const BODY_DEPTH_MAX = JSON_DEPTH_MAX + 10;
/** Unspecified: how long a refused body is still taken in, so that its sender reads why before the connection is reset. */
const LINGER_MS = 2_000;

/** The caller left before its request was complete: there is nobody to answer. */
export class CallerGone extends Error {
  override readonly name = "CallerGone";
}

/** The body as text, or as bytes when it is a form. Throws PAYLOAD_TOO_LARGE as soon as it is known, UNSUPPORTED_MEDIA_TYPE or BAD_REQUEST. */
export async function readBody(req: IncomingMessage, bytesMax: number): Promise<string | Uint8Array<ArrayBuffer>> {
  const encoding = req.headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity") throw new AppError("UNSUPPORTED_MEDIA_TYPE", "The body must not be compressed.");
  if (Number(req.headers["content-length"] ?? 0) > bytesMax) throw payloadTooLarge(bytesMax);
  const bytes = await readBytes(req, bytesMax);
  // Its parts are looked at where they are taken apart.
  if (isForm(req.headers["content-type"])) return bytes;
  if (!isUtf8(bytes)) throw invalidInput("The body is not valid UTF-8.");
  if (jsonDepthExceeds(bytes, BODY_DEPTH_MAX)) throw invalidInput(`The body is nested more than ${BODY_DEPTH_MAX} levels deep.`);
  return bytes.toString("utf8");
}

async function readBytes(req: IncomingMessage, bytesMax: number): Promise<Buffer<ArrayBuffer>> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    // Leaving the loop must not destroy the connection: the refusal has yet to be sent over it.
    for await (const chunk of req.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > bytesMax) throw payloadTooLarge(bytesMax);
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new CallerGone();
  }
  if (!req.complete) throw new CallerGone();
  return Buffer.concat(chunks, size);
}

/** A whole answer; header names are lower-case. When the request was refused before it was read, what is still coming is dropped and the connection closed. */
export function sendWhole(req: IncomingMessage, res: ServerResponse, status: number, headers: OutgoingHttpHeaders, body: Buffer): void {
  if (res.closed) return;
  const isUnread = !req.complete;
  res.writeHead(status, { ...headers, ...(isUnread && { connection: "close" }), "content-length": body.byteLength });
  res.end(body);
  if (!isUnread) return;
  const timer = setTimeout(() => req.socket.destroy(), LINGER_MS);
  req.socket.once("close", () => clearTimeout(timer));
  req.resume();
}

export function isEventStream(response: Response): boolean {
  return response.headers.get("content-type")?.startsWith("text/event-stream") ?? false;
}

/**
 * Writes an event stream at its reader's pace and ends it at once when the reader leaves. `last` is asked what to say
 * when the stream is ended from this side.
 */
export async function sendEventStream(
  res: ServerResponse,
  body: ReadableStream<Uint8Array>,
  ending: AbortSignal,
  last: () => string,
): Promise<void> {
  const reader = body.getReader();
  const leave = () => void reader.cancel().catch(() => undefined);
  res.once("close", leave);
  ending.addEventListener("abort", leave, { once: true });
  if (ending.aborted) leave();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done || res.closed) break;
      if (!res.write(value)) await drained(res, SLOW_READER_TIMEOUT_MS);
    }
  } finally {
    res.off("close", leave);
    ending.removeEventListener("abort", leave);
    if (!res.closed) res.end(ending.aborted ? last() : undefined);
  }
}
