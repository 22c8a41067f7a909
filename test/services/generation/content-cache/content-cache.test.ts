/** The content cache without HTTP: contents, age and size, concurrent requests, and who pays. */
import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { KeyCaller, RequestContext } from "../../../../src/context.js";
import { AppError } from "../../../../src/errors.js";
import { NO_USAGE } from "../../../../src/lib/usage.js";
import type { Model } from "../../../../src/services/catalog/model.js";
import { BlobGc } from "../../../../src/services/files/blob-gc.js";
import { ORPHAN_AGE_MS } from "../../../../src/services/files/limits.js";
import { CachedAnswers, CONTENT_CACHE_FOLDER } from "../../../../src/services/generation/content-cache/cached-answers.js";
import {
  type AnswerStore,
  type CacheableAnswer,
  type CacheQuery,
  CONTENT_CACHE_ANSWER_BYTES_MAX,
  CONTENT_CACHE_HOURS,
  CONTENT_CACHE_UNSTORED_BYTES_MAX,
  ContentCache,
} from "../../../../src/services/generation/content-cache/content-cache.js";
import type { Receipt } from "../../../../src/services/generation/receipt.js";
import type { BlobStore } from "../../../../src/store/blobs.js";
import { openDirectoryBlobs } from "../../../../src/store/directory-blobs.js";
import { silentLog, type TestDatabase } from "../../../support/database.js";
import { eventually } from "../../../support/eventually.js";
import { routeTo } from "../../../support/routes.js";
import { createAnyTestDatabase } from "../../../support/shared-database.js";

const HOUR_MS = 60 * 60 * 1000;

let test: TestDatabase;
let blobs: BlobStore;
let now: Date;
const clock = { now: () => now };

beforeAll(async () => {
  test = await createAnyTestDatabase();
  blobs = await openDirectoryBlobs(test.dataDir);
});
afterAll(() => test.close());
beforeEach(() => {
  now = new Date();
});

function openCache(bytesMax?: number): { answers: CachedAnswers; cache: ContentCache } {
  const answers = new CachedAnswers(test.database, blobs, clock, silentLog, bytesMax);
  return { answers, cache: new ContentCache(answers) };
}

const model = {
  id: "acme/image",
  routes: [routeTo("acme", "image")],
  requiredSafetyFeatures: [],
  isCommunity: false,
  isAgent: false,
} as unknown as Model;

function query(more: Partial<CacheQuery> = {}): CacheQuery {
  return { operation: "image", model, parameters: { prompt: randomUUID(), seed: 0 }, noCache: false, ...more };
}

function context(signal: AbortSignal = new AbortController().signal, accountId: string = randomUUID()): RequestContext {
  const caller = { kind: "key", accountId, apiKeyId: randomUUID() } as KeyCaller;
  return { caller, requestId: "test", clientAddress: "", signal, log: silentLog };
}

const receipt: Receipt = {
  generationId: randomUUID(),
  model: "acme/image",
  modelUsed: "acme/image",
  upstream: "acme",
  route: "acme",
  vendorKeyId: null,
  upstreamCostNanocredits: null,
  attempts: [],
  usage: { ...NO_USAGE, outputImageTokens: 5 },
  usageSource: "provider",
  status: "ok",
  costNanocredits: 40_000_000n,
  heldNanocredits: 40_000_000n,
  meterSource: "pack",
  gatewayMs: 1,
  upstreamMs: 2,
  responseMs: 3,
  firstTokenMs: null,
  warnings: ["seed was ignored"],
  safety: null,
};

/** Counts how often it is asked. */
function producer(text = "picture") {
  let made = 0;
  const produce = async (): Promise<CacheableAnswer> => {
    made += 1;
    return { file: { bytes: Buffer.from(`${text} ${made}`), contentType: "image/png" }, receipt };
  };
  return { produce, made: () => made };
}

const textOf = ({ file }: CacheableAnswer) => Buffer.from(file.bytes).toString();

describe("a cached answer", () => {
  it("survives a restart, with its type and its receipt, and costs nothing", async () => {
    const asked = query();
    const { produce } = producer();
    await openCache().cache.get(context(), asked, produce);

    const hit = await openCache().cache.get(context(), asked, produce);

    expect([textOf(hit), hit.file.contentType, hit.isHit]).toEqual(["picture 1", "image/png", true]);
    expect(hit.receipt).toMatchObject({ modelUsed: "acme/image", costNanocredits: 0n, heldNanocredits: 0n, usage: NO_USAGE });
    expect(hit.receipt.warnings).toEqual(["seed was ignored"]);
    expect(hit.receipt.generationId).not.toBe(receipt.generationId);
  });

  it.each([
    ["the operation", { operation: "video" }],
    ["the model", { model: { ...model, id: "acme/other" } }],
    ["what stands behind the model", { model: { ...model, routes: [routeTo("acme", "image-2")] } }],
    ["the safety that the model requires", { model: { ...model, requiredSafetyFeatures: ["privacy"] } }],
  ] as [string, Partial<CacheQuery>][])("differs with %s", async (_, more) => {
    const { cache } = openCache();
    const asked = query();
    const { produce, made } = producer();

    await cache.get(context(), asked, produce);
    await cache.get(context(), { ...asked, ...more }, produce);

    expect(made()).toBe(2);
  });

  it("is independent of the order of parameters, and depends on each of them", async () => {
    const { cache } = openCache();
    const prompt = randomUUID();
    const { produce, made } = producer();

    await cache.get(context(), query({ parameters: { prompt, seed: 0, width: 64 } }), produce);
    await cache.get(context(), query({ parameters: { width: 64, seed: 0, prompt } }), produce);
    expect(made()).toBe(1);
    await cache.get(context(), query({ parameters: { prompt, seed: 0, width: "64" } }), produce);
    expect(made()).toBe(2);
  });

  it.each(["isCommunity", "isAgent"])("of a model that %s belongs to its caller alone", async (field) => {
    const { cache } = openCache();
    const [mine, theirs] = [context(), context()];
    const asked = query({ model: { ...model, [field]: true } });
    const { produce, made } = producer();

    await cache.get(mine, asked, produce);
    await cache.get(theirs, asked, produce);
    await cache.get(mine, asked, produce);

    expect(made()).toBe(2);
  });

  it("expires after a week, with its file", async () => {
    const { answers, cache } = openCache();
    const asked = query();
    const { produce, made } = producer();
    await cache.get(context(), asked, produce);

    now = new Date(now.getTime() + CONTENT_CACHE_HOURS * HOUR_MS);
    expect(await answers.sweep()).toBeGreaterThanOrEqual(1);

    expect((await cache.get(context(), asked, produce)).isHit).toBe(false);
    expect(made()).toBe(2);
  });

  it("is made again when its file is lost or short", async () => {
    const { cache } = openCache();
    const asked = query();
    const { produce } = producer();
    await test.database.prisma.contentCacheEntry.deleteMany();
    await cache.get(context(), asked, produce);
    const entry = await test.database.prisma.contentCacheEntry.findFirstOrThrow();

    await blobs.put(entry.blobKey, Buffer.from("short"));
    const first = await cache.get(context(), asked, produce);
    expect([textOf(first), first.isHit]).toEqual(["picture 2", false]);

    await rm(join(test.dataDir, "blobs", CONTENT_CACHE_FOLDER), { recursive: true });
    expect(textOf(await cache.get(context(), asked, produce))).toBe("picture 3");
    expect(textOf(await cache.get(context(), asked, produce))).toBe("picture 3");
  });

  it("is not kept when it is too large", async () => {
    const { cache } = openCache();
    const asked = query();
    const large = { file: { bytes: new Uint8Array(CONTENT_CACHE_ANSWER_BYTES_MAX + 1), contentType: "video/mp4" as const }, receipt };

    await cache.get(context(), asked, async () => large);

    expect((await cache.get(context(), asked, async () => large)).isHit).toBe(false);
  });

  it("is optional: a broken store does not fail the request", async () => {
    const broken = { ...blobs, id: blobs.id, put: async () => Promise.reject(new Error("disk full")) } as unknown as BlobStore;
    const cache = new ContentCache(new CachedAnswers(test.database, broken, clock, silentLog));
    const { produce } = producer();

    expect(textOf(await cache.get(context(), query(), produce))).toBe("picture 1");
  });
});

describe("a slow store", () => {
  /** The real one, behind a gate; `asked` says how often it was written to. */
  function openSlowCache(gated: "find" | "store") {
    const { answers } = openCache();
    let open: () => void = () => undefined;
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    const slow: AnswerStore = {
      find: async (key) => (gated === "find" ? opened : Promise.resolve()).then(() => answers.find(key)),
      open: async (key) => (gated === "find" ? opened : Promise.resolve()).then(() => answers.open(key)),
      store: async (key, answer) => (gated === "store" ? opened : Promise.resolve()).then(() => answers.store(key, answer)),
    };
    // The operation that is not gated has ample time.
    const limits = gated === "find" ? { findMs: 20, storeMs: 60_000 } : { findMs: 60_000, storeMs: 20 };
    return { cache: new ContentCache(slow, limits), open };
  }

  it("is not waited for when it does not find in time", async () => {
    const asked = query();
    const { produce, made } = producer();
    await openCache().cache.get(context(), asked, produce);
    const { cache } = openSlowCache("find");

    const answer = await cache.get(context(), asked, produce);

    expect([textOf(answer), answer.isHit, made()]).toEqual(["picture 2", false, 2]);
    expect(await cache.find(context(), asked)).toBeNull();
    expect(await cache.ask(context(), asked, "image/png", produce).find()).toBeNull();
  });

  it("is not waited for when it does not store in time, and the stored answer is free meanwhile", async () => {
    const asked = query();
    const { produce, made } = producer();
    const { cache, open } = openSlowCache("store");

    const first = await cache.get(context(), asked, produce);
    const second = await cache.get(context(), asked, produce);
    open();

    expect([first.isHit, first.version]).toEqual([false, null]);
    expect([textOf(second), second.isHit, second.version, second.receipt.costNanocredits]).toEqual(["picture 1", true, null, 0n]);
    const stored = await eventually(async () => {
      const found = await openCache().cache.find(context(), asked);
      expect(found).not.toBeNull();
      return found;
    });
    expect([stored?.isHit, stored?.version === null, made()]).toEqual([true, false, 1]);
  });

  it("gets no more than memory has room for", async () => {
    const bytes = Buffer.alloc(CONTENT_CACHE_ANSWER_BYTES_MAX);
    let fail: (error: Error) => void = () => undefined;
    const full = new Promise<never>((_, reject) => {
      fail = reject;
    });
    const nothing = async () => null;
    const cache = new ContentCache({ find: nothing, open: nothing, store: () => full }, { findMs: 1_000, storeMs: 20 });
    let made = 0;
    const produce = async (): Promise<CacheableAnswer> => {
      made += 1;
      return { file: { bytes, contentType: "image/png" }, receipt };
    };
    const queries = Array.from({ length: CONTENT_CACHE_UNSTORED_BYTES_MAX / CONTENT_CACHE_ANSWER_BYTES_MAX + 1 }, () => query());

    for (const asked of [...queries, ...queries]) await cache.get(context(), asked, produce);
    fail(new Error("The disk is full."));

    expect(made).toBe(queries.length + 1);
  });
});

describe("a full cache", () => {
  it("evicts the least recently used answer, and stays below its bound", async () => {
    await test.database.prisma.contentCacheEntry.deleteMany();
    const { answers, cache } = openCache(1_000);
    const asked = Array.from({ length: 12 }, () => query());
    const make = async (): Promise<CacheableAnswer> => ({ file: { bytes: Buffer.alloc(100, 1), contentType: "image/png" }, receipt });
    const at = (minutes: number) => {
      now = new Date(Date.now() + minutes * 60_000);
    };
    for (const [index, one] of asked.slice(0, 10).entries()) {
      at(index);
      await cache.get(context(), one, make);
    }
    at(20);
    const [oldest = query()] = asked;
    expect((await cache.get(context(), oldest, make)).isHit).toBe(true);
    for (const [index, one] of asked.slice(10).entries()) {
      at(30 + index);
      await cache.get(context(), one, make);
    }
    await answers.close();

    const { _sum } = await test.database.prisma.contentCacheEntry.aggregate({ _sum: { sizeBytes: true } });
    expect(_sum.sizeBytes).toBeLessThanOrEqual(1_000);
    const hits = [];
    for (const one of asked) hits.push((await cache.find(context(), one)) !== null);
    expect(hits[0]).toBe(true);
    expect(hits.slice(1, 3)).toEqual([false, false]);
    expect(hits.at(-1)).toBe(true);
    expect(hits.filter(Boolean).length).toBeGreaterThanOrEqual(8);
    const files = [];
    for await (const { key } of blobs.list(CONTENT_CACHE_FOLDER)) files.push(key);
    expect((await answers.findNamed(files)).size).toBe(hits.filter(Boolean).length);
  });
});

describe("concurrent requests for one answer", () => {
  /** An answer that comes when the test says so. */
  function pending() {
    let finish = (_answer: CacheableAnswer | Error) => {};
    const answer = new Promise<CacheableAnswer>((resolve, reject) => {
      finish = (result) => (result instanceof Error ? reject(result) : resolve(result));
    });
    let calls = 0;
    let signal: AbortSignal | null = null;
    const produce = (ctx: RequestContext) => {
      calls += 1;
      signal = ctx.signal;
      return answer;
    };
    const begun = async () => {
      while (signal === null) await new Promise(setImmediate);
      return signal;
    };
    return { produce, finish, begun, calls: () => calls };
  }
  const made: CacheableAnswer = { file: { bytes: Buffer.from("shared"), contentType: "image/png" }, receipt };

  it("share one execution, which the first caller pays", async () => {
    const { cache } = openCache();
    const asked = query();
    const { produce, finish, begun, calls } = pending();
    const first = cache.get(context(), asked, produce);
    await begun();
    const others = Array.from({ length: 20 }, () => cache.get(context(), asked, produce));
    finish(made);

    expect(await first).toMatchObject({ isHit: false, receipt: { costNanocredits: 40_000_000n } });
    for (const other of await Promise.all(others)) expect(other).toMatchObject({ isHit: true, receipt: { costNanocredits: 0n } });
    expect(calls()).toBe(1);
  });

  it("keep it running when the first caller leaves, and stop it when the last does", async () => {
    const { cache } = openCache();
    const asked = query();
    const { produce, begun } = pending();
    const [one, two] = [new AbortController(), new AbortController()];
    const first = cache.get(context(one.signal), asked, produce).catch((error: unknown) => error);
    const signal = await begun();
    const second = cache.get(context(two.signal), asked, produce).catch((error: unknown) => error);

    one.abort();
    expect(await first).toBeInstanceOf(AppError);
    expect(signal.aborted).toBe(false);
    two.abort();
    expect(await second).toBeInstanceOf(AppError);
    expect(signal.aborted).toBe(true);
    const { produce: anew, made: count } = producer();
    expect(textOf(await cache.get(context(), asked, anew))).toBe("picture 1");
    expect(count()).toBe(1);
  });

  it("share a failure, which is not kept", async () => {
    const { cache } = openCache();
    const asked = query();
    const { produce, finish, begun } = pending();
    const waiting = Array.from({ length: 3 }, () => cache.get(context(), asked, produce).catch((error: unknown) => error));
    await begun();
    const failure = new AppError("UPSTREAM_ERROR", "no");
    finish(failure);

    expect(await Promise.all(waiting)).toEqual([failure, failure, failure]);
    expect((await cache.get(context(), asked, producer().produce)).isHit).toBe(false);
  });

  it.each([
    ["refused", new AppError("MAX_COST_EXCEEDED", "It would cost more than the request allows.")],
    ["cut short", { ...made, receipt: { ...receipt, isCut: true } }],
  ])("are not %s because of another request's cost limit", async (_what, outcome) => {
    const { cache } = openCache();
    const asked = query();
    const ctx = context();
    const bounded = pending();
    const first = cache.get({ ...ctx, maxCost: { nanocredits: 1n } }, asked, bounded.produce).catch((error: unknown) => error);
    await bounded.begun();
    const { produce, made: count } = producer();

    const other = await cache.get(ctx, asked, produce);

    expect([textOf(other), other.isHit, count()]).toEqual(["picture 1", false, 1]);
    bounded.finish(outcome);
    expect(await first).toMatchObject(outcome instanceof AppError ? { code: "MAX_COST_EXCEEDED" } : { receipt: { isCut: true } });
  });

  it("share one execution when their cost limits are equal", async () => {
    const { cache } = openCache();
    const asked = query();
    const { produce, finish, begun, calls } = pending();
    const bounded = () => cache.get({ ...context(), maxCost: { nanocredits: 50_000_000n } }, asked, produce);
    const first = bounded();
    await begun();
    const second = bounded();
    finish(made);

    expect([(await first).isHit, (await second).isHit, calls()]).toEqual([false, true, 1]);
  });

  it("are not refused for another caller's empty balance", async () => {
    const { cache } = openCache();
    const asked = query();
    const poor = pending();
    const first = cache.get(context(), asked, poor.produce).catch((error: unknown) => error);
    await poor.begun();
    const { produce, made: count } = producer();
    const others = [cache.get(context(), asked, produce), cache.get(context(), asked, produce)];
    poor.finish(new AppError("INSUFFICIENT_BALANCE", "The balance does not cover it."));

    expect(await first).toMatchObject({ code: "INSUFFICIENT_BALANCE" });
    expect((await Promise.all(others)).map(({ isHit }) => isHit).sort()).toEqual([false, true]);
    expect(count()).toBe(1);
  });
});

describe("blobs without a row", () => {
  it("are removed once they are old, and nothing else is", async () => {
    const { answers, cache } = openCache();
    const asked = query();
    await cache.get(context(), asked, producer().produce);
    await blobs.put(`${CONTENT_CACHE_FOLDER}/orphan`, Buffer.from("left behind"));
    const owner = { folder: CONTENT_CACHE_FOLDER, findNamed: (keys: readonly string[]) => answers.findNamed(keys) };
    const blobGc = new BlobGc(blobs, [owner], clock, silentLog);

    expect(await blobGc.sweepOrphans()).toBe(0);
    now = new Date(Date.now() + ORPHAN_AGE_MS + 1_000);
    expect(await blobGc.sweepOrphans()).toBeGreaterThanOrEqual(1);

    expect(await blobs.head(`${CONTENT_CACHE_FOLDER}/orphan`)).toBeNull();
    expect((await cache.get(context(), asked, producer().produce)).isHit).toBe(true);
  });
});
