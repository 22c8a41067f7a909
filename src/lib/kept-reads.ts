/** Reads by key whose results are kept. Concurrent callers of a key share one read, and a failed one is not kept. */
import { LRUCache } from "lru-cache";
import { entriesMax } from "./bounded.js";

export class KeptReads<Value> {
  private readonly reads: LRUCache<string, Promise<Value>>;

  /** `max`: the number of kept results, of which the least used is forgotten. */
  constructor(
    max: number,
    private readonly read: (key: string) => Promise<Value>,
  ) {
    this.reads = new LRUCache(entriesMax(max));
  }

  get(key: string): Promise<Value> {
    const known = this.reads.get(key);
    if (known) return known;
    const reading = this.read(key);
    this.reads.set(key, reading);
    reading.catch(() => {
      if (this.reads.peek(key) === reading) this.reads.delete(key);
    });
    return reading;
  }

  forget(key: string): void {
    this.reads.delete(key);
  }

  forgetAll(): void {
    this.reads.clear();
  }
}
