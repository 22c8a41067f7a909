/** The content cache over HTTP: a repeated answer is charged once (docs/spec/generation.md#content-cache). */
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { SharedWork } from "../../src/services/generation/content-cache/content-cache.js";
import { databaseOf } from "../e2e/money.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { eventually } from "../support/eventually.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { chatChunks, chatCompletion, errorBody } from "../support/openai-bodies.js";
import { errorReply, gated, handler, json, type Reply, raw, sse } from "../support/upstream-replies.js";
import { type Answer, type Client, createClient, createKey, expectEnvelope, type UsageJson } from "./client.js";

let app: TestApp;
let client: Client;
let counter = 0;
let path: string;

beforeAll(async () => {
  app = await createTestApp();
  client = createClient(app.baseUrl, app.key);
});
afterAll(async () => {
  const { pool } = app.database;
  const broken = await findBrokenInvariants(pool, { isIdle: true });
  await app.close();
  expect(broken).toEqual({});
});

beforeEach(() => {
  counter += 1;
  path = `/text/question-${counter}`;
});

async function usageCount(): Promise<number> {
  return (await client.get("/account/usage?limit=50000")).json<UsageJson>().count;
}

const marks = (answer: Answer) => ({
  status: answer.status,
  cache: answer.headers.get("x-cache"),
  cost: answer.headers.get("x-cost"),
});

const MISS = { status: 200, cache: "MISS", cost: "0.000018" };
const HIT = { status: 200, cache: "HIT", cost: "0" };

describe("D a repeated GET /text/{prompt}", () => {
  it("is answered with the same text, at no cost and without the upstream", async () => {
    const before = await usageCount();
    app.upstream.replyNext(json(chatCompletion({ content: "Once." })));
    const asked = app.upstream.requests.length;

    const first = await client.get(path);
    const second = await client.get(path);

    expect(marks(first)).toEqual(MISS);
    expect(marks(second)).toEqual(HIT);
    expect([first.text, second.text]).toEqual(["Once.", "Once."]);
    expect(app.upstream.requests.length - asked).toBe(1);
    expect((await usageCount()) - before).toBe(1);
  });

  it("names the model of a hit, and a usage of 0", async () => {
    const first = await client.get(path);
    const second = await client.get(path);

    expect(second.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(second.headers.get("cache-control")).toBe("private, no-store");
    expect(second.headers.get("x-model-used")).toBe("acme/chat");
    expect([...second.headers.keys()].filter((name) => name.startsWith("x-usage-"))).toEqual([]);
    expect(second.headers.get("x-generation-id")).toMatch(/^[0-9a-f-]{36}$/);
    expect(second.headers.get("x-generation-id")).not.toBe(first.headers.get("x-generation-id"));
  });

  it.each([
    ["another model", "?model=acme/chat-b"],
    ["another seed", "?seed=1"],
    ["a system prompt", "?system=Be%20brief"],
    ["a temperature", "?temperature=0"],
    ["json", "?json=true"],
  ])("is generated again with %s", async (_, query) => {
    await client.get(path);

    expect(marks(await client.get(path + query)).cache).toBe("MISS");
    expect(marks(await client.get(path + query)).cache).toBe("HIT");
  });

  it.each([
    ["the default model by name", "?model=acme/chat"],
    ["the model's alias", "?model=chat"],
    ["the default seed", "?seed=0"],
    ["false defaults", "?json=false&no-cache=false"],
  ])("is the same with %s", async (_, query) => {
    await client.get(path);

    expect(marks(await client.get(path + query))).toEqual(HIT);
  });

  it("never remembers an answer for a random seed", async () => {
    expect(marks(await client.get(`${path}?seed=-1`))).toEqual(MISS);
    expect(marks(await client.get(`${path}?seed=-1`))).toEqual(MISS);
  });

  it("is generated again, charged and kept with no-cache", async () => {
    app.upstream.replyNext(json(chatCompletion({ content: "Old." })), json(chatCompletion({ content: "New." })));
    await client.get(path);

    const refreshed = await client.get(`${path}?no-cache=true`);
    const after = await client.get(path);

    expect([marks(refreshed), refreshed.text]).toEqual([MISS, "New."]);
    expect([marks(after), after.text]).toEqual([HIT, "New."]);
  });

  it("takes true, false, 1 and 0 for no-cache", async () => {
    expectEnvelope(await client.get(`${path}?no-cache=yes`), 400, "BAD_REQUEST");
  });

  it("is shared by callers whose keys may use the model", async () => {
    await client.get(path);
    const { key } = await createKey(app);
    const { key: restricted } = await createKey(app, { allowedModels: ["acme/free"] });
    const { key: spent } = await createKey(app, { creditBudget: 0 });

    expect(marks(await client.get(path, { key }))).toEqual(HIT);
    expect(marks(await client.get(path, { key: spent }))).toEqual(HIT);
    expectEnvelope(await client.get(path, { key: restricted }), 403, "FORBIDDEN");
    expectEnvelope(await client.get(path, { key: null }), 401, "UNAUTHORIZED");
  });

  it("does not remember a failure", async () => {
    app.upstream.replyNext(errorReply(500, "no"));

    expectEnvelope(await client.get(path), 502, "UPSTREAM_ERROR");
    expect(marks(await client.get(path))).toEqual(MISS);
  });
});

describe("the same GET at the same time", () => {
  it("is one generation and one charge for all callers", async () => {
    const before = await usageCount();
    const { key } = await createKey(app);
    app.upstream.replyNext(json(chatCompletion({ content: "One for all." }), { delayMs: 100 }));
    const asked = app.upstream.requests.length;

    const answers = await Promise.all(Array.from({ length: 50 }, (_, index) => client.get(path, index % 2 ? { key } : {})));

    expect(app.upstream.requests.length - asked).toBe(1);
    expect(answers.map((answer) => answer.text)).toEqual(Array(50).fill("One for all."));
    expect(answers.map((answer) => marks(answer).cache).filter((cache) => cache === "MISS")).toHaveLength(1);
    expect(answers.filter((answer) => marks(answer).cost === "0")).toHaveLength(49);
    expect((await usageCount()) - before).toBe(1);
  });

  it("goes on when the first caller leaves, and stops when the last does", async () => {
    let answer = () => {};
    const gate = new Promise<void>((resolve) => {
      answer = resolve;
    });
    app.upstream.replyNext(
      handler(async (_request, response) => {
        await gate;
        response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(chatCompletion({ content: "Still here." })));
      }),
    );
    const remembered = await databaseOf(app).prisma.contentCacheEntry.count();
    const join = vi.spyOn(SharedWork.prototype, "join");
    const leaving = new AbortController();
    const request = (signal?: AbortSignal) =>
      fetch(app.baseUrl + path, { headers: { Authorization: `Bearer ${app.key}` }, ...(signal && { signal }) });
    const seen = app.upstream.requests.length;
    const first = request(leaving.signal).catch(() => "left");
    while (app.upstream.requests.length === seen) await new Promise((resolve) => setTimeout(resolve, 5));
    const second = request();
    await eventually(() => expect(join).toHaveBeenCalledTimes(2));
    join.mockRestore();
    leaving.abort();

    expect(await first).toBe("left");
    answer();
    expect(await (await second).text()).toBe("Still here.");

    const alone = new AbortController();
    const late = gated(chatCompletion({ content: "Paid for all the same." }));
    app.upstream.replyNext(late.reply);
    const third = fetch(`${app.baseUrl}${path}-alone`, { headers: { Authorization: `Bearer ${app.key}` }, signal: alone.signal });
    while (app.upstream.requests.length === seen + 1) await new Promise((resolve) => setTimeout(resolve, 5));
    alone.abort();
    await third.catch(() => undefined);
    late.open();
    const isRemembered = async () => (await client.get(`${path}-alone`)).headers.get("x-cache");
    await app.upstream.requests.at(-1)?.answered;
    await expect.poll(() => databaseOf(app).prisma.contentCacheEntry.count()).toBeGreaterThan(remembered + 1);
    expect(await isRemembered()).toBe("HIT");
  });

  it("shares a failure with waiting requests only", async () => {
    app.upstream.replyNext(json(errorBody("no"), { status: 500, delayMs: 100 }));
    const asked = app.upstream.requests.length;

    const answers = await Promise.all(Array.from({ length: 5 }, () => client.get(path)));

    expect(answers.map((answer) => answer.status)).toEqual(Array(5).fill(502));
    expect(app.upstream.requests.length - asked).toBe(1);
    expect(marks(await client.get(path))).toEqual(MISS);
  });

  it("does not refuse one caller because another cannot pay", async () => {
    const { key: poor } = await createKey(app, { creditBudget: 0 });

    const [refused, ...served] = await Promise.all([client.get(path, { key: poor }), client.get(path), client.get(path)]);

    expect(refused?.status).toBeOneOf([402, 200]);
    expect(served.map((answer) => answer.status)).toEqual([200, 200]);
  });
});

describe("every GET that generates", () => {
  const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
  const sound = () => raw(Buffer.alloc(4_096, 7), { headers: { "content-type": "audio/mpeg" }, delayMs: 50 });
  const routes: readonly (readonly [path: string, other: string, reply: () => Reply])[] = [
    ["/image/a-cat?model=acme/image", "&seed=1", () => json({ created: 1, data: [{ b64_json: PNG }] }, { delayMs: 50 })],
    ["/audio/hello?model=acme/speech", "&voice=nova", sound],
  ];

  it.each(routes)("makes GET %s once for fifty at once, and again with %s", async (route, other, reply) => {
    app.upstream.replyNext(reply());
    const before = await usageCount();
    const asked = app.upstream.requests.length;

    const answers = await Promise.all(Array.from({ length: 50 }, () => client.get(route)));
    const later = await client.get(route);

    expect(new Set(answers.map(({ status }) => status)), answers[0]?.text).toEqual(new Set([200]));
    expect(new Set([...answers, later].map(({ text }) => text)).size).toBe(1);
    expect(answers.filter((answer) => answer.headers.get("x-cache") === "MISS")).toHaveLength(1);
    expect(marks(later)).toEqual(HIT);
    expect(app.upstream.requests.length - asked).toBe(1);
    expect((await usageCount()) - before).toBe(1);
    app.upstream.replyNext(reply());
    expect((await client.get(route + other)).headers.get("x-cache")).toBe("MISS");
  });
});

describe("a streamed GET /text/{prompt}", () => {
  const eventsOf = (answer: Answer) =>
    answer.text
      .split("\n\n")
      .filter(Boolean)
      .map((event) => event.replace(/^data: /, ""));

  it("is remembered at its end, and replayed as one chunk, streamed or whole", async () => {
    app.upstream.replyNext(sse(chatChunks(["One, ", "two."])));

    const made = await client.get(`${path}?stream=true`);
    const replayed = await client.get(`${path}?stream=true`);
    const whole = await client.get(path);

    expect(made.headers.get("x-cache")).toBe("MISS");
    expect(replayed.headers.get("x-cache")).toBe("HIT");
    const [chunk, done, ...more] = eventsOf(replayed);
    expect(JSON.parse(chunk ?? "")).toMatchObject({
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta: { role: "assistant", content: "One, two." }, finish_reason: "stop" }],
      usage: { total_tokens: 0, cost: 0 },
    });
    expect([done, more]).toEqual(["[DONE]", []]);
    expect([marks(whole), whole.text]).toEqual([HIT, "One, two."]);
  });

  it("replays whole answers", async () => {
    app.upstream.replyNext(json(chatCompletion({ content: "Whole." })));
    await client.get(path);

    expect((await client.get(`${path}?stream=1`)).text).toContain('"content":"Whole."');
  });

  it("is not remembered when it did not come to its end", async () => {
    app.upstream.replyNext(sse([chatChunks(["Half"])[0] ?? {}], { done: false }));

    await client.get(`${path}?stream=true`);

    expect((await client.get(`${path}?stream=true`)).headers.get("x-cache")).toBe("MISS");
  });
});
