/** What a primary and its workers tell each other, over the channel that Node opens to a child process. */
import type { BucketRule, WindowRule } from "../store/counters.js";

/** What a worker is started with. */
export interface WorkerSeat {
  /** From 1. */
  readonly number: number;
  readonly workers: number;
  /** At which the gateway is reached. */
  readonly port: number;
  /** It says in the log what is the same for all of them. */
  readonly isSpokesman: boolean;
}

export interface Standing {
  readonly ready: number;
  readonly restarts: number;
  /** The gateway is about to stop: no worker is ready any more, and each goes on serving. */
  readonly isLeaving: boolean;
}

/** As the methods of `Counters`, which it is answered by. */
export type CounterRequest =
  | { readonly method: "count"; readonly rule: WindowRule; readonly name: string }
  | { readonly method: "take"; readonly rule: BucketRule; readonly name: string; readonly units: number; readonly needed: number | null };

export type ToWorker =
  /** With the socket, unless its client has left meanwhile. */
  | { readonly kind: "connection"; readonly id: number }
  | { readonly kind: "ping"; readonly id: number }
  | { readonly kind: "standing"; readonly standing: Standing }
  /** It takes no more connections, and ends when what is under way is over. */
  | { readonly kind: "drain" }
  | { readonly kind: "counted"; readonly id: number; readonly waitMs: number }
  | { readonly kind: "question"; readonly id: number; readonly question: string; readonly body: unknown }
  | { readonly kind: "answers"; readonly id: number; readonly answers: readonly unknown[] };

export type ToPrimary =
  | { readonly kind: "ready"; readonly newOwnerKey: string | null }
  /** It was sent a signal. The answer is "drain", unless the gateway as a whole is told to stop: then that comes at its time. */
  | { readonly kind: "signalled" }
  /** It takes no more connections. */
  | { readonly kind: "stopping" }
  /** A connection is the worker's from here on: nothing has been read from it before. */
  | { readonly kind: "taken"; readonly id: number; readonly open: number }
  | { readonly kind: "refused"; readonly id: number }
  | { readonly kind: "pong"; readonly id: number }
  /** How many connections it has. */
  | { readonly kind: "open"; readonly open: number }
  | { readonly kind: "count"; readonly id: number; readonly request: CounterRequest }
  | { readonly kind: "ask"; readonly id: number; readonly question: string; readonly body: unknown; readonly timeoutMs: number }
  /** Without an answer: the worker has none. */
  | { readonly kind: "answer"; readonly id: number; readonly answer?: unknown };
