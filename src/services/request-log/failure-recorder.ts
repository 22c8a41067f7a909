/**
 * Writes refused and failed requests for generations to the request log: the only place that notices them, for both faces.
 *
 * No request waits for it. Failures are kept in memory and written about once a second in one statement. In a flood only some are kept: of
 * each account and code a burst, then one per write. Failures that are left out are counted in the row of a kept one, and cost no more than
 * that count. Failures that were not yet written are lost when the process is killed.
 */
import type { Logger } from "pino";
import type { Clock } from "../../lib/clock.js";
import { groupBy } from "../../lib/collections.js";
import { createId } from "../../lib/ids.js";
import { quoteStart } from "../../lib/quote-start.js";
import { Repeated } from "../../lib/repeated.js";
import type { LateFailure, LateFailureObserver, NotedCaller, RequestEnd, RequestNote, RequestObserver } from "../../lib/request-note.js";
import { toStorable } from "../../lib/storable-text.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { FailedRequestModel } from "../../store/generated/prisma/models.js";
import { Counter } from "../metrics/instruments.js";
import type { FailureRetention } from "./failure-retention.js";
import {
  FAILURE_ACCOUNTS_MAX,
  FAILURE_BURST_MAX,
  FAILURE_MESSAGE_CHARS_MAX,
  FAILURE_MODEL_CHARS_MAX,
  FAILURE_WRITES_MAX,
  FAILURES_ANNOUNCED_MAX,
  FAILURES_WAITING_MAX,
  FAILURES_WRITTEN_EVERY_MS,
} from "./limits.js";

type Row = Omit<FailedRequestModel, "leftOut"> & { leftOut: number };

/** A request's part of its rows. */
interface FailedRequest {
  readonly caller: NotedCaller;
  readonly requestId: string;
  readonly route: string;
  readonly operation: string | null;
}

/** A generation's part of its row: of the whole request, or of one of several. */
interface FailedGeneration {
  readonly generationId: string | null;
  readonly model: string | null;
  readonly requestedModel: string | null;
  readonly message: string | null;
}

/** Failures of one account with one code. */
interface Sample {
  /** How many may still be kept. */
  tokens: number;
  /** Left out, and not yet counted in a row. */
  leftOut: number;
  /** The newest row that waits to be written. */
  last: Row | null;
}

const WRITTEN = "written";
const LEFT_OUT = "left_out";
const DROPPED = "dropped";
const ERROR_STATUS_MIN = 400;

export interface FailureRecorderParts {
  readonly database: Database;
  readonly events: Events;
  readonly retention: Pick<FailureRetention, "written" | "sweep">;
  readonly clock: Clock;
  readonly log: Logger;
  /** The HTTP status of an error code. */
  readonly statusOf: (code: string) => number;
  /** False: nothing is recorded. */
  readonly isOn: boolean;
}

export class FailureRecorder implements RequestObserver, LateFailureObserver {
  readonly counter = new Counter({
    name: "sluice_request_log_failures_total",
    help: "Refused and failed requests for generations: written to the request log, left_out and counted in another row, or dropped because the database did not take them.",
    labels: ["outcome"],
  });
  private readonly counts = { written: this.counter.at(WRITTEN), leftOut: this.counter.at(LEFT_OUT), dropped: this.counter.at(DROPPED) };
  private readonly samples = new Map<string, Map<string, Sample>>();
  private readonly writes: Repeated;
  private waiting: Row[] = [];
  private failedWrites = 0;

  constructor(private readonly parts: FailureRecorderParts) {
    this.writes = new Repeated(() => this.write(), parts.log, "the request log could not be written; it is tried again");
  }

  start(): void {
    if (this.parts.isOn) this.writes.every(FAILURES_WRITTEN_EVERY_MS);
  }

  /** Writes what waits. Call when all requests are over. */
  async close(): Promise<void> {
    await this.writes.close();
    await this.flush();
  }

  /** Resolves when all earlier failures are written, or could not be. */
  async flush(): Promise<void> {
    // A write under way has taken earlier failures only.
    await this.writes.now();
    await this.writes.now();
  }

  requestOver(note: RequestNote, end: RequestEnd): void {
    const { code, caller, parts, operation } = note;
    if (code === null || caller === null || !note.isGeneration || !this.parts.isOn) return;
    const now = performance.now();
    if (parts === null || parts.length === 0) {
      const sample = this.take(caller, code);
      if (sample === null) return;
      const request = { caller, requestId: note.requestId ?? "", route: note.route ?? "", operation };
      const status = end.status >= ERROR_STATUS_MIN ? end.status : this.parts.statusOf(code);
      this.record(sample, request, note, code, status, now - note.startedAt);
      return;
    }
    for (const [index, part] of parts.entries()) {
      const sample = part.code === null ? null : this.take(caller, part.code);
      if (part.code === null || sample === null) continue;
      const request = { caller, requestId: note.requestId ?? "", route: note.route ?? "", operation };
      this.record(sample, request, part, part.code, this.parts.statusOf(part.code), (parts[index + 1]?.startedAt ?? now) - part.startedAt);
    }
  }

  failedLate({ caller, request, code, model, generationId, message, milliseconds }: LateFailure): void {
    const sample = this.parts.isOn ? this.take(caller, code) : null;
    if (sample === null) return;
    const generation = { generationId, model, requestedModel: model, message };
    this.record(sample, { caller, ...request }, generation, code, this.parts.statusOf(code), milliseconds);
  }

  /** The sample into which a failure is kept; null when it is left out or dropped, which is counted. */
  private take({ accountId }: NotedCaller, code: string): Sample | null {
    const sample = this.sampleOf(accountId, code);
    if (sample === null) {
      this.counts.dropped.value += 1;
      return null;
    }
    if (sample.tokens === 0 || this.waiting.length >= FAILURES_WAITING_MAX) {
      sample.leftOut += 1;
      this.counts.leftOut.value += 1;
      return null;
    }
    sample.tokens -= 1;
    return sample;
  }

  private record(
    sample: Sample,
    { caller, requestId, route, operation }: FailedRequest,
    generation: FailedGeneration,
    code: string,
    status: number,
    milliseconds: number,
  ): void {
    sample.last = {
      id: createId(),
      accountId: caller.accountId,
      apiKeyId: caller.apiKeyId ?? null,
      apiKeyName: caller.apiKeyName ?? null,
      requestId,
      generationId: generation.generationId,
      timestamp: this.parts.clock.now(),
      route,
      operation,
      status,
      code,
      message: toStorable(quoteStart(generation.message ?? "", FAILURE_MESSAGE_CHARS_MAX)),
      model: modelOf(generation),
      milliseconds: Math.round(milliseconds),
      leftOut: 0,
    };
    this.waiting.push(sample.last);
  }

  /** Null when too many accounts fail at once. */
  private sampleOf(accountId: string, code: string): Sample | null {
    let ofAccount = this.samples.get(accountId);
    if (ofAccount === undefined) {
      if (this.samples.size >= FAILURE_ACCOUNTS_MAX) return null;
      ofAccount = new Map();
      this.samples.set(accountId, ofAccount);
    }
    let sample = ofAccount.get(code);
    if (sample === undefined) {
      sample = { tokens: FAILURE_BURST_MAX, leftOut: 0, last: null };
      ofAccount.set(code, sample);
    }
    return sample;
  }

  /** Failures that the database did not take are tried again with the next ones, a few times. */
  private async write(): Promise<void> {
    if (this.samples.size > 0) this.refill();
    const rows = this.waiting;
    if (rows.length > 0) {
      this.waiting = [];
      try {
        await this.insert(rows);
        this.failedWrites = 0;
      } catch (error) {
        this.failedWrites += 1;
        this.keep(rows);
        throw error;
      }
      this.counts.written.value += rows.length;
      this.announce(rows);
    }
    await this.parts.retention.sweep();
  }

  /** One more may be kept of each account and code; forgets those that have been quiet. */
  private refill(): void {
    for (const [accountId, ofAccount] of this.samples) {
      let isQuiet = true;
      for (const sample of ofAccount.values()) {
        if (sample.last !== null) {
          sample.last.leftOut += sample.leftOut;
          sample.leftOut = 0;
          sample.last = null;
        }
        sample.tokens = Math.min(FAILURE_BURST_MAX, sample.tokens + 1);
        isQuiet &&= sample.tokens === FAILURE_BURST_MAX && sample.leftOut === 0;
      }
      if (isQuiet) this.samples.delete(accountId);
    }
  }

  private keep(rows: readonly Row[]): void {
    const room = this.failedWrites >= FAILURE_WRITES_MAX ? 0 : FAILURES_WAITING_MAX - this.waiting.length;
    const kept = rows.slice(0, Math.max(0, room));
    this.counts.dropped.value += rows.length - kept.length;
    this.waiting = [...kept, ...this.waiting];
    if (kept.length === 0) this.failedWrites = 0;
  }

  /** Leaves out rows of accounts that were deleted meanwhile. */
  private async insert(rows: readonly Row[]): Promise<void> {
    const columns = rows.map(({ timestamp, ...row }) => ({ ...row, timestamp: timestamp.toISOString() }));
    await this.parts.database.prisma.$executeRaw`
      INSERT INTO failed_request (id, account_id, api_key_id, api_key_name, request_id, generation_id, timestamp, route, operation, status,
        code, message, model, milliseconds, left_out)
      SELECT r.id, r."accountId", r."apiKeyId", r."apiKeyName", r."requestId", r."generationId", r.timestamp, r.route, r.operation, r.status,
        r.code, r.message, r.model, r.milliseconds, r."leftOut"
      FROM jsonb_to_recordset(${JSON.stringify(columns)}::jsonb) AS r(id uuid, "accountId" uuid, "apiKeyId" uuid, "apiKeyName" text,
        "requestId" text, "generationId" uuid, timestamp timestamptz, route text, operation text, status integer, code text, message text,
        model text, milliseconds integer, "leftOut" integer)
      WHERE NOT EXISTS (SELECT FROM account_deletion d WHERE d.account_id = r."accountId")
      ON CONFLICT (id) DO NOTHING`;
  }

  private announce(rows: readonly Row[]): void {
    for (const [accountId, ofAccount] of groupBy(rows, (row) => row.accountId)) {
      this.parts.retention.written(accountId, ofAccount.length);
      for (let start = 0; start < ofAccount.length; start += FAILURES_ANNOUNCED_MAX) {
        const failureIds = ofAccount.slice(start, start + FAILURES_ANNOUNCED_MAX).map(({ id }) => id);
        this.parts.events.publish("requests-failed", { accountId, failureIds });
      }
    }
  }
}

function modelOf({ model, requestedModel }: FailedGeneration): string | null {
  if (model !== null || requestedModel === null) return model;
  return toStorable(quoteStart(requestedModel, FAILURE_MODEL_CHARS_MAX));
}
