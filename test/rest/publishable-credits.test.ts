import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { eventually } from "../support/eventually.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { chatChunks, chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { errorReply, gated, json, sse } from "../support/upstream-replies.js";
import { type Answer, type Client, createClient, createKey, expectEnvelope } from "./client.js";

/** 60,000 tokens of an answer are 0.6 credits. */
const PRICES = { promptTextPrice: "0", completionTextPrice: "0.00001" };
const TOKENS = 60_000;

let app: TestApp;
let client: Client;

beforeAll(async () => {
  const text = { modality: "text", upstream: "acme", upstreamModel: "dear", title: "Dear", prices: PRICES };
  app = await createTestApp({
    models: [
      { ...text, id: "acme/sixty" },
      // Its reports never exceed its deliveries, so a stream that is left is not read to its end.
      { ...text, id: "acme/shown" },
      { ...text, id: "acme/unstated", contextLength: 128_000 },
    ],
  });
  client = createClient(app.baseUrl, app.key);
});
afterAll(async () => {
  const { pool } = app.database;
  expect(await findBrokenInvariants(pool, { isIdle: true })).toEqual({});
  await app.close();
});

async function publishableKey(): Promise<string> {
  return (await createKey(app, { type: "publishable" })).key;
}

function chat(key: string, body: object): Promise<Answer> {
  return client.post("/v1/chat/completions", { model: "acme/sixty", messages: [{ role: "user", content: "Hi" }], ...body }, { key });
}

describe("a publishable key's hourly credits", () => {
  it("are not exceeded by concurrency: of 40 answers of 0.6 credits at once, as many are admitted as one after the other", async () => {
    const key = await publishableKey();
    const { reply, open } = gated(chatCompletion({ usage: wireUsage(1, TOKENS) }));
    const before = app.upstream.requests.length;
    app.upstream.replyAlways(reply);
    let refused = 0;

    const asking = Array.from({ length: 40 }, async () => {
      const answer = await chat(key, { max_tokens: TOKENS });
      if (answer.status !== 200) refused += 1;
      return answer;
    });
    await eventually(() => expect(app.upstream.requests.length - before + refused).toBe(40));
    open();
    const answers = await Promise.all(asking);
    app.upstream.replyAlways(null);

    const paid = answers.filter(({ status }) => status === 200).map(({ headers }) => Number(headers.get("x-cost")));
    expect(paid).toEqual(Array.from({ length: 17 }, () => 0.6));
    for (const answer of answers.filter(({ status }) => status !== 200)) {
      expectEnvelope(answer, 429, "RATE_LIMITED");
      expect(answer.headers.get("retry-after")).toBe("1");
    }
    // 0.2 below zero, at a credit an hour.
    const next = await chat(key, { max_tokens: 1 });
    expectEnvelope(next, 429, "RATE_LIMITED");
    expect(Number(next.headers.get("retry-after"))).toBeGreaterThan(600);
  });

  it("come back from an answer that fails, and from one that costs less than was held", async () => {
    const key = await publishableKey();
    app.upstream.replyNext(
      errorReply(400),
      json(chatCompletion({ usage: wireUsage(1, 1) })),
      json(chatCompletion({ usage: wireUsage(1, 1) })),
    );

    expect((await chat(key, { max_tokens: 1_100_000 })).status).toBe(400);
    expect((await chat(key, { max_tokens: 1_100_000 })).status).toBe(200);
    expect((await chat(key, { max_tokens: 1_100_000 })).status).toBe(200);
  });

  it("are held for the most that a stream may cost, and charged its cost when its reader leaves", async () => {
    const key = await publishableKey();
    app.upstream.replyNext(sse(chatChunks(["One"]).slice(0, -1), { end: "hang" }));
    const leaving = new AbortController();
    const response = await fetch(`${app.baseUrl}/v1/chat/completions`, {
      method: "POST",
      signal: leaving.signal,
      headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
      body: JSON.stringify({ model: "acme/shown", stream: true, max_tokens: 1_100_000, messages: [{ role: "user", content: "Hi" }] }),
    });
    expect(response.status).toBe(200);

    expectEnvelope(await chat(key, { max_tokens: 1 }), 429, "RATE_LIMITED");
    leaving.abort();

    await eventually(async () => {
      app.upstream.replyNext(json(chatCompletion({ usage: wireUsage(1, 1) })));
      expect((await chat(key, { max_tokens: 1 })).status).toBe(200);
    });
  });

  it("are held to a tenth at most by one answer without a limit, even for a rich account", async () => {
    const key = await publishableKey();
    const { reply, open } = gated(chatCompletion({ usage: wireUsage(1, 1) }));
    const before = app.upstream.requests.length;
    app.upstream.replyAlways(reply);

    const asking = Array.from({ length: 9 }, () => chat(key, { model: "acme/unstated" }));
    await eventually(() => expect(app.upstream.requests.length - before).toBe(9));
    open();
    const answers = await Promise.all(asking);
    app.upstream.replyAlways(null);

    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 9 }, () => 200));
    const asked = app.upstream.requests
      .slice(before)
      .map(({ json: body }) => body as { max_tokens?: number; max_completion_tokens?: number });
    expect(asked.every((body) => (body.max_completion_tokens ?? body.max_tokens ?? 0) <= 100_000)).toBe(true);
  });
});
