/** Sends a file of the blob store, whole or a range (RFC 9110, 14), at the client's pace. */
import type { OutgoingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";
import { invalidInput, notFound } from "../errors.js";
import { toErrorEnvelope } from "../http/errors.js";
import type { Exchange } from "../http/exchange.js";
import { drained } from "../lib/back-pressure.js";
import { selectRange } from "../lib/byte-range.js";
import { SLOW_READER_TIMEOUT_MS } from "../limits.js";
import type { PreparedAnswer } from "../services/generation/content-cache/content-cache.js";
import { CACHE_CONTROL, cachedHeaders } from "./headers.js";

/** A file whose bytes never change under its ETag. */
export interface StoredFile {
  /** With its quotes. */
  readonly etag: string;
  readonly sizeBytes: number;
  /** Null when the file was deleted meanwhile. */
  readonly open: (range: { readonly start: number; readonly end: number }) => Promise<Readable | Uint8Array | null>;
  /** Made for this request, which paid for it: sent even when the client has an older one. */
  readonly isNew?: boolean;
}

/** `fileHeaders` hold type and caching. Rejects with NOT_FOUND while nothing has been sent. */
export async function sendStoredFile(exchange: Exchange, file: StoredFile, fileHeaders: OutgoingHttpHeaders): Promise<void> {
  const { req } = exchange;
  const { etag, sizeBytes, isNew = false } = file;
  const headers: OutgoingHttpHeaders = { ...fileHeaders, ETag: etag, "Accept-Ranges": "bytes" };
  if (!isNew && exchange.isKept(etag)) return sendHead(exchange, 304, headers);
  const { range: wanted, "if-range": ifRange } = req.headers;
  const selected = selectRange({ method: req.method, range: wanted, ifRange: ifRange?.toString() }, sizeBytes, etag);
  if (selected === "unsatisfiable" && !isNew) return sendUnsatisfiable(exchange, sizeBytes);
  const range = selected === "unsatisfiable" ? null : selected;
  const { start, end } = range ?? { start: 0, end: sizeBytes - 1 };
  headers["Content-Length"] = end - start + 1;
  if (range) headers["Content-Range"] = `bytes ${start}-${end}/${sizeBytes}`;
  const status = range ? 206 : 200;
  if (req.method === "HEAD") return sendHead(exchange, status, headers);
  const bytes = await file.open({ start, end });
  if (!bytes) throw notFound("file");
  exchange.writeHead(status, headers);
  if (bytes instanceof Uint8Array) exchange.res.end(bytes);
  else await sendStream(exchange, bytes);
}

/** Uses HTTP's status 416; the closed set of codes has none for it, so the envelope says BAD_REQUEST. */
function sendUnsatisfiable(exchange: Exchange, size: number): void {
  const error = invalidInput(`The file has ${size} bytes: the range asks for none of them.`, "Range");
  const body = { ...toErrorEnvelope(error, exchange.requestId), status: 416 };
  exchange.setHeaders({ "Content-Range": `bytes */${size}`, "Cache-Control": "private, no-store" });
  exchange.sendJson(body, 416);
}

function sendHead(exchange: Exchange, status: number, headers: OutgoingHttpHeaders): void {
  exchange.writeHead(status, headers);
  exchange.res.end();
}

/** At the reader's pace; a reader that takes nothing for a minute is disconnected. */
async function sendStream({ res }: Exchange, bytes: Readable): Promise<void> {
  for await (const chunk of bytes) {
    if (res.closed) return;
    if (!res.write(chunk)) await drained(res, SLOW_READER_TIMEOUT_MS);
  }
  res.end();
}

// Answers of media GETs: a stored or new file, whole or in the range that a player requests (RFC 9110, 14). Ranges exist only of stored
// bytes, so that the next range is of the same bytes and free. New generations (`no-cache=true`, a seed of -1, files too large for the
// content cache) are sent whole, so that no client pays range by range.

/** Answers GET, and HEAD, which generates nothing: for answers that are not stored it has only the headers known beforehand. */
export async function sendGenerated(exchange: Exchange, prepared: PreparedAnswer): Promise<void> {
  const { method, headers } = exchange.req;
  const kept = method === "HEAD" || headers.range !== undefined ? await prepared.find() : null;
  if (kept) {
    const { version, sizeBytes, open, contentType, receipt } = kept;
    const file = { etag: `"${version}"`, sizeBytes, open };
    return sendStoredFile(exchange, file, { ...cachedHeaders({ receipt, isHit: true }), "Content-Type": contentType });
  }
  if (method === "HEAD") return sendExpected(exchange, prepared);
  const { file, receipt, isHit, version } = await prepared.get();
  const { bytes, contentType } = file;
  if (version === null) {
    exchange.setHeaders({ ...cachedHeaders({ receipt, isHit }), "Accept-Ranges": "none" });
    return exchange.sendBytes(bytes, contentType);
  }
  const open = async ({ start, end }: { readonly start: number; readonly end: number }) => bytes.subarray(start, end + 1);
  const stored = { etag: `"${version}"`, sizeBytes: bytes.byteLength, open, isNew: !isHit };
  await sendStoredFile(exchange, stored, { ...cachedHeaders({ receipt, isHit }), "Content-Type": contentType });
}

function sendExpected(exchange: Exchange, { contentType, isKeepable }: PreparedAnswer): void {
  const ranges = isKeepable ? "bytes" : "none";
  exchange.writeHead(200, { "Content-Type": contentType, "Cache-Control": CACHE_CONTROL, "Accept-Ranges": ranges });
  exchange.res.end();
}
