/** The charge that a plan asks the ledger for. */
import type { MaxCost } from "../../context.js";
import type { LedgerRecord } from "../../store/ledger.js";
import { type ChargeRequest, type Payer, payerOf } from "../credits/charge-request.js";
import type { GenerationTask } from "./admission.js";
import { toLedgerRecord, underWay } from "./usage-row.js";

interface PlannedGeneration extends GenerationTask {
  readonly hold: Pick<ChargeRequest, "estimate" | "least" | "most">;
}

/** A class for its getter: see docs/decisions/garbage.md. */
export class PlannedCharge implements ChargeRequest {
  readonly generationId: string;
  readonly payer: Payer;
  readonly estimate: bigint;
  readonly most: bigint | undefined;
  readonly paidOnly: boolean;
  readonly isFree: boolean;
  readonly maxCost: MaxCost | undefined;

  constructor(
    private readonly plan: PlannedGeneration,
    readonly isLasting: boolean,
    readonly freeMax: bigint | undefined,
  ) {
    this.generationId = plan.generationId;
    this.payer = payerOf(plan.caller);
    this.estimate = plan.hold.estimate;
    this.most = plan.hold.most;
    this.paidOnly = plan.model.paidOnly;
    this.isFree = plan.isFree;
    this.maxCost = plan.request.maxCost;
  }

  get least(): bigint | undefined {
    return this.plan.hold.least;
  }

  get record(): LedgerRecord {
    return toLedgerRecord(this.plan, underWay(this.plan.model.id));
  }
}
