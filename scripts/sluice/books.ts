/** The trial balance of the ledger, as a table or as CSV. */
import type { Gateway } from "./gateway.js";
import { type Column, type Outcome, toColumns } from "./present.js";

export interface BooksQuery {
  /** ISO 8601; null: the beginning. */
  readonly from: string | null;
  /** ISO 8601; null: now. */
  readonly to: string | null;
  readonly isCsv: boolean;
}

interface Line {
  readonly book: string;
  readonly kind: string;
  readonly opening: string;
  readonly debit: string;
  readonly credit: string;
  readonly closing: string;
}

interface Balance {
  readonly to: string;
  readonly debit: string;
  readonly credit: string;
  readonly sold: string;
  readonly granted: string;
  readonly books: readonly (Omit<Line, "kind"> & { readonly movements: readonly Pick<Line, "kind" | "debit" | "credit">[] })[];
}

const COLUMNS: readonly Column<Line>[] = [
  ["BOOK", ({ book }) => book],
  ["KIND", ({ kind }) => kind],
  ["OPENING", ({ opening }) => opening],
  ["DEBIT", ({ debit }) => debit],
  ["CREDIT", ({ credit }) => credit],
  ["CLOSING", ({ closing }) => closing],
];

export async function showBooks(gateway: Gateway, { from, to, isCsv }: BooksQuery): Promise<Outcome> {
  if (isCsv) {
    const parameters = { format: "csv", ...(from !== null && { from }), ...(to !== null && { to }) };
    const table = await gateway.read(`/account/operator/books?${new URLSearchParams(parameters)}`);
    return { answer: table, words: table.trimEnd() };
  }
  const document = `query ($from: DateTime, $to: DateTime) { trialBalance(from: $from, to: $to) {
    from to debit credit sold granted books { book opening debit credit closing movements { kind debit credit } } } }`;
  const { trialBalance } = await gateway.ask<{ trialBalance: Balance }>(document, { from, to });
  const { books, debit, credit, sold, granted } = trialBalance;
  const lines = books.flatMap(({ book, opening, closing, movements, ...sums }): Line[] => [
    { book: book.toLowerCase(), kind: "", opening, ...sums, closing },
    ...movements.map((movement) => ({ book: "", opening: "", closing: "", ...movement })),
  ]);
  const total = { book: "TOTAL", kind: "", opening: "", debit, credit, closing: "" };
  const verdict = debit === credit ? "The books are balanced." : "The books are NOT balanced: debits and credits differ.";
  const words = `${toColumns<Line>(COLUMNS, [...lines, total])}\n${verdict} Accounts have ${sold} bought and ${granted} granted credits now.`;
  return { answer: trialBalance, words };
}
