/** What one attempt calls: a model by one of its routes. */
import type { Model } from "../../catalog/model.js";
import { atPrice, type BillableQuantities, costOf, type RateCard } from "../../catalog/pricing.js";
import type { Route } from "../../catalog/route.js";

export interface Candidate {
  readonly model: Model;
  readonly route: Route;
  /** Stays with its route where it can; null or absent: none. */
  readonly conversation?: string | null | undefined;
}

/** A candidate that failed or was passed over, in a receipt. */
export interface Attempt {
  /** Shown to callers, as in usage rows. */
  readonly upstream: string;
  /** Its id within its model. */
  readonly route: string;
  readonly code: AttemptCode;
  readonly ms: number;
  /** The attempt was by this vendor key of the account; absent: by a key of the operator. */
  readonly vendorKeyId?: string | undefined;
}

/** Why a candidate was left for the next one. */
export const ATTEMPT_CODE_TEXTS = {
  credential_refused: "The upstream refused the key: the operator's, or the account's vendor key.",
  payment_required: "The account of the key at the upstream has no funds left.",
  rate_limited: "The upstream limits its requests.",
  not_found: "The upstream does not have the model.",
  timeout: "The upstream took too long.",
  unreachable: "The upstream could not be reached.",
  invalid_answer: "The upstream's answer could not be read, or broke off.",
  refused: "The upstream refused the request.",
  failed: "The upstream failed.",
  hedged: "Another route of the model brought the first token sooner.",
} as const;
export type AttemptCode = keyof typeof ATTEMPT_CODE_TEXTS;

export const NO_ATTEMPTS: readonly Attempt[] = [];

export function attemptOf({ upstreamName: upstream, id: route, vendorKey }: Route, code: AttemptCode, ms: number): Attempt {
  return { upstream, route, code, ms: Math.round(ms), ...(vendorKey && { vendorKeyId: vendorKey.key.id }) };
}

/** The attempts of a usage row's column. */
export function attemptsIn(column: unknown): readonly Attempt[] {
  return Array.isArray(column) ? (column as Attempt[]) : NO_ATTEMPTS;
}

/** What the operator pays for these quantities, in nanocredits; null: unknown. `rates` are the model's for this request. */
export function operatorCostOf({ route }: Candidate, quantities: BillableQuantities, rates: RateCard): bigint | null {
  if (route.vendorKey) return 0n;
  if (route.isAtModelPrice) return costOf(quantities, atPrice(rates));
  return route.rates === null ? null : costOf(quantities, route.rates);
}
