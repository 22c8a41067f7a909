/**
 * Keeps the roll-ups of usage up to date in the background (docs/decisions/usage-roll-ups.md) by calling the SQL function usage_roll. Also
 * counts failed generations, which have no usage row, in memory, and writes them in one statement each time.
 */
import type { Logger } from "pino";
import type { Clock } from "../../lib/clock.js";
import { Repeated } from "../../lib/repeated.js";
import type { Database } from "../../store/database.js";
import type { Modality } from "../../store/generated/prisma/enums.js";

const ROLL_EVERY_MS = 2_000;
/** Rows per call, during which the embedded database does nothing else. */
const ROLL_ROWS = 2_000;
const ROLL_ROWS_EMBEDDED = 250;
/** Distinct failures counted between two writes; beyond it new ones are not counted. */
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

  /** Call before anything is charged. */
  async open(): Promise<void> {
    await this.database.prisma.$executeRaw`SELECT usage_roll_open()`;
    void this.rolls.every(ROLL_EVERY_MS).now();
  }

  /** Writes the counted failures. Another process rolls up the remaining rows. */
  async close(): Promise<void> {
    this.isClosing = true;
    await this.rolls.close();
    await this.writeFailures();
  }

  /** Resolves when all earlier charges are rolled up, unless another process is doing it. */
  settled(): Promise<void> {
    return this.rolls.now();
  }

  /** Counts a failure; does not wait. */
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

  /** Counts that cannot be written are kept for the next time. */
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
