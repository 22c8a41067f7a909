/** Answers that say that they failed, in spite of their status: the upstream's failure on every route, and never a success. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { countChatTokens } from "../../src/formats/openai-chat/count.js";
import { countTextTokens } from "../../src/lib/tokenizer.js";
import { booksWith, CREDIT, chat, closeBooks, createPayer, type Payer, parseEvents, summarize } from "../e2e/money.js";
import { execute } from "../graphql/client.js";
import { ChatInFullDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMember, registerModel } from "../support/community-models.js";
import { chatChunk, chatCompletion } from "../support/openai-bodies.js";
import { responseEvents, responseObject, textItem } from "../support/responses-bodies.js";
import { event, json, type Reply, sse } from "../support/upstream-replies.js";

const PARTIAL = '{"events": [{"title": "par';
const FAILURE = { code: 502, message: "Provider returned error" };
const PROMPT_TOKENS = countChatTokens([{ role: "user", content: "Hello" }]);
/** Nanocredits for a token. */
const [PROMPT_PRICE, COMPLETION_PRICE] = [1_000n, 2_000n];

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp({ config: { upstreamAllowHosts: ["127.0.0.1"] } });
});
afterAll(() => app.close());

function choice(more: object): Record<string, unknown> {
  return { index: 0, message: { role: "assistant", content: PARTIAL }, finish_reason: "stop", ...more };
}

function completion(more: object): Reply {
  return json({ ...chatCompletion({ usage: null }), usage: { prompt_tokens: null, completion_tokens: null, total_tokens: null }, ...more });
}

/** What a whole answer says when it failed. */
const WHOLE: readonly (readonly [string, Reply])[] = [
  ["a choice that ends in an error", completion({ choices: [choice({ finish_reason: "error", error: FAILURE })] })],
  ["a choice that ends in an error which is not told", completion({ choices: [choice({ finish_reason: "error" })] })],
  ["an error in a choice that ended well", completion({ choices: [choice({ error: FAILURE })] })],
  ["an error in the second choice", completion({ choices: [choice({}), { ...choice({ error: FAILURE }), index: 1 }] })],
  ["an error beside its choices", completion({ choices: [choice({})], error: FAILURE })],
  ["an error that blames the request, once it was taken", completion({ choices: [choice({ error: { code: 400, message: "bad" } })] })],
  ["an error beside its choices that blames the request", completion({ choices: [choice({})], error: { code: 400, message: "bad" } })],
];

describe("a whole answer that failed", () => {
  it.each(WHOLE)("is 502 and free: %s", async (_, reply) => {
    const payer = await createPayer(app, { pack: CREDIT });
    app.upstream.replyNext(reply);

    const response = await chat(app, payer, { model: "acme/chat" });

    expect([response.status, await response.json()]).toMatchObject([502, { error: { code: "UPSTREAM_ERROR" } }]);
    expect((await closeBooks(app, payer)).rows).toEqual([]);
  });

  it.each(WHOLE)("is answered by a fallback: %s", async (_, reply) => {
    const payer = await createPayer(app, { pack: CREDIT });
    app.upstream.replyNext(reply, json(chatCompletion()));

    const response = await chat(app, payer, { model: "acme/with-fallback" });

    expect([response.status, response.headers.get("x-fallback")]).toEqual([200, "acme/chat-b"]);
    expect((await booksWith(app, payer, 1)).rows).toMatchObject([{ modelUsed: "acme/chat-b", outputTextTokens: 4 }]);
  });

  it("is no success of the Responses face, nor of GraphQL", async () => {
    const payer = await createPayer(app, { pack: CREDIT });
    const failed = completion({ choices: [choice({ finish_reason: "error", error: FAILURE })] });
    app.upstream.replyNext(failed, failed);

    const response = await post("/v1/responses", payer, { model: "acme/chat", input: "Hello" });
    const input = { model: "acme/chat", messages: [{ role: "USER" as const, content: "Hello" }] };
    const { errors } = await execute({ ...app, key: payer.key }, ChatInFullDocument, { input });

    expect([response.status, errors?.[0]?.extensions.code]).toEqual([502, "UPSTREAM_ERROR"]);
    expect((await closeBooks(app, payer)).rows).toEqual([]);
  });
});

const SAID = [chatChunk({ role: "assistant", content: "Hello" }), chatChunk({ content: ", world" })];
/** What a chunk says when the answer failed. */
const FAILED_CHUNKS: readonly (readonly [string, Record<string, unknown>])[] = [
  ["a choice that ends in an error", chatChunk({ content: "" }, "error")],
  ["an error in a choice", { ...chatChunk({}), choices: [{ index: 0, delta: {}, finish_reason: null, error: FAILURE }] }],
  ["an error beside its choices", { ...chatChunk({}, "stop"), error: FAILURE }],
  ["Groq's note that it stopped", { ...chatChunk({}, "stop"), x_groq: { id: "req_1", error: "over capacity" } }],
];

describe("a stream that failed", () => {
  it.each(FAILED_CHUNKS)("ends with an error event, and is charged for the delivered part: %s", async (_, failed) => {
    const payer = await createPayer(app, { pack: CREDIT });
    app.upstream.replyNext(sse([...SAID, failed]));

    const { content, isDone, error } = summarize(await (await chat(app, payer, { model: "acme/chat", stream: true })).text());

    expect({ content, isDone, error }).toMatchObject({ content: "Hello, world", isDone: false, error: { code: "UPSTREAM_ERROR" } });
    const { rows } = await booksWith(app, payer, 1);
    const costNanocredits = BigInt(PROMPT_TOKENS) * PROMPT_PRICE + BigInt(countTextTokens("Hello, world")) * COMPLETION_PRICE;
    expect(rows).toMatchObject([{ costNanocredits, status: "cancelled", usageSource: "partial" }]);
  });

  it.each(FAILED_CHUNKS)("before it said anything is 502, or answered by a fallback: %s", async (_, failed) => {
    const payer = await createPayer(app, { pack: CREDIT });
    app.upstream.replyNext(sse([failed]), sse([failed]), sse([...SAID, chatChunk({}, "stop")]));

    const alone = await chat(app, payer, { model: "acme/chat", stream: true });
    const helped = await chat(app, payer, { model: "acme/with-fallback", stream: true });

    expect(alone.status).toBe(502);
    expect(summarize(await helped.text())).toMatchObject({ content: "Hello, world", isDone: true });
    expect((await booksWith(app, payer, 1)).rows).toMatchObject([{ modelUsed: "acme/chat-b", status: "ok" }]);
  });

  it("is no completed response", async () => {
    const payer = await createPayer(app, { pack: CREDIT });
    app.upstream.replyNext(sse([...SAID, chatChunk({}, "error")]));

    const response = await post("/v1/responses", payer, { model: "acme/chat", input: "Hello", stream: true });

    const types = parseEvents(await response.text()).map(({ event: name }) => name);
    expect(types).not.toContain("response.completed");
    expect(types).toContain("error");
  });
});

describe("A failed response of an upstream of the Responses format", () => {
  async function registered(): Promise<string> {
    const prices = { promptTextPrice: 1_000_000n, completionTextPrice: 2_000_000n };
    return (await registerModel(app, await createMember(app), { visibility: "public", api: "responses", ...prices })).modelId;
  }
  const failed = responseObject([textItem(PARTIAL)], { status: "failed", error: { code: "server_error", message: "It broke." } });

  it("is 502 and free when it comes whole", async () => {
    const [model, payer] = [await registered(), await createPayer(app, { pack: CREDIT })];
    app.upstream.replyNext(json(failed), json({ ...failed, error: null }));

    const answers = [await chat(app, payer, { model }), await chat(app, payer, { model })];

    expect(answers.map(({ status }) => status)).toEqual([502, 502]);
    expect((await closeBooks(app, payer)).rows).toEqual([]);
  });

  it("ends a stream with an error event, charged for the delivered part", async () => {
    const [model, payer] = [await registered(), await createPayer(app, { pack: CREDIT })];
    const events = responseEvents(failed).map((each) => event(each, String(each.type)));
    app.upstream.replyNext(sse(events, { done: false }));

    const { content, isDone, error } = summarize(await (await chat(app, payer, { model, stream: true })).text());

    expect({ content, isDone, error }).toMatchObject({ content: PARTIAL, isDone: false, error: { code: "UPSTREAM_ERROR" } });
    expect((await booksWith(app, payer, 1)).rows).toMatchObject([
      { outputTextTokens: countTextTokens(PARTIAL), status: "cancelled", usageSource: "partial" },
    ]);
  });
});

async function post(path: string, payer: Payer, body: object): Promise<Response> {
  return fetch(`${app.baseUrl}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${payer.key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

describe("Media that failed", () => {
  it.each([
    ["pictures", "/v1/images/generations", { model: "acme/image", prompt: "fox" }, { data: [{ b64_json: "aGVsbG8=" }], error: FAILURE }],
    ["a picture of several", "/v1/images/generations", { model: "acme/image", prompt: "fox" }, { data: [{ error: FAILURE }] }],
    ["embeddings", "/v1/embeddings", { model: "acme/embedding", input: "a" }, { data: [{ index: 0, embedding: [1] }], error: FAILURE }],
    ["speech", "/v1/audio/speech", { model: "acme/speech", input: "Hello", voice: "alloy" }, { error: FAILURE }],
    [
      "moderations",
      "/v1/moderations",
      { model: "acme/moderation", input: "a" },
      { results: [{ flagged: false, categories: {} }], error: FAILURE },
    ],
  ])("is 502 and free: %s", async (_, path, asked, answer) => {
    const payer = await createPayer(app, { pack: CREDIT });
    app.upstream.replyNext(json(answer));

    const response = await post(path, payer, asked);

    expect(response.status).toBe(502);
    expect((await closeBooks(app, payer)).rows).toEqual([]);
  });
});
