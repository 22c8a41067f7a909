/** Work that a process repeats by itself for as long as it lives. */
import type { Logger } from "pino";

export interface Repetition {
  /** Runs the work now, or joins the run under way. Never rejects. */
  now(): Promise<void>;
  /** Repeats no more, and resolves when the run under way has ended. */
  close(): Promise<void>;
}

/**
 * Runs `work` every so many milliseconds, beginning one interval from now, and never twice at the same time. A run that fails is logged
 * as `failure`, and the next one comes all the same. It keeps no process alive.
 */
export function every(intervalMs: number, work: () => unknown, log: Pick<Logger, "warn">, failure: string): Repetition {
  let running: Promise<void> | null = null;
  const run = async (): Promise<void> => {
    try {
      await work();
    } catch (error) {
      log.warn({ err: error }, failure);
    }
  };
  const now = (): Promise<void> => {
    running ??= run().finally(() => {
      running = null;
    });
    return running;
  };
  const timer = setInterval(() => void now(), intervalMs).unref();
  return {
    now,
    close: async () => {
      clearInterval(timer);
      await running;
    },
  };
}
