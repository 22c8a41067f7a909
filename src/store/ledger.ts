/**
 * The ledger's interface: a batch of money operations in, their outcomes out, committed together; also refills and grants, and the leases
 * from which processes grant holds. sql-ledger.ts implements it. Amounts are bigint nanocredits of 0 or more.
 */
import type pg from "pg";
import { smaller } from "../lib/money.js";
import type { UsageQuantities } from "../lib/usage.js";
import type { DatabaseWatch } from "./database-watch.js";
import type { Modality } from "./generated/prisma/enums.js";

export type BucketName = "tier" | "crypto" | "pack";

/** An amount per bucket. */
export type Buckets = Readonly<Record<BucketName, bigint>>;

/** An amount per bucket, from a lease. */
export interface LeasedAmount extends Buckets {
  readonly leaseId: string;
}

/**
 * A usage row without the columns that `credit_flush` fills in: ids, cost and meter source. A hold stores it as JSON, so that a dead
 * process's generation can be settled.
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
  /** Absent while it is under way, and after its process died. */
  readonly course?: RecordedCourse | undefined;
  /** Absent until an upstream answers. */
  readonly route?: RecordedRoute | undefined;
  /** Those who earn of the charge. Absent: none. A charge with earners is not paid from a lease. */
  readonly earners?: Earners | undefined;
}

/** Shares of the sold credits that a charge draws; the ledger leaves out the payer's own, and those of linked accounts. */
export interface Earners {
  /** Its percentage is the app's margin, by which the charge is above the price. */
  readonly app?: Earner | undefined;
  /** Its percentage is of the price. */
  readonly model?: Earner | undefined;
}

export interface Earner {
  readonly accountId: string;
  /** The id of the app key, or the canonical id of the model. */
  readonly source: string;
  /** A decimal number. */
  readonly percent: string;
  /** Nanocredits of the price that the share is of at most, as a decimal number: that of the amounts that the gateway counted. */
  readonly most?: string | undefined;
}

/** The route that served a generation. */
export interface RecordedRoute {
  /** Its name for callers. */
  readonly upstream: string;
  /** Its id within its model. */
  readonly route: string;
  /** What the operator pays, as a decimal number; null: unknown. */
  readonly costNanocredits: string | null;
  /** Candidates that were left before, in order; null: none. */
  readonly attempts: readonly RecordedAttempt[] | null;
}

export interface RecordedAttempt {
  readonly upstream: string;
  readonly route: string;
  readonly code: string;
  readonly ms: number;
}

/** The course of a generation, as in its receipt. */
export interface RecordedCourse {
  /** The total hold as a decimal number, because a record is stored as JSON. */
  readonly heldNanocredits: string;
  /** Whole microseconds. */
  readonly upstreamUs: number;
  readonly gatewayUs: number;
}

interface OperationBase {
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
  /** The extension; 0 only stores the meter. */
  readonly amount: bigint;
  readonly paidOnly: boolean;
  /** The cost delivered so far. */
  readonly metered: bigint;
  readonly record: LedgerRecord;
}

export interface SettleOperation extends OperationBase {
  readonly kind: "settle";
  readonly amount: bigint;
  readonly paidOnly: boolean;
  readonly record: LedgerRecord;
  /** Payment from a lease; the sum is the amount. Absent: from its hold, or available credits. */
  readonly lease?: LeasedAmount | undefined;
}

/** Converts a generation's reservation in a lease to a hold of its own. */
export interface MoveOperation extends OperationBase {
  readonly kind: "move";
  /** All of `lease`. */
  readonly amount: bigint;
  readonly paidOnly: boolean;
  readonly lease: LeasedAmount;
  /** The cost delivered so far. */
  readonly metered: bigint;
  readonly record: LedgerRecord;
}

/** Settles at a dead process's stored meter. The real settlement corrects it, if it turns up. */
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

/** Operations that write a usage row. */
export type SettlementOperation = SettleOperation | RecoverOperation;

export function isSettlement(operation: LedgerOperation): operation is SettlementOperation {
  return operation.kind === "settle" || operation.kind === "recover";
}

/** corrected: a settlement after recovery had settled. free_spend_exhausted: the balance suffices, but not under the cap on all tiers. */
export type LedgerOutcomeName =
  | "ok"
  | "corrected"
  | "duplicate"
  | "missing"
  | "insufficient_balance"
  | "key_budget_exhausted"
  | "free_spend_exhausted";

/** Available credits of account and key; null for a key without a budget. */
export interface Available {
  readonly available: bigint;
  readonly keyAvailable: bigint | null;
}

/** The amount available to both. */
export function holdable({ available, keyAvailable }: Available): bigint {
  return keyAvailable === null ? available : smaller(available, keyAvailable);
}

export interface LedgerOutcome extends Available {
  readonly outcome: LedgerOutcomeName;
  /** A refusal that releases of other holds could change. */
  readonly isContended: boolean;
  /** The total charge, now or the first time. */
  readonly charged: bigint;
  /** The part that could not be charged; for a correction its change, which may be negative. */
  readonly writtenOff: bigint;
  readonly meterSource: BucketName | null;
  /** What the owners of app and model earned. Absent: nothing. */
  readonly earned?: Readonly<Record<"app" | "model", bigint>> | undefined;
  /** Assumed while the database is unavailable; balances are unknown. */
  readonly isUncommitted?: true;
  /** Paid from a lease, or moved from it; balances are not reported. */
  readonly isLeased?: true;
  /** The paying lease is gone; the operation was done without it as far as possible. */
  readonly isLeaseLost?: true;
}

/** Runs statements in a transaction that also writes other rows. */
export interface TransactionQueries {
  $queryRawUnsafe<Rows>(text: string, ...values: unknown[]): PromiseLike<Rows>;
}

export interface Grant {
  /** Makes the grant idempotent. */
  readonly id: string;
  readonly accountId: string;
  readonly bucket: BucketName;
  readonly amount: bigint;
  readonly note: string | null;
  /** Absent: it does not expire. */
  readonly expiry?: GrantExpiry | undefined;
}

export interface GrantExpiry {
  readonly expiresAt: Date;
  /** Grants of smaller numbers are spent first. */
  readonly priority: number;
}

export interface AccountBooking {
  /** Makes it idempotent. */
  readonly id: string;
  readonly accountId: string;
  readonly amount: bigint;
  readonly note: string | null;
}

/** Money of a refund or dispute that came back. */
export interface Restoration extends Grant {
  /** Of the amount: credits that were spent, and written off. */
  readonly covered: bigint;
  /** Of the rest: sold credits. The others are granted ones. */
  readonly sold: bigint;
}

export interface EarningsReversal {
  /** Makes it idempotent. */
  readonly id: string;
  readonly payerId: string;
  /** Null: of all accounts. */
  readonly earnerId: string | null;
  readonly note: string | null;
}

export interface TierChange {
  /** The transaction's id, if anything is written. */
  readonly id: string;
  readonly accountId: string;
  /** Null: none. */
  readonly tier: string | null;
  readonly amount: bigint;
  /** The tier's next boundary; null: no refills. */
  readonly nextReset: Date | null;
}

/** `tier` is the account's assumed tier. */
export interface TierRefill extends TierChange {
  readonly asOf: Date;
}

export interface TierOutcome {
  /** refilled and set: written. tier_changed: the account has another tier than assumed. Otherwise nothing was due. */
  readonly outcome: "refilled" | "set" | "not_due" | "unchanged" | "tier_changed" | "missing";
  /** Change of the tier bucket, which may be negative. */
  readonly change: bigint;
  /** The current tier and boundary. */
  readonly tier: string | null;
  readonly resetsAt: Date | null;
  /** Available credits of the account. */
  readonly available: bigint;
}

export interface LeaseRequest {
  /** The lease's id; an existing lease is enlarged. */
  readonly id: string;
  readonly accountId: string;
  readonly apiKeyId: string | null;
  /** The amount that it should have. */
  readonly target: bigint;
  /** It is not made or enlarged to less than this. */
  readonly least: bigint;
  /** It should exist: if not, it is lost and not made again. */
  readonly isReliedOn: boolean;
}

/** See docs/decisions/leases.md. All reject with LedgerUnavailable while the database is unavailable. */
export interface LeaseLedger {
  /** Makes or enlarges a lease. `granted` is the added amount, which may be 0. Null: it is lost. */
  take(request: LeaseRequest): Promise<(Available & { readonly granted: Buckets }) | null>;
  /** Releases all but the needed amount; with none needed, the lease ends. Null: there is no such lease. */
  give(leaseId: string, needed: Buckets): Promise<Available | null>;
  /** Ends leases of processes that are silent for this long, and leases of this process that it does not know. Returns their number. */
  reclaim(known: readonly string[], deadAfterSeconds: number): Promise<number>;
}

export interface Ledger {
  /** One transaction. Outcomes are in the order of the operations; ids must not repeat in a batch. */
  flush(operations: readonly LedgerOperation[]): Promise<readonly LedgerOutcome[]>;
  /** True when it was added now, false when it existed. `within`: a transaction of the caller's. */
  grant(grant: Grant, within?: TransactionQueries): Promise<boolean>;
  /** Returns the amount that was taken, at most the available credits; the first amount for a repeated id. */
  withdraw(withdrawal: Grant, within: TransactionQueries): Promise<bigint>;
  /** Books credits that were paid for. True when it was booked now, false when it existed. */
  purchase(purchase: Grant, within: TransactionQueries): Promise<boolean>;
  /** Books credits whose money was paid back. Returns the part that the bucket still had; the rest is written off. */
  refund(refund: Grant, within: TransactionQueries): Promise<bigint>;
  /** Books that the money of a refund came back. False when it existed. */
  restore(restoration: Restoration, within: TransactionQueries): Promise<boolean>;
  /** Bought credits of a bucket that are left. The caller has locked the account. */
  soldLeft(accountId: string, bucket: BucketName, within: TransactionQueries): Promise<bigint>;
  /** Returns the credits of a deleted account to where they are issued. Changes nothing for others. */
  forfeitOfDeleted(id: string, accountId: string, within: TransactionQueries): Promise<void>;
  /** Books credits that were sold on an invoice. True when it was booked now, false when it existed. */
  sellOnInvoice(sale: Grant, within: TransactionQueries): Promise<boolean>;
  /** Books the money for credits sold on an invoice. Returns the amount; null: the account owes less. */
  bookPayment(payment: AccountBooking, within: TransactionQueries): Promise<bigint | null>;
  /** Books a fee of a payment processor; below 0, one that came back. False when it existed. */
  bookFee(fee: AccountBooking, within: TransactionQueries): Promise<boolean>;
  /** Takes the rest of a due grant, at most the part that is not held. Returns the amount. */
  expire(id: string, grantId: string): Promise<bigint>;
  /** Adds earnings of days before this one (`YYYY-MM-DD`) to the account's earned credits. Returns their sum. */
  mature(accountId: string, before: string): Promise<bigint>;
  /** Turns matured earnings into granted credits of the pack bucket. Returns the amount; null: less has matured. */
  convertEarnings(use: AccountBooking, within: TransactionQueries): Promise<bigint | null>;
  /** Books that matured earnings were paid out. Returns the amount; null: less has matured. */
  payOut(use: AccountBooking, within: TransactionQueries): Promise<bigint | null>;
  /** Takes back all earnings of a payer's charges that have not matured. Returns the amount. */
  reverseEarnings(reversal: EarningsReversal, within: TransactionQueries): Promise<bigint>;
  /** Sets the tier bucket when its boundary has passed; once per boundary across processes. */
  refill(refill: TierRefill): Promise<TierOutcome>;
  /** Fills the bucket up to the new tier's amount at once; more than that stays until the next boundary. */
  setTier(change: TierChange, within?: TransactionQueries): Promise<TierOutcome>;
  readonly leases: LeaseLedger;
}

export interface LedgerOptions {
  /** Whether the statements of charges are prepared once per connection; default: never. */
  readonly keepsStatements?: (client: pg.ClientBase) => boolean;
  /** The process of these holds. */
  readonly processId: string;
  /** A hold that is not extended for this long expires. */
  readonly holdSeconds: number;
  /** After this time the database counts as unavailable. */
  readonly timeoutMs: number;
  /** Notices an unresponsive database sooner. */
  readonly watch?: Pick<DatabaseWatch, "isSilent" | "begin"> | null;
  /** Nanocredits that all tier buckets together may spend in a day (UTC); null: no cap, and nothing is counted. */
  readonly freeSpendCap: bigint | null;
}

/** The database is unavailable, and the batch may or may not be applied. Any other error is the batch's own fault. */
export class LedgerUnavailable extends Error {
  override readonly name = "LedgerUnavailable";
}
