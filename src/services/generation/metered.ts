/** The metered amounts of a generation, and their cut to its hold. */
import { type BillableQuantities, cutToCost, type RateCard } from "../catalog/pricing.js";
import type { UsageSource } from "./receipt.js";

export interface Metered {
  readonly quantities: BillableQuantities;
  readonly source: UsageSource;
  readonly reported?: BillableQuantities | undefined;
  /** What the gateway counted itself, where an upstream's report is charged. Absent: nothing was counted. */
  readonly counted?: (() => BillableQuantities) | undefined;
}

/**
 * The same amounts within the hold. Otherwise all are cut in proportion, and marked as the gateway's estimate: a usage row shows the
 * charged amounts, so amounts are cut and not only the price.
 */
export function capToHold({ quantities, source }: Metered, rates: RateCard, heldNanocredits: bigint): Metered {
  const cut = cutToCost(quantities, rates, heldNanocredits);
  return { quantities: cut, source: cut !== quantities && source === "provider" ? "estimated" : source };
}
