/**
 * The ledger as its owner reads it: grants and refills one by one, and the charges of each day (UTC) in one line, at the day's end. Each
 * line has the balance after it: the present balance without all newer lines.
 */

import { isUuid } from "../../lib/ids.js";
import { COUNT_TAKE, type Page, type PagePosition, type PageRequest, toPage } from "../../lib/pagination.js";
import { isStorableTime } from "../../lib/storable-time.js";
import type { Database } from "../../store/database.js";
import { Prisma } from "../../store/generated/prisma/client.js";
import type { LedgerKind } from "../../store/generated/prisma/enums.js";
import type { BucketName } from "../../store/ledger.js";

/** Kinds of transactions that change a bucket. */
export type StatementKind = Exclude<LedgerKind, "payout" | "clawback" | "payment" | "fee">;

export interface StatementLine {
  /** The transaction; of charges their day, such as 2026-01-31. */
  readonly id: string;
  readonly kind: StatementKind;
  /** When it was booked; of charges the start of their day. */
  readonly bookedAt: Date;
  /** Null: more than one. */
  readonly bucket: BucketName | null;
  /** Below 0 when credits were taken. */
  readonly nanocredits: bigint;
  /** Requests of the day, free ones included; null but for charges. */
  readonly requests: number | null;
  readonly note: string | null;
  readonly balanceAfter: bigint;
}

interface Row extends Omit<StatementLine, "bookedAt"> {
  readonly at: Date;
}

const DAY_MS = 86_400_000;
const DAY_PATTERN = /^\d{4}-\d{2}-\d{2}$/;
/** Id of charges in positions: sorts after every other id of the same moment. */
const CHARGES_ID = "ffffffff-ffff-4fff-bfff-ffffffffffff";

/** Reads balance and lines in one statement, so that they agree. Payments in leases that are not folded yet count as spent. */
export async function readStatement(database: Database, accountId: string, page: PageRequest): Promise<Page<StatementLine>> {
  const { first, after, before, isFromEnd = false } = page;
  const within = [
    ...(after ? [Prisma.sql`(at, id) < (${after.timestamp}, ${after.id}::uuid)`] : []),
    ...(before ? [Prisma.sql`(at, id) > (${before.timestamp}, ${before.id}::uuid)`] : []),
  ];
  const where = within.length === 0 ? Prisma.empty : Prisma.sql`WHERE ${Prisma.join(within, " AND ")}`;
  const order = isFromEnd ? Prisma.sql`at, id` : Prisma.sql`at DESC, id DESC`;
  const rows = await readLines(database, accountId, Prisma.sql`${where} ORDER BY ${order} LIMIT ${first + 1}`);
  return toPage(rows, page, async () => {
    const [counted] = await database.prisma.$queryRaw<{ readonly count: bigint }[]>`
      SELECT count(*) AS count FROM (SELECT FROM (${linesOf(accountId)}) line LIMIT ${COUNT_TAKE}) counted`;
    return Number(counted?.count ?? 0n);
  });
}

/** Reads lines by id, in any order. */
export async function readStatementLines(database: Database, accountId: string, ids: readonly string[]): Promise<StatementLine[]> {
  const days = ids.filter((id) => DAY_PATTERN.test(id) && isStorableTime(new Date(id)));
  const ends = days.map((day) => new Date(Date.parse(day) + DAY_MS - 1));
  const transactions = ids.filter(isUuid);
  return readLines(
    database,
    accountId,
    Prisma.sql`WHERE (kind <> 'charge' AND id = ANY (${transactions}::uuid[])) OR (kind = 'charge' AND at = ANY (${ends}::timestamptz[]))`,
  );
}

async function readLines({ prisma }: Database, accountId: string, chosen: Prisma.Sql): Promise<StatementLine[]> {
  const rows = await prisma.$queryRaw<Row[]>`
    WITH line AS (${linesOf(accountId)}), balance AS (
      SELECT a.tier_nanocredits + a.crypto_nanocredits + a.pack_nanocredits - coalesce((
        SELECT sum(l.tier_paid_nanocredits + l.crypto_paid_nanocredits + l.pack_paid_nanocredits)
        FROM credit_lease l WHERE l.account_id = a.id), 0) AS now
      FROM account a WHERE a.id = ${accountId}::uuid
    ), balanced AS (
      SELECT line.*, ((SELECT now FROM balance) - coalesce(sum(line.nanocredits) OVER (
        ORDER BY at DESC, id DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0))::bigint AS "balanceAfter"
      FROM line
    )
    SELECT * FROM balanced ${chosen}`;
  return rows.map(toLine);
}

/** For cursors: charges stand at the end of their day. */
export function statementPosition({ id, kind, bookedAt }: StatementLine): PagePosition {
  if (kind !== "charge") return { id, timestamp: bookedAt };
  return { id: CHARGES_ID, timestamp: new Date(bookedAt.getTime() + DAY_MS - 1) };
}

function linesOf(accountId: string): Prisma.Sql {
  return Prisma.sql`
    SELECT l.created_at AS at, l.transaction_id AS id, l.kind::text AS kind, CASE WHEN count(*) = 1 THEN min(l.book::text) END AS bucket,
      sum(l.amount_nanocredits)::bigint AS nanocredits, NULL::integer AS requests, min(l.note) AS note
    FROM ledger_entry l
    WHERE l.account_id = ${accountId}::uuid AND l.kind <> 'charge' AND l.book IN ('tier', 'crypto', 'pack')
    GROUP BY 1, 2, 3
    UNION ALL
    SELECT ((d.day + 1)::timestamp AT TIME ZONE 'UTC') - interval '1 millisecond', ${CHARGES_ID}::uuid, 'charge', NULL,
      (-sum(d.cost_nanocredits))::bigint, sum(d.requests)::integer, NULL
    FROM usage_daily d
    WHERE d.account_id = ${accountId}::uuid
    GROUP BY d.day HAVING sum(d.cost_nanocredits) <> 0`;
}

function toLine({ at, ...row }: Row): StatementLine {
  if (row.kind !== "charge") return { ...row, bookedAt: at };
  const bookedAt = new Date(at.getTime() - DAY_MS + 1);
  return { ...row, id: bookedAt.toISOString().slice(0, 10), bookedAt };
}
