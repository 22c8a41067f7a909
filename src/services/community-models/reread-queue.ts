/** Rereads rows that are kept in memory when they are announced to have changed. */

const BATCH = 500;
/** Delay before a failed read is retried. */
const RETRY_MS = 1_000;

/** One batch at a time, so that the later read of a row is applied later. */
export class RereadQueue {
  private readonly stale = new Set<string>();
  /** Never rejects. */
  private running: Promise<void> | null = null;
  private isClosed = false;

  constructor(
    /** Reads these rows, and applies which of them exist. */
    private readonly read: (ids: readonly string[]) => Promise<void>,
    private readonly onFailure: (error: unknown) => void,
  ) {}

  add(ids: Iterable<string>): void {
    if (this.isClosed) return;
    for (const id of ids) this.stale.add(id);
    if (this.stale.size > 0) this.running ??= this.run();
  }

  /** Runs `work` while nothing is read; rows announced meanwhile are read after it. */
  async between(work: () => Promise<void>): Promise<void> {
    while (this.running) await this.running;
    const done = Promise.resolve().then(work);
    this.running = done.catch(() => undefined);
    try {
      await done;
    } finally {
      this.running = null;
      this.add([]);
    }
  }

  /** Resolves when all announced rows were reread, or that failed for now. */
  async upToDate(): Promise<void> {
    await this.running;
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await this.running;
  }

  private async run(): Promise<void> {
    // Gathers rows announced in the same turn.
    await Promise.resolve();
    let isFailing = false;
    while (this.stale.size > 0 && !isFailing && !this.isClosed) {
      const ids = [...this.stale].slice(0, BATCH);
      for (const id of ids) this.stale.delete(id);
      await this.read(ids).catch((error: unknown) => {
        isFailing = true;
        for (const id of ids) this.stale.add(id);
        this.onFailure(error);
      });
    }
    this.running = null;
    if (isFailing) setTimeout(() => this.add([]), RETRY_MS).unref();
  }
}
