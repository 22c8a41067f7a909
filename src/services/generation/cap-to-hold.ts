/**
 * What an account's upstream reports is believed, but never beyond the hold (docs/spec/credits.md#reported-usage): a usage row shows
 * what was charged for, so what was reported is cut and not only its price.
 */
import { USAGE_KINDS } from "../../lib/usage.js";
import { type BillableQuantities, type BilledKind, costOf, type RateCard } from "../catalog/pricing.js";
import type { UsageSource } from "./receipt.js";

interface Metered<Quantities> {
  readonly quantities: Quantities;
  readonly source: UsageSource;
}

const KINDS: readonly BilledKind[] = [...USAGE_KINDS, "imageRequests", "characters", "inputAudioMilliseconds"];

/** The same when it costs no more than `heldNanocredits`. Else every amount is cut in one proportion, and is the gateway's estimate. */
export function capToHold<Quantities extends BillableQuantities>(
  metered: Metered<Quantities>,
  rates: RateCard,
  heldNanocredits: bigint,
): Metered<Quantities> {
  const { quantities, source } = metered;
  const cost = costOf(quantities, rates);
  if (cost <= heldNanocredits) return metered;
  const cut = KINDS.filter((kind) => quantities[kind]).map((kind) => [kind, share(quantities[kind] ?? 0, heldNanocredits, cost)]);
  return { quantities: { ...quantities, ...Object.fromEntries(cut) }, source: source === "provider" ? "estimated" : source };
}

/** Rounded down, so that the parts never cost more than the whole may. */
function share(amount: number, held: bigint, cost: bigint): number {
  return Number((BigInt(amount) * held) / cost);
}
