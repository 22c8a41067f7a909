/**
 * Distinguishes a silent database (stopped, swapped out, behind a dead network) from a slow one.
 *
 * 1. When a statement has no answer after a second, the database is pinged on a separate connection. If it answers, even with an error, the
 *    statement may continue: reports and locks take their time.
 * 2. Without an answer the database counts as silent: waiting statements fail, and further ones fail at once, so that a request with
 *    several statements waits once.
 * 3. A silent database is pinged until it answers.
 */
import { Absence, readArrived } from "./absence.js";

/** Milliseconds that a statement waits before a ping, and again after each answer. */
export const DATABASE_LOOK_MS = 1_000;
/** Milliseconds to wait for the answer to a ping. */
export const DATABASE_PING_MS = 2_000;
/** Milliseconds between two pings of a silent database. */
export const DATABASE_PROBE_MS = 500;

export class DatabaseSilent extends Error {
  override readonly name = "DatabaseSilent";

  constructor() {
    super("The database does not answer.");
  }
}

export interface DatabaseWatchOptions {
  /** Settles with the database's answer, also an error. */
  readonly ping: () => Promise<unknown>;
  readonly lookMs?: number;
  readonly pingMs?: number;
  readonly probeMs?: number;
  readonly onChange?: (isSilent: boolean) => void;
}

export class DatabaseWatch {
  private readonly absence: Absence;
  private isClosed = false;
  private looking: Promise<void> | null = null;
  private readonly lookMs: number;
  private readonly pingMs: number;

  constructor(private readonly options: DatabaseWatchOptions) {
    const { lookMs = DATABASE_LOOK_MS, pingMs = DATABASE_PING_MS, probeMs = DATABASE_PROBE_MS, onChange } = options;
    this.lookMs = lookMs;
    this.pingMs = pingMs;
    this.absence = new Absence({ probe: () => this.answers(), probeMs, onChange });
  }

  get isSilent(): boolean {
    return this.absence.isAway;
  }

  /** Rejects with DatabaseSilent, while `work` continues, or as `work` does. */
  async call<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.isSilent) throw new DatabaseSilent();
    let end: () => void = () => undefined;
    const silence = new Promise<never>((_, reject) => {
      end = this.begin(() => reject(new DatabaseSilent()));
    });
    return Promise.race([work(), silence]).finally(end);
  }

  /** Calls `onSilence` when the database falls silent, until the returned function is called. */
  begin(onSilence: () => void): () => void {
    let timer: NodeJS.Timeout | undefined;
    let isOver = false;
    const look = async () => {
      await this.look();
      if (isOver) return;
      if (this.isSilent) onSilence();
      else wait();
    };
    const wait = () => {
      timer = setTimeout(() => void look(), this.lookMs).unref();
    };
    wait();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }

  close(): void {
    this.isClosed = true;
    this.absence.close();
  }

  /** One ping for all concurrent looks. */
  private look(): Promise<void> {
    if (this.isSilent || this.isClosed) return Promise.resolve();
    this.looking ??= this.answers().then((isHeard) => {
      this.looking = null;
      if (!isHeard) this.absence.begin();
    });
    return this.looking;
  }

  private async answers(): Promise<boolean> {
    let isHeard = false;
    const hear = () => {
      isHeard = true;
    };
    let timer: NodeJS.Timeout | undefined;
    const timeUp = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.pingMs).unref();
    });
    await Promise.race([this.options.ping().then(hear, hear), timeUp]);
    clearTimeout(timer);
    await readArrived();
    return isHeard;
  }
}
