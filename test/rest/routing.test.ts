/** Several routes to a model (docs/spec/routing.md): the choice of one, usage records, and the views of callers and operators. */
import type { ServerResponse } from "node:http";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { executeText, ok } from "../graphql/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type KeyAnswer, type KeyedUpstream, startKeyedUpstream } from "../support/keyed-upstream.js";
import { chatChunk } from "../support/openai-bodies.js";
import { giveCredits } from "../support/sign-in.js";
import { type Client, createClient } from "./client.js";
import { createStranger } from "./seed.js";

let app: TestApp;
let alpha: KeyedUpstream;
let beta: KeyedUpstream;
let client: Client;
let aheadMs = 0;

/** More with ROUTED_CALLS. */
const CALLS = Number(process.env.ROUTED_CALLS ?? 200);
const PRICES = { promptTextPrice: "0.000004", completionTextPrice: "0.00001" };

beforeAll(async () => {
  [alpha, beta] = await Promise.all([startKeyedUpstream(), startKeyedUpstream()]);
  const model = (id: string, routes: readonly object[], more: object = {}) => ({
    ...{ id, title: id, modality: "text", routes, prices: PRICES },
    ...more,
  });
  app = await createTestApp({
    clock: { now: () => new Date(Date.now() + aheadMs) },
    upstreams: [
      { id: "alpha", wireFormat: "openai", baseUrl: alpha.baseUrl, apiKeys: ["alpha-1", "alpha-2", "alpha-3"] },
      { id: "gamma", wireFormat: "openai", baseUrl: alpha.baseUrl, apiKeys: ["g1", "g2", "g3", "g4"] },
      { id: "beta", wireFormat: "openai", baseUrl: beta.baseUrl, apiKey: "beta-1" },
    ],
    models: [
      model("routed/keys", [{ upstream: "alpha", upstreamModel: "a", prices: { promptTextPrice: "0.000001" } }]),
      model("routed/two", [
        { upstream: "alpha", upstreamModel: "a", prices: { promptTextPrice: "0.000001", completionTextPrice: "0.000002" } },
        { upstream: "beta", upstreamModel: "b", priority: 1, prices: { promptTextPrice: "0.000003" } },
      ]),
      model("routed/four", [{ upstream: "gamma", upstreamModel: "g", prices: { promptTextPrice: "0.000001" } }]),
      model("routed/late", [
        { upstream: "alpha", upstreamModel: "late", firstTokenMs: 100 },
        { upstream: "beta", upstreamModel: "b", priority: 1, prices: { promptTextPrice: "0.001" } },
      ]),
      model("routed/weights", [
        { upstream: "alpha", upstreamModel: "a", weight: 0 },
        { upstream: "beta", upstreamModel: "b", weight: 1 },
      ]),
    ],
  });
  client = createClient(app.baseUrl, app.key);
});
beforeEach(() => {
  // Later than every cool-down, open circuit and conversation of the test before.
  aheadMs += 900_000;
  for (const upstream of [alpha, beta]) {
    upstream.answers.clear();
    upstream.requests.clear();
  }
});
afterAll(async () => {
  await app.close();
  await Promise.all([alpha.close(), beta.close()]);
});

const messages = [{ role: "user", content: "Hi" }];

function chat(model: string, more: object = {}) {
  return client.post("/v1/chat/completions", { model, messages, ...more });
}

/** A conversation of its own. */
function talk(index: number): object[] {
  return [{ role: "user", content: `Hi ${index}` }];
}

function failAlpha(status = 500): void {
  for (const key of ["alpha-1", "alpha-2", "alpha-3"]) alpha.answers.set(key, { status });
}

async function usageRow(key = app.key): Promise<Record<string, unknown> | undefined> {
  const answer = await createClient(app.baseUrl, key).get("/account/usage?limit=1");
  return answer.json<{ usage: Record<string, unknown>[] }>().usage[0];
}

describe("a model with several routes", () => {
  it("is served by every key of an upstream", async () => {
    const answers = await Promise.all(Array.from({ length: 60 }, (_, index) => chat("routed/keys", { messages: talk(index) })));

    expect(answers.map(({ status }) => status)).toEqual(Array(60).fill(200));
    expect([...alpha.requests.keys()].sort()).toEqual(["alpha-1", "alpha-2", "alpha-3"]);
  });

  it("is served by the route of the lowest priority while that answers", async () => {
    const answer = await chat("routed/two");

    expect([answer.status, answer.headers.get("x-upstream")]).toEqual([200, "alpha"]);
    expect(beta.requests.size).toBe(0);
  });

  it.each([401, 402, 404, 429, 500, 503])("goes to the next route after a %d", async (status) => {
    failAlpha(status);

    const answer = await chat("routed/two");

    expect([answer.status, answer.headers.get("x-upstream"), answer.headers.get("x-fallback")]).toEqual([200, "beta", null]);
    expect(beta.requests.get("beta-1")).toBe(1);
  });

  it("is not called by another route after a fault of the request", async () => {
    failAlpha(400);

    expect((await chat("routed/two")).status).toBe(400);
    expect(beta.requests.size).toBe(0);
  });

  it("gives a weight of 0 no calls while another route answers", async () => {
    for (let call = 0; call < 20; call += 1) expect((await chat("routed/weights")).headers.get("x-upstream")).toBe("beta");
    beta.answers.set("beta-1", { status: 500 });

    expect((await chat("routed/weights")).headers.get("x-upstream")).toBe("alpha");
  });

  it("names the route and its attempts in a stream's receipt", async () => {
    failAlpha(429);

    const { text } = await chat("routed/two", { stream: true });

    const receipts = text.split("\n").filter((line) => line.includes('"receipt"'));
    const { receipt } = JSON.parse(receipts[0]?.slice("data: ".length) ?? "{}");
    expect(receipt).toMatchObject({
      upstream: "beta",
      attempts: expect.arrayContaining([{ upstream: "alpha", code: "rate_limited", ms: expect.any(Number) }]),
    });
  });
});

/** A route of its own for each test, so that no earlier failure has cooled it down. */
describe("four keys, of which two are limited and one is refused", () => {
  it("fail no call, and name the upstream and its cost in every usage row", async () => {
    for (const key of ["g1", "g2"]) alpha.answers.set(key, { status: 429 });
    alpha.answers.set("g3", { status: 401 });
    const statuses: number[] = [];
    const callSome = async () => {
      while (statuses.length < CALLS) {
        const place = statuses.push(0) - 1;
        statuses[place] = (await chat("routed/four", { messages: talk(place) })).status;
      }
    };
    await Promise.all(Array.from({ length: 20 }, callSome));

    expect(statuses.filter((status) => status !== 200)).toEqual([]);
    const rows = await app.database.prisma.usageRecord.findMany({ where: { model: "routed/four" } });
    expect(rows.length).toBe(statuses.length);
    const served = new Set(rows.map((row) => `${row.route} ${row.upstream} ${row.upstreamCostNanocredits} ${row.costNanocredits}`));
    expect([...served]).toEqual(["gamma#4 gamma 10000 80000"]);
    // Cooled down, they are not asked again for each call.
    expect(["g1", "g2", "g3"].map((key) => (alpha.requests.get(key) ?? 0) < CALLS / 2)).toEqual([true, true, true]);
  });
});

describe("a stream", () => {
  const begunAndBroken = (response: ServerResponse) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(`data: ${JSON.stringify(chatChunk({ role: "assistant", content: "" }))}\n\n`, () => response.destroy());
  };

  it.each<[string, KeyAnswer]>([
    ["breaks off before its first token", begunAndBroken],
    ["is silent for longer than its bound", () => undefined],
  ])("goes to the next route when it %s", async (_what, answer) => {
    for (const key of ["alpha-1", "alpha-2", "alpha-3"]) alpha.answers.set(key, answer);

    const { status, headers, text } = await chat("routed/late", { stream: true });

    expect([status, headers.get("x-upstream")]).toEqual([200, "beta"]);
    expect(text).toContain("Hello, ");
    expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
  });
});

it("tells the reasons of all routes when none is left", async () => {
  failAlpha(503);
  beta.answers.set("beta-1", { status: 429, headers: { "retry-after": "99999999" } });

  const answer = await chat("routed/two");

  const { error } = answer.json<{ error: { code: string; details: { reasons: unknown[] } } }>();
  expect([answer.status, error.code]).toEqual([502, "UPSTREAM_ERROR"]);
  expect(error.details.reasons).toContainEqual({ route: "beta", code: "rate_limited", retryAfterSeconds: 1 });
  expect(answer.headers.get("retry-after")).toBe("1");
});

it("tells the operator at the start about a route that costs more than its model", () => {
  const lines = app.logs.filter(({ event }) => event === "route-above-price");

  expect(lines).toEqual([expect.objectContaining({ model: "routed/late", route: "beta", price: "promptTextPrice" })]);
});

describe("the books", () => {
  it("charge the model's price, and record the operator's cost by the route that served", async () => {
    await chat("routed/two");
    const first = await usageRow();
    failAlpha();
    await chat("routed/two");
    const second = await usageRow();

    // 10 tokens in and 4 out: 4 and 10 a million to the caller; 1 and 2, or 3 and nothing, to the operator.
    expect(first).toMatchObject({ cost_usd: 0.00008, upstream: "alpha", upstream_cost_usd: 0.000018 });
    expect(second).toMatchObject({ cost_usd: 0.00008, upstream: "beta", upstream_cost_usd: 0.00003 });
  });

  it("show the operator's cost to operators alone, and the upstream to everybody", async () => {
    const stranger = await createStranger(app);
    const { accountId } = await app.database.prisma.apiKey.findUniqueOrThrow({ where: { id: stranger.keyId } });
    await giveCredits(app, accountId, 1);
    const theirs = createClient(app.baseUrl, stranger.key);
    failAlpha(429);

    expect((await theirs.post("/v1/chat/completions", { model: "routed/two", messages })).status).toBe(200);

    const row = await usageRow(stranger.key);
    expect(row).toMatchObject({ upstream: "beta" });
    expect(row).not.toHaveProperty("upstream_cost_usd");
    const [head = ""] = (await theirs.get("/account/usage?format=csv")).text.split("\r\n");
    expect(head.endsWith(",parent_request_id,upstream,vendor_key_id,app_margin_usd")).toBe(true);
    const [full = ""] = (await client.get("/account/usage?format=csv")).text.split("\r\n");
    expect(full.endsWith(",parent_request_id,upstream,upstream_cost_usd,vendor_key_id,app_margin_usd")).toBe(true);
    const query = "{ me { usage(first: 1) { nodes { upstream route upstreamCost attempts { upstream code route } } } } }";
    const shown = async (key: string) => {
      const data = ok(await executeText({ ...app, key }, { query })) as unknown as { me: { usage: { nodes: unknown[] } } };
      return data.me.usage.nodes[0];
    };
    expect(await shown(stranger.key)).toMatchObject({
      upstream: "beta",
      route: null,
      upstreamCost: null,
      attempts: [{ code: "RATE_LIMITED", route: null }, {}, {}],
    });
    aheadMs += 900_000;
    await chat("routed/two");
    expect(await shown(app.key)).toMatchObject({
      upstream: "beta",
      route: "beta",
      upstreamCost: "0.00003",
      attempts: expect.arrayContaining([{ upstream: "alpha", code: "RATE_LIMITED", route: "alpha#2" }]),
    });
  });
});
