/** How the catalog sees the models that accounts have registered: as each caller may, at the moment of asking. */
import type { Caller } from "../../context.js";
import type { Model, Upstream } from "./model.js";

export interface CommunityCatalog {
  /** By callable id, `community/<owner>/<name>`. Null when there is none, and when it is private and another account's. */
  find(caller: Caller, id: string): Model | null;
  /** Public ones, and the caller's own. `reliableOnly` leaves out those whose health keeps them off the lists; the caller's own stay. */
  list(caller: Caller, options: { readonly reliableOnly: boolean }): readonly Model[];
  /** The upstream of one of these models; null when none has it, and when it was deleted meanwhile. */
  upstream(id: string): Upstream | null;
}

/** The first part of every registered model's id. */
export const COMMUNITY_PUBLISHER = "community";
