/**
 * The trial balance of the ledger (docs/spec/credits.md#books): each book's balance before a period, its movements by kind of entry, and its
 * balance after. The operator's costs of upstreams are not in the ledger; they are added from the usage rows as two balanced books.
 */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { wrongField } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import type { Database } from "../../store/database.js";
import { requireOperator } from "../access/permissions.js";

export const trialBalanceInput = z.strictObject({
  /** Inclusive; absent: everything before `to`. */
  from: z.date().nullish(),
  /** Exclusive; now by default. */
  to: z.date().nullish(),
});
export type TrialBalanceQuery = z.output<typeof trialBalanceInput>;

/** Of the ledger, and the two of upstreams. */
export const BOOKS = [
  ...(["tier", "crypto", "pack", "earnings", "cash", "receivable", "fees", "revenue", "issued", "write_off", "breakage"] as const),
  ...(["upstream_cost", "upstream_owed"] as const),
] as const;
export type Book = (typeof BOOKS)[number];

/** The movements of one book by one kind of entry. Nanocredits of 0 or more. */
export interface BookMovement {
  readonly kind: string;
  readonly debit: bigint;
  readonly credit: bigint;
}

/** Nanocredits; a balance above 0 is on the credit side. */
export interface BookRow {
  readonly book: Book;
  readonly opening: bigint;
  readonly movements: readonly BookMovement[];
  readonly debit: bigint;
  readonly credit: bigint;
  readonly closing: bigint;
}

export interface TrialBalance {
  readonly from: Date | null;
  readonly to: Date;
  /** Books with a balance or a movement, in the order of BOOKS. */
  readonly books: readonly BookRow[];
  readonly debit: bigint;
  readonly credit: bigint;
  /** Bought credits that accounts have now, and credits that they were given. */
  readonly sold: bigint;
  readonly granted: bigint;
}

interface Row {
  readonly book: Book;
  readonly kind: string;
  readonly opening: bigint;
  readonly debit: bigint;
  readonly credit: bigint;
}

export class Books {
  constructor(
    private readonly database: Pick<Database, "prisma">,
    private readonly clock: Clock,
  ) {}

  /** Reads the whole ledger. Rejects with BAD_REQUEST when the period ends before it begins. */
  async trialBalance(ctx: RequestContext, { from = null, to: end }: TrialBalanceQuery): Promise<TrialBalance> {
    requireOperator(ctx);
    const to = end ?? this.clock.now();
    if (from !== null && from > to) throw wrongField("from", "must not be later than `to`");
    const start = from ?? new Date(0);
    const { prisma } = this.database;
    const rows = await prisma.$queryRaw<Row[]>`
      WITH entry AS (
        SELECT l.book::text AS book, l.kind::text AS kind, l.amount_nanocredits AS amount, l.created_at AS at FROM ledger_entry l WHERE l.created_at < ${to}
        UNION ALL
        SELECT b.book, 'upstream', u.upstream_cost_nanocredits * b.sign, u.timestamp
        FROM usage_record u CROSS JOIN (VALUES ('upstream_cost', -1), ('upstream_owed', 1)) b(book, sign)
        WHERE u.upstream_cost_nanocredits <> 0 AND u.timestamp < ${to}
      )
      SELECT e.book, e.kind, coalesce(sum(e.amount) FILTER (WHERE e.at < ${start}), 0)::bigint AS opening,
        coalesce(-sum(e.amount) FILTER (WHERE e.at >= ${start} AND e.amount < 0), 0)::bigint AS debit,
        coalesce(sum(e.amount) FILTER (WHERE e.at >= ${start} AND e.amount > 0), 0)::bigint AS credit
      FROM entry e GROUP BY 1, 2 ORDER BY 1, 2`;
    const [held] = await prisma.$queryRaw<{ readonly sold: bigint; readonly granted: bigint }[]>`
      SELECT coalesce(sum(s.sold), 0)::bigint AS sold, coalesce(sum(s.whole - s.sold), 0)::bigint AS granted
      FROM (SELECT least(a.crypto_sold_nanocredits, a.crypto_nanocredits - p.crypto) + least(a.pack_sold_nanocredits, a.pack_nanocredits - p.pack) AS sold,
              a.crypto_nanocredits - p.crypto + a.pack_nanocredits - p.pack AS whole
            FROM account a CROSS JOIN LATERAL (
              SELECT coalesce(sum(l.crypto_paid_nanocredits), 0) AS crypto, coalesce(sum(l.pack_paid_nanocredits), 0) AS pack
              FROM credit_lease l WHERE l.account_id = a.id) p) s`;
    const books = BOOKS.flatMap((book) => toBook(book, rows));
    const sum = (side: "debit" | "credit") => books.reduce((total, row) => total + row[side], 0n);
    return { from, to, books, debit: sum("debit"), credit: sum("credit"), sold: held?.sold ?? 0n, granted: held?.granted ?? 0n };
  }
}

function toBook(book: Book, rows: readonly Row[]): BookRow[] {
  const own = rows.filter((row) => row.book === book);
  if (own.length === 0) return [];
  const sum = (side: "opening" | "debit" | "credit") => own.reduce((total, row) => total + row[side], 0n);
  const movements = own.flatMap(({ kind, debit, credit }) => (debit === 0n && credit === 0n ? [] : [{ kind, debit, credit }]));
  const [opening, debit, credit] = [sum("opening"), sum("debit"), sum("credit")];
  return [{ book, opening, movements, debit, credit, closing: opening + credit - debit }];
}
