/**
 * The content cache (docs/spec/generation.md#content-cache): a GET with the same canonical query, model and seed gets the stored answer for
 * free, and identical concurrent GETs share one generation.
 *
 * 1. A stored answer is returned. 2. Otherwise the first caller generates it and pays, and callers meanwhile get the same answer for free.
 *    3. It is stored before any caller gets it, so that the next request finds it.
 *
 * Waiting for the store is bounded. An answer that is not found in time is generated; one that is not stored in time is served from memory
 * until it is.
 */
import { createHash } from "node:crypto";
import type { Readable } from "node:stream";
import { deriveContext, type RequestContext } from "../../../context.js";
import { AppError, type ErrorCode, upstreamFailed } from "../../../errors.js";
import type { GeneratedType } from "../../../lib/content-types.js";
import { createId } from "../../../lib/ids.js";
import { NO_USAGE } from "../../../lib/usage.js";
import type { MediaFile } from "../../../providers/media.js";
import type { ByteRange } from "../../../store/blobs.js";
import { requireCaller } from "../../access/permissions.js";
import type { Model } from "../../catalog/model.js";
import { giveFreeQuote } from "../quote.js";
import type { Receipt } from "../receipt.js";

// Work shared by several callers: it starts with the first, and is aborted when the last has disconnected.

class NoWaitersLeft extends Error {
  override readonly name = "NoWaitersLeft";
}

interface Flight<Result> {
  readonly result: Promise<Result>;
  readonly controller: AbortController;
  waiting: number;
}

export class SharedWork<Result> {
  private readonly flights = new Map<string, Flight<Result>>();

  /**
   * The result of the work under the key, started by `work` when there is none. Rejects with the work's error, or at once with the signal's
   * reason. `isFirst`: this call started it.
   */
  join(key: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<Result>): { isFirst: boolean; result: Promise<Result> } {
    const known = this.flights.get(key);
    const flight = known ?? this.begin(key, work);
    return { isFirst: known === undefined, result: this.wait(key, flight, signal) };
  }

  private begin(key: string, work: (signal: AbortSignal) => Promise<Result>): Flight<Result> {
    const controller = new AbortController();
    const result = work(controller.signal);
    const flight: Flight<Result> = { controller, waiting: 0, result };
    this.flights.set(key, flight);
    const forget = () => this.forget(key, flight);
    result.then(forget, forget);
    return flight;
  }

  private wait(key: string, flight: Flight<Result>, signal: AbortSignal): Promise<Result> {
    flight.waiting += 1;
    return new Promise((resolve, reject) => {
      const leave = () => {
        reject(signal.reason);
        flight.waiting -= 1;
        if (flight.waiting > 0) return;
        // New callers start over: this one is aborted.
        this.forget(key, flight);
        flight.controller.abort(new NoWaitersLeft("Nobody waits for this answer any more"));
      };
      if (signal.aborted) return leave();
      signal.addEventListener("abort", leave, { once: true });
      const stay = () => signal.removeEventListener("abort", leave);
      flight.result.finally(stay).then(resolve, reject);
    });
  }

  private forget(key: string, flight: Flight<Result>): void {
    if (this.flights.get(key) === flight) this.flights.delete(key);
  }
}

/** Content cache, unspecified: its disk space, and the largest answer. */
export const CONTENT_CACHE_BYTES_MAX = 2 * 1024 * 1024 * 1024;
export const CONTENT_CACHE_ANSWER_BYTES_MAX = 64 * 1024 * 1024;
/** Content cache, unspecified: models change behind their names, so answers expire. */
export const CONTENT_CACHE_HOURS = 24 * 7;
/** Content cache, unspecified: milliseconds that a request waits for finding an answer, and for storing one. */
export const CONTENT_CACHE_FIND_MS = 1_000;
export const CONTENT_CACHE_STORE_MS = 1_000;
/** Content cache, unspecified: memory of answers waiting for a slow store; beyond it answers are not stored. */
export const CONTENT_CACHE_UNSTORED_BYTES_MAX = 128 * 1024 * 1024;
/** Content cache, unspecified: interval of writing last uses. A crash loses that much of their order. */
export const CONTENT_CACHE_NOTE_MS = 5_000;

export interface CacheQuery {
  readonly operation: "text" | "image" | "video" | "audio";
  readonly model: Model;
  /** Everything else that decides the answer, with defaults. A `seed` of -1 is neither stored nor shared. */
  readonly parameters: Readonly<Record<string, string | number | boolean | null>>;
  readonly noCache: boolean;
}

export interface CacheableAnswer {
  readonly file: MediaFile;
  readonly receipt: Receipt;
}

export interface CachedAnswer extends CacheableAnswer {
  /** Not generated for this caller: its receipt has no cost and usage. */
  readonly isHit: boolean;
  /** Identifies the stored bytes; null when the next caller would get others. */
  readonly version: string | null;
}

export interface KeptAnswer {
  readonly contentType: GeneratedType;
  readonly sizeBytes: number;
  /** Null when it was deleted meanwhile. */
  readonly open: (range: ByteRange) => Promise<Readable | null>;
  readonly receipt: Receipt;
  readonly version: string;
}

export interface PreparedAnswer {
  readonly contentType: GeneratedType;
  /** False: each request gets a new answer. */
  readonly isKeepable: boolean;
  /** Null when it would have to be generated. */
  find(): Promise<KeptAnswer | null>;
  get(): Promise<CachedAnswer>;
}

/** Part of every key: a change of the stored format invalidates old answers. */
const CACHE_VERSION = 1;
const RANDOM_SEED = -1;
/** Enough to distinguish the answers to one query. */
const VERSION_CHARS = 22;
/** Refusals that concern one caller only. */
const PERSONAL_REFUSALS: ReadonlySet<ErrorCode> = new Set([
  "UNAUTHORIZED",
  "INSUFFICIENT_BALANCE",
  "KEY_BUDGET_EXHAUSTED",
  "MAX_COST_EXCEEDED",
  "FORBIDDEN",
  "ACCOUNT_SUSPENDED",
  "RATE_LIMITED",
]);

type Key = Uint8Array<ArrayBuffer>;

interface Made extends CacheableAnswer {
  readonly wasStored: boolean;
  readonly isKept: boolean;
}

class SharedFailure extends Error {
  constructor(
    override readonly cause: unknown,
    readonly payer: string,
  ) {
    super("The answer could not be generated");
  }
}

export interface AnswerStore {
  find(key: Key): Promise<CacheableAnswer | null>;
  open(key: Key): Promise<Omit<KeptAnswer, "version"> | null>;
  store(key: Key, answer: CacheableAnswer): Promise<void>;
}

export interface ContentCacheTimes {
  readonly findMs: number;
  readonly storeMs: number;
}

export class ContentCache {
  private readonly work = new SharedWork<Made>();
  /** Answers being stored, by name of the key. */
  private readonly unstored = new Map<string, CacheableAnswer>();
  private unstoredBytes = 0;
  private readonly times: ContentCacheTimes;

  constructor(
    private readonly answers: AnswerStore,
    { findMs = CONTENT_CACHE_FIND_MS, storeMs = CONTENT_CACHE_STORE_MS }: Partial<ContentCacheTimes> = {},
  ) {
    this.times = { findMs, storeMs };
  }

  ask(
    ctx: RequestContext,
    query: CacheQuery,
    contentType: GeneratedType,
    produce: (ctx: RequestContext) => Promise<CacheableAnswer>,
  ): PreparedAnswer {
    const isKeepable = !query.noCache && query.parameters.seed !== RANDOM_SEED;
    return {
      contentType,
      isKeepable,
      find: async () => (isKeepable && !ctx.quoting ? this.open(ctx, query) : null),
      get: () => this.get(ctx, query, produce),
    };
  }

  /**
   * `produce` gets its own context, because other callers may wait for the answer after this one disconnects: it continues, charged to this
   * caller, until none waits. A failure is shared by all, unless it concerns this caller's credits or limits, and is not stored. The
   * caller's right to use the model must have been checked.
   */
  async get(ctx: RequestContext, query: CacheQuery, produce: (ctx: RequestContext) => Promise<CacheableAnswer>): Promise<CachedAnswer> {
    const { accountId } = requireCaller(ctx);
    // A quote shares no work with generations.
    if (ctx.quoting) await this.find(ctx, query);
    if (ctx.quoting || query.parameters.seed === RANDOM_SEED) return { ...(await produce(ctx)), isHit: false, version: null };
    const key = keyOf(query, accountId);
    if (!query.noCache) return this.getShared(ctx, key, produce);
    const answer = await produce(ctx);
    await this.remember(ctx, key, answer);
    return { ...answer, isHit: false, version: null };
  }

  /** Null when there is none, or it must be generated again. */
  async find(ctx: RequestContext, query: CacheQuery): Promise<CachedAnswer | null> {
    const startedAt = performance.now();
    const { accountId } = requireCaller(ctx);
    if (query.noCache || query.parameters.seed === RANDOM_SEED) return null;
    const key = keyOf(query, accountId);
    const stored = this.unstored.get(nameOf(key)) ?? (await this.orNothing(ctx, this.answers.find(key)));
    if (!stored) return null;
    if (ctx.quoting) giveFreeQuote(query.model, ctx.quoting);
    return { file: stored.file, receipt: hitReceipt(ctx, stored.receipt, startedAt), isHit: true, version: versionOf(stored.receipt) };
  }

  async keep(ctx: RequestContext, query: CacheQuery, answer: CacheableAnswer): Promise<void> {
    if (query.parameters.seed === RANDOM_SEED) return;
    await this.remember(ctx, keyOf(query, requireCaller(ctx).accountId), answer);
  }

  private async open(ctx: RequestContext, query: CacheQuery): Promise<KeptAnswer | null> {
    const startedAt = performance.now();
    const kept = await this.orNothing(ctx, this.answers.open(keyOf(query, requireCaller(ctx).accountId)));
    return kept && { ...kept, receipt: hitReceipt(ctx, kept.receipt, startedAt), version: versionOf(kept.receipt) };
  }

  private async getShared(
    ctx: RequestContext,
    key: Key,
    produce: (ctx: RequestContext) => Promise<CacheableAnswer>,
  ): Promise<CachedAnswer> {
    const startedAt = performance.now();
    const payer = payerOf(ctx);
    // A request's cost limit decides the length of its answer, and whether there is one.
    const name = ctx.maxCost ? `${nameOf(key)} ${ctx.maxCost.nanocredits}` : nameOf(key);
    for (;;) {
      const { isFirst, result } = this.work.join(name, ctx.signal, async (signal) => {
        return this.findOrMake(deriveContext(ctx, { signal }), key, produce).catch((error: unknown) => {
          throw new SharedFailure(error, payer);
        });
      });
      try {
        const { wasStored, isKept, file, receipt } = await result;
        const isHit = !isFirst || wasStored;
        const version = isKept ? versionOf(receipt) : null;
        return { file, receipt: isHit ? hitReceipt(ctx, receipt, startedAt) : receipt, isHit, version };
      } catch (error) {
        if (!(error instanceof SharedFailure)) throw upstreamFailed("The caller left before the answer came.", { cause: error });
        if (isFirst || error.payer === payer || !isPersonal(error.cause)) throw error.cause;
      }
    }
  }

  private async findOrMake(ctx: RequestContext, key: Key, produce: (ctx: RequestContext) => Promise<CacheableAnswer>): Promise<Made> {
    const unstored = this.unstored.get(nameOf(key));
    if (unstored) return { ...unstored, wasStored: true, isKept: false };
    const stored = await this.orNothing(ctx, this.answers.find(key));
    if (stored) return { ...stored, wasStored: true, isKept: true };
    const answer = await produce(ctx);
    return { ...answer, wasStored: false, isKept: await this.remember(ctx, key, answer) };
  }

  private async remember(ctx: RequestContext, key: Key, answer: CacheableAnswer): Promise<boolean> {
    // An answer cut for lack of one caller's credits is not for others.
    const { byteLength } = answer.file.bytes;
    if (answer.receipt.isCut || byteLength > CONTENT_CACHE_ANSWER_BYTES_MAX) return false;
    if (this.unstoredBytes + byteLength > CONTENT_CACHE_UNSTORED_BYTES_MAX) return false;
    const isStored = await within(this.times.storeMs, this.store(ctx, key, answer));
    return isStored ?? false;
  }

  private async store(ctx: RequestContext, key: Key, answer: CacheableAnswer): Promise<boolean> {
    const name = nameOf(key);
    this.unstored.set(name, answer);
    this.unstoredBytes += answer.file.bytes.byteLength;
    try {
      await this.answers.store(key, answer);
      return true;
    } catch (error) {
      ctx.log.warn({ err: error }, "could not write the content cache");
      return false;
    } finally {
      if (this.unstored.get(name) === answer) this.unstored.delete(name);
      this.unstoredBytes -= answer.file.bytes.byteLength;
    }
  }

  /** A failing or slow cache counts as a miss. */
  private async orNothing<Found>(ctx: RequestContext, looking: Promise<Found | null>): Promise<Found | null> {
    const found = looking.catch((error: unknown) => {
      ctx.log.warn({ err: error }, "could not read the content cache");
      return null;
    });
    return (await within(this.times.findMs, found)) ?? null;
  }
}

/** Undefined after the time. */
async function within<Result>(milliseconds: number, work: Promise<Result>): Promise<Result | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const timeUp = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), milliseconds);
  });
  return Promise.race([work, timeUp]).finally(() => clearTimeout(timer));
}

function nameOf(key: Key): string {
  return Buffer.from(key).toString("hex");
}

/** By a hash of its generation's id, which only its payer may know. */
function versionOf({ generationId }: Receipt): string {
  return createHash("sha256").update(generationId).digest("base64url").slice(0, VERSION_CHARS);
}

/** Answers of private models and agents belong to their caller; all others are shared. */
function keyOf({ operation, model, parameters }: CacheQuery, accountId: string): Key {
  const { id, requiredSafetyFeatures } = model;
  const upstreams = [...new Set(model.routes.flatMap(({ upstreamId, upstreamModel }) => [upstreamId, upstreamModel]))];
  const owner = model.isCommunity || model.isAgent ? accountId : null;
  const sorted = Object.entries(parameters).sort(([a], [b]) => (a < b ? -1 : 1));
  // Includes the upstreams, so that another model under the same id gets new answers.
  const canonical = [CACHE_VERSION, operation, id, ...upstreams, requiredSafetyFeatures, owner, sorted];
  return new Uint8Array(createHash("sha256").update(JSON.stringify(canonical)).digest());
}

function payerOf(ctx: RequestContext): string {
  const caller = requireCaller(ctx);
  return caller.kind === "key" ? caller.apiKeyId : caller.accountId;
}

function isPersonal(error: unknown): boolean {
  return error instanceof AppError && PERSONAL_REFUSALS.has(error.code);
}

/** A receipt for an answer that was not generated for this caller; no usage row has its id. */
function hitReceipt(ctx: RequestContext, receipt: Receipt, startedAt: number): Receipt {
  const uncharged = unchargedReceipt(receipt, startedAt);
  ctx.note?.finished(uncharged);
  return uncharged;
}

function unchargedReceipt(receipt: Receipt, startedAt: number): Receipt {
  const gatewayMs = performance.now() - startedAt;
  return {
    ...receipt,
    generationId: createId(),
    usage: NO_USAGE,
    costNanocredits: 0n,
    childCostNanocredits: undefined,
    heldNanocredits: 0n,
    gatewayMs,
    upstreamMs: 0,
    responseMs: Math.round(gatewayMs),
    firstTokenMs: null,
  };
}
