/**
 * Responses in the background: made without a connection, retrieved by their id, and cancelled through any process.
 *
 * 1. `start` writes the row, then the generation is admitted and held like any other. A refusal deletes the row, and is the caller's.
 * 2. The generation is a stream with a signal of its own. Cancelling it charges the delivered part, as leaving a stream does.
 * 3. The end is charged, then written. A process that ends in between leaves the row to `sweep`: the charge is recovered as that of any
 *    generation, and the response has failed.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Logger } from "pino";
import { deriveContext, type RequestContext } from "../../../context.js";
import { AppError, payloadTooLarge, rateLimited, serviceUnavailable } from "../../../errors.js";
import { type Failure, type ResponseObject, responseIdOf, toResponseUsage } from "../../../formats/openai-responses/answer.js";
import type { ResponseEvent } from "../../../formats/openai-responses/stream.js";
import type { LateFailureObserver } from "../../../lib/request-note.js";
import { JOBS_PER_ACCOUNT_MAX, JOBS_PER_PROCESS_MAX } from "../../../limits.js";
import type { Database } from "../../../store/database.js";
import type { Events } from "../../../store/events.js";
import { requireCaller } from "../../access/permissions.js";
import { isChecked } from "../../safety/features.js";
import { withCost } from "../chat/answer.js";
import type { ResponseStream, Responses } from "../chat/responses.js";
import { receiptOfRecord } from "../jobs/job.js";
import { insist, LateWatch, requestOf, toLateError } from "../jobs/late-work.js";
import { EventLog } from "./event-log.js";
import type { FollowedResponses } from "./followed.js";
import { type ResponseKeeper, toContent, toNewResponse } from "./keeper.js";
import { STORED_RESPONSE_BYTES_MAX } from "./limits.js";
import type { StoredResponseRows } from "./rows.js";
import { finishedIn, safetyOf, withoutInput, withoutTexts } from "./streams.js";
import type { OpenThread } from "./threads.js";

const RETRY_AFTER_SECONDS = 10;
const SWEEP_FAILED = "looking after background responses failed; it is repeated";
const UNEXPECTED = "Something went wrong.";
const ABANDONED: Failure = {
  code: "SERVICE_UNAVAILABLE",
  message: "The gateway's process ended while it worked on this response. The part that was delivered until then is charged.",
};

const STOPPED: Failure = {
  code: "SERVICE_UNAVAILABLE",
  message: "The gateway was stopped before this response was finished. The part that was delivered until then is charged.",
};

export interface BackgroundParts {
  readonly database: Database;
  readonly responses: Responses;
  readonly rows: StoredResponseRows;
  readonly keeper: ResponseKeeper;
  readonly followed: FollowedResponses;
  readonly events: Events;
  readonly failures: LateFailureObserver;
  readonly log: Logger;
}

interface Running {
  readonly cancel: () => void;
  readonly ended: Promise<void>;
}

interface Run {
  readonly uuid: string;
  readonly thread: OpenThread;
  readonly ctx: RequestContext;
  readonly stream: ResponseStream;
  readonly first: ReturnType<ResponseStream["events"]["next"]>;
  readonly log: EventLog | null;
  readonly leaving: AbortController;
  readonly begun: ResponseObject;
}

export interface StartedResponse {
  readonly response: ResponseObject;
  readonly generationId: string;
}

export class BackgroundResponses {
  /** Those that this process runs, and those about to begin. */
  private readonly running = new Map<string, Running | null>();
  private readonly watching: LateWatch<"stored-response-changed">;
  private isClosing = false;

  constructor(private readonly parts: BackgroundParts) {
    const { events, log } = parts;
    this.watching = new LateWatch({
      ...{ events, log, failed: SWEEP_FAILED, channel: "stored-response-changed" },
      onEvent: ({ responseId, status }) => {
        if (status === "cancelled" || status === "deleted") this.running.get(responseId)?.cancel();
      },
      recover: () => this.recover(),
      stopCancelled: () => this.stopCancelled(),
    });
  }

  /** See LateWatch. */
  open(): Promise<void> {
    return this.watching.open();
  }

  /** Call when no generation is under way. */
  async close(): Promise<void> {
    this.isClosing = true;
    await this.watching.endSweeps();
    await Promise.all([...this.running.values()].map((run) => run?.ended));
    this.watching.stopListening();
  }

  sweep(): Promise<void> {
    return this.watching.sweep();
  }

  /**
   * Resolves when it is held for and stored. Rejects as the same request without `background`, with PAYLOAD_TOO_LARGE when the account's
   * storage is full, and with RATE_LIMITED or SERVICE_UNAVAILABLE when too many of them run.
   */
  async start(thread: OpenThread, hasEvents: boolean): Promise<StartedResponse> {
    try {
      return await this.begin(thread, hasEvents);
    } catch (error) {
      thread.release();
      throw error;
    }
  }

  /** As `start`, with the events of the response. Leaving them does not end it. */
  async stream(ctx: RequestContext, thread: OpenThread): Promise<ResponseStream> {
    const { response, generationId } = await this.start(thread, true);
    return this.parts.followed.stream(ctx, response, generationId);
  }

  private async begin(thread: OpenThread, hasEvents: boolean): Promise<StartedResponse> {
    const { responses, rows } = this.parts;
    const caller = requireCaller(thread.ctx);
    if (this.isClosing) throw serviceUnavailable("The gateway is stopping.");
    if (this.running.size >= JOBS_PER_PROCESS_MAX) throw serviceUnavailable("Too many background responses are running.");
    const leaving = new AbortController();
    const ctx = deriveContext(thread.ctx, { caller, reservedId: thread.ctx.reservedId, signal: leaving.signal });
    const stream = responses.stream(ctx, { ...thread.input, stream: true }, thread.keeping);
    const { generationId: uuid } = stream;
    const begun = stream.waiting();
    this.running.set(uuid, null);
    try {
      await this.add(thread, begun, hasEvents);
      // Its hold may wait for the payer of a run.
      this.running.set(uuid, { cancel: () => leaving.abort(), ended: Promise.resolve() });
      const first = stream.events.next();
      first.catch(ignore);
      const refusal = await this.refusalOf(stream);
      const { accountId } = caller;
      if (refusal !== null) {
        this.running.delete(uuid);
        if (!leaving.signal.aborted) await rows.remove(uuid);
        else return { response: await this.cancelUnheld(thread, accountId, uuid, begun), generationId: uuid };
        throw refusal.reason;
      }
      const hide = this.isRead(thread) ? withoutTexts : null;
      const log = hasEvents ? new EventLog((from, to, json) => this.write(uuid, accountId, from, to, json), hide) : null;
      const run = { uuid, thread, ctx, stream, first, log, leaving, begun };
      let isCancelled = false;
      const cancel = () => {
        if (isCancelled) return;
        isCancelled = true;
        void stream.events.return?.().catch(ignore);
      };
      const ended = this.run(run, () => isCancelled).finally(() => this.running.delete(uuid));
      this.running.set(uuid, { cancel, ended });
      void stream.opened.then(() => rows.begin(uuid)).catch(ignore);
      return { response: begun, generationId: uuid };
    } catch (error) {
      this.running.delete(uuid);
      throw error;
    }
  }

  private async add(thread: OpenThread, begun: ResponseObject, hasEvents: boolean): Promise<void> {
    const { keeper, rows } = this.parts;
    const caller = requireCaller(thread.ctx);
    // Texts that a safety feature may redact are stored at the end.
    const content = this.isRead(thread)
      ? toContent({ items: [], response: withoutInput(begun) })
      : toContent({ items: thread.own, response: begun });
    if (content.input.length > STORED_RESPONSE_BYTES_MAX) throw payloadTooLarge(STORED_RESPONSE_BYTES_MAX);
    const room = await keeper.takeRoom(caller.accountId, content.input.length + content.answer.length);
    if (room === null) throw storageFull();
    try {
      const response = toNewResponse(thread.ctx, thread, begun, content, { isBackground: true, hasEvents });
      if (await rows.addRunning(response)) return;
    } finally {
      room.conclude();
    }
    throw rateLimited(`At most ${JOBS_PER_ACCOUNT_MAX} background responses of an account run at once.`, RETRY_AFTER_SECONDS);
  }

  private isRead(thread: OpenThread): boolean {
    const caller = requireCaller(thread.ctx);
    return isChecked(caller, this.parts.responses.modelOf(thread.ctx, thread.input), thread.input.safe);
  }

  /** Why a generation was not held for; null: it is. */
  private async refusalOf(stream: ResponseStream): Promise<{ readonly reason: unknown } | null> {
    let refusal: { readonly reason: unknown } | null = null;
    stream.opened.catch((reason: unknown) => {
      refusal = { reason };
    });
    await stream.admitted;
    await nextTurn();
    return refusal;
  }

  private async cancelUnheld(thread: OpenThread, accountId: string, uuid: string, begun: ResponseObject): Promise<ResponseObject> {
    const response = { ...begun, status: "cancelled" as const };
    await this.parts.rows.conclude(uuid, response.status, {
      answer: JSON.stringify(this.isRead(thread) ? withoutInput(response) : response),
    });
    thread.release();
    this.publish(accountId, uuid, "ended");
    return response;
  }

  /** Never rejects. */
  private async run(run: Run, isCancelled: () => boolean): Promise<void> {
    const { thread, stream, uuid } = run;
    try {
      const { response, last } = await this.read(run, isCancelled);
      await run.log?.end(last);
      await this.conclude(run, response);
    } catch (error) {
      this.parts.log.error({ err: error, generationId: uuid }, "could not store a background response");
    } finally {
      thread.release();
      const { accountId } = requireCaller(run.ctx);
      this.publish(accountId, uuid, "ended");
      await stream.events.return?.().catch(ignore);
    }
  }

  private async read(
    { stream, first, log, ctx, begun, uuid }: Run,
    isCancelled: () => boolean,
  ): Promise<{ readonly response: ResponseObject; readonly last: readonly ResponseEvent[] }> {
    const { events } = stream;
    try {
      for (let next = await first; !next.done && !isCancelled(); next = await events.next()) {
        const last = next.value.events.at(-1);
        const response = last === undefined ? null : finishedIn(last);
        if (response !== null) {
          log?.add(next.value.events.slice(0, -1));
          return { response, last: next.value.events.slice(-1) };
        }
        log?.add(next.value.events);
      }
      await events.return?.();
      await stream.settled?.();
      return { response: stream.brokenOff("cancelled") ?? { ...begun, status: "cancelled" }, last: [] };
    } catch (error) {
      if (isCancelled()) {
        await stream.settled?.();
        return { response: stream.brokenOff("cancelled") ?? { ...begun, status: "cancelled" }, last: [] };
      }
      const failure = toFailure(error, stream.receipt() !== null);
      if (failure.code === "INTERNAL_ERROR") ctx.log.error({ err: error, generationId: uuid }, "a background response failed");
      this.noteFailure(ctx, uuid, begun.model, error, failure);
      const last = stream.failed(failure);
      const failed = last.at(-1)?.response as ResponseObject;
      return { response: stream.brokenOff("failed", failure) ?? failed, last };
    }
  }

  private async conclude({ ctx, thread, stream, uuid }: Run, response: ResponseObject): Promise<void> {
    const { keeper, rows } = this.parts;
    const texts = await keeper.redact(ctx, await safetyOf(stream), { items: thread.own, response });
    const warnings = await keeper.extend(thread, requireCaller(ctx).accountId, texts);
    if (warnings.length > 0) ctx.log.warn({ generationId: uuid }, "a background response did not extend its conversation");
    // A stopping gateway leaves it to the recovery.
    await insist(
      () => rows.conclude(uuid, response.status, toContent(texts)),
      () => !this.isClosing,
    );
  }

  private async write(uuid: string, accountId: string, first: number, last: number, json: string): Promise<void> {
    try {
      await this.parts.rows.addEvents(uuid, accountId, first, last, json);
      this.publish(accountId, uuid, "in_progress");
    } catch (error) {
      this.parts.log.warn({ err: error, generationId: uuid }, "could not store events of a background response");
    }
  }

  private noteFailure(ctx: RequestContext, generationId: string, model: string, error: unknown, { message }: Failure): void {
    const { note } = ctx;
    this.parts.failures.failedLate({
      ...{ caller: requireCaller(ctx), generationId, model, request: requestOf(ctx) },
      code: error instanceof AppError ? error.code : "INTERNAL_ERROR",
      message: error instanceof AppError ? error.summary : message,
      milliseconds: performance.now() - (note?.startedAt ?? performance.now()),
    });
  }

  /** Stops responses whose cancellation this process missed. */
  private async stopCancelled(): Promise<void> {
    const ids = [...this.running].flatMap(([id, run]) => (run === null ? [] : [id]));
    for (const id of await this.parts.rows.findEnded(ids)) this.running.get(id)?.cancel();
  }

  private publish(accountId: string, responseId: string, status: string): void {
    this.parts.events.publish("stored-response-changed", { accountId, responseId, status });
  }

  private async recover(): Promise<void> {
    const { database, rows, log } = this.parts;
    for (const { id, account_id: accountId, answer } of await rows.findAbandoned(() => new Set(this.running.keys()))) {
      // While its hold exists it may still be charged: the hold is recovered first.
      if ((await database.prisma.hold.count({ where: { id } })) > 0) continue;
      const record = await database.prisma.usageRecord.findUnique({ where: { id } });
      const usage = record && toResponseUsage(withCost(null, receiptOfRecord(record)));
      const error = { code: "server_error", message: ABANDONED.message };
      const failed = { ...rows.openAnswer(id, answer), id: responseIdOf(id), status: "failed" as const, usage, error };
      if (!(await rows.conclude(id, "failed", { answer: JSON.stringify(failed) }))) continue;
      log.warn({ generationId: id, isCharged: record !== null }, "concluded a background response of a process that ended");
      this.publish(accountId, id, "failed");
    }
  }
}

function toFailure(error: unknown, isCharged: boolean): Failure {
  // The reason of a stop promises that nothing was charged.
  if (isCharged && error instanceof AppError && error.code === "SERVICE_UNAVAILABLE") return STOPPED;
  return toLateError(error, UNEXPECTED);
}

function storageFull(): AppError {
  return new AppError(
    "PAYLOAD_TOO_LARGE",
    "background: the storage of the account is full, and a background response needs it. Delete stored responses or files, or leave out background.",
    { param: "background" },
  );
}

function ignore(): void {}
