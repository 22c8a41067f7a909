/** Tables as CSV (RFC 4180). */
import * as z from "zod";
import type { Exchange } from "../http/exchange.js";
import { drained } from "../lib/back-pressure.js";
import { toCsvCell } from "../lib/csv.js";
import { toDisposition } from "../lib/header-text.js";
import { formatNanocredits } from "../lib/money.js";
import { SLOW_READER_TIMEOUT_MS } from "../limits.js";
import type { Cell, Columns } from "../services/usage/usage.js";

export const CSV = "text/csv";
export const formatQuery = z.enum(["json", "csv"]).default("json").describe("The format: json or csv.");

export function toCsvHeader<Row>(columns: Columns<Row>): string {
  return `${Object.keys(columns).join(",")}\r\n`;
}

/** Amounts are numbers. */
const toCell = (cell: Cell): string => (typeof cell === "bigint" ? formatNanocredits(cell) : toCsvCell(cell));

export function toCsvRows<Row>(columns: Columns<Row>, rows: readonly Row[]): string {
  const cells = Object.values(columns);
  return rows.map((row) => `${cells.map((cell) => toCell(cell(row))).join(",")}\r\n`).join("");
}

/**
 * Streams CSV (RFC 4180, RFC 7111). Rejects while nothing has been sent. A later failure breaks the connection, because a table that merely
 * ended early would look complete.
 */
export async function sendCsv(exchange: Exchange, fileName: string, pieces: Iterable<string> | AsyncIterable<string>): Promise<void> {
  const { res } = exchange;
  for await (const piece of pieces) {
    if (!res.headersSent) {
      exchange.writeHead(200, {
        "Content-Type": "text/csv; charset=utf-8; header=present",
        "Content-Disposition": toDisposition("attachment", fileName),
      });
    }
    if (!res.write(piece)) await drained(res, SLOW_READER_TIMEOUT_MS);
    if (res.destroyed) return;
  }
  res.end();
}
