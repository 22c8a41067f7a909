/**
 * The source of a subscription. An async generator's `return()` waits for the pending `next()`, which may never settle for a live
 * source. This wrapper ends at once: it aborts the source's signal, and resolves the pending read as done.
 */
import { deriveContext, type RequestContext } from "../context.js";

/** Milliseconds that a source without waits may occupy the process. */
const TURN_MS = 10;

const DONE = { done: true, value: undefined } as const;

/** Opens a source that ends when the caller leaves: by the connection's signal or the iterator's `return()`. */
export function cancellable<Item>(ctx: RequestContext, open: (ctx: RequestContext) => AsyncIterable<Item>): AsyncIterableIterator<Item> {
  const leaving = new AbortController();
  const { signal } = leaving;
  const leave = () => leaving.abort();
  if (ctx.signal.aborted) leave();
  else ctx.signal.addEventListener("abort", leave, { once: true });
  const source = open(deriveContext(ctx, { signal }))[Symbol.asyncIterator]();
  let endWait: (() => void) | undefined;

  const close = () => {
    ctx.signal.removeEventListener("abort", leave);
    endWait?.();
    // The services handle their own failures during cleanup. No reader is left to receive them.
    source.return?.().catch(() => undefined);
  };
  if (signal.aborted) close();
  else signal.addEventListener("abort", close, { once: true });

  let turnEndsAt = performance.now() + TURN_MS;
  const takeTurn = (pull: () => void) => {
    if (performance.now() < turnEndsAt) return pull();
    setImmediate(() => {
      turnEndsAt = performance.now() + TURN_MS;
      pull();
    });
  };

  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next() {
      return new Promise((resolve, reject) => {
        endWait = () => resolve(DONE);
        takeTurn(() => {
          if (signal.aborted) return resolve(DONE);
          source.next().then(
            (result) => {
              if (result.done) leave();
              resolve(result);
            },
            (error: unknown) => {
              if (signal.aborted) resolve(DONE);
              else reject(error);
              leave();
            },
          );
        });
      });
    },
    async return() {
      leave();
      return DONE;
    },
    async throw(error) {
      leave();
      throw error;
    },
  };
}

export interface GenerationStream<Batch, Receipt> {
  readonly batches: AsyncIterableIterator<Batch>;
  /** Null while there is no result. */
  readonly receipt: () => Receipt | null;
}

/**
 * Yields the events of a generation, then one with its receipt. There is a receipt whenever something was charged, even if the stream
 * then fails. Aborting the signal closes the stream itself, also before the first read.
 */
export function generationEvents<Batch, Receipt, Event>(
  { batches, receipt }: GenerationStream<Batch, Receipt>,
  signal: AbortSignal,
  toEvents: (batch: Batch) => Iterable<Event> | AsyncIterable<Event>,
  toEnd: (receipt: Receipt) => Event,
): AsyncIterable<Event> {
  signal.addEventListener("abort", () => void batches.return?.().catch(() => undefined), { once: true });
  const end = () => {
    const charged = receipt();
    return charged === null ? [] : [toEnd(charged)];
  };
  return (async function* read() {
    try {
      for await (const batch of batches) yield* toEvents(batch);
    } catch (error) {
      yield* end();
      throw error;
    }
    yield* end();
  })();
}
