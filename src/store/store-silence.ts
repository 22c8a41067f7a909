/**
 * Bounds the wait for a remote store that accepts connections but does not answer, because it is stopped or swaps.
 *
 * 1. A call fails with StoreSilent when the store has been silent for too long. Any progress of the call restarts that time.
 * 2. When nothing else was received from the store since the call began, the store counts as unavailable: further calls fail at once, so
 *    that a request with several calls waits once.
 * 3. An unavailable store is probed until it answers anything.
 */
import { Readable } from "node:stream";
import { Absence, type AbsenceOptions, readArrived } from "./absence.js";

export class StoreSilent extends Error {
  override readonly name = "StoreSilent";
}

export interface StoreSilenceOptions extends Pick<AbsenceOptions, "probeMs" | "onChange"> {
  /** A cheap request. */
  readonly probe: (signal: AbortSignal) => Promise<unknown>;
  /** Milliseconds of silence allowed for a call, in all attempts together. */
  readonly silenceMs: number;
}

/** `noteProgress` restarts the time of silence. */
export type StoreCall<Result> = (signal: AbortSignal, noteProgress: () => void) => Promise<Result>;

export class StoreSilence {
  private heardAt = Number.NEGATIVE_INFINITY;
  private readonly absence: Absence;

  constructor(private readonly options: StoreSilenceOptions) {
    const { probeMs, onChange } = options;
    this.absence = new Absence({ probe: () => this.answers(), probeMs, onChange });
  }

  /** Rejects with StoreSilent, or as `call` does. Only silence leads to another attempt. */
  async call<Result>(call: StoreCall<Result>, attempts = 1): Promise<Result> {
    const startedAt = performance.now();
    for (let attempt = 1; ; attempt += 1) {
      if (this.absence.isAway) throw new StoreSilent("The store has not answered for a while.");
      const controller = new AbortController();
      try {
        return await this.attempt(call, controller, this.options.silenceMs / attempts);
      } catch (error) {
        if (!controller.signal.aborted) throw error;
        if (attempt < attempts) continue;
        if (this.heardAt < startedAt) this.absence.begin();
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
    this.absence.close();
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
      await readArrived();
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

  private async answers(): Promise<boolean> {
    const controller = new AbortController();
    await this.attempt(this.options.probe, controller, this.options.silenceMs).catch(ignore);
    return !controller.signal.aborted;
  }
}

function ignore(): void {}
