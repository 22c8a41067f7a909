import type { AppError } from "../../errors.js";

/** Amounts in nanocredits. */
export interface SpendingBudget {
  readonly left: bigint;
  /** The part of it that one answer may hold beside its estimate. */
  readonly share: bigint;
  /** All or nothing. */
  take(amount: bigint): boolean;
  takeUpTo(amount: bigint): bigint;
  /** As `take`, after a wait for holds in the way. Rejects as `exhausted` does. */
  takeInTime(amount: bigint): Promise<void>;
  /** Tries to have that much for `takeUpTo`. Never rejects. Null: nothing to wait for. */
  prepare(amount: bigint): Promise<void> | null;
  /** `isSpooled`: the charge is not in the database yet. */
  conclude(taken: bigint, charged: bigint, isSpooled?: boolean): void;
  /** `amount` is the part that does not fit. */
  exhausted(amount: bigint): AppError;
  /** The most that a generation with this amount taken may be charged; null: its cost. */
  chargeMost(taken: bigint): bigint | null;
  /** As `chargeMost`, at its settlement. */
  settleMost(taken: bigint): bigint | null;
}
