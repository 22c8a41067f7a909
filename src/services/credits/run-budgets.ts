/**
 * What agents at work may spend of their callers' money: each run has a bound, within which everything that it asks for must fit, what
 * is only set aside included. The counts are this process's own: it answers everything that its agents ask for, over its own port
 * (loopback-client.ts). An answer that costs more than was set aside for it is charged all the same and counted, so that it is the last.
 */
import { LRUCache } from "lru-cache";
import type { AgentRun } from "../../context.js";
import { AppError } from "../../errors.js";
import { entriesMax } from "../../lib/bounded.js";
import { formatNanocredits } from "../../lib/money.js";
import { CONTENDED_HOLD_WAIT_MS, RUN_BUDGETS_MAX, RUN_TOKEN_MS } from "../../limits.js";
import type { SpendingBound } from "./refusals.js";

export class RunBudgets {
  /** By the agent's generation, as long as its run token is good. */
  private readonly budgets = new LRUCache<string, RunBudget>({ ...entriesMax(RUN_BUDGETS_MAX), ttl: RUN_TOKEN_MS, updateAgeOnGet: true });

  /** Null: the run has no bound. */
  of({ parentRequestId, maxCost }: AgentRun): RunBudget | null {
    if (maxCost === null) return null;
    const known = this.budgets.get(parentRequestId);
    if (known) return known;
    const budget = new RunBudget(maxCost);
    this.budgets.set(parentRequestId, budget);
    return budget;
  }
}

interface Waiter {
  readonly amount: bigint;
  readonly resolve: () => void;
}

/** Amounts are nanocredits. */
export class RunBudget {
  private spent = 0n;
  private held = 0n;
  private readonly waiting = new Set<Waiter>();

  constructor(private readonly limit: bigint) {}

  /** At once, or not at all. */
  take(amount: bigint): boolean {
    if (amount > this.left) return false;
    this.held += amount;
    return true;
  }

  /** As much of it as is left. */
  takeUpTo(amount: bigint): bigint {
    const taken = amount < this.left ? amount : this.left;
    this.held += taken;
    return taken;
  }

  /** Where only what the run has set aside otherwise stands in the way, that is waited for, as long as for any hold. */
  async takeInTime(amount: bigint): Promise<void> {
    if (this.take(amount)) return;
    if (amount > this.limit - this.spent) throw this.exhausted(amount);
    await this.wait(amount);
  }

  /** What was taken is free again, but for what was charged. */
  conclude(taken: bigint, charged: bigint): void {
    this.held -= taken;
    this.spent += charged;
    for (const waiter of this.waiting) {
      if (!this.take(waiter.amount)) continue;
      this.waiting.delete(waiter);
      waiter.resolve();
    }
  }

  /** `amount` is what does not fit. */
  exhausted(amount: bigint): AppError {
    const [limit, spent, held, required, available] = [this.limit, this.spent, this.held, amount, this.left].map(formatNanocredits);
    const message =
      `What this run of an agent asks for may cost ${limit} credits in all, of which ${spent} are spent and ${held} set aside: this needs ${required} more and does not fit. ` +
      "Whoever calls the agent bounds its run by the header X-Max-Cost, or maxCost in GraphQL; unless stated, it is a tenth of what they have.";
    return new AppError("KEY_BUDGET_EXHAUSTED", message, {
      param: "X-Max-Cost",
      details: { bound: "run" satisfies SpendingBound, required, available, maxCost: limit, spent, held },
    });
  }

  /** What nothing is spent or set aside of. */
  get left(): bigint {
    const left = this.limit - this.spent - this.held;
    return left > 0n ? left : 0n;
  }

  private wait(amount: bigint): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        amount,
        resolve: () => {
          clearTimeout(timer);
          resolve();
        },
      };
      const timer = setTimeout(() => {
        this.waiting.delete(waiter);
        reject(this.exhausted(amount));
      }, CONTENDED_HOLD_WAIT_MS).unref();
      this.waiting.add(waiter);
    });
  }
}
