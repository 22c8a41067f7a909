import type { ServerResponse } from "node:http";

/**
 * Resolves when the written bytes were taken, or the connection has closed. A reader that takes nothing for `timeoutMs` is disconnected.
 */
export function drained(res: ServerResponse, timeoutMs: number): Promise<void> {
  if (res.closed) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(() => res.destroy(), timeoutMs);
    const settle = () => {
      clearTimeout(timer);
      res.off("drain", settle);
      res.off("close", settle);
      resolve();
    };
    res.on("drain", settle);
    res.on("close", settle);
  });
}
