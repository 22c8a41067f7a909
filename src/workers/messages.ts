/** Messages between a primary and its workers, over Node's channel to a child process. */
import type { BucketRule, WindowRule } from "../store/counters.js";

/** Start parameters of a worker. */
export interface WorkerSeat {
  /** From 1. */
  readonly number: number;
  readonly workers: number;
  readonly port: number;
  /** This worker logs messages that are the same for all workers. */
  readonly isPrimaryReporter: boolean;
}

export interface Standing {
  readonly ready: number;
  readonly restarts: number;
  /** The gateway is about to stop: workers refuse readiness and keep serving. */
  readonly isLeaving: boolean;
}

/** Methods of `Counters`. */
export type CounterRequest =
  | { readonly method: "count"; readonly rule: WindowRule; readonly name: string }
  | { readonly method: "take"; readonly rule: BucketRule; readonly name: string; readonly units: number; readonly needed: number | null };

export type ToWorker =
  /** With the socket, unless its client has disconnected. */
  | { readonly kind: "connection"; readonly id: number }
  | { readonly kind: "ping"; readonly id: number }
  | { readonly kind: "standing"; readonly standing: Standing }
  /** Take no more connections, and end when requests under way are done. */
  | { readonly kind: "drain" }
  | { readonly kind: "counted"; readonly id: number; readonly waitMs: number }
  | { readonly kind: "question"; readonly id: number; readonly question: string; readonly body: unknown }
  | { readonly kind: "answers"; readonly id: number; readonly answers: readonly unknown[] };

export type ToPrimary =
  | { readonly kind: "ready"; readonly newOwnerKey: string | null }
  /** The worker got a signal. The answer is "drain", unless the whole gateway is stopping, which sends it later. */
  | { readonly kind: "signalled" }
  /** It takes no more connections. */
  | { readonly kind: "stopping" }
  /** The worker owns the connection now; nothing was read from it before. */
  | { readonly kind: "taken"; readonly id: number; readonly open: number }
  | { readonly kind: "refused"; readonly id: number }
  | { readonly kind: "pong"; readonly id: number }
  /** Its number of connections. */
  | { readonly kind: "open"; readonly open: number }
  | { readonly kind: "count"; readonly id: number; readonly request: CounterRequest }
  | { readonly kind: "ask"; readonly id: number; readonly question: string; readonly body: unknown; readonly timeoutMs: number }
  /** Without an answer: the worker has none. */
  | { readonly kind: "answer"; readonly id: number; readonly answer?: unknown };
