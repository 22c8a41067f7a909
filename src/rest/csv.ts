/** CSV answers, written piece by piece (RFC 4180, RFC 7111). */

import type { Exchange } from "../http/exchange.js";
import { drained } from "../lib/back-pressure.js";
import { SLOW_READER_TIMEOUT_MS } from "../limits.js";

/**
 * Rejects before anything is sent when the first piece fails. A later failure breaks the connection off: a table that
 * merely ended early would look complete.
 */
export async function sendCsv(exchange: Exchange, fileName: string, pieces: Iterable<string> | AsyncIterable<string>): Promise<void> {
  const { res } = exchange;
  for await (const piece of pieces) {
    if (!res.headersSent) {
      exchange.writeHead(200, {
        "Content-Type": "text/csv; charset=utf-8; header=present",
        "Content-Disposition": `attachment; filename="${fileName}"`,
      });
    }
    if (!res.write(piece)) await drained(res, SLOW_READER_TIMEOUT_MS);
    if (res.destroyed) return;
  }
  res.end();
}
