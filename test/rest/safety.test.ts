/** The safety features over HTTP: redactions and refusals, of which neither is billed (docs/spec/safety.md). */
import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createApiKeyText } from "../../src/lib/api-key-format.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { moderation, verdict } from "../support/moderation-bodies.js";
import { chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { closeSocket, errorReply, handler, hang, json } from "../support/upstream-replies.js";
import { type Answer, type Client, createClient, createKey, expectEnvelope, type UsageJson } from "./client.js";

let app: TestApp;
let client: Client;
/** Categories that the moderation model flags, by a word of the text. */
let flags: Readonly<Record<string, readonly string[]>> = {};

const MODELS = [
  { id: "acme/private", requiredSafetyFeatures: ["privacy"] },
  { id: "acme/guarded", requiredSafetyFeatures: ["violence", "privacy"] },
  { id: "acme/shielded", requiredSafetyFeatures: ["shield"] },
  { id: "acme/to-private", fallbacks: ["acme/private", "acme/chat-b"] },
];

beforeAll(async () => {
  const prices = { promptTextPrice: "0.000001", completionTextPrice: "0.000002" };
  const models = MODELS.map((model) => ({ modality: "text", upstream: "acme", upstreamModel: "up", title: model.id, prices, ...model }));
  app = await createTestApp({ models, config: { moderationModel: "acme/moderation", upstreamAllowHosts: ["acme.test"] } });
  client = createClient(app.baseUrl, app.key);
});
afterAll(async () => {
  const { pool } = app.database;
  const broken = await findBrokenInvariants(pool, { isIdle: true });
  await app.close();
  expect(broken).toEqual({});
});

beforeEach(() => {
  flags = {};
});

/** Answers as the moderation model by `flags`, and any other request with the next reply. */
function moderate(next?: ReturnType<typeof json>) {
  app.upstream.replyNext(
    handler((request, response) => {
      const { input } = request.json as { input: string[] };
      const results = input.map((text) => verdict(Object.keys(flags).flatMap((word) => (text.includes(word) ? (flags[word] ?? []) : []))));
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify(moderation(results)));
    }),
    ...(next ? [next] : []),
  );
}

const chat = (content: unknown, more: object = {}) =>
  client.post("/v1/chat/completions", { model: "acme/chat", messages: [{ role: "user", content }], ...more });

interface SentChat {
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  readonly [field: string]: unknown;
}
const sent = () => app.upstream.requests.at(-1)?.json as SentChat;
const safety = ({ headers }: Answer) => [headers.get("x-safety-applied"), headers.get("x-safety-redacted")];
const triggered = (answer: Answer) => answer.json<{ error: { details?: { triggered?: unknown } } }>().error.details;
const usageCount = async () => (await client.get("/account/usage?limit=50000")).json<UsageJson>().count;

describe("redaction in a chat", () => {
  it("rewrites every text that the caller wrote, and nothing else", async () => {
    const key = createApiKeyText("sk");
    const messages = [
      { role: "system", content: "Write to jo@acme.test." },
      {
        role: "user",
        name: "jo",
        content: [
          { type: "text", text: `Key ${key}` },
          { type: "image_url", image_url: { url: "https://acme.test/jo@acme.test.png" } },
          { type: "text", text: "and 4242 4242 4242 4242" },
        ],
      },
      {
        role: "assistant",
        content: null,
        tool_calls: [
          { id: "c", type: "function", function: { name: "pay", arguments: '{"card": 4242424242424242, "to": "jo@acme.test"}' } },
        ],
      },
      { role: "tool", tool_call_id: "c", content: "Sent from 203.0.113.7" },
      { role: "assistant", reasoning_content: "Is it jo@acme.test?", function_call: { name: "f", arguments: '{"to":"jo@acme.test"}' } },
    ];

    const answer = await client.post("/v1/chat/completions", {
      model: "acme/chat",
      messages,
      safe: ["secrets", "privacy"],
      user: "u@acme.test",
    });

    expect(answer.status).toBe(200);
    expect(safety(answer)).toEqual(["secrets,privacy", "secrets,privacy"]);
    expect(sent()).toEqual({
      model: "upstream-chat",
      user: "[REDACTED_EMAIL]",
      stream: false,
      messages: [
        { role: "system", content: "Write to [REDACTED_EMAIL]." },
        {
          role: "user",
          name: "jo",
          content: [
            { type: "text", text: "Key [REDACTED_SECRET]" },
            { type: "image_url", image_url: { url: "https://acme.test/jo@acme.test.png" } },
            { type: "text", text: "and [REDACTED_CARD]" },
          ],
        },
        {
          role: "assistant",
          content: null,
          tool_calls: [
            { id: "c", type: "function", function: { name: "pay", arguments: '{"card": "[REDACTED_CARD]", "to": "[REDACTED_EMAIL]"}' } },
          ],
        },
        { role: "tool", tool_call_id: "c", content: "Sent from [REDACTED_IP_ADDRESS]" },
        {
          role: "assistant",
          reasoning_content: "Is it [REDACTED_EMAIL]?",
          function_call: { name: "f", arguments: '{"to":"[REDACTED_EMAIL]"}' },
        },
      ],
    });
  });

  it("names its features when they found nothing", async () => {
    expect(safety(await chat("Hello", { safe: "privacy" }))).toEqual(["privacy", ""]);
  });

  it("reports nothing without a feature, and never sends the upstream the parameter", async () => {
    for (const safe of [undefined, false, null, "false", "0", ""]) {
      const answer = await chat("Mail jo@acme.test", { safe });
      expect(safety(answer)).toEqual([null, null]);
      expect(sent()).toEqual({ model: "upstream-chat", stream: false, messages: [{ role: "user", content: "Mail jo@acme.test" }] });
    }
  });

  it("applies the model's required features, even against the caller's wish", async () => {
    for (const safe of [undefined, false, "secrets"]) {
      const answer = await chat("Mail jo@acme.test", { model: "acme/private", safe });
      expect(answer.headers.get("x-safety-redacted")).toBe("privacy");
      expect(answer.headers.get("x-safety-applied")).toBe(safe === "secrets" ? "privacy,secrets" : "privacy");
      expect(sent().messages).toEqual([{ role: "user", content: "Mail [REDACTED_EMAIL]" }]);
    }
  });

  it("charges for the redacted text that the upstream was sent", async () => {
    app.upstream.replyNext(json(chatCompletion({ content: "Ok", usage: null })), json(chatCompletion({ content: "Ok", usage: null })));

    const redacted = await chat("Mail jo.doe.of.the.long.name@mail.department.acme.test", { safe: "privacy" });
    const plain = await chat("Mail [REDACTED_EMAIL]");

    expect(redacted.headers.get("x-cost")).toBe(plain.headers.get("x-cost"));
  });

  it("is the same on the other routes of a chat", async () => {
    const response = await client.post("/v1/responses", { model: "acme/chat", input: "Mail jo@acme.test", safe: "privacy" });
    expect(safety(response)).toEqual(["privacy", "privacy"]);
    expect(sent().messages).toEqual([{ role: "user", content: "Mail [REDACTED_EMAIL]" }]);
    expect(sent()).not.toHaveProperty("safe");

    const posted = await client.post("/text", {
      model: "acme/chat",
      messages: [{ role: "user", content: "jo@acme.test" }],
      safe: ["privacy"],
    });
    expect(safety(posted)).toEqual(["privacy", "privacy"]);

    const got = await client.get("/text/Mail%20jo@acme.test?model=acme/chat&system=Call%20%2B14155552671&safe=privacy,secrets");
    expect(safety(got)).toEqual(["privacy,secrets", "privacy"]);
    expect(sent().messages).toEqual([
      { role: "system", content: "Call [REDACTED_PHONE]" },
      { role: "user", content: "Mail [REDACTED_EMAIL]" },
    ]);
  });

  it("rewrites the prompt of a stream, and reports it before the stream begins", async () => {
    const answer = await chat("Mail jo@acme.test", { safe: "privacy", stream: true });

    expect(answer.text).toContain("data: [DONE]");
    expect(safety(answer)).toEqual(["privacy", "privacy"]);
    expect(sent().messages).toEqual([{ role: "user", content: "Mail [REDACTED_EMAIL]" }]);
  });

  it.each([
    ["an unknown name", "privacy,magic"],
    ["an unknown name in a list", ["magic"]],
    ["an empty name", "privacy,"],
    ["a number", 7],
    ["a list of something else", [true]],
  ])("refuses %s", async (_name, safe) => {
    for (const stream of [false, true]) {
      const answer = await chat("Hi", { safe, stream });
      expectEnvelope(answer, 400, "BAD_REQUEST");
      expect(answer.json<{ error: { param: string } }>().error.param).toMatch(/^safe/);
    }
  });

  it.each(["magic", "privacy,", "TRUE"])("refuses %s in a query", async (safe) => {
    const answer = await client.get(`/text/hi?model=acme/chat&safe=${safe}`);

    expectEnvelope(answer, 400, "BAD_REQUEST");
    expect(answer.json<{ error: { param: string } }>().error.param).toBe("safe");
  });

  it("does not hand a text to a fallback that requires a feature it did not go through", async () => {
    app.upstream.replyNext(errorReply(500), json(chatCompletion({ usage: wireUsage(1, 1) })));
    const skipped = await chat("Mail jo@acme.test", { model: "acme/to-private" });
    expect(skipped.headers.get("x-fallback")).toBe("acme/chat-b");

    app.upstream.replyNext(errorReply(500), json(chatCompletion({ usage: wireUsage(1, 1) })));
    const served = await chat("Mail jo@acme.test", { model: "acme/to-private", safe: "privacy" });
    expect(served.headers.get("x-fallback")).toBe("acme/private");
  });
});

describe("blocking", () => {
  it.each([
    ["sexual", "sexual/minors"],
    ["violence", "violence/graphic"],
    ["violence", "hate"],
    ["violence", "harassment/threatening"],
    ["shield", "prompt_injection"],
    ["shield", "jailbreak"],
    ["shield", "illicit"],
  ])("%s refuses a text flagged as %s, holds nothing and bills nothing", async (feature, category) => {
    flags = { bad: [category] };
    const before = await usageCount();
    const { key } = await createKey(app, { creditBudget: 0.000001 });
    moderate();

    // A hold would be refused for the budget: the refusal comes first.
    const answer = await client.post(
      "/v1/chat/completions",
      { model: "acme/chat", messages: [{ role: "user", content: "bad" }], safe: feature, max_tokens: 1_000 },
      { key },
    );

    expectEnvelope(answer, 400, "CONTENT_BLOCKED");
    expect(triggered(answer)).toEqual({ triggered: [feature] });
    expect(app.upstream.requests.at(-1)?.path).toBe("/v1/moderations");
    expect(await usageCount()).toBe(before);
  });

  it("passes other flags, and bills no moderation", async () => {
    flags = { sad: ["self-harm", "illicit/violent", "sexual"] };
    const before = await usageCount();
    moderate(json(chatCompletion({ content: "Ok", usage: wireUsage(10, 4) })));

    const answer = await chat("sad", { safe: ["violence", "shield"] });

    expect(answer.status).toBe(200);
    expect(safety(answer)).toEqual(["violence,shield", ""]);
    expect(answer.headers.get("x-cost")).toBe("0.000018");
    expect(await usageCount()).toBe(before + 1);
  });

  it("names every feature that was triggered, and asks once", async () => {
    flags = { bad: ["violence"], worse: ["sexual", "jailbreak"] };
    const before = app.upstream.requests.length;
    moderate();

    const answer = await client.post("/v1/chat/completions", {
      model: "acme/shielded",
      messages: [
        { role: "user", content: "bad" },
        { role: "user", content: "worse" },
      ],
      safe: true,
    });

    expect(triggered(answer)).toEqual({ triggered: ["shield", "sexual", "violence"] });
    expect(app.upstream.requests).toHaveLength(before + 1);
    expect(app.upstream.requests.at(-1)?.json).toEqual({ model: "upstream-moderation", input: ["bad", "worse"] });
  });

  it("works in the declared order: a feature before the redaction judges the original text", async () => {
    moderate(json(chatCompletion({})));
    await chat("Mail jo@acme.test", { model: "acme/guarded" });
    expect(app.upstream.requests.at(-2)?.json).toMatchObject({ input: ["Mail jo@acme.test"] });
    expect(sent().messages).toEqual([{ role: "user", content: "Mail [REDACTED_EMAIL]" }]);

    moderate(json(chatCompletion({})));
    const answer = await chat("Mail jo@acme.test", { safe: true });
    expect(app.upstream.requests.at(-2)?.json).toMatchObject({ input: ["Mail [REDACTED_EMAIL]"] });
    expect(safety(answer)).toEqual(["privacy,secrets,sexual,violence", "privacy"]);
  });

  it("refuses a stream with its own status before it begins", async () => {
    flags = { bad: ["violence"] };
    moderate();
    const openai = new OpenAI({ apiKey: app.key, baseURL: `${app.baseUrl}/v1`, maxRetries: 0 });

    const asked = openai.chat.completions.create({
      model: "acme/guarded",
      messages: [{ role: "user", content: "bad" }],
      stream: true,
    });

    await expect(asked).rejects.toMatchObject({ status: 400, code: "CONTENT_BLOCKED" });
  });

  it("judges a long text in pieces, all of it", async () => {
    flags = { "needle in it": ["violence"] };
    const hay = "hay ".repeat(30_000);
    moderate();

    const answer = await chat(`${hay}needle in it ${hay}`, { safe: "violence" });

    expectEnvelope(answer, 400, "CONTENT_BLOCKED");
    const asked = app.upstream.requests.at(-1)?.json as { input: string[] } | undefined;
    expect(Math.max(...(asked?.input ?? []).map((piece) => piece.length))).toBeLessThanOrEqual(20_000);
  });

  it.each([
    ["fails", errorReply(500)],
    ["refuses", errorReply(400)],
    ["closes the connection", closeSocket()],
    ["answers no results", json({ results: [] })],
    ["judges less than it was asked", json(moderation([verdict([])]))],
    ["answers flags that cannot be read", json({ results: [{ flagged: false, categories: { violence: 1 } }, verdict([])] })],
  ])("is 503 when the moderation model %s, and nothing goes further", async (_name, reply) => {
    const before = app.upstream.requests.length;
    app.upstream.replyNext(reply);

    const answer = await client.post("/v1/chat/completions", {
      model: "acme/guarded",
      messages: [
        { role: "user", content: "one" },
        { role: "user", content: "two" },
      ],
    });

    expectEnvelope(answer, 503, "SERVICE_UNAVAILABLE");
    expect(app.upstream.requests).toHaveLength(before + 1);
  });

  it("lets go of the moderation model when the caller leaves, and goes no further", async () => {
    const seen = app.upstream.requests.length;
    app.upstream.replyNext(hang());
    const leaving = new AbortController();
    const asked = fetch(`${app.baseUrl}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${app.key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "acme/guarded", messages: [{ role: "user", content: "Hi" }], stream: true }),
      signal: leaving.signal,
    });
    asked.catch(() => undefined);
    await expect.poll(() => app.upstream.requests.length).toBe(seen + 1);

    leaving.abort();

    await app.upstream.requests[seen]?.closedByClient;
    expect(app.upstream.requests).toHaveLength(seen + 1);
  });

  it("reports a cached answer's checks as they were made", async () => {
    const path = "/text/Write%20to%20ann@acme.test?model=acme/chat&safe=privacy";

    const made = await client.get(path);
    const again = await client.get(path);
    const unchecked = await client.get(path.replace("&safe=privacy", ""));

    expect([made, again, unchecked].map(({ headers }) => headers.get("x-cache"))).toEqual(["MISS", "HIT", "MISS"]);
    expect([made, again, unchecked].map(safety)).toEqual([
      ["privacy", "privacy"],
      ["privacy", "privacy"],
      [null, null],
    ]);
  });

  it("sends no blank text to the moderation model", async () => {
    const before = app.upstream.requests.length;

    expect((await chat(" ", { safe: "violence" })).status).toBe(200);
    expect(app.upstream.requests).toHaveLength(before + 1);
  });
});
