/** The part of a budget that one generation's hold counts against. Amounts in nanocredits. */
import type { AppError } from "../../errors.js";
import type { SpendingBudget } from "./spending-budget.js";

export class HeldBudget {
  /** Taken for the hold. */
  held = 0n;
  /** Taken for an extension under way. */
  private extending = 0n;

  constructor(readonly budget: SpendingBudget) {}

  /** The most that may be charged; null: the cost. */
  get chargeMost(): bigint | null {
    return this.budget.chargeMost(this.held + this.extending);
  }

  /** As `chargeMost`, once nothing is extended any more; limits that renew are never charged beyond it. */
  get settleMost(): bigint | null {
    return this.budget.settleMost(this.held + this.extending);
  }

  take(amount: bigint): boolean {
    if (!this.budget.take(amount)) return false;
    this.held = amount;
    return true;
  }

  /** Rejects as the budget does. */
  async takeInTime(amount: bigint): Promise<void> {
    await this.budget.takeInTime(amount);
    this.held = amount;
  }

  takeUpTo(amount: bigint): bigint {
    return this.budget.takeUpTo(amount);
  }

  /** Tries to have the rest of a charge for `takeFor`. Null: nothing to wait for. */
  prepareFor(charge: bigint): Promise<void> | null {
    const more = charge - this.held - this.extending;
    return more > 0n ? this.budget.prepare(more) : null;
  }

  /** Takes the part of a charge beyond the hold, as far as it goes. */
  takeFor(charge: bigint): void {
    const more = charge - this.held - this.extending;
    if (more > 0n) this.held += this.budget.takeUpTo(more);
  }

  /** Resolves with the amount taken. */
  async beginExtension(amount: bigint): Promise<bigint> {
    const preparation = this.budget.prepare(amount);
    if (preparation) await preparation;
    this.extending = this.budget.takeUpTo(amount);
    return this.extending;
  }

  endExtension(kept: bigint, taken: bigint): void {
    this.extending = 0n;
    this.held += kept;
    this.budget.conclude(taken - kept, 0n);
  }

  /** Releases the part that is not charged; once. */
  leave(charged: bigint, isSpooled = false): void {
    this.budget.conclude(this.held, charged, isSpooled);
    this.held = 0n;
  }

  exhausted(amount: bigint): AppError {
    return this.budget.exhausted(amount);
  }
}
