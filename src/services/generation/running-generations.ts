/**
 * Generations that are under way. One whose caller has left goes on without a connection
 * (docs/spec/credits.md#callers-who-leave: what an upstream has accepted is paid for), so a gateway that stops waits for them
 * here, for a bounded time, and then stops them at no cost.
 */
import { serviceUnavailable } from "../../errors.js";
import type { Cancellation } from "./cancellation.js";

export class RunningGenerations {
  private readonly running = new Set<Cancellation>();
  private readonly streams = new Set<Cancellation>();
  private onIdle: (() => void) | null = null;

  get count(): number {
    return this.running.size;
  }

  /** Those of them that are streamed. */
  get streamCount(): number {
    return this.streams.size;
  }

  begin(cancellation: Cancellation, isStreamed = false): void {
    this.running.add(cancellation);
    if (isStreamed) this.streams.add(cancellation);
  }

  end(cancellation: Cancellation): void {
    this.running.delete(cancellation);
    this.streams.delete(cancellation);
    if (this.running.size === 0) this.onIdle?.();
  }

  /** Resolves when none is left. */
  async close(patienceMs: number): Promise<void> {
    if (this.running.size === 0) return;
    const idle = new Promise<void>((resolve) => {
      this.onIdle = resolve;
    });
    const timer = setTimeout(() => {
      const reason = serviceUnavailable("The gateway was stopped before this was finished. Nothing was charged.");
      for (const cancellation of this.running) cancellation.stop(reason);
    }, patienceMs);
    await idle;
    clearTimeout(timer);
  }
}
