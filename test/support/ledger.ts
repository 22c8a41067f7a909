/** Accounts, keys and ledger operations for tests of the money path. Amounts are nanocredits. */
import { randomBytes, randomUUID } from "node:crypto";
import type pg from "pg";
import { NO_USAGE } from "../../src/lib/usage.js";
import type { Database } from "../../src/store/database.js";
import type {
  BucketName,
  ExtendOperation,
  HoldOperation,
  Ledger,
  LedgerOptions,
  LedgerRecord,
  RecoverOperation,
  ReleaseOperation,
  SettleOperation,
} from "../../src/store/ledger.js";
import { createLedger } from "../../src/store/sql-ledger.js";

/** Who pays in a test: an account, and the key that it is charged through. */
export interface TestPayer {
  readonly accountId: string;
  readonly apiKeyId: string | null;
}

export type Balances = Partial<Record<BucketName, bigint>>;

export function createTestLedger(database: Pick<Database, "pool" | "isExclusive">, options: Partial<LedgerOptions> = {}): Ledger {
  return createLedger(database.pool, {
    keepsStatements: () => !database.isExclusive,
    processId: randomUUID(),
    holdSeconds: 900,
    // Generous: a busy machine is no failure.
    timeoutMs: 60_000,
    freeSpendCap: null,
    ...options,
  });
}

/** An account with these buckets, each granted as an operator would. */
export async function createAccount(pool: pg.Pool, ledger: Ledger, balances: Balances = {}, id: string = randomUUID()): Promise<string> {
  await pool.query("INSERT INTO account (id, handle) VALUES ($1, $2)", [id, `account-${id}`]);
  for (const bucket of ["tier", "crypto", "pack"] as const) {
    const amount = balances[bucket] ?? 0n;
    if (amount > 0n) await ledger.grant({ id: randomUUID(), accountId: id, bucket, amount, note: null });
  }
  return id;
}

/** A key of the account; null: without a budget, granted to no app, and made by no key. */
export async function createKey(
  pool: pg.Pool,
  accountId: string,
  budget: bigint | null,
  id: string = randomUUID(),
  appKeyId: string | null = null,
  parentId: string | null = null,
): Promise<string> {
  await pool.query(
    `INSERT INTO api_key (id, account_id, hash, type, name, start, budget_nanocredits, app_key_id, parent_id, ancestor_ids)
     VALUES ($1, $2, $3, 'secret', 'Test', 'sk_test', $4, $5, $6, coalesce((SELECT p.ancestor_ids || p.id FROM api_key p WHERE p.id = $6), '{}'))`,
    [id, accountId, randomBytes(32), budget?.toString() ?? null, appKeyId, parentId],
  );
  return id;
}

export async function createPayer(pool: pg.Pool, ledger: Ledger, balances: Balances, budget: bigint | null = null): Promise<TestPayer> {
  const accountId = await createAccount(pool, ledger, balances);
  return { accountId, apiKeyId: await createKey(pool, accountId, budget) };
}

export function usageRecord(more: Partial<LedgerRecord> = {}): LedgerRecord {
  return {
    timestamp: "2026-11-21T12:00:00.000Z",
    apiKeyName: "Test",
    apiKeyType: "secret",
    modality: "text",
    model: "acme/chat",
    modelUsed: "acme/chat",
    usage: NO_USAGE,
    responseTimeMs: 12,
    timeToFirstTokenMs: null,
    status: "ok",
    usageSource: "provider",
    parentRequestId: null,
    ...more,
  };
}

interface OperationOptions {
  readonly id?: string;
  readonly paidOnly?: boolean;
  readonly record?: LedgerRecord;
}

export function hold(payer: TestPayer, amount: bigint, options: OperationOptions = {}): HoldOperation {
  const { id = randomUUID(), paidOnly = false, record = usageRecord() } = options;
  return { kind: "hold", id, ...payer, amount, paidOnly, record };
}

export function extend(held: HoldOperation, amount: bigint, metered: bigint, record = held.record): ExtendOperation {
  return { ...held, kind: "extend", amount, metered, record };
}

/** The settlement of a hold, or of a generation without one. */
export function settle(of: HoldOperation | TestPayer, amount: bigint, options: OperationOptions = {}): SettleOperation {
  const { id = randomUUID(), paidOnly = false, record = usageRecord(), accountId, apiKeyId } = { ...of, ...options };
  return { kind: "settle", id, accountId, apiKeyId, amount, paidOnly, record };
}

/** What recovery makes of a hold whose process has died. */
export function recover(of: HoldOperation, amount: bigint, record = of.record): RecoverOperation {
  return { ...of, kind: "recover", amount, record };
}

export function release({ id, accountId, apiKeyId }: HoldOperation): ReleaseOperation {
  return { kind: "release", id, accountId, apiKeyId };
}

export interface AccountState {
  readonly buckets: Record<BucketName, bigint>;
  readonly held: Record<BucketName, bigint>;
}

/** With its leases folded; `held` counts holds, not leases. */
export async function readAccount(pool: pg.Pool, id: string): Promise<AccountState> {
  await pool.query("SELECT credit_fold($1)", [[id]]);
  const { rows } = await pool.query(
    `SELECT a.tier_nanocredits, a.crypto_nanocredits, a.pack_nanocredits,
       a.tier_held_nanocredits - coalesce(sum(l.tier_nanocredits + l.tier_paid_nanocredits), 0)::bigint AS tier_held_nanocredits,
       a.crypto_held_nanocredits - coalesce(sum(l.crypto_nanocredits + l.crypto_paid_nanocredits), 0)::bigint AS crypto_held_nanocredits,
       a.pack_held_nanocredits - coalesce(sum(l.pack_nanocredits + l.pack_paid_nanocredits), 0)::bigint AS pack_held_nanocredits
     FROM account a LEFT JOIN credit_lease l ON l.account_id = a.id WHERE a.id = $1 GROUP BY a.id`,
    [id],
  );
  const [row] = rows;
  const read = (suffix: string): Record<BucketName, bigint> => ({
    tier: BigInt(row[`tier_${suffix}`]),
    crypto: BigInt(row[`crypto_${suffix}`]),
    pack: BigInt(row[`pack_${suffix}`]),
  });
  return { buckets: read("nanocredits"), held: read("held_nanocredits") };
}

/** As `readAccount`. */
export async function readKey(pool: pg.Pool, id: string): Promise<{ budget: bigint | null; spent: bigint; held: bigint }> {
  await pool.query("SELECT credit_fold(ARRAY(SELECT account_id FROM api_key WHERE id = $1))", [id]);
  const { rows } = await pool.query(
    `SELECT k.budget_nanocredits, k.spent_nanocredits, k.held_nanocredits - coalesce((
       SELECT sum(l.tier_nanocredits + l.crypto_nanocredits + l.pack_nanocredits + l.tier_paid_nanocredits + l.crypto_paid_nanocredits + l.pack_paid_nanocredits)
       FROM credit_lease l JOIN api_key d ON d.id = l.api_key_id WHERE k.id = d.id OR k.id = ANY (d.ancestor_ids)), 0)::bigint AS held_nanocredits
     FROM api_key k WHERE k.id = $1`,
    [id],
  );
  const [row] = rows;
  return {
    budget: row.budget_nanocredits === null ? null : BigInt(row.budget_nanocredits),
    spent: BigInt(row.spent_nanocredits),
    held: BigInt(row.held_nanocredits),
  };
}

export interface UsageState {
  readonly cost: bigint;
  readonly source: BucketName;
  readonly status: string;
  readonly usageSource: string;
}

/** Null when the generation was not recorded. */
export async function readUsage(pool: pg.Pool, id: string): Promise<UsageState | null> {
  const { rows } = await pool.query("SELECT cost_nanocredits, meter_source, status, usage_source FROM usage_record WHERE id = $1", [id]);
  const [row] = rows;
  if (!row) return null;
  return { cost: BigInt(row.cost_nanocredits), source: row.meter_source, status: row.status, usageSource: row.usage_source };
}

/** A transaction's lines, in their order: `["tier", -3n]`. */
export async function readEntries(pool: pg.Pool, transactionId: string): Promise<[book: string, amount: bigint][]> {
  const { rows } = await pool.query("SELECT book, amount_nanocredits FROM ledger_entry WHERE transaction_id = $1 ORDER BY line", [
    transactionId,
  ]);
  return rows.map((row) => [row.book, BigInt(row.amount_nanocredits)]);
}

export async function countHolds(pool: pg.Pool, accountId: string): Promise<number> {
  const { rows } = await pool.query("SELECT count(*)::int AS n FROM hold WHERE account_id = $1", [accountId]);
  return rows[0].n;
}

/** Each table before the tables that it references. */
const BOOK_TABLES = [
  "ledger_entry",
  "usage_record",
  "usage_event",
  "usage_hour_rollup",
  "usage_day_rollup",
  "usage_daily",
  "app_usage_daily",
  "free_spend_daily",
  "earning",
  "earning_daily",
  "expiring_grant",
  "hold",
  "credit_lease",
  "api_key",
  "account",
];

/**
 * Removes every account and all that there is of it. The ledger refuses to be emptied, so its guard is taken off for a moment.
 * DELETE, because TRUNCATE makes new files for each table and index: ten times the time of the few rows that a test has made.
 */
export async function emptyBooks(pool: pg.Pool): Promise<void> {
  await pool.query(`
    ALTER TABLE ledger_entry DISABLE TRIGGER ledger_entry_append_only;
    ${BOOK_TABLES.map((table) => `DELETE FROM ${table};`).join("\n")}
    ALTER TABLE ledger_entry ENABLE ALWAYS TRIGGER ledger_entry_append_only`);
}
