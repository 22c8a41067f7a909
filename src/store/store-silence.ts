/**
 * Bounds the wait for a remote store that accepts connections but does not answer, because it is stopped or swaps.
 *
 * 1. A call fails with StoreSilent when the store has been silent for too long. Any progress of the call restarts that time.
 * 2. When nothing else was received from the store since the call began, the store counts as unavailable: further calls fail at once, so
 *    that a request with several calls waits once.
 * 3. An unavailable store is probed until it answers anything.
 */
import { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";

export class StoreSilent extends Error {
  override readonly name = "StoreSilent";
}

export interface StoreSilenceOptions {
  /** A cheap request. */
  readonly probe: (signal: AbortSignal) => Promise<unknown>;
  /** Milliseconds of silence allowed for a call, in all attempts together. */
  readonly silenceMs: number;
  /** Milliseconds between two probes. */
  readonly probeMs: number;
  /** Called when the store becomes unavailable, and when it is back. */
  readonly onChange?: ((isAway: boolean) => void) | undefined;
}

/** `noteProgress` restarts the time of silence. */
export type StoreCall<Result> = (signal: AbortSignal, noteProgress: () => void) => Promise<Result>;

export class StoreSilence {
  private heardAt = Number.NEGATIVE_INFINITY;
  private isAway = false;
  private isClosed = false;
  private probeTimer: NodeJS.Timeout | undefined;

  constructor(private readonly options: StoreSilenceOptions) {}

  /** Rejects with StoreSilent, or as `call` does. Only silence leads to another attempt. */
  async call<Result>(call: StoreCall<Result>, attempts = 1): Promise<Result> {
    const startedAt = performance.now();
    for (let attempt = 1; ; attempt += 1) {
      if (this.isAway) throw new StoreSilent("The store has not answered for a while.");
      const controller = new AbortController();
      try {
        return await this.attempt(call, controller, this.options.silenceMs / attempts);
      } catch (error) {
        if (!controller.signal.aborted) throw error;
        if (attempt < attempts) continue;
        this.noteSilence(startedAt);
        throw controller.signal.reason;
      }
    }
  }

  /** The bytes of a body, which fails when the store is silent while more is awaited. A reader may take any time. */
  watch(body: Readable): Readable {
    const watched = Readable.from(this.chunksOf(body), { objectMode: false });
    watched.once("close", () => body.destroy());
    return watched;
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.probeTimer);
  }

  private async *chunksOf(body: Readable): AsyncGenerator<Uint8Array> {
    const chunks = body[Symbol.asyncIterator]();
    for (;;) {
      const next = await this.call((signal) => {
        signal.addEventListener("abort", () => body.destroy(signal.reason), { once: true });
        return chunks.next();
      });
      if (next.done) return;
      yield next.value;
    }
  }

  private async attempt<Result>(call: StoreCall<Result>, controller: AbortController, silenceMs: number): Promise<Result> {
    let isOver = false;
    const onSilence = async () => {
      // A busy process may not have read data that arrived in time.
      await nextTurn();
      await nextTurn();
      if (!isOver) controller.abort(new StoreSilent(`The store said nothing for ${silenceMs} ms.`));
    };
    const timer = setTimeout(() => void onSilence(), silenceMs);
    try {
      return await call(controller.signal, () => timer.refresh());
    } finally {
      isOver = true;
      clearTimeout(timer);
      if (!controller.signal.aborted) this.heardAt = performance.now();
    }
  }

  private noteSilence(startedAt: number): void {
    if (this.isAway || this.isClosed || this.heardAt >= startedAt) return;
    this.isAway = true;
    this.options.onChange?.(true);
    this.probeLater();
  }

  private probeLater(): void {
    if (this.isClosed) return;
    this.probeTimer = setTimeout(() => void this.probe(), this.options.probeMs).unref();
  }

  private async probe(): Promise<void> {
    const controller = new AbortController();
    await this.attempt(this.options.probe, controller, this.options.silenceMs).catch(ignore);
    if (controller.signal.aborted) return this.probeLater();
    this.isAway = false;
    if (!this.isClosed) this.options.onChange?.(false);
  }
}

function ignore(): void {}
