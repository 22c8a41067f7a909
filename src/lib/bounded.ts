/**
 * The bound of an `LRUCache` of so many entries. The library's own `max` lays out room for all of them when the cache is made: of large
 * ones that is tens of milliseconds and megabytes of every start. This takes it as they come.
 */
export function entriesMax(count: number): { readonly maxSize: number; readonly sizeCalculation: () => number } {
  return { maxSize: count, sizeCalculation: () => 1 };
}

/** How many of each there are, up to a bound. */
export class BoundedCounter {
  readonly #counts = new Map<string, number>();

  constructor(private readonly max: number) {}

  /** False, and nothing is counted, when there are as many as may be. */
  add(name: string): boolean {
    const count = this.#counts.get(name) ?? 0;
    if (count >= this.max) return false;
    this.#counts.set(name, count + 1);
    return true;
  }

  remove(name: string): void {
    const count = (this.#counts.get(name) ?? 0) - 1;
    if (count > 0) this.#counts.set(name, count);
    else this.#counts.delete(name);
  }
}

/** Ids that have been seen, of which the oldest are forgotten. */
export class RecentIds {
  private readonly ids = new Set<string>();

  constructor(private readonly max: number) {}

  has(id: string): boolean {
    return this.ids.has(id);
  }

  /** False when it has been seen. */
  add(id: string): boolean {
    if (this.ids.has(id)) return false;
    this.ids.add(id);
    if (this.ids.size > this.max) {
      const [oldest = id] = this.ids;
      this.ids.delete(oldest);
    }
    return true;
  }
}
