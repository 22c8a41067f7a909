/** Runs generation jobs in this process (see `jobs.ts` for the steps). Only a job's own signal ends it once it has begun. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { deriveContext, type RequestContext } from "../../../context.js";
import { AppError, rateLimited, serviceUnavailable } from "../../../errors.js";
import type { Clock } from "../../../lib/clock.js";
import type { LateFailure, LateFailureObserver } from "../../../lib/request-note.js";
import { HEARTBEAT_DEAD_MS, JOB_STORE_MS_MAX, JOBS_DRAIN_MS, JOBS_PER_ACCOUNT_MAX, JOBS_PER_PROCESS_MAX } from "../../../limits.js";
import type { MediaFile } from "../../../providers/media.js";
import type { BlobStore } from "../../../store/blobs.js";
import type { Database } from "../../../store/database.js";
import type { Events } from "../../../store/events.js";
import { requireCaller } from "../../access/permissions.js";
import type { Cancellation } from "../cancellation.js";
import type { Generations, GenerationWork } from "../generations.js";
import type { GenerationPlan } from "../planned-charge.js";
import { blobKeyOf, type JobError, type JobStatus, receiptOfRecord, type StoredRequest } from "./job.js";
import { insist, requestOf, toLateError } from "./late-work.js";
import type { JobRows } from "./rows.js";

/** Unspecified: retry time after a refusal for too many jobs. */
const RETRY_AFTER_SECONDS = 10;
const UNEXPECTED = "Something went wrong. Nothing was charged.";
const STOPPED = "The gateway was stopped before this was finished. Nothing was charged.";

interface JobRunnerDependencies {
  readonly generations: Generations;
  readonly rows: JobRows;
  readonly blobs: BlobStore;
  readonly events: Events;
  readonly failures: LateFailureObserver;
}

/** Makes the job's generation, with the job's own context. */
export type Prepare<Answer> = (ctx: RequestContext, onProgress: (percent: number) => void) => PreparedGeneration<Answer>;

interface RunningJob {
  /** The caller cancelled: the job is finished and charged if its upstream has begun. */
  readonly cancel: () => void;
  /** As failed with that reason, at no cost. */
  readonly stop: (reason: AppError) => void;
  readonly ended: Promise<void>;
}

interface Run<Answer> {
  readonly ctx: RequestContext;
  readonly input: object;
  readonly prepared: PreparedGeneration<Answer>;
  /** Called when it is under way; the cancellation ends its upstream. */
  readonly onStarted: (cancellation: Cancellation) => void;
  readonly stoppedBy: () => AppError | null;
}

export class JobRunner {
  private readonly running = new Map<string, RunningJob>();
  /** Jobs that are not stored yet, by account: one may wait for the payer of its run. */
  private readonly starting = new Map<string, number>();
  private isClosing = false;

  constructor(private readonly deps: JobRunnerDependencies) {}

  get ids(): readonly string[] {
    return [...this.running.keys()];
  }

  /** Work that its upstream has begun is finished and charged (docs/spec/credits.md#callers-who-leave). */
  cancel(id: string): void {
    this.running.get(id)?.cancel();
  }

  /** Resolves with its id when it is held, stored, and the upstream is being called. */
  async start<Answer>(ctx: RequestContext, input: object, prepare: Prepare<Answer>): Promise<string> {
    const caller = requireCaller(ctx);
    if (this.isClosing) throw serviceUnavailable("The gateway is stopping.");
    if (this.running.size >= JOBS_PER_PROCESS_MAX) throw serviceUnavailable("Too many generation jobs are running.");
    const controller = new AbortController();
    let reason: AppError | null = null;
    let upstream: Cancellation | null = null;
    const cancel = () => controller.abort();
    const stop: RunningJob["stop"] = (why) => {
      reason ??= why;
      upstream?.stop(why);
      cancel();
    };
    const progress = new LatestOnly<number>((percent) => this.noteProgress(caller.accountId, id, percent));
    const detached = deriveContext(ctx, { caller, reservedId: ctx.reservedId, signal: controller.signal });
    const prepared = prepare(detached, (percent) => progress.put(Math.floor(percent)));
    const { generationId: id } = prepared.plan;
    if ((this.starting.get(caller.accountId) ?? 0) >= JOBS_PER_ACCOUNT_MAX) throw tooManyOfAccount();
    this.addStarting(caller.accountId, 1);
    // Until there is a job, a disconnect cancels.
    if (ctx.signal.aborted) cancel();
    ctx.signal.addEventListener("abort", cancel, { once: true });
    try {
      await new Promise<void>((resolve, reject) => {
        const onStarted = (cancellation: Cancellation) => {
          upstream = cancellation;
          resolve();
        };
        const run = this.run({ ctx: detached, input, prepared, onStarted, stoppedBy: () => reason }).catch(reject);
        this.running.set(id, { cancel, stop, ended: run.then(() => void this.running.delete(id)) });
      });
    } finally {
      ctx.signal.removeEventListener("abort", cancel);
      this.addStarting(caller.accountId, -1);
    }
    return id;
  }

  private addStarting(accountId: string, more: number): void {
    const count = (this.starting.get(accountId) ?? 0) + more;
    if (count === 0) this.starting.delete(accountId);
    else this.starting.set(accountId, count);
  }

  /** Waits a moment for running jobs, then stops them at no cost. */
  async close(): Promise<void> {
    this.isClosing = true;
    const ended = Promise.all([...this.running.values()].map((job) => job.ended));
    const inTime = new AbortController();
    await Promise.race([ended, sleep(JOBS_DRAIN_MS, undefined, { signal: inTime.signal }).catch(ignore)]);
    inTime.abort();
    for (const job of this.running.values()) job.stop(serviceUnavailable(STOPPED));
    await ended;
  }

  /** Stops jobs whose cancellation this process missed. */
  async stopCancelled(): Promise<void> {
    for (const id of this.ids) {
      if (!(await this.deps.rows.progress(id, 0))) this.cancel(id);
    }
  }

  /** Rejects only before there is a job. */
  private async run<Answer>({ ctx, input, prepared, onStarted, stoppedBy }: Run<Answer>): Promise<void> {
    const { generations, rows } = this.deps;
    const { plan, work, toFile } = prepared;
    const { generationId: id, caller } = plan;
    let isStarted = false;
    try {
      const { answer, receipt } = await generations.run(ctx, plan, {
        ...work,
        onHeld: async (cancellation) => {
          await this.add(ctx, plan, input);
          isStarted = true;
          onStarted(cancellation);
        },
        meter: async (made, model) => {
          const metered = await work.meter(made, model);
          if (!ctx.signal.aborted) await this.keep(id, toFile(made));
          return metered;
        },
      });
      if (receipt.status === "cancelled") {
        await this.insist(() => rows.noteCharge(id, receipt));
        return;
      }
      await this.insist(() => rows.succeed(id, toFile(answer).contentType, receipt));
      this.publish(caller.accountId, id, "succeeded");
    } catch (error) {
      if (!isStarted) throw error;
      await this.fail(ctx, plan, stoppedBy() ?? error);
    }
  }

  private async add(ctx: RequestContext, { generationId: id, caller, model }: GenerationPlan, input: object): Promise<void> {
    const { accountId } = caller;
    const apiKeyId = caller.kind === "key" ? caller.apiKeyId : null;
    const parentRequestId = caller.run?.parentRequestId;
    const { modality } = model;
    if (modality === "moderation" || modality === "rerank") throw new Error("Moderations and rerankings are no jobs.");
    const job = { id, accountId, apiKeyId, modality, model: model.id, input, parentRequestId, startedBy: requestOf(ctx) };
    if (await this.deps.rows.add(job)) return;
    throw tooManyOfAccount();
  }

  /** Stores the answer before the charge, so that a charged one can always be fetched. */
  private async keep(id: string, { bytes, contentType }: MediaFile): Promise<void> {
    const { blobs, rows } = this.deps;
    await this.store(() => blobs.put(blobKeyOf(id), bytes));
    if (await this.store(() => rows.made(id, { contentType, storeId: blobs.id }))) return;
    await blobs.delete(blobKeyOf(id)).catch(ignore);
    if ((await rows.find(id))?.status === "failed") throw new Error("Another process finished this job as abandoned.");
    this.cancel(id);
  }

  private async fail(ctx: RequestContext, { generationId: id, caller, model, startedAt }: GenerationPlan, error: unknown): Promise<void> {
    const reported = toLateError(error, UNEXPECTED);
    if (reported.code === "INTERNAL_ERROR" && !ctx.signal.aborted)
      ctx.log.error({ err: error, generationId: id }, "a generation job failed");
    // A cancelled job stays cancelled.
    const hasFailed = await this.insist(() => this.deps.rows.fail(id, reported));
    await this.deps.blobs.delete(blobKeyOf(id)).catch(ignore);
    if (!hasFailed) return;
    this.publish(caller.accountId, id, "failed");
    const message = error instanceof AppError ? error.summary : reported.message;
    const milliseconds = performance.now() - startedAt;
    this.deps.failures.failedLate({
      ...{ caller, request: requestOf(ctx), generationId: id, model: model.id },
      ...{ code: reported.code, message, milliseconds },
    });
  }

  private async noteProgress(accountId: string, id: string, percent: number): Promise<void> {
    if (await this.deps.rows.progress(id, percent)) this.publish(accountId, id, "running");
    else this.cancel(id);
  }

  /** Retries while the database is unavailable. A stopping gateway leaves it to the recovery. */
  private insist<Result>(write: () => Promise<Result>): Promise<Result | undefined> {
    return insist(write, () => !this.isClosing).catch(() => undefined);
  }

  /** Retries storing a paid answer for a bounded time. */
  private store<Result>(write: () => Promise<Result>): Promise<Result> {
    const endsAt = performance.now() + JOB_STORE_MS_MAX;
    return insist(write, () => !this.isClosing && performance.now() < endsAt);
  }

  private publish(accountId: string, generationId: string, status: JobStatus): void {
    this.deps.events.publish("generation-changed", { accountId, generationId, status });
  }
}

function tooManyOfAccount(): AppError {
  return rateLimited(`At most ${JOBS_PER_ACCOUNT_MAX} generation jobs of an account run at once.`, RETRY_AFTER_SECONDS);
}

/** Passes values on one at a time, skipping all but the latest. Failures are not retried. */
class LatestOnly<Value> {
  private next: { readonly value: Value } | null = null;
  private isBusy = false;

  constructor(private readonly take: (value: Value) => Promise<void>) {}

  put(value: Value): void {
    this.next = { value };
    if (!this.isBusy) void this.drain();
  }

  private async drain(): Promise<void> {
    this.isBusy = true;
    for (let { next } = this; next !== null; next = this.next) {
      this.next = null;
      await this.take(next.value).catch(ignore);
    }
    this.isBusy = false;
  }
}

function ignore(): void {}

export interface PreparedGeneration<Answer> {
  readonly plan: GenerationPlan;
  readonly work: GenerationWork<Answer>;
  readonly toFile: (answer: Answer) => MediaFile;
}

// Abandoned jobs: their process died, or could not store their end. A charged one has succeeded; any other has failed at no cost. Of
// several processes that see a job, the first one decides.

const JOBS_A_SWEEP_MAX = 200;

interface AbandonedJob {
  readonly id: string;
  readonly account_id: string;
  readonly api_key_id: string | null;
  readonly api_key_name: string | null;
  readonly model: string;
  readonly created_at: Date;
  readonly request: StoredRequest;
}

interface JobRecoveryDependencies {
  readonly database: Database;
  readonly rows: JobRows;
  readonly blobs: BlobStore;
  readonly clock: Clock;
  readonly processId: string;
  readonly log: Logger;
  readonly running: () => readonly string[];
  readonly events: Events;
  readonly failures: LateFailureObserver;
}

export class JobRecovery {
  constructor(private readonly deps: JobRecoveryDependencies) {}

  async sweep(): Promise<void> {
    for (const job of await this.findAbandoned()) await this.conclude(job);
    await this.removeExpired();
  }

  private async conclude(job: AbandonedJob): Promise<void> {
    const { id, account_id: accountId, request } = job;
    const { database, rows, blobs, log, events } = this.deps;
    const record = await database.prisma.usageRecord.findUnique({ where: { id } });
    if (record && request.made) {
      await rows.succeed(id, request.made.contentType, receiptOfRecord(record));
    } else {
      // While its hold exists it may still be charged: the hold is recovered first.
      const isHeld = (await database.prisma.hold.count({ where: { id } })) > 0;
      if (isHeld) return;
      const error = {
        code: "SERVICE_UNAVAILABLE",
        message: "The gateway's process ended while it worked on this. Nothing was charged.",
      } as const;
      if (await rows.fail(id, error)) {
        await blobs.delete(blobKeyOf(id));
        this.deps.failures.failedLate(this.failureOf(job, error));
      }
    }
    log.warn({ generationId: id, isCharged: record !== null }, "concluded a generation job that nobody worked on any more");
    events.publish("generation-changed", { accountId, generationId: id, status: record ? "succeeded" : "failed" });
  }

  private failureOf(job: AbandonedJob, { code, message }: JobError): LateFailure {
    const { id: generationId, account_id: accountId, api_key_id: apiKeyId, api_key_name: apiKeyName, model, request } = job;
    return {
      caller: { accountId, ...(apiKeyId !== null && { apiKeyId }), ...(apiKeyName !== null && { apiKeyName }) },
      request: request.startedBy ?? { requestId: "", route: "", operation: null },
      ...{ generationId, model, code, message },
      milliseconds: this.deps.clock.now().getTime() - job.created_at.getTime(),
    };
  }

  private async findAbandoned(): Promise<AbandonedJob[]> {
    const { database, processId, running } = this.deps;
    const deadAfterSeconds = HEARTBEAT_DEAD_MS / 1000;
    const jobs = await database.prisma.$queryRaw<AbandonedJob[]>`
      SELECT j.id, j.account_id, j.api_key_id, k.name AS api_key_name, j.model, j.created_at, j.request, j.process_id = ${processId}::uuid AS is_own
      FROM generation_job j LEFT JOIN gateway_process p ON p.id = j.process_id LEFT JOIN api_key k ON k.id = j.api_key_id
      WHERE j.status = 'running'
        AND (p.id IS NULL OR p.heartbeat_at < now() - make_interval(secs => ${deadAfterSeconds}) OR j.process_id = ${processId}::uuid)
      ORDER BY j.id LIMIT ${JOBS_A_SWEEP_MAX}`;
    // Asked last, because the query includes everything that it began before.
    const own = new Set(running());
    return jobs.filter(({ id }) => !own.has(id));
  }

  /** The blob first: a remaining row is found again. */
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
