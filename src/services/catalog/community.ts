/** How the catalog sees the models that accounts have registered: as each caller may, at the moment of asking. */
import type { Caller } from "../../context.js";
import type { Model, Upstream } from "./model.js";

export interface CommunityCatalog {
  /** By callable id, `community/<owner>/<name>`. Null when there is none, and when it is private and another account's. */
  find(caller: Caller, id: string): Model | null;
  /**
   * Public ones, and the caller's own, by id. `reliableOnly` leaves out those whose health keeps them off the lists; the caller's own
   * stay.
   */
  list(caller: Caller, options: { readonly reliableOnly: boolean }): readonly Model[];
  /** What may answer for one of these models when its upstream fails, in order: others of its modality that are no dearer, and no agents. */
  fallbacksOf(model: Model): readonly Model[];
  /** The upstream of one of these models; null when none has it, and when it was deleted meanwhile. */
  upstream(id: string): Upstream | null;
  /** How others' calls of a model went. */
  healthOf(model: Pick<Model, "communityModelId">): ModelHealth;
  /** The account that has registered it; null when none has, and when it was deleted meanwhile. */
  ownerOf(model: Pick<Model, "communityModelId">): string | null;
}

export const HEALTH_STATUSES = ["unknown", "healthy", "unreliable"] as const;

/** The last 24 hours of a registered model. Of every other model nothing is known. */
export interface ModelHealth {
  /** `unknown` until there are enough calls to tell. */
  readonly status: (typeof HEALTH_STATUSES)[number];
  /** Of 1; null when it was not called. */
  readonly successRate: number | null;
  readonly requests: number;
}

export const UNKNOWN_HEALTH: ModelHealth = Object.freeze({ status: "unknown", successRate: null, requests: 0 });

/** The first part of every registered model's id. */
export const COMMUNITY_PUBLISHER = "community";

/** Of a gateway in which nobody has registered anything. */
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
