/** Tables as CSV (RFC 4180). */
import * as z from "zod";
import type { Exchange } from "../http/exchange.js";
import { drained } from "../lib/back-pressure.js";
import { toCsvCell } from "../lib/csv.js";
import { toDisposition } from "../lib/header-text.js";
import { formatNanocredits } from "../lib/money.js";
import type { Page, PagePosition, PageRequest } from "../lib/pagination.js";
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

/** Unspecified: rows of a long table that an answer holds in memory. */
export const CSV_PAGE_ROWS = 1_000;

/** A long table in pieces: the header and the first page, then page by page at the reader's pace. `after` and `limit` bound all of it. */
export async function* csvPages<Row>(
  columns: Columns<Row>,
  { limit, after: begin }: { readonly limit: number; readonly after: PagePosition | undefined },
  read: (page: PageRequest) => Promise<Page<Row>>,
  positionOf: (row: Row) => PagePosition,
): AsyncGenerator<string> {
  let after = begin;
  for (let left = limit; left > 0; left -= CSV_PAGE_ROWS) {
    const page = await read({ first: Math.min(left, CSV_PAGE_ROWS), after });
    const rows = toCsvRows(columns, page.items);
    yield left === limit ? toCsvHeader(columns) + rows : rows;
    const last = page.items.at(-1);
    if (!page.hasNextPage || last === undefined) return;
    after = positionOf(last);
  }
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
