/**
 * The ledger in the database: each method is one of the migrations' SQL functions. At most three of them commit a batch in parallel:
 * `credit_spend` settles from leases, `credit_move` makes holds from leases, `credit_flush` does everything else.
 */
import type pg from "pg";
import {
  type AccountBooking,
  type BucketName,
  type Grant,
  isSettlement,
  type Ledger,
  type LedgerOperation,
  type LedgerOptions,
  type LedgerOutcome,
  type LedgerOutcomeName,
  type LedgerRecord,
  type MoveOperation,
  type TierOutcome,
  type TransactionQueries,
} from "./ledger.js";
import { NO_QUANTITIES, quantities, queryWithin, quote, toArray } from "./ledger-statement.js";
import { createLeaseLedger, isLeasedSettlement, type LeasedSettlement, mostOf, type Unspent } from "./sql-leases.js";

interface OutcomeRow {
  readonly outcome: LedgerOutcomeName;
  readonly is_contended: boolean;
  readonly charged: string;
  readonly written_off: string;
  readonly meter_source: BucketName | null;
  readonly available: string;
  readonly key_available: string | null;
  readonly app_earned: string;
  readonly model_earned: string;
}

const PARAMETER_TYPES = [
  ...["uuid", "integer", "text[]", "uuid[]", "uuid[]", "uuid[]", "bigint[]", "boolean[]", "bigint[]", "text[]"],
  ...["timestamptz[]", "text[]", '"ApiKeyType"[]', '"Modality"[]', "text[]", "text[]", "integer[]", "integer[]", "integer[]"],
  ...['"UsageStatus"[]', '"UsageSource"[]', "uuid[]", "bigint", "bigint[]", "bigint[]", "bigint[]"],
  ...["text[]", "text[]", "bigint[]", "text[]", "text[]"],
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
  const query = <Row extends object>(text: string, values: readonly unknown[], within?: TransactionQueries): PromiseLike<readonly Row[]> =>
    within ? within.$queryRawUnsafe<Row[]>(text, ...values) : queryWithin<Row>(pool, { text, values: [...values] }, options);

  const ask = async <Result>(call: string, values: readonly unknown[], within?: TransactionQueries): Promise<Result> => {
    const [row] = await query<{ result: Result }>(`SELECT ${call} AS result`, values, within);
    if (!row) throw new Error("The ledger answered nothing");
    return row.result;
  };
  const changeTier = async (text: string, values: readonly unknown[], within?: TransactionQueries): Promise<TierOutcome> => {
    const [row] = await query<TierRow>(text, values, within);
    if (!row) throw new Error("The ledger answered nothing");
    const { outcome, change, tier, resets_at: resetsAt, available } = row;
    return { outcome, change: BigInt(change), tier, resetsAt, available: BigInt(available) };
  };
  /** Books once for each id. `kind` are the function's further parameters, whose defaults are those of its name. */
  const book = async <Result extends boolean | bigint | string>(
    name: "credit_grant" | "credit_withdraw",
    { id, accountId, bucket, amount, note }: Grant,
    within: TransactionQueries | undefined,
    ...kind: readonly (string | boolean | Date | number)[]
  ) => {
    const further = kind.map((value, index) => `, $${index + 6}::${sqlTypeOf(value)}`).join("");
    const text = `${name}($1::uuid, $2::uuid, $3::"Bucket", $4::bigint, $5::text${further})`;
    return ask<Result>(text, [id, accountId, bucket, amount.toString(), note, ...kind], within);
  };
  const useEarnings = async (
    { id, accountId, amount, note }: AccountBooking,
    kind: "conversion" | "payout",
    within: TransactionQueries,
  ) => {
    const values = [id, accountId, amount.toString(), kind, note];
    const used = await ask<string | bigint | null>(
      "credit_use_earnings($1::uuid, $2::uuid, $3::bigint, $4::text, $5::text)",
      values,
      within,
    );
    return used === null ? null : BigInt(used);
  };
  const leases = createLeaseLedger(pool, options);

  const flushExact = async (operations: readonly LedgerOperation[]): Promise<LedgerOutcome[]> => {
    const values = toParameters(operations, options);
    const rows = await queryWithin<OutcomeRow>(pool, { text: FLUSH_TEXT, values, name: "credit_flush" }, options);
    return rows.map(fromRow);
  };

  const spend = async (settlements: readonly LeasedSettlement[]): Promise<LedgerOutcome[]> => {
    const unspent = await leases.spend(settlements);
    const outcomes = settlements.map((settlement) => leasedOutcome(settlement, unspent.get(settlement.id)));
    return unspent.size === 0
      ? outcomes
      : withoutLease(settlements, outcomes, (lost) => flushExact(lost.map(({ lease: _, ...rest }) => rest)));
  };

  const move = async (operations: readonly MoveOperation[]): Promise<LedgerOutcome[]> => {
    const lost = await leases.move(operations);
    const outcomes = operations.map(({ id }): LedgerOutcome => (lost.has(id) ? LEASE_LOST : MOVED));
    return lost.size === 0
      ? outcomes
      : withoutLease(operations, outcomes, (those) => flushExact(those.map((each) => ({ ...each, kind: "hold" }))));
  };

  return {
    async flush(operations) {
      const spent = operations.filter(isLeasedSettlement);
      if (spent.length === operations.length && spent.length > 0) return spend(spent);
      const moved = operations.filter((operation) => operation.kind === "move");
      if (spent.length + moved.length === 0) return flushExact(operations);
      const exact = operations.filter((operation) => operation.kind !== "move" && !isLeasedSettlement(operation));
      const parts = await Promise.allSettled([
        spent.length === 0 ? [] : spend(spent),
        moved.length === 0 ? [] : move(moved),
        exact.length === 0 ? [] : flushExact(exact),
      ]);
      const [ofSpent = [], ofMoved = [], ofExact = []] = parts.map((part) => {
        // Committed parts are duplicates when the batch is repeated.
        if (part.status === "rejected") throw part.reason;
        return part.value;
      });
      const queues = { spent: ofSpent.values(), moved: ofMoved.values(), exact: ofExact.values() };
      return operations.map((operation) => {
        const queue = operation.kind === "move" ? queues.moved : isLeasedSettlement(operation) ? queues.spent : queues.exact;
        return queue.next().value as LedgerOutcome;
      });
    },
    leases,
    grant({ expiry, ...grant }, within) {
      return expiry === undefined
        ? book<boolean>("credit_grant", grant, within)
        : book<boolean>("credit_grant", grant, within, "grant", "issued", expiry.expiresAt, expiry.priority);
    },
    purchase: (purchase, within) => book<boolean>("credit_grant", purchase, within, "purchase", "cash"),
    withdraw: async (withdrawal, within) => BigInt(await book("credit_withdraw", withdrawal, within)),
    refund: async (refund, within) => BigInt(await book("credit_withdraw", refund, within, "refund", "cash", true)),
    async restore({ id, accountId, bucket, amount, covered, sold, note }, within) {
      const values = [id, accountId, bucket, amount.toString(), covered.toString(), sold.toString(), note];
      const call = 'credit_restore($1::uuid, $2::uuid, $3::"Bucket", $4::bigint, $5::bigint, $6::bigint, $7::text)';
      return ask<boolean>(call, values, within);
    },
    async soldLeft(accountId, bucket, within) {
      await within.$queryRawUnsafe("SELECT credit_mark($1::uuid)::text", accountId);
      const call =
        "(SELECT CASE $2 WHEN 'crypto' THEN crypto_sold_nanocredits ELSE pack_sold_nanocredits END FROM account WHERE id = $1::uuid)";
      return BigInt(await ask<string | bigint>(call, [accountId, bucket], within));
    },
    async forfeitOfDeleted(id, accountId, within) {
      const isDeleted = "EXISTS (SELECT FROM account_deletion WHERE account_id = $2::uuid)";
      await ask(`(CASE WHEN ${isDeleted} THEN credit_forfeit($1::uuid, $2::uuid) END)`, [id, accountId], within);
    },
    sellOnInvoice: (sale, within) => book<boolean>("credit_grant", sale, within, "purchase", "receivable"),
    async bookPayment({ id, accountId, amount, note }, within) {
      const values = [id, accountId, amount.toString(), note];
      const call = "credit_book_payment($1::uuid, $2::uuid, $3::bigint, 'payment', $4::text)";
      const booked = await ask<string | bigint | null>(call, values, within);
      return booked === null ? null : BigInt(booked);
    },
    bookFee: ({ id, accountId, amount, note }, within) =>
      ask<boolean>("credit_book_fee($1::uuid, $2::uuid, $3::bigint, $4::text)", [id, accountId, amount.toString(), note], within),
    expire: async (id, grantId) => BigInt(await ask<string>("credit_expire($1::uuid, $2::uuid)", [id, grantId])),
    mature: async (accountId, before) => BigInt(await ask<string>("credit_mature($1::uuid, $2::date)", [accountId, before])),
    convertEarnings: (use, within) => useEarnings(use, "conversion", within),
    payOut: (use, within) => useEarnings(use, "payout", within),
    async reverseEarnings({ id, payerId, earnerId, note }, within) {
      const values = [id, payerId, earnerId, note];
      return BigInt(await ask<string | bigint>("credit_reverse_earnings($1::uuid, $2::uuid, $3::uuid, NULL, $4::text)", values, within));
    },
    refill({ id, accountId, tier, amount, asOf, nextReset }) {
      return changeTier(REFILL_TEXT, [id, accountId, tier, amount.toString(), asOf.toISOString(), nextReset?.toISOString() ?? null]);
    },
    setTier({ id, accountId, tier, amount, nextReset }, within) {
      return changeTier(SET_TIER_TEXT, [id, accountId, tier, amount.toString(), nextReset?.toISOString() ?? null], within);
    },
  };
}

function sqlTypeOf(value: string | boolean | Date | number): string {
  if (value instanceof Date) return "timestamptz";
  return typeof value === "number" ? "integer" : typeof value === "boolean" ? "boolean" : "text";
}

/** By column, in the order of the function's parameters. */
function toParameters(operations: readonly LedgerOperation[], options: LedgerOptions): unknown[] {
  /** For values without quotes: numbers, booleans, UUIDs, enum labels, timestamps. */
  const plain = (read: (operation: LedgerOperation) => string | number | boolean | null) => toArray(operations, read);
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
    settled(({ course }) => course?.heldNanocredits ?? null),
    settled(({ course }) => course?.upstreamUs ?? null),
    settled(({ course }) => course?.gatewayUs ?? null),
    settledText(({ route }) => route?.upstream ?? null),
    settledText(({ route }) => route?.route ?? null),
    settled(({ route }) => route?.costNanocredits ?? null),
    settledText(({ route }) => (route?.attempts ? JSON.stringify(route.attempts) : null)),
    settledText(({ earners }) => (earners ? JSON.stringify(earners) : null)),
  ];
}

const MOVED = ofLease("ok", 0n, null);
/** Placeholder until the operation was retried without its lease. */
const LEASE_LOST: LedgerOutcome = { ...MOVED, isLeaseLost: true };

function leasedOutcome({ amount, lease }: LeasedSettlement, unspent: Unspent | undefined): LedgerOutcome {
  if (unspent === undefined) return ofLease("ok", amount, mostOf(lease));
  return unspent.isLeaseLost ? LEASE_LOST : ofLease("duplicate", unspent.charged, unspent.meterSource);
}

/** Balances are not reported. */
function ofLease(outcome: LedgerOutcomeName, charged: bigint, meterSource: BucketName | null): LedgerOutcome {
  return { outcome, isContended: false, charged, writtenOff: 0n, meterSource, available: 0n, keyAvailable: null, isLeased: true };
}

/** The outcomes, with those of lost leases replaced by the results of `retry`. */
async function withoutLease<Operation extends LedgerOperation>(
  operations: readonly Operation[],
  outcomes: readonly LedgerOutcome[],
  retry: (lost: readonly Operation[]) => Promise<readonly LedgerOutcome[]>,
): Promise<LedgerOutcome[]> {
  const lost = operations.filter((_, index) => outcomes[index] === LEASE_LOST);
  if (lost.length === 0) return [...outcomes];
  const found = (await retry(lost)).values();
  return outcomes.map((outcome) => (outcome === LEASE_LOST ? { ...(found.next().value as LedgerOutcome), isLeaseLost: true } : outcome));
}

function fromRow(row: OutcomeRow): LedgerOutcome {
  return {
    outcome: row.outcome,
    isContended: row.is_contended,
    charged: BigInt(row.charged),
    writtenOff: BigInt(row.written_off),
    meterSource: row.meter_source,
    available: BigInt(row.available),
    keyAvailable: row.key_available === null ? null : BigInt(row.key_available),
    ...((row.app_earned !== "0" || row.model_earned !== "0") && {
      earned: { app: BigInt(row.app_earned), model: BigInt(row.model_earned) },
    }),
  };
}
