/** Tracks the absence of a remote store, for StoreSilence and DatabaseWatch. */
import { setImmediate as nextTurn } from "node:timers/promises";

export interface AbsenceOptions {
  /** Resolves with whether the store answered, also with an error. */
  readonly probe: () => Promise<boolean>;
  /** Milliseconds between two probes. */
  readonly probeMs: number;
  /** Called when the store becomes unavailable, and when it is back. */
  readonly onChange?: ((isAway: boolean) => void) | undefined;
}

/** A store that is away is probed until it answers. */
export class Absence {
  private isNow = false;
  private isClosed = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly options: AbsenceOptions) {}

  get isAway(): boolean {
    return this.isNow;
  }

  begin(): void {
    if (this.isNow || this.isClosed) return;
    this.isNow = true;
    this.options.onChange?.(true);
    this.probeLater();
  }

  /** No more probes, and no more calls of `onChange`. */
  close(): void {
    this.isClosed = true;
    clearTimeout(this.timer);
  }

  private probeLater(): void {
    if (this.isClosed) return;
    this.timer = setTimeout(() => void this.probe(), this.options.probeMs).unref();
  }

  private async probe(): Promise<void> {
    if (!(await this.options.probe())) return this.probeLater();
    this.isNow = false;
    if (!this.isClosed) this.options.onChange?.(false);
  }
}

/** Resolves when a busy process has read answers that arrived before its timers were due. */
export async function readArrived(): Promise<void> {
  await nextTurn();
  await nextTurn();
}
