import { request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import OpenAI from "openai";
import { OpenAIRealtimeWS } from "openai/realtime/ws";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { REALTIME_SESSIONS_PER_KEY_MAX } from "../../src/limits.js";
import type { RealtimeTimes } from "../../src/services/generation/realtime/run.js";
import { booksWith, CREDIT, createPayer } from "../e2e/money.js";
import { execute, ok } from "../graphql/client.js";
import { SuspendAccountDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { runGraphql } from "../support/dashboard.js";
import { type FakeRealtime, type FakeRealtimeSession, startFakeRealtime } from "../support/fake-realtime.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { type Person, signedIn, signUp } from "../support/sign-in.js";
import { type Client, createClient, createKey, expectEnvelope, waitForUsage } from "./client.js";
import { type ConnectOptions, connectRealtime, type RealtimeClient, refuseRealtime } from "./realtime-client.js";

const MODEL = "?model=live/voice";
/** 40 text, 30 audio and 30 cached tokens in (10 of those text, 20 audio), 20 text and 50 audio out. */
const USAGE = {
  total_tokens: 170,
  input_tokens: 100,
  output_tokens: 70,
  input_token_details: {
    text_tokens: 50,
    audio_tokens: 50,
    image_tokens: 0,
    cached_tokens: 30,
    cached_tokens_details: { text_tokens: 10, audio_tokens: 20, image_tokens: 0 },
  },
  output_token_details: { text_tokens: 20, audio_tokens: 50 },
};
/** 40 x 1 + 30 x 0.5 + 30 x 10 + 20 x 2 + 50 x 20 millionths. */
const COST = 0.001395;

/** Of the sessions that are opened from now on. */
const times: { -readonly [Name in keyof RealtimeTimes]?: RealtimeTimes[Name] } = {};

let app: TestApp;
let upstream: FakeRealtime;
let client: Client;

beforeAll(async () => {
  upstream = await startFakeRealtime();
  const voice = { modality: "realtime", upstream: "live", title: "Voice" };
  const prices = {
    promptTextPrice: "0.000001",
    promptCachedPrice: "0.0000005",
    promptAudioPrice: "0.00001",
    completionTextPrice: "0.000002",
    completionAudioPrice: "0.00002",
  };
  app = await createTestApp({
    config: { realtimeTimes: times },
    upstreams: [
      { id: "live", wireFormat: "openai", baseUrl: upstream.baseUrl, apiKey: "live-secret-key" },
      { id: "dead", wireFormat: "openai", baseUrl: "http://127.0.0.1:1/v1", apiKey: "none" },
    ],
    models: [
      { ...voice, id: "live/voice", upstreamModel: "gpt-live", prices },
      { ...voice, id: "live/dear", upstreamModel: "gpt-dear", prices: { completionTextPrice: "0.01" } },
      { ...voice, id: "live/safe", upstreamModel: "gpt-safe", prices, requiredSafetyFeatures: ["privacy"] },
      { ...voice, id: "live/once", upstreamModel: "gpt-once", prices, perUserRpm: 1 },
      { ...voice, id: "dead/voice", upstream: "dead", upstreamModel: "gpt", prices, fallbacks: ["live/voice"] },
      { ...voice, id: "dead/alone", upstream: "dead", upstreamModel: "gpt", prices },
    ],
  });
  client = createClient(app.baseUrl, app.key);
});
afterEach(() => upstream.refuseWith(null));
afterAll(async () => {
  const { pool } = app.database;
  expect(await findBrokenInvariants(pool, { isIdle: true })).toEqual({});
  // A session that is open when the gateway stops is notified, and its upstream too.
  const { caller, far } = await open();
  const stopped = app.close();
  expect((await caller.closed).code).toBe(1001);
  await Promise.all([stopped, far.closed]);
  await upstream.close();
});

interface Session {
  readonly caller: RealtimeClient;
  readonly far: FakeRealtimeSession;
  readonly id: string;
}

async function open(query = MODEL, options: ConnectOptions = {}): Promise<Session> {
  const [caller, far] = await Promise.all([connectRealtime(app, query, options), upstream.nextSession()]);
  return { caller, far, id: String(caller.headers["x-generation-id"]) };
}

function usageOf(id: string): Promise<Record<string, unknown>> {
  return waitForUsage(client, (row) => row.request_id === id);
}

function textDelta(delta: string): Record<string, unknown> {
  return { type: "response.output_text.delta", event_id: "e", response_id: "r", item_id: "i", output_index: 0, content_index: 0, delta };
}

/** Of the row's kinds, those that are not 0. */
function kindsOf(row: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(row).filter(([name, value]) => /^(input|output)_/.test(name) && value !== 0));
}

describe("GET /v1/realtime without an upgrade", () => {
  it("is 426 in the envelope, with the protocol to upgrade to", async () => {
    const answer = await client.get(`/v1/realtime${MODEL}`);

    expectEnvelope(answer, 426, "UPGRADE_REQUIRED");
    expect(answer.headers.get("upgrade")).toBe("websocket");
    expectEnvelope(await client.post("/v1/realtime", {}), 405, "METHOD_NOT_ALLOWED");
  });
});

describe("a session of a signed-in person", () => {
  const asPage = ({ cookie }: Person, origin: string | null = app.baseUrl): ConnectOptions => ({
    key: null,
    headers: { cookie, ...(origin !== null && { origin }) },
  });

  it("is opened by a page of the gateway, charged to the account, and listed without a key", async () => {
    const person = await signUp(app, { credits: 1 });
    const { caller, far, id } = await open(MODEL, asPage(person));
    far.send({ type: "response.done", response: { id: "r", status: "completed", usage: USAGE } });
    await caller.next("response.done");
    caller.socket.close();

    const page = createClient(app.baseUrl, null);
    const own: Client = { ...page, get: (path) => page.get(path, { headers: signedIn(person) }) };
    const row = await waitForUsage(own, (each) => each.request_id === id);
    expect(row).toMatchObject({ type: "generate.realtime", api_key_id: null });
  });

  it.each([["https://elsewhere.example"], [null]])("is 401 to a page of %s, though the browser sends the cookie", async (origin) => {
    const person = await signUp(app, { credits: 1 });

    expectEnvelope(await refuseRealtime(app, MODEL, asPage(person, origin)), 401, "UNAUTHORIZED");
  });

  it("ends with an error event when the person signs out", async () => {
    const person = await signUp(app, { credits: 1 });
    const { caller } = await open(MODEL, asPage(person));
    await runGraphql(app, signedIn(person), "mutation { signOut(input: {}) { ended } }");

    expect(await caller.next("error")).toMatchObject({ error: { code: "UNAUTHORIZED" } });
    await expect(caller.closed).resolves.toMatchObject({ code: 1008 });
  });
});

describe("a session", () => {
  it("passes events both ways as they are, and is charged once, when it closes, for every response of it", async () => {
    const { caller, far, id } = await open();
    const odd = '{"type":"session.update", "session":{"instructions":"h\\u00e9"},"unknown":[1,2.50]}';

    caller.socket.send(odd);
    await far.next("session.update");
    far.send({ type: "session.updated", event_id: "e1", session: { instructions: "hé" } });
    expect(await caller.next("session.updated")).toEqual({ type: "session.updated", event_id: "e1", session: { instructions: "hé" } });
    far.sendDone(USAGE);
    await caller.next("response.done");
    far.sendDone(USAGE);
    await caller.next("response.done");
    expect(
      (await client.get("/account/usage")).json<{ usage: { request_id: string }[] }>().usage.some((row) => row.request_id === id),
    ).toBe(false);
    caller.socket.close(1000);

    expect(await far.closed).toBe(1000);
    const row = await usageOf(id);
    expect(row).toMatchObject({
      type: "generate.realtime",
      model: "live/voice",
      status: "ok",
      usage_source: "provider",
      cost_usd: COST * 2,
    });
    expect(kindsOf(row)).toEqual({
      input_text_tokens: 80,
      input_cached_tokens: 60,
      input_audio_tokens: 60,
      output_text_tokens: 40,
      output_audio_tokens: 100,
    });
    expect(upstream.requests.at(-1)?.url).toBe("/v1/realtime?model=gpt-live");
    expect(upstream.requests.at(-1)?.headers.authorization).toBe("Bearer live-secret-key");
    expect(JSON.stringify(upstream.requests.at(-1)?.headers)).not.toContain(app.key);
  });

  it("is charged when the upstream closes it, before the caller hears of that", async () => {
    const { caller, far, id } = await open();
    far.sendDone(USAGE);
    far.socket.close(1000);

    expect(await caller.closed).toEqual({ code: 1000, reason: "" });
    const { usage } = (await client.get("/account/usage")).json<{ usage: Record<string, unknown>[] }>();
    expect(usage.find((row) => row.request_id === id)).toMatchObject({ cost_usd: COST, status: "ok" });
  });

  it("has the answer under way cancelled when the caller is gone, and counts its delivered part without a report", async () => {
    const { caller, far, id } = await open();
    caller.send({
      type: "conversation.item.create",
      item: { type: "message", role: "user", content: [{ type: "input_text", text: "one two three" }] },
    });
    await far.next("conversation.item.create");
    for (const word of ["Hello", " there", " you"]) far.send(textDelta(word));
    // Half a second.
    far.send({ ...textDelta(Buffer.alloc(24_000).toString("base64")), type: "response.output_audio.delta" });
    await caller.next("response.output_audio.delta");

    caller.socket.terminate();
    await far.closed;

    const row = await usageOf(id);
    expect(row).toMatchObject({ status: "cancelled", usage_source: "partial" });
    expect(kindsOf(row)).toEqual({ input_text_tokens: 3, output_text_tokens: 3, output_audio_tokens: 10 });
  });

  it("counts a response for which no usage that can be believed was reported", async () => {
    const { caller, far, id } = await open();
    far.send(textDelta("Hello there"));
    far.sendDone({ input_tokens: -5, output_tokens: 1.5 }, "r");
    await caller.next("response.done");
    caller.socket.close();

    const row = await usageOf(id);
    expect(row).toMatchObject({ usage_source: "estimated", status: "ok" });
    expect(kindsOf(row)).toEqual({ output_text_tokens: 2 });
  });

  it("is recorded and costs nothing without a request in it", async () => {
    const { caller, far, id } = await open();
    caller.socket.close();
    await far.closed;

    expect(await usageOf(id)).toMatchObject({ cost_usd: 0, status: "ok" });
  });

  it("notes its usage while it runs, at which a killed process is settled", async () => {
    const { pool } = app.database;
    const { caller, far, id } = await open();
    far.sendDone(USAGE);

    const metered = async () =>
      (await pool.query("SELECT metered_nanocredits::text AS metered, record FROM hold WHERE id = $1", [id])).rows[0];
    await expect.poll(metered).toMatchObject({ metered: "1395000" });
    caller.socket.close();
    await far.closed;
    expect(await usageOf(id)).toMatchObject({ cost_usd: COST });
  });

  it("passes the beta form on, and nothing of the caller's address", async () => {
    const { caller, far } = await open(`${MODEL}&safe=false`, { headers: { "OpenAI-Beta": "realtime=v1" } });

    expect(far.request.url).toBe("/v1/realtime?model=gpt-live");
    expect(far.request.headers["openai-beta"]).toBe("realtime=v1");
    caller.socket.close();
  });

  it("sends its upstream the hop count, and goes in no circles", async () => {
    const { caller, far } = await open(MODEL, { headers: { "X-Sluice-Hops": "1" } });
    const asked = upstream.requests.length;
    const circle = await refuseRealtime(app, MODEL, { headers: { "X-Sluice-Hops": "99" } });

    expect(far.request.headers["x-sluice-hops"]).toBe("2");
    expectEnvelope(circle, 400, "BAD_REQUEST");
    expect(upstream.requests).toHaveLength(asked);
    caller.socket.close();
    await usageOf(String(caller.headers["x-generation-id"]));
  });

  it("reports a broken upstream to the caller, and charges its reports so far", async () => {
    const { caller, far, id } = await open();
    far.sendDone(USAGE);
    await caller.next("response.done");
    far.socket.terminate();

    expect(await caller.next("error")).toMatchObject({ type: "error", error: { code: "UPSTREAM_ERROR", type: "api_error" } });
    expect(await caller.closed).toEqual({ code: 1011, reason: "UPSTREAM_ERROR" });
    expect(await usageOf(id)).toMatchObject({ cost_usd: COST, status: "cancelled" });
  });

  it("charges nothing when the upstream breaks before a delivery", async () => {
    const { caller, far, id } = await open();
    far.socket.terminate();

    expect((await caller.closed).code).toBe(1011);
    const { usage } = (await client.get("/account/usage")).json<{ usage: Record<string, unknown>[] }>();
    expect(usage.some((row) => row.request_id === id)).toBe(false);
  });

  it("is ended when its key is revoked", async () => {
    const { key, id: keyId } = await createKey(app);
    const { caller, far, id } = await open(MODEL, { key });
    far.sendDone(USAGE);
    await caller.next("response.done");

    await client.request("DELETE", `/account/keys/${keyId}`);

    expect(await caller.next("error")).toMatchObject({ error: { code: "UNAUTHORIZED" } });
    expect(await caller.closed).toEqual({ code: 1008, reason: "UNAUTHORIZED" });
    await far.closed;
    expect(await usageOf(id)).toMatchObject({ cost_usd: COST });
  });

  it("is ended when its account is suspended", async () => {
    const payer = await createPayer(app, { pack: 10n * CREDIT });
    const { caller, far } = await open(MODEL, { key: payer.key });
    far.sendDone(USAGE);
    await caller.next("response.done");

    const input = { accountId: payer.accountId, reason: "A leaver." };
    ok(await execute(app, SuspendAccountDocument, { input }));

    expect(await caller.next("error")).toMatchObject({ error: { code: "ACCOUNT_SUSPENDED" } });
    expect(await caller.closed).toEqual({ code: 1008, reason: "ACCOUNT_SUSPENDED" });
    await far.closed;
    const { rows } = await booksWith(app, payer, 1);
    expect(rows).toMatchObject([{ costNanocredits: 1_395_000n }]);
  });

  it("is ended when it is silent for too long, and when it lasts too long", async () => {
    // Both begin with the connecting, which must be over by then.
    for (const stated of [
      { idleMs: 1_500, totalMs: 60_000 },
      { idleMs: 60_000, totalMs: 1_500 },
    ]) {
      Object.assign(times, stated);
      const { caller, far } = await open().finally(() => {
        delete times.idleMs;
        delete times.totalMs;
      });
      const talking = setInterval(() => stated.totalMs === 1_500 && far.send({ type: "rate_limits.updated" }), 10);

      const error = await caller.next("error").finally(() => clearInterval(talking));
      expect(error).toMatchObject({ error: { code: "UPSTREAM_TIMEOUT" } });
      expect((await caller.closed).code).toBe(1011);
      await far.closed;
    }
  });

  it("takes texts only", async () => {
    const { caller, far } = await open();
    caller.socket.send(Buffer.from([1, 2, 3]));

    expect((await caller.closed).code).toBe(1003);
    await far.closed;
  });

  it("keeps no more in memory than a slow reader may leave unread, on either side", async () => {
    const { caller, far } = await open();
    const event = { type: "response.output_audio.delta", delta: "A".repeat(1024 * 1024) };
    caller.socket.pause();
    let taken = 0;
    const flood = async (socket: { send(text: string, done: () => void): void }, text: string) => {
      for (let index = 0; index < 60; index += 1) await new Promise<void>((done) => socket.send(text, done)).then(() => (taken += 1));
    };
    const flooding = flood(far.socket, JSON.stringify(event));
    await sleep(300);
    const stalledAt = taken;
    expect(stalledAt).toBeLessThan(40);
    caller.socket.resume();
    await flooding;
    expect(taken).toBe(60);

    far.socket.pause();
    taken = 0;
    const other = flood(caller.socket, JSON.stringify({ type: "input_audio_buffer.append", audio: "A".repeat(1024 * 1024) }));
    await sleep(300);
    expect(taken).toBeLessThan(40);
    far.socket.resume();
    await other;
    caller.socket.close();
    await far.closed;
  });
});

describe("the key", () => {
  it.each([
    { how: "in the address", query: (key: string) => `${MODEL}&key=${key}`, protocols: () => [] as string[] },
    {
      how: "as OpenAI's subprotocol",
      query: () => MODEL,
      protocols: (key: string) => ["realtime", `openai-insecure-api-key.${key}`, "openai-beta.realtime-v1"],
    },
  ])("is taken from a browser $how, a publishable one", async ({ query, protocols }) => {
    const { key } = await createKey(app, { type: "publishable" });
    // What browsers have, and undici gives to Node.
    const url = `${app.baseUrl.replace("http", "ws")}/v1/realtime${query(key)}`;
    const { WebSocket: BrowserWebSocket } = await import("undici");
    const socket = new BrowserWebSocket(url, protocols(key));
    const far = await upstream.nextSession();
    far.sendDone(USAGE);
    const message = await new Promise<string>((resolve) => socket.addEventListener("message", (event) => resolve(String(event.data))));

    expect(JSON.parse(message)).toMatchObject({ type: "response.done" });
    expect(socket.protocol).toBe(protocols(key).length > 0 ? "realtime" : "");
    expect(far.request.url).not.toContain(key);
    expect(far.request.headers["sec-websocket-protocol"]).toBeUndefined();
    socket.close();
    await far.closed;
    expect(JSON.stringify(app.logs)).not.toContain(key);
  });

  it("is needed, and must be good", async () => {
    const none = await refuseRealtime(app, MODEL, { key: null });
    expectEnvelope(none, 401, "UNAUTHORIZED");
    expect(none.headers.get("www-authenticate")).toBe("Bearer");
    expectEnvelope(await refuseRealtime(app, MODEL, { key: "sk_wrong" }), 401, "UNAUTHORIZED");
    expectEnvelope(await refuseRealtime(app, `${MODEL}&key=a&key=b`, { key: null }), 400, "BAD_REQUEST");
  });
});

describe("a refusal before the upgrade and before the upstream is called", () => {
  it("of a model that is unknown, of another modality, or not the key's", async () => {
    const asked = upstream.requests.length;
    const { key } = await createKey(app, { allowedModels: ["acme/chat"] });

    const unknown = await refuseRealtime(app, "?model=live/voise");
    expectEnvelope(unknown, 400, "BAD_REQUEST");
    expect(unknown.json()).toMatchObject({ error: { param: "model", message: expect.stringContaining("live/voice") } });
    expectEnvelope(await refuseRealtime(app, "?model=acme/chat"), 400, "BAD_REQUEST");
    expectEnvelope(await refuseRealtime(app, MODEL, { key }), 403, "FORBIDDEN");
    expectEnvelope(await refuseRealtime(app, `${MODEL}&safe=nonsense`), 400, "BAD_REQUEST");
    expect(upstream.requests.length).toBe(asked);
  });

  it("of a hold that the key's budget does not cover", async () => {
    const { key } = await createKey(app, { creditBudget: 0.001 });
    const asked = upstream.requests.length;

    expectEnvelope(await refuseRealtime(app, MODEL, { key }), 402, "KEY_BUDGET_EXHAUSTED");

    expect(upstream.requests.length).toBe(asked);
  });

  it("of one request more than the model's own limit, with when to come again", async () => {
    const { caller, far } = await open("?model=live/once");
    caller.socket.close();
    await far.closed;
    const refused = await refuseRealtime(app, "?model=live/once");

    expectEnvelope(refused, 429, "RATE_LIMITED");
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  });

  it("of one session more than a key may have at the same time, until one of them is over", async () => {
    const { key } = await createKey(app);
    const query = "?model=sandbox/realtime";
    const sessions = await Promise.all(Array.from({ length: REALTIME_SESSIONS_PER_KEY_MAX }, () => connectRealtime(app, query, { key })));

    const refused = await refuseRealtime(app, query, { key });
    expectEnvelope(refused, 429, "RATE_LIMITED");
    expect(refused.headers.get("retry-after")).toBe("1");
    sessions[0]?.socket.close();
    await sessions[0]?.closed;
    let again: RealtimeClient | null = null;
    while (again === null) again = await connectRealtime(app, query, { key }).catch(() => null);
    for (const { socket } of [...sessions, again]) socket.terminate();
    // None of them is left for the other tests to run into.
    await expect.poll(async () => (await client.get("/account/usage?limit=60")).text.match(/sandbox\/realtime"/g)?.length).toBe(51);
  });

  it("by the upstream, in the gateway's own words and without its secrets", async () => {
    upstream.refuseWith({ status: 401, body: '{"error":{"message":"Bad key live-secret-key"}}' });
    const unpaid = await refuseRealtime(app, MODEL);
    expectEnvelope(unpaid, 502, "UPSTREAM_ERROR");
    expect(JSON.parse(unpaid.text)).toMatchObject({ error: { details: { upstreamStatus: 401 } } });
    upstream.refuseWith({ status: 400, body: '{"error":{"message":"No such voice for live-secret-key"}}' });
    const refused = await refuseRealtime(app, MODEL);
    expectEnvelope(refused, 400, "BAD_REQUEST");
    expect(refused.text).toContain("No such voice");
    expect(refused.text).not.toContain("live-secret-key");
    upstream.refuseWith({ status: 200, body: "hello" });
    expectEnvelope(await refuseRealtime(app, MODEL), 502, "UPSTREAM_ERROR");
    expectEnvelope(await refuseRealtime(app, "?model=dead/alone"), 502, "UPSTREAM_ERROR");
  });

  it("of a path beside it, and an invalid handshake", async () => {
    const url = new URL(app.baseUrl);
    const asked = upstream.requests.length;
    const status = (path: string, upgrade = "websocket") =>
      new Promise<number | undefined>((resolve, reject) => {
        const headers = { Connection: "Upgrade", Upgrade: upgrade, Authorization: `Bearer ${app.key}` };
        request({ host: url.hostname, port: url.port, path, headers }, (response) => resolve(response.resume().statusCode))
          .on("error", reject)
          .end();
      });

    expect(await status("/v1/realtime/more")).toBe(404);
    expect(await status(`/v1/realtime${MODEL}`)).toBe(400);
    expect(await status(`/v1/realtime${MODEL}`, "h2c")).toBe(426);
    expect(upstream.requests.length).toBe(asked);
  });
});

describe("a caller who leaves during the call of the upstream", () => {
  it("has it given up at once, and pays nothing", async () => {
    upstream.refuseWith("hang");
    const asked = upstream.requests.length;
    const url = new URL(app.baseUrl);
    const headers = {
      Connection: "Upgrade",
      Upgrade: "websocket",
      "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
      "Sec-WebSocket-Version": "13",
      Authorization: `Bearer ${app.key}`,
    };
    const leaving = request({ host: url.hostname, port: url.port, path: `/v1/realtime${MODEL}`, headers }).on("error", () => undefined);
    leaving.end();
    while (upstream.requests.length === asked) await sleep(5);
    const socket = upstream.requests.at(-1)?.socket;
    leaving.destroy();

    await expect.poll(() => socket?.destroyed).toBe(true);
    const { pool } = app.database;
    await expect.poll(() => findBrokenInvariants(pool, { isIdle: true })).toEqual({});
  });
});

describe("a fallback", () => {
  it("serves the session when the model's upstream cannot be reached", async () => {
    const { caller, far } = await open("?model=dead/voice");

    expect(caller.headers["x-model-used"]).toBe("live/voice");
    caller.socket.close();
    await far.closed;
  });
});

describe("a budget", () => {
  it("that runs out in the middle ends the session with an error event, and is never overdrawn", async () => {
    const { key } = await createKey(app, { creditBudget: 25 });
    const { caller, far, id } = await open("?model=live/dear", { key });
    // 10 credits are held; each response costs 4.
    const four = { input_tokens: 0, output_tokens: 400, total_tokens: 400, output_token_details: { text_tokens: 400 } };
    for (let index = 0; index < 6; index += 1) {
      far.sendDone(four);
      await caller.next("response.done");
    }
    far.sendDone(four);

    expect(await caller.next("error")).toMatchObject({
      type: "error",
      error: { code: "KEY_BUDGET_EXHAUSTED", type: "insufficient_quota" },
    });
    expect(await caller.closed).toEqual({ code: 1008, reason: "KEY_BUDGET_EXHAUSTED" });
    await far.closed;
    expect(await usageOf(id)).toMatchObject({ cost_usd: 25, output_text_tokens: 2_800, status: "cancelled" });
    expect((await client.get("/account/key", { key })).json()).toMatchObject({ creditBudget: 0 });
  });
});

describe("safety features", () => {
  it("check the caller's texts and refuse audio", async () => {
    const { caller, far } = await open("?model=live/safe");
    const item = { type: "message", role: "user", content: [{ type: "input_text", text: "Mail to jane@example.com" }] };
    caller.send({ type: "conversation.item.create", item });

    const passed = JSON.stringify(await far.next("conversation.item.create"));
    expect(passed).toContain("Mail to");
    expect(passed).not.toContain("jane@example.com");
    caller.send({ type: "input_audio_buffer.append", audio: "AAAA" });
    expect(await caller.next("error")).toMatchObject({ error: { code: "CONTENT_BLOCKED" } });
    expect(far.received.map(({ type }) => type)).toEqual(["conversation.item.create"]);
    caller.socket.close();
    await far.closed;
  });
});

describe("the official client", () => {
  it("holds a conversation with the sandbox, which is billed to the token", async () => {
    const openai = new OpenAI({ apiKey: app.key, baseURL: `${app.baseUrl}/v1` });
    // It always asks for wss: the address is put right before it connects.
    const rt = await connectOfficial(openai, "sandbox/realtime-paid");
    const once = <Event>(type: string) => new Promise<Event>((resolve) => rt.on(type as "event", resolve as (event: unknown) => void));
    const id = new Promise<string>((resolve) => rt.socket.on("upgrade", ({ headers }) => resolve(String(headers["x-generation-id"]))));
    await once("session.created");

    rt.send({ type: "session.update", session: { type: "realtime", output_modalities: ["text"], instructions: "Echo." } });
    await once("session.updated");
    let text = "";
    rt.on("response.output_text.delta", ({ delta }) => {
      text += delta;
    });
    rt.send({
      type: "conversation.item.create",
      item: { type: "message", role: "user", content: [{ type: "input_text", text: "Good morning" }] },
    });
    rt.send({ type: "response.create" });
    const textDone = await once<{ response: { usage: { input_tokens: number; output_tokens: number } } }>("response.done");

    let audioBytes = 0;
    rt.on("response.output_audio.delta", ({ delta }) => {
      audioBytes += Buffer.from(delta, "base64").length;
    });
    rt.send({ type: "input_audio_buffer.append", audio: Buffer.alloc(48_000, 7).toString("base64") });
    rt.send({ type: "input_audio_buffer.commit" });
    rt.send({ type: "response.create", response: { output_modalities: ["audio"] } });
    await once("response.done");
    rt.close();

    expect(text).toBe("You said: Good morning");
    expect(audioBytes).toBe(48_000);
    const first = textDone.response.usage;
    const row = await usageOf(await id);
    expect(row).toMatchObject({ usage_source: "provider", status: "ok", input_audio_tokens: 10, output_audio_tokens: 20 });
    const [textIn, textOut] = [Number(row.input_text_tokens), Number(row.output_text_tokens)];
    expect(textIn).toBeGreaterThan(first.input_tokens);
    // Millionths: 1 for text in, 5 for audio in, 10 for text out, 40 for audio out.
    expect(row.cost_usd).toBeCloseTo((textIn + 10 * 5 + textOut * 10 + 20 * 40) / 1e6, 12);
  });
});

async function connectOfficial(openai: OpenAI, model: string): Promise<OpenAIRealtimeWS> {
  const { createConnection } = await import("node:net");
  const { hostname, port } = new URL(app.baseUrl);
  const options = { createConnection: () => createConnection({ host: hostname, port: Number(port) }) };
  return new OpenAIRealtimeWS({ model, options: options as never }, openai);
}
