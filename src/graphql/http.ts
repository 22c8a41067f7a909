/** Reading GraphQL requests from Node and writing Yoga's answers to it, both no faster and no larger than is good. */
import { isUtf8 } from "node:buffer";
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { AppError, invalidInput } from "../errors.js";
import { drained } from "../lib/back-pressure.js";
import { jsonDepthExceeds } from "../lib/json-depth.js";
import { JSON_DEPTH_MAX, SLOW_READER_TIMEOUT_MS } from "../limits.js";
import type { BodyAllowance } from "../services/requests/body-budget.js";
import { readWhole } from "../services/requests/request-body.js";
import { isForm } from "./plugins/use-uploads.js";

/** `{ variables: { input: { extra: ... } } }` and a few more around what the scalar JSON allows. */
const BODY_DEPTH_MAX = JSON_DEPTH_MAX + 10;
/** Unspecified: how long a refused body is still taken in, so that its sender reads why before the connection is reset. */
const LINGER_MS = 2_000;

/** The body as text, or as bytes when it is a form. Throws PAYLOAD_TOO_LARGE as soon as it is known, SERVICE_UNAVAILABLE, UNSUPPORTED_MEDIA_TYPE or BAD_REQUEST. */
export async function readBody(
  req: IncomingMessage,
  bytesMax: number,
  allowance: BodyAllowance,
): Promise<string | Uint8Array<ArrayBuffer>> {
  const encoding = req.headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity") throw new AppError("UNSUPPORTED_MEDIA_TYPE", "The body must not be compressed.");
  const hasFiles = isForm(req.headers["content-type"]);
  const bytes = await readWhole(req, { bytesMax, hasFiles }, allowance);
  // Its parts are looked at where they are taken apart.
  if (hasFiles) return bytes;
  if (!isUtf8(bytes)) throw invalidInput("The body is not valid UTF-8.");
  if (jsonDepthExceeds(bytes, BODY_DEPTH_MAX)) throw invalidInput(`The body is nested more than ${BODY_DEPTH_MAX} levels deep.`);
  return bytes.toString("utf8");
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
