/**
 * Jobs that nobody works on any more: their process died, or it could not write down how they ended. What was charged has succeeded,
 * whatever else happened; anything else has failed at no cost. Several processes may look at the same job: the first one decides.
 */
import type { Logger } from "pino";
import type { Clock } from "../../../lib/clock.js";
import { HEARTBEAT_DEAD_MS } from "../../../limits.js";
import type { BlobStore } from "../../../store/blobs.js";
import type { Database } from "../../../store/database.js";
import type { Events } from "../../../store/events.js";
import { blobKeyOf, receiptOfRecord, type StoredRequest } from "./job.js";
import type { JobRows } from "./job-rows.js";

const JOBS_A_SWEEP_MAX = 200;

interface AbandonedJob {
  readonly id: string;
  readonly account_id: string;
  readonly request: StoredRequest;
}

export interface JobRecoveryDependencies {
  readonly database: Database;
  readonly rows: JobRows;
  readonly blobs: BlobStore;
  readonly clock: Clock;
  readonly processId: string;
  readonly log: Logger;
  /** The jobs that this process is working on. */
  readonly running: () => readonly string[];
  readonly events: Events;
}

export class JobRecovery {
  constructor(private readonly deps: JobRecoveryDependencies) {}

  async sweep(): Promise<void> {
    for (const job of await this.findAbandoned()) await this.conclude(job);
    await this.removeExpired();
  }

  private async conclude({ id, account_id: accountId, request }: AbandonedJob): Promise<void> {
    const { database, rows, blobs, log, events } = this.deps;
    const record = await database.prisma.usageRecord.findUnique({ where: { id } });
    if (record && request.made) {
      await rows.succeed(id, request.made.contentType, receiptOfRecord(record));
    } else {
      // While its hold is there it may still be charged: the hold's own recovery comes first.
      const isHeld = (await database.prisma.hold.count({ where: { id } })) > 0;
      if (isHeld) return;
      const message = "The gateway's process ended while it worked on this. Nothing was charged.";
      if (await rows.fail(id, { code: "SERVICE_UNAVAILABLE", message })) await blobs.delete(blobKeyOf(id));
    }
    log.warn({ generationId: id, isCharged: record !== null }, "concluded a generation job that nobody worked on any more");
    events.publish("generation-changed", { accountId, generationId: id, status: record ? "succeeded" : "failed" });
  }

  private async findAbandoned(): Promise<AbandonedJob[]> {
    const { database, processId, running } = this.deps;
    const deadAfterSeconds = HEARTBEAT_DEAD_MS / 1000;
    const jobs = await database.prisma.$queryRaw<AbandonedJob[]>`
      SELECT j.id, j.account_id, j.request, j.process_id = ${processId}::uuid AS is_own
      FROM generation_job j LEFT JOIN gateway_process p ON p.id = j.process_id
      WHERE j.status = 'running'
        AND (p.id IS NULL OR p.heartbeat_at < now() - make_interval(secs => ${deadAfterSeconds}) OR j.process_id = ${processId}::uuid)
      ORDER BY j.id LIMIT ${JOBS_A_SWEEP_MAX}`;
    // Asked last, because what it began before the query is in the query's answer.
    const own = new Set(running());
    return jobs.filter(({ id }) => !own.has(id));
  }

  /** The blob first: a row that is left over finds its way here again. */
  private async removeExpired(): Promise<void> {
    const { database, blobs, clock } = this.deps;
    const { generationJob } = database.prisma;
    const expired = await generationJob.findMany({
      where: { expiresAt: { lte: clock.now() }, finishedAt: { not: null } },
      select: { id: true },
      take: JOBS_A_SWEEP_MAX,
    });
    for (const { id } of expired) await blobs.delete(blobKeyOf(id));
    await generationJob.deleteMany({ where: { id: { in: expired.map(({ id }) => id) } } });
  }
}
