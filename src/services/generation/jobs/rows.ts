/**
 * The rows of generation jobs. Every change of state is one statement that names the state before, so that of several that
 * happen at once one wins: a job is cancelled or charged, never both, and finished once.
 */
import type { Clock } from "../../../lib/clock.js";
import { isUuid } from "../../../lib/ids.js";
import { COUNT_TAKE, newestFirst, type PageRequest } from "../../../lib/pagination.js";
import { toStorable } from "../../../lib/storable-text.js";
import { JOB_RESULT_HOURS, JOBS_PER_ACCOUNT_MAX } from "../../../limits.js";
import type { Database } from "../../../store/database.js";
import type { Prisma } from "../../../store/generated/prisma/client.js";
import type { GenerationJobModel } from "../../../store/generated/prisma/models.js";
import { type Receipt, toStoredReceipt } from "../receipt.js";
import { blobKeyOf, type GenerationJob, JOB_BLOB_FOLDER, type JobError, type StoredRequest } from "./job.js";

const RESULT_MS = JOB_RESULT_HOURS * 60 * 60 * 1000;
/** Of PostgreSQL's advisory locks of two numbers, those that count an account's jobs. */
const COUNT_LOCK_CLASS = 0x6a6f62;

const JOB_IDENTITY = { id: true, createdAt: true } as const;
const JOB_OWNER = { ...JOB_IDENTITY, accountId: true, apiKeyId: true, status: true, progress: true } as const;

/** A row with what was selected of it. */
export type SelectedJob = Pick<GenerationJobModel, keyof typeof JOB_IDENTITY>;
export type OwnedJob = Pick<GenerationJobModel, keyof typeof JOB_OWNER>;

interface NewJob extends Pick<GenerationJob, "id" | "accountId" | "apiKeyId" | "modality" | "model" | "input"> {
  /** See StoredRequest. */
  readonly parentRequestId: string | undefined;
}

export class JobRows {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly processId: string,
  ) {}

  /** False when the account has as many running jobs as it may. The lock makes counting and adding one act. */
  async add({ id, accountId, apiKeyId, modality, model, input, parentRequestId }: NewJob): Promise<boolean> {
    const { prisma } = this.database;
    const request = JSON.stringify({ input, parentRequestId } satisfies StoredRequest, storable);
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

  /** False when the job is not running any more. 100 is left to `made`. */
  async progress(id: string, percent: number): Promise<boolean> {
    const changed = await this.database.prisma.$executeRaw`
      UPDATE generation_job SET progress = greatest(progress, ${Math.min(percent, 99)}::smallint), updated_at = ${this.clock.now()}
      WHERE id = ${id}::uuid AND status = 'running'`;
    return changed > 0;
  }

  /** The result is stored and about to be charged: nobody can cancel it any more. False when somebody has. */
  async made(id: string, made: NonNullable<StoredRequest["made"]>): Promise<boolean> {
    const more = JSON.stringify({ made } satisfies Partial<StoredRequest>);
    const changed = await this.database.prisma.$executeRaw`
      UPDATE generation_job SET progress = 100, request = request || ${more}::jsonb, updated_at = ${this.clock.now()}
      WHERE id = ${id}::uuid AND status = 'running'`;
    return changed > 0;
  }

  /** It has been charged. That is final: whatever another process may have taken it for meanwhile, it has succeeded. */
  async succeed(id: string, contentType: string, receipt: Receipt): Promise<void> {
    const { now, expiresAt } = this.finishTimes();
    await this.database.prisma.$executeRaw`
      UPDATE generation_job SET status = 'succeeded', progress = 100, result_key = ${blobKeyOf(id)}, result_content_type = ${contentType},
        receipt = ${JSON.stringify(toStoredReceipt(receipt), storable)}::jsonb, error_code = NULL, error_message = NULL,
        finished_at = ${now}, updated_at = ${now}, expires_at = ${expiresAt}
      WHERE id = ${id}::uuid AND status <> 'succeeded'`;
  }

  /** What was charged for a job that was cancelled when its upstream had begun. */
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

  /** False when it is too late: it is finished, or about to be charged. */
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

  /** With what is selected of them, and what says whose they are and how far they have come. */
  findSelected(ids: readonly string[], select: Prisma.GenerationJobSelect): Promise<OwnedJob[]> {
    return this.database.prisma.generationJob.findMany({
      where: { id: { in: ids.filter(isUuid) }, expiresAt: { gt: this.clock.now() } },
      select: { ...select, ...JOB_OWNER },
    });
  }

  /** One more than `first`, newest first, with what is selected of them. */
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

/** For JSON.stringify: an upstream's words may be what PostgreSQL does not store. */
function storable(_name: string, value: unknown): unknown {
  return typeof value === "string" ? toStorable(value) : value;
}

/** Which blobs are results of generation jobs: what the search for orphans asks. */
export async function findJobBlobs(database: Database, keys: readonly string[]): Promise<ReadonlySet<string>> {
  const ids = keys.map((key) => key.slice(JOB_BLOB_FOLDER.length + 1)).filter((id) => isUuid(id));
  const jobs = await database.prisma.generationJob.findMany({ where: { id: { in: ids } }, select: { id: true } });
  return new Set(jobs.map(({ id }) => blobKeyOf(id)));
}
