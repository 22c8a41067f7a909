/** Changes of routes by operators (docs/spec/routing.md#operators). */
import { rm } from "node:fs/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { type Client, createClient } from "../rest/client.js";
import { createStranger } from "../rest/seed.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type KeyedUpstream, startKeyedUpstream } from "../support/keyed-upstream.js";
import { codes, executeText, type HttpTarget, ok } from "./client.js";

let app: TestApp;
let alpha: KeyedUpstream;
let beta: KeyedUpstream;
let client: Client;
let aheadMs = 0;

const PRICES = { promptTextPrice: "0.000004", completionTextPrice: "0.00001" };
const A = { upstream: "alpha", upstreamModel: "a" };
const B = { upstream: "beta", upstreamModel: "b" };

const model = (id: string, routes: readonly object[], more: object = {}) => ({
  ...{ id, title: id, modality: "text", routes, prices: PRICES },
  ...more,
});

function models() {
  return [
    model("routed/one", [A], { aliases: ["one"] }),
    model("routed/two", [A, { ...B, priority: 1 }]),
    model("routed/picture", [{ upstream: "alpha", upstreamModel: "p" }], {
      ...{ modality: "image", variations: true, prices: { completionImagePrice: "0.04" } },
    }),
  ];
}

function upstreams() {
  return [
    { id: "alpha", wireFormat: "openai", baseUrl: alpha.baseUrl, apiKeys: ["alpha-1", "alpha-2"] },
    { id: "beta", wireFormat: "openai", baseUrl: beta.baseUrl, apiKey: "beta-1" },
    { id: "claude", wireFormat: "anthropic", baseUrl: beta.baseUrl, apiKey: "beta-1" },
  ];
}

beforeAll(async () => {
  [alpha, beta] = await Promise.all([startKeyedUpstream(), startKeyedUpstream()]);
  app = await createTestApp({ clock: { now: () => new Date(Date.now() + aheadMs) }, upstreams: upstreams(), models: models() });
  client = createClient(app.baseUrl, app.key);
});
beforeEach(async () => {
  // Later than every cool-down of the test before.
  aheadMs += 900_000;
  for (const modelId of ["routed/one", "routed/two"]) await reset(modelId);
  for (const { answers, requests } of [alpha, beta]) {
    answers.clear();
    requests.clear();
  }
});
afterAll(async () => {
  await app.close();
  await Promise.all([alpha.close(), beta.close()]);
});

let talks = 0;

/** The upstream that serves a new conversation; the status of a refusal. */
async function served(id: string, by: Client = client): Promise<string | number> {
  talks += 1;
  const answer = await by.post("/v1/chat/completions", { model: id, messages: [{ role: "user", content: `Talk ${talks}` }] });
  return answer.status === 200 ? (answer.headers.get("x-upstream") ?? "") : answer.status;
}

const ROUTES =
  "modelId isOffered routing configuredRouting routes { id upstream isEnabled isAdded changed priority weight } ignored { upstream reason }";

type Fields = Readonly<Record<string, unknown>>;

interface Changed {
  readonly model: Fields;
  readonly warnings: readonly string[];
}

function mutate(mutation: string, input: object, target: HttpTarget = app) {
  const type = `${mutation.charAt(0).toUpperCase()}${mutation.slice(1)}Input`;
  const query = `mutation ($input: ${type}!) { ${mutation}(input: $input) { model { ${ROUTES} } warnings } }`;
  return executeText(target, { query, variables: { input } });
}

async function changed(mutation: string, input: object): Promise<Changed> {
  return ok(await mutate(mutation, input))[mutation] as Changed;
}

async function errorOf(mutation: string, input: object) {
  const [error] = (await mutate(mutation, input)).errors ?? [];
  return { code: error?.extensions.code, param: error?.extensions.param, message: error?.message };
}

async function shown(filter: object, target: HttpTarget = app): Promise<Fields | undefined> {
  const query = `query ($filter: RoutesFilter) { modelRoutes(filter: $filter, first: 5) { nodes { ${ROUTES} } } }`;
  const { modelRoutes } = ok(await executeText(target, { query, variables: { filter } })) as {
    modelRoutes: { nodes: readonly Fields[] };
  };
  return modelRoutes.nodes[0];
}

const reset = (modelId: string) => changed("resetRoutes", { modelId });

const routesOf = (model: Fields | undefined) => (model?.routes ?? []) as readonly Fields[];

describe("an operator's change of a route", () => {
  it("holds for the next request, and until it is reset", async () => {
    expect(await served("routed/two")).toBe("alpha");

    await changed("updateRoute", { modelId: "routed/two", upstream: "alpha", isEnabled: false });
    expect(await served("routed/two")).toBe("beta");

    await changed("updateRoute", { modelId: "routed/two", upstream: "alpha", isEnabled: true, priority: 2 });
    expect(await served("routed/two")).toBe("beta");

    await reset("routed/two");
    expect(await served("routed/two")).toBe("alpha");
    expect(await app.database.prisma.routeOverrides.count()).toBe(0);
  });

  it("is shown, for all keys of the upstream or for one", async () => {
    await changed("updateRoute", { modelId: "routed/two", upstream: "alpha", weight: 6 });

    const { model } = await changed("updateRoute", { modelId: "routed/two", upstream: "alpha", keyNumber: 2, isEnabled: false });

    expect(model).toEqual(await shown({ modelId: "routed/two" }));
    expect(routesOf(model)).toMatchObject([
      { id: "alpha#1", isEnabled: true, weight: 6, changed: ["WEIGHT"] },
      { id: "alpha#2", isEnabled: false, changed: ["ENABLED", "WEIGHT"] },
      { id: "beta", isEnabled: true, weight: 1, changed: [] },
    ]);
    for (let call = 0; call < 10; call += 1) await served("routed/two");
    expect([...alpha.requests.keys()]).toEqual(["alpha-1"]);
  });

  it("resets one setting with null, and one route by its name", async () => {
    await changed("updateRoute", { modelId: "routed/two", upstream: "alpha", weight: 6, priority: 3 });
    await changed("updateRoute", { modelId: "routed/two", upstream: "beta", weight: 2 });

    const one = await changed("updateRoute", { modelId: "routed/two", upstream: "alpha", weight: null });
    expect(routesOf(one.model).map((route) => route.changed)).toEqual([["PRIORITY"], ["PRIORITY"], ["WEIGHT"]]);

    const other = await changed("resetRoutes", { modelId: "routed/two", upstream: "beta" });
    expect(routesOf(other.model).map((route) => route.changed)).toEqual([["PRIORITY"], ["PRIORITY"], []]);
  });

  it("adds a route to a configured upstream, and removes it", async () => {
    await changed("addRoute", { modelId: "one", upstream: "beta", upstreamModel: "b9", priority: 0 });
    await changed("updateRoute", { modelId: "routed/one", upstream: "alpha", priority: 1 });
    expect(await served("routed/one")).toBe("beta");

    const { model } = await changed("removeRoute", { modelId: "routed/one", upstream: "beta" });

    expect(routesOf(model).map(({ upstream }) => upstream)).toEqual(["alpha", "alpha"]);
    expect(await served("routed/one")).toBe("alpha");
  });

  it("sets the order of the routes", async () => {
    const { model } = await changed("setRouting", { modelId: "routed/two", routing: "LATENCY" });
    expect(model).toMatchObject({ routing: "LATENCY", configuredRouting: "WEIGHT" });

    expect((await changed("setRouting", { modelId: "routed/two", routing: null })).model).toMatchObject({ routing: "WEIGHT" });
  });

  it("changes what the operator pays, and warns of a price above the model's", async () => {
    const prices = { promptTextPrice: "0.000001", completionTextPrice: "0.00002" };

    const { warnings } = await changed("updateRoute", { modelId: "routed/two", upstream: "alpha", prices });

    expect(warnings).toEqual([expect.stringMatching(/alpha.*completionTextPrice is above/)]);
    expect(app.logs).toContainEqual(
      expect.objectContaining({ event: "route-above-price", model: "routed/two", price: "completionTextPrice" }),
    );
    await served("routed/two");
    const [row] = (await client.get("/account/usage?limit=1")).json<{ usage: Fields[] }>().usage;
    // 10 and 4 tokens.
    expect(row).toMatchObject({ upstream: "alpha", cost_usd: 0.00008, upstream_cost_usd: 0.00009 });
  });

  it("keeps limits, which no request exceeds", async () => {
    await changed("updateRoute", { modelId: "routed/two", upstream: "alpha", limits: { rpm: 1 } });

    const all = [await served("routed/two"), await served("routed/two"), await served("routed/two")];

    expect(all).toEqual(["alpha", "alpha", "beta"]);
  });

  it("is followed by another, of which none is lost", async () => {
    await Promise.all([
      ...[1, 2, 3, 4].map((weight) => changed("updateRoute", { modelId: "routed/two", upstream: "alpha", weight })),
      changed("updateRoute", { modelId: "routed/two", upstream: "alpha", priority: 5 }),
      changed("updateRoute", { modelId: "routed/two", upstream: "beta", priority: 6 }),
      changed("setRouting", { modelId: "routed/two", routing: "PRICE" }),
    ]);

    const model = await shown({ modelId: "routed/two" });
    expect(model).toMatchObject({ routing: "PRICE" });
    expect(routesOf(model).map(({ priority }) => priority)).toEqual([5, 5, 6]);
  });
});

describe("a model without an enabled route", () => {
  it("is refused, unless it is asked for", async () => {
    const off = { modelId: "routed/one", upstream: "alpha", isEnabled: false };
    const refused = await errorOf("updateRoute", off);
    expect(refused).toMatchObject({ code: "CONFLICT", message: expect.stringContaining("allowsNone: true") });
    expect(await served("routed/one")).toBe("alpha");

    const { model } = await changed("updateRoute", { ...off, allowsNone: true });

    expect(model).toMatchObject({ isOffered: false });
    const answer = await client.post("/v1/chat/completions", { model: "one", messages: [{ role: "user", content: "Hi" }] });
    expect(answer.status).toBe(400);
    expect(answer.text).toMatch(/routed\/one cannot be called: an operator has disabled all of its routes/);
    const stranger = await createStranger(app);
    const theirs = await createClient(app.baseUrl, stranger.key).post("/v1/chat/completions", { model: "one", messages: [] });
    expect(theirs.text).not.toContain("operator");
    await changed("updateRoute", { modelId: "one", upstream: "alpha", isEnabled: true });
    expect(await served("one")).toBe("alpha");
  });

  it("may be left with a weight of 0 for the route that remains", async () => {
    await changed("updateRoute", { modelId: "routed/two", upstream: "beta", weight: 0 });
    await changed("updateRoute", { modelId: "routed/two", upstream: "alpha", isEnabled: false });

    expect(await served("routed/two")).toBe("beta");
  });
});

describe("a wrong change of a route is refused, and changes nothing:", () => {
  const route = { modelId: "routed/two", upstream: "alpha" };
  it.each([
    ["an unknown model", "updateRoute", { ...route, modelId: "routed/tow", weight: 1 }, "modelId", /closest are: .*routed\/two/],
    ["a registered model", "updateRoute", { ...route, modelId: "community/a/b", weight: 1 }, "modelId", /registered by an account/],
    ["an unknown upstream", "updateRoute", { ...route, upstream: "alhpa", weight: 1 }, "upstream", /closest are: .*alpha/],
    ["an upstream without a route", "updateRoute", { ...route, upstream: "claude", weight: 1 }, "upstream", /Add one with addRoute/],
    ["another name of the model", "updateRoute", { ...route, upstreamModel: "z", weight: 1 }, "upstreamModel", /but a$/],
    ["a key that is not there", "updateRoute", { ...route, keyNumber: 3, weight: 1 }, "keyNumber", /has 2 of them/],
    ["no setting", "updateRoute", route, "weight", /state a setting/],
    ["a weight below 0", "updateRoute", { ...route, weight: -1 }, "weight", /0/],
    ["an endless weight", "updateRoute", { ...route, weight: 1e7 }, "weight", /1,?000,?000/],
    ["a priority below 0", "updateRoute", { ...route, priority: -1 }, "priority", /0/],
    ["a limit of 0", "updateRoute", { ...route, limits: { rpm: 0 } }, "limits.rpm", /1/],
    [
      "a price of another modality",
      "updateRoute",
      { ...route, prices: { completionVideoPrice: "1" } },
      "prices.completionVideoPrice",
      /not a price of text/,
    ],
    ["a dear price", "updateRoute", { ...route, prices: { promptTextPrice: "5000" } }, "prices.promptTextPrice", /at most/],
    ["an unknown upstream", "addRoute", { ...route, upstream: "bta", upstreamModel: "m" }, "upstream", /closest are: .*beta/],
    [
      "an upstream without variations",
      "addRoute",
      { modelId: "routed/picture", upstream: "claude", upstreamModel: "p" },
      "upstream",
      /variations/,
    ],
    ["a reset of a part without its upstream", "resetRoutes", { modelId: "routed/two", keyNumber: 1 }, "upstream", /is required/],
  ])("%s (%s)", async (_name, mutation, input, param, message) => {
    expect(await errorOf(mutation, input)).toEqual({ code: "BAD_REQUEST", param, message: expect.stringMatching(message) });
    expect(await app.database.prisma.routeOverrides.count()).toBe(0);
  });

  it.each(["-0.1", "0.0000000000001", "1e400", "Infinity", "NaN"])("the price %s", async (promptTextPrice) => {
    const answer = await mutate("updateRoute", { ...route, prices: { promptTextPrice } });

    expect(codes(answer)).toEqual(["BAD_REQUEST"]);
  });

  it.each([Number.MIN_VALUE, 0.5])("but not the weight %d", async (weight) => {
    await changed("updateRoute", { ...route, weight });
    expect(await served("routed/two")).toBe("alpha");
  });

  it("all weights of 0", async () => {
    await changed("updateRoute", { ...route, weight: 0 });
    expect(await errorOf("updateRoute", { ...route, upstream: "beta", weight: 0 })).toMatchObject({ code: "BAD_REQUEST", param: "weight" });
  });

  it("a route that is there, one that is configured, and one that is not", async () => {
    expect(await errorOf("addRoute", { ...route, upstreamModel: "a" })).toMatchObject({ code: "CONFLICT" });
    expect(await errorOf("removeRoute", route)).toMatchObject({ code: "CONFLICT", message: expect.stringContaining("is configured") });
    expect(await errorOf("removeRoute", { ...route, upstream: "claude" })).toMatchObject({ code: "NOT_FOUND" });
    expect(await errorOf("resetRoutes", route)).toMatchObject({ code: "NOT_FOUND" });
  });
});

describe("the state of routes", () => {
  it("shows cool-downs, circuits, uses and times, and no secret", async () => {
    await changed("updateRoute", { modelId: "routed/two", upstream: "alpha", limits: { concurrent: 4 } });
    alpha.answers.set("alpha-1", { status: 429, headers: { "retry-after": "100" } });
    alpha.answers.set("alpha-2", { status: 401 });
    expect(await served("routed/two")).toBe("beta");
    for (let call = 0; call < 2; call += 1) await served("routed/two");

    const answer = await client.get("/account/operator/routes?model=routed/two");

    const [model] = answer.json<{ data: { routes: Fields[] }[] }>().data;
    expect(model?.routes).toMatchObject([
      { key_id: "alpha", circuit: "closed", cooling_down_code: "rate_limited", requests_at_once: 0, limits: { rpm: null, concurrent: 4 } },
      { key_id: "alpha#2", cooling_down_code: "credential_refused", cooling_down_until: expect.stringMatching(/Z$/) },
      { key_id: "beta", cooling_down_code: null, requests_at_once: null, first_token_ms: expect.any(Number) },
    ]);
    expect(answer.text).not.toMatch(/alpha-1|alpha-2|beta-1/);
  });

  it("are listed in pages, and by upstream", async () => {
    const first = (await client.get("/account/operator/routes?limit=1")).json<{ data: Fields[]; next_cursor: string }>();
    const second = (await client.get(`/account/operator/routes?limit=1&cursor=${first.next_cursor}`)).json<{ data: Fields[] }>();
    const { data } = (await client.get("/account/operator/routes?upstream=beta")).json<{ data: { model: string }[] }>();

    expect([first.data[0]?.model, second.data[0]?.model]).toEqual(["acme/chat", "acme/chat-b"]);
    expect(data.map(({ model }) => model)).toEqual(["routed/two"]);
    expect((await client.get("/account/operator/routes?changed=true")).json()).toEqual({ data: [], next_cursor: null });
    expect((await client.get("/account/operator/routes?upstream=btea")).text).toMatch(/closest are: .*beta/);
  });
});

describe("changes of routes over REST", () => {
  it("are those of GraphQL", async () => {
    const patched = await client.request("PATCH", "/account/operator/routes", {
      body: { model: "routed/two", upstream: "alpha", enabled: false },
    });
    expect(patched.json()).toMatchObject({
      model: { model: "routed/two", routes: [{ enabled: false }, { enabled: false }, { enabled: true }] },
    });
    expect(await served("routed/two")).toBe("beta");

    const added = await client.post("/account/operator/routes", { model: "routed/two", upstream: "beta", upstream_model: "b2", weight: 3 });
    expect(added.json<{ model: { routes: Fields[] } }>().model.routes.at(-1)).toMatchObject({ id: "beta/b2", added: true, weight: 3 });

    const ordered = await client.request("PATCH", "/account/operator/routing", { body: { model: "routed/two", routing: "price" } });
    expect(ordered.json()).toMatchObject({ model: { routing: "price" } });

    const done = await client.request("DELETE", "/account/operator/routes?model=routed/two");
    expect(done.json()).toMatchObject({
      model: { routing: "weight", routes: [{ enabled: true }, { enabled: true }, { upstream: "beta" }] },
    });
    expect(await served("routed/two")).toBe("alpha");
  });

  it("are refused with the names of REST", async () => {
    const refused = await client.request("PATCH", "/account/operator/routes", {
      body: { model: "routed/one", upstream: "alpha", enabled: false },
    });
    expect([refused.status, refused.text]).toEqual([409, expect.stringContaining("allow_none: true")]);
    const negative = await client.request("PATCH", "/account/operator/routes", {
      body: {
        model: "routed/one",
        upstream: "alpha",
        prices: { promptTextPrice: -1 },
      },
    });
    expect(negative.json()).toMatchObject({ error: { code: "BAD_REQUEST", param: "prices.promptTextPrice" } });
  });
});

describe("stored changes", () => {
  it("hold after a restart, and are kept and shown while their model or upstream is not configured", async () => {
    const first = await createTestApp({ isEmbedded: true, upstreams: upstreams(), models: models() });
    const { dataDir } = first;
    const asked = { key: first.key, baseUrl: first.baseUrl };
    for (const input of [
      { modelId: "routed/two", upstream: "alpha", isEnabled: false },
      { modelId: "routed/two", upstream: "beta", prices: { promptTextPrice: "1" } },
      { modelId: "routed/one", upstream: "alpha", weight: 3 },
    ])
      ok(await mutate("updateRoute", input, asked));
    ok(await mutate("addRoute", { modelId: "acme/chat", upstream: "beta", upstreamModel: "b" }, asked));
    await first.app.close();

    // Without routed/one and beta.
    const second = await createTestApp({
      dataDir,
      upstream: first.upstream,
      upstreams: upstreams().slice(0, 1),
      models: [model("routed/two", [A, { ...A, upstreamModel: "a2" }])],
    });
    onTestFinished(async () => {
      await second.close();
      await first.upstream.close();
      await rm(dataDir, { recursive: true, force: true });
    });

    expect(routesOf(await shown({ modelId: "routed/two" }, second)).map(({ isEnabled }) => isEnabled)).toEqual([false, false, true, true]);
    expect(await shown({ modelId: "routed/two" }, second)).toMatchObject({ ignored: [{ upstream: "beta", reason: "NO_ROUTE" }] });
    expect(await shown({ modelId: "routed/one" }, second)).toMatchObject({
      routes: [],
      ignored: [{ upstream: "alpha", reason: "NO_MODEL" }],
    });
    expect(await shown({ modelId: "acme/chat" }, second)).toMatchObject({ ignored: [{ upstream: "beta", reason: "NO_UPSTREAM" }] });
    expect(second.logs).toContainEqual(
      expect.objectContaining({ event: "route-change-ignored", model: "routed/one", reasons: ["no_model"] }),
    );
    ok(await mutate("resetRoutes", { modelId: "routed/one" }, second));
    expect(codes(await mutate("resetRoutes", { modelId: "routed/one" }, second))).toEqual(["BAD_REQUEST"]);
  });

  it("of an unknown form have no effect", async () => {
    await app.database.prisma.routeOverrides.create({ data: { modelId: "routed/one", changes: { routes: "none" } } });
    app.infrastructure.events.publish("routes-changed", { modelId: "routed/one" });
    await app.infrastructure.routeDirectory.upToDate();

    expect(await served("routed/one")).toBe("alpha");
  });
});
