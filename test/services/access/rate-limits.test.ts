import { pino } from "pino";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { ApiKeyType, Caller, KeyCaller, RequestContext } from "../../../src/context.js";
import { AppError, unauthenticated } from "../../../src/errors.js";
import { addressGroupOf } from "../../../src/lib/client-address.js";
import { systemClock } from "../../../src/lib/clock.js";
import { COUNTERS_MAX } from "../../../src/limits.js";
import { Access } from "../../../src/services/access/access.js";
import { HOURLY_HOLD_MORE_MS } from "../../../src/services/access/limits.js";
import { type HourlyHold, type RateLimitSettings, RateLimits } from "../../../src/services/access/rate-limits.js";
import type { Model } from "../../../src/services/catalog/model.js";
import { SessionCookie } from "../../../src/services/sessions/csrf-tokens.js";
import { openCounters } from "../../../src/store/counters/open.js";
import { RedisCounters } from "../../../src/store/counters/redis.js";
import { BUCKET_PER_HOUR_MAX, type Counters, fullBucket, MemoryCounters, refill, take } from "../../../src/store/counters.js";
import { eventually } from "../../support/eventually.js";
import { isRedisInstalled, REDIS_ABSENT, startRedis, type TestRedis } from "../../support/redis.js";

const CREDIT = 10n ** 9n;
const HOUR_MS = 3_600_000;
const SETTINGS: RateLimitSettings = {
  anonymousRequestsPer10Seconds: 100,
  publishableRequestsPerMinute: 60,
  publishableCreditsPerHour: CREDIT,
};

function contextAt(clientAddress: string): RequestContext {
  const caller: Caller = { kind: "anonymous" };
  return { caller, requestId: "test", clientAddress, signal: new AbortController().signal, log: pino({ level: "silent" }) };
}

const HERE = contextAt("203.0.113.1");

function keyOf(apiKeyId: string, apiKeyType: ApiKeyType = "publishable", accountId = "account"): KeyCaller {
  return {
    kind: "key",
    accountId,
    isOperator: false,
    apiKeyId,
    apiKeyName: apiKeyId,
    apiKeyType,
    permissions: new Set(),
    modelLists: [],
    hasBudget: false,
    expiresAt: null,
  };
}

function modelWith(perUserRpm: number | null, id = "acme/chat"): Model {
  return { id, perUserRpm } as Model;
}

const PLAIN = modelWith(null);

/** As a generation is let in that is asked for in that context. */
function admit(limits: RateLimits, { clientAddress }: RequestContext, caller: KeyCaller, model: Model): Promise<void> | null {
  return limits.admit(limits.nameOf(caller, clientAddress), caller, model);
}

let generations = 0;

/** Takes a generation from its key's hourly credits within a second; null for a key without a limit. */
function generationOf(limits: RateLimits, ctx: RequestContext, caller: KeyCaller): HourlyHold | null {
  const name = limits.nameOf(caller, ctx.clientAddress);
  generations += 1;
  return name === null ? null : limits.hourlyHold(name, { generationId: `generation ${generations}`, request: ctx }, 1_000);
}

/** A generation that costs so much and was never held. */
function charge(limits: RateLimits, ctx: RequestContext, caller: KeyCaller, nanocredits: bigint): void {
  generationOf(limits, ctx, caller)?.conclude(nanocredits);
}

/** The holds of so many generations that ask at once, each of so much; null for one that is refused. */
function holdAtOnce(limits: readonly RateLimits[], caller: KeyCaller, count: number, nanocredits: bigint): Promise<HourlyHold[]> {
  const asking = Array.from({ length: count }, async (_, index) => {
    const hold = generationOf(limits[index % limits.length] as RateLimits, HERE, caller) as HourlyHold;
    return (await attempt(hold.begin(nanocredits))) === 0 ? [hold] : [];
  });
  return Promise.all(asking).then((holds) => holds.flat());
}

/** Seconds to wait when it was refused, else 0. */
async function attempt(admitted: Promise<void> | null): Promise<number> {
  try {
    await admitted;
    return 0;
  } catch (error) {
    expect(error).toBeInstanceOf(AppError);
    expect((error as AppError).code).toBe("RATE_LIMITED");
    return (error as AppError).retryAfterSeconds ?? -1;
  }
}

/** How many of `count` in a row are let in. */
async function countAdmitted(count: number, once: () => Promise<void> | null): Promise<number> {
  let admitted = 0;
  for (let index = 0; index < count; index += 1) if ((await attempt(once())) === 0) admitted += 1;
  return admitted;
}

async function createLimits(settings: Partial<RateLimitSettings> = {}): Promise<RateLimits> {
  const counters = await openCounters({ redisUrl: null, clock: systemClock, log: pino({ level: "silent" }) });
  return new RateLimits(counters, { ...SETTINGS, ...settings });
}

describe("limits by a moved clock", () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: new Date("2026-03-01T12:00:00.000Z") });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  describe("an address without a good key", () => {
    it("makes 100 requests in ten seconds and not one more, and gets the time of the next", async () => {
      const limits = await createLimits();

      expect(await countAdmitted(100, () => limits.countAnonymous("203.0.113.1"))).toBe(100);
      expect(await attempt(limits.countAnonymous("203.0.113.1"))).toBe(10);
      vi.advanceTimersByTime(9_001);
      expect(await attempt(limits.countAnonymous("203.0.113.1"))).toBe(1);
      vi.advanceTimersByTime(999);
      expect(await attempt(limits.countAnonymous("203.0.113.1"))).toBe(0);
    });

    it("is counted apart from every other, an IPv6 one with its neighbours of the same /64", async () => {
      const limits = await createLimits({ anonymousRequestsPer10Seconds: 1 });

      expect(await attempt(limits.countAnonymous("203.0.113.1"))).toBe(0);
      expect(await attempt(limits.countAnonymous("203.0.113.2"))).toBe(0);
      expect(await attempt(limits.countAnonymous("::ffff:203.0.113.1"))).toBe(10);
      expect(await attempt(limits.countAnonymous("2001:db8:1:2::1"))).toBe(0);
      expect(await attempt(limits.countAnonymous("2001:db8:1:2:ffff::9"))).toBe(10);
      expect(await attempt(limits.countAnonymous("2001:db8:1:3::1"))).toBe(0);
    });

    it("is the same in every notation", () => {
      expect(addressGroupOf("2001:DB8:0:0::1")).toBe(addressGroupOf("2001:db8::2"));
      expect(addressGroupOf("not:an address")).toBe("not:an address");
      expect(addressGroupOf("")).toBe("");
    });

    it("is one that no good key comes from: a wrong one counts, a good one does not", async () => {
      const limits = await createLimits({ anonymousRequestsPer10Seconds: 2 });
      const good = keyOf("good", "secret");
      const authenticate = vi.fn((key: string | null): Caller | Promise<Caller> => {
        if (key === "good") return good;
        if (key === "looked up") return Promise.reject(unauthenticated("no"));
        throw unauthenticated("no");
      });
      const access = new Access({ authenticate }, { find: async () => null }, new SessionCookie(() => []), limits);
      const outcome = (key: string | null) =>
        Promise.resolve(access.authenticate(key, "203.0.113.1")).then(
          () => "ok",
          (error: AppError) => error.code,
        );

      expect(await outcome("wrong")).toBe("UNAUTHORIZED");
      expect(await outcome("looked up")).toBe("UNAUTHORIZED");
      expect(await outcome("wrong")).toBe("RATE_LIMITED");
      expect(await outcome("looked up")).toBe("RATE_LIMITED");
      authenticate.mockReturnValueOnce({ kind: "anonymous" });
      expect(await outcome(null)).toBe("RATE_LIMITED");
      // At once, not as a promise.
      expect(access.authenticate("good", "203.0.113.1")).toBe(good);
    });
  });

  describe("a publishable key", () => {
    it("makes 60 requests a minute from one address, and as many from another", async () => {
      const limits = await createLimits();
      const key = keyOf("pk");

      expect(await countAdmitted(60, () => admit(limits, HERE, key, PLAIN))).toBe(60);
      expect(await attempt(admit(limits, HERE, key, PLAIN))).toBe(60);
      expect(await attempt(admit(limits, contextAt("203.0.113.2"), key, PLAIN))).toBe(0);
      expect(await attempt(admit(limits, HERE, keyOf("other"), PLAIN))).toBe(0);
      vi.advanceTimersByTime(60_000);
      expect(await attempt(admit(limits, HERE, key, PLAIN))).toBe(0);
    });

    it("counts no request of an agent at work for it, but counts its cost", async () => {
      const limits = await createLimits({ publishableRequestsPerMinute: 1 });
      const key = keyOf("pk");
      const agent = { ...key, run: { parentRequestId: "0199f000-0000-7000-8000-000000000001", maxCost: 0n } };

      expect(await attempt(admit(limits, HERE, key, PLAIN))).toBe(0);
      expect(await attempt(admit(limits, HERE, agent, PLAIN))).toBe(0);
      expect(await attempt(admit(limits, HERE, key, PLAIN))).toBeGreaterThan(0);
      charge(limits, HERE, agent, 10n * CREDIT);
      expect(await attempt(admit(limits, HERE, agent, PLAIN))).toBeGreaterThan(0);
    });

    it("is let in while a nanocredit is left of ten hours' worth, and pays its full cost, even more than that", async () => {
      const limits = await createLimits();
      const key = keyOf("pk");

      charge(limits, HERE, key, 10n * CREDIT - 1n);
      expect(await attempt(admit(limits, HERE, key, PLAIN))).toBe(0);
      charge(limits, HERE, key, CREDIT + 1n);

      // One credit below zero: above it in an hour and one nanocredit's time.
      expect(await attempt(admit(limits, HERE, key, PLAIN))).toBe(3601);
      vi.advanceTimersByTime(HOUR_MS);
      expect(await attempt(admit(limits, HERE, key, PLAIN))).toBe(1);
      vi.advanceTimersByTime(1);
      expect(await attempt(admit(limits, HERE, key, PLAIN))).toBe(0);
    });

    it("refills to ten hours' worth and no further", async () => {
      const limits = await createLimits({ publishableRequestsPerMinute: 1_000_000 });
      const key = keyOf("pk");
      charge(limits, HERE, key, 10n * CREDIT);
      vi.advanceTimersByTime(1_000 * HOUR_MS);

      charge(limits, HERE, key, 10n * CREDIT - 1n);
      expect(await attempt(admit(limits, HERE, key, PLAIN))).toBe(0);
      charge(limits, HERE, key, 1n);

      expect(await attempt(admit(limits, HERE, key, PLAIN))).toBe(1);
    });

    it("has a bucket for each address, and pays nothing for free work", async () => {
      const limits = await createLimits();
      const key = keyOf("pk");

      charge(limits, HERE, key, 0n);
      charge(limits, HERE, key, 11n * CREDIT);

      expect(await attempt(admit(limits, HERE, key, PLAIN))).toBeGreaterThan(0);
      expect(await attempt(admit(limits, contextAt("203.0.113.2"), key, PLAIN))).toBe(0);
    });

    it("is never admitted with a limit of no credits, and always with a limit beyond the largest bucket", async () => {
      const none = await createLimits({ publishableCreditsPerHour: 0n });
      const plenty = await createLimits({ publishableCreditsPerHour: 2n ** 62n });

      expect(await attempt(admit(none, HERE, keyOf("pk"), PLAIN))).toBe(3600);
      charge(plenty, HERE, keyOf("pk"), 1_000_000n * CREDIT);
      expect(await attempt(admit(plenty, HERE, keyOf("pk"), PLAIN))).toBe(0);
    });
  });

  describe("hourly credits that are held", () => {
    const SIX_TENTHS = (6n * CREDIT) / 10n;

    it("count as those that are spent: of 40 generations of 0.6 credits at once, 17 fit into ten", async () => {
      const limits = await createLimits();
      const key = keyOf("pk");

      const holds = await holdAtOnce([limits], key, 40, SIX_TENTHS);
      expect(holds.length).toBe(17);
      for (const hold of holds) hold.conclude(SIX_TENTHS);

      // 0.2 credits below zero.
      expect(await attempt(admit(limits, HERE, key, PLAIN))).toBe(721);
    });

    it("differ from spent ones in the refusal: requests under way may soon free some", async () => {
      const limits = await createLimits();
      const key = keyOf("pk");
      const [hold] = await holdAtOnce([limits], key, 1, 11n * CREDIT);

      expect(await attempt(admit(limits, HERE, key, PLAIN))).toBe(1);
      hold?.conclude(11n * CREDIT);
      expect(await attempt(admit(limits, HERE, key, PLAIN))).toBe(3_601);
    });

    it("are given back by a generation that fails, and but for its cost by one that is charged, once", async () => {
      const limits = await createLimits();
      const key = keyOf("pk");
      const [failed, charged] = await holdAtOnce([limits], key, 2, 5n * CREDIT);
      expect((await holdAtOnce([limits], key, 1, CREDIT)).length).toBe(0);

      failed?.conclude(0n);
      failed?.conclude(0n);
      charged?.conclude(1n);
      charged?.conclude(5n * CREDIT);

      const rest = 10n * CREDIT - 1n;
      const [all] = await holdAtOnce([limits], key, 1, rest - 1n);
      expect((await holdAtOnce([limits], key, 1, 1n)).length).toBe(1);
      expect((await holdAtOnce([limits], key, 1, 1n)).length).toBe(0);
      all?.conclude(0n);
      expect((await holdAtOnce([limits], key, 1, 1n)).length).toBe(1);
    });

    it("grow with a stream that costs more, and are not refused to it", async () => {
      const limits = await createLimits();
      const key = keyOf("pk");
      const [stream] = await holdAtOnce([limits], key, 1, CREDIT);

      stream?.extendTo(12n * CREDIT);
      stream?.extendTo(2n * CREDIT);
      expect((await holdAtOnce([limits], key, 1, 1n)).length).toBe(0);
      stream?.conclude(9n * CREDIT);
      stream?.extendTo(12n * CREDIT);

      expect((await holdAtOnce([limits], key, 1, CREDIT - 1n)).length).toBe(1);
      expect((await holdAtOnce([limits], key, 1, 1n)).length).toBe(1);
      expect((await holdAtOnce([limits], key, 1, 1n)).length).toBe(0);
    });

    it("are given back when the process that held them has died, once the generation cannot be under way any more", async () => {
      const limits = await createLimits({ publishableCreditsPerHour: 1n });
      const key = keyOf("pk");
      const [lost] = await holdAtOnce([limits], key, 1, 20n);

      vi.advanceTimersByTime(1_000 + HOURLY_HOLD_MORE_MS - 1);
      expect((await holdAtOnce([limits], key, 1, 1n)).length).toBe(0);
      vi.advanceTimersByTime(1);
      expect((await holdAtOnce([limits], key, 1, 9n)).length).toBe(1);
      // A late charge is charged, and frees nothing a second time.
      lost?.conclude(1n);
      expect((await holdAtOnce([limits], key, 1, 1n)).length).toBe(0);
    });

    it("of one key at one address leave other addresses alone", async () => {
      const limits = await createLimits();
      await holdAtOnce([limits], keyOf("pk"), 1, 11n * CREDIT);

      expect((await holdAtOnce([limits], keyOf("other"), 1, CREDIT)).length).toBe(1);
      expect(await attempt(admit(limits, contextAt("203.0.113.2"), keyOf("pk"), PLAIN))).toBe(0);
    });
  });

  describe("a secret key", () => {
    it("is not counted, and costs no asynchronous step", async () => {
      const limits = await createLimits({ publishableRequestsPerMinute: 1 });
      const key = keyOf("sk", "secret");

      charge(limits, HERE, key, 1_000n * CREDIT);

      for (let index = 0; index < 100; index += 1) expect(admit(limits, HERE, key, PLAIN)).toBeNull();
    });
  });

  describe("perUserRpm", () => {
    it.each([
      { rpm: 3, burst: 3, waitSeconds: 20 },
      { rpm: 1, burst: 1, waitSeconds: 60 },
      { rpm: 0.5, burst: 1, waitSeconds: 120 },
      { rpm: 2.5, burst: 2, waitSeconds: 12 },
      { rpm: 0.001, burst: 1, waitSeconds: 60_000 },
      { rpm: 600, burst: 600, waitSeconds: 1 },
    ])("of $rpm lets $burst in at once, and the next after $waitSeconds s", async ({ rpm, burst, waitSeconds }) => {
      const limits = await createLimits();
      const key = keyOf("sk", "secret");
      const model = modelWith(rpm);

      expect(await countAdmitted(burst, () => admit(limits, HERE, key, model))).toBe(burst);
      expect(await attempt(admit(limits, HERE, key, model))).toBe(waitSeconds);
      vi.advanceTimersByTime(Math.ceil(60_000 / rpm) - (rpm === 2.5 ? 12_000 : 0) - 1);
      if (rpm < 600) expect(await attempt(admit(limits, HERE, key, model))).toBe(1);
      vi.advanceTimersByTime(1);
      expect(await attempt(admit(limits, HERE, key, model))).toBe(0);
      expect(await attempt(admit(limits, HERE, key, model))).toBeGreaterThan(0);
    });

    it("holds over any length of time: no more than the rate and one burst", async () => {
      const limits = await createLimits();
      let admitted = 0;
      for (let step = 0; step < 60; step += 1) {
        if ((await attempt(admit(limits, HERE, keyOf("sk", "secret"), modelWith(1.7)))) === 0) admitted += 1;
        vi.advanceTimersByTime(10_000);
      }

      // 590 s at 1.7 a minute, and the 1.7 that there were at first.
      expect(admitted).toBe(Math.floor((590 / 60) * 1.7 + 1.7));
    });

    it("counts each account and each model apart, keys of one account together", async () => {
      const limits = await createLimits();

      expect(await attempt(admit(limits, HERE, keyOf("a", "secret"), modelWith(1)))).toBe(0);
      expect(await attempt(admit(limits, HERE, keyOf("b", "secret"), modelWith(1)))).toBe(60);
      expect(await attempt(admit(limits, HERE, keyOf("c", "secret", "another account"), modelWith(1)))).toBe(0);
      expect(await attempt(admit(limits, HERE, keyOf("a", "secret"), modelWith(1, "acme/other")))).toBe(0);
    });
  });
});

describe("counters in memory", () => {
  it("are bounded in number: after 100,000 more than are remembered, the first is forgotten", async () => {
    const counters = new MemoryCounters(systemClock);
    const rule = { name: "test", max: 1, seconds: 600 };
    const bucket = { capacity: 1, perHour: 1 };
    await counters.count(rule, "first");
    await counters.take(bucket, "first", 1, 1);
    expect(await counters.count(rule, "first")).toBeGreaterThan(0);
    expect(await counters.take(bucket, "first", 1, 1)).toBeGreaterThan(0);

    for (let index = 0; index < COUNTERS_MAX; index += 1) {
      await counters.count(rule, `address ${index}`);
      await counters.take(bucket, `address ${index}`, 1, 1);
    }

    expect(counters.windowSize).toBe(COUNTERS_MAX);
    expect(await counters.count(rule, "first")).toBe(0);
    expect(await counters.take(bucket, "first", 1, 1)).toBe(0);
    counters.close();
    expect(counters.windowSize).toBe(0);
  });
});

describe("a bucket", () => {
  it("loses nothing to rounding, however often it is looked at", () => {
    const rule = { capacity: 10_000_000_000, perHour: 999_999_937 };
    const bucket = fullBucket(rule, 0);
    take(bucket, rule, rule.capacity, null);

    for (let now = 7; now <= HOUR_MS; now += 7) refill(bucket, rule, now);
    refill(bucket, rule, HOUR_MS);

    expect(bucket).toEqual({ level: rule.perHour, carry: 0, at: HOUR_MS });
  });

  it("stays a whole number at the largest rate, and does not refill for a clock that goes back", () => {
    const rule = { capacity: BUCKET_PER_HOUR_MAX * 10, perHour: BUCKET_PER_HOUR_MAX };
    const bucket = fullBucket(rule, 0);
    take(bucket, rule, rule.capacity, null);

    refill(bucket, rule, 1);
    expect(bucket.level).toBe(BUCKET_PER_HOUR_MAX / HOUR_MS);
    refill(bucket, rule, -HOUR_MS);
    refill(bucket, rule, 1);
    expect(bucket.level).toBe(BUCKET_PER_HOUR_MAX / HOUR_MS);
  });
});

/** Waits as long as a busy machine needs. */
const PATIENCE_MS = 20_000;

describe.skipIf(!isRedisInstalled)(`shared through Redis (${isRedisInstalled ? "installed" : REDIS_ABSENT})`, () => {
  let redis: TestRedis;
  const opened: Counters[] = [];
  const warnings: string[] = [];
  const log = pino({ level: "warn" }, { write: (line: string) => void warnings.push(JSON.parse(line).msg) });

  async function open(settings: Partial<RateLimitSettings> = {}): Promise<RateLimits> {
    const counters = await openCounters({ redisUrl: redis.url, clock: systemClock, log, answerTimeoutMs: PATIENCE_MS });
    opened.push(counters);
    // Until it is connected, it counts by itself.
    await eventually(() => expect(counters instanceof RedisCounters && counters.isShared).toBe(true));
    return new RateLimits(counters, { ...SETTINGS, ...settings });
  }

  beforeAll(async () => {
    const started = await startRedis();
    if (!started) throw new Error(REDIS_ABSENT);
    redis = started;
  });
  afterAll(async () => {
    for (const counters of opened) counters.close();
    await redis.stop();
  });

  it("counts requests of all processes together", async () => {
    const [a, b] = [await open(), await open()];
    const both = (once: (limits: RateLimits) => Promise<void> | null, count: number) =>
      Promise.all(Array.from({ length: count }, (_, index) => attempt(once(index % 2 === 0 ? a : b)))).then(
        (waits) => waits.filter((wait) => wait === 0).length,
      );

    expect(await both((limits) => limits.countAnonymous("198.51.100.1"), 110)).toBe(100);
    expect(await both((limits) => admit(limits, HERE, keyOf("shared"), PLAIN), 70)).toBe(60);
    expect(await both((limits) => admit(limits, HERE, keyOf("sk", "secret"), modelWith(5, "acme/shared")), 10)).toBe(5);
    expect(await attempt(a.countAnonymous("198.51.100.1"))).toBeGreaterThanOrEqual(9);
  });

  it("counts credits of all processes together, to the nanocredit", async () => {
    const [a, b] = [await open(), await open()];
    const key = keyOf("credits");

    charge(a, HERE, key, 10n * CREDIT - 1n);
    expect(await attempt(admit(a, HERE, key, PLAIN))).toBe(0);
    expect(await attempt(admit(b, HERE, key, PLAIN))).toBe(0);
    charge(a, HERE, key, 3n * CREDIT);
    await attempt(admit(a, HERE, key, PLAIN));

    const wait = await attempt(admit(b, HERE, key, PLAIN));
    expect(wait).toBeGreaterThanOrEqual(3 * 3600 - 2);
    expect(wait).toBeLessThanOrEqual(3 * 3600);
  });

  it("holds credits of all processes together: of 40 generations of 0.6 credits at once, 17 fit into ten", async () => {
    const [a, b] = [await open(), await open()];
    const key = keyOf("held by several");
    const sixTenths = (6n * CREDIT) / 10n;

    const holds = await holdAtOnce([a, b], key, 40, sixTenths);
    expect(holds.length).toBe(17);
    expect(await attempt(admit(b, HERE, key, PLAIN))).toBe(1);
    holds.pop()?.conclude(0n);
    await eventually(async () => expect(await attempt(admit(b, HERE, key, PLAIN))).toBe(0));
    expect((await holdAtOnce([b], key, 2, sixTenths)).length).toBe(1);
    for (const hold of holds) hold.conclude(sixTenths / 2n);
    // Each connection has its own order: both have concluded when both have answered.
    for (const limits of [a, b]) await attempt(admit(limits, HERE, key, PLAIN));

    // 16 of 0.3 are spent and one of 0.6 is held: 4.6 are left, and the refill since.
    expect((await holdAtOnce([a, b], key, 10, sixTenths)).length).toBe(8);
  });

  it("releases the holds of a process that died, when they expire by Redis's clock", async () => {
    const limits = await open();
    const counters = opened.at(-1) as Counters;
    const rule = { capacity: 10, perHour: 1 };
    expect(await counters.take(rule, "left behind", 10, 1, { id: "lost", ttlMs: 200 })).toBe(0);
    expect(await counters.take(rule, "left behind", 1, 1, { id: "next", ttlMs: 60_000 })).toBeGreaterThan(0);

    await eventually(async () => expect(await counters.take(rule, "left behind", 10, 10, { id: "next", ttlMs: 60_000 })).toBe(0));
    await counters.take(rule, "left behind", 1, null, { id: "lost", ttlMs: 0 });
    await counters.take(rule, "left behind", 0, null, { id: "next", ttlMs: 0 });

    expect(await counters.take(rule, "left behind", 0, 10)).toBeGreaterThan(0);
    expect(await counters.take(rule, "left behind", 0, 9)).toBe(0);
    expect(limits).toBeDefined();
  });

  it("refills by Redis's clock", async () => {
    const limits = await open();
    const model = modelWith(600, "acme/fast");
    const once = () => admit(limits, HERE, keyOf("sk", "secret"), model);
    const started = Date.now();
    const first = await Promise.all(Array.from({ length: 700 }, () => attempt(once())));
    const elapsed = Date.now() - started;

    const admitted = first.filter((wait) => wait === 0).length;
    expect(admitted).toBeGreaterThanOrEqual(600);
    expect(admitted).toBeLessThanOrEqual(600 + Math.ceil(elapsed / 100) + 1);
    await eventually(async () => expect(await attempt(once())).toBe(0));
  });

  it("counts in memory while Redis is away, says so once, and shares again when it is back", async () => {
    const limits = await open({ anonymousRequestsPer10Seconds: 3 });
    expect(await countAdmitted(4, () => limits.countAnonymous("198.51.100.9"))).toBe(3);
    warnings.length = 0;

    await redis.kill9();
    expect(await countAdmitted(5, () => limits.countAnonymous("198.51.100.9"))).toBe(3);
    expect(await attempt(admit(limits, HERE, keyOf("pk-away"), modelWith(1, "acme/away")))).toBe(0);
    charge(limits, HERE, keyOf("pk-away"), CREDIT);
    expect((await holdAtOnce([limits], keyOf("held away"), 40, (6n * CREDIT) / 10n)).length).toBe(17);

    const warning = "rate limits are counted by each process alone, because Redis does not answer";
    await eventually(() => expect(warnings).toEqual(opened.map(() => warning)));
    await redis.restart();
    const fresh = await open({ anonymousRequestsPer10Seconds: 3 });
    await eventually(async () => {
      await countAdmitted(4, () => fresh.countAnonymous("198.51.100.77"));
      expect(await attempt(limits.countAnonymous("198.51.100.77"))).toBeGreaterThan(0);
    });
  });
});
