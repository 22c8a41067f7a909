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
