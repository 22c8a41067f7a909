/** Hedged streams (docs/spec/routing.md#hedging): a second route is called when the first has no token in time, and one of them is charged. */
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { eventually } from "../support/eventually.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { answerWhole, type KeyedUpstream, startKeyedUpstream } from "../support/keyed-upstream.js";
import { parseMetrics } from "../support/metrics.js";
import { chatChunk, chatChunks, wireUsage } from "../support/openai-bodies.js";

const HEDGE_AFTER_MS = 40;
const PRICES = { promptTextPrice: "0.000004", completionTextPrice: "0.00001" };
/** Nanocredits of 10 tokens in and 2 out, by the model, the first route and the second. */
const CHARGE = 60_000n;
const FIRST_COST = 14_000n;
const SECOND_COST = 36_000n;

let app: TestApp;
let first: Racer;
let second: Racer;
let aheadMs = 0;

/** An upstream whose answers a test writes by hand. */
class Racer {
  /** Requests under way, in order. */
  calls: ServerResponse[] = [];
  private onCall: () => void = () => undefined;

  private constructor(
    readonly name: string,
    readonly upstream: KeyedUpstream,
  ) {
    this.wait();
  }

  static async start(name: string): Promise<Racer> {
    return new Racer(name, await startKeyedUpstream());
  }

  /** Every request is held, until a test answers it. */
  wait(): void {
    this.calls = [];
    this.upstream.requests.clear();
    this.upstream.answers.set(this.name, (response) => {
      this.calls.push(response);
      this.onCall();
    });
  }

  answersAtOnce(): void {
    this.upstream.answers.delete(this.name);
  }

  async called(count = 1): Promise<ServerResponse> {
    while (this.calls.length < count) await new Promise<void>((resolve) => (this.onCall = resolve));
    return this.calls[count - 1] as ServerResponse;
  }

  get count(): number {
    return this.upstream.requests.get(this.name) ?? 0;
  }
}

beforeAll(async () => {
  [first, second] = await Promise.all([Racer.start("first"), Racer.start("second")]);
  const routes = [
    { upstream: "first", upstreamModel: "m", prices: { promptTextPrice: "0.000001", completionTextPrice: "0.000002" } },
    { upstream: "second", upstreamModel: "m", priority: 1, prices: { promptTextPrice: "0.000003", completionTextPrice: "0.000003" } },
  ];
  const model = (id: string, more: object) => ({ id, title: id, modality: "text", routes, prices: PRICES, ...more });
  app = await createTestApp({
    clock: { now: () => new Date(Date.now() + aheadMs) },
    upstreams: [first, second].map(({ name, upstream }) => ({ id: name, wireFormat: "openai", baseUrl: upstream.baseUrl, apiKey: name })),
    models: [
      model("hedged/chat", { routing: { hedgeAfterMs: HEDGE_AFTER_MS } }),
      model("hedged/patient", { routing: { order: "weight", hedgeAfterMs: 60_000 } }),
      model("hedged/never", { routing: "weight" }),
    ],
  });
});
beforeEach(() => {
  // Later than every cool-down and conversation of the test before.
  aheadMs += 900_000;
  first.wait();
  second.wait();
});
afterAll(async () => {
  await app.close();
  await Promise.all([first.upstream.close(), second.upstream.close()]);
});

function stream(model = "hedged/chat", signal?: AbortSignal): Promise<Response> {
  return fetch(`${app.baseUrl}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${app.key}`, "content-type": "application/json" },
    body: JSON.stringify({ model, stream: true, messages: [{ role: "user", content: "Hi" }] }),
    ...(signal && { signal }),
  });
}

/** A stream that begins now has its second call: a timer of that length that began before is over too. */
async function hedgeOfAnother(): Promise<void> {
  const answer = stream();
  finish(await second.called());
  await (await answer).text();
}

/** The role alone, which is no token. */
function accept(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(`data: ${JSON.stringify(chatChunk({ role: "assistant", content: "" }))}\n\n`);
}

function finish(response: ServerResponse): void {
  if (!response.headersSent) response.writeHead(200, { "content-type": "text/event-stream" });
  for (const chunk of chatChunks(["Hello, ", "world."], { usage: wireUsage(10, 2) })) response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  response.end("data: [DONE]\n\n");
}

function fail(response: ServerResponse, status = 503): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ error: { message: "No." } }));
}

async function receiptOf(response: Response): Promise<{ upstream: string; attempts?: { upstream: string; code: string }[] }> {
  const line = (await response.text()).split("\n").find((each) => each.includes('"receipt"')) ?? "";
  return JSON.parse(line.slice("data: ".length)).receipt;
}

/** The usage rows of one test, once the books are closed. */
async function rowsOf(id: string | null) {
  const rows = await app.database.prisma.usageRecord.findMany({ where: { id: String(id) } });
  expect(await findBrokenInvariants(app.database.pool)).toEqual({});
  return rows.map(({ upstream, costNanocredits, upstreamCostNanocredits, status }) => ({
    upstream,
    charge: costNanocredits,
    paid: upstreamCostNanocredits,
    status,
  }));
}

describe("a hedged stream", () => {
  it("is served by the second route when that has the first token, and the first call is ended", async () => {
    const answer = stream();
    accept(await first.called());
    const abandoned = once(await first.called(), "close");
    finish(await second.called());

    const response = await answer;
    const receipt = await receiptOf(response);

    await abandoned;
    expect([response.status, response.headers.get("x-upstream"), receipt.upstream]).toEqual([200, "second", "second"]);
    expect(receipt.attempts).toEqual([{ upstream: "first", code: "hedged", ms: expect.any(Number) }]);
    expect([first.count, second.count]).toEqual([1, 1]);
    // The first has read the prompt: 8 tokens by the gateway's count, at its own price.
    const [row, ...others] = await rowsOf(response.headers.get("x-generation-id"));
    expect(others).toEqual([]);
    expect(row).toMatchObject({ upstream: "second", charge: CHARGE, status: "ok" });
    expect((row?.paid ?? 0n) - SECOND_COST).toBeGreaterThan(0n);
    expect(((row?.paid ?? 0n) - SECOND_COST) % 1_000n).toBe(0n);
  });

  it("is served by the first route when that has the first token after all", async () => {
    const answer = stream();
    await first.called();
    const abandoned = once(await second.called(), "close");
    finish(await first.called());

    const response = await answer;
    const receipt = await receiptOf(response);

    await abandoned;
    expect(receipt).toMatchObject({ upstream: "first", attempts: [{ upstream: "second", code: "hedged" }] });
    // The second had accepted nothing, so that no cost of it is known.
    expect(await rowsOf(response.headers.get("x-generation-id"))).toEqual([
      { upstream: "first", charge: CHARGE, paid: FIRST_COST, status: "ok" },
    ]);
  });

  it("goes on with the other route when one fails", async () => {
    const answer = stream();
    await first.called();
    fail(await second.called());
    await nextTurn();
    finish(await first.called());

    const response = await answer;
    const receipt = await receiptOf(response);

    expect(receipt).toMatchObject({ upstream: "first", attempts: [{ upstream: "second", code: "failed" }] });
    expect(await rowsOf(response.headers.get("x-generation-id"))).toMatchObject([{ upstream: "first", charge: CHARGE, paid: FIRST_COST }]);
  });

  it("fails without a charge when both fail", async () => {
    const before = await app.database.prisma.usageRecord.count();
    const answer = stream();
    await first.called();
    fail(await second.called());
    fail(await first.called());

    const response = await answer;
    const { error } = (await response.json()) as { error: { code: string; details: { reasons: { route: string }[] } } };

    expect([response.status, error.code]).toEqual([502, "UPSTREAM_ERROR"]);
    expect(error.details.reasons.map(({ route }) => route).sort()).toEqual(["first", "second"]);
    expect(await app.database.prisma.usageRecord.count()).toBe(before);
    expect(await findBrokenInvariants(app.database.pool, { isIdle: true })).toEqual({});
  });

  it("ends both calls when the caller leaves, and charges the prompt once", async () => {
    const leaving = new AbortController();
    const before = await app.database.prisma.usageRecord.count();
    const answer = stream("hedged/chat", leaving.signal);
    const closed = [];
    for (const racer of [first, second]) {
      const response = await racer.called();
      accept(response);
      closed.push(once(response, "close"));
    }
    leaving.abort();

    await expect(answer).rejects.toThrow();
    await Promise.all(closed);
    await eventually(async () => expect(await app.database.prisma.usageRecord.count()).toBe(before + 1));
    const [row] = await app.database.prisma.usageRecord.findMany({ orderBy: { timestamp: "desc" }, take: 1 });
    expect(row).toMatchObject({ status: "cancelled", outputTextTokens: 0 });
    expect(await findBrokenInvariants(app.database.pool, { isIdle: true })).toEqual({});
  });

  it.each(["hedged/patient", "hedged/never"])("of %s has no second call before its time", async (model) => {
    const answer = stream(model);
    const call = await first.called();
    await hedgeOfAnother();
    finish(call);

    expect(await receiptOf(await answer)).not.toHaveProperty("attempts");
    expect(second.count).toBe(1);
  });

  it("goes to the next route at once when the first fails before that time", async () => {
    const answer = stream("hedged/patient");
    fail(await first.called());
    finish(await second.called());

    expect(await receiptOf(await answer)).toMatchObject({ upstream: "second", attempts: [{ upstream: "first", code: "failed" }] });
  });

  it("counts the call that lost in the metrics", async () => {
    const hedged = async () =>
      parseMetrics(await (await fetch(`${app.baseUrl}/metrics`)).text()).sum("sluice_upstream_attempts_total", { result: "hedged" });
    const before = await hedged();
    const answer = stream();
    await first.called();
    finish(await second.called());
    await (await answer).text();

    expect(await hedged()).toBe(before + 1);
  });
});

it("asks no second route for a whole answer", async () => {
  const answer = fetch(`${app.baseUrl}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${app.key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "hedged/chat", messages: [{ role: "user", content: "Hi" }] }),
  });
  const call = await first.called();
  await hedgeOfAnother();
  answerWhole(call, false);

  expect((await answer).headers.get("x-upstream")).toBe("first");
  expect(second.count).toBe(1);
});
