import OpenAI, { RateLimitError } from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { toneOf } from "../../src/providers/sandbox/realtime.js";
import { textOf } from "../graphql/client.js";
import { ModelsDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { chatChunks, chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { errorReply, json, sse } from "../support/upstream-replies.js";
import { type Answer, type Client, createClient, createKey, expectEnvelope } from "./client.js";
import { refuseRealtime } from "./realtime-client.js";

const WRONG_KEY = "sk_OwnerOfAllTests0123456789abcdefghijkl1q7bO_";

let app: TestApp;
let client: Client;
let addresses = 0;

beforeAll(async () => {
  const text = { modality: "text", upstream: "acme", upstreamModel: "limited", title: "Limited", prices: { promptTextPrice: "0.000001" } };
  app = await createTestApp({
    config: {
      // The tests say where each request comes from.
      trustProxyHops: 1,
      rateLimits: { anonymousRequestsPer10Seconds: 5, publishableRequestsPerMinute: 4, publishableCreditsPerHour: 10n ** 6n },
    },
    models: [
      { ...text, id: "acme/once", perUserRpm: 0.5, fallbacks: ["acme/chat-b"] },
      { ...text, id: "acme/twice", perUserRpm: 2 },
    ],
  });
  client = createClient(app.baseUrl, app.key);
});
afterAll(async () => {
  const { pool } = app.database;
  expect(await findBrokenInvariants(pool, { isIdle: true })).toEqual({});
  await app.close();
});

/** Headers of an address that no other test uses. */
function somewhere(): Record<string, string> {
  addresses += 1;
  return { "X-Forwarded-For": `198.51.100.${addresses}` };
}

/** A vendor may find 11,000 tokens in it. */
const LONG = { messages: [{ role: "user", content: "hill ".repeat(5_500) }], max_tokens: 100 };

function chat(key: string, headers: Record<string, string>, body: object = {}): Promise<Answer> {
  return client.post(
    "/v1/chat/completions",
    { model: "acme/chat", messages: [{ role: "user", content: "Hi" }], ...body },
    { key, headers },
  );
}

async function publishableKey(): Promise<string> {
  return (await createKey(app, { type: "publishable" })).key;
}

/** 16-bit samples at 24 kHz with the header that says so. */
function toWav(samples: Buffer): Uint8Array<ArrayBuffer> {
  const header = Buffer.from("RIFF....WAVEfmt \x10\0\0\0\x01\0\x01\0", "latin1");
  const format = Buffer.alloc(20);
  format.writeUInt32LE(24_000, 0);
  format.writeUInt32LE(48_000, 4);
  format.writeUInt16LE(2, 8);
  format.writeUInt16LE(16, 10);
  format.write("data", 12);
  format.writeUInt32LE(samples.length, 16);
  header.writeUInt32LE(header.length + format.length + samples.length - 8, 4);
  return new Uint8Array(Buffer.concat([header, format, samples]));
}

async function transcribe(key: string, headers: Record<string, string>): Promise<Answer> {
  const body = new FormData();
  body.set("file", new Blob([toWav(toneOf("one two"))], { type: "audio/wav" }), "speech.wav");
  body.set("model", "acme/transcription");
  const response = await fetch(`${app.baseUrl}/v1/audio/transcriptions`, {
    method: "POST",
    headers: { Authorization: `Bearer ${key}`, ...headers },
    body,
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: <Body>() => JSON.parse(text) as Body };
}

function expectLimited(answer: Answer, secondsMax: number): void {
  expectEnvelope(answer, 429, "RATE_LIMITED");
  const seconds = Number(answer.headers.get("retry-after"));
  expect(seconds).toBeGreaterThan(0);
  expect(seconds).toBeLessThanOrEqual(secondsMax);
}

describe("an address without a good key", () => {
  it("makes its number of requests in ten seconds on all routes together, and not one more", async () => {
    const headers = somewhere();
    const once = (path: string, key: string | null) => client.get(path, { key, headers });

    expect((await once("/v1/models", null)).status).toBe(200);
    expect((await once("/v1/models/acme/chat", null)).status).toBe(200);
    expect((await once("/v1/models", WRONG_KEY)).status).toBe(401);
    expect((await client.post("/v1/chat/completions", {}, { key: null, headers })).status).toBe(401);
    const basic = { key: null, headers: { ...headers, Authorization: "Basic abc" } };
    expect((await client.get("/account/key", basic)).status).toBe(401);

    expectLimited(await once("/v1/models", null), 10);
    expectLimited(await once("/v1/models", WRONG_KEY), 10);
    expectLimited(await client.get("/account/key", basic), 10);
    expectLimited(await refuseRealtime(app, "", basic), 10);
    expectLimited(await client.post("/graphql", { query: textOf(ModelsDocument) }, basic).then(toEnvelopeless), 10);
    expectLimited(await client.post("/v1/chat/completions", {}, { key: null, headers }), 10);
    expectLimited(await client.post("/graphql", { query: textOf(ModelsDocument) }, { key: null, headers }).then(toEnvelopeless), 10);
    expect((await client.get("/v1/models", { key: null, headers: somewhere() })).status).toBe(200);
  });

  it("does not block good keys from the same address, known or new", async () => {
    const headers = somewhere();
    for (let index = 0; index < 6; index += 1) await client.get("/v1/models", { key: null, headers });

    expectLimited(await client.get("/v1/models", { key: null, headers }), 10);
    expect((await client.get("/v1/models", { headers })).status).toBe(200);
    expect((await client.get("/v1/models", { key: (await createKey(app)).key, headers })).status).toBe(200);
  });

  it("may check the health without a key", async () => {
    const headers = somewhere();
    for (let index = 0; index < 10; index += 1) expect((await client.get("/healthz", { key: null, headers })).status).toBe(200);
  });
});

/** GraphQL has its own envelope; status and headers are the same. */
function toEnvelopeless(answer: Answer): Answer {
  const { errors } = answer.json<{ errors: { message: string; extensions: Record<string, unknown> }[] }>();
  const [error] = errors;
  expect(error?.extensions).toMatchObject({ code: "RATE_LIMITED", retryAfterSeconds: Number(answer.headers.get("retry-after")) });
  const rebuilt = {
    status: answer.status,
    success: false,
    error: {
      code: error?.extensions.code,
      message: error?.message,
      type: "rate_limit_error",
      param: null,
      requestId: answer.headers.get("x-request-id"),
      timestamp: error?.extensions.timestamp,
    },
  };
  return { ...answer, json: <Body>() => rebuilt as Body };
}

describe("a publishable key", () => {
  it("makes its number of generations a minute from one address, on all routes together", async () => {
    const key = await publishableKey();
    const headers = somewhere();
    app.upstream.replyNext(json(chatCompletion()), sse(chatChunks(["Hi"])), json(chatCompletion()), json(chatCompletion()));

    expect((await chat(key, headers)).status).toBe(200);
    expect((await chat(key, headers, { stream: true })).text).toContain("[DONE]");
    expect((await client.get("/text/Hello?model=acme/chat", { key, headers })).status).toBe(200);
    expect((await client.post("/v1/responses", { model: "acme/chat", input: "Hi" }, { key, headers })).status).toBe(200);

    const asked = app.upstream.requests.length;
    expectLimited(await chat(key, headers), 60);
    expectLimited(await chat(key, headers, { stream: true }), 60);
    expectLimited(await client.get("/text/Another", { key, headers }), 60);
    expectLimited(await client.post("/v1/responses", { model: "acme/chat", input: "Hi" }, { key, headers }), 60);
    expectLimited(await client.post("/v1/embeddings", { model: "acme/embedding", input: "Hi" }, { key, headers }), 60);
    expect(app.upstream.requests.length).toBe(asked);
    expect((await client.get("/account/key", { key, headers })).json()).toMatchObject({ rateLimitEnabled: true });
    expect((await chat(key, somewhere())).status).toBe(200);
  });

  it("is refused on the routes of every modality once it has used up its minute", async () => {
    const key = await publishableKey();
    const headers = somewhere();
    for (let index = 0; index < 4; index += 1) expect((await chat(key, headers, { model: "acme/free" })).status).toBe(200);
    const asked = app.upstream.requests.length;
    const post = (path: string, body: object) => client.post(path, body, { key, headers });
    const get = (path: string) => client.get(path, { key, headers });

    expectLimited(await post("/text", { model: "acme/free", messages: [{ role: "user", content: "Hi" }] }), 60);
    expectLimited(await post("/v1/images/generations", { prompt: "A hill" }), 60);
    expectLimited(await get("/image/A%20hill"), 60);
    expectLimited(await get("/video/A%20hill"), 60);
    expectLimited(await get("/audio/Hello"), 60);
    expectLimited(await get("/audio/A%20tune?model=acme/music"), 60);
    expectLimited(await post("/v1/audio/speech", { input: "Hello" }), 60);
    expectLimited(await post("/v1/embeddings", { input: "Hello" }), 60);
    expectLimited(await post("/v1/moderations", { input: "Hello" }), 60);
    expectLimited(await transcribe(key, headers), 60);
    expectLimited(await refuseRealtime(app, "?model=acme/realtime", { key, headers }), 60);
    expect(app.upstream.requests.length).toBe(asked);
  });

  it("is admitted while its bucket is above zero, pays the full cost, and is then refused for hours", async () => {
    const key = await publishableKey();
    const headers = somewhere();
    // 0.001 credits an hour, ten hours' worth: 0.01.
    app.upstream.replyNext(json(chatCompletion({ usage: wireUsage(9_990, 4) })), json(chatCompletion({ usage: wireUsage(994, 4) })));

    expect((await chat(key, headers, LONG)).headers.get("x-cost")).toBe("0.009998");
    expect((await chat(key, headers)).headers.get("x-cost")).toBe("0.001002");
    const refused = await chat(key, headers);

    expectLimited(refused, 3_601);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(3_590);
    expect((await chat(key, somewhere())).status).toBe(200);
  });

  it("pays for streams too, whole or left", async () => {
    const key = await publishableKey();
    const headers = somewhere();
    app.upstream.replyNext(sse(chatChunks(["Hi"], { usage: wireUsage(10_998, 1) })));

    expect((await chat(key, headers, { ...LONG, stream: true })).text).toContain("[DONE]");

    expectLimited(await chat(key, headers, { stream: true }), 3_601);
  });

  it("gives the official client the time of its next request", async () => {
    const key = await publishableKey();
    const openai = new OpenAI({ apiKey: key, baseURL: `${app.baseUrl}/v1`, maxRetries: 0, defaultHeaders: somewhere() });
    const ask = () => openai.chat.completions.create({ model: "acme/free", messages: [{ role: "user", content: "Hi" }] });
    for (let index = 0; index < 4; index += 1) await ask();

    const error: unknown = await ask().catch((thrown: unknown) => thrown);

    expect(error).toBeInstanceOf(RateLimitError);
    expect(Number((error as RateLimitError).headers.get("retry-after"))).toBeGreaterThan(0);
  });
});

describe("a secret key", () => {
  it("has no limit", async () => {
    const headers = somewhere();
    const answers = await Promise.all(Array.from({ length: 40 }, () => chat(app.key, headers, { model: "acme/free" })));

    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  });
});

describe("perUserRpm", () => {
  it("refuses the account's next request, and calls no fallback instead", async () => {
    const { key } = await createKey(app);
    app.upstream.replyNext(errorReply(500), json(chatCompletion({ content: "From the fallback" })));

    expect((await chat(app.key, somewhere(), { model: "acme/once" })).headers.get("x-fallback")).toBe("acme/chat-b");
    const asked = app.upstream.requests.length;

    expectLimited(await chat(app.key, somewhere(), { model: "acme/once" }), 120);
    expectLimited(await chat(key, somewhere(), { model: "acme/once", stream: true }), 120);
    expect(app.upstream.requests.length).toBe(asked);
  });

  it("lets its number of requests at once in, and not one more", async () => {
    const answers = await Promise.all([1, 2, 3].map(() => chat(app.key, somewhere(), { model: "acme/twice" })));

    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 429]);
  });
});
