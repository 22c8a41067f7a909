/** Set of callbacks without arguments. */
export class Listeners {
  readonly #listeners = new Set<() => void>();

  /** Returns a function that removes the listener. */
  readonly add = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  notify(): void {
    for (const listener of this.#listeners) listener();
  }
}
