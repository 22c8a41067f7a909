/** POST /v1/embeddings, with the official client and by hand. */
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { followNextRequest } from "../support/leaving.js";
import { errorReply, gated, json, raw } from "../support/upstream-replies.js";
import { type Client, createClient, createKey, expectEnvelope, waitForUsage } from "./client.js";

let app: TestApp;
let client: Client;
let openai: OpenAI;

beforeAll(async () => {
  app = await createTestApp({
    models: [
      {
        id: "acme/embedding-private",
        modality: "embedding",
        upstream: "acme",
        upstreamModel: "upstream-private",
        title: "Private",
        prices: { promptTextPrice: "0.000001" },
        requiredSafetyFeatures: ["privacy"],
        fallbacks: ["acme/embedding"],
      },
    ],
  });
  client = createClient(app.baseUrl, app.key);
  openai = new OpenAI({ apiKey: app.key, baseURL: `${app.baseUrl}/v1`, maxRetries: 0 });
});
afterAll(async () => {
  const { pool } = app.database;
  const broken = await findBrokenInvariants(pool, { isIdle: true });
  await app.close();
  expect(broken).toEqual({});
});

interface WireBody {
  readonly input: unknown;
  readonly encoding_format?: string;
  readonly [field: string]: unknown;
}

/** What OpenAI would answer: vectors in the encoding asked for. */
function embeddings(vectors: readonly (readonly number[])[], options: { encoded?: boolean; usage?: object | null; order?: number[] } = {}) {
  const { encoded = false, usage = { prompt_tokens: 1_000, total_tokens: 1_000 } } = options;
  const items = vectors.map((vector, index) => ({ object: "embedding", index, embedding: encoded ? base64(vector) : vector }));
  const data = options.order ? options.order.map((position) => items[position]) : items;
  return { object: "list", data, model: "upstream-embedding", ...(usage && { usage }) };
}

function base64(vector: readonly number[]): string {
  return Buffer.from(new Float32Array(vector).buffer).toString("base64");
}

function lastBody(): WireBody {
  return app.upstream.requests.at(-1)?.json as WireBody;
}

describe("POST /v1/embeddings", () => {
  it("answers the official client, which requests base64, with the upstream's own document", async () => {
    const document = JSON.stringify(embeddings([[0.5, -0.25, 1]], { encoded: true }));
    app.upstream.replyNext(json(document));

    const { data, response } = await openai.embeddings.create({ model: "acme/embedding", input: "Hello", user: "u-1" }).withResponse();

    expect(data.data[0]?.embedding).toEqual([0.5, -0.25, 1]);
    expect(app.upstream.requests.at(-1)?.path).toBe("/v1/embeddings");
    expect(lastBody()).toEqual({ model: "upstream-embedding", input: "Hello", encoding_format: "base64", user: "u-1" });
    expect(response.headers.get("x-cost")).toBe("0.00002");
    expect(response.headers.get("x-usage-input-text-tokens")).toBe("1000");
    expect(response.headers.get("x-model-used")).toBe("acme/embedding");
    const row = await waitForUsage(client, ({ request_id }) => request_id === response.headers.get("x-generation-id"));
    expect(row).toMatchObject({
      type: "generate.embedding",
      input_text_tokens: 1000,
      cost_usd: 0.00002,
      usage_source: "provider",
      status: "ok",
    });
  });

  it("passes a document in the requested form on byte by byte, except for the model's name", async () => {
    const document = `{"object":"list", "data":[{"object":"embedding","index":0,"embedding":[0.10, 2e-1]}],"model":"m","usage":{"prompt_tokens":3,"total_tokens":3}, "vendor":1}`;
    app.upstream.replyNext(json(document));

    const answer = await client.post("/v1/embeddings", { model: "acme/embedding", input: ["Hello"], encoding_format: "float" });

    expect(answer.text).toBe(document.replace('"m"', '"acme/embedding"'));
  });

  it("gives base64 on request when the upstream knows numbers only", async () => {
    app.upstream.replyNext(json(embeddings([[0.5, 3]])));

    const answer = await openai.embeddings.create({ model: "acme/embedding", input: "Hello" });

    expect(answer.data[0]?.embedding).toEqual([0.5, 3]);
    expect(answer.usage).toEqual({ prompt_tokens: 1_000, total_tokens: 1_000 });
  });

  it("gives numbers by default or on request when the upstream answers base64", async () => {
    app.upstream.replyNext(json(embeddings([[0.5, 3]], { encoded: true })), json(embeddings([[0.5, 3]], { encoded: true })));

    const first = await client.post("/v1/embeddings", { model: "acme/embedding", input: "Hello" });
    const second = await client.post("/v1/embeddings", { model: "acme/embedding", input: "Hello", encoding_format: "float" });

    expect(first.json()).toMatchObject({ data: [{ embedding: [0.5, 3] }] });
    expect(second.json()).toMatchObject({ object: "list", data: [{ object: "embedding", index: 0, embedding: [0.5, 3] }] });
  });

  it("takes texts, a list of tokens and lists of tokens, and passes on unknown fields", async () => {
    const inputs = [
      ["a", "b"],
      [1, 2, 3],
      [[1, 2], [3]],
    ];
    for (const input of inputs) {
      const count = typeof input[0] === "number" ? 1 : input.length;
      app.upstream.replyNext(json(embeddings(Array.from({ length: count }, () => [1]))));
      const answer = await client.post("/v1/embeddings", { model: "acme/embedding", input, dimensions: 1, input_type: "query" });
      expect(answer.status).toBe(200);
      expect(lastBody()).toEqual({ model: "upstream-embedding", input, dimensions: 1, input_type: "query" });
    }
  });

  it("puts vectors in the order of their inputs", async () => {
    app.upstream.replyNext(json(embeddings([[0], [1], [2]], { order: [2, 0, 1] })));

    const answer = await client.post("/v1/embeddings", { model: "acme/embedding", input: ["a", "b", "c"] });

    expect(answer.json<{ data: object[] }>().data).toMatchObject([0, 1, 2].map((index) => ({ index, embedding: [index] })));
  });

  it("counts unreported usage, of texts and tokens alike", async () => {
    app.upstream.replyNext(json(embeddings([[1], [1]], { usage: null })), json(embeddings([[1], [1]], { usage: null })));

    const texts = await client.post("/v1/embeddings", { model: "acme/embedding", input: ["Hello world", "Hello"] });
    const tokens = await client.post("/v1/embeddings", { model: "acme/embedding", input: [[1, 2, 3, 4], [5]] });

    expect(texts.json()).toMatchObject({ model: "acme/embedding", usage: { prompt_tokens: 3, total_tokens: 3 } });
    expect(texts.headers.get("x-cost")).toBe("0.00000006");
    expect(tokens.headers.get("x-cost")).toBe("0.0000001");
    const row = await waitForUsage(client, ({ request_id }) => request_id === tokens.headers.get("x-generation-id"));
    expect(row).toMatchObject({ input_text_tokens: 5, usage_source: "estimated" });
  });

  it("uses the default embedding model, and leaves the judgement of its fields to it", async () => {
    app.upstream.replyNext(json(embeddings([[1]])));

    const answer = await client.post("/v1/embeddings", { input: "a", dimensions: 65_536 });

    expect(answer.headers.get("x-model-used")).toBe("acme/embedding");
  });

  it("takes 2,048 inputs and refuses one more", async () => {
    const inputs = Array.from({ length: 2_048 }, (_, index) => `text ${index}`);
    app.upstream.replyNext(json(embeddings(inputs.map(() => [1]))));

    const allowed = await client.post("/v1/embeddings", { model: "acme/embedding", input: inputs });
    const refused = await client.post("/v1/embeddings", { model: "acme/embedding", input: [...inputs, "more"] });

    expect(allowed.status).toBe(200);
    expectEnvelope(refused, 400, "BAD_REQUEST");
    expect(refused.json<{ error: { param: string } }>().error.param).toBe("input");
  });

  it.each([
    ["nothing", {}, "input"],
    ["an empty text", { input: "" }, "input"],
    ["an empty list", { input: [] }, "input"],
    ["an empty text in a list", { input: ["a", ""] }, "input.1"],
    ["an empty list of tokens", { input: [[1], []] }, "input.1"],
    ["texts and tokens mixed", { input: ["a", 5] }, "input.1"],
    ["a token that is no number", { input: [[1, "x"]] }, "input.0.1"],
    ["a negative token", { input: [-1] }, "input.0"],
    ["an unknown encoding", { input: "a", encoding_format: "int8" }, "encoding_format"],
    ["no dimensions", { input: "a", dimensions: 0 }, "dimensions"],
    ["more dimensions than any model has", { input: "a", dimensions: 65_537 }, "dimensions"],
    ["half a dimension", { input: "a", dimensions: 1.5 }, "dimensions"],
    ["a model of another modality", { input: "a", model: "acme/chat" }, "model"],
    ["an unknown model", { input: "a", model: "acme/none" }, "model"],
    ["an unknown safety feature", { input: "a", safe: "privacy,magic" }, "safe"],
  ])("refuses %s", async (_name, body, param) => {
    const before = app.upstream.requests.length;

    const answer = await client.post("/v1/embeddings", { model: "acme/embedding", ...body });

    expectEnvelope(answer, 400, "BAD_REQUEST");
    expect(answer.json<{ error: { param: string } }>().error.param).toBe(param);
    expect(app.upstream.requests).toHaveLength(before);
  });

  it("refuses without a key, and a key that may not use the model", async () => {
    const { key } = await createKey(app, { allowedModels: ["acme/chat"] });

    expectEnvelope(await client.post("/v1/embeddings", { input: "a" }, { key: null }), 401, "UNAUTHORIZED");
    expectEnvelope(await client.post("/v1/embeddings", { model: "acme/embedding", input: "a" }, { key }), 403, "FORBIDDEN");
  });

  it.each([
    ["too few vectors", embeddings([[1]])],
    ["an index twice", embeddings([[1], [2]], { order: [0, 0] })],
    [
      "an index out of range",
      {
        data: [
          { index: 0, embedding: [1] },
          { index: 2, embedding: [1] },
        ],
      },
    ],
    ["an empty vector", embeddings([[1], []])],
    ["text that is not base64", { data: [{ embedding: "!!!!" }, { embedding: "AAAA" }] }],
    ["half a float", { data: [{ embedding: "AAA=" }, { embedding: "AAAAAA==" }] }],
    ["no vectors", { data: null }],
    ["no object", [1]],
  ])("answers 502 and charges nothing for %s", async (_name, body) => {
    app.upstream.replyNext(json(body));
    const { key } = await createKey(app, { creditBudget: 1, accountPermissions: ["usage", "balance"] });
    const spender = createClient(app.baseUrl, key);

    const answer = await spender.post("/v1/embeddings", { model: "acme/embedding", input: ["a", "b"] });

    expectEnvelope(answer, 502, "UPSTREAM_ERROR");
    expect((await spender.get("/account/balance")).json()).toEqual({ balance: 1 });
  });

  it("answers an upstream's refusal in its words and its failure as 502", async () => {
    app.upstream.replyNext(errorReply(400, "Too long."), errorReply(401), raw("<html>", { headers: { "content-type": "text/html" } }));
    const ask = () => client.post("/v1/embeddings", { model: "acme/embedding", input: "a" });

    const refused = await ask();
    expectEnvelope(refused, 400, "BAD_REQUEST");
    expect(refused.text).toContain("Too long.");
    expectEnvelope(await ask(), 502, "UPSTREAM_ERROR");
    expectEnvelope(await ask(), 502, "UPSTREAM_ERROR");
  });

  it("redacts texts before they go up where the model requires it, and refuses tokens, which it cannot read", async () => {
    app.upstream.replyNext(json(embeddings([[1], [2]])));

    const answer = await client.post("/v1/embeddings", { model: "acme/embedding-private", input: ["Mail jo@acme.test.", "Nothing."] });
    const tokens = await client.post("/v1/embeddings", { model: "acme/embedding-private", input: [1, 2] });

    expect(lastBody()).toMatchObject({ input: ["Mail [REDACTED_EMAIL].", "Nothing."] });
    expect(answer.headers.get("x-safety-applied")).toBe("privacy");
    expect(answer.headers.get("x-safety-redacted")).toBe("privacy");
    expectEnvelope(tokens, 400, "BAD_REQUEST");
    expect(tokens.json<{ error: { param: string } }>().error.param).toBe("input");
  });

  it("adds the caller's safety features, and hides them from the upstream", async () => {
    app.upstream.replyNext(json(embeddings([[1]])));

    const answer = await client.post("/v1/embeddings", { model: "acme/embedding", input: "Mail jo@acme.test", safe: ["privacy"] });

    expect(answer.headers.get("x-safety-applied")).toBe("privacy");
    expect(lastBody()).toEqual({ model: "upstream-embedding", input: "Mail [REDACTED_EMAIL]" });
  });

  it("does not pass a text on to a fallback that requires more checks than it went through", async () => {
    app.upstream.replyNext(errorReply(500), json(embeddings([[1]])));

    const answer = await client.post("/v1/embeddings", { model: "acme/embedding-private", input: "a" });

    expect(answer.headers.get("x-fallback")).toBe("acme/embedding");
  });

  it("finishes an answer that the upstream has begun when the caller leaves", async () => {
    const answer = gated(embeddings([[1, 0]]));
    app.upstream.replyNext(answer.reply);
    const leaving = new AbortController();
    const caller = followNextRequest(app.baseUrl);
    const seen = app.upstream.requests.length;

    const asked = openai.embeddings.create({ model: "acme/embedding", input: "a" }, { signal: leaving.signal });
    asked.catch(() => undefined);
    await expect.poll(() => app.upstream.requests.length).toBe(seen + 1);
    leaving.abort();
    await asked.catch(() => undefined);
    await caller.hasLeft();
    answer.open();

    await app.upstream.requests[seen]?.answered;
  });

  it("holds the most that the input may cost before it calls the upstream", async () => {
    const { key } = await createKey(app, { creditBudget: 0.0000001 });
    const before = app.upstream.requests.length;

    const answer = await client.post("/v1/embeddings", { model: "acme/embedding", input: [[1, 2, 3, 4, 5, 6]] }, { key });

    expectEnvelope(answer, 402, "KEY_BUDGET_EXHAUSTED");
    expect(app.upstream.requests).toHaveLength(before);
  });
});
