/**
 * The content cache (docs/spec/generation.md#content-cache): a GET for the same canonical query, model and seed is answered with what
 * was made before, at no cost, and identical GETs at the same time share one generation.
 *
 * 1. What is stored is answered. 2. Else whoever comes first makes it and pays, and everybody who comes meanwhile is given the same
 * answer at no cost. 3. It is stored before anybody has it, so that the next request finds it.
 *
 * The store is waited for only so long. What it does not find in time is made; what it does not take in time is answered from memory until
 * it has.
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
import type { Receipt } from "../receipt.js";

// Work that several callers wait for at once: it begins with the first, and is given up when the last has left. Nobody's leaving
// takes it from the others.

/** Why the work's signal is aborted. */
class NobodyWaits extends Error {
  override readonly name = "NobodyWaits";
}

interface Flight<Result> {
  readonly result: Promise<Result>;
  readonly controller: AbortController;
  waiting: number;
}

export class SharedWork<Result> {
  private readonly flights = new Map<string, Flight<Result>>();

  /**
   * The result of the work that goes on under the key, begun by `work` when there is none. Rejects with the work's error, or with the
   * signal's reason as soon as that is aborted. `isFirst`: this call began it.
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
        // Whoever comes now begins anew: this one has no answer to give any more.
        this.forget(key, flight);
        flight.controller.abort(new NobodyWaits("Nobody waits for this answer any more"));
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

/** Content cache, unspecified: what it may take of the disk, and one answer of that. */
export const CONTENT_CACHE_BYTES_MAX = 2 * 1024 * 1024 * 1024;
export const CONTENT_CACHE_ANSWER_BYTES_MAX = 64 * 1024 * 1024;
/** Content cache, unspecified: models change behind their names, so nothing is answered for ever. */
export const CONTENT_CACHE_HOURS = 24 * 7;
/** Content cache, unspecified: milliseconds that a request waits for an answer to be found, and for one to be stored. */
export const CONTENT_CACHE_FIND_MS = 1_000;
export const CONTENT_CACHE_STORE_MS = 1_000;
/** Content cache, unspecified: what waits in memory for a store that takes its time; beyond that, answers are not stored. */
export const CONTENT_CACHE_UNSTORED_BYTES_MAX = 128 * 1024 * 1024;
/** Content cache, unspecified: how often the last use of answers is written down. A crash forgets that much of their order. */
export const CONTENT_CACHE_NOTE_MS = 5_000;

export interface CacheQuery {
  /** What was asked for: two operations never share an answer. */
  readonly operation: "text" | "image" | "video" | "audio";
  readonly model: Model;
  /** Everything else that decides the answer, defaults filled in. With a `seed` of -1 nothing is remembered or shared. */
  readonly parameters: Readonly<Record<string, string | number | boolean | null>>;
  /** Make it anew and remember that. */
  readonly noCache: boolean;
}

export interface CacheableAnswer {
  readonly file: MediaFile;
  readonly receipt: Receipt;
}

export interface CachedAnswer extends CacheableAnswer {
  /** Nothing was generated for this caller: the receipt says so, with a cost and usage of nothing. */
  readonly isHit: boolean;
  /** Names these bytes as they are kept for whoever asks the same; null when that one would be given others. */
  readonly version: string | null;
}

/** A kept answer, which is read by whoever wants it. As a hit, it cost nothing. */
export interface KeptAnswer {
  readonly contentType: GeneratedType;
  readonly sizeBytes: number;
  /** Null when it has gone meanwhile. */
  readonly open: (range: ByteRange) => Promise<Readable | null>;
  readonly receipt: Receipt;
  readonly version: string;
}

/** What a GET asks for, checked: nothing has been looked up or made. */
export interface AskedAnswer {
  /** What it will be, as far as that is known before it is made. */
  readonly contentType: GeneratedType;
  /** False: each request makes another. */
  readonly isKeepable: boolean;
  /** As it is kept; null when it would have to be made. */
  find(): Promise<KeptAnswer | null>;
  /** Made, if need be. */
  get(): Promise<CachedAnswer>;
}

/** Part of every key: a change of what is stored makes the old answers unknown. */
const CACHE_VERSION = 1;
const RANDOM_SEED = -1;
/** More than two answers to one query will ever differ by. */
const VERSION_CHARS = 22;
/** What one caller is refused with says nothing of another. */
const PERSONAL_REFUSALS: ReadonlySet<ErrorCode> = new Set([
  "UNAUTHORIZED",
  "INSUFFICIENT_BALANCE",
  "KEY_BUDGET_EXHAUSTED",
  "MAX_COST_EXCEEDED",
  "FORBIDDEN",
  "RATE_LIMITED",
]);

/** SHA-256 of the canonical query. */
type Key = Uint8Array<ArrayBuffer>;

interface Made extends CacheableAnswer {
  /** It was there already. */
  readonly wasStored: boolean;
  readonly isKept: boolean;
}

/** Carries a failure to everybody who waits, with whose it is. */
class MadeInVain extends Error {
  constructor(
    override readonly cause: unknown,
    readonly payer: string,
  ) {
    super("The answer could not be made");
  }
}

/** Where answers are kept, by the key of what was asked for. */
export interface AnswerStore {
  find(key: Key): Promise<CacheableAnswer | null>;
  /** As `find`, with the bytes left where they are. */
  open(key: Key): Promise<Omit<KeptAnswer, "version"> | null>;
  /** Takes the place of what was there. */
  store(key: Key, answer: CacheableAnswer): Promise<void>;
}

export interface ContentCacheTimes {
  readonly findMs: number;
  readonly storeMs: number;
}

export class ContentCache {
  private readonly work = new SharedWork<Made>();
  /** Answers that are being stored, by the name of their key. */
  private readonly unstored = new Map<string, CacheableAnswer>();
  private unstoredBytes = 0;
  private readonly times: ContentCacheTimes;

  constructor(
    private readonly answers: AnswerStore,
    { findMs = CONTENT_CACHE_FIND_MS, storeMs = CONTENT_CACHE_STORE_MS }: Partial<ContentCacheTimes> = {},
  ) {
    this.times = { findMs, storeMs };
  }

  /** See `get`. */
  ask(
    ctx: RequestContext,
    query: CacheQuery,
    contentType: GeneratedType,
    produce: (ctx: RequestContext) => Promise<CacheableAnswer>,
  ): AskedAnswer {
    const isKeepable = !query.noCache && query.parameters.seed !== RANDOM_SEED;
    return {
      contentType,
      isKeepable,
      find: async () => (isKeepable ? this.open(ctx, query) : null),
      get: () => this.get(ctx, query, produce),
    };
  }

  /**
   * `produce` gets a context of its own, because others may wait for the same answer when this caller leaves: it goes on, charged to
   * this caller, until nobody waits. A failure is everybody's who waits, unless it is about this caller's money or limits, and is
   * not remembered. Whether the caller may use the model must have been checked.
   */
  async get(ctx: RequestContext, query: CacheQuery, produce: (ctx: RequestContext) => Promise<CacheableAnswer>): Promise<CachedAnswer> {
    const { accountId } = requireCaller(ctx);
    if (query.parameters.seed === RANDOM_SEED) return { ...(await produce(ctx)), isHit: false, version: null };
    const key = keyOf(query, accountId);
    if (!query.noCache) return this.getShared(ctx, key, produce);
    const answer = await produce(ctx);
    await this.remember(ctx, key, answer);
    return { ...answer, isHit: false, version: null };
  }

  /** What is stored, marked as a hit; null when there is nothing, or it must be made anew. */
  async find(ctx: RequestContext, query: CacheQuery): Promise<CachedAnswer | null> {
    const startedAt = performance.now();
    const { accountId } = requireCaller(ctx);
    if (query.noCache || query.parameters.seed === RANDOM_SEED) return null;
    const key = keyOf(query, accountId);
    const stored = this.unstored.get(nameOf(key)) ?? (await this.orNothing(ctx, this.answers.find(key)));
    if (!stored) return null;
    return { file: stored.file, receipt: hitReceipt(ctx, stored.receipt, startedAt), isHit: true, version: versionOf(stored.receipt) };
  }

  /** Remembers what was made without `get`. */
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
    // What one request may cost decides how long its answer is, and whether there is one.
    const name = ctx.maxCost ? `${nameOf(key)} ${ctx.maxCost.nanocredits}` : nameOf(key);
    for (;;) {
      const { isFirst, result } = this.work.join(name, ctx.signal, async (signal) => {
        return this.findOrMake(deriveContext(ctx, { signal }), key, produce).catch((error: unknown) => {
          throw new MadeInVain(error, payer);
        });
      });
      try {
        const { wasStored, isKept, file, receipt } = await result;
        const isHit = !isFirst || wasStored;
        const version = isKept ? versionOf(receipt) : null;
        return { file, receipt: isHit ? hitReceipt(ctx, receipt, startedAt) : receipt, isHit, version };
      } catch (error) {
        if (!(error instanceof MadeInVain)) throw upstreamFailed("The caller left before the answer came.", { cause: error });
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

  /** Whether the next one who asks is given it from the store. */
  private async remember(ctx: RequestContext, key: Key, answer: CacheableAnswer): Promise<boolean> {
    // What one caller's credits cut short is no answer to others.
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

  /** A cache that does not work, or not in time, is a cache without the answer, and no failure of the request. */
  private async orNothing<Found>(ctx: RequestContext, looking: Promise<Found | null>): Promise<Found | null> {
    const found = looking.catch((error: unknown) => {
      ctx.log.warn({ err: error }, "could not read the content cache");
      return null;
    });
    return (await within(this.times.findMs, found)) ?? null;
  }
}

/** Undefined when the time is up first. */
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

/** By the generation that made it, whose id is nobody's business but its payer's. */
function versionOf({ generationId }: Receipt): string {
  return createHash("sha256").update(generationId).digest("base64url").slice(0, VERSION_CHARS);
}

/** The answers of private models and agents are their caller's own; of all other models everybody's. */
function keyOf({ operation, model, parameters }: CacheQuery, accountId: string): Key {
  const { id, upstreamId, upstreamModel, requiredSafetyFeatures } = model;
  const owner = model.isCommunity || model.isAgent ? accountId : null;
  const sorted = Object.entries(parameters).sort(([a], [b]) => (a < b ? -1 : 1));
  // An operator who puts another model behind the same id does not want the old one's answers.
  const canonical = [CACHE_VERSION, operation, id, upstreamId, upstreamModel, requiredSafetyFeatures, owner, sorted];
  return new Uint8Array(createHash("sha256").update(JSON.stringify(canonical)).digest());
}

function payerOf(ctx: RequestContext): string {
  const caller = requireCaller(ctx);
  return caller.kind === "key" ? caller.apiKeyId : caller.accountId;
}

function isPersonal(error: unknown): boolean {
  return error instanceof AppError && PERSONAL_REFUSALS.has(error.code);
}

/** A receipt of its own for an answer that was not generated for this caller; no usage row bears its id. */
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
