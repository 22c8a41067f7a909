/** Several budgets at once: an amount must fit into all, and the one that it exceeds refuses it. */
import type { AppError } from "../../errors.js";
import { smaller } from "../../lib/money.js";
import type { SpendingBudget } from "./spending-budget.js";

export class JointBudget implements SpendingBudget {
  private readonly first: SpendingBudget;

  constructor(private readonly budgets: readonly [SpendingBudget, ...SpendingBudget[]]) {
    [this.first] = budgets;
  }

  get left(): bigint {
    return this.budgets.reduce((least, { left }) => smaller(least, left), this.first.left);
  }

  get share(): bigint {
    return this.budgets.reduce((least, { share }) => smaller(least, share), this.first.share);
  }

  take(amount: bigint): boolean {
    for (const [index, budget] of this.budgets.entries()) {
      if (budget.take(amount)) continue;
      this.giveBack(index, amount);
      return false;
    }
    return true;
  }

  takeUpTo(amount: bigint): bigint {
    let most = amount;
    const taken = this.budgets.map((budget) => {
      most = budget.takeUpTo(most);
      return most;
    });
    for (const [index, budget] of this.budgets.entries()) budget.conclude((taken[index] ?? most) - most, 0n);
    return most;
  }

  async takeInTime(amount: bigint): Promise<void> {
    for (const [index, budget] of this.budgets.entries()) {
      try {
        await budget.takeInTime(amount);
      } catch (error) {
        this.giveBack(index, amount);
        throw error;
      }
    }
  }

  prepare(amount: bigint): Promise<void> | null {
    const waits = this.budgets.map((budget) => budget.prepare(amount)).filter((wait) => wait !== null);
    return waits.length === 0 ? null : Promise.all(waits).then(() => undefined);
  }

  conclude(taken: bigint, charged: bigint, isSpooled?: boolean): void {
    for (const budget of this.budgets) budget.conclude(taken, charged, isSpooled);
  }

  exhausted(amount: bigint): AppError {
    return this.budgets.reduce((tightest, budget) => (budget.left < tightest.left ? budget : tightest), this.first).exhausted(amount);
  }

  chargeMost(taken: bigint): bigint | null {
    return leastOf(this.budgets.map((budget) => budget.chargeMost(taken)));
  }

  settleMost(taken: bigint): bigint | null {
    return leastOf(this.budgets.map((budget) => budget.settleMost(taken)));
  }

  /** Of those before this index. */
  private giveBack(end: number, amount: bigint): void {
    for (const budget of this.budgets.slice(0, end)) budget.conclude(amount, 0n);
  }
}

function leastOf(amounts: readonly (bigint | null)[]): bigint | null {
  return amounts.reduce((least, amount) => (least === null || (amount !== null && amount < least) ? amount : least), null);
}
