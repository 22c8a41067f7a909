/** Four processes keep the limits of a route together through Redis, and know each other's cool-downs and times after a start. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { ProviderError } from "../../../src/formats/upstream-error.js";
import type { Model } from "../../../src/services/catalog/model.js";
import { type RouteLimits, toRoutes } from "../../../src/services/catalog/route.js";
import type { Candidate } from "../../../src/services/generation/routing/candidate.js";
import { Router } from "../../../src/services/generation/routing/router.js";
import { RedisRouteStates } from "../../../src/store/route-states/redis.js";
import { silentLog } from "../../support/database.js";
import { isRedisInstalled, REDIS_ABSENT, startRedis, type TestRedis } from "../../support/redis.js";

const PROCESSES = 4;
const MINUTE_MS = 60_000;
const START = Date.parse("2026-11-27T12:00:00Z");

if (!isRedisInstalled) console.warn(`skipped, shares of limits: ${REDIS_ABSENT}`);

interface Process {
  readonly router: Router;
  readonly states: RedisRouteStates;
}

describe.skipIf(!isRedisInstalled)(`${PROCESSES} processes`, () => {
  let redis: TestRedis;
  let now = START;
  let processes: Process[] = [];
  let names = 0;

  beforeAll(async () => {
    redis = (await startRedis()) as TestRedis;
  });
  afterEach(async () => {
    for (const { router, states } of processes) {
      await router.close();
      states.close();
    }
    processes = [];
  });
  afterAll(() => redis.stop());

  /** A route of its own for each test. */
  function routed(limits: Partial<RouteLimits>): Model {
    names += 1;
    const stated = { upstreamId: `up-${names}`, upstreamModel: "m", limits: { rpm: null, tpm: null, concurrent: null, ...limits } };
    const routes = toRoutes(
      [stated, { upstreamId: `other-${names}`, upstreamModel: "m" }],
      { modality: "text", imagePricing: "request" },
      () => undefined,
    );
    return { id: "acme/chat", modality: "text", routing: "weight", routes } as unknown as Model;
  }

  /** Exchanges only when the test says so. */
  async function start(model: Model, count = PROCESSES): Promise<Process[]> {
    const started = Array.from({ length: count }, () => {
      const states = new RedisRouteStates(redis.url, silentLog);
      names += 1;
      const router = new Router({ clock: { now: () => new Date(now) }, states, processId: `process-${names}` });
      return { router, states };
    });
    for (const each of started) processes.push(each);
    // They know each other.
    await exchange(started);
    for (const { router } of started) router.watch([model]);
    await exchange(started);
    return started;
  }

  async function exchange(of: readonly Process[], times = 1): Promise<void> {
    for (let round = 0; round < times; round += 1) for (const { router } of of) await router.exchange();
  }

  const limitedOf = (model: Model): Candidate => ({ model, route: model.routes[0] });

  /** Calls until the process is refused; each ends at once. */
  function callAll({ router }: Process, candidate: Candidate, most = 1_000): number {
    for (let calls = 0; calls < most; calls += 1) {
      if (router.begin(candidate) !== null) return calls;
      router.ended(candidate, 0);
    }
    return most;
  }

  it("have an equal part of a minute's requests each, without an exchange in a call", async () => {
    const model = routed({ rpm: 60 });
    const all = await start(model);

    expect(all.map((each) => callAll(each, limitedOf(model)))).toEqual([15, 15, 15, 15]);
    await exchange(all, 4);
    expect(all.map((each) => callAll(each, limitedOf(model)))).toEqual([0, 0, 0, 0]);
  });

  it("leave the whole limit to the one that has the calls, and never exceed it together", async () => {
    const model = routed({ rpm: 60 });
    const all = await start(model);
    const [busy, ...others] = all as [Process, ...Process[]];
    const candidate = limitedOf(model);

    let calls = 0;
    for (let round = 0; round < 40; round += 1) {
      calls += callAll(busy, candidate);
      await exchange(all);
    }
    const rest = others.reduce((sum, each) => sum + callAll(each, candidate), 0);

    expect(calls + rest).toBe(60);
    expect(rest).toBeLessThanOrEqual(3);
  });

  it.each([
    ["lower", 60, 20],
    ["higher", 20, 60],
  ])("share a limit that an operator has made %s", async (_change, before, after) => {
    const model = routed({ rpm: before });
    const all = await start(model);
    const [route, ...others] = model.routes;
    const changed = { ...model, routes: [{ ...route, limits: { rpm: after, tpm: null, concurrent: null } }, ...others] } as Model;
    for (const { router } of all) router.watch([changed]);
    await exchange(all, 2);

    const calls = all.map((each) => callAll(each, limitedOf(changed)));
    expect(Math.min(...calls)).toBeGreaterThan(0);
    await exchange(all, 40);
    const more = all.map((each) => callAll(each, limitedOf(changed)));
    expect([...calls, ...more].reduce((sum, each) => sum + each)).toBeLessThanOrEqual(after);
    expect(calls.reduce((sum, each) => sum + each)).toBeGreaterThanOrEqual(Math.min(before, after));
  });

  it("leave a part to one that starts later", async () => {
    const model = routed({ rpm: 60 });
    const [early] = (await start(model, 1)) as [Process];
    const [late] = (await start(model, 1)) as [Process];
    await exchange([late, early], 8);

    const calls = callAll(late, limitedOf(model));
    expect(calls).toBeGreaterThan(5);
    expect(calls + callAll(early, limitedOf(model))).toBeLessThanOrEqual(60);
  });

  it("have their parts of the next minute before it begins", async () => {
    const model = routed({ rpm: 60 });
    const all = await start(model);
    for (const each of all) callAll(each, limitedOf(model));
    now += MINUTE_MS - (now % MINUTE_MS) - 1_000;
    await exchange(all);
    now += 1_000;

    expect(all.map((each) => callAll(each, limitedOf(model)))).toEqual([15, 15, 15, 15]);
  });

  it("give back their parts of the next minute when they end before it", async () => {
    const model = routed({ rpm: 60 });
    const before = await start(model);
    for (const each of before) callAll(each, limitedOf(model));
    now += MINUTE_MS - (now % MINUTE_MS) - 1_000;
    await exchange(before);
    for (const { router } of before) await router.close();
    now += 1_000;
    const after = await start(model);

    expect(after.map((each) => callAll(each, limitedOf(model)))).toEqual([15, 15, 15, 15]);
  });

  it("skip the route of a minute that came without an exchange, until the next one", async () => {
    const model = routed({ rpm: 60 });
    const all = await start(model);
    now += 3 * MINUTE_MS;

    expect(all.map((each) => callAll(each, limitedOf(model)))).toEqual([0, 0, 0, 0]);
    expect(all[0]?.router.waitOf(limitedOf(model).route)).toEqual({ code: "limit_reached", ms: 1_000 });
    await exchange(all);
    expect(all.map((each) => callAll(each, limitedOf(model)))).toEqual([15, 15, 15, 15]);
  });

  it("keep a limit that an operator has changed", async () => {
    const model = routed({ rpm: 60 });
    const all = await start(model);
    const [first, ...others] = model.routes;
    const stated = { ...model, routes: [{ ...first, limits: { rpm: 20, tpm: null, concurrent: null } }, ...others] } as Model;
    for (const { router } of all) router.watch([stated]);
    await exchange(all, 2);

    expect(all.map((each) => callAll(each, limitedOf(stated)))).toEqual([5, 5, 5, 5]);
  });

  it("share calls at once, and get back those of a process that has ended", async () => {
    const model = routed({ concurrent: 4 });
    const all = await start(model);
    const [busy, ...others] = all as [Process, ...Process[]];
    const candidate = limitedOf(model);
    for (const { router } of all) expect(router.begin(candidate)).toBeNull();
    expect(busy.router.begin(candidate)?.code).toBe("limit_reached");

    for (const { router } of others) {
      router.ended(candidate, 0);
      await router.close();
    }
    for (const _ of others) {
      await exchange([busy]);
      expect(busy.router.begin(candidate)).toBeNull();
    }
    await exchange([busy], 4);
    expect(busy.router.begin(candidate)?.code).toBe("limit_reached");
  });

  it("count the tokens of all", async () => {
    const model = routed({ tpm: 1_000 });
    const all = await start(model);
    const candidate = limitedOf(model);
    for (const { router } of all) {
      expect(router.begin(candidate)).toBeNull();
      router.ended(candidate, 250);
    }
    expect(all[0]?.router.waitOf(candidate.route)).toBeNull();

    await exchange(all, 2);
    expect(all.map(({ router }) => router.waitOf(candidate.route)?.code)).toEqual(Array(PROCESSES).fill("limit_reached"));
  });

  it("keep an equal part each while Redis is away, and share again when it is back", async () => {
    const model = routed({ rpm: 60 });
    const all = await start(model);
    await redis.kill9();
    now += 2 * MINUTE_MS;
    await exchange(all);

    expect(all.map((each) => callAll(each, limitedOf(model)))).toEqual([15, 15, 15, 15]);
    await redis.restart();
    await expect
      .poll(async () => {
        await exchange(all, 8);
        return all.map(({ states }) => states.isConnected);
      })
      .toEqual(Array(PROCESSES).fill(true));
    now += 5_000;
    await exchange(all, 8);
    expect(all.map((each) => callAll(each, limitedOf(model)))).toEqual([0, 0, 0, 0]);
  });

  it("know the cool-downs, circuits and times of the others when they start", async () => {
    const model = routed({});
    const [limited, failing] = model.routes.map((route) => ({ model, route })) as [Candidate, Candidate];
    const [before] = (await start(model, 1)) as [Process];
    const refusal = new ProviderError("status", "Slow down.", { status: 429, retryAfterSeconds: 99_999_999 });
    before.router.failed(limited, refusal, "rate_limited");
    for (let call = 0; call < 5; call += 1) before.router.failed(failing, new ProviderError("network", "Gone."), "unreachable");
    before.router.answered(failing, 70);
    before.router.failed(failing, new ProviderError("status", "No.", { status: 401 }), "credential_refused");
    await before.router.close();

    const [after] = (await start(model, 1)) as [Process];
    await after.router.open([]);

    expect(after.router.waitOf(limited.route)).toEqual({ code: "rate_limited", ms: 300_000 });
    expect(after.router.waitOf(failing.route)).toEqual({ code: "credential_refused", ms: 30_000 });
    expect(after.router.timesOf(failing.route).firstMs).toBe(70);
    now += 30_000;
    // It grows from there.
    after.router.failed(failing, new ProviderError("status", "No.", { status: 401 }), "credential_refused");
    expect(after.router.waitOf(failing.route)?.ms).toBe(60_000);
  });
});
