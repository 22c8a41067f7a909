/** POST /v1/moderations, with the official client and by hand. The app has no moderation model configured for itself. */
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { moderation, verdict } from "../support/moderation-bodies.js";
import { errorReply, json } from "../support/upstream-replies.js";
import { type Client, createClient, createKey, expectEnvelope, waitForUsage } from "./client.js";

let app: TestApp;
let client: Client;
let openai: OpenAI;

beforeAll(async () => {
  const priced = { modality: "moderation", upstream: "acme", upstreamModel: "upstream-judge", prices: { promptTextPrice: "0.001" } };
  app = await createTestApp({ models: [{ ...priced, id: "acme/judge", title: "Judge", aliases: ["judge"] }] });
  client = createClient(app.baseUrl, app.key);
  openai = new OpenAI({ apiKey: app.key, baseURL: `${app.baseUrl}/v1`, maxRetries: 0 });
});
afterAll(async () => {
  const { pool } = app.database;
  const broken = await findBrokenInvariants(pool, { isIdle: true });
  await app.close();
  expect(broken).toEqual({});
});

const lastBody = () => app.upstream.requests.at(-1)?.json;

describe("POST /v1/moderations", () => {
  it("answers the official client, and records it as text", async () => {
    app.upstream.replyNext(json(moderation([verdict(["violence", "violence/graphic"])])));

    const { data, response } = await openai.moderations.create({ input: "I will hit you" }).withResponse();

    expect(data).toMatchObject({ id: expect.stringMatching(/^modr-[0-9a-f]{32}$/), model: "acme/moderation" });
    expect(data.results[0]).toMatchObject({
      flagged: true,
      categories: { violence: true, "violence/graphic": true, sexual: false },
      category_scores: { violence: 0.9, sexual: 0.01 },
      category_applied_input_types: { violence: ["text"] },
    });
    expect(app.upstream.requests.at(-1)?.path).toBe("/v1/moderations");
    expect(lastBody()).toEqual({ model: "upstream-moderation", input: ["I will hit you"] });
    expect(response.headers.get("x-cost")).toBe("0");
    const row = await waitForUsage(client, ({ request_id }) => request_id === response.headers.get("x-generation-id"));
    expect(row).toMatchObject({ type: "generate.text", model: "acme/moderation", usage_source: "estimated", output_text_tokens: 0 });
  });

  it("bills the upstream's report, else its own count", async () => {
    app.upstream.replyNext(
      json({ ...moderation([verdict([])]), usage: { prompt_tokens: 7, total_tokens: 7 } }),
      json(moderation([verdict([]), verdict([])])),
    );

    const reported = await client.post("/v1/moderations", { model: "judge", input: "Hello" });
    const counted = await client.post("/v1/moderations", { model: "acme/judge", input: ["Hello world", "Hello"] });

    expect(reported.headers.get("x-cost")).toBe("0.007");
    expect(counted.headers.get("x-cost")).toBe("0.003");
    expect(counted.json<{ results: unknown[] }>().results).toHaveLength(2);
    expect(lastBody()).toEqual({ model: "upstream-judge", input: ["Hello world", "Hello"] });
  });

  it("passes content parts on, and counts their pictures", async () => {
    const input = [
      { type: "text" as const, text: "What is this?" },
      { type: "image_url" as const, image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } },
    ];
    app.upstream.replyNext(json(moderation([verdict([])])));

    const { response } = await openai.moderations.create({ model: "acme/judge", input }).withResponse();

    expect(lastBody()).toEqual({ model: "upstream-judge", input });
    expect(Number(response.headers.get("x-usage-input-text-tokens"))).toBeGreaterThan(765);
  });

  it("passes unknown fields on, and not safe", async () => {
    app.upstream.replyNext(json(moderation([verdict([])])));

    const answer = await client.post("/v1/moderations", { input: "Mail jo@acme.test", vendor_knob: 1, safe: "privacy" });

    expect(lastBody()).toEqual({ model: "upstream-moderation", input: ["Mail [REDACTED_EMAIL]"], vendor_knob: 1 });
    expect(answer.headers.get("x-safety-redacted")).toBe("privacy");
  });

  it("takes 2,048 inputs and refuses one more", async () => {
    const input = Array.from({ length: 2_048 }, () => "a");
    app.upstream.replyNext(json(moderation(input.map(() => verdict([])))));

    expect((await client.post("/v1/moderations", { input })).status).toBe(200);
    expectEnvelope(await client.post("/v1/moderations", { input: [...input, "a"] }), 400, "BAD_REQUEST");
  });

  it.each([
    ["nothing", {}, "input"],
    ["an empty text", { input: "" }, "input"],
    ["an empty list", { input: [] }, "input"],
    ["an empty text in a list", { input: ["a", ""] }, "input.1"],
    ["a part of unknown type", { input: [{ type: "audio", audio: "x" }] }, "input.0.type"],
    ["a picture without an address", { input: [{ type: "image_url", image_url: {} }] }, "input.0.image_url.url"],
    ["a model of another modality", { input: "a", model: "acme/chat" }, "model"],
  ])("refuses %s", async (_name, body, param) => {
    const answer = await client.post("/v1/moderations", body);

    expectEnvelope(answer, 400, "BAD_REQUEST");
    expect(answer.json<{ error: { param: string } }>().error.param).toBe(param);
  });

  it("refuses without a key", async () => {
    expectEnvelope(await client.post("/v1/moderations", { input: "a" }, { key: null }), 401, "UNAUTHORIZED");
  });

  it.each([
    ["no results", { id: "modr-1", results: [] }],
    ["categories that are no flags", { results: [{ flagged: false, categories: { sexual: "no" } }] }],
    ["a result without flags", { results: [{ flagged: false }] }],
    ["an error in a success", { error: { message: "overloaded", type: "overloaded_error" } }],
  ])("answers 502 and charges nothing for %s", async (_name, body) => {
    app.upstream.replyNext(json(body));
    const { key } = await createKey(app, { creditBudget: 1, accountPermissions: ["balance"] });
    const spender = createClient(app.baseUrl, key);

    expectEnvelope(await spender.post("/v1/moderations", { model: "acme/judge", input: "a" }), 502, "UPSTREAM_ERROR");
    expect((await spender.get("/account/balance")).json()).toEqual({ balance: 1 });
  });

  it("answers an upstream's refusal in its words", async () => {
    app.upstream.replyNext(errorReply(400, "Too many images."));

    const answer = await client.post("/v1/moderations", { input: "a" });

    expectEnvelope(answer, 400, "BAD_REQUEST");
    expect(answer.text).toContain("Too many images.");
  });
});

describe("a blocking safety feature without a moderation model", () => {
  it.each(["sexual", "violence", "shield", "true"])("is 503 for %s, and nothing goes up", async (safe) => {
    const before = app.upstream.requests.length;

    const answer = await client.post("/v1/chat/completions", { model: "acme/chat", messages: [{ role: "user", content: "Hi" }], safe });

    expectEnvelope(answer, 503, "SERVICE_UNAVAILABLE");
    expect(app.upstream.requests).toHaveLength(before);
  });
});
