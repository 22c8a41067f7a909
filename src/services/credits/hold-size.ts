import { larger, smaller } from "../../lib/money.js";
import type { ChargeRequest } from "./charge-request.js";
import type { HeldBudget } from "./held-budget.js";

/** The ledger's columns end at 2^63, far above any real charge. A hold of this much is refused by any balance. */
export const AMOUNT_MAX = 2n ** 62n;
/** The share (1/n) of available credits that an unstreamed answer without a stated length may hold (docs/spec/credits.md#holds). */
const FREE_SHARE = 10n;

/** The hold for this many available credits. All in nanocredits. */
export function sizeHold(request: ChargeRequest, bound: HeldBudget | null, free: bigint): bigint {
  const { estimate, most, least = estimate, freeMax } = request;
  const left = bound === null ? null : bound.budget.left + bound.held;
  const spendable = (freeMax === undefined ? free : smaller(free, freeMax)) / FREE_SHARE;
  const share = bound === null ? spendable : smaller(spendable, bound.budget.share + bound.held);
  const usual = left !== null && left < estimate ? larger(left, least) : estimate;
  return smaller(most === undefined ? usual : larger(usual, smaller(most, share)), AMOUNT_MAX);
}
