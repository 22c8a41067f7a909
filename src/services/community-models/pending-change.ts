/**
 * Decides when a change of a registered model takes effect (docs/spec/community-models.md#pending-changes).
 *
 * 1. Prices for others are shown three hours before they apply: becoming public is delayed, and so is, on a public model, a change of
 *    paidOnly, imagePricing or a price. Other changes apply at once.
 * 2. There is one scheduled change. Altering it restarts the three hours for all of it, so that nothing applies sooner than announced;
 *    reverting all of it removes it.
 * 3. While a model waits to become public no other account pays for it, so its price changes at once, and the three hours restart.
 * 4. Becoming private is immediate and drops the scheduled change.
 */

import { PRICE_FIELDS, type PriceField } from "../catalog/pricing.js";
import { PENDING_CHANGE_MS } from "./limits.js";
import type { CommunityModelTerms, PendingChange } from "./record.js";

export interface ScheduledChange {
  readonly change: PendingChange;
  readonly effectiveAt: Date;
}

/** Requested terms; absent ones do not change. A price of null is no longer stated. */
export interface RequestedTerms {
  readonly visibility?: "private" | "public" | undefined;
  readonly paidOnly?: boolean | undefined;
  readonly imagePricing?: "request" | "tokens" | undefined;
  readonly prices?: Readonly<Partial<Record<PriceField, bigint | null>>> | undefined;
}

export interface TermsPlan {
  /** Terms that apply from now on. */
  readonly terms: CommunityModelTerms;
  readonly scheduled: ScheduledChange | null;
}

/**
 * `terms` are the current ones, `scheduled` is the pending change. `isRenamed`: a public model must not be renamed, because under a new id
 * others would meet its prices without notice.
 */
export function planTerms(
  terms: CommunityModelTerms,
  scheduled: ScheduledChange | null,
  requested: RequestedTerms,
  now: Date,
  isRenamed = false,
): TermsPlan {
  const { visibility, ...priced } = requested;
  const effectiveAt = new Date(now.getTime() + PENDING_CHANGE_MS);
  if (visibility === "private") return { terms: withPriced({ ...terms, visibility }, priced), scheduled: null };
  if (terms.visibility === "public") {
    const change = mergedChange(terms, scheduled?.change ?? {}, priced);
    if (isEmpty(change)) return { terms, scheduled: null };
    return { terms, scheduled: scheduled && isSame(change, scheduled.change) ? scheduled : { change, effectiveAt } };
  }
  const changed = withPriced(terms, priced);
  if (visibility !== "public" && scheduled === null) return { terms: changed, scheduled: null };
  const mayStand = scheduled !== null && !isRenamed && isEmpty(mergedChange(terms, {}, priced));
  return { terms: changed, scheduled: mayStand ? scheduled : { change: { visibility: "public" }, effectiveAt } };
}

function withPriced(terms: CommunityModelTerms, { paidOnly, imagePricing, prices = {} }: RequestedTerms): CommunityModelTerms {
  const stated: Partial<Record<PriceField, bigint>> = { ...terms.prices };
  for (const field of PRICE_FIELDS) {
    const price = prices[field];
    if (price === null) delete stated[field];
    else if (price !== undefined) stated[field] = price;
  }
  return { ...terms, paidOnly: paidOnly ?? terms.paidOnly, imagePricing: imagePricing ?? terms.imagePricing, prices: stated };
}

/** Merges the requested terms into `change`, and drops those that are already current. */
function mergedChange(terms: CommunityModelTerms, change: PendingChange, requested: RequestedTerms): PendingChange {
  const paidOnly = requested.paidOnly ?? change.paidOnly;
  const imagePricing = requested.imagePricing ?? change.imagePricing;
  const prices: Partial<Record<PriceField, string | null>> = {};
  for (const field of PRICE_FIELDS) {
    const next = requested.prices?.[field];
    const price = next === undefined ? change.prices?.[field] : (next?.toString() ?? null);
    const stated = terms.prices[field]?.toString() ?? null;
    if (price !== undefined && price !== stated) prices[field] = price;
  }
  return {
    ...(paidOnly !== undefined && paidOnly !== terms.paidOnly && { paidOnly }),
    ...(imagePricing !== undefined && imagePricing !== terms.imagePricing && { imagePricing }),
    ...(Object.keys(prices).length > 0 && { prices }),
  };
}

function isSame(left: PendingChange, right: PendingChange): boolean {
  return (
    left.visibility === right.visibility &&
    left.paidOnly === right.paidOnly &&
    left.imagePricing === right.imagePricing &&
    PRICE_FIELDS.every((field) => left.prices?.[field] === right.prices?.[field])
  );
}

function isEmpty(change: PendingChange): boolean {
  return isSame(change, {});
}
