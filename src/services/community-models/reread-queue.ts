/** What is kept in memory of the database's rows, read again when they are announced to have changed. */

/** Rows that are read at once. */
const BATCH = 500;
/** When what could not be read is tried again. */
const RETRY_MS = 1_000;

/** One batch at a time: of two readings of a row, the later one is written down later. */
export class RereadQueue {
  private readonly stale = new Set<string>();
  /** Never rejects. */
  private running: Promise<void> | null = null;
  private isClosed = false;

  constructor(
    /** Reads these rows, and writes down which of them there are. */
    private readonly read: (ids: readonly string[]) => Promise<void>,
    private readonly onFailure: (error: unknown) => void,
  ) {}

  add(ids: Iterable<string>): void {
    if (this.isClosed) return;
    for (const id of ids) this.stale.add(id);
    if (this.stale.size > 0) this.running ??= this.run();
  }

  /** Does `work` while nothing is read; what is announced meanwhile is read after it. */
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

  /** Resolves when what has been announced so far has been read, or could not be for now. */
  async upToDate(): Promise<void> {
    await this.running;
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await this.running;
  }

  private async run(): Promise<void> {
    // Whatever else is announced in this turn is read along with it.
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
