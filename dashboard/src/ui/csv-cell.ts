/** The rule of the gateway's own tables (src/lib/csv.ts), which the dashboard cannot import. A test holds both to the same cells. */

/** Spreadsheets skip blanks and invisible characters, and take full-width signs for their narrow ones. */
const FORMULA = /^[\s\p{Cc}\p{Cf}]*[=+\-@＝＋－＠﹢﹣﹦﹫]|^[\t\r\n]/u;
const NEEDS_QUOTES = /[",\r\n]/;

/** A cell of RFC 4180. A text that a spreadsheet would run as a formula begins with an apostrophe. */
export function toCsvCell(value: string | number | null): string {
  if (value === null) return "";
  const text = typeof value === "string" && FORMULA.test(value) ? `'${value}` : String(value);
  return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
