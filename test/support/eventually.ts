/** Waits for what comes when it comes: vitest's own waits give up after a second, which a busy machine may take for anything. */
import { vi } from "vitest";

const PATIENCE = { timeout: 20_000, interval: 20 };

/** What the check returns, once it no longer throws. */
export function eventually<Result>(check: () => Result | Promise<Result>): Promise<Result> {
  return vi.waitFor(check, PATIENCE);
}
