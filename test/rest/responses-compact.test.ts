/** POST /v1/responses/compact and /v1/responses/input_tokens, with the official client. */
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { json } from "../support/upstream-replies.js";
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

interface SentBody {
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly tools?: unknown;
}

function lastBody(): SentBody | undefined {
  return app.upstream.requests.at(-1)?.json as SentBody | undefined;
}

const CONVERSATION: OpenAI.Responses.ResponseInputItem[] = [
  { role: "user", content: "Is it raining in Oslo?" },
  { type: "function_call", call_id: "call_1", name: "weather", arguments: '{"city":"Oslo"}' },
  { type: "function_call_output", call_id: "call_1", output: "rain, 4 degrees" },
  { role: "assistant", content: "It is." },
  {
    role: "user",
    content: [
      { type: "input_text", text: "And this?" },
      { type: "input_image", image_url: "data:image/png;base64,AAAA", detail: "auto" },
    ],
  },
];

describe("POST /v1/responses/compact", () => {
  it("has the model summarize the whole conversation, and answers the user's messages and the summary", async () => {
    app.upstream.replyNext(json(chatCompletion({ content: "It rains in Oslo.", usage: wireUsage(1000, 50) })));

    const { data, response } = await openai.responses
      .compact({ model: "acme/chat", input: CONVERSATION, instructions: "Be brief." })
      .withResponse();

    const [rules, asked] = lastBody()?.messages ?? [];
    expect(rules?.role).toBe("system");
    for (const part of ["Be brief.", "Is it raining in Oslo?", "weather", '{"city":"Oslo"}', "rain, 4 degrees", "It is.", "(image_url)"])
      expect(asked?.content).toContain(part);
    expect(lastBody()?.tools).toBeUndefined();
    expect(data).toMatchObject({
      object: "response.compaction",
      output: [
        { type: "message", role: "user", content: [{ type: "input_text", text: "Is it raining in Oslo?" }] },
        { type: "message", role: "user", content: [{ text: "And this?" }, { type: "input_image" }] },
        { type: "compaction", encrypted_content: expect.stringMatching(/^sluice1s\./) },
      ],
      usage: { input_tokens: 1000, output_tokens: 50, total_tokens: 1050 },
    });
    expect(Number(response.headers.get("x-cost"))).toBe(0.0011);
  });

  it("is continued by the items that it answers, with any model", async () => {
    app.upstream.replyNext(json(chatCompletion({ content: "It rains in Oslo." })), json(chatCompletion({ content: "Take a coat." })));
    const { output } = await openai.responses.compact({ model: "acme/chat", input: "Is it raining?" });

    const next = await openai.responses.create({
      model: "acme/chat-b",
      input: [...(output as OpenAI.Responses.ResponseInputItem[]), { role: "user", content: "What do I need?" }],
    });

    expect(next.output_text).toBe("Take a coat.");
    expect(lastBody()?.messages).toMatchObject([
      { role: "user", content: [{ type: "text", text: "Is it raining?" }] },
      { role: "user", content: "Summary of the conversation so far:\n\nIt rains in Oslo." },
      { role: "user", content: "What do I need?" },
    ]);
  });

  it("leaves out the summary of another vendor, with a warning", async () => {
    app.upstream.replyNext(json(chatCompletion()));
    const foreign = { type: "compaction" as const, encrypted_content: "gAAAAABopaque" };

    const { response } = await openai.responses
      .create({ model: "acme/chat", input: [foreign, { role: "user", content: "Hello" }] })
      .withResponse();

    expect(response.headers.get("x-warnings")).toContain("the compaction of another vendor was left out");
    expect(lastBody()?.messages).toEqual([{ role: "user", content: "Hello" }]);
  });

  it("refuses an answer without a summary, a missing input and a stored conversation", async () => {
    app.upstream.replyNext(json(chatCompletion({ content: "" })));
    expectEnvelope(await client.post("/v1/responses/compact", { model: "acme/chat", input: "Hello" }), 502, "UPSTREAM_ERROR");
    expectEnvelope(await client.post("/v1/responses/compact", { model: "acme/chat" }), 400, "BAD_REQUEST");
    const stored = { model: "acme/chat", input: "Hello", previous_response_id: "resp_1" };
    expectEnvelope(await client.post("/v1/responses/compact", stored), 400, "BAD_REQUEST");
  });
});

describe("POST /v1/responses/input_tokens", () => {
  it("estimates the tokens without a charge or a call of the upstream", async () => {
    const before = app.upstream.requests.length;

    const few = await openai.responses.inputTokens.count({ model: "acme/chat", input: "Hello" });
    const many = await openai.responses.inputTokens.count({
      model: "acme/chat",
      input: CONVERSATION,
      tools: [{ type: "function", name: "weather", parameters: { type: "object", properties: {} }, strict: true }],
    });

    expect(few).toEqual({ object: "response.input_tokens", input_tokens: expect.any(Number) });
    expect(few.input_tokens).toBeGreaterThan(0);
    expect(many.input_tokens).toBeGreaterThan(few.input_tokens + 700);
    expect(app.upstream.requests.length).toBe(before);
  });

  it("refuses an unknown model, a missing input and a caller without a key", async () => {
    const path = "/v1/responses/input_tokens";
    expectEnvelope(await client.post(path, { model: "no/such", input: "x" }), 400, "BAD_REQUEST");
    expectEnvelope(await client.post(path, { model: "acme/chat" }), 400, "BAD_REQUEST");
    expectEnvelope(await createClient(app.baseUrl, null).post(path, { model: "acme/chat", input: "x" }), 401, "UNAUTHORIZED");
  });
});
