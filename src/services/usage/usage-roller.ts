/**
 * What keeps the roll-ups of usage up to date, beside everything that is charged (docs/decisions/usage-roll-ups.md): the SQL function
 * usage_roll, called again and again. And the generations that failed, which are in no usage row: counted in memory, and written down in
 * one statement each time.
 */
import type { Logger } from "pino";
import type { Clock } from "../../lib/clock.js";
import { Repeated } from "../../lib/repeated.js";
import type { Database } from "../../store/database.js";
import type { Modality } from "../../store/generated/prisma/enums.js";

const ROLL_EVERY_MS = 2_000;
/** Rows at once. The embedded database does nothing else meanwhile. */
const ROLL_ROWS = 2_000;
const ROLL_ROWS_EMBEDDED = 250;
/** Different failures that are counted until they are written down; of more, the newest are not counted. */
const FAILURES_MAX = 10_000;
const HOUR_MS = 3_600_000;

export interface FailedGeneration {
  readonly accountId: string;
  readonly apiKeyId: string | null;
  readonly model: string;
  readonly modality: Modality;
}

export class UsageRoller {
  private readonly rolls: Repeated;
  private failures = new Map<string, FailedGeneration & { readonly timestamp: Date; requests: number }>();
  private isClosing = false;

  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    log: Logger,
  ) {
    this.rolls = new Repeated(() => this.roll(), log, "usage could not be rolled up; it is tried again");
  }

  /** Before anything is charged. */
  async open(): Promise<void> {
    await this.database.prisma.$executeRaw`SELECT usage_roll_open()`;
    void this.rolls.every(ROLL_EVERY_MS).now();
  }

  /** Writes down the failures that have been counted. What has not been rolled up is so by whoever comes next. */
  async close(): Promise<void> {
    this.isClosing = true;
    await this.rolls.close();
    await this.writeFailures();
  }

  /** Resolves when everything is rolled up that was charged before, unless another process is at it. */
  settled(): Promise<void> {
    return this.rolls.now();
  }

  /** Nobody waits for it. */
  noteFailure({ accountId, apiKeyId, model, modality }: FailedGeneration): void {
    const hour = Math.floor(this.clock.now().getTime() / HOUR_MS) * HOUR_MS;
    const key = `${hour} ${accountId} ${apiKeyId} ${modality} ${model}`;
    const known = this.failures.get(key);
    if (known) known.requests += 1;
    else if (this.failures.size < FAILURES_MAX)
      this.failures.set(key, { accountId, apiKeyId, model, modality, timestamp: new Date(hour), requests: 1 });
  }

  private async roll(): Promise<void> {
    await this.writeFailures();
    const rows = this.database.isExclusive ? ROLL_ROWS_EMBEDDED : ROLL_ROWS;
    let isBehind = true;
    while (isBehind && !this.isClosing) {
      const [rolled] = await this.database.prisma.$queryRaw<{ is_behind: boolean }[]>`SELECT is_behind FROM usage_roll(${rows}::integer)`;
      isBehind = rolled?.is_behind ?? false;
    }
  }

  /** What cannot be written is kept for the next time. */
  private async writeFailures(): Promise<void> {
    const counted = this.failures;
    if (counted.size === 0) return;
    this.failures = new Map();
    try {
      await this.database.prisma.usageEvent.createMany({ data: [...counted.values()].map((event) => ({ ...event, outcome: "failed" })) });
    } catch (error) {
      for (const [key, event] of this.failures) {
        const before = counted.get(key);
        if (before) before.requests += event.requests;
        else counted.set(key, event);
      }
      this.failures = counted;
      throw error;
    }
  }
}
