/** Those who are told when something changes, without being told what. */
export class Listeners {
  readonly #listeners = new Set<() => void>();

  /** Answers with what ends it. */
  readonly add = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  notify(): void {
    for (const listener of this.#listeners) listener();
  }
}
