/** Periodic background work of a process. */
import type { Logger } from "pino";

/** Runs never overlap and never reject: a failed run is logged as `failure`, and the next one follows all the same. */
export class Repeated {
  private running: Promise<void> | null = null;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly work: () => unknown,
    private readonly log: Pick<Logger, "warn">,
    private readonly failure: string,
  ) {}

  /** Starts one interval from now. Does not keep the process alive. */
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

  /** Stops, and resolves when the run under way has ended. */
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
