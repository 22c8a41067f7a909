/** CSV for spreadsheets: RFC 4180, with cells that a spreadsheet would take for formulas made texts. */

export type CsvColumn<Row> = readonly [title: string, cell: (row: Row) => string | number | null];

const FORMULA = /^[=+\-@\t\r]/;
const DECIMAL = /^-?\d+(?:\.\d+)?$/;
const NEEDS_QUOTES = /[",\r\n]/;

export function toCsv<Row>(columns: readonly CsvColumn<Row>[], rows: readonly Row[]): string {
  const lines = [columns.map(([title]) => title), ...rows.map((row) => columns.map(([, cell]) => toCell(cell(row))))];
  return lines.map((cells) => cells.join(",")).join("\r\n");
}

function toCell(value: string | number | null): string {
  const text = value === null ? "" : String(value);
  const inert = FORMULA.test(text) && !DECIMAL.test(text) ? `'${text}` : text;
  return NEEDS_QUOTES.test(inert) ? `"${inert.replaceAll('"', '""')}"` : inert;
}
