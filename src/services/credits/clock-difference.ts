/** Compares this process's clock with the database's: usage, budgets and log lines take their times from the process. */
import type { Logger } from "pino";
import type { Clock } from "../../lib/clock.js";
import { CLOCK_DIFFERENCE_MS_MAX } from "../../limits.js";

export class ClockDifference {
  private isReported = false;

  constructor(
    private readonly clock: Clock,
    private readonly log: Logger,
  ) {}

  /** `readDatabaseTime` resolves with the time of the database at some moment of the call. Warns once for each lasting difference. */
  async check(readDatabaseTime: () => Promise<Date>): Promise<void> {
    const before = this.clock.now().getTime();
    const database = (await readDatabaseTime()).getTime();
    const after = this.clock.now().getTime();
    const aheadMs = database < before ? before - database : database > after ? after - database : 0;
    const isLarge = Math.abs(aheadMs) > CLOCK_DIFFERENCE_MS_MAX;
    if (isLarge && !this.isReported) {
      this.log.warn(
        { aheadMs },
        `the clock of this machine is ${Math.round(Math.abs(aheadMs) / 1000)} s ${aheadMs > 0 ? "ahead of" : "behind"} the database's: usage, budgets and expiry get wrong times until both are right`,
      );
    }
    this.isReported = isLarge;
  }
}
