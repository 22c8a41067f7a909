/** createEmbeddings, createModeration, and the safety features of chats: the twins of the REST routes. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  ChatDocument,
  type ChatMutationVariables,
  CreateEmbeddingsDocument,
  type CreateEmbeddingsInput,
  CreateModerationDocument,
  type SafetyFeature,
  StreamChatDocument,
} from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { moderation, verdict } from "../support/moderation-bodies.js";
import { chatChunks, wireUsage } from "../support/openai-bodies.js";
import { json, sse } from "../support/upstream-replies.js";
import { codes, execute, executeText, ok, TRANSPORTS, textOf } from "./client.js";

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

    const answer = await execute(app, CreateEmbeddingsDocument, {
      input: {
        model: "acme/embedding",
        input: [{ text: "a" }, { text: "jo@acme.test" }],
        dimensions: 2,
        safe: ["PRIVACY"],
        extra: { input_type: "query" },
      },
    });

    expect(ok(answer).createEmbeddings).toMatchObject({
      embeddings: [
        { index: 0, vector: [0.5, -1], base64: base64([0.5, -1]) },
        { index: 1, vector: [2, 4], base64: base64([2, 4]) },
      ],
      receipt: {
        cost: "0.00002",
        usage: { inputTextTokens: 1000 },
        usageSource: "PROVIDER",
        safetyApplied: ["PRIVACY"],
        safetyRedacted: ["PRIVACY"],
      },
    });
    expect(lastBody()).toEqual({ model: "upstream-embedding", input: ["a", "[REDACTED_EMAIL]"], dimensions: 2, input_type: "query" });
  });

  it("takes tokens, and vectors that the upstream encoded", async () => {
    app.upstream.replyNext(json({ data: [{ index: 0, embedding: base64([0.5]) }] }));

    const answer = await execute(app, CreateEmbeddingsDocument, { input: { input: [{ tokens: [1, 2, 3] }] } });

    expect(ok(answer).createEmbeddings).toMatchObject({
      embeddings: [{ vector: [0.5] }],
      receipt: { cost: "0.00000006", usageSource: "ESTIMATED" },
    });
    expect(lastBody()).toEqual({ model: "upstream-embedding", input: [[1, 2, 3]] });
  });

  const refusals: readonly (readonly [name: string, input: CreateEmbeddingsInput, param: string])[] = [
    ["no input", { input: [] }, "input"],
    ["an empty text", { input: [{ text: "a" }, { text: "" }] }, "input.1"],
    ["a wrong token", { input: [{ tokens: [1, -1] }] }, "input.0.tokens.1"],
    ["texts and tokens", { input: [{ text: "a" }, { tokens: [1] }] }, "input"],
    [
      "extra fields that have a field of their own",
      { input: [{ text: "a" }], dimensions: 1, extra: { dimensions: 2 } },
      "extra.dimensions",
    ],
    ["an unknown model", { input: [{ text: "a" }], model: "acme/none" }, "model"],
  ];
  it.each(refusals)("refuses %s", async (_name, input, param) => {
    const answer = await execute(app, CreateEmbeddingsDocument, { input });

    expect(codes(answer)).toEqual(["BAD_REQUEST"]);
    expect(answer.errors?.[0]?.extensions.param).toBe(param);
  });

  it("refuses an anonymous caller", async () => {
    expect(codes(await execute({ ...app, key: null }, CreateEmbeddingsDocument, { input: { input: [{ text: "a" }] } }))).toEqual([
      "UNAUTHORIZED",
    ]);
  });
});

describe("createModeration", () => {
  it("answers each category with its score, with the receipt", async () => {
    const result = verdict(["hate"]);
    app.upstream.replyNext(json(moderation([result])));

    const answer = await execute(app, CreateModerationDocument, { input: { input: [{ text: "Some text" }] } });
    const made = ok(answer).createModeration;

    expect(made).toMatchObject({
      moderation: { modelId: "acme/moderation", results: [{ isFlagged: true, raw: result }] },
      receipt: { cost: "0", modelId: "acme/moderation" },
    });
    expect(made.moderation.results[0]?.categories).toContainEqual({ name: "hate", isFlagged: true, score: 0.9 });
  });

  it("takes content parts, and refuses with the words of the REST route", async () => {
    const url = "https://acme.test/a.png";
    const parts = [{ text: "A" }, { image: { url } }];
    app.upstream.replyNext(json(moderation([verdict([])])));
    expect(codes(await execute(app, CreateModerationDocument, { input: { input: parts, extra: { vendor_knob: 1 } } }))).toEqual([]);
    expect(lastBody()).toEqual({
      model: "upstream-moderation",
      input: [
        { type: "text", text: "A" },
        { type: "image_url", image_url: { url } },
      ],
      vendor_knob: 1,
    });

    const refused = await execute(app, CreateModerationDocument, { input: { input: [] } });
    expect(codes(refused)).toEqual(["BAD_REQUEST"]);
    expect(refused.errors?.[0]?.extensions.param).toBe("input");
  });
});

describe("the safety features of a chat", () => {
  const input = (content: string, ...safe: SafetyFeature[]): ChatMutationVariables => ({
    input: { model: "acme/chat", messages: [{ role: "USER", content }], safe },
  });

  it("are listed on the receipt", async () => {
    const answer = await execute(app, ChatDocument, input("Mail jo@acme.test", "SECRETS", "PRIVACY"));

    expect(ok(answer).createChatCompletion).toMatchObject({
      receipt: { safetyApplied: ["SECRETS", "PRIVACY"], safetyRedacted: ["PRIVACY"] },
    });
    expect(lastBody()).toMatchObject({ messages: [{ content: "Mail [REDACTED_EMAIL]" }] });
    expect(lastBody()).not.toHaveProperty("safe");
  });

  it("refuse with the feature that was triggered", async () => {
    app.upstream.replyNext(json(moderation([verdict(["sexual"])])));

    const answer = await execute(app, ChatDocument, input("x", "SEXUAL", "VIOLENCE"));

    expect(codes(answer)).toEqual(["CONTENT_BLOCKED"]);
    expect(answer.errors?.[0]?.extensions.details).toEqual({ triggered: ["sexual"] });
  });

  it("refuse an unknown name", async () => {
    const answer = await executeText(app, {
      query: textOf(ChatDocument),
      variables: { input: { model: "acme/chat", messages: [{ role: "USER", content: "x" }], safe: ["MAGIC"] } },
    });

    expect(codes(answer)).toEqual(["BAD_REQUEST"]);
    expect(answer.errors?.[0]?.message).toContain("SafetyFeature");
  });

  it.each(TRANSPORTS)("hold for a subscription over %s", async (_name, subscribe) => {
    app.upstream.replyNext(sse(chatChunks(["One"], { usage: wireUsage(10, 1) })));
    const passed = await subscribe(app, StreamChatDocument, input("Mail jo@acme.test", "PRIVACY")).rest();
    expect(passed.at(-1)?.data?.chatCompletion).toMatchObject({ receipt: { safetyApplied: ["PRIVACY"], safetyRedacted: ["PRIVACY"] } });

    app.upstream.replyNext(json(moderation([verdict(["violence"])])));
    const refused = await subscribe(app, StreamChatDocument, input("x", "VIOLENCE")).rest();
    expect(refused.flatMap(codes)).toEqual(["CONTENT_BLOCKED"]);
  });
});
