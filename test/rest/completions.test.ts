/** POST /v1/completions, with the official client and by hand. */
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { chatChunk, chatChunks, chatCompletion, usageChunk, wireUsage } from "../support/openai-bodies.js";
import { json, sse } from "../support/upstream-replies.js";
import { type Client, createClient, expectEnvelope } from "./client.js";

let app: TestApp;
let client: Client;
let openai: OpenAI;

beforeAll(async () => {
  app = await createTestApp();
  client = createClient(app.baseUrl, app.key);
  openai = new OpenAI({ apiKey: app.key, baseURL: `${app.baseUrl}/v1`, maxRetries: 0 });
});
afterAll(() => app.close());

function lastBody(): Record<string, unknown> | undefined {
  return app.upstream.requests.at(-1)?.json as Record<string, unknown> | undefined;
}

describe("POST /v1/completions", () => {
  it("answers the official client with text, its usage and its cost", async () => {
    app.upstream.replyNext(json(chatCompletion({ content: " upon a time", usage: wireUsage(1000, 50), finishReason: "length" })));

    const { data, response } = await openai.completions
      .create({ model: "acme/chat", prompt: "Once", max_tokens: 50, stop: ["."], temperature: 0.5, seed: 7 })
      .withResponse();

    expect(lastBody()).toMatchObject({ messages: [{ role: "user", content: "Once" }], stop: ["."], temperature: 0.5, seed: 7 });
    expect(lastBody()).not.toHaveProperty("prompt");
    expect(data).toMatchObject({
      id: expect.stringMatching(/^cmpl-/),
      object: "text_completion",
      model: "acme/chat",
      choices: [{ index: 0, text: " upon a time", logprobs: null, finish_reason: "length" }],
      usage: { prompt_tokens: 1000, completion_tokens: 50, total_tokens: 1050, cost: 0.0011 },
    });
    expect(response.headers.get("x-cost")).toBe("0.0011");
  });

  it("bounds the echoes of all answers together, and gives none to answers that were not asked for", async () => {
    const asked = { model: "acme/chat", prompt: "x".repeat(300_000), max_tokens: 5, echo: true };
    const sent = app.upstream.requests.length;

    const refused = await client.post("/v1/completions", { ...asked, n: 128 });

    expectEnvelope(refused, 400, "BAD_REQUEST");
    expect(refused.json()).toMatchObject({ error: { param: "echo" } });
    expect(app.upstream.requests).toHaveLength(sent);
    const choice = { message: { role: "assistant", content: "!" }, finish_reason: "stop" };
    app.upstream.replyNext(json({ ...chatCompletion({ content: "!" }), choices: [0, 1].map((index) => ({ index, ...choice })) }));
    const { data } = await openai.completions.create({ ...asked, prompt: "Go" }).withResponse();
    expect(data.choices.map(({ text }) => text)).toEqual(["Go!", "!"]);
  });

  it("streams chunks of text, each answer after its echo", async () => {
    const pieces = [
      chatChunk({ content: " up" }),
      chatChunk({ content: " down" }, null, 1),
      chatChunk({}, "stop"),
      chatChunk({}, "stop", 1),
    ];
    app.upstream.replyNext(sse([...pieces, usageChunk(wireUsage(10, 4))]));
    const texts = new Map<number, string>();
    let usage: unknown;

    const stream = await openai.completions.create({
      ...{ model: "acme/chat", prompt: "Go", n: 2, echo: true, max_tokens: 10, stream: true as const },
      stream_options: { include_usage: true },
    });
    for await (const chunk of stream) {
      expect(chunk.object).toBe("text_completion");
      for (const { index, text } of chunk.choices) texts.set(index, (texts.get(index) ?? "") + text);
      usage = chunk.usage ?? usage;
    }

    expect([...texts]).toEqual([
      [0, "Go up"],
      [1, "Go down"],
    ]);
    expect(usage).toMatchObject({ prompt_tokens: 10, completion_tokens: 4 });
  });

  it("gives whole and streamed the same text", async () => {
    app.upstream.replyNext(json(chatCompletion({ content: "One two." })), sse(chatChunks(["One ", "two."])));

    const whole = await openai.completions.create({ model: "acme/chat", prompt: ["Count"], echo: true, max_tokens: 10 });
    let streamed = "";
    for await (const { choices } of await openai.completions.create({
      model: "acme/chat",
      prompt: "Count",
      echo: true,
      max_tokens: 10,
      stream: true,
    }))
      streamed += choices[0]?.text ?? "";

    expect(streamed).toBe("CountOne two.");
    expect(whole.choices[0]?.text).toBe(streamed);
  });

  it("asks for the text between a prompt and a suffix", async () => {
    app.upstream.replyNext(json(chatCompletion({ content: "a + b" })));

    const { choices } = await openai.completions.create({ model: "acme/chat", prompt: "return ", suffix: ";\n}", max_tokens: 10 });

    expect(choices[0]?.text).toBe("a + b");
    expect(lastBody()?.messages).toMatchObject([{ role: "system" }, { role: "user", content: expect.stringContaining("return ") }]);
    expect(JSON.stringify(lastBody())).not.toContain('"suffix"');
  });

  it("leaves out log probabilities with a warning", async () => {
    app.upstream.replyNext(json(chatCompletion()));

    const { data, response } = await openai.completions
      .create({ model: "acme/chat", prompt: "Hello", logprobs: 3, max_tokens: 10 })
      .withResponse();

    expect(data.choices[0]?.logprobs).toBeNull();
    expect(response.headers.get("x-warnings")).toContain("logprobs");
    expect(lastBody()).not.toHaveProperty("logprobs");
  });

  it.each([
    ["prompt", { prompt: [15496, 11] }],
    ["prompt", { prompt: [[15496], [11]] }],
    ["prompt", { prompt: ["One", "Two"] }],
    ["prompt", {}],
    ["prompt", { prompt: "" }],
    ["best_of", { prompt: "x", best_of: 3 }],
    ["messages", { prompt: "x", messages: [{ role: "user", content: "y" }] }],
    ["tools", { prompt: "x", tools: [] }],
  ])("refuses fields and prompts outside of the format, naming the field: %s", async (param, fields) => {
    const answer = await client.post("/v1/completions", { model: "acme/chat", ...fields });

    expectEnvelope(answer, 400, "BAD_REQUEST");
    expect(answer.json<{ error: { param: string } }>().error.param).toBe(param);
  });

  it("ends a stream that fails on the way with an error", async () => {
    app.upstream.replyNext(sse([chatChunk({ content: "Half" }), { error: { message: "It broke." } }]));

    const { text } = await client.post("/v1/completions", { model: "acme/chat", prompt: "Hello", stream: true });

    expect(text).toContain('"error"');
    expect(text).not.toContain("[DONE]");
  });
});
