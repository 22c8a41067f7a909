/**
 * Rows of generation jobs. Every change of state is one statement with the previous state as its condition, so that of concurrent changes
 * one wins: a job is cancelled or charged, never both, and finished once.
 */
import type { Clock } from "../../../lib/clock.js";
import { isUuid } from "../../../lib/ids.js";
import { COUNT_TAKE, newestFirst, type PageRequest } from "../../../lib/pagination.js";
import type { LateFailure } from "../../../lib/request-note.js";
import { toStorable } from "../../../lib/storable-text.js";
import { JOB_RESULT_HOURS, JOBS_PER_ACCOUNT_MAX } from "../../../limits.js";
import type { Database } from "../../../store/database.js";
import type { Prisma } from "../../../store/generated/prisma/client.js";
import type { GenerationJobModel } from "../../../store/generated/prisma/models.js";
import { type Receipt, toStoredReceipt } from "../receipt.js";
import { blobKeyOf, type GenerationJob, JOB_BLOB_FOLDER, type JobError, type StoredRequest } from "./job.js";

const RESULT_MS = JOB_RESULT_HOURS * 60 * 60 * 1000;
/** Class of PostgreSQL's two-number advisory locks for counting an account's jobs. */
const COUNT_LOCK_CLASS = 0x6a6f62;

const JOB_IDENTITY = { id: true, createdAt: true } as const;
const JOB_OWNER = { ...JOB_IDENTITY, accountId: true, apiKeyId: true, status: true, progress: true } as const;

export type SelectedJob = Pick<GenerationJobModel, keyof typeof JOB_IDENTITY>;
export type OwnedJob = Pick<GenerationJobModel, keyof typeof JOB_OWNER>;

interface NewJob extends Pick<GenerationJob, "id" | "accountId" | "apiKeyId" | "modality" | "model" | "input"> {
  readonly parentRequestId: string | undefined;
  readonly startedBy: LateFailure["request"];
}

export class JobRows {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly processId: string,
  ) {}

  /** False when the account has its maximum of running jobs. The lock makes counting and adding atomic. */
  async add({ id, accountId, apiKeyId, modality, model, input, parentRequestId, startedBy }: NewJob): Promise<boolean> {
    const { prisma } = this.database;
    const request = JSON.stringify({ input, parentRequestId, startedBy } satisfies StoredRequest, storable);
    const now = this.clock.now();
    const [, added] = await prisma.$transaction([
      prisma.$queryRaw`SELECT pg_advisory_xact_lock(${COUNT_LOCK_CLASS}::int, hashtext(${accountId}))::text`,
      prisma.$executeRaw`
        INSERT INTO generation_job (id, account_id, api_key_id, modality, model, status, request, process_id, created_at, updated_at, expires_at)
        SELECT ${id}::uuid, ${accountId}::uuid, ${apiKeyId}::uuid, ${modality}::"Modality", ${model}, 'running', ${request}::jsonb,
               ${this.processId}::uuid, ${now}, ${now}, ${new Date(now.getTime() + RESULT_MS)}
        WHERE (SELECT count(*) FROM generation_job WHERE account_id = ${accountId}::uuid AND status = 'running') < ${JOBS_PER_ACCOUNT_MAX}`,
    ]);
    return added > 0;
  }

  /** False when the job is no longer running. 100 is set by `made`. */
  async progress(id: string, percent: number): Promise<boolean> {
    const changed = await this.database.prisma.$executeRaw`
      UPDATE generation_job SET progress = greatest(progress, ${Math.min(percent, 99)}::smallint), updated_at = ${this.clock.now()}
      WHERE id = ${id}::uuid AND status = 'running'`;
    return changed > 0;
  }

  /** Marks the result as stored and about to be charged: it cannot be cancelled afterwards. False when it was cancelled before. */
  async made(id: string, made: NonNullable<StoredRequest["made"]>): Promise<boolean> {
    const more = JSON.stringify({ made } satisfies Partial<StoredRequest>);
    const changed = await this.database.prisma.$executeRaw`
      UPDATE generation_job SET progress = 100, request = request || ${more}::jsonb, updated_at = ${this.clock.now()}
      WHERE id = ${id}::uuid AND status = 'running'`;
    return changed > 0;
  }

  /** Marks a charged job as succeeded. Final, even if another process assumed otherwise. */
  async succeed(id: string, contentType: string, receipt: Receipt): Promise<void> {
    const { now, expiresAt } = this.finishTimes();
    await this.database.prisma.$executeRaw`
      UPDATE generation_job SET status = 'succeeded', progress = 100, result_key = ${blobKeyOf(id)}, result_content_type = ${contentType},
        receipt = ${JSON.stringify(toStoredReceipt(receipt), storable)}::jsonb, error_code = NULL, error_message = NULL,
        finished_at = ${now}, updated_at = ${now}, expires_at = ${expiresAt}
      WHERE id = ${id}::uuid AND status <> 'succeeded'`;
  }

  /** Stores the charge of a job that was cancelled after its upstream had begun. */
  async noteCharge(id: string, receipt: Receipt): Promise<void> {
    await this.database.prisma.$executeRaw`
      UPDATE generation_job SET receipt = ${JSON.stringify(toStoredReceipt(receipt), storable)}::jsonb, updated_at = ${this.clock.now()}
      WHERE id = ${id}::uuid AND status = 'cancelled'`;
  }

  /** False when it was finished already. */
  async fail(id: string, error: JobError): Promise<boolean> {
    const { now, expiresAt } = this.finishTimes();
    const { details } = error;
    const more = JSON.stringify(details ? ({ failure: { details } } satisfies Partial<StoredRequest>) : {}, storable);
    const changed = await this.database.prisma.$executeRaw`
      UPDATE generation_job SET status = 'failed', progress = least(progress, 99), error_code = ${error.code}, error_message = ${error.message},
        request = request || ${more}::jsonb, finished_at = ${now}, updated_at = ${now}, expires_at = ${expiresAt}
      WHERE id = ${id}::uuid AND status = 'running'`;
    return changed > 0;
  }

  /** False when it is finished, or about to be charged. */
  async cancel(id: string): Promise<boolean> {
    const { now, expiresAt } = this.finishTimes();
    const changed = await this.database.prisma.$executeRaw`
      UPDATE generation_job SET status = 'cancelled', finished_at = ${now}, updated_at = ${now}, expires_at = ${expiresAt}
      WHERE id = ${id}::uuid AND status = 'running' AND progress < 100`;
    return changed > 0;
  }

  remove(id: string): Promise<unknown> {
    return this.database.prisma.generationJob.deleteMany({ where: { id, finishedAt: { not: null } } });
  }

  find(id: string): Promise<GenerationJobModel | null> {
    return this.database.prisma.generationJob.findFirst({ where: { id, expiresAt: { gt: this.clock.now() } } });
  }

  /** With the selected columns, and those of owner and state. */
  findSelected(ids: readonly string[], select: Prisma.GenerationJobSelect): Promise<OwnedJob[]> {
    return this.database.prisma.generationJob.findMany({
      where: { id: { in: ids.filter(isUuid) }, expiresAt: { gt: this.clock.now() } },
      select: { ...select, ...JOB_OWNER },
    });
  }

  /** One more than `first`, newest first. */
  list(accountId: string, page: PageRequest, select: Prisma.GenerationJobSelect): Promise<SelectedJob[]> {
    const { where: older, ...query } = newestFirst(page);
    return this.database.prisma.generationJob.findMany({
      where: {
        accountId,
        expiresAt: { gt: this.clock.now() },
        ...older,
      },
      select: { ...select, ...JOB_IDENTITY },
      ...query,
    });
  }

  count(accountId: string): Promise<number> {
    return this.database.prisma.generationJob.count({ where: { accountId, expiresAt: { gt: this.clock.now() } }, take: COUNT_TAKE });
  }

  private finishTimes(): { now: Date; expiresAt: Date } {
    const now = this.clock.now();
    return { now, expiresAt: new Date(now.getTime() + RESULT_MS) };
  }
}

/** For JSON.stringify: an upstream's text may be one that PostgreSQL cannot store. */
function storable(_name: string, value: unknown): unknown {
  return typeof value === "string" ? toStorable(value) : value;
}

export async function findJobBlobs(database: Database, keys: readonly string[]): Promise<ReadonlySet<string>> {
  const ids = keys.map((key) => key.slice(JOB_BLOB_FOLDER.length + 1)).filter((id) => isUuid(id));
  const jobs = await database.prisma.generationJob.findMany({ where: { id: { in: ids } }, select: { id: true } });
  return new Set(jobs.map(({ id }) => blobKeyOf(id)));
}
