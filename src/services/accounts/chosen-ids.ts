/** Ids that an operator chose for entries of the ledger, so that a repeated request books once. */
import { conflict } from "../../errors.js";
import { type Database, type DatabaseClient, refusingTaken } from "../../store/database.js";
import type { LedgerKind } from "../../store/generated/prisma/enums.js";
import type { LedgerEntryModel } from "../../store/generated/prisma/models.js";
import type { BucketName } from "../../store/ledger.js";

/** Of the parameters whose ids operators choose: `grantId`, `saleId`. */
export type ChosenName = "grant" | "withdrawal" | "sale" | "payment" | "payout" | "conversion";

export interface Booking {
  readonly id: string;
  readonly kind: "grant" | "withdrawal" | "purchase";
  /** As the parameter names it; absent: as the kind. */
  readonly name?: ChosenName;
  readonly accountId: string;
  readonly bucket: BucketName;
}

type Rows = Pick<DatabaseClient, "ledgerEntry" | "hold" | "usageRecord" | "generationJob">;

/**
 * The bucket's entry of an earlier request with the same id; null: there was none. Rejects with CONFLICT when the id belongs to another
 * account, bucket or kind of entry, or to a generation.
 */
export async function findEarlier(
  rows: Rows,
  { id, kind, name = kind as ChosenName, accountId, bucket }: Booking,
): Promise<LedgerEntryModel | null> {
  const entries = await rows.ledgerEntry.findMany({ where: { transactionId: id }, orderBy: { line: "asc" }, take: 2 });
  const [entry] = entries;
  if (!entry) {
    await assertNoGeneration(rows, id, name);
    return null;
  }
  if (entry.kind !== kind || entry.accountId !== accountId || entry.book !== bucket) throw isTaken(name);
  return entry;
}

async function assertNoGeneration(rows: Omit<Rows, "ledgerEntry">, id: string, name: ChosenName): Promise<void> {
  const where = { id };
  const counts = await Promise.all([rows.hold.count({ where }), rows.usageRecord.count({ where }), rows.generationJob.count({ where })]);
  if (counts.some((count) => count > 0)) throw isTaken(name);
}

export function isTaken(name: ChosenName): Error {
  return conflict(`This ${name}Id was used for something else: choose another UUID.`);
}

/** As a transaction; CONFLICT when another one took the id meanwhile. */
export function bookOnce<T>(
  { prisma }: Pick<Database, "prisma">,
  name: ChosenName,
  book: (transaction: Parameters<Parameters<Database["prisma"]["$transaction"]>[0]>[0]) => Promise<T>,
): Promise<T> {
  return refusingTaken(
    () => prisma.$transaction(book),
    () => isTaken(name),
  );
}

/**
 * Whether the id was booked before, for an account's booking without a bucket. Rejects with CONFLICT when it belongs to another booking, or
 * to a generation.
 */
export async function isBooked(
  rows: Rows,
  { id: transactionId, kind, accountId }: { readonly id: string; readonly kind: ChosenName & LedgerKind; readonly accountId: string },
): Promise<boolean> {
  const entries = await rows.ledgerEntry.findMany({ where: { transactionId }, take: 2 });
  if (entries.some((entry) => entry.kind !== kind || entry.accountId !== accountId)) throw isTaken(kind);
  if (entries.length === 0) await assertNoGeneration(rows, transactionId, kind);
  return entries.length > 0;
}
