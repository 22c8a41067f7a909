/**
 * Idempotency-Key (docs/spec/generation.md#idempotency): a generation repeated with the same key and input gets the
 * stored answer, unbilled. The state is in the database, so it holds for any number of processes.
 *
 * 1. `begin` stores the request with the id under which its generation will be charged. One of several requests with
 *    one key does; the others are refused while it is under way.
 * 2. The answer is stored before its last byte is sent (`succeed`). A failure without a charge frees the key
 *    (`fail`). For an answer that is too large, or beyond the account's quota or the disk, only the receipt is kept
 *    (`omit`): a repeat gets the receipt and is not billed.
 * 3. The generation's id tells whether a request of a dead process was charged. If not, the key is free. If so, the
 *    answer is lost, and a repeat gets an error with the id and is not billed.
 */
import type { Logger } from "pino";
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { AppError } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { createId } from "../../lib/ids.js";
import { formatNanocredits } from "../../lib/money.js";
import { HEARTBEAT_DEAD_MS } from "../../limits.js";
import type { BlobStore } from "../../store/blobs.js";
import type { Database } from "../../store/database.js";
import { requireCaller } from "../access/permissions.js";
import { ReservedId } from "../generation/admission.js";
import { parseInput, storableText } from "../requests/input.js";
import { IDEMPOTENCY_HOURS, IDEMPOTENCY_KEY_CHARS_MAX } from "../requests/limits.js";
import type { AnswerRoom } from "./answer-room.js";
import { fingerprintOf } from "./fingerprint.js";
import { IDEMPOTENT_ANSWER_BYTES_MAX } from "./limits.js";

// Refusals of a repeated request.

const RETRY_AFTER_SECONDS = 1;

/** Reason for not keeping an answer. */
type Omission = "too_large" | "no_room";

function usedOtherwise(): AppError {
  return new AppError("CONFLICT", "This Idempotency-Key was used for another request.", { param: "Idempotency-Key" });
}

function inProgress(): AppError {
  const message = "A request with this Idempotency-Key is still running.";
  return new AppError("CONFLICT", message, { param: "Idempotency-Key", retryAfterSeconds: RETRY_AFTER_SECONDS });
}

function answerLost(generationId: string): AppError {
  const message = `The request with this Idempotency-Key was charged as generation ${generationId}, but its answer is lost. Nothing was charged now.`;
  return new AppError("CONFLICT", message, { param: "Idempotency-Key", details: { generationId } });
}

function answerOmitted(omission: Omission, generationId: string, costNanocredits: bigint): AppError {
  const cost = formatNanocredits(costNanocredits);
  const reason =
    omission === "too_large"
      ? `its answer was too large to keep: ${IDEMPOTENT_ANSWER_BYTES_MAX} bytes are the most`
      : "there was no room to keep its answer: delete files of the account, or wait until kept answers expire";
  const message = `The request with this Idempotency-Key was answered as generation ${generationId} and charged ${cost} credits, and ${reason}. Nothing was charged now.`;
  return new AppError("CONFLICT", message, { param: "Idempotency-Key", details: { generationId, cost } });
}

const HOUR_MS = 60 * 60 * 1000;
const SWEPT_AT_ONCE_MAX = 100;
/** Two requests may free and take a key in turn; more attempts mean a fault. */
const ATTEMPTS_MAX = 5;

/** Blobs of answers that earlier releases stored, until they expire. */
export const IDEMPOTENCY_FOLDER = "idempotency";

const idempotencyKey = z.object({ "Idempotency-Key": storableText.min(1).max(IDEMPOTENCY_KEY_CHARS_MAX) });

export interface IdempotentCall {
  readonly key: string;
  /** Using a key for another operation is a conflict. */
  readonly operation: string;
  /** Everything that decides the answer; files by their bytes. */
  readonly input: unknown;
}

/** An answer in the terms of its face. */
export interface StoredAnswer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

export type Begun = { readonly kind: "new"; readonly run: IdempotentRun } | { readonly kind: "replay"; readonly answer: StoredAnswer };

interface Known {
  readonly id: string;
  readonly account_id: string;
  readonly fingerprint: Uint8Array;
  readonly generation_id: string;
  readonly status: "running" | "done";
  readonly status_code: number | null;
  readonly headers: Record<string, string> | null;
  readonly body: Uint8Array | null;
  readonly body_key: string | null;
  readonly omission: Omission | null;
  readonly created_at: Date;
  readonly is_expired: boolean;
  /** Its process is alive, as far as is known. */
  readonly is_attended: boolean;
  readonly is_own: boolean;
}

export class Idempotency {
  /** Requests of this process. A row of it that is not in here was abandoned. */
  private readonly running = new Set<string>();

  constructor(
    private readonly database: Database,
    private readonly blobs: BlobStore,
    private readonly room: AnswerRoom,
    private readonly clock: Clock,
    private readonly processId: string,
    private readonly log: Logger,
  ) {}

  /** Throws BAD_REQUEST for a malformed key, CONFLICT for one that is in use or was used for another request. */
  async begin(ctx: RequestContext, { key, operation, input }: IdempotentCall): Promise<Begun> {
    const caller = requireCaller(ctx);
    parseInput(idempotencyKey, { "Idempotency-Key": key });
    // Keys chosen by an agent are scoped to its run, apart from those of its caller.
    const scopeId = caller.run?.parentRequestId ?? (caller.kind === "key" ? caller.apiKeyId : caller.accountId);
    const fingerprint = await fingerprintOf([operation, input], ctx.hasLargeInput ?? false);
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      const run = await this.claim(scopeId, key, caller.accountId, fingerprint);
      if (run) return { kind: "new", run };
      const known = await this.find(scopeId, key);
      if (!known) continue;
      if (known.is_expired) await this.remove(known);
      else {
        if (!Buffer.from(known.fingerprint).equals(fingerprint)) throw usedOtherwise();
        if (known.status === "done") return { kind: "replay", answer: await this.answerOf(known) };
        await this.freeOrRefuse(known);
      }
    }
    throw inProgress();
  }

  /** Deletes expired answers. Returns their number. */
  async sweep(): Promise<number> {
    let removed = 0;
    for (;;) {
      const some = await this.database.prisma.$queryRaw<{ body_key: string | null }[]>`
        DELETE FROM idempotent_request WHERE id IN (
          SELECT id FROM idempotent_request WHERE expires_at <= ${this.clock.now()} LIMIT ${SWEPT_AT_ONCE_MAX}) RETURNING body_key`;
      for (const { body_key } of some) if (body_key !== null) await this.blobs.delete(body_key);
      removed += some.length;
      if (some.length < SWEPT_AT_ONCE_MAX) break;
    }
    if (removed > 0) this.room.forget();
    return removed;
  }

  /** Which of these blobs belong to an answer. */
  async findNamed(keys: readonly string[]): Promise<ReadonlySet<string>> {
    const rows = await this.database.prisma.idempotentRequest.findMany({
      where: { bodyKey: { in: [...keys] } },
      select: { bodyKey: true },
    });
    return new Set(rows.flatMap(({ bodyKey }) => (bodyKey === null ? [] : [bodyKey])));
  }

  /** Null when the key is taken. */
  private async claim(
    scopeId: string,
    key: string,
    accountId: string,
    fingerprint: Uint8Array<ArrayBuffer>,
  ): Promise<IdempotentRun | null> {
    const id = createId();
    const generationId = createId();
    const now = this.clock.now();
    // Added before the row is visible, so that it does not look abandoned.
    this.running.add(id);
    try {
      const { count } = await this.database.prisma.idempotentRequest.createMany({
        data: {
          ...{ id, scopeId, key, accountId, fingerprint, generationId, processId: this.processId },
          createdAt: now,
          expiresAt: new Date(now.getTime() + IDEMPOTENCY_HOURS * HOUR_MS),
        },
        skipDuplicates: true,
      });
      if (count === 1) return new IdempotentRun(id, accountId, generationId, this.store());
    } catch (error) {
      this.running.delete(id);
      throw error;
    }
    this.running.delete(id);
    return null;
  }

  private async find(scopeId: string, key: string): Promise<Known | null> {
    const deadAfterSeconds = HEARTBEAT_DEAD_MS / 1000;
    const rows = await this.database.prisma.$queryRaw<Known[]>`
      SELECT r.id, r.account_id, r.fingerprint, r.generation_id, r.status, r.status_code, r.headers, r.body, r.body_key, r.omission, r.created_at,
        r.expires_at <= ${this.clock.now()} AS is_expired, r.process_id = ${this.processId}::uuid AS is_own,
        coalesce(p.heartbeat_at >= now() - make_interval(secs => ${deadAfterSeconds}), false) AS is_attended
      FROM idempotent_request r LEFT JOIN gateway_process p ON p.id = r.process_id
      WHERE r.scope_id = ${scopeId}::uuid AND r.key = ${key}`;
    return rows[0] ?? null;
  }

  private async answerOf(known: Known): Promise<StoredAnswer> {
    const { status_code, headers, body, body_key, omission, generation_id } = known;
    if (omission !== null) throw answerOmitted(omission, generation_id, await this.costOf(known));
    const bytes = body ?? (body_key === null ? null : await this.blobs.read(body_key));
    // A large answer whose blob this process cannot see.
    if (!bytes) throw answerLost(generation_id);
    return { statusCode: status_code ?? 200, headers: headers ?? {}, body: bytes };
  }

  /** Frees a key of a dead process that charged nothing; rejects otherwise. */
  private async freeOrRefuse(known: Known): Promise<void> {
    const isUnderWay = known.is_own ? this.running.has(known.id) : known.is_attended;
    if (isUnderWay || (await this.hasOpenHold(known.generation_id))) throw inProgress();
    if (await this.wasCharged(known.generation_id, known.account_id, known.created_at)) throw answerLost(known.generation_id);
    await this.remove(known);
  }

  private async hasOpenHold(generationId: string): Promise<boolean> {
    return (await this.database.prisma.hold.count({ where: { id: generationId } })) > 0;
  }

  /** Whether the generation was charged, or for an agent one that it made. A started job and a background response count. */
  private async wasCharged(generationId: string, accountId: string, since: Date): Promise<boolean> {
    const { usageRecord, generationJob, storedResponse } = this.database.prisma;
    if ((await usageRecord.count({ where: { id: generationId } })) > 0) return true;
    if ((await generationJob.count({ where: { id: generationId } })) > 0) return true;
    if ((await storedResponse.count({ where: { id: generationId } })) > 0) return true;
    const timestamp = { gte: new Date(since.getTime() - HOUR_MS) };
    return (await usageRecord.findFirst({ where: { accountId, timestamp, parentRequestId: generationId }, select: { id: true } })) !== null;
  }

  /** Nanocredits of the generation, and for an agent of those that it made. */
  private async costOf({ generation_id: id, account_id: accountId, created_at }: Known): Promise<bigint> {
    const timestamp = { gte: new Date(created_at.getTime() - HOUR_MS) };
    const { _sum } = await this.database.prisma.usageRecord.aggregate({
      where: { accountId, timestamp, OR: [{ id }, { parentRequestId: id }] },
      _sum: { costNanocredits: true },
    });
    return _sum.costNanocredits ?? 0n;
  }

  private async remove({ id, status, body_key }: Pick<Known, "id" | "status" | "body_key">): Promise<void> {
    const { count } = await this.database.prisma.idempotentRequest.deleteMany({ where: { id, status } });
    if (count > 0 && body_key !== null) await this.blobs.delete(body_key);
  }

  /** Stores results of runs. Nothing rejects here: the answer is good, and only a repeat would not find it. */
  private store(): RunStore {
    const guarded = async (id: string, work: () => Promise<void>) => {
      try {
        await work();
      } catch (error) {
        this.log.error({ err: error }, "could not store the outcome of a request with an Idempotency-Key");
      } finally {
        this.running.delete(id);
      }
    };
    return {
      keep: (id, accountId, answer) => guarded(id, () => this.keep(id, accountId, answer)),
      keepIfCharged: (id, generationId, answer) =>
        guarded(id, async () => {
          const row = await this.database.prisma.idempotentRequest.findUnique({ where: { id } });
          if (row && (await this.wasCharged(generationId, row.accountId, row.createdAt))) await this.keep(id, row.accountId, answer());
          else await this.remove({ id, status: "running", body_key: null });
        }),
      omit: (id) => guarded(id, () => this.conclude(id, { statusCode: 200, omission: "too_large" })),
    };
  }

  private async keep(id: string, accountId: string, { statusCode, headers, body }: StoredAnswer): Promise<void> {
    if (body.byteLength > IDEMPOTENT_ANSWER_BYTES_MAX) return this.conclude(id, { statusCode, omission: "too_large" });
    const room = await this.room.take(accountId, body.byteLength);
    if (!room) return this.conclude(id, { statusCode, omission: "no_room" });
    try {
      await this.conclude(id, { statusCode, headers: { ...headers }, body: new Uint8Array(body), sizeBytes: room.sizeBytes });
    } finally {
      room.conclude();
    }
  }

  private async conclude(id: string, outcome: Outcome): Promise<void> {
    await this.database.prisma.idempotentRequest.updateMany({
      where: { id, status: "running" },
      data: { status: "done", headers: {}, ...outcome },
    });
  }
}

/** The result in a finished row: the answer, or why it was not kept. */
type Outcome =
  | { readonly statusCode: number; readonly omission: Omission }
  | {
      readonly statusCode: number;
      readonly headers: Record<string, string>;
      readonly body: Uint8Array<ArrayBuffer>;
      readonly sizeBytes: number;
    };

interface RunStore {
  keep(id: string, accountId: string, answer: StoredAnswer): Promise<void>;
  keepIfCharged(id: string, generationId: string, answer: () => StoredAnswer): Promise<void>;
  omit(id: string): Promise<void>;
}

/** The request that has the key. Exactly one method concludes it; further calls do nothing. None rejects. */
export class IdempotentRun {
  /** The generation is charged under this id. */
  readonly reservedId: ReservedId;
  private concluded: Promise<void> | null = null;

  constructor(
    private readonly id: string,
    private readonly accountId: string,
    readonly generationId: string,
    private readonly store: RunStore,
  ) {
    this.reservedId = new ReservedId(generationId);
  }

  /** Resolves when the answer is stored: its last byte may be sent. */
  succeed(answer: StoredAnswer): Promise<void> {
    this.concluded ??= this.store.keep(this.id, this.accountId, answer);
    return this.concluded;
  }

  /** Stores `answer` when something was charged; else frees the key. */
  fail(answer: () => StoredAnswer): Promise<void> {
    this.concluded ??= this.store.keepIfCharged(this.id, this.generationId, answer);
    return this.concluded;
  }

  /** Keeps only the receipt of an answer that is too large. */
  omit(): Promise<void> {
    this.concluded ??= this.store.omit(this.id);
    return this.concluded;
  }
}
