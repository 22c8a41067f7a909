/** Leases in the database (docs/decisions/leases.md). The process that has a lease decides about payments from it. */
import type pg from "pg";
import type {
  Available,
  BucketName,
  Buckets,
  LeaseLedger,
  LedgerOperation,
  LedgerOptions,
  LedgerRecord,
  MoveOperation,
  SettleOperation,
} from "./ledger.js";
import { quantities, queryWithin, quote, toArray } from "./ledger-statement.js";

export type LeasedSettlement = SettleOperation & { readonly lease: NonNullable<SettleOperation["lease"]> };

export function isLeasedSettlement(operation: LedgerOperation): operation is LeasedSettlement {
  return operation.kind === "settle" && operation.lease !== undefined;
}

/** Why a settlement was not written: its lease is gone, or it was written before, with this result. */
export type Unspent =
  | { readonly isLeaseLost: true }
  | { readonly isLeaseLost: false; readonly charged: bigint; readonly meterSource: BucketName };

export interface SqlLeases extends LeaseLedger {
  /** One transaction. Returns those that were not written, by generation id. */
  spend(settlements: readonly LeasedSettlement[]): Promise<ReadonlyMap<string, Unspent>>;
  /** One transaction. Returns the ids of those whose lease is gone. */
  move(operations: readonly MoveOperation[]): Promise<ReadonlySet<string>>;
}

const SPEND_TYPES = [
  ...["uuid[]", "uuid[]", "bigint[]", "bigint[]", "bigint[]", '"Bucket"[]', "timestamptz[]", "text[]", '"ApiKeyType"[]', '"Modality"[]'],
  ...["text[]", "text[]", "integer[]", "integer[]", "integer[]", '"UsageStatus"[]', '"UsageSource"[]', "uuid[]"],
  ...["bigint[]", "bigint[]", "bigint[]", "text[]", "text[]", "bigint[]", "text[]"],
];
const MOVE_TYPES = ["uuid", "integer", "uuid[]", "uuid[]", "boolean[]", "bigint[]", "bigint[]", "bigint[]", "bigint[]", "text[]"];
const SPEND = call("credit_spend", SPEND_TYPES);
const MOVE = call("credit_move", MOVE_TYPES);
const TAKE = call("credit_lease_take", ["uuid", "uuid", "uuid", "uuid", "bigint", "bigint", "boolean", "boolean"]);
const GIVE = call("credit_lease_give", ["uuid", "bigint", "bigint", "bigint"]);
interface AvailableRow {
  readonly available: string;
  readonly key_available: string | null;
}

export function createLeaseLedger(pool: pg.Pool, options: LedgerOptions): SqlLeases {
  const { processId, holdSeconds, freeSpendCap } = options;
  const ask = <Row extends pg.QueryResultRow>(text: string, values: unknown[], name?: string): Promise<readonly Row[]> =>
    queryWithin<Row>(pool, { text, values, ...(name !== undefined && { name }) }, options);
  return {
    async take({ id, accountId, apiKeyId, target, least, isReliedOn }) {
      const values = [id, processId, accountId, apiKeyId, target.toString(), least.toString(), isReliedOn, freeSpendCap !== null];
      const [row] = await ask<AvailableRow & Record<BucketName, string> & { readonly is_lost: boolean }>(TAKE, values, "credit_lease_take");
      if (!row) throw new Error("The ledger answered nothing");
      if (row.is_lost) return null;
      const granted = { tier: BigInt(row.tier), crypto: BigInt(row.crypto), pack: BigInt(row.pack) };
      return { granted, ...toAvailable(row) };
    },
    async give(leaseId, { tier, crypto, pack }) {
      const [row] = await ask<AvailableRow>(GIVE, [leaseId, tier.toString(), crypto.toString(), pack.toString()]);
      return row ? toAvailable(row) : null;
    },
    async reclaim(known, deadAfterSeconds) {
      const values = [processId, `{${known.join(",")}}`, deadAfterSeconds];
      const [row] = await ask<{ gone: number }>("SELECT credit_lease_reclaim($1::uuid, $2::uuid[], $3::integer) AS gone", values);
      return row?.gone ?? 0;
    },
    async spend(settlements) {
      const rows = await ask<{ id: string; charged: string | null; meter_source: BucketName }>(
        SPEND,
        toSpendParameters(settlements),
        "credit_spend",
      );
      return new Map(rows.map((row): [string, Unspent] => [row.id, toUnspent(row.charged, row.meter_source)]));
    },
    async move(operations) {
      const values = [processId, holdSeconds, ...toMoveParameters(operations)];
      const rows = await ask<{ id: string }>(MOVE, values, "credit_move");
      return new Set(rows.map(({ id }) => id));
    },
  };
}

/** The bucket that pays the most. */
export function mostOf({ tier, crypto, pack }: Buckets): BucketName {
  if (tier >= crypto && tier >= pack) return "tier";
  return crypto >= pack ? "crypto" : "pack";
}

function call(name: string, types: readonly string[]): string {
  return `SELECT * FROM ${name}(${types.map((type, index) => `$${index + 1}::${type}`).join(", ")})`;
}

/** In the order of the function's parameters. */
function toSpendParameters(settlements: readonly LeasedSettlement[]): unknown[] {
  const ofLease = (read: (lease: LeasedSettlement["lease"]) => string | bigint) => toArray(settlements, ({ lease }) => read(lease));
  const ofRecord = (read: (record: LedgerRecord) => string | number | null) => toArray(settlements, ({ record }) => read(record));
  return [
    ofLease(({ leaseId }) => leaseId),
    toArray(settlements, ({ id }) => id),
    ofLease(({ tier }) => tier),
    ofLease(({ crypto }) => crypto),
    ofLease(({ pack }) => pack),
    ofLease(mostOf),
    ofRecord(({ timestamp }) => timestamp),
    ofRecord(({ apiKeyName }) => quote(apiKeyName)),
    ofRecord(({ apiKeyType }) => apiKeyType),
    ofRecord(({ modality }) => modality),
    ofRecord(({ model }) => quote(model)),
    ofRecord(({ modelUsed }) => quote(modelUsed)),
    ofRecord(({ usage }) => quantities(usage)),
    ofRecord(({ responseTimeMs }) => responseTimeMs),
    ofRecord(({ timeToFirstTokenMs }) => timeToFirstTokenMs),
    ofRecord(({ status }) => status),
    ofRecord(({ usageSource }) => usageSource),
    ofRecord(({ parentRequestId }) => parentRequestId),
    ofRecord(({ course }) => course?.heldNanocredits ?? null),
    ofRecord(({ course }) => course?.upstreamUs ?? null),
    ofRecord(({ course }) => course?.gatewayUs ?? null),
    ofRecord(({ route }) => quote(route?.upstream ?? null)),
    ofRecord(({ route }) => quote(route?.route ?? null)),
    ofRecord(({ route }) => route?.costNanocredits ?? null),
    ofRecord(({ route }) => quote(route?.attempts ? JSON.stringify(route.attempts) : null)),
  ];
}

function toMoveParameters(operations: readonly MoveOperation[]): unknown[] {
  return [
    toArray(operations, ({ lease }) => lease.leaseId),
    toArray(operations, ({ id }) => id),
    toArray(operations, ({ paidOnly }) => paidOnly),
    toArray(operations, ({ lease }) => lease.tier),
    toArray(operations, ({ lease }) => lease.crypto),
    toArray(operations, ({ lease }) => lease.pack),
    toArray(operations, ({ metered }) => metered),
    toArray(operations, ({ record }) => quote(JSON.stringify(record))),
  ];
}

function toUnspent(charged: string | null, meterSource: BucketName): Unspent {
  return charged === null ? { isLeaseLost: true } : { isLeaseLost: false, charged: BigInt(charged), meterSource };
}

function toAvailable({ available, key_available: keyAvailable }: AvailableRow): Available {
  return { available: BigInt(available), keyAvailable: keyAvailable === null ? null : BigInt(keyAvailable) };
}
