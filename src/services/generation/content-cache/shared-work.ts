/**
 * Work that several callers wait for at once: it begins with the first, and is given up when the last has left. Nobody's leaving
 * takes it from the others.
 */

/** Why the work's signal is aborted. */
export class NobodyWaits extends Error {
  override readonly name = "NobodyWaits";
}

interface Flight<Result> {
  readonly result: Promise<Result>;
  readonly controller: AbortController;
  waiting: number;
}

export class SharedWork<Result> {
  private readonly flights = new Map<string, Flight<Result>>();

  /**
   * The result of the work that goes on under the key, begun by `work` when there is none. Rejects with the work's error, or with the
   * signal's reason as soon as that is aborted. `isFirst`: this call began it.
   */
  join(key: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<Result>): { isFirst: boolean; result: Promise<Result> } {
    const known = this.flights.get(key);
    const flight = known ?? this.begin(key, work);
    return { isFirst: known === undefined, result: this.wait(key, flight, signal) };
  }

  private begin(key: string, work: (signal: AbortSignal) => Promise<Result>): Flight<Result> {
    const controller = new AbortController();
    const result = work(controller.signal);
    const flight: Flight<Result> = { controller, waiting: 0, result };
    this.flights.set(key, flight);
    const forget = () => this.forget(key, flight);
    result.then(forget, forget);
    return flight;
  }

  private wait(key: string, flight: Flight<Result>, signal: AbortSignal): Promise<Result> {
    flight.waiting += 1;
    return new Promise((resolve, reject) => {
      const leave = () => {
        reject(signal.reason);
        flight.waiting -= 1;
        if (flight.waiting > 0) return;
        // Whoever comes now begins anew: this one has no answer to give any more.
        this.forget(key, flight);
        flight.controller.abort(new NobodyWaits("Nobody waits for this answer any more"));
      };
      if (signal.aborted) return leave();
      signal.addEventListener("abort", leave, { once: true });
      const stay = () => signal.removeEventListener("abort", leave);
      flight.result.finally(stay).then(resolve, reject);
    });
  }

  private forget(key: string, flight: Flight<Result>): void {
    if (this.flights.get(key) === flight) this.flights.delete(key);
  }
}
