/** Usage as REST shows it (docs/spec/usage.md#rows). */
import { formatNanocredits } from "../../lib/money.js";
import type { Cell, Columns, UsageDailyRow } from "../../services/usage/usage.js";

export const USAGE_DAILY_COLUMNS: Columns<UsageDailyRow> = {
  date: (row) => row.date,
  model: (row) => row.model,
  meter_source: (row) => row.meterSource,
  requests: (row) => row.requests,
  cost_usd: (row) => row.costNanocredits,
};

export function toCsvHeader<Row>(columns: Columns<Row>): string {
  return `${Object.keys(columns).join(",")}\r\n`;
}

export function toCsvRows<Row>(columns: Columns<Row>, rows: readonly Row[]): string {
  const cells = Object.values(columns);
  return rows.map((row) => `${cells.map((cell) => toCsvCell(cell(row))).join(",")}\r\n`).join("");
}

/** RFC 4180. A text that a spreadsheet would run as a formula gets an apostrophe before it. */
function toCsvCell(cell: Cell): string {
  if (cell === null) return "";
  if (typeof cell === "bigint") return formatNanocredits(cell);
  if (typeof cell === "number") return String(cell);
  const text = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
