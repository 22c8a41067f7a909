/** The charge of a planned generation. */
import { type CallerLimit, deriveContext, type MaxCost, runIdsOf } from "../../context.js";
import { AppError } from "../../errors.js";
import { createId } from "../../lib/ids.js";
import type { LedgerRecord } from "../../store/ledger.js";
import type { RateCard } from "../catalog/pricing.js";
import { type ChargeRequest, type Payer, payerOf } from "../credits/charge-request.js";
import type { Credits } from "../credits/credits.js";
import type { OpenCharge } from "../credits/open-charge.js";
import type { Admission, GenerationTask } from "./admission.js";
import type { PlannedCosts } from "./quote.js";
import type { Candidate } from "./routing/candidate.js";
import { ratesOf } from "./routing/own-routes.js";
import { toLedgerRecord, underWay } from "./usage-row.js";

export interface GenerationPlan extends GenerationTask {
  /** In nanocredits; see ChargeRequest. */
  readonly hold: Pick<ChargeRequest, "estimate" | "least" | "most">;
  /** The costs of the plan, from the amounts that size its hold. */
  costs(plan: GenerationPlan): PlannedCosts;
  /** Expected, in and out. Absent: unknown before its end. */
  tokens?(plan: GenerationPlan): number;
}

interface ChargeDependencies {
  readonly credits: Credits;
  readonly admission: Admission;
}

/**
 * Rejects as a hold of the plan would, without holding: for work of the gateway that determines the cost, which is then within `max_cost`
 * or not. A call of a run passes at the limit of its run, as its hold may wait for the payer.
 */
export async function assertPayable(deps: ChargeDependencies, plan: GenerationPlan): Promise<void> {
  if (plan.request.quoting) return;
  const request = deriveContext(plan.request, { maxCost: undefined });
  const charge = openCharge(deps, { ...plan, request, generationId: createId() });
  try {
    if (!charge.isHeld) await charge.held;
  } catch (error) {
    const mayAsk = runIdsOf(plan.caller) !== undefined && error instanceof AppError && error.code === "KEY_BUDGET_EXHAUSTED";
    if (!mayAsk) throw error;
  } finally {
    await charge.release();
  }
}

export function openCharge({ credits, admission }: ChargeDependencies, plan: GenerationPlan, isLasting = false): OpenCharge {
  return credits.open(new PlannedCharge(plan, isLasting, admission.hourlyCreditsMax(plan)));
}

/**
 * The rates of the requested model, unless the caller named several: then those of the model that serves. Of these the fee, where a vendor
 * key serves.
 */
export function chargedRates(
  { model, isChargedAsServed }: Pick<GenerationPlan, "model" | "isChargedAsServed">,
  serving: Candidate,
): RateCard {
  return ratesOf(serving.route, isChargedAsServed ? serving.model.rates : model.rates);
}

/** A class for its getter: see docs/decisions/garbage.md. */
class PlannedCharge implements ChargeRequest {
  readonly generationId: string;
  readonly payer: Payer;
  readonly estimate: bigint;
  readonly most: bigint | undefined;
  readonly paidOnly: boolean;
  readonly isFree: boolean;
  readonly maxCost: MaxCost | undefined;
  readonly needsOwnHold: boolean;
  readonly limits: readonly CallerLimit[] | undefined;

  constructor(
    private readonly plan: GenerationPlan,
    isLasting: boolean,
    readonly freeMax: bigint | undefined,
  ) {
    this.generationId = plan.generationId;
    this.needsOwnHold = isLasting || plan.sharing !== undefined;
    this.payer = payerOf(plan.caller);
    this.estimate = plan.hold.estimate;
    this.most = plan.hold.most;
    this.paidOnly = plan.model.paidOnly;
    this.isFree = plan.isFree;
    this.maxCost = plan.request.maxCost;
    this.limits = plan.caller.limits;
  }

  get note() {
    return this.plan.request.note;
  }

  get model(): string {
    return this.plan.model.id;
  }

  get otherModels(): readonly string[] | undefined {
    const { isChargedAsServed, candidates, model } = this.plan;
    return isChargedAsServed ? candidates.flatMap((each) => (each.model.id === model.id ? [] : [each.model.id])) : undefined;
  }

  get tokens(): number | undefined {
    return this.plan.tokens?.(this.plan);
  }

  get least(): bigint | undefined {
    return this.plan.hold.least;
  }

  get record(): LedgerRecord {
    return toLedgerRecord(this.plan, underWay(this.plan.model.id));
  }
}
