/** POST /v1/audio/speech, and GET /audio/{text} as speech: with the official client and by hand. */
import { request as httpRequest } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import OpenAI from "openai";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { VOICES } from "../../src/services/generation/media/speech.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { bytes, errorReply, hang, json, type Reply, raw, type StreamEnd, type StreamStep, waitFor } from "../support/upstream-replies.js";
import { type Answer, type Client, createClient, createKey, expectEnvelope, type UsageJson, waitForUsage } from "./client.js";

const SPOKEN = Buffer.from("not really an MP3, which nobody looks at");
const HELLO = { model: "acme/speech", input: "Hello." };

let app: TestApp;
/** Its upstreams have two seconds. */
let hasty: TestApp;
let client: Client;
let openai: OpenAI;

beforeAll(async () => {
  const speech = { modality: "speech", upstream: "acme", prices: { completionAudioPrice: "0.000015" } };
  app = await createTestApp({
    models: [
      { ...speech, id: "acme/own-voices", upstreamModel: "own", title: "Own voices", voices: ["ada", "bob"] },
      { ...speech, id: "acme/more-voices", upstreamModel: "more", title: "More voices", voices: [...VOICES, "ada"] },
      { ...speech, id: "acme/spoken-twice", upstreamModel: "first", title: "With a fallback", fallbacks: ["acme/speech"] },
      { ...speech, id: "acme/dear-speech", upstreamModel: "dear", title: "Dear", prices: { completionAudioPrice: "1" } },
    ],
  });
  hasty = await createTestApp({ upstream: app.upstream, config: { timeouts: { connectMs: 10_000, idleMs: 10_000, totalMs: 2_000 } } });
  client = createClient(app.baseUrl, app.key);
  openai = new OpenAI({ apiKey: app.key, baseURL: `${app.baseUrl}/v1`, maxRetries: 0 });
});
afterEach(async () => {
  app.upstream.replyAlways(null);
  for (const { database } of [app, hasty]) {
    await expect.poll(() => findBrokenInvariants(database.pool, { isIdle: true })).toEqual({});
  }
});
afterAll(async () => {
  await hasty.close();
  await app.close();
});

function spoken(body: string | Uint8Array = SPOKEN, contentType = "audio/mpeg"): Reply {
  return raw(body, { headers: { "content-type": contentType } });
}

function streamed(steps: readonly StreamStep[], end: StreamEnd = "complete"): Reply {
  return { kind: "stream", status: 200, headers: { "content-type": "audio/mpeg" }, steps, framing: "lf", end };
}

function post(body: object, options: { key?: string } = {}): Promise<Answer> {
  return client.post("/v1/audio/speech", { ...HELLO, ...body }, options);
}

function lastAsked(): Record<string, unknown> {
  return app.upstream.requests.at(-1)?.json as Record<string, unknown>;
}

async function rowsCount(): Promise<number> {
  return (await client.get("/account/usage?limit=1000")).json<UsageJson>().count;
}

async function expectRefused(answering: Promise<Answer>, param: string | null, code = "BAD_REQUEST", status = 400): Promise<Answer> {
  const asked = app.upstream.requests.length;
  const answer = await answering;
  expectEnvelope(answer, status, code);
  expect(answer.json<{ error: { param: string | null } }>().error.param).toBe(param);
  expect(app.upstream.requests.length).toBe(asked);
  return answer;
}

describe("POST /v1/audio/speech", () => {
  it("answers the official client, priced by its characters", async () => {
    app.upstream.replyNext(spoken());

    const { data, response } = await openai.audio.speech
      .create({ model: "acme/speech", input: "Grüß dich 👋", voice: "coral", speed: 1.5, instructions: "Cheerful." })
      .withResponse();

    expect(Buffer.from(await data.arrayBuffer())).toEqual(SPOKEN);
    expect(lastAsked()).toEqual({
      model: "upstream-speech",
      input: "Grüß dich 👋",
      voice: "coral",
      response_format: "mp3",
      speed: 1.5,
      instructions: "Cheerful.",
    });
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "content-type": "audio/mpeg",
      "x-model-used": "acme/speech",
      // 11 characters x 0.000015
      "x-cost": "0.000165",
      "x-held": "0.000165",
      "x-usage-characters": "11",
      "server-timing": expect.stringMatching(/^gateway;dur=\d+(\.\d+)?, upstream;dur=\d+(\.\d+)?$/),
    });
    const row = await waitForUsage(client, ({ request_id }) => request_id === response.headers.get("x-generation-id"));
    expect(row).toMatchObject({
      type: "generate.speech",
      model: "acme/speech",
      cost_usd: 0.000165,
      status: "ok",
      usage_source: "estimated",
    });
  });

  it("speaks with alloy, as MP3, by the default model, when nothing else is said", async () => {
    app.upstream.replyNext(spoken());

    const answer = await client.post("/v1/audio/speech", { input: "Hello." });

    expect(answer.status).toBe(200);
    expect(lastAsked()).toEqual({ model: "upstream-speech", input: "Hello.", voice: "alloy", response_format: "mp3" });
  });

  it("passes on unknown fields, and keeps its own", async () => {
    app.upstream.replyNext(spoken());

    await post({ emotion: { joy: 1 }, safe: false });

    expect(lastAsked()).toMatchObject({ emotion: { joy: 1 } });
    expect(lastAsked()).not.toHaveProperty("safe");
  });

  it.each(["mp3", "opus", "aac", "flac", "wav", "pcm"])("answers %s, with its type when the upstream states none", async (format) => {
    app.upstream.replyNext(spoken(SPOKEN, "application/octet-stream"));

    const answer = await post({ response_format: format });

    expect(lastAsked().response_format).toBe(format);
    expect(answer.headers.get("content-type")).toBe({ mp3: "audio/mpeg", opus: "audio/ogg" }[format] ?? `audio/${format}`);
  });

  it("speaks with each of the 35 voices", async () => {
    expect(new Set(VOICES).size).toBe(35);
    app.upstream.replyAlways(spoken());
    const before = app.upstream.requests.length;

    for (const voice of VOICES) expect((await post({ voice })).status).toBe(200);

    expect(app.upstream.requests.slice(before).map(({ json: body }) => (body as { voice: string }).voice)).toEqual(VOICES);
  });

  it("lists the existing voices for an unknown one", async () => {
    const answer = await expectRefused(post({ voice: "hal" }), "voice");

    const { message } = answer.json<{ error: { message: string } }>().error;
    for (const voice of VOICES) expect(message).toContain(voice);
  });

  it("keeps to the voices of a model that lists them", async () => {
    app.upstream.replyAlways(spoken());

    expect((await post({ model: "acme/own-voices", voice: "bob" })).status).toBe(200);
    expect((await post({ model: "acme/own-voices" })).status).toBe(200);
    expect(lastAsked().voice).toBe("ada");
    expect((await post({ model: "acme/more-voices", voice: "ada" })).status).toBe(200);
    expect((await post({ model: "acme/more-voices" })).status).toBe(200);
    expect(lastAsked().voice).toBe("alloy");

    await expectRefused(post({ model: "acme/own-voices", voice: "alloy" }), "voice");
    await expectRefused(post({ voice: "ada" }), "voice");
  });

  it("takes everything at its bound", async () => {
    app.upstream.replyAlways(spoken());

    for (const body of [{ input: "👋".repeat(10_000) }, { input: "x" }, { speed: 0.25 }, { speed: 4 }]) {
      expect((await post(body)).status).toBe(200);
    }
  });

  const refusals: readonly (readonly [what: string, body: object, param: string])[] = [
    ["10001 characters", { input: "x".repeat(10_001) }, "input"],
    ["no characters", { input: "" }, "input"],
    ["white space alone", { input: " \n" }, "input"],
    ["no input", { input: undefined }, "input"],
    ["input that is no text", { input: ["Hello"] }, "input"],
    ["a speed below the least", { speed: 0.24 }, "speed"],
    ["a speed above the most", { speed: 4.01 }, "speed"],
    ["a speed in text", { speed: "1" }, "speed"],
    ["another format", { response_format: "midi" }, "response_format"],
    ["another format of streams", { stream_format: "chunks" }, "stream_format"],
    ["a voice that is no text", { voice: { id: "x" } }, "voice"],
    ["instructions beyond all bounds", { instructions: "x".repeat(10_001) }, "instructions"],
    ["an unknown model", { model: "acme/spech" }, "model"],
    ["a model that does something else", { model: "acme/chat" }, "model"],
  ];
  it.each(refusals)("refuses %s", async (_what, body, param) => {
    await expectRefused(post(body), param);
  });

  it("refuses a caller without a key or the permission, and one who cannot pay", async () => {
    const { key: other } = await createKey(app, { allowedModels: ["acme/chat"] });
    const { key: poor } = await createKey(app, { creditBudget: 5 });

    await expectRefused(client.post("/v1/audio/speech", HELLO, { key: null }), null, "UNAUTHORIZED", 401);
    await expectRefused(post({}, { key: other }), null, "FORBIDDEN", 403);
    await expectRefused(post({ model: "acme/dear-speech", input: "123456" }, { key: poor }), null, "KEY_BUDGET_EXHAUSTED", 402);
    app.upstream.replyNext(spoken());
    expect((await post({ model: "acme/dear-speech", input: "12345" }, { key: poor })).status).toBe(200);
  });

  it("passes on the first sound while the rest is still being made", async () => {
    let finish = () => {};
    const rest = new Promise<void>((resolve) => {
      finish = resolve;
    });
    app.upstream.replyNext(streamed([bytes("abc"), waitFor(rest), bytes("def")]));

    const response = await fetch(`${app.baseUrl}/v1/audio/speech`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${app.key}` },
      body: JSON.stringify(HELLO),
    });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    const first = await reader.read();
    expect(Buffer.from(first.value ?? []).toString()).toBe("ab");
    finish();

    let text = "ab";
    for (let next = await reader.read(); !next.done; next = await reader.read()) text += Buffer.from(next.value).toString();
    expect(text).toBe("abcdef");
  });

  it("has charged when its last byte goes out", async () => {
    app.upstream.replyNext(spoken("x"));

    const answer = await post({});

    expect(answer.text).toBe("x");
    const { usage } = (await client.get("/account/usage?limit=1")).json<UsageJson>();
    expect(usage[0]).toMatchObject({ request_id: answer.headers.get("x-generation-id"), cost_usd: 0.00009 });
  });

  it("reports the text after a safety feature, at the price of the request", async () => {
    app.upstream.replyNext(spoken(), spoken());

    const answer = await post({ input: "Write to ada@example.org.", instructions: "Like 192.0.2.1.", safe: "privacy" });
    const heard = await client.get("/audio/Call%20ada@example.org?safe=privacy");

    const [first, second] = app.upstream.requests.slice(-2).map(({ json: body }) => body as Record<string, string>);
    expect(`${first?.input} ${first?.instructions} ${second?.input}`).not.toMatch(/ada@example|192\.0/);
    // 25 characters x 0.000015
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "x-cost": "0.000375",
      "x-safety-applied": "privacy",
      "x-safety-redacted": "privacy",
    });
    expect(heard.headers.get("x-safety-redacted")).toBe("privacy");
    await expectRefused(post({ safe: "everything" }), "safe");
  });

  it("is repeated, and not charged again, for the same Idempotency-Key", async () => {
    const before = await rowsCount();
    app.upstream.replyNext(streamed([bytes("abc"), bytes("def")]));
    const headers = { "Idempotency-Key": "the same speech" };

    const first = await client.post("/v1/audio/speech", HELLO, { headers });
    const second = await client.post("/v1/audio/speech", HELLO, { headers });

    expect([first.text, second.text]).toEqual(["abcdef", "abcdef"]);
    expect(second.headers.get("content-type")).toBe("audio/mpeg");
    expect(second.headers.get("x-generation-id")).toBe(first.headers.get("x-generation-id"));
    expect(await rowsCount()).toBe(before + 1);
  });

  it("calls the fallback when the first upstream fails, at the price of the requested model", async () => {
    app.upstream.replyNext(errorReply(500), spoken());

    const answer = await post({ model: "acme/spoken-twice" });

    expect(answer.headers.get("x-fallback")).toBe("acme/speech");
    expect(answer.headers.get("x-cost")).toBe("0.00009");
  });

  const failures: readonly (readonly [what: string, reply: Reply, status: number, code: string])[] = [
    ["400", errorReply(400, "No such voice."), 400, "BAD_REQUEST"],
    ["401", errorReply(401), 502, "UPSTREAM_ERROR"],
    ["429", errorReply(429), 502, "UPSTREAM_ERROR"],
    ["500", errorReply(500), 502, "UPSTREAM_ERROR"],
    ["408", errorReply(408), 504, "UPSTREAM_TIMEOUT"],
    ["a page", raw("<html>", { headers: { "content-type": "text/html" } }), 502, "UPSTREAM_ERROR"],
    ["JSON", json({ ok: true }), 502, "UPSTREAM_ERROR"],
    ["an error with status 200", json({ error: { message: "Too long.", code: 400 } }), 400, "BAD_REQUEST"],
    ["nothing", spoken(""), 502, "UPSTREAM_ERROR"],
  ];
  it.each(failures)("charges nothing when the upstream answers %s", async (_what, reply, status, code) => {
    const before = await rowsCount();
    app.upstream.replyNext(reply);

    expectEnvelope(await post({}), status, code);

    expect(await rowsCount()).toBe(before);
  });

  it("charges nothing when the upstream answers silence", async () => {
    const impatient = createClient(hasty.baseUrl, hasty.key);
    const before = (await impatient.get("/account/usage")).text;
    app.upstream.replyNext(hang());

    expectEnvelope(await impatient.post("/v1/audio/speech", HELLO), 504, "UPSTREAM_TIMEOUT");

    expect((await impatient.get("/account/usage")).text).toBe(before);
  });

  it("breaks off when the upstream does, and charges nothing", async () => {
    const before = await rowsCount();
    app.upstream.replyNext(streamed([bytes("abcdef")], "cut"));

    await expect(post({})).rejects.toThrow();

    expect(await rowsCount()).toBe(before);
  });

  it("charges the whole price to a caller who leaves in the middle, and cancels the upstream", async () => {
    app.upstream.replyNext(streamed([bytes("abcdef")], "hang"));
    const leaving = new AbortController();
    const seen = app.upstream.requests.length;

    const response = await fetch(`${app.baseUrl}/v1/audio/speech`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${app.key}` },
      body: JSON.stringify(HELLO),
      signal: leaving.signal,
    });
    await response.body?.getReader().read();
    leaving.abort();

    await app.upstream.requests[seen]?.closedByClient;
    const row = await waitForUsage(client, ({ request_id }) => request_id === response.headers.get("x-generation-id"));
    expect(row).toMatchObject({ cost_usd: 0.00009, status: "cancelled", usage_source: "partial" });
  });

  it("charges nothing to a caller who leaves before an upstream has accepted the text", async () => {
    const before = await rowsCount();
    app.upstream.replyNext(hang());
    const seen = app.upstream.requests.length;
    const leaving = new AbortController();

    const answering = fetch(`${app.baseUrl}/v1/audio/speech`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${app.key}` },
      body: JSON.stringify(HELLO),
      signal: leaving.signal,
    }).catch(() => null);
    while (app.upstream.requests.length === seen) await sleep(5);
    leaving.abort();
    await answering;

    await app.upstream.requests[seen]?.closedByClient;
    expect(await rowsCount()).toBe(before);
  });

  it("charges the whole price to a caller who listens until the time is up", async () => {
    const chunk = Buffer.alloc(256 * 1024, 1);
    app.upstream.replyNext(streamed(Array.from({ length: 400 }, () => bytes(chunk))));

    const { generationId, leave } = await new Promise<{ generationId: string; leave: () => void }>((resolve, reject) => {
      const request = httpRequest(`${hasty.baseUrl}/v1/audio/speech`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${hasty.key}` },
      });
      request.on("response", (response) => {
        response.pause();
        response.on("error", () => undefined);
        resolve({ generationId: String(response.headers["x-generation-id"]), leave: () => response.destroy() });
      });
      request.on("error", reject);
      request.end(JSON.stringify(HELLO));
    });

    const impatient = createClient(hasty.baseUrl, hasty.key);
    const row = await waitForUsage(impatient, ({ request_id }) => request_id === generationId);
    expect(row).toMatchObject({ cost_usd: 0.00009, status: "cancelled", usage_source: "partial" });
    // Else the gateway would wait for its reader when it stops.
    leave();
  });
});

describe("POST /v1/audio/speech with stream_format", () => {
  const sse = { stream_format: "sse" };

  interface SpeechEvent {
    readonly type?: string;
    readonly audio?: string;
    readonly usage?: Record<string, number>;
    readonly error?: { readonly code: string };
  }

  function eventsOf({ text }: Answer): SpeechEvent[] {
    return [...text.matchAll(/^data: (.*)$/gm)].map(([, data = ""]) => JSON.parse(data) as SpeechEvent);
  }

  const soundOf = (events: readonly SpeechEvent[]) => events.map(({ audio = "" }) => Buffer.from(audio, "base64"));

  it("sse answers OpenAI's events, and has charged before the last of them", async () => {
    app.upstream.replyNext(streamed([bytes("abc"), bytes("def")]));
    const response = await fetch(`${app.baseUrl}/v1/audio/speech`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${app.key}` },
      body: JSON.stringify({ ...HELLO, ...sse }),
    });
    const text = await response.text();
    const { usage } = (await client.get("/account/usage?limit=1")).json<UsageJson>();

    expect(lastAsked()).toEqual({ model: "upstream-speech", input: "Hello.", voice: "alloy", response_format: "mp3" });
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "content-type": "text/event-stream; charset=utf-8",
      "x-model-used": "acme/speech",
      "x-cost": "0.00009",
      "x-usage-characters": "6",
    });
    const events = [...text.matchAll(/^data: (.*)$/gm)].map(([, data = ""]) => JSON.parse(data) as SpeechEvent);
    expect(Buffer.concat(soundOf(events)).toString()).toBe("abcdef");
    expect(events.slice(0, -1).every(({ type }) => type === "speech.audio.delta")).toBe(true);
    expect(events.at(-1)).toEqual({
      type: "speech.audio.done",
      usage: { input_tokens: 2, output_tokens: 0, total_tokens: 2, cost: 0.00009 },
    });
    expect(usage[0]).toMatchObject({ request_id: response.headers.get("x-generation-id"), cost_usd: 0.00009, status: "ok" });
  });

  it("sse has whole samples in each event of pcm", async () => {
    app.upstream.replyNext(streamed([bytes("abc"), bytes("de"), bytes("f")]));

    const sounds = soundOf(eventsOf(await post({ ...sse, response_format: "pcm" })).slice(0, -1));

    expect(Buffer.concat(sounds).toString()).toBe("abcdef");
    expect(sounds.every(({ length }) => length % 2 === 0)).toBe(true);
  });

  it("sse reports a failure, before its beginning with a status and after that in an event, and charges nothing", async () => {
    const before = await rowsCount();
    app.upstream.replyNext(errorReply(400, "No such voice."), streamed([bytes("abc")], "cut"));

    expectEnvelope(await post(sse), 400, "BAD_REQUEST");
    const answer = await post(sse);

    expect(answer.status).toBe(200);
    expect(answer.text).not.toContain("event:");
    expect(eventsOf(answer)).toMatchObject([{ type: "speech.audio.delta" }, { error: { code: "UPSTREAM_ERROR" } }]);
    expect(await rowsCount()).toBe(before);
  });

  it("sse is replayed event by event for the same Idempotency-Key", async () => {
    app.upstream.replyNext(spoken());
    const headers = { "Idempotency-Key": "the same events" };

    const first = await client.post("/v1/audio/speech", { ...HELLO, ...sse }, { headers });
    const second = await client.post("/v1/audio/speech", { ...HELLO, ...sse }, { headers });

    expect(second.headers.get("x-idempotent-replay")).toBe("true");
    expect(second.text).toBe(first.text);
    expect(eventsOf(second).at(-1)).toMatchObject({ type: "speech.audio.done" });
  });

  it("audio answers the sound", async () => {
    app.upstream.replyNext(spoken());

    const answer = await post({ stream_format: "audio" });

    expect([answer.headers.get("content-type"), answer.text]).toEqual(["audio/mpeg", SPOKEN.toString()]);
    expect(lastAsked()).not.toHaveProperty("stream_format");
  });
});

describe("GET /audio/{text} with a speech model", () => {
  it("answers MP3 once, and the same audio the next time for free", async () => {
    app.upstream.replyNext(spoken());

    const first = await client.get("/audio/Good%20morning%2Fevening?voice=rachel");
    const second = await client.get("/audio/Good%20morning%2Fevening?voice=rachel");

    expect(first.status).toBe(200);
    expect(Object.fromEntries(first.headers)).toMatchObject({ "content-type": "audio/mpeg", "x-cache": "MISS", "x-cost": "0.0003" });
    expect(lastAsked()).toMatchObject({ input: "Good morning/evening", voice: "rachel", response_format: "mp3" });
    expect(Object.fromEntries(second.headers)).toMatchObject({ "content-type": "audio/mpeg", "x-cache": "HIT", "x-cost": "0" });
    expect(second.text).toBe(first.text);
  });

  it("generates again for another voice, format or seed, and with no-cache", async () => {
    app.upstream.replyAlways(spoken());
    const before = app.upstream.requests.length;

    for (const query of ["", "?voice=onyx", "?response_format=wav", "?seed=7", "?speed=2", "?no-cache=true", "?seed=-1", "?seed=-1"]) {
      expect((await client.get(`/audio/Again${query}`)).headers.get("x-cache")).toBe("MISS");
    }

    expect(app.upstream.requests.length).toBe(before + 8);
  });

  it("warns of parameters without an effect", async () => {
    app.upstream.replyNext(spoken());

    expect((await client.get("/audio/Tell?duration=5")).headers.get("x-warnings")).toContain("duration");
  });

  const refusals: readonly (readonly [path: string, param: string])[] = [
    ["/audio/Hi?voice=hal", "voice"],
    ["/audio/Hi?model=acme/chat", "model"],
    ["/audio/Hi?model=acme/nothing", "model"],
    ["/audio/Hi?speed=5", "speed"],
    ["/audio/Hi?speed=fast", "speed"],
    ["/audio/Hi?response_format=midi", "response_format"],
    ["/audio/Hi?seed=1.5", "seed"],
    ["/audio/Hi?no-cache=yes", "no-cache"],
    ["/audio/Hi?sped=1", "sped"],
    ["/audio/%20", "text"],
    [`/audio/${"x".repeat(10_001)}`, "text"],
  ];
  it.each(refusals)("refuses %s", async (path, param) => {
    await expectRefused(client.get(path), param);
  });

  it("generates nothing for HEAD, and checks its parameters", async () => {
    const before = app.upstream.requests.length;

    expect((await client.request("HEAD", "/audio/Hi")).status).toBe(200);
    expect((await client.request("HEAD", "/audio/Hi?voice=hal")).status).toBe(400);

    expect(app.upstream.requests.length).toBe(before);
  });

  it("charges nothing when the upstream breaks off", async () => {
    const before = await rowsCount();
    app.upstream.replyNext(streamed([bytes("abc")], "cut"));

    expectEnvelope(await client.get("/audio/Broken"), 502, "UPSTREAM_ERROR");

    expect(await rowsCount()).toBe(before);
  });
});
