/**
 * What the GET routes of media answer: a file that is kept or made, whole, or the range of it that a player asks for (RFC 9110, 14).
 *
 * A range is of kept bytes alone, so that the next one is of the same bytes and costs nothing. What each request makes anew
 * (`no-cache=true`, a seed of -1, more than the content cache takes) comes whole and says so, and nobody pays for it range by range.
 */

import type { Exchange } from "../http/exchange.js";
import type { AskedAnswer } from "../services/generation/content-cache/content-cache.js";
import { CACHE_CONTROL, cachedHeaders } from "./headers.js";
import { sendStoredFile } from "./stored-file.js";

/** GET, and HEAD, which generates nothing: of what is not kept it tells what is known beforehand. */
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
