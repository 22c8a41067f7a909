/**
 * Credits: holds, meters and charges of generations (docs/architecture.md#a-generation-end-to-end).
 *
 * 1. `open` holds the estimated cost, after a refill of the account's tier that is due. A caller with plenty of credits proceeds at
 *    once; others wait for the commit.
 * 2. `meter` receives the cost delivered so far; at 80% of the hold it requests more, and each second it stores the position of the
 *    stream, so that the generation of a killed process is settled at the delivered cost.
 * 3. `settle` charges the real cost, or `release` nothing. Exactly one of them, once.
 *
 * Free work (an amount of 0 at free rates) has no hold: only its usage row is written.
 */
import type { CallerLimit } from "../../context.js";
import type { Events } from "../../store/events.js";
import { isSettlement, type LedgerOperation, type LedgerOutcome } from "../../store/ledger.js";
import type { LimitClaims } from "../usage-limits/claims.js";
import { GenerationLimits } from "../usage-limits/generation-limits.js";
import type { LimitFinder } from "../usage-limits/limit-finder.js";
import type { ChargeRequest } from "./charge-request.js";
import { HeldBudget } from "./held-budget.js";
import { JointBudget } from "./joint-budget.js";
import type { KnownBalances } from "./known-balances.js";
import type { Leases } from "./leases.js";
import { OpenCharge } from "./open-charge.js";
import type { RefusedFunds } from "./refused-funds.js";
import type { Settler } from "./settler.js";
import { SpendingBudgets } from "./spending-budgets.js";
import type { TierRefills } from "./tiers.js";

export class Credits {
  private readonly budgets: SpendingBudgets;

  constructor(
    private readonly settler: Settler,
    private readonly known: KnownBalances,
    private readonly refills: Pick<TierRefills, "refillIfDue">,
    private readonly funds: RefusedFunds,
    private readonly leases: Leases,
    private readonly claims: LimitClaims | null = null,
    private readonly modelLimits: Pick<LimitFinder, "ofModel" | "hasModels"> | null = null,
  ) {
    this.budgets = new SpendingBudgets(() => funds.topUpUrl);
  }

  open(request: ChargeRequest): OpenCharge {
    // The hold is refused while the database is unavailable.
    const refill = this.settler.isUnavailable ? null : this.refills.refillIfDue(request.payer.accountId);
    const limits = this.limitsOf(request);
    const own = this.budgets.of(request);
    const bound = limits?.hasBudget ? (own ? new JointBudget([own, limits]) : limits) : own;
    return new OpenCharge(this.settler, this.known, this.funds, request, refill, bound && new HeldBudget(bound), this.leases, limits);
  }

  /** Null: none concerns it. */
  private limitsOf(request: ChargeRequest): GenerationLimits | null {
    const limits = this.concerning(request);
    if (this.claims === null || limits === undefined) return null;
    const { generationId, estimate, least = estimate, isFree, tokens = 0, model = "", otherModels = [], payer, note } = request;
    const isOfAgent = payer.run?.maxCost != null;
    const generation = { generationId, limits, model, otherModels, estimate, least, tokens, isFree, isOfAgent, note };
    const opened = new GenerationLimits(this.claims, generation);
    return opened.isEmpty ? null : opened;
  }

  /** Those of the caller, and of the models over all accounts, in the order of their ids. Undefined: none. */
  private concerning({ limits, model = "", otherModels }: ChargeRequest): readonly CallerLimit[] | undefined {
    const { modelLimits } = this;
    if (!modelLimits?.hasModels) return limits;
    const ofModels = [model, ...(otherModels ?? [])].flatMap((each) => modelLimits.ofModel(each) ?? []);
    if (ofModels.length === 0) return limits;
    return [...(limits ?? []), ...new Set(ofModels)].sort((one, other) => (one.id < other.id ? -1 : 1));
  }
}

/** Updates known balances from commits here and events of other processes, and publishes charges; `ownEvents` are for this process only. */
export function createCommitListener(
  known: KnownBalances,
  leases: Pick<Leases, "committed">,
  events: Events,
  ownEvents?: Events,
  limits?: Pick<LimitClaims, "committed">,
): (operation: LedgerOperation, outcome: LedgerOutcome) => void {
  events.listenToOthers("balance-changed", ({ accountId }) => known.drop(accountId));
  return (operation, outcome) => {
    leases.committed(operation, outcome);
    limits?.committed(operation.id);
    if (!outcome.isLeased) known.learn(operation.accountId, outcome.available);
    if (operation.apiKeyId && outcome.keyAvailable !== null) known.learn(operation.apiKeyId, outcome.keyAvailable);
    const isDone = outcome.outcome === "ok" || outcome.outcome === "corrected";
    if (!isDone || !(isSettlement(operation) || operation.kind === "release")) return;
    const { accountId } = operation;
    if (isSettlement(operation)) {
      const recorded = { accountId, usageId: operation.id };
      events.publish("usage-recorded", recorded);
      ownEvents?.publish("usage-recorded", recorded);
      const { earners } = operation.record;
      for (const share of ["app", "model"] as const) {
        const earner = earners?.[share];
        if (!earner || !outcome.earned?.[share]) continue;
        events.publish("earning-recorded", { accountId: earner.accountId, generationId: operation.id, share });
      }
    }
    // A hold of another process may wait for released credits. Free work publishes nothing.
    const isMoved = operation.kind === "release" || outcome.charged > 0n || outcome.outcome === "corrected";
    if (isMoved) events.publish("balance-changed", { accountId });
  };
}
