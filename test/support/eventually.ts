/**
 * Waits for events of any duration: vitest's own waits give up after a second, which a busy machine may exceed for
 * anything.
 */
import { vi } from "vitest";

const PATIENCE = { timeout: 20_000, interval: 20 };
/** Taken now: a test may have clocks of its own later. */
const { setTimeout, clearTimeout } = globalThis;

/** What the check returns, once it no longer throws. */
export function eventually<Result>(check: () => Result | Promise<Result>): Promise<Result> {
  return vi.waitFor(check, PATIENCE);
}

/** The same promise, but for one that would be waited for in vain: that rejects, and says what did not come. */
export function inTime<Result>(awaited: Promise<Result>, what: string): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Waited in vain: ${what}.`)), PATIENCE.timeout).unref();
  });
  const settled = Promise.race([awaited, late]).finally(() => clearTimeout(timer));
  // The test may have ended before.
  settled.catch(() => undefined);
  return settled;
}
