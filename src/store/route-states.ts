/**
 * The state of routes that processes share (docs/decisions/limits-of-routes-in-shares.md): shares of limits, cool-downs, circuits and times.
 * It may be lost: each process then keeps its own.
 */

/** A share of a limit of all processes. */
export interface ShareRequest {
  /** Of the limit; with its minute, where it is a number a minute. */
  readonly name: string;
  /** Units of all processes together. */
  readonly limit: number;
  /** Units that this process keeps, whether or not it has used them. The others get back the rest of its share. */
  readonly kept: number;
  /** Units that it wants beside them; null: its part of the units that are left. */
  readonly wanted: number | null;
  /** The limit is forgotten that long after its last request, in milliseconds. */
  readonly ttlMs: number;
  /** The units of a process that has ended are free again. */
  readonly isFreedAtEnd: boolean;
}

export interface Share {
  /** Units beside the kept ones. */
  readonly granted: number;
  /** Another process wants more than is left. */
  readonly isWanted: boolean;
}

/** A sum over all processes. */
export interface CountRequest {
  readonly name: string;
  /** The part of this process. */
  readonly own: number;
  readonly ttlMs: number;
}

export interface RouteExchange {
  /** Processes that have asked within the last seconds. */
  readonly processes: number;
  /** In the order of the requests. */
  readonly shares: readonly Share[];
  /** The parts of all other processes, in the order of the requests. */
  readonly counts: readonly number[];
}

/** A stored state; `json` is the value of the caller. */
export interface StoredRouteState {
  readonly id: string;
  readonly json: string;
}

export type RouteStateKind = "health" | "times";

export interface RouteStates {
  /** Null: the store does not answer. Never rejects. */
  exchange(processId: string, shares: readonly ShareRequest[], counts: readonly CountRequest[]): Promise<RouteExchange | null>;
  /** The process no longer counts. Never rejects. */
  leave(processId: string): Promise<void>;
  /** Null deletes it. Returns at once; the state may be lost. */
  save(kind: RouteStateKind, id: string, json: string | null): void;
  /** Empty when the store does not answer. Never rejects. */
  load(kind: RouteStateKind): Promise<readonly StoredRouteState[]>;
  close(): void;
}
