/** Work that a process does again and again for as long as it lives. */
import type { Logger } from "pino";

/** Never runs twice at the same time, and never rejects: a run that fails is logged as `failure`, and the next one comes all the same. */
export class Repeated {
  private running: Promise<void> | null = null;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly work: () => unknown,
    private readonly log: Pick<Logger, "warn">,
    private readonly failure: string,
  ) {}

  /** Begins one interval from now. Keeps no process alive. */
  every(intervalMs: number): this {
    clearInterval(this.timer);
    this.timer = setInterval(() => void this.now(), intervalMs).unref();
    return this;
  }

  /** Runs the work now, or joins the run under way. */
  now(): Promise<void> {
    this.running ??= this.run().finally(() => {
      this.running = null;
    });
    return this.running;
  }

  /** Repeats no more, and resolves when the run under way has ended. */
  async close(): Promise<void> {
    clearInterval(this.timer);
    await this.running;
  }

  private async run(): Promise<void> {
    try {
      await this.work();
    } catch (error) {
      this.log.warn({ err: error }, this.failure);
    }
  }
}
