/** A worker's tie to the gateway that it is one process of (docs/decisions/workers.md). `src/workers/` has both of its ends. */
import type { Counters } from "../../store/counters.js";

export interface WorkerLink {
  /** From 1. */
  readonly number: number;
  /** It says in the log what is the same for all of them. */
  readonly isSpokesman: boolean;
  /** How many there are to be. */
  readonly workers: number;
  /** How many serve now. */
  readonly ready: number;
  /** How many have died and were replaced, since the gateway started. */
  readonly restarts: number;
  /** Of all workers together. */
  readonly counters: Counters;
  /** Says what this worker answers when one of them, be it this one itself, asks them all. */
  answer(question: string, give: (body: unknown) => Promise<unknown>): void;
  /** The answers of all workers that serve and give one in time. */
  askAll(question: string, body: unknown, timeoutMs: number): Promise<readonly unknown[]>;
}

/** Enough of them serve to carry what the gateway is asked. */
export function hasEnoughWorkers({ ready, workers }: Pick<WorkerLink, "ready" | "workers">): boolean {
  return ready >= Math.ceil(workers / 2);
}

/** A worker is asked for its metrics. Its primary keeps the last answer, to be told of one that has ended. */
export const METRICS_QUESTION = "metrics";
/** Above the second that a gauge may take. */
export const METRICS_MS_MAX = 2_500;
