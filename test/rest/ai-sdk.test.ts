/** Vendors with formats of their own, through the whole gateway: the requests to them, and charges to the billionth. */

import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { parseConfig } from "../../src/config/config.js";
import { ok, subscribeSse } from "../graphql/client.js";
import { StreamChatDocument } from "../operations/generated/graphql.js";
import { geminiAnswer, VENDOR_KEY } from "../support/ai-sdk.js";
import { ANTHROPIC_USAGE, anthropicEvents, anthropicMessage, anthropicSse } from "../support/anthropic.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { followNextRequest, readUntil } from "../support/leaving.js";
import { event, json, raw, sse, waitFor } from "../support/upstream-replies.js";
import { type Client, createClient, expectEnvelope, waitForUsage } from "./client.js";

const PNG = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64");
const HI = [{ role: "user" as const, content: "Hi" }];

let vendor: FakeUpstream;
let app: TestApp;
let client: Client;
let openai: OpenAI;
beforeAll(async () => {
  vendor = await startFakeUpstream();
  const settings = { apiKey: VENDOR_KEY, baseUrl: vendor.baseUrl };
  const { vendors } = parseConfig({});
  app = await createTestApp({
    models: [
      {
        id: "acme/claude",
        modality: "text",
        upstream: "anthropic",
        upstreamModel: "claude-haiku-4-5",
        title: "Claude, with a fallback",
        fallbacks: ["acme/chat"],
        prices: { promptTextPrice: "0.000001", completionTextPrice: "0.000005" },
      },
    ],
    config: {
      vendors: {
        ...vendors,
        anthropic: settings,
        gemini: settings,
        elevenlabs: settings,
        deepgram: settings,
        fal: settings,
        cohere: settings,
      },
    },
  });
  client = createClient(app.baseUrl, app.key);
  openai = new OpenAI({ apiKey: app.key, baseURL: `${app.baseUrl}/v1`, maxRetries: 0 });
});
afterAll(async () => {
  const { pool } = app.database;
  const broken = await findBrokenInvariants(pool, { isIdle: true });
  await app.close();
  expect(broken).toEqual({});
  await vendor.close();
});
beforeEach(() => vendor.replyAlways(null));

async function lastUsage(): Promise<Record<string, unknown>> {
  const { usage } = (await client.get("/account/usage?limit=1")).json<{ usage: Record<string, unknown>[] }>();
  return usage[0] ?? {};
}

describe("an Anthropic-format upstream", () => {
  it("answers an OpenAI client, cache reads, cache writes and thoughts billed at their own prices", async () => {
    vendor.replyNext(json(anthropicMessage()));
    const { data, response } = await openai.chat.completions
      .create({ model: "claude-haiku-4-5", messages: HI, max_tokens: 50, seed: 3 })
      .withResponse();

    expect(data.choices[0]?.message.tool_calls?.[0]).toMatchObject({ function: { name: "weather", arguments: '{"city":"Ulm"}' } });
    // 20 at 1, 100 at 0.1, 50 at 1.25 and 30 at 5 a million.
    expect(response.headers.get("x-cost")).toBe("0.0002425");
    expect(response.headers.get("x-usage-input-cache-write-tokens")).toBe("50");
    expect(response.headers.get("x-warnings")).toMatch(/^seed: /);
    expect(await lastUsage()).toMatchObject({
      model: "anthropic/claude-haiku-4-5",
      input_text_tokens: 20,
      input_cached_tokens: 100,
      input_cache_write_tokens: 50,
      output_text_tokens: 18,
      output_reasoning_tokens: 12,
      cost_usd: 0.0002425,
      usage_source: "provider",
    });
  });

  it("reads no effort and no sound from properties that every object has", async () => {
    vendor.replyNext(json(anthropicMessage()), json(geminiAnswer([{ text: "Hello." }])));
    const sound = { type: "input_audio", input_audio: { data: "UklGRg==", format: "constructor" } };

    const thought = await client.post("/v1/chat/completions", { model: "claude-haiku-4-5", messages: HI, reasoning_effort: "constructor" });
    const heard = await client.post("/v1/chat/completions", { model: "gemini-3.5-flash", messages: [{ role: "user", content: [sound] }] });

    expect([thought.status, heard.status]).toEqual([200, 200]);
    expect(thought.headers.get("x-warnings")).toContain('no effort "constructor"');
    const [first, second] = vendor.requests.slice(-2).map(({ json: body }) => body as Record<string, unknown>);
    expect(first).not.toHaveProperty("thinking");
    expect(second?.contents).toMatchObject([{ parts: [{ inlineData: { mimeType: "audio/constructor" } }] }]);
  });

  it("streams to an OpenAI client, charged before the end", async () => {
    vendor.replyNext(anthropicSse(anthropicEvents()));
    const stream = openai.chat.completions.stream({
      model: "claude-haiku-4-5",
      messages: HI,
      max_tokens: 50,
      stream_options: { include_usage: true },
    });
    let text = "";
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
    const completion = await stream.finalChatCompletion();

    expect(text).toBe("Let me look.");
    expect(completion.choices[0]).toMatchObject({
      finish_reason: "tool_calls",
      message: { tool_calls: [{ id: "toolu_01", function: { name: "weather", arguments: '{"city":"Ulm"}' } }] },
    });
    expect(completion.usage).toMatchObject({ prompt_tokens: 170, completion_tokens: ANTHROPIC_USAGE.output_tokens, cost: 0.0002425 });
    expect(await lastUsage()).toMatchObject({ cost_usd: 0.0002425, status: "ok" });
  });

  it("reports a stream's warnings in its first chunk and in the receipt", async () => {
    vendor.replyNext(anthropicSse(anthropicEvents()), anthropicSse(anthropicEvents()));
    const body = { model: "claude-haiku-4-5", messages: HI, max_tokens: 50, logit_bias: { "1": 1 }, stream: true };
    const { text } = await client.post("/v1/chat/completions", body);
    const streamed = await subscribeSse(app, StreamChatDocument, {
      input: { model: "claude-haiku-4-5", maxTokens: 50, seed: 3, messages: [{ role: "USER", content: "Hi" }] },
    }).rest();

    expect(JSON.parse(text.split("\n\n")[0]?.slice("data: ".length) ?? "")).toMatchObject({
      warnings: ["logit_bias: this upstream has no such option."],
    });
    expect(ok(streamed.at(-1) ?? null).chatCompletion).toMatchObject({ receipt: { warnings: [expect.stringMatching(/^seed: /)] } });
  });

  it("gives way to a fallback of another format when it fails, and not when the request is at fault", async () => {
    const overloaded = json({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } }, { status: 529 });
    const cutOff = anthropicSse([], { end: "cut" });
    const refusal = json({ type: "error", error: { type: "invalid_request_error", message: "odd" } }, { status: 400 });
    vendor.replyNext(overloaded, cutOff, refusal);
    const body = { model: "acme/claude", messages: HI, max_tokens: 50 };
    const whole = await client.post("/v1/chat/completions", body);
    const streamed = await client.post("/v1/chat/completions", { ...body, stream: true });
    const refused = await client.post("/v1/chat/completions", body);

    for (const answer of [whole, streamed]) {
      expect(answer.status).toBe(200);
      expect(answer.headers.get("x-fallback")).toBe("acme/chat");
    }
    expect(streamed.text).toMatch(/data: \[DONE\]\n\n$/);
    expectEnvelope(refused, 400, "BAD_REQUEST");
  });

  it("is read on when its caller leaves, who pays for the thoughts so far", async () => {
    let open: () => void = () => undefined;
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    const steps = anthropicEvents().map((data) => event(data, String(data.type)));
    vendor.replyNext(sse([...steps.slice(0, 10), waitFor(opened), ...steps.slice(10)], { done: false }));
    const caller = followNextRequest(app.baseUrl);
    const leaving = new AbortController();
    const response = await fetch(`${app.baseUrl}/v1/chat/completions`, {
      method: "POST",
      headers: { Authorization: `Bearer ${app.key}`, "Content-Type": "application/json" },
      body: JSON.stringify({ model: "claude-haiku-4-5", messages: HI, max_tokens: 50, stream: true }),
      signal: leaving.signal,
    });
    const { reader } = await readUntil(response, "look.");
    leaving.abort();
    reader.read().catch(() => undefined);
    await caller.hasLeft();
    open();

    const row = await waitForUsage(client, ({ status, model }) => status === "cancelled" && model === "anthropic/claude-haiku-4-5");
    expect(row).toMatchObject({ usage_source: "provider" });
    expect(row.cost_usd).toBeGreaterThan(0);
  });

  it("passes on the caller's mistake and hides the gateway's key", async () => {
    vendor.replyNext(json({ type: "error", error: { type: "invalid_request_error", message: "messages: too odd" } }, { status: 400 }));
    const refused = await client.post("/v1/chat/completions", { model: "claude-haiku-4-5", messages: HI });
    vendor.replyNext(json({ type: "error", error: { type: "authentication_error", message: `bad key ${VENDOR_KEY}` } }, { status: 401 }));
    const failed = await client.post("/v1/chat/completions", { model: "claude-haiku-4-5", messages: HI });

    expectEnvelope(refused, 400, "BAD_REQUEST");
    expect(refused.text).toContain("messages: too odd");
    expectEnvelope(failed, 502, "UPSTREAM_ERROR");
    expect(failed.text).not.toContain(VENDOR_KEY);
  });
});

describe("a Gemini-format upstream", () => {
  it("answers an OpenAI client, whole and streamed, each token billed once", async () => {
    const { usageMetadata: _, ...begun } = geminiAnswer([{ text: "Hel" }], { finishReason: undefined });
    vendor.replyNext(json(geminiAnswer([{ text: "Hello." }])), sse([begun, geminiAnswer([{ text: "lo." }])], { done: false }));
    const whole = await openai.chat.completions.create({ model: "google/gemini-3.5-flash", messages: HI });
    const stream = await openai.chat.completions.create({ model: "gemini-3.5-flash", messages: HI, stream: true });
    let text = "";
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";

    expect(whole.choices[0]?.message.content).toBe("Hello.");
    expect(text).toBe("Hello.");
    const { usage } = (await client.get("/account/usage?limit=2")).json<{ usage: Record<string, unknown>[] }>();
    for (const row of usage) {
      // 85 at 1.5 (20 of them audio), 40 at 0.15 and 40 at 9 a million.
      expect(row).toMatchObject({
        input_text_tokens: 65,
        input_audio_tokens: 20,
        input_cached_tokens: 40,
        output_reasoning_tokens: 15,
        cost_usd: 0.0004935,
      });
    }
  });
});

describe("media of vendors", () => {
  it("speech of ElevenLabs is billed by the character", async () => {
    vendor.replyNext(raw(Buffer.alloc(5_000, 7), { headers: { "content-type": "audio/mpeg" } }));
    const { response } = await openai.audio.speech
      .create({ model: "elevenlabs/eleven_multilingual_v2", voice: "rachel" as "alloy", input: "Hello there." })
      .withResponse();

    expect((await response.arrayBuffer()).byteLength).toBe(5_000);
    expect(vendor.requests.at(-1)).toMatchObject({ path: "/v1/text-to-speech/21m00Tcm4TlvDq8ikWAM?output_format=mp3_44100_128" });
    expect(await lastUsage()).toMatchObject({ type: "generate.speech", cost_usd: 0.0012 });
  });

  it("a transcription of Deepgram is billed by the second", async () => {
    const words = [{ word: "hello", start: 0, end: 0.5 }];
    vendor.replyNext(json({ metadata: { duration: 2 }, results: { channels: [{ alternatives: [{ transcript: "Hello.", words }] }] } }));
    const text = await openai.audio.transcriptions.create({
      model: "deepgram/nova-3",
      file: new File([toWav(2)], "a.wav", { type: "audio/wav" }),
    });

    expect(text.text).toBe("Hello.");
    // 2 seconds at 0.000153333333.
    expect(await lastUsage()).toMatchObject({ type: "generate.transcription", cost_usd: 0.000306667 });
  });

  it("a picture of fal is billed once", async () => {
    const url = `${vendor.baseUrl}/files/1.png`;
    vendor.replyNext(json({ images: [{ url, content_type: "image/png" }] }), raw(PNG, { headers: { "content-type": "image/png" } }));
    const picture = await openai.images.generate({
      model: "black-forest-labs/flux-1.1-pro-ultra",
      prompt: "a red square",
      size: "1024x1024",
    });

    expect(picture.data?.[0]?.b64_json).toMatch(/^[A-Za-z0-9+/]+=*$/);
    expect(vendor.requests.at(-2)).toMatchObject({
      path: "/v1/fal-ai/flux-pro/v1.1-ultra",
      json: { prompt: "a red square", num_images: 1 },
    });
    expect(await lastUsage()).toMatchObject({ type: "generate.image", cost_usd: 0.06 });
  });

  it("embeddings of Cohere are billed by the token", async () => {
    vendor.replyNext(json({ embeddings: { float: [[0.5, 0.25]] }, meta: { billed_units: { input_tokens: 1_000 } } }));
    const { data } = await openai.embeddings.create({ model: "cohere/embed-v4.0", input: "hi" });

    expect(data[0]?.embedding).toEqual([0.5, 0.25]);
    expect(await lastUsage()).toMatchObject({ type: "generate.embedding", input_text_tokens: 1_000, cost_usd: 0.00012 });
  });
});

/** Silence, 8 kHz, 8 bits. */
function toWav(seconds: number): Uint8Array<ArrayBuffer> {
  const samples = 8_000 * seconds;
  const bytes = Buffer.alloc(44 + samples, 128);
  bytes.write("RIFF", 0);
  bytes.writeUInt32LE(36 + samples, 4);
  bytes.write("WAVEfmt ", 8);
  bytes.writeUInt32LE(16, 16);
  bytes.writeUInt16LE(1, 20);
  bytes.writeUInt16LE(1, 22);
  bytes.writeUInt32LE(8_000, 24);
  bytes.writeUInt32LE(8_000, 28);
  bytes.writeUInt16LE(1, 32);
  bytes.writeUInt16LE(8, 34);
  bytes.write("data", 36);
  bytes.writeUInt32LE(samples, 40);
  return new Uint8Array(bytes);
}
