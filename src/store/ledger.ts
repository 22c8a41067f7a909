/**
 * The ledger's one door: a batch of money operations in, their outcomes out, committed together by the SQL function
 * `credit_flush`; and beside it what fills buckets. Amounts are bigint nanocredits of 0 or more.
 */
import pg from "pg";
import { NO_USAGE, USAGE_KINDS, type UsageQuantities } from "../lib/usage.js";
import type { Modality } from "./generated/prisma/enums.js";

export type BucketName = "tier" | "crypto" | "pack";

/**
 * A usage row but for what `credit_flush` fills in: ids, cost and meter source. A hold keeps it as JSON, so that a dead
 * process's generation can be settled from it.
 */
export interface LedgerRecord {
  readonly timestamp: string;
  readonly apiKeyName: string | null;
  readonly apiKeyType: "secret" | "publishable" | null;
  readonly modality: Modality;
  readonly model: string;
  readonly modelUsed: string;
  readonly usage: UsageQuantities;
  readonly responseTimeMs: number;
  readonly timeToFirstTokenMs: number | null;
  readonly status: "ok" | "cancelled";
  readonly usageSource: "provider" | "estimated" | "partial";
  readonly parentRequestId: string | null;
}

interface OperationBase {
  /** The generation's id. */
  readonly id: string;
  readonly accountId: string;
  readonly apiKeyId: string | null;
}

export interface HoldOperation extends OperationBase {
  readonly kind: "hold";
  readonly amount: bigint;
  readonly paidOnly: boolean;
  readonly record: LedgerRecord;
}

export interface ExtendOperation extends OperationBase {
  readonly kind: "extend";
  /** How much more to set aside; 0 only notes what has been metered. */
  readonly amount: bigint;
  readonly paidOnly: boolean;
  /** The cost of what has been delivered so far. */
  readonly metered: bigint;
  readonly record: LedgerRecord;
}

export interface SettleOperation extends OperationBase {
  readonly kind: "settle";
  readonly amount: bigint;
  readonly paidOnly: boolean;
  readonly record: LedgerRecord;
}

/** Settles what a dead process had noted of a generation. The real settlement corrects it, should it turn up. */
export interface RecoverOperation extends OperationBase {
  readonly kind: "recover";
  readonly amount: bigint;
  readonly paidOnly: boolean;
  readonly record: LedgerRecord;
}

export interface ReleaseOperation extends OperationBase {
  readonly kind: "release";
}

export type LedgerOperation = HoldOperation | ExtendOperation | SettleOperation | RecoverOperation | ReleaseOperation;

/** What writes a usage row. */
export type SettlementOperation = SettleOperation | RecoverOperation;

export function isSettlement(operation: LedgerOperation): operation is SettlementOperation {
  return operation.kind === "settle" || operation.kind === "recover";
}

/** corrected: a settlement of what recovery had settled. free_spend_exhausted: the balance would do, but for the cap on all tiers. */
export type LedgerOutcomeName =
  | "ok"
  | "corrected"
  | "duplicate"
  | "missing"
  | "insufficient_balance"
  | "key_budget_exhausted"
  | "free_spend_exhausted";

export interface LedgerOutcome {
  readonly outcome: LedgerOutcomeName;
  /** A refusal that the release of other open holds could turn. */
  readonly isContended: boolean;
  /** What a settlement charged in all, now or the first time. */
  readonly charged: bigint;
  /** What it could not charge; of a correction how much more of that there is, or less when it is negative. */
  readonly writtenOff: bigint;
  readonly meterSource: BucketName | null;
  /** What the account can still hold. */
  readonly available: bigint;
  /** What the key's budget can still hold; null without a budget. */
  readonly keyAvailable: bigint | null;
  /** It is what a caller is told while the database is away; nothing is known of balances. */
  readonly isUncommitted?: true;
}

export interface Grant {
  /** Makes the grant happen once, however often it is asked for. */
  readonly id: string;
  readonly accountId: string;
  readonly bucket: BucketName;
  readonly amount: bigint;
  readonly note: string | null;
}

export interface TierChange {
  /** The transaction's, should anything be written. */
  readonly id: string;
  readonly accountId: string;
  /** Null: none. */
  readonly tier: string | null;
  /** What the tier gives. */
  readonly amount: bigint;
  /** The tier's next boundary; null: it refills nothing. */
  readonly nextReset: Date | null;
}

/** `tier` is the one that the account is thought to have. */
export interface TierRefill extends TierChange {
  readonly asOf: Date;
}

export interface TierOutcome {
  /** refilled and set: written. tier_changed: the account has another tier than was thought. Otherwise there was nothing to do. */
  readonly outcome: "refilled" | "set" | "not_due" | "unchanged" | "tier_changed" | "missing";
  /** What came into the tier bucket, or went when it is negative. */
  readonly change: bigint;
  /** As they are now. */
  readonly tier: string | null;
  readonly resetsAt: Date | null;
  /** What the account can still hold. */
  readonly available: bigint;
}

export interface Ledger {
  /** One transaction. The outcomes stand in the order of the operations; ids must not repeat in a batch. */
  flush(operations: readonly LedgerOperation[]): Promise<readonly LedgerOutcome[]>;
  /** True when it was added now, false when it had been before. */
  grant(grant: Grant): Promise<boolean>;
  /** Sets the tier bucket, when its boundary has come; once for each, however many processes ask. */
  refill(refill: TierRefill): Promise<TierOutcome>;
  /** Fills the bucket up to what the new tier gives, at once; what is there beyond that stays until the next boundary. */
  setTier(change: TierChange): Promise<TierOutcome>;
}

export interface LedgerOptions {
  /** Prepare the flush once for each connection. Not where connections share one session, as on the embedded database. */
  readonly isPrepared: boolean;
  /** Whose holds these are. */
  readonly processId: string;
  /** A hold that is not extended for this long has expired. */
  readonly holdSeconds: number;
  /** After it the database counts as away. */
  readonly timeoutMs: number;
  /** What all tier buckets together may spend in a day (UTC), in nanocredits; null: no cap, and nothing is counted. */
  readonly freeSpendCap: bigint | null;
}

interface OutcomeRow {
  readonly outcome: LedgerOutcomeName;
  readonly is_contended: boolean;
  readonly charged: string;
  readonly written_off: string;
  readonly meter_source: BucketName | null;
  readonly available: string;
  readonly key_available: string | null;
}

const PARAMETER_TYPES = [
  ...["uuid", "integer", "text[]", "uuid[]", "uuid[]", "uuid[]", "bigint[]", "boolean[]", "bigint[]", "text[]"],
  ...["timestamptz[]", "text[]", '"ApiKeyType"[]', '"Modality"[]', "text[]", "text[]", "integer[]", "integer[]", "integer[]"],
  ...['"UsageStatus"[]', '"UsageSource"[]', "uuid[]", "bigint"],
];
const FLUSH_TEXT = `SELECT * FROM credit_flush(${PARAMETER_TYPES.map((type, index) => `$${index + 1}::${type}`).join(", ")})`;

interface TierRow extends Omit<TierOutcome, "change" | "available" | "resetsAt"> {
  readonly change: string;
  readonly resets_at: Date | null;
  readonly available: string;
}

const REFILL_TEXT = "SELECT * FROM credit_refill($1::uuid, $2::uuid, $3::text, $4::bigint, $5::timestamptz, $6::timestamptz)";
const SET_TIER_TEXT = "SELECT * FROM credit_set_tier($1::uuid, $2::uuid, $3::text, $4::bigint, $5::timestamptz)";

export function createLedger(pool: pg.Pool, options: LedgerOptions): Ledger {
  const changeTier = async (text: string, values: readonly unknown[]): Promise<TierOutcome> => {
    const [row] = await queryWithin<TierRow>(pool, { text, values: [...values] }, options.timeoutMs);
    if (!row) throw new Error("The ledger answered nothing");
    const { outcome, change, tier, resets_at: resetsAt, available } = row;
    return { outcome, change: BigInt(change), tier, resetsAt, available: BigInt(available) };
  };
  return {
    async flush(operations) {
      const values = toParameters(operations, options);
      const statement = { text: FLUSH_TEXT, values, ...(options.isPrepared && { name: "credit_flush" }) };
      const rows = await queryWithin<OutcomeRow>(pool, statement, options.timeoutMs);
      return rows.map(fromRow);
    },
    async grant({ id, accountId, bucket, amount, note }) {
      const text = `SELECT credit_grant($1::uuid, $2::uuid, $3::"Bucket", $4::bigint, $5::text) AS granted`;
      const values = [id, accountId, bucket, amount.toString(), note];
      const [row] = await queryWithin<{ granted: boolean }>(pool, { text, values }, options.timeoutMs);
      return row?.granted ?? false;
    },
    refill({ id, accountId, tier, amount, asOf, nextReset }) {
      return changeTier(REFILL_TEXT, [id, accountId, tier, amount.toString(), asOf.toISOString(), nextReset?.toISOString() ?? null]);
    },
    setTier({ id, accountId, tier, amount, nextReset }) {
      return changeTier(SET_TIER_TEXT, [id, accountId, tier, amount.toString(), nextReset?.toISOString() ?? null]);
    },
  };
}

/** Column by column, in the order of the function's parameters. Written as PostgreSQL's array literals: the driver takes longer. */
function toParameters(operations: readonly LedgerOperation[], options: LedgerOptions): unknown[] {
  /** Of values that need no quotes: numbers, booleans, UUIDs, enum labels, timestamps. */
  const plain = (read: (operation: LedgerOperation) => string | number | boolean | null) =>
    toArray(operations, (operation) => read(operation) ?? "NULL");
  const text = (read: (operation: LedgerOperation) => string | null) => toArray(operations, (operation) => quote(read(operation)));
  const settled = (read: (record: LedgerRecord) => string | number | null) =>
    plain((operation) => (isSettlement(operation) ? read(operation.record) : null));
  const settledText = (read: (record: LedgerRecord) => string | null) =>
    text((operation) => (isSettlement(operation) ? read(operation.record) : null));
  return [
    options.processId,
    options.holdSeconds,
    plain((operation) => operation.kind),
    plain((operation) => operation.id),
    plain((operation) => operation.accountId),
    plain((operation) => operation.apiKeyId),
    plain((operation) => (operation.kind === "release" ? 0 : operation.amount.toString())),
    plain((operation) => operation.kind !== "release" && operation.paidOnly),
    plain((operation) => (operation.kind === "extend" ? operation.metered.toString() : null)),
    text((operation) => (operation.kind === "hold" || operation.kind === "extend" ? JSON.stringify(operation.record) : null)),
    settled((record) => record.timestamp),
    settledText((record) => record.apiKeyName),
    settled((record) => record.apiKeyType),
    settled((record) => record.modality),
    settledText((record) => record.model),
    settledText((record) => record.modelUsed),
    toArray(operations, (operation) => (isSettlement(operation) ? quantities(operation.record.usage) : NO_QUANTITIES)),
    settled((record) => record.responseTimeMs),
    settled((record) => record.timeToFirstTokenMs),
    settled((record) => record.status),
    settled((record) => record.usageSource),
    settled((record) => record.parentRequestId),
    options.freeSpendCap?.toString() ?? null,
  ];
}

function toArray(operations: readonly LedgerOperation[], element: (operation: LedgerOperation) => string | number | boolean): string {
  let literal = "{";
  for (const operation of operations) literal += (literal.length === 1 ? "" : ",") + element(operation);
  return `${literal}}`;
}

function quote(text: string | null): string {
  return text === null ? "NULL" : `"${/["\\]/.test(text) ? text.replace(/["\\]/g, "\\$&") : text}"`;
}

function quantities(usage: UsageQuantities): string {
  return `{${USAGE_KINDS.map((kind) => usage[kind]).join(",")}}`;
}

const NO_QUANTITIES = quantities(NO_USAGE);

function fromRow(row: OutcomeRow): LedgerOutcome {
  return {
    outcome: row.outcome,
    isContended: row.is_contended,
    charged: BigInt(row.charged),
    writtenOff: BigInt(row.written_off),
    meterSource: row.meter_source,
    available: BigInt(row.available),
    keyAvailable: row.key_available === null ? null : BigInt(row.key_available),
  };
}

// A statement of the ledger that either answers in time, or counts as asked of a database that is away.

/** The database is away: nothing is known of whether the batch was applied. Anything else is the batch's own fault. */
export class LedgerUnavailable extends Error {
  override readonly name = "LedgerUnavailable";
}

/**
 * A connection that does not answer in time is destroyed, not returned: the statement may still be running on it, and a
 * late answer must not reach the next flush.
 */
async function queryWithin<Row extends pg.QueryResultRow>(
  pool: pg.Pool,
  statement: pg.QueryConfig,
  timeoutMs: number,
): Promise<readonly Row[]> {
  let timer: NodeJS.Timeout | undefined;
  let client: pg.PoolClient | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new LedgerUnavailable(`The database did not answer within ${timeoutMs} ms`)), timeoutMs);
  });
  let failure: Error | undefined;
  const connecting = pool.connect();
  try {
    client = await Promise.race([connecting, deadline]);
    const result = await Promise.race([client.query<Row>(statement), deadline]);
    return result.rows;
  } catch (error) {
    failure = error instanceof Error ? error : new Error(String(error));
    if (isBatchFault(error)) throw error;
    throw error instanceof LedgerUnavailable ? error : new LedgerUnavailable("The database is away", { cause: error });
  } finally {
    clearTimeout(timer);
    if (client) client.release(failure && !isBatchFault(failure) ? failure : undefined);
    else connecting.then((late) => late.release(true)).catch(() => undefined);
  }
}

/**
 * SQLSTATE classes that condemn the statement itself. Everything else (connections 08, shutdown 57, resources 53,
 * serialisation 40, system 58, and errors without a SQLSTATE) passes when the database is back.
 */
function isBatchFault(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(?:22|23|42|P0|XX)/.test(error.code ?? "");
}
