/**
 * Bounds an `LRUCache` to `count` entries without preallocation: the library's own `max` allocates room for all entries, which for large
 * caches costs each start tens of milliseconds and megabytes.
 */
export function entriesMax(count: number): { readonly maxSize: number; readonly sizeCalculation: () => number } {
  return { maxSize: count, sizeCalculation: () => 1 };
}

/** Counts by name, up to a bound. */
export class BoundedCounter {
  readonly #counts = new Map<string, number>();

  constructor(private readonly max: number) {}

  /** False, without counting, at the bound. */
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

/** Remembers ids, evicting the oldest. */
export class RecentIds {
  private readonly ids = new Set<string>();

  constructor(private readonly max: number) {}

  has(id: string): boolean {
    return this.ids.has(id);
  }

  /** False for a known id. */
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
