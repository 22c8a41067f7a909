/** Rows of stored responses. Content is sealed; everything else is what lists, threads and the recovery need. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { ResponseObject } from "../../../formats/openai-responses/answer.js";
import type { StoredItem } from "../../../formats/openai-responses/stored-items.js";
import type { Clock } from "../../../lib/clock.js";
import { createId } from "../../../lib/ids.js";
import { COUNT_TAKE, newestFirst, type PageRequest } from "../../../lib/pagination.js";
import { HEARTBEAT_DEAD_MS, JOBS_PER_ACCOUNT_MAX } from "../../../limits.js";
import type { Database } from "../../../store/database.js";
import { Prisma } from "../../../store/generated/prisma/client.js";
import type { StoredResponseModel } from "../../../store/generated/prisma/models.js";
import type { SecretBox } from "../../secrets/secret-box.js";
import { deleteExpired, expiryAfter, repeatFull } from "./expiry.js";
import { EVENTS_KEPT_MS, STORED_ROW_BYTES, STORED_SWEPT_AT_ONCE_MAX, THREAD_RESPONSES_MAX } from "./limits.js";
import type { Owner } from "./owners.js";

const TABLE = "stored_response";
/** Larger ones are read in turns of the event loop. */
const LARGE_ROW_BYTES = 64 * 1024;
/** Class of PostgreSQL's two-number advisory locks for counting an account's background responses. */
const COUNT_LOCK_CLASS = 0x72657370;
const UNFINISHED = ["queued", "in_progress"] as const;

const META = {
  ...{ id: true, accountId: true, apiKeyId: true, runId: true, previousId: true, conversationId: true, model: true, status: true },
  ...{ isBackground: true, hasEvents: true, threadBytes: true, threadLength: true, sizeBytes: true, createdAt: true },
  ...{ finishedAt: true, expiresAt: true },
} as const;

/** A stored response without its content. */
export type StoredMeta = Pick<StoredResponseModel, keyof typeof META>;

export interface NewResponse extends Owner {
  readonly id: string;
  readonly previousId: string | null;
  readonly conversationId: string | null;
  readonly model: string;
  readonly isBackground: boolean;
  readonly hasEvents: boolean;
  /** Of the responses before it. */
  readonly thread: ThreadSize;
  readonly content: StoredContent;
}

/** The sealed parts, as JSON. */
export interface StoredContent {
  readonly input: string;
  readonly answer: string;
}

export interface ThreadSize {
  readonly bytes: number;
  readonly length: number;
}

/** One response of a thread. */
export interface ThreadPart {
  readonly id: string;
  readonly previousId: string | null;
  readonly items: readonly StoredItem[];
  readonly output: ResponseObject["output"];
}

interface SealedPart {
  readonly id: string;
  readonly previous_id: string | null;
  readonly input: Uint8Array;
  readonly answer: Uint8Array;
}

/** A background response whose process ended. */
export interface AbandonedResponse {
  readonly id: string;
  readonly account_id: string;
  readonly answer: Uint8Array;
}

export class StoredResponseRows {
  constructor(
    private readonly database: Database,
    private readonly box: SecretBox,
    private readonly clock: Clock,
    private readonly processId: string,
    private readonly days: number,
  ) {}

  /** Adds a finished response. */
  async add(response: NewResponse, status: ResponseObject["status"]): Promise<void> {
    const now = this.clock.now();
    await this.database.prisma.storedResponse.create({ data: { ...this.toRow(response, now), status, finishedAt: now, processId: null } });
  }

  /** Adds one that begins in the background. False when the account has its maximum of them; the lock makes counting and adding atomic. */
  addRunning(response: NewResponse): Promise<boolean> {
    const { accountId } = response;
    return this.database.prisma.$transaction(async (transaction) => {
      await transaction.$queryRaw`SELECT pg_advisory_xact_lock(${COUNT_LOCK_CLASS}::int, hashtext(${accountId}))::text`;
      const running = await transaction.storedResponse.count({
        where: { accountId, processId: { not: null }, status: { in: [...UNFINISHED] } },
      });
      if (running >= JOBS_PER_ACCOUNT_MAX) return false;
      const row = this.toRow(response, this.clock.now());
      await transaction.storedResponse.create({ data: { ...row, status: "queued", processId: this.processId } });
      return true;
    });
  }

  async begin(id: string): Promise<void> {
    await this.database.prisma.storedResponse.updateMany({ where: { id, status: "queued" }, data: { status: "in_progress" } });
  }

  /** Writes the end of a background response. One that was cancelled stays so. False: it was deleted, or is finished. */
  async conclude(id: string, status: ResponseObject["status"], { input, answer }: Partial<StoredContent>): Promise<boolean> {
    const { prisma } = this.database;
    const now = this.clock.now();
    const where = { id, finishedAt: null };
    const row = await prisma.storedResponse.findFirst({ where, select: { threadBytes: true, sizeBytes: true } });
    if (!row) return false;
    // A new input replaces the one that the response began with; without one, only the answer is new.
    const begun = input === undefined ? 0 : row.sizeBytes - STORED_ROW_BYTES;
    const more = (input?.length ?? 0) + (answer?.length ?? 0) - begun;
    const data = {
      ...(input !== undefined && { input: this.seal(id, "input", input) }),
      ...(answer !== undefined && { answer: this.seal(id, "answer", answer) }),
      ...{ threadBytes: row.threadBytes + more, sizeBytes: row.sizeBytes + more, finishedAt: now, processId: null },
    };
    const isKept = await prisma.storedResponse.updateMany({
      where: { ...where, status: { in: [...UNFINISHED] } },
      data: { ...data, status },
    });
    const concluded = isKept.count > 0 ? isKept : await prisma.storedResponse.updateMany({ where, data });
    await prisma.storedResponseEvents.updateMany({
      where: { responseId: id },
      data: { expiresAt: new Date(now.getTime() + EVENTS_KEPT_MS) },
    });
    return concluded.count > 0;
  }

  /** False: it does not run any more. */
  async cancel(id: string): Promise<boolean> {
    const { count } = await this.database.prisma.storedResponse.updateMany({
      where: { id, isBackground: true, status: { in: [...UNFINISHED] } },
      data: { status: "cancelled" },
    });
    return count > 0;
  }

  /** Of these, the ones that no longer run, or are gone. */
  async findEnded(ids: readonly string[]): Promise<string[]> {
    const rows = await this.database.prisma.storedResponse.findMany({
      where: { id: { in: [...ids] }, status: { in: [...UNFINISHED] } },
      select: { id: true },
    });
    const running = new Set(rows.map(({ id }) => id));
    return ids.filter((id) => !running.has(id));
  }

  findMeta(id: string): Promise<StoredMeta | null> {
    return this.database.prisma.storedResponse.findFirst({ where: { id, ...this.isKept() }, select: META });
  }

  findMetas(ids: readonly string[]): Promise<StoredMeta[]> {
    return this.database.prisma.storedResponse.findMany({ where: { id: { in: [...ids] }, ...this.isKept() }, select: META });
  }

  async readAnswers(accountId: string, ids: readonly string[]): Promise<ReadonlyMap<string, ResponseObject>> {
    const rows = await this.database.prisma.storedResponse.findMany({
      where: { id: { in: [...ids] }, accountId, ...this.isKept() },
      select: { id: true, answer: true, status: true },
    });
    return new Map(rows.map(({ id, answer, status }) => [id, { ...this.openAnswer(id, answer), status }]));
  }

  /** Null: it was deleted meanwhile. The status of a row is newer than that of its answer. */
  async readAnswer(id: string): Promise<ResponseObject | null> {
    const row = await this.database.prisma.storedResponse.findFirst({
      where: { id, ...this.isKept() },
      select: { answer: true, status: true },
    });
    return row && { ...this.openAnswer(id, row.answer), status: row.status };
  }

  /** The responses up to this one, the oldest first. Older ones are missing when one was deleted or has expired. */
  async readThread(id: string, accountId: string): Promise<ThreadPart[]> {
    const now = this.clock.now();
    const rows = await this.database.prisma.$queryRaw<SealedPart[]>`
      WITH RECURSIVE thread AS (
        SELECT id, previous_id, 1 AS place FROM stored_response
        WHERE id = ${id}::uuid AND account_id = ${accountId}::uuid AND expires_at > ${now}
        UNION ALL
        SELECT r.id, r.previous_id, t.place + 1 FROM stored_response r JOIN thread t ON r.id = t.previous_id
        WHERE r.account_id = ${accountId}::uuid AND r.expires_at > ${now} AND t.place < ${THREAD_RESPONSES_MAX}
      )
      SELECT r.id, r.previous_id, r.input, r.answer FROM thread t JOIN stored_response r ON r.id = t.id ORDER BY t.place DESC`;
    const parts: ThreadPart[] = [];
    for (const { id: own, previous_id: previousId, input, answer } of rows) {
      if (input.length + answer.length > LARGE_ROW_BYTES) await nextTurn();
      const items = JSON.parse(this.open(own, "input", input)) as StoredItem[];
      parts.push({ id: own, previousId, items, output: this.openAnswer(own, answer).output });
    }
    return parts;
  }

  /** Own input items. */
  async readInput(id: string): Promise<StoredItem[]> {
    const row = await this.database.prisma.storedResponse.findFirst({ where: { id, ...this.isKept() }, select: { input: true } });
    return row ? (JSON.parse(this.open(id, "input", row.input)) as StoredItem[]) : [];
  }

  /** One more than `first`, newest first. */
  list(accountId: string, page: PageRequest): Promise<StoredMeta[]> {
    const { where: older, ...query } = newestFirst(page);
    return this.database.prisma.storedResponse.findMany({ where: { accountId, ...this.isKept(), ...older }, select: META, ...query });
  }

  /** With content, in the form of the account's export. */
  async export(accountId: string, page: PageRequest) {
    const { where: older, ...query } = newestFirst(page);
    const rows = await this.database.prisma.storedResponse.findMany({ where: { accountId, ...this.isKept(), ...older }, ...query });
    return rows.map(({ id, createdAt, expiresAt, apiKeyId, input, answer, status }) => ({
      ...{ id, createdAt, expiresAt, apiKeyId },
      input: JSON.parse(this.open(id, "input", input)) as StoredItem[],
      response: { ...this.openAnswer(id, answer), status },
    }));
  }

  count(accountId: string): Promise<number> {
    return this.database.prisma.storedResponse.count({ where: { accountId, ...this.isKept() }, take: COUNT_TAKE });
  }

  async remove(id: string): Promise<boolean> {
    return (await this.database.prisma.storedResponse.deleteMany({ where: { id } })).count > 0;
  }

  /** Unfinished ones of processes that ended, and of this process but for those that it runs. */
  async findAbandoned(running: () => ReadonlySet<string>): Promise<AbandonedResponse[]> {
    const { processId } = this;
    const rows = await this.database.prisma.$queryRaw<AbandonedResponse[]>`
      SELECT r.id, r.account_id, r.answer
      FROM stored_response r LEFT JOIN gateway_process p ON p.id = r.process_id
      WHERE r.process_id IS NOT NULL
        AND (p.id IS NULL OR p.heartbeat_at < now() - make_interval(secs => ${HEARTBEAT_DEAD_MS / 1000}) OR r.process_id = ${processId}::uuid)
      ORDER BY r.id LIMIT ${STORED_SWEPT_AT_ONCE_MAX}`;
    // Asked last, because the query includes everything that it began before.
    const own = running();
    return rows.filter(({ id }) => !own.has(id));
  }

  openAnswer(id: string, sealed: Uint8Array): ResponseObject {
    return JSON.parse(this.open(id, "answer", sealed)) as ResponseObject;
  }

  /** Deletes expired ones, also by a shorter setting than theirs. Returns their number. */
  async sweep(): Promise<number> {
    const now = this.clock.now();
    const responses = await deleteExpired(this.database, Prisma.sql`stored_response`, now, this.days);
    await repeatFull(
      () => this.database.prisma.$executeRaw`
        DELETE FROM stored_response_events WHERE id IN (
          SELECT id FROM stored_response_events WHERE expires_at <= ${now} LIMIT ${STORED_SWEPT_AT_ONCE_MAX})`,
    );
    return responses;
  }

  // Events of a background response, in pieces.

  async addEvents(id: string, accountId: string, first: number, last: number, json: string): Promise<void> {
    const piece = createId();
    const events = this.box.seal({ table: "stored_response_events", rowId: piece, column: "events" }, json);
    const expiresAt = expiryAfter(this.clock.now(), this.days);
    await this.database.prisma.storedResponseEvents.create({
      data: { id: piece, responseId: id, accountId, first, last, events, sizeBytes: json.length + STORED_ROW_BYTES, expiresAt },
    });
  }

  /** The next piece with events after a number; null: there is none yet. */
  async readEvents(id: string, after: number): Promise<string | null> {
    const piece = await this.database.prisma.storedResponseEvents.findFirst({
      where: { responseId: id, last: { gt: after } },
      orderBy: { first: "asc" },
      select: { id: true, events: true },
    });
    return piece && this.box.open({ table: "stored_response_events", rowId: piece.id, column: "events" }, piece.events);
  }

  private toRow({ content, thread, ...response }: NewResponse, now: Date) {
    const { id } = response;
    const bytes = content.input.length + content.answer.length;
    return {
      ...response,
      ...{ input: this.seal(id, "input", content.input), answer: this.seal(id, "answer", content.answer) },
      ...{ threadBytes: thread.bytes + bytes, threadLength: thread.length + 1, sizeBytes: bytes + STORED_ROW_BYTES },
      ...{ createdAt: now, expiresAt: expiryAfter(now, this.days) },
    };
  }

  private isKept() {
    return { expiresAt: { gt: this.clock.now() } };
  }

  private seal(rowId: string, column: "input" | "answer", text: string) {
    return this.box.seal({ table: TABLE, rowId, column }, text);
  }

  private open(rowId: string, column: "input" | "answer", sealed: Uint8Array): string {
    return this.box.open({ table: TABLE, rowId, column }, sealed);
  }
}
