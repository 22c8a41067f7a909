/**
 * The ledger's one door: a batch of money operations in, their outcomes out, committed together; beside it what fills buckets, and the
 * leases that processes grant holds out of. sql-ledger.ts is what is behind it. Amounts are bigint nanocredits of 0 or more.
 */
import type pg from "pg";
import { smaller } from "../lib/money.js";
import type { UsageQuantities } from "../lib/usage.js";
import type { DatabaseWatch } from "./database-watch.js";
import type { Modality } from "./generated/prisma/enums.js";

export type BucketName = "tier" | "crypto" | "pack";

/** So much of each bucket. */
export type Buckets = Readonly<Record<BucketName, bigint>>;

/** So much of each bucket, out of a lease. */
export interface LeasedAmount extends Buckets {
  readonly leaseId: string;
}

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
  readonly usageSource: "provider" | "estimated" | "partial" | "bounded";
  readonly parentRequestId: string | null;
  /** Absent while it is under way, and of what a dead process has left. */
  readonly course?: RecordedCourse | undefined;
}

/** How a generation went, as its receipt tells it. */
export interface RecordedCourse {
  /** What was set aside in all, as a decimal number: a record is kept as JSON. */
  readonly heldNanocredits: string;
  /** Whole microseconds. */
  readonly upstreamUs: number;
  readonly gatewayUs: number;
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
  /** What pays for it; together they are the amount. Absent: its hold, or what is free. */
  readonly lease?: LeasedAmount | undefined;
}

/** What a generation has of a lease becomes a hold of its own. */
export interface MoveOperation extends OperationBase {
  readonly kind: "move";
  /** All of `lease`. */
  readonly amount: bigint;
  readonly paidOnly: boolean;
  readonly lease: LeasedAmount;
  /** The cost of what has been delivered so far. */
  readonly metered: bigint;
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

export type LedgerOperation = HoldOperation | MoveOperation | ExtendOperation | SettleOperation | RecoverOperation | ReleaseOperation;

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

/** What account and key can still hold; null of the key: no budget. */
export interface Available {
  readonly available: bigint;
  readonly keyAvailable: bigint | null;
}

/** What both can still hold. */
export function holdable({ available, keyAvailable }: Available): bigint {
  return keyAvailable === null ? available : smaller(available, keyAvailable);
}

export interface LedgerOutcome extends Available {
  readonly outcome: LedgerOutcomeName;
  /** A refusal that the release of other open holds could turn. */
  readonly isContended: boolean;
  /** What a settlement charged in all, now or the first time. */
  readonly charged: bigint;
  /** What it could not charge; of a correction how much more of that there is, or less when it is negative. */
  readonly writtenOff: bigint;
  readonly meterSource: BucketName | null;
  /** It is what a caller is told while the database is away; nothing is known of balances. */
  readonly isUncommitted?: true;
  /** It was paid out of a lease, or moved from it; nothing is told of balances. */
  readonly isLeased?: true;
  /** The lease that was to pay is gone; what could be had without it was. */
  readonly isLeaseLost?: true;
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

export interface LeaseRequest {
  /** The lease's, which is enlarged where it is there. */
  readonly id: string;
  readonly accountId: string;
  readonly apiKeyId: string | null;
  /** What is to be in it. */
  readonly target: bigint;
  /** It is not made or enlarged so that it has less. */
  readonly least: bigint;
  /** It is thought to be there: where it is not, it is lost and not made again. */
  readonly isReliedOn: boolean;
}

/** See docs/decisions/leases.md. All reject with LedgerUnavailable while the database is away. */
export interface LeaseLedger {
  /** Makes or enlarges a lease. `granted` is what came into it, perhaps nothing. Null: it is lost. */
  take(request: LeaseRequest): Promise<(Available & { readonly granted: Buckets }) | null>;
  /** Gives back all of it but what is needed; with nothing needed the lease is gone. Null: there is no such lease. */
  give(leaseId: string, needed: Buckets): Promise<Available | null>;
  /** Ends the leases of processes that have been silent for so long, and those of this one that it does not know. How many. */
  reclaim(known: readonly string[], deadAfterSeconds: number): Promise<number>;
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
  readonly leases: LeaseLedger;
}

export interface LedgerOptions {
  /** The statements of charges are prepared once on each connection that keeps them; unstated, on none. */
  readonly keepsStatements?: (client: pg.ClientBase) => boolean;
  /** Whose holds these are. */
  readonly processId: string;
  /** A hold that is not extended for this long has expired. */
  readonly holdSeconds: number;
  /** After it the database counts as away. */
  readonly timeoutMs: number;
  /** Notices sooner a database that answers nothing at all. */
  readonly watch?: Pick<DatabaseWatch, "isSilent" | "begin"> | null;
  /** What all tier buckets together may spend in a day (UTC), in nanocredits; null: no cap, and nothing is counted. */
  readonly freeSpendCap: bigint | null;
}

/** The database is away: nothing is known of whether the batch was applied. Anything else is the batch's own fault. */
export class LedgerUnavailable extends Error {
  override readonly name = "LedgerUnavailable";
}
