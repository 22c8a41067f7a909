/** How many jobs may be at work at once: a number of places, given to those who wait in the order in which they came. */

export class Places {
  private readonly queue: (() => void)[] = [];

  constructor(private free: number) {}

  /** Rejects with the signal's reason when that is aborted first. */
  async take(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.free > 0) {
      this.free -= 1;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const onAbort = () => {
        this.queue.splice(this.queue.indexOf(take), 1);
        reject(signal.reason);
      };
      const take = () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.queue.push(take);
    });
  }

  /** The place changes hands: while somebody waits it is never free in between. */
  give(): void {
    const next = this.queue.shift();
    if (next) next();
    else this.free += 1;
  }
}

/** One job's place, which it takes or gives back any number of times. */
export class Place {
  private isTaken = false;

  constructor(private readonly places: Places) {}

  async take(signal: AbortSignal): Promise<void> {
    if (this.isTaken) return;
    await this.places.take(signal);
    this.isTaken = true;
  }

  give(): void {
    if (!this.isTaken) return;
    this.isTaken = false;
    this.places.give();
  }
}
