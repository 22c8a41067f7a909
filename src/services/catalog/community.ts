/** The catalog's interface to registered models, as each caller may see them at that moment. */
import type { Caller } from "../../context.js";
import type { Model, Upstream } from "./model.js";

export interface CommunityCatalog {
  /** By callable id, `community/<owner>/<name>`. Null for an unknown model, and for another account's private one. */
  find(caller: Caller, id: string): Model | null;
  /** Public ones, and the caller's own, by id. `reliableOnly` excludes unhealthy models of other accounts. */
  list(caller: Caller, options: { readonly reliableOnly: boolean }): readonly Model[];
  /** Fallbacks of one of these models, in order: of its modality, no dearer, and no agents. */
  fallbacksOf(model: Model): readonly Model[];
  /** The upstream of one of these models; null when unknown, or deleted meanwhile. */
  upstream(id: string): Upstream | null;
  /** Results of other accounts' calls. */
  healthOf(model: Pick<Model, "communityModelId">): ModelHealth;
  /** The account that registered it; null when none, or deleted meanwhile. */
  ownerOf(model: Pick<Model, "communityModelId">): string | null;
}

export const HEALTH_STATUSES = ["unknown", "healthy", "unreliable"] as const;

/** The last 24 hours of a registered model. Unknown for all others. */
export interface ModelHealth {
  /** `unknown` until there are enough calls. */
  readonly status: (typeof HEALTH_STATUSES)[number];
  /** Of 1; null without calls. */
  readonly successRate: number | null;
  readonly requests: number;
}

export const UNKNOWN_HEALTH: ModelHealth = Object.freeze({ status: "unknown", successRate: null, requests: 0 });

/** The first part of every registered model's id. */
export const COMMUNITY_PUBLISHER = "community";

/** Without registered models. */
export const NO_COMMUNITY: CommunityCatalog = {
  find: () => null,
  list: () => [],
  fallbacksOf: () => [],
  upstream: () => null,
  healthOf: () => UNKNOWN_HEALTH,
  ownerOf: () => null,
};

export function isCommunityId(id: string): boolean {
  return id.startsWith(`${COMMUNITY_PUBLISHER}/`);
}
