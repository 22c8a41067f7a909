/**
 * Generation jobs (docs/spec/generation.md#jobs). A job survives its connection, is charged once, and can be watched, cancelled and fetched
 * later, through any process.
 *
 * 1. `start`: the generation is prepared, admitted and held like any other; refusals are returned at once. When the hold is committed
 *    the job's row is written, and the caller gets its id.
 * 2. The upstream is called with the job's own signal, which no connection aborts.
 * 3. The answer is stored, then the row is marked, then it is charged, then the job has succeeded. Once the row is marked it cannot be
 *    cancelled. A job that was cancelled before is finished if its upstream has begun, and charged, but its answer is not shown.
 * 4. `JobRecovery` concludes jobs that a process left unfinished at any of these steps.
 */

import type { Readable } from "node:stream";
import type { Logger } from "pino";
import type { RequestContext } from "../../../context.js";
import { conflict, notFound, serviceUnavailable } from "../../../errors.js";
import { closedTypeOf, type GeneratedType } from "../../../lib/content-types.js";
import { isUuid } from "../../../lib/ids.js";
import { type Page, type PageRequest, toPage } from "../../../lib/pagination.js";
import type { BlobStore, ByteRange } from "../../../store/blobs.js";
import type { Events } from "../../../store/events.js";
import type { Prisma } from "../../../store/generated/prisma/client.js";
import type { GenerationJobModel } from "../../../store/generated/prisma/models.js";
import { requireCaller, requirePermission } from "../../access/permissions.js";
import { looksAt } from "../../accounts/live.js";
import { blobKeyOf, type GenerationJob, type JobResult, progressOf, resultOf, type StoredRequest, statusOf, toJob } from "./job.js";
import { LateWatch } from "./late-work.js";
import type { JobRows, OwnedJob, SelectedJob } from "./rows.js";
import type { JobRecovery, JobRunner, Prepare } from "./runner.js";

const LOOKING_FAILED = "looking after generation jobs failed; it is repeated";

export interface GenerationJobsDependencies {
  readonly runner: JobRunner;
  readonly rows: JobRows;
  readonly recovery: JobRecovery;
  readonly blobs: BlobStore;
  readonly events: Events;
  readonly log: Logger;
  /** Without a trailing slash. */
  readonly baseUrl: () => string;
}

export interface JobContent {
  readonly contentType: GeneratedType;
  readonly sizeBytes: number;
  /** The bytes, or a range of them; null when they were deleted meanwhile. */
  readonly open: (range?: ByteRange) => Promise<Readable | null>;
}

export class GenerationJobs {
  private readonly watching: LateWatch<"generation-changed">;

  constructor(private readonly deps: GenerationJobsDependencies) {
    const { events, runner, recovery, log } = deps;
    this.watching = new LateWatch({
      ...{ events, log, failed: LOOKING_FAILED, channel: "generation-changed" },
      onEvent: ({ generationId, status }) => {
        if (status === "cancelled") runner.cancel(generationId);
      },
      recover: () => recovery.sweep(),
      stopCancelled: () => runner.stopCancelled(),
    });
  }

  /** See LateWatch. */
  open(): Promise<void> {
    return this.watching.open();
  }

  async close(): Promise<void> {
    await Promise.all([this.watching.endSweeps(), this.deps.runner.close()]);
    this.watching.stopListening();
  }

  sweep(): Promise<void> {
    return this.watching.sweep();
  }

  /** Throws as the same request without a job, and RATE_LIMITED or SERVICE_UNAVAILABLE when too many jobs run. */
  async start<Answer>(ctx: RequestContext, input: object, prepare: Prepare<Answer>): Promise<GenerationJob> {
    return this.get(ctx, await this.deps.runner.start(ctx, input, prepare));
  }

  /** Throws NOT_FOUND. */
  async get(ctx: RequestContext, id: string): Promise<GenerationJob> {
    return toJob(await this.find(ctx, id), this.deps.baseUrl());
  }

  /** The same with selected columns. */
  async getSelected(ctx: RequestContext, id: string, select: Prisma.GenerationJobSelect): Promise<OwnedJob> {
    const [row] = await this.getMany(ctx, [id], select);
    if (!row) throw notFound("generation");
    return row;
  }

  /** Leaves out jobs that the caller may not see. */
  async getMany(ctx: RequestContext, ids: readonly string[], select: Prisma.GenerationJobSelect): Promise<OwnedJob[]> {
    const caller = requireCaller(ctx);
    const rows = await this.deps.rows.findSelected(ids, caller.run ? { ...select, request: true } : select);
    return rows.filter((row) => isVisible(caller, row));
  }

  /** Newest first. */
  async listSelected(ctx: RequestContext, page: PageRequest, select: Prisma.GenerationJobSelect): Promise<Page<SelectedJob>> {
    const { accountId } = requirePermission(ctx, "usage");
    return toPage(await this.deps.rows.list(accountId, page, select), page, () => this.deps.rows.count(accountId));
  }

  resultOf(row: Parameters<typeof resultOf>[0]): JobResult | null {
    return resultOf(row, this.deps.baseUrl());
  }

  /** Returns the job afterwards: a finished one is unchanged, and so is one that is being charged. */
  async cancel(ctx: RequestContext, id: string): Promise<GenerationJob> {
    const { accountId } = await this.find(ctx, id);
    if (await this.deps.rows.cancel(id)) {
      this.deps.events.publish("generation-changed", { accountId, generationId: id, status: "cancelled" });
    }
    return this.get(ctx, id);
  }

  /** Cancels it if it runs, and deletes it with its result. Throws CONFLICT while its answer is being charged. */
  async remove(ctx: RequestContext, id: string): Promise<void> {
    const { status } = await this.cancel(ctx, id);
    if (status === "running") throw conflict("This generation is being charged. Try again in a moment.", 1);
    // The blob first: a remaining row is found again.
    await this.deps.blobs.delete(blobKeyOf(id));
    await this.deps.rows.remove(id);
  }

  /** Yields the job's state, then each change, until it is finished. */
  async *watch(ctx: RequestContext, id: string, select: Prisma.GenerationJobSelect): AsyncGenerator<OwnedJob> {
    const { accountId } = requireCaller(ctx);
    const { events } = this.deps;
    const changes = looksAt(events, ctx, "generation-changed", accountId, ({ generationId }) => generationId === id);
    try {
      let sent = "";
      while ((await changes.next()) !== undefined) {
        const job = await this.getSelected(ctx, id, select);
        const status = statusOf(job);
        const state = `${status} ${progressOf(job)}`;
        if (state !== sent) yield job;
        if (status !== "running") return;
        sent = state;
      }
    } finally {
      changes.close();
    }
  }

  /** Throws NOT_FOUND for a missing or expired result, CONFLICT while there is none yet. */
  async content(ctx: RequestContext, id: string): Promise<JobContent> {
    const { status, resultKey, resultContentType, request } = await this.find(ctx, id);
    if (status === "running" || status === "queued") throw conflict("This generation is not finished yet.", 1);
    if (resultKey === null || resultContentType === null) throw notFound(`content: the generation was ${status}`);
    const { blobs } = this.deps;
    const head = await blobs.head(resultKey);
    if (head)
      return { contentType: closedTypeOf(resultContentType), sizeBytes: head.sizeBytes, open: (range) => blobs.open(resultKey, range) };
    const { made } = request as unknown as StoredRequest;
    if (made && made.storeId !== blobs.id) throw serviceUnavailable("Another process has this file, and keeps its files to itself.");
    throw notFound("content");
  }

  private async find(ctx: RequestContext, id: string): Promise<GenerationJobModel> {
    const caller = requireCaller(ctx);
    const row = isUuid(id) ? await this.deps.rows.find(id) : null;
    if (!row || !isVisible(caller, row)) throw notFound("generation");
    return row;
  }
}

/**
 * Never for another account. Unspecified: a publishable key, which is public, sees only jobs started with it, and an agent run only those
 * that it started, by the row's `request`.
 */
function isVisible(caller: ReturnType<typeof requireCaller>, row: OwnedJob & { readonly request?: unknown }): boolean {
  if (row.accountId !== caller.accountId) return false;
  const isShared = caller.kind === "key" && caller.apiKeyType === "publishable";
  if (isShared && row.apiKeyId !== caller.apiKeyId) return false;
  return !caller.run || (row.request as StoredRequest | undefined)?.parentRequestId === caller.run.parentRequestId;
}
