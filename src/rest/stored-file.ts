/** A file out of the blob store, whole or a range of it (RFC 9110, 14): read no faster than the caller takes it. */
import type { OutgoingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";
import { invalidInput, notFound } from "../errors.js";
import { toErrorEnvelope } from "../http/errors.js";
import type { Exchange } from "../http/exchange.js";
import { drained } from "../lib/back-pressure.js";
import { selectRange } from "../lib/byte-range.js";
import { SLOW_READER_TIMEOUT_MS } from "../limits.js";
import type { AskedAnswer } from "../services/generation/content-cache/content-cache.js";
import { CACHE_CONTROL, cachedHeaders } from "./headers.js";

/** Bytes that never change while they have this ETag. */
export interface StoredFile {
  /** With its quotes. */
  readonly etag: string;
  readonly sizeBytes: number;
  /** Null when the file was removed meanwhile. */
  readonly open: (range: { readonly start: number; readonly end: number }) => Promise<Readable | Uint8Array | null>;
  /** Made for this very request, which has paid for it: it is sent even when the caller has an older one. */
  readonly isNew?: boolean;
}

/** `fileHeaders` hold its type and its caching. Rejects with NOT_FOUND while nothing has been sent. */
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

/** HTTP's own status for it; the closed set of codes has none of that number, so it is a bad request in the envelope. */
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

/** No faster than it is read; a reader who takes nothing for a minute has gone. */
async function sendStream({ res }: Exchange, bytes: Readable): Promise<void> {
  for await (const chunk of bytes) {
    if (res.closed) return;
    if (!res.write(chunk)) await drained(res, SLOW_READER_TIMEOUT_MS);
  }
  res.end();
}

// What the GET routes of media answer: a file that is kept or made, whole, or the range of it that a player asks for (RFC 9110, 14).
// A range is of kept bytes alone, so that the next one is of the same bytes and costs nothing. What each request makes anew
// (`no-cache=true`, a seed of -1, more than the content cache takes) comes whole and says so, so that no caller pays for it range by range.

/** Answers GET, and HEAD, which generates nothing: of an answer that is not kept it has the headers known beforehand. */
export async function sendGenerated(exchange: Exchange, asked: AskedAnswer): Promise<void> {
  const { method, headers } = exchange.req;
  const kept = method === "HEAD" || headers.range !== undefined ? await asked.find() : null;
  if (kept) {
    const { version, sizeBytes, open, contentType, receipt } = kept;
    const file = { etag: `"${version}"`, sizeBytes, open };
    return sendStoredFile(exchange, file, { ...cachedHeaders({ receipt, isHit: true }), "Content-Type": contentType });
  }
  if (method === "HEAD") return sendExpected(exchange, asked);
  const { file, receipt, isHit, version } = await asked.get();
  const { bytes, contentType } = file;
  if (version === null) {
    exchange.setHeaders({ ...cachedHeaders({ receipt, isHit }), "Accept-Ranges": "none" });
    return exchange.sendBytes(bytes, contentType);
  }
  const open = async ({ start, end }: { readonly start: number; readonly end: number }) => bytes.subarray(start, end + 1);
  const stored = { etag: `"${version}"`, sizeBytes: bytes.byteLength, open, isNew: !isHit };
  await sendStoredFile(exchange, stored, { ...cachedHeaders({ receipt, isHit }), "Content-Type": contentType });
}

function sendExpected(exchange: Exchange, { contentType, isKeepable }: AskedAnswer): void {
  const ranges = isKeepable ? "bytes" : "none";
  exchange.writeHead(200, { "Content-Type": contentType, "Cache-Control": CACHE_CONTROL, "Accept-Ranges": ranges });
  exchange.res.end();
}
