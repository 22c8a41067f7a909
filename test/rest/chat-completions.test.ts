import OpenAI, { APIError, AuthenticationError, BadRequestError, InternalServerError, PermissionDeniedError } from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { createTestApp, type TestApp } from "../support/app.js";
import { chatChunks, chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { errorReply, json, raw, sse } from "../support/upstream-replies.js";
import { type Client, createClient, createKey, expectEnvelope, waitForUsage } from "./client.js";

const HELLO = { model: "acme/chat", messages: [{ role: "user", content: "Hello" }] };

let app: TestApp;
let client: Client;

beforeAll(async () => {
  app = await createTestApp();
  client = createClient(app.baseUrl, app.key);
});
afterAll(() => app.close());

function openai(key = app.key) {
  return new OpenAI({ apiKey: key, baseURL: `${app.baseUrl}/v1`, maxRetries: 0 });
}

function post(body: object, options: { key?: string } = {}) {
  return client.post("/v1/chat/completions", { ...HELLO, ...body }, options);
}

/** The chunks of an event stream that ended well. */
function chunksOf(text: string): Record<string, unknown>[] {
  const events = text.split("\n\n").filter((event) => event !== "");
  expect(events.pop()).toBe("data: [DONE]");
  return events.map((event) => JSON.parse(event.replace(/^data: /, "")));
}

describe("POST /v1/chat/completions", () => {
  it("answers the upstream's completion, with its cost in the headers", async () => {
    const usage = wireUsage(1000, 500, {
      prompt_tokens_details: { cached_tokens: 400 },
      completion_tokens_details: { reasoning_tokens: 100 },
    });
    app.upstream.replyNext(json(chatCompletion({ content: "Hi.", usage })));

    const answer = await post({});

    expect(answer.status).toBe(200);
    expect(answer.json()).toMatchObject({
      object: "chat.completion",
      choices: [{ message: { role: "assistant", content: "Hi." } }],
      usage,
    });
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "content-type": "application/json; charset=utf-8",
      "x-model-used": "acme/chat",
      // 600 x 0.000001 + 400 x 0.0000005 + 400 x 0.000002 + 100 x 0.000004
      "x-cost": "0.002",
      "x-usage-input-text-tokens": "600",
      "x-usage-input-cached-tokens": "400",
      "x-usage-output-text-tokens": "400",
      "x-usage-output-reasoning-tokens": "100",
      "x-generation-id": expect.stringMatching(/^[0-9a-f-]{36}$/),
      "server-timing": expect.stringMatching(/^gateway;dur=\d+(\.\d+)?, upstream;dur=\d+(\.\d+)?$/),
    });
    expect(answer.headers.get("x-cache")).toBe("MISS");
    for (const name of ["x-fallback", "x-usage-input-audio-tokens"]) expect(answer.headers.has(name)).toBe(false);
  });

  it("has charged the account when it answers, under the id that the answer carries", async () => {
    const answer = await post({});

    const { usage } = (await client.get("/account/usage?limit=1")).json<{ usage: Record<string, unknown>[] }>();
    expect(usage[0]).toMatchObject({ request_id: answer.headers.get("x-generation-id"), cost_usd: Number(answer.headers.get("x-cost")) });
  });

  it("names the fallback that served", async () => {
    app.upstream.replyNext(errorReply(500));

    const answer = await post({ model: "acme/with-fallback" });

    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-model-used")).toBe("acme/chat-b");
    expect(answer.headers.get("x-fallback")).toBe("acme/chat-b");
    expect(answer.json()).toMatchObject({ model: "acme/with-fallback" });
  });

  it("passes on unknown fields, and the upstream's own name for the model", async () => {
    await post({ model: "chat", top_k: 5, metadata: { a: "b" } });

    expect(app.upstream.requests.at(-1)?.json).toMatchObject({ model: "upstream-chat", top_k: 5, metadata: { a: "b" } });
  });

  it("never shows the upstream its caller's key, nor the caller the upstream's", async () => {
    app.upstream.replyNext(errorReply(400, "Wrong key acme-secret-key."));

    const answer = await post({});

    expect(app.upstream.requests.at(-1)?.headers.authorization).toBe("Bearer acme-secret-key");
    expect(answer.text).not.toContain("acme-secret-key");
  });

  const statuses: readonly (readonly [upstream: number, status: number, code: string])[] = [
    [400, 400, "BAD_REQUEST"],
    [401, 502, "UPSTREAM_ERROR"],
    [402, 502, "UPSTREAM_ERROR"],
    [403, 502, "UPSTREAM_ERROR"],
    [404, 502, "UPSTREAM_ERROR"],
    [408, 504, "UPSTREAM_TIMEOUT"],
    [409, 502, "UPSTREAM_ERROR"],
    [413, 413, "PAYLOAD_TOO_LARGE"],
    [415, 415, "UNSUPPORTED_MEDIA_TYPE"],
    [422, 400, "BAD_REQUEST"],
    [429, 502, "UPSTREAM_ERROR"],
    [500, 502, "UPSTREAM_ERROR"],
    [503, 502, "UPSTREAM_ERROR"],
    [524, 504, "UPSTREAM_TIMEOUT"],
  ];
  for (const [upstream, status, code] of statuses) {
    it(`answers an upstream's ${upstream} with ${status}, streamed or not`, async () => {
      for (const stream of [false, true]) {
        app.upstream.replyNext(errorReply(upstream));

        expectEnvelope(await post({ stream }), status, code);
      }
    });
  }

  it("answers 502 to an upstream that answers something else", async () => {
    app.upstream.replyNext(raw("<html>", { headers: { "content-type": "text/html" } }));

    expectEnvelope(await post({}), 502, "UPSTREAM_ERROR");
  });
});

describe("POST /v1/chat/completions with stream", () => {
  it("answers chunks, of which the last carries usage and cost, then [DONE]", async () => {
    app.upstream.replyNext(sse(chatChunks(["a", "b"], { usage: wireUsage(1000, 500) })));

    const answer = await post({ stream: true });

    expect(answer.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    expect(answer.headers.get("x-model-used")).toBe("acme/chat");
    const chunks = chunksOf(answer.text);
    for (const chunk of chunks) expect(chunk).toMatchObject({ object: "chat.completion.chunk" });
    expect(chunks.at(-1)).toMatchObject({ choices: [{ finish_reason: "stop" }], usage: { ...wireUsage(1000, 500), cost: 0.002 } });
    await waitForUsage(client, (row) => row.request_id === answer.headers.get("x-generation-id"));
  });

  it("sends usage in a separate chunk on request", async () => {
    const answer = await post({ stream: true, stream_options: { include_usage: true } });

    expect(chunksOf(answer.text).at(-1)).toMatchObject({ choices: [], usage: { cost: expect.any(Number) } });
  });

  it("names the fallback that serves", async () => {
    app.upstream.replyNext(errorReply(503));

    const answer = await post({ model: "acme/with-fallback", stream: true });

    expect(answer.headers.get("x-fallback")).toBe("acme/chat-b");
  });
});

describe("the official OpenAI client", () => {
  it("completes a chat", async () => {
    const completion = await openai().chat.completions.create({ model: "acme/chat", messages: [{ role: "user", content: "Hello" }] });

    expect(completion.choices[0]?.message.content).toBe("Hello, world.");
    expect(completion.usage?.total_tokens).toBe(14);
  });

  it("streams a chat, with its usage", async () => {
    const stream = await openai().chat.completions.create({
      model: "acme/chat",
      messages: [{ role: "user", content: "Hello" }],
      stream: true,
      stream_options: { include_usage: true },
    });

    let text = "";
    let total = 0;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      total = chunk.usage?.total_tokens ?? total;
    }
    expect(text).toBe("Hello, world.");
    expect(total).toBe(14);
  });

  it("has tools called", async () => {
    app.upstream.replyNext(json(chatCompletion({ content: null, toolCalls: [{ id: "call_1", name: "add", arguments: '{"a":1,"b":2}' }] })));
    const tools = [{ type: "function" as const, function: { name: "add", parameters: { type: "object" } } }];

    const completion = await openai().chat.completions.create({ model: "acme/chat", messages: [{ role: "user", content: "1+2?" }], tools });

    expect(completion.choices[0]?.finish_reason).toBe("tool_calls");
    expect(completion.choices[0]?.message.tool_calls?.[0]).toMatchObject({
      id: "call_1",
      function: { name: "add", arguments: '{"a":1,"b":2}' },
    });
    expect(app.upstream.requests.at(-1)?.json).toMatchObject({ tools });
  });

  it("parses an answer of a JSON schema", async () => {
    app.upstream.replyNext(json(chatCompletion({ content: '{"sum":3}' })));

    const completion = await openai().chat.completions.parse({
      model: "acme/chat",
      messages: [{ role: "user", content: "1+2?" }],
      response_format: zodResponseFormat(z.object({ sum: z.number() }), "sum"),
    });

    expect(completion.choices[0]?.message.parsed).toEqual({ sum: 3 });
    expect(app.upstream.requests.at(-1)?.json).toMatchObject({ response_format: { type: "json_schema", json_schema: { name: "sum" } } });
  });

  it("lists models and finds one with a slash in its id", async () => {
    const ids: string[] = [];
    for await (const model of openai().models.list()) ids.push(model.id);

    expect(ids).toContain("acme/chat");
    expect(await openai().models.retrieve("acme/chat")).toMatchObject({ id: "acme/chat", object: "model" });
  });

  it("throws the error class of each status", async () => {
    const limited = await createKey(app, { allowedModels: ["acme/chat"] });
    const poor = await createKey(app, { creditBudget: 0 });
    const hello = { model: "acme/chat", messages: [{ role: "user" as const, content: "Hello" }] };

    await expect(openai("sk_wrong").chat.completions.create(hello)).rejects.toBeInstanceOf(AuthenticationError);
    await expect(openai(limited.key).chat.completions.create({ ...hello, model: "acme/free" })).rejects.toBeInstanceOf(
      PermissionDeniedError,
    );
    await expect(openai().chat.completions.create({ ...hello, model: "acme/nothing" })).rejects.toBeInstanceOf(BadRequestError);
    await expect(openai(poor.key).chat.completions.create(hello)).rejects.toSatisfy(
      (error) =>
        error instanceof APIError && error.status === 402 && error.code === "KEY_BUDGET_EXHAUSTED" && error.type === "insufficient_quota",
    );
    app.upstream.replyNext(errorReply(429));
    await expect(openai().chat.completions.create(hello)).rejects.toBeInstanceOf(InternalServerError);
  });

  it("does not retry failures that are final", async () => {
    const poor = await createKey(app, { creditBudget: 0 });
    const retrying = new OpenAI({ apiKey: poor.key, baseURL: `${app.baseUrl}/v1`, maxRetries: 3 });
    const before = app.upstream.requests.length;

    await expect(
      retrying.chat.completions.create({ model: "acme/chat", messages: [{ role: "user", content: "Hello" }] }),
    ).rejects.toMatchObject({
      status: 402,
      headers: expect.toSatisfy((headers: Headers) => headers.get("x-should-retry") === "false"),
    });
    expect(app.upstream.requests.length).toBe(before);
  });

  it("abandons a stream, which closes the upstream and charges the delivered part once", async () => {
    const pieces = Array.from({ length: 3 }, (_, index) => `piece${index}`);
    app.upstream.replyNext(sse(chatChunks(pieces, { finishReason: null, usage: null }), { end: "hang" }));

    const { data: stream, response } = await openai()
      .chat.completions.create({ model: "acme/chat", messages: [{ role: "user", content: "Hello" }], stream: true })
      .withResponse();
    let seen = 0;
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta.content) seen += 1;
      if (seen === 3) break;
    }

    const row = await waitForUsage(client, ({ request_id }) => request_id === response.headers.get("x-generation-id"));
    expect(row).toMatchObject({ status: "cancelled", usage_source: "partial" });
    expect(row.cost_usd).toBeGreaterThan(0);
    await app.upstream.requests.at(-1)?.closedByClient;
  });

  it("gets an APIError for an upstream that cuts the stream", async () => {
    app.upstream.replyNext(sse(chatChunks(["a", "b"], { finishReason: null, usage: null }), { end: "cut" }));
    const stream = await openai().chat.completions.create({
      model: "acme/chat",
      messages: [{ role: "user", content: "Hello" }],
      stream: true,
    });

    const reading = (async () => {
      for await (const _chunk of stream);
    })();

    await expect(reading).rejects.toMatchObject({ code: "UPSTREAM_ERROR" });
  });
});
