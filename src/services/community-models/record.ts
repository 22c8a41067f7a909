/** The row of a registered model (docs/spec/community-models.md#record) as all parts of the service read it, with due changes applied. */
import type { CommunityModelModel } from "../../store/generated/prisma/models.js";
import { COMMUNITY_PUBLISHER } from "../catalog/community.js";
import { PRICE_FIELDS, type PriceField, type StatedPrices } from "../catalog/pricing.js";

export type CommunityModelRow = CommunityModelModel;

/** Columns that a model's terms and its scheduled change are computed from. */
export const TERMS_COLUMNS = {
  ...(Object.fromEntries(PRICE_FIELDS.map((field) => [field, true])) as Record<PriceField, true>),
  modality: true,
  visibility: true,
  paidOnly: true,
  imagePricing: true,
  pending: true,
  pendingEffectiveAt: true,
} as const;
export type TermsRow = Pick<CommunityModelRow, keyof typeof TERMS_COLUMNS>;

/**
 * A scheduled change (docs/spec/community-models.md#pending-changes) in the column's form. Prices are picocredits in decimal digits; null:
 * no longer stated.
 */
export interface PendingChange {
  readonly visibility?: "public";
  readonly paidOnly?: boolean;
  readonly imagePricing?: "request" | "tokens";
  readonly prices?: Readonly<Partial<Record<PriceField, string | null>>>;
}

/** A model's terms: everything that a scheduled change can change. */
export interface CommunityModelTerms {
  readonly visibility: "private" | "public";
  readonly paidOnly: boolean;
  readonly imagePricing: "request" | "tokens";
  readonly prices: StatedPrices;
}

/** `community/<owner>/<name>`. */
export function communityModelId(handle: string, name: string): string {
  return `${COMMUNITY_PUBLISHER}/${handle}/${name}`;
}

/** The terms at this moment: a pending change applies from its time on, without any write. */
export function termsAt(row: TermsRow, now: Date): CommunityModelTerms {
  const terms = statedTerms(row);
  return isDue(row, now) ? applied(terms, pendingOf(row)) : terms;
}

/** The change still to come; null when there is none or it has taken effect. */
export function pendingAt(row: TermsRow, now: Date): { readonly change: PendingChange; readonly effectiveAt: Date } | null {
  if (row.pendingEffectiveAt === null || isDue(row, now)) return null;
  return { change: pendingOf(row), effectiveAt: row.pendingEffectiveAt };
}

/** `terms` after the change. */
export function applied(terms: CommunityModelTerms, change: PendingChange): CommunityModelTerms {
  const prices: Partial<Record<PriceField, bigint>> = { ...terms.prices };
  for (const field of PRICE_FIELDS) {
    const price = change.prices?.[field];
    if (price === null) delete prices[field];
    else if (price !== undefined) prices[field] = BigInt(price);
  }
  return {
    visibility: change.visibility ?? terms.visibility,
    paidOnly: change.paidOnly ?? terms.paidOnly,
    imagePricing: change.imagePricing ?? terms.imagePricing,
    prices,
  };
}

function statedTerms(row: TermsRow): CommunityModelTerms {
  const stated = PRICE_FIELDS.flatMap((field): [PriceField, bigint][] => {
    const price = row[field];
    return price === null ? [] : [[field, price]];
  });
  return {
    visibility: row.visibility,
    paidOnly: row.paidOnly,
    imagePricing: row.imagePricing,
    prices: Object.fromEntries(stated),
  };
}

function isDue(row: Pick<TermsRow, "pendingEffectiveAt">, now: Date): boolean {
  return row.pendingEffectiveAt !== null && row.pendingEffectiveAt <= now;
}

function pendingOf(row: Pick<TermsRow, "pending">): PendingChange {
  return (row.pending ?? {}) as PendingChange;
}
