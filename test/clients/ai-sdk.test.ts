/**
 * The Vercel AI SDK as a client of the gateway, through its package for OpenAI-compatible services, and through
 * OpenAI's own for the rest.
 */
import { createOpenAI, type OpenAIProvider } from "@ai-sdk/openai";
import { createOpenAICompatible, type OpenAICompatibleProvider } from "@ai-sdk/openai-compatible";
import {
  embed,
  embedMany,
  generateImage,
  generateObject,
  generateText,
  jsonSchema,
  stepCountIs,
  streamText,
  tool,
  experimental_transcribe as transcribe,
} from "ai";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { createTestApp, type TestApp } from "../support/app.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { chatChunks, chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { recording } from "../support/recordings.js";
import { errorReply, json, sse } from "../support/upstream-replies.js";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

let app: TestApp;
let sluice: OpenAICompatibleProvider;
let openai: OpenAIProvider;
beforeAll(async () => {
  app = await createTestApp();
  sluice = createOpenAICompatible({
    name: "sluice",
    baseURL: `${app.baseUrl}/v1`,
    apiKey: app.key,
    includeUsage: true,
    supportsStructuredOutputs: true,
  });
  openai = createOpenAI({ baseURL: `${app.baseUrl}/v1`, apiKey: app.key });
});
afterEach(async () => {
  const { pool } = app.database;
  await expect.poll(() => findBrokenInvariants(pool, { isIdle: true })).toEqual({});
});
afterAll(() => app.close());

async function usageRow(): Promise<Record<string, unknown>> {
  const answer = await fetch(`${app.baseUrl}/account/usage?limit=1`, { headers: { Authorization: `Bearer ${app.key}` } });
  return ((await answer.json()) as { usage: Record<string, unknown>[] }).usage[0] ?? {};
}

describe("text", () => {
  it("is generated, with its usage", async () => {
    const { text, usage, finishReason } = await generateText({ model: sluice("acme/chat"), prompt: "Hi", maxOutputTokens: 20 });

    expect(text).toBe("Hello, world.");
    expect(finishReason).toBe("stop");
    expect(usage).toMatchObject({ inputTokens: 10, outputTokens: 4, totalTokens: 14 });
    // 10 at 1 and 4 at 2 a million.
    expect(await usageRow()).toMatchObject({ model: "acme/chat", cost_usd: 0.000018 });
  });

  it("is streamed", async () => {
    const result = streamText({ model: sluice("acme/chat"), prompt: "Hi" });
    const pieces: string[] = [];
    for await (const piece of result.textStream) pieces.push(piece);

    expect(pieces).toEqual(["Hello", ", ", "world", "."]);
    expect(await result.usage).toMatchObject({ inputTokens: 10, outputTokens: 4 });
  });

  it("calls tools and continues with their results", async () => {
    const call = { id: "call_1", type: "function", function: { name: "weather", arguments: '{"city":"Ulm"}' } };
    const asking = chatCompletion({ content: "" }) as { choices: { message: object; finish_reason: string }[] };
    const choices = [{ index: 0, message: { role: "assistant", content: null, tool_calls: [call] }, finish_reason: "tool_calls" }];
    app.upstream.replyNext(json({ ...asking, choices, usage: wireUsage(10, 5) }), json(chatCompletion({ content: "Rain in Ulm." })));
    const weather = tool({
      description: "Tells the weather.",
      inputSchema: z.object({ city: z.string() }),
      execute: async ({ city }) => `Rain in ${city}.`,
    });
    const { text, steps } = await generateText({
      model: sluice("acme/chat"),
      prompt: "Weather?",
      tools: { weather },
      stopWhen: stepCountIs(3),
    });

    expect(steps).toHaveLength(2);
    expect(text).toBe("Rain in Ulm.");
    expect(app.upstream.requests.at(-1)?.json).toMatchObject({
      messages: [{}, {}, { role: "tool", tool_call_id: "call_1", content: "Rain in Ulm." }],
    });
  });

  it("is an object when a schema asks for one", async () => {
    app.upstream.replyNext(json(chatCompletion({ content: '{"city":"Ulm"}' })));
    const schema = jsonSchema<{ city: string }>({ type: "object", properties: { city: { type: "string" } }, required: ["city"] });
    const { object } = await generateObject({ model: sluice("acme/chat"), prompt: "Where?", schema });

    expect(object).toEqual({ city: "Ulm" });
    expect(app.upstream.requests.at(-1)?.json).toMatchObject({ response_format: { type: "json_schema" } });
  });

  it("that fails is an error of the SDK's with the gateway's status and words", async () => {
    app.upstream.replyNext(errorReply(400, "too odd"));

    await expect(generateText({ model: sluice("acme/chat"), prompt: "Hi", maxRetries: 0 })).rejects.toMatchObject({
      statusCode: 400,
      message: expect.stringContaining("too odd"),
    });
  });

  it("of a stream is kept apart from its thoughts", async () => {
    const [begin, ...rest] = chatChunks(["42."]);
    const thought = {
      ...(begin as object),
      choices: [{ index: 0, delta: { reasoning_content: "Six times seven." }, finish_reason: null }],
    };
    app.upstream.replyNext(sse([begin as Record<string, unknown>, thought, ...rest]));
    const result = streamText({ model: sluice("acme/chat"), prompt: "6 x 7?" });

    expect(await result.text).toBe("42.");
    expect(await result.reasoningText).toBe("Six times seven.");
  });
});

it("makes pictures", async () => {
  app.upstream.replyNext(json({ created: 1, data: [{ b64_json: PNG }] }));
  const { image } = await generateImage({ model: sluice.imageModel("acme/image"), prompt: "a red square", size: "1024x1024" });

  expect(image.mediaType).toMatch(/^image\//);
  expect(image.uint8Array.length).toBeGreaterThan(0);
  expect(await usageRow()).toMatchObject({ model: "acme/image", cost_usd: 0.04 });
});

it("makes several embeddings with one request, as numbers", async () => {
  const vectors = [[0.5], [0.25]];
  const data = vectors.map((embedding, index) => ({ object: "embedding", index, embedding }));
  app.upstream.replyNext(json({ object: "list", model: "upstream-embedding", data, usage: { prompt_tokens: 7, total_tokens: 7 } }));

  const { embeddings, usage } = await embedMany({ model: sluice.embeddingModel("acme/embedding"), values: ["a", "b"] });

  expect(embeddings).toEqual(vectors);
  expect(usage.tokens).toBe(7);
});

it("makes embeddings", async () => {
  app.upstream.replyNext(
    json({
      object: "list",
      data: [{ object: "embedding", index: 0, embedding: [0.5, 0.25] }],
      model: "m",
      usage: { prompt_tokens: 3, total_tokens: 3 },
    }),
  );
  const { embedding, usage } = await embed({ model: sluice.embeddingModel("acme/embedding"), value: "hi" });

  expect(embedding).toEqual([0.5, 0.25]);
  expect(usage.tokens).toBe(3);
  expect(await usageRow()).toMatchObject({ model: "acme/embedding", cost_usd: 0.00000006 });
});

describe("a transcript", () => {
  // The package reads no segment that lacks one of OpenAI's fields.
  const timed = { openai: { timestampGranularities: ["segment"] } };

  it("has its segments, of an upstream that reports words and times only", async () => {
    app.upstream.replyNext(
      json({ text: "Hi there.", language: "english", duration: 2, segments: [{ start: 0, end: 2, text: "Hi there." }] }),
    );
    const model = openai.transcription("acme/transcription");
    const { text, segments, language, durationInSeconds } = await transcribe({ model, audio: recording(2), providerOptions: timed });

    expect({ text, segments, language, durationInSeconds }).toEqual({
      text: "Hi there.",
      segments: [{ text: "Hi there.", startSecond: 0, endSecond: 2 }],
      language: "en",
      durationInSeconds: 2,
    });
    expect(await usageRow()).toMatchObject({ model: "acme/transcription", cost_usd: 0.0002 });
  });

  it("has its segments, of the sandbox", async () => {
    const model = openai.transcription("sandbox/transcription");
    const { segments } = await transcribe({ model, audio: recording(1), providerOptions: timed });

    expect(segments).toMatchObject([{ text: expect.stringContaining("sandbox"), startSecond: 0, endSecond: 1 }]);
  });
});
