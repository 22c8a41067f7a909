/**
 * Finishes deletions after their commit. Any process does it, repeatedly, until the account has nothing under way. Each step is idempotent.
 *
 * - credits released by holds and leases are forfeited, and outputs of requests that were under way expire;
 * - then connections to outside apps are ended at their broker, which may be unavailable;
 * - usage rows lose the names of keys, and failures in the request log are deleted, in batches.
 */
import type { Logger } from "pino";
import type { Clock } from "../../lib/clock.js";
import { createId } from "../../lib/ids.js";
import { newestFirst, type PagePosition } from "../../lib/pagination.js";
import { Repeated } from "../../lib/repeated.js";
import type { Database } from "../../store/database.js";
import type { Leases } from "../credits/leases.js";
import type { IntegrationsBroker } from "../integrations/broker.js";
import type { FailureRetention } from "../request-log/failure-retention.js";
import { ERASED_AT_ONCE_MAX, ERASED_NAMES_AT_ONCE_MAX, ERASURE_SWEEP_MS } from "./limits.js";

export interface AccountErasureParts {
  readonly database: Database;
  readonly broker: Pick<IntegrationsBroker, "listConnections" | "disconnect">;
  readonly leases: Pick<Leases, "recall">;
  readonly failures: Pick<FailureRetention, "deleteOf">;
  readonly clock: Clock;
  readonly log: Logger;
}

export class AccountErasure {
  private readonly sweeps: Repeated;
  private readonly closing = new AbortController();

  constructor(private readonly parts: AccountErasureParts) {
    this.sweeps = new Repeated(() => this.sweep(), parts.log, "could not finish the deletion of accounts; it is tried again");
  }

  start(): void {
    void this.sweeps.every(ERASURE_SWEEP_MS).now();
  }

  /** Call after a deletion. */
  soon(): void {
    void this.sweeps.now();
  }

  async close(): Promise<void> {
    this.closing.abort();
    await this.sweeps.close();
  }

  /** Returns the number of finished deletions. A failed one delays no other. */
  async sweep(): Promise<number> {
    const { database, log } = this.parts;
    const unfinished = await database.prisma.accountDeletion.findMany({
      where: { finishedAt: null },
      orderBy: [{ deletedAt: "asc" }, { accountId: "asc" }],
      select: { accountId: true },
      take: ERASED_AT_ONCE_MAX,
    });
    let finished = 0;
    for (const { accountId } of unfinished) {
      if (this.closing.signal.aborted) break;
      const isFinished = await this.erase(accountId).catch((error: unknown) => {
        log.warn({ err: error, accountId }, "the deletion of an account could not be finished; it is tried again");
        return false;
      });
      if (isFinished) finished += 1;
    }
    return finished;
  }

  /** False while something is under way. */
  private async erase(accountId: string): Promise<boolean> {
    const { prisma } = this.parts.database;
    await this.parts.leases.recall(accountId);
    // Checked before the rest, so that work that ends in between is handled now.
    const isBusy = await this.isBusy(accountId);
    const now = this.parts.clock.now();
    const isKept = { accountId, expiresAt: { gt: now } };
    await prisma.generationJob.updateMany({ where: { ...isKept, finishedAt: { not: null } }, data: { expiresAt: now } });
    await prisma.idempotentRequest.updateMany({ where: { ...isKept, status: "done" }, data: { expiresAt: now } });
    await prisma.storedResponse.deleteMany({ where: { accountId } });
    await prisma.conversation.deleteMany({ where: { accountId } });
    await prisma.autoTopUp.deleteMany({ where: { accountId } });
    await prisma.paymentCustomer.deleteMany({ where: { accountId } });
    await prisma.$queryRaw`SELECT credit_forfeit(${createId()}::uuid, ${accountId}::uuid)`;
    if (isBusy) return false;
    await this.disconnect(accountId);
    await this.eraseNames(accountId);
    await this.parts.failures.deleteOf(accountId);
    const { count } = await prisma.accountDeletion.updateMany({ where: { accountId, finishedAt: null }, data: { finishedAt: now } });
    return count > 0;
  }

  private async disconnect(accountId: string): Promise<void> {
    const { broker } = this.parts;
    const { signal } = this.closing;
    for (const { id } of await broker.listConnections(accountId, signal)) await broker.disconnect(accountId, id, signal);
  }

  /** Whether something may still be charged. */
  private async isBusy(accountId: string): Promise<boolean> {
    const { prisma } = this.parts.database;
    const where = { accountId };
    const counts = await Promise.all([
      prisma.hold.count({ where }),
      prisma.creditLease.count({ where }),
      prisma.generationJob.count({ where: { accountId, finishedAt: null } }),
    ]);
    return counts.some((count) => count > 0);
  }

  private async eraseNames(accountId: string): Promise<void> {
    const { usageRecord } = this.parts.database.prisma;
    let after: PagePosition | undefined;
    do {
      const { where: older, ...query } = newestFirst({ first: ERASED_NAMES_AT_ONCE_MAX, after }, "timestamp");
      const rows = await usageRecord.findMany({ where: { accountId, ...older }, select: { id: true, timestamp: true }, ...query });
      const named = { id: { in: rows.map(({ id }) => id) }, apiKeyName: { not: null } };
      await usageRecord.updateMany({ where: named, data: { apiKeyName: null } });
      after = rows.length > ERASED_NAMES_AT_ONCE_MAX ? rows.at(-1) : undefined;
    } while (after && !this.closing.signal.aborted);
  }
}
