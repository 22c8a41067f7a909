/** The choice among routes and their state (docs/spec/routing.md), with a clock and numbers of the test. */
import { describe, expect, it } from "vitest";
import { AppError } from "../../../src/errors.js";
import { ProviderError } from "../../../src/formats/upstream-error.js";
import type { Model } from "../../../src/services/catalog/model.js";
import { type Route, type RouteDefinition, type Routing, toRoutes } from "../../../src/services/catalog/route.js";
import type { Candidate } from "../../../src/services/generation/routing/candidate.js";
import { type HealthChange, ROUTE_STATES_MAX, RouteHealth } from "../../../src/services/generation/routing/health.js";
import { Router, type RouterOptions } from "../../../src/services/generation/routing/router.js";

const START = Date.parse("2026-11-27T12:00:00Z");

function setup(routes: readonly RouteDefinition[], routing: Routing = "weight", options: RouterOptions = {}) {
  let now = START;
  let seed = 1;
  const clock = { now: () => new Date(now) };
  const random = () => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
  const basis = { modality: "text", imagePricing: "request" } as const;
  const model = { id: "acme/chat", modality: "text", routing, routes: toRoutes(routes, basis, () => undefined) } as unknown as Model;
  const router = new Router({ clock, random, ...options });
  const choose = (fields: Record<string, unknown> = {}) => router.candidatesOf({ accountId: "a", model, fallbacks: [], fields });
  const firstOf = (count: number) => {
    const first = new Map<string, number>();
    for (let call = 0; call < count; call += 1) {
      const id = choose()[0]?.route.id ?? "";
      first.set(id, (first.get(id) ?? 0) + 1);
    }
    return first;
  };
  const pass = (ms: number) => {
    now += ms;
  };
  const routeOf = (id: string): Route => model.routes.find((route) => route.id === id) as Route;
  const candidate = (id: string): Candidate => ({ model, route: routeOf(id) });
  return { model, router, choose, firstOf, pass, routeOf, candidate, clock };
}

const to = (upstreamId: string, more: Partial<RouteDefinition> = {}): RouteDefinition => ({ upstreamId, upstreamModel: "m", ...more });

function status(code: number, retryAfterSeconds?: number): ProviderError {
  return new ProviderError("status", "Failed.", { status: code, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) });
}

describe("the order of routes", () => {
  it("is by priority, and within one by weight", () => {
    const { firstOf, choose } = setup([to("a", { weight: 3 }), to("b"), to("c", { priority: 1, weight: 100 })]);

    const first = firstOf(4_000);
    expect(first.get("a")).toBeGreaterThan(2_800);
    expect(first.get("a")).toBeLessThan(3_200);
    expect((first.get("a") ?? 0) + (first.get("b") ?? 0)).toBe(4_000);
    expect(choose().at(-1)?.route.id).toBe("c");
  });

  it("has a weight of 0 last in its priority, and before the next priority", () => {
    const { choose } = setup([to("zero", { weight: 0 }), to("one", { weight: 1e-9 }), to("later", { priority: 1, weight: 5 })]);

    for (let call = 0; call < 50; call += 1) expect(choose().map(({ route }) => route.id)).toEqual(["one", "zero", "later"]);
  });

  it("by price is the cheapest first, and an unknown price last", () => {
    const { choose } = setup(
      [to("unknown"), to("dear", { prices: { promptTextPrice: 5n } }), to("cheap", { prices: { promptTextPrice: 2n } })],
      "price",
    );

    expect(choose().map(({ route }) => route.id)).toEqual(["cheap", "dear", "unknown"]);
  });

  it.each<[Routing, (router: Router, candidate: Candidate, ms: number) => void]>([
    ["latency", (router, candidate, ms) => router.answered(candidate, ms)],
    ["throughput", (router, candidate, ms) => router.measured(candidate, ms, 10)],
  ])("by %s converges to the fastest, and follows when another becomes faster", (routing, measure) => {
    const { choose, router, firstOf, pass } = setup([to("a"), to("b"), to("c")], routing);
    const speed = new Map([
      ["a", 300],
      ["b", 100],
      ["c", 200],
    ]);
    const call = () => {
      pass(10);
      const [first] = choose();
      if (first) measure(router, first, speed.get(first.route.id) ?? 0);
    };

    for (let calls = 0; calls < 50; calls += 1) call();
    expect(firstOf(100).get("b")).toBeGreaterThan(90);
    speed.set("a", 20);
    for (let calls = 0; calls < 600; calls += 1) call();
    expect(firstOf(100).get("a")).toBeGreaterThan(90);
  });

  it("keeps a conversation on its route for ten minutes after its last call", () => {
    const { choose, router, pass } = setup([to("a"), to("b"), to("c"), to("d")]);
    const messages = [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hi" },
    ];
    const [first] = choose({ messages });
    if (first) router.answered(first, 1);

    const later = [...messages, { role: "assistant", content: "Hello." }, { role: "user", content: "And?" }];
    for (let turn = 0; turn < 20; turn += 1) {
      pass(540_000);
      const [next] = choose({ messages: later });
      expect(next?.route.id).toBe(first?.route.id);
      if (next) router.answered(next, 1);
    }
    pass(600_001);
    const served = new Set(Array.from({ length: 40 }, () => choose({ messages: later })[0]?.route.id));
    expect(served.size).toBeGreaterThan(1);
  });

  it("knows a conversation by the client's name for it", () => {
    const { choose, router } = setup([to("a"), to("b"), to("c")]);
    const [first] = choose({ prompt_cache_key: "k", messages: [{ role: "user", content: "1" }] });
    if (first) router.answered(first, 1);

    for (let call = 0; call < 20; call += 1) {
      expect(choose({ prompt_cache_key: "k", messages: [{ role: "user", content: `${call}` }] })[0]?.route.id).toBe(first?.route.id);
    }
  });
});

describe("a key", () => {
  it.each<[number, number]>([
    [401, 30_000],
    [402, 30_000],
    [429, 1_000],
  ])("that answers %d cools down, longer each time", (code, ms) => {
    const { router, candidate, choose, pass } = setup([to("a"), to("b")]);
    const waits: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      router.failed(candidate("a"), status(code), "failed");
      waits.push(router.waitOf(candidate("a").route)?.ms ?? 0);
      expect(choose().map(({ route }) => route.id)).toEqual(["b"]);
      pass(waits.at(-1) ?? 0);
      expect(choose().length).toBe(2);
    }

    expect(waits).toEqual([ms, 2 * ms, 4 * ms]);
    router.answered(candidate("a"), 1);
    router.failed(candidate("a"), status(code), "failed");
    expect(router.waitOf(candidate("a").route)?.ms).toBe(ms);
  });

  it("cools down as long as its upstream asks, within bounds", () => {
    const { router, candidate } = setup([to("a"), to("b"), to("c")]);
    const waitAfter = (id: string, seconds: number) => {
      router.failed(candidate(id), status(429, seconds), "rate_limited");
      return router.waitOf(candidate(id).route)?.ms;
    };

    expect([waitAfter("a", 12), waitAfter("b", 99_999_999), waitAfter("c", 0)]).toEqual([12_000, 300_000, 1_000]);
  });

  it("that cools down is refused with the soonest time when no other is left", () => {
    const { router, candidate, choose } = setup([to("a"), to("b")]);
    router.failed(candidate("a"), status(429, 20), "rate_limited");
    router.failed(candidate("b"), status(401), "credential_refused");

    const refusal = catching(choose);
    expect(refusal).toMatchObject({
      code: "UPSTREAM_ERROR",
      retryAfterSeconds: 20,
      details: {
        reasons: [
          { route: "a", code: "rate_limited", retryAfterSeconds: 20 },
          { route: "b", code: "credential_refused", retryAfterSeconds: 30 },
        ],
      },
    });
  });

  it("of a model's only route is always asked", () => {
    const { router, candidate, choose } = setup([to("a")]);
    router.failed(candidate("a"), status(429, 20), "rate_limited");

    expect(choose().length).toBe(1);
  });

  it("has its limits kept by not asking", () => {
    const limits = { rpm: 3, tpm: 100, concurrent: 2 };
    const { router, candidate, choose, pass } = setup([to("a", { limits })]);
    const a = candidate("a");
    expect([router.begin(a), router.begin(a), router.begin(a)]).toEqual([null, null, { code: "limit_reached", ms: 1_000 }]);
    router.ended(a, 10);
    expect(router.begin(a)).toBeNull();
    router.ended(a, 10);
    router.ended(a, 10);
    expect(catching(choose)).toMatchObject({ details: { reasons: [{ code: "limit_reached", retryAfterSeconds: 60 }] } });
    pass(60_000);
    router.begin(a);
    router.ended(a, 100);
    expect(catching(choose)).toBeInstanceOf(AppError);
    pass(60_000);
    expect(choose().length).toBe(1);
  });
});

describe("cool-downs", () => {
  it("are remembered for a bounded number of keys, the latest ones", () => {
    const { routeOf, clock } = setup([to("a")]);
    const health = new RouteHealth(clock);
    const byKey = (number: number): Route => ({ ...routeOf("a"), keyId: `key ${number}` });
    for (let number = 0; number <= ROUTE_STATES_MAX; number += 1) health.failed(byKey(number), status(401));

    expect(health.waitOf(byKey(0))).toBeNull();
    expect(health.waitOf(byKey(1))).toMatchObject({ code: "credential_refused" });
    expect(health.waitOf(byKey(ROUTE_STATES_MAX))).toMatchObject({ code: "credential_refused" });
  });
});

describe("an upstream", () => {
  it("with many failures opens its circuit, is probed, and closes it", () => {
    const { router, candidate, choose, pass } = setup([to("a"), to("b")]);
    const a = candidate("a");
    for (let call = 0; call < 4; call += 1) router.failed(a, status(500), "failed");
    expect(router.waitOf(a.route)).toBeNull();
    router.failed(a, new ProviderError("network", "Gone."), "unreachable");
    expect(router.waitOf(a.route)).toEqual({ code: "circuit_open", ms: 5_000 });
    expect(choose().map(({ route }) => route.id)).toEqual(["b"]);

    pass(5_000);
    expect(router.begin(a)).toBeNull();
    // One probe at a time.
    expect(router.begin(a)?.code).toBe("circuit_open");
    router.failed(a, status(503), "failed");
    expect(router.waitOf(a.route)).toEqual({ code: "circuit_open", ms: 10_000 });
    pass(10_000);
    expect(router.begin(a)).toBeNull();
    router.answered(a, 5);
    expect(router.waitOf(a.route)).toBeNull();
    router.failed(a, status(500), "failed");
    expect(router.waitOf(a.route)).toBeNull();
  });

  it("with few failures among many calls keeps it closed", () => {
    const { router, candidate } = setup([to("a"), to("b")]);
    for (let call = 0; call < 20; call += 1) router.failed(candidate("a"), status(400), "refused");
    expect(router.waitOf(candidate("a").route)).toBeNull();
    router.failed(candidate("a"), status(500), "failed");
    for (let call = 0; call < 200; call += 1) {
      router.answered(candidate("a"), 1);
      if (call % 10 === 0) router.failed(candidate("a"), status(500), "failed");
    }

    expect(router.waitOf(candidate("a").route)).toBeNull();
  });
});

it("processes learn cool-downs, circuits and times from each other", () => {
  const listeners = new Map<string, (payload: never) => void>();
  const sent: [string, unknown][] = [];
  const events = {
    publish: (channel: string, payload: unknown) => void sent.push([channel, payload]),
    listenToOthers: (channel: string, listener: (payload: never) => void) => {
      listeners.set(channel, listener);
      return () => undefined;
    },
  } as never;
  const one = setup([to("a"), to("b")], "latency", { events });
  one.router.failed(one.candidate("a"), status(429, 7), "rate_limited");
  one.router.answered(one.candidate("b"), 40);
  const other = setup([to("a"), to("b")], "latency", { events });

  for (const [channel, payload] of sent) listeners.get(channel)?.(payload as never);

  expect(other.router.waitOf(other.candidate("a").route)).toEqual({ code: "rate_limited", ms: 7_000 });
  expect(other.router.timesOf(other.candidate("b").route).firstMs).toBe(40);
});

it("a circuit of another process is probed in time", () => {
  const { routeOf, clock, pass } = setup([to("a"), to("b")]);
  const health = new RouteHealth(clock);
  const change: HealthChange = { kind: "circuit", id: "a", code: "circuit_open", until: START + 5_000 };
  health.learn(change);

  expect(health.waitOf(routeOf("a"))).toEqual({ code: "circuit_open", ms: 5_000 });
  pass(5_000);
  expect(health.begin(routeOf("a"))).toBeNull();
});

function catching(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}
