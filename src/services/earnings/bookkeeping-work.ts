/** Lets earnings mature and granted credits expire. Every process does it; each booking is made once. */
import type { Logger } from "pino";
import type { Clock } from "../../lib/clock.js";
import { createId } from "../../lib/ids.js";
import { Repeated } from "../../lib/repeated.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { Ledger } from "../../store/ledger.js";
import type { Leases } from "../credits/leases.js";
import { MATURITY_DAYS } from "./limits.js";

const EVERY_MS = 60_000;
/** Of one run, so that it does not keep the database busy. */
const ACCOUNTS_MAX = 500;
const GRANTS_MAX = 500;
const DAY_MS = 86_400_000;

export interface BookkeepingDependencies {
  readonly database: Database;
  readonly ledger: Pick<Ledger, "mature" | "expire">;
  readonly leases: Pick<Leases, "recall">;
  readonly events: Events;
  readonly clock: Clock;
  readonly log: Logger;
}

export class BookkeepingWork {
  private readonly runs: Repeated;

  constructor(private readonly deps: BookkeepingDependencies) {
    this.runs = new Repeated(() => this.run(), deps.log, "earnings could not mature, or grants expire; it is tried again");
  }

  open(): void {
    void this.runs.every(EVERY_MS).now();
  }

  close(): Promise<void> {
    return this.runs.close();
  }

  /** Resolves when everything due is booked. */
  async run(): Promise<void> {
    await this.mature();
    await this.expire();
  }

  private async mature(): Promise<void> {
    const { database, ledger, clock } = this.deps;
    const before = new Date(Math.floor(clock.now().getTime() / DAY_MS) * DAY_MS - MATURITY_DAYS * DAY_MS).toISOString().slice(0, 10);
    const due = await database.prisma.$queryRaw<{ readonly accountId: string }[]>`
      SELECT DISTINCT account_id AS "accountId" FROM earning_daily WHERE matured_at IS NULL AND day < ${before}::date LIMIT ${ACCOUNTS_MAX}`;
    for (const { accountId } of due) await ledger.mature(accountId, before);
  }

  private async expire(): Promise<void> {
    const { database, ledger, leases, events, clock } = this.deps;
    const due = await database.prisma.expiringGrant.findMany({
      where: { expiresAt: { lte: clock.now() }, leftNanocredits: { gt: 0n } },
      orderBy: { expiresAt: "asc" },
      take: GRANTS_MAX,
      select: { id: true, accountId: true },
    });
    for (const { id, accountId } of due) {
      // Credits of a lease are held until it is recalled.
      await leases.recall(accountId);
      if ((await ledger.expire(createId(), id)) > 0n) events.publish("balance-changed", { accountId });
    }
  }
}
