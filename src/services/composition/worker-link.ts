/** A worker's link to its gateway (docs/decisions/workers.md). `src/workers/` has both ends. */
import type { Counters } from "../../store/counters.js";

export interface WorkerLink {
  /** From 1. */
  readonly number: number;
  /** This worker logs messages that are the same for all workers. */
  readonly isPrimaryReporter: boolean;
  readonly workers: number;
  readonly ready: number;
  /** Number replaced since the gateway started. */
  readonly restarts: number;
  /** Shared by all workers. */
  readonly counters: Counters;
  /** Sets this worker's answer to a question of any worker, itself included. */
  answer(question: string, give: (body: unknown) => Promise<unknown>): void;
  /** Answers of all serving workers that answer in time. */
  askAll(question: string, body: unknown, timeoutMs: number): Promise<readonly unknown[]>;
}

/** Whether enough workers serve to carry the load. */
export function hasEnoughWorkers({ ready, workers }: Pick<WorkerLink, "ready" | "workers">): boolean {
  return ready >= Math.ceil(workers / 2);
}

/** Question for a worker's metrics. The primary keeps the last answer, for when the worker ends. */
export const METRICS_QUESTION = "metrics";
/** Above the second that a gauge may take. */
export const METRICS_MS_MAX = 2_500;
