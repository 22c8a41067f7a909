/**
 * Limits on everything that a run or request generates, holds included: the cost limit of an agent's run, and `max_cost` of a request.
 * Counted in this process, which serves all requests of its agents, over its own port (loopback-client.ts). An answer of a run that costs
 * more than its hold is charged and counted in full, so that it is the last one; a request is never charged more than its limit.
 */
import { LRUCache } from "lru-cache";
import type { AgentRun, MaxCost } from "../../context.js";
import { AppError, type ErrorCode } from "../../errors.js";
import { entriesMax } from "../../lib/bounded.js";
import { formatNanocredits } from "../../lib/money.js";
import { CONTENDED_HOLD_WAIT_MS, RUN_BUDGETS_MAX, RUN_TOKEN_MS } from "../../limits.js";
import type { ChargeRequest } from "./charge-request.js";
import { JointBudget } from "./joint-budget.js";
import type { SpendingBound } from "./refusals.js";
import type { SpendingBudget } from "./spending-budget.js";

/** The share (1/n) of the rest of an agent run's limit that an answer without a stated length may hold. */
const RUN_SHARE = 10n;

export class SpendingBudgets {
  /** By the agent's generation, for the lifetime of its run token. */
  private readonly runs = new LRUCache<string, CostBudget>({ ...entriesMax(RUN_BUDGETS_MAX), ttl: RUN_TOKEN_MS, updateAgeOnGet: true });
  /** By request with a limit, as long as it exists. */
  private readonly requests = new WeakMap<MaxCost, CostBudget>();

  /** `topUpUrl`: of RefusedFunds. */
  constructor(private readonly topUpUrl: () => string | null) {}

  /** Null: no limit. */
  of({ payer: { run }, maxCost, isFree }: Pick<ChargeRequest, "payer" | "maxCost" | "isFree">): SpendingBudget | null {
    if (isFree) return null;
    const ofRun = run ? this.ofRun(run) : null;
    const ofRequest = maxCost === undefined ? null : this.ofRequest(maxCost);
    return ofRun && ofRequest ? new JointBudget([ofRequest, ofRun]) : (ofRun ?? ofRequest);
  }

  private ofRun({ parentRequestId, maxCost }: AgentRun): CostBudget | null {
    if (maxCost === null) return null;
    const known = this.runs.get(parentRequestId);
    if (known) return known;
    const budget = new CostBudget(maxCost, RUN, this.topUpUrl);
    this.runs.set(parentRequestId, budget);
    return budget;
  }

  private ofRequest(maxCost: MaxCost): CostBudget {
    const known = this.requests.get(maxCost);
    if (known) return known;
    const budget = new CostBudget(maxCost.nanocredits, REQUEST, this.topUpUrl);
    this.requests.set(maxCost, budget);
    return budget;
  }
}

interface BudgetKind {
  readonly bound: SpendingBound;
  readonly code: ErrorCode;
  readonly param: string;
  /** Nothing is charged beyond it. */
  readonly isStrict: boolean;
  readonly explain: (amounts: Readonly<Record<"limit" | "spent" | "held" | "required", string>>) => string;
}

const RUN: BudgetKind = {
  bound: "run",
  code: "KEY_BUDGET_EXHAUSTED",
  param: "X-Max-Cost",
  isStrict: false,
  explain: ({ limit, spent, held, required }) =>
    `What this run of an agent asks for may cost ${limit} credits in all, of which ${spent} are spent and ${held} set aside: this needs ${required} more and does not fit. ` +
    "The caller of the agent bounds its run by max_cost, the header X-Max-Cost, or maxCost in GraphQL; unless stated, it is a tenth of what they have.",
};
const REQUEST: BudgetKind = {
  bound: "max_cost",
  code: "MAX_COST_EXCEEDED",
  param: "max_cost",
  isStrict: true,
  explain: ({ limit, spent, held, required }) =>
    `This request may be charged at most ${limit} credits (max_cost), of which ${spent} are spent and ${held} set aside: ${required} more have to be set aside, which does not fit. ` +
    "State a larger max_cost, or ask for less, such as a smaller max_tokens.",
};

interface Waiter {
  readonly amount: bigint;
  readonly resolve: () => void;
}

export class CostBudget implements SpendingBudget {
  private spent = 0n;
  private held = 0n;
  private readonly waiting = new Set<Waiter>();

  constructor(
    private readonly limit: bigint,
    private readonly kind: BudgetKind,
    private readonly topUpUrl: () => string | null,
  ) {}

  /** All or nothing. */
  take(amount: bigint): boolean {
    if (amount > this.left) return false;
    this.held += amount;
    return true;
  }

  takeUpTo(amount: bigint): bigint {
    const taken = amount < this.left ? amount : this.left;
    this.held += taken;
    return taken;
  }

  /** Waits for other holds of the run if only those are in the way, as long as for any hold. */
  async takeInTime(amount: bigint): Promise<void> {
    if (this.take(amount)) return;
    if (amount > this.limit - this.spent) throw this.exhausted(amount);
    await this.wait(amount);
  }

  conclude(taken: bigint, charged: bigint): void {
    this.held -= taken;
    this.spent += charged;
    for (const waiter of this.waiting) {
      if (!this.take(waiter.amount)) continue;
      this.waiting.delete(waiter);
      waiter.resolve();
    }
  }

  /** `amount` is the part that does not fit. */
  exhausted(amount: bigint): AppError {
    const { bound, code, param, explain } = this.kind;
    const amounts = { limit: this.limit, spent: this.spent, held: this.held, required: amount, available: this.left };
    const { limit, spent, held, required, available } = decimal(amounts);
    const topUpUrl = this.topUpUrl();
    const details = { bound, required, available, maxCost: limit, spent, held, ...(topUpUrl !== null && { topUpUrl }) };
    return new AppError(code, explain({ limit, spent, held, required }), { param, details });
  }

  /** The most that a generation with this amount taken may be charged; null: its cost. */
  chargeMost(taken: bigint): bigint | null {
    return this.kind.isStrict ? this.left + taken : null;
  }

  settleMost(taken: bigint): bigint | null {
    return this.chargeMost(taken);
  }

  prepare(): null {
    return null;
  }

  get left(): bigint {
    const left = this.limit - this.spent - this.held;
    return left > 0n ? left : 0n;
  }

  /** The part of it that one answer may hold beside its estimate: all of a request's limit, and a bounded part of a run's. */
  get share(): bigint {
    return this.kind.isStrict ? this.left : this.left / RUN_SHARE;
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

function decimal<Name extends string>(amounts: Readonly<Record<Name, bigint>>): Readonly<Record<Name, string>> {
  const entries = Object.entries<bigint>(amounts).map(([name, amount]) => [name, formatNanocredits(amount)]);
  return Object.fromEntries(entries) as Record<Name, string>;
}
