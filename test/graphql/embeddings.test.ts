/** createEmbeddings, createModeration, and the safety features of chats: the twins of the REST routes. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { moderation, verdict } from "../support/moderation-bodies.js";
import { chatChunks, wireUsage } from "../support/openai-bodies.js";
import { json, sse } from "../support/upstream-replies.js";
import { codes, execute, field, TRANSPORTS } from "./client.js";

const EMBED = `mutation ($input: CreateEmbeddingsInput!) { createEmbeddings(input: $input) {
  embeddings { index vector base64 } receipt { cost usage { inputTextTokens } usageSource safetyApplied safetyRedacted } } }`;
const MODERATE = `mutation ($input: CreateModerationInput!) { createModeration(input: $input) {
  id results { flagged raw categories { name flagged score } } receipt { cost model } } }`;
const CHAT = `mutation ($input: CreateChatCompletionInput!) { createChatCompletion(input: $input) { receipt { safetyApplied safetyRedacted } } }`;
const STREAM = `subscription ($input: ChatCompletionInput!) { chatCompletion(input: $input) {
  ... on ChatCompletionDelta { content } ... on ChatCompletionEnd { receipt { safetyApplied safetyRedacted } } } }`;

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp({ config: { moderationModel: "acme/moderation", upstreamAllowHosts: ["acme.test"] } });
});
afterAll(async () => {
  const { pool } = app.database;
  const broken = await findBrokenInvariants(pool, { isIdle: true });
  await app.close();
  expect(broken).toEqual({});
});

const lastBody = () => app.upstream.requests.at(-1)?.json;
const base64 = (vector: number[]) => Buffer.from(new Float32Array(vector).buffer).toString("base64");

describe("createEmbeddings", () => {
  it("answers the vectors as numbers and as base64, with the receipt", async () => {
    const data = [
      [0.5, -1],
      [2, 4],
    ].map((embedding, index) => ({ object: "embedding", index, embedding }));
    app.upstream.replyNext(json({ data, usage: { prompt_tokens: 1_000, total_tokens: 1_000 } }));

    const answer = await execute(app, EMBED, {
      input: { model: "acme/embedding", input: ["a", "jo@acme.test"], dimensions: 2, safe: "privacy", extra: { input_type: "query" } },
    });

    expect(field(answer, "createEmbeddings")).toEqual({
      embeddings: [
        { index: 0, vector: [0.5, -1], base64: base64([0.5, -1]) },
        { index: 1, vector: [2, 4], base64: base64([2, 4]) },
      ],
      receipt: {
        cost: "0.00002",
        usage: { inputTextTokens: 1000 },
        usageSource: "PROVIDER",
        safetyApplied: ["privacy"],
        safetyRedacted: ["privacy"],
      },
    });
    expect(lastBody()).toEqual({ model: "upstream-embedding", input: ["a", "[REDACTED_EMAIL]"], dimensions: 2, input_type: "query" });
  });

  it("takes tokens, and vectors that the upstream encoded", async () => {
    app.upstream.replyNext(json({ data: [{ index: 0, embedding: base64([0.5]) }] }));

    const answer = await execute(app, EMBED, { input: { tokens: [[1, 2, 3]] } });

    expect(field(answer, "createEmbeddings")).toMatchObject({
      embeddings: [{ vector: [0.5] }],
      receipt: { cost: "0.00000006", usageSource: "ESTIMATED" },
    });
    expect(lastBody()).toEqual({ model: "upstream-embedding", input: [[1, 2, 3]] });
  });

  it.each([
    ["no input", {}, "input"],
    ["an empty text", { input: [""] }, "input.0"],
    ["texts and tokens", { input: ["a"], tokens: [[1]] }, "tokens"],
    ["extra fields that have a field of their own", { input: ["a"], dimensions: 1, extra: { dimensions: 2 } }, "extra.dimensions"],
    ["an unknown model", { input: ["a"], model: "acme/none" }, "model"],
  ])("refuses %s", async (_name, input, param) => {
    const answer = await execute(app, EMBED, { input });

    expect(codes(answer)).toEqual(["BAD_REQUEST"]);
    expect(answer.errors?.[0]?.extensions.param).toBe(param);
  });

  it("refuses nobody", async () => {
    expect(codes(await execute({ ...app, key: null }, EMBED, { input: { input: ["a"] } }))).toEqual(["UNAUTHORIZED"]);
  });
});

describe("createModeration", () => {
  it("answers each category with its score, with the receipt", async () => {
    const result = verdict(["hate"]);
    app.upstream.replyNext(json(moderation([result])));

    const answer = await execute(app, MODERATE, { input: { input: "Some text" } });
    const made = field(answer, "createModeration");

    expect(made).toMatchObject({ results: [{ flagged: true, raw: result }], receipt: { cost: "0", model: "acme/moderation" } });
    expect(made.results?.[0]?.categories).toContainEqual({ name: "hate", flagged: true, score: 0.9 });
  });

  it("takes content parts, and refuses with the words of the REST route", async () => {
    const parts = [{ type: "image_url", image_url: { url: "https://acme.test/a.png" } }];
    app.upstream.replyNext(json(moderation([verdict([])])));
    expect(codes(await execute(app, MODERATE, { input: { input: parts, extra: { vendor_knob: 1 } } }))).toEqual([]);
    expect(lastBody()).toEqual({ model: "upstream-moderation", input: parts, vendor_knob: 1 });

    const refused = await execute(app, MODERATE, { input: { input: [] } });
    expect(codes(refused)).toEqual(["BAD_REQUEST"]);
    expect(refused.errors?.[0]?.extensions.param).toBe("input");
  });
});

describe("safety features of a chat", () => {
  const input = (content: string, safe: string) => ({ input: { model: "acme/chat", messages: [{ role: "USER", content }], safe } });

  it("are told on the receipt", async () => {
    const answer = await execute(app, CHAT, input("Mail jo@acme.test", "secrets,privacy"));

    expect(field(answer, "createChatCompletion")).toEqual({
      receipt: { safetyApplied: ["secrets", "privacy"], safetyRedacted: ["privacy"] },
    });
    expect(lastBody()).toMatchObject({ messages: [{ content: "Mail [REDACTED_EMAIL]" }] });
    expect(lastBody()).not.toHaveProperty("safe");
  });

  it("refuse with the feature that was triggered", async () => {
    app.upstream.replyNext(json(moderation([verdict(["sexual"])])));

    const answer = await execute(app, CHAT, input("x", "sexual,violence"));

    expect(codes(answer)).toEqual(["CONTENT_BLOCKED"]);
    expect(answer.errors?.[0]?.extensions.details).toEqual({ triggered: ["sexual"] });
  });

  it("refuse an unknown name", async () => {
    const answer = await execute(app, CHAT, input("x", "magic"));

    expect(codes(answer)).toEqual(["BAD_REQUEST"]);
    expect(answer.errors?.[0]?.extensions.param).toBe("safe");
  });

  it.each(TRANSPORTS)("hold for a subscription over %s", async (_name, subscribe) => {
    app.upstream.replyNext(sse(chatChunks(["One"], { usage: wireUsage(10, 1) })));
    const passed = await subscribe(app, { query: STREAM, variables: input("Mail jo@acme.test", "privacy") }).rest();
    expect(field(passed.at(-1), "chatCompletion")).toEqual({ receipt: { safetyApplied: ["privacy"], safetyRedacted: ["privacy"] } });

    app.upstream.replyNext(json(moderation([verdict(["violence"])])));
    const refused = await subscribe(app, { query: STREAM, variables: input("x", "violence") }).rest();
    expect(refused.flatMap(codes)).toEqual(["CONTENT_BLOCKED"]);
  });
});
