/** The charges of a realtime session, and the requests that it refuses because their cost would be unpaid. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { CALLER_EVENTS } from "../../src/services/generation/realtime/rules.js";
import type { RealtimeTimes } from "../../src/services/generation/realtime/run.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type FakeRealtime, type FakeRealtimeSession, startFakeRealtime } from "../support/fake-realtime.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { callerEventNames, usageReportingEvents } from "../support/realtime-types.js";
import { type Client, createClient, createKey, expectEnvelope, waitForUsage } from "./client.js";
import { type ConnectOptions, connectRealtime, type RealtimeClient, refuseRealtime } from "./realtime-client.js";

const MODEL = "?model=live/voice";
/** 10 x 1 + 5 x 2 millionths. */
const USAGE = { input_tokens: 10, output_tokens: 5, total_tokens: 15 };
const TRANSCRIBED = "conversation.item.input_audio_transcription.completed";
const SECONDS = { type: "duration", seconds: 30 };

/** Of the sessions that are opened from now on. */
const times: { -readonly [Name in keyof RealtimeTimes]?: RealtimeTimes[Name] } = {};

let app: TestApp;
let upstream: FakeRealtime;
let client: Client;

beforeAll(async () => {
  upstream = await startFakeRealtime();
  const voice = { modality: "realtime", upstream: "live", title: "Voice" };
  const ears = { modality: "transcription", upstream: "live", title: "Ears" };
  const prices = { promptTextPrice: "0.000001", promptAudioPrice: "0.00001", completionTextPrice: "0.000002" };
  app = await createTestApp({
    config: { realtimeTimes: times },
    upstreams: [
      { id: "live", wireFormat: "openai", baseUrl: upstream.baseUrl, apiKey: "live-secret-key" },
      { id: "dead", wireFormat: "openai", baseUrl: "http://127.0.0.1:1/v1", apiKey: "none" },
    ],
    models: [
      { ...voice, id: "live/voice", aliases: ["voice"], upstreamModel: "gpt-live", prices },
      { ...voice, id: "live/dear", upstreamModel: "gpt-dear", prices: { completionTextPrice: "0.01" } },
      { ...ears, id: "live/ears", aliases: ["ears"], upstreamModel: "whisper-live", prices: { promptAudioPrice: "0.0001" } },
      { ...ears, id: "live/other-ears", upstreamModel: "whisper-other", prices: { promptAudioPrice: "0.01" } },
      { ...ears, id: "live/safe-ears", upstreamModel: "whisper-safe", prices: {}, requiredSafetyFeatures: ["privacy"] },
      { ...ears, id: "dead/ears", upstream: "dead", upstreamModel: "whisper-dead", prices: {} },
    ],
  });
  client = createClient(app.baseUrl, app.key);
});
afterEach(() => {
  upstream.answersCancels = true;
});
afterAll(async () => {
  const { pool } = app.database;
  expect(await findBrokenInvariants(pool, { isIdle: true })).toEqual({});
  await app.close();
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

/** The usage record of a transcription in a session. */
function transcriptionOf(id: string): Promise<Record<string, unknown>> {
  return waitForUsage(client, (row) => row.parent_request_id === id);
}

/** The general form, and the beta's. */
const FORMS = [
  (transcription: unknown) => ({ type: "realtime", audio: { input: { transcription } } }),
  (transcription: unknown) => ({ input_audio_transcription: transcription }),
] as const;

/** The caller sets transcription up, and the upstream says that it is on. */
async function transcribe({ caller, far }: Session, model: string, form: (transcription: unknown) => object = FORMS[0]): Promise<unknown> {
  caller.send({ type: "session.update", session: form({ model, language: "en" }) });
  const asked = await far.next("session.update");
  far.send({ type: "session.updated", session: asked.session });
  return [asked.session, (await caller.next("session.updated")).session];
}

/** Audio that the upstream has received. */
async function speak({ caller, far }: Session, seconds: number): Promise<void> {
  for (let sent = 0; sent < seconds; sent += 10) {
    appendSeconds(caller, Math.min(10, seconds - sent));
    await far.next("input_audio_buffer.append");
  }
}

function appendSeconds(caller: RealtimeClient, seconds: number): void {
  caller.send({ type: "input_audio_buffer.append", audio: Buffer.alloc(48_000 * seconds).toString("base64") });
}

describe("an upstream's event with a usage report", () => {
  it("is charged under every name: all of OpenAI's types, and an unknown one", async () => {
    const events = usageReportingEvents();
    expect(events.map(({ type }) => type)).toEqual(expect.arrayContaining(["response.done", TRANSCRIBED]));
    const { caller, far, id } = await open();

    const all = [...events, { type: "future.thing.done", path: [] }, { type: "future.thing.changed", path: ["thing"] }];
    for (const [index, { type, path }] of all.entries()) {
      const content = { id: `${type}_${index}`, usage: USAGE };
      const told = path.reduceRight<object>((inner, name) => ({ [name]: inner }), content);
      far.send({ ...told, type, event_id: `event_${index}` });
      await caller.next(type);
    }
    far.socket.close(1000);

    const row = await usageOf(id);
    expect(row).toMatchObject({ input_text_tokens: 10 * all.length, output_text_tokens: 5 * all.length });
    expect(row.cost_usd).toBeCloseTo(all.length * 2e-5, 12);
  });

  it("is charged once, up to a plausible amount", async () => {
    const { caller, far, id } = await open();
    const report = (usage: unknown, eventId: string) => ({ type: "future.thing.done", event_id: eventId, usage });
    for (const amount of [-1, 1.5, "7", 1e300, null]) far.send(report({ input_tokens: amount, output_tokens: amount }, `event_${amount}`));
    for (const seconds of [-1, "7", 1e300, null]) far.send(report({ type: "duration", seconds }, `event_s${seconds}`));
    for (let index = 0; index < 3; index += 1) {
      far.send(report(USAGE, "event_same"));
      far.sendDone(USAGE, "resp_same");
    }
    // As long as 300 tokens of audio.
    far.send(report(SECONDS, "event_seconds"));
    far.socket.close(1000);
    await caller.closed;

    expect(await usageOf(id)).toMatchObject({ input_text_tokens: 20, output_text_tokens: 10, input_audio_tokens: 300, status: "ok" });
  });
});

describe("transcription in a session", () => {
  it.each([
    { form: FORMS[0], name: "general" },
    { form: FORMS[1], name: "beta" },
  ])("is charged at the price of the model that the caller names for it, in the $name form", async ({ form }) => {
    const session = await open();
    const { caller, far, id } = session;
    const [asked, told] = (await transcribe(session, "ears", form)) as [object, object];
    await speak(session, SECONDS.seconds);
    for (const usage of [SECONDS, { type: "tokens", input_tokens: 100, output_tokens: 3, input_token_details: { audio_tokens: 90 } }]) {
      const event = { type: TRANSCRIBED, event_id: `event_${usage.type}`, item_id: "item_1", content_index: 0, transcript: "Hi", usage };
      // One that comes twice counts once.
      far.send(event);
      far.send(event);
      await caller.next(TRANSCRIBED);
    }
    far.sendDone(USAGE);
    await caller.next("response.done");
    caller.socket.close();

    expect(JSON.stringify(asked)).toContain('"model":"whisper-live"');
    expect(JSON.stringify(told)).toContain('"model":"live/ears"');
    expect(await usageOf(id)).toMatchObject({ type: "generate.realtime", cost_usd: 2e-5, status: "ok" });
    // 30 seconds, and 90 tokens of 100 ms.
    expect(await transcriptionOf(id)).toMatchObject({ type: "generate.transcription", model: "live/ears", cost_usd: 0.0039, status: "ok" });
  });

  it("is charged by its measured length without a plausible report, and is free when it fails", async () => {
    const session = await open();
    const { caller, far, id } = session;
    await transcribe(session, "live/ears");
    for (const item_id of ["item_1", "item_2", "item_3"]) {
      appendSeconds(caller, 2);
      caller.send({ type: "input_audio_buffer.commit" });
      await far.next("input_audio_buffer.commit");
      far.send({ type: "input_audio_buffer.committed", item_id });
    }
    far.send({ type: TRANSCRIBED, item_id: "item_1", transcript: "Hi", usage: { type: "duration", seconds: -1 } });
    far.send({ type: "conversation.item.input_audio_transcription.failed", item_id: "item_2", error: {} });
    await caller.next("conversation.item.input_audio_transcription.failed");
    far.socket.close(1000);

    expect(await transcriptionOf(id)).toMatchObject({ cost_usd: 0.0004, usage_source: "partial", status: "cancelled" });
  });

  it("is charged by its measured length when the upstream sends the transcript alone", async () => {
    const session = await open();
    const { caller, far, id } = session;
    caller.send({ type: "session.update", session: FORMS[0]({ model: "live/ears" }) });
    appendSeconds(caller, 2);
    caller.send({ type: "input_audio_buffer.commit" });
    await far.next("input_audio_buffer.commit");
    far.send({ type: "input_audio_buffer.committed", item_id: "item_1" });
    far.send({ type: TRANSCRIBED, item_id: "item_1", transcript: "Hi" });
    await caller.next(TRANSCRIBED);
    caller.socket.close();

    expect(await transcriptionOf(id)).toMatchObject({ cost_usd: 0.0002, usage_source: "estimated", status: "ok" });
  });

  it("is still read when the caller has left, until it is reported", async () => {
    const session = await open();
    const { caller, far, id } = session;
    await transcribe(session, "live/ears");
    appendSeconds(caller, 1);
    caller.send({ type: "input_audio_buffer.commit" });
    await far.next("input_audio_buffer.commit");
    upstream.answersCancels = false;
    caller.socket.terminate();
    const { event_id } = await far.next("response.cancel");
    far.send({ type: "input_audio_buffer.committed", item_id: "item_1" });
    far.send({ type: "error", error: { event_id } });
    far.send({ type: TRANSCRIBED, event_id: "e", item_id: "item_1", transcript: "Hi", usage: { ...SECONDS, seconds: 2 } });

    await far.closed;
    expect(await transcriptionOf(id)).toMatchObject({ cost_usd: 0.0002, usage_source: "provider" });
  });

  it("is not charged to a session without any", async () => {
    const session = await open();
    await transcribe(session, "live/ears");
    session.caller.socket.close();

    expect(await usageOf(session.id)).toMatchObject({ cost_usd: 0, status: "ok" });
    const { usage } = (await client.get("/account/usage")).json<{ usage: Record<string, unknown>[] }>();
    expect(usage.some((row) => row.parent_request_id === session.id)).toBe(false);
  });
});

describe("a session without a price", () => {
  it("is refused before the upgrade, where the address requests it", async () => {
    const asked = upstream.requests.length;
    for (const [name, value] of Object.entries({ intent: "transcription", call_id: "rtc_1", deployment: "gpt-other" })) {
      const refused = await refuseRealtime(app, `${MODEL}&${name}=${value}`);
      expectEnvelope(refused, 400, "BAD_REQUEST");
      expect(refused.json()).toMatchObject({ error: { param: name } });
    }
    expect(upstream.requests.length).toBe(asked);
  });

  it.each([
    { type: "session.created", session: { type: "transcription" } },
    { type: "session.updated", session: { type: "translation" } },
    { type: "transcription_session.updated", session: {} },
  ])("ends the session that an upstream makes one of: $type, $session.type", async (event) => {
    const { caller, far, id } = await open();
    far.send(event);

    expect(await caller.next("error")).toMatchObject({ error: { code: "UPSTREAM_ERROR" } });
    expect((await caller.closed).code).toBe(1011);
    expect(caller.received.some(({ type }) => type === event.type)).toBe(false);
    await far.closed;
    const { usage } = (await client.get("/account/usage")).json<{ usage: Record<string, unknown>[] }>();
    expect(usage.some((row) => row.request_id === id)).toBe(false);
  });

  it("is refused with an error event that names the field and the event, and the session continues", async () => {
    const { caller, far } = await open();
    const mcp = [
      { type: "function", name: "f" },
      { type: "mcp", server_url: "https://example.com" },
    ];
    const refused: [event: object, param: string][] = [
      ...[{ model: "gpt-other" }, { prompt: { id: "pmpt_1" } }, { service_tier: "priority" }, { store: true }].flatMap(
        (fields): [object, string][] => [
          [{ type: "session.update", session: fields }, `session.${Object.keys(fields)[0]}`],
          [{ type: "response.create", response: fields }, `response.${Object.keys(fields)[0]}`],
        ],
      ),
      [{ type: "session.update", session: { type: "transcription" } }, "session.type"],
      [{ type: "session.update", session: { tools: mcp } }, "session.tools.1.type"],
      [{ type: "session.update", session: { tools: { 0: mcp[1] } } }, "session.tools"],
      [{ type: "response.create", response: { tools: [{ type: "web_search" }] } }, "response.tools.0.type"],
      [{ type: "response.create", response: FORMS[0]({ model: "live/ears" }) }, "response.audio.input.transcription"],
      [{ type: "transcription_session.update", session: {} }, "type"],
      [{ type: "future.thing.start" }, "type"],
    ];

    for (const [index, [event, param]] of refused.entries()) {
      const error = { code: "BAD_REQUEST", param, event_id: `mine_${index}` };
      caller.send({ ...event, event_id: error.event_id });
      expect(await caller.next("error"), JSON.stringify(event)).toMatchObject({ error });
    }
    caller.socket.send("[1]");
    await caller.next("error");
    caller.send({ type: "session.update", session: { model: "voice", instructions: "Go on.", tools: [mcp[0]] } });

    // A model that it has anyway is not told to the upstream again.
    expect((await far.next("session.update")).session).toEqual({ instructions: "Go on.", tools: [mcp[0]] });
    expect(far.received).toHaveLength(1);
    caller.socket.close();
  });

  it("leaves out a transcription that it refuses, with an error event that names it, and applies the rest of the update", async () => {
    const { key } = await createKey(app, { allowedModels: ["live/voice", "dead/ears", "live/safe-ears"] });
    const { caller, far, id } = await open(MODEL, { key });
    const [general, beta] = ["session.audio.input.transcription", "session.input_audio_transcription"];
    const refused: [session: Record<string, unknown>, param: string | null, code?: string][] = [
      [FORMS[0]({}), `${general}.model`],
      [FORMS[0]("whisper-live"), general],
      [FORMS[0]({ model: 7 }), `${general}.model`],
      [FORMS[0]({ model: "gpt-4o-mini-transcribe" }), `${general}.model`],
      [FORMS[0]({ model: "acme/chat" }), `${general}.model`],
      [FORMS[0]({ model: "dead/ears" }), `${general}.model`],
      [FORMS[0]({ model: "live/safe-ears" }), `${general}.model`],
      [FORMS[1]({ model: "whisper-live" }), `${beta}.model`],
      [FORMS[0]({ model: "live/ears" }), null, "FORBIDDEN"],
    ];
    for (const [index, [session, param, code = "BAD_REQUEST"]] of refused.entries()) {
      const error = { code, param, event_id: `mine_${index}` };
      caller.send({ type: "session.update", event_id: error.event_id, session: { instructions: "Be kind.", ...session } });

      const sent = await far.next("session.update");
      expect(await caller.next("error"), JSON.stringify(session)).toMatchObject({ error });
      const rest = "audio" in session ? { type: "realtime", audio: { input: {} } } : {};
      expect(sent).toEqual({ type: "session.update", event_id: error.event_id, session: { instructions: "Be kind.", ...rest } });
    }
    caller.socket.close();

    await far.closed;
    const { usage } = (await client.get("/account/usage")).json<{ usage: Record<string, unknown>[] }>();
    expect(usage.some((row) => row.parent_request_id === id)).toBe(false);
  });

  it("keeps the model that transcribes when another one is refused", async () => {
    const session = await open();
    const { caller, far, id } = session;
    await transcribe(session, "live/ears");
    caller.send({ type: "session.update", session: { instructions: "Be kind.", ...FORMS[0]({ model: "gpt-4o-mini-transcribe" }) } });
    await caller.next("error");
    expect((await far.next("session.update")).session).toEqual({ instructions: "Be kind.", type: "realtime", audio: { input: {} } });
    far.send({ type: TRANSCRIBED, event_id: "e1", item_id: "i1", transcript: "Hm.", usage: { type: "duration", seconds: 1 } });
    await caller.next(TRANSCRIBED);
    caller.socket.close();

    expect(await transcriptionOf(id)).toMatchObject({ model: "live/ears" });
  });

  it.each([["auto"], [{ workflow_name: "Orders", group_id: "g", metadata: { a: "b" } }], [null]])(
    "sends no tracing to the upstream: %j",
    async (tracing) => {
      const { caller, far } = await open();
      caller.send({ type: "session.update", session: { type: "realtime", tracing, instructions: "Be kind." } });

      expect((await far.next("session.update")).session).toEqual({ type: "realtime", instructions: "Be kind." });
      expect(caller.received).toEqual([]);
      caller.socket.close();
    },
  );

  it("allows a second model that transcribes, and transcription can be turned off and on again", async () => {
    const session = await open();
    const { caller, far } = session;
    await transcribe(session, "live/ears");
    caller.send({ type: "session.update", session: FORMS[0]({ model: "live/other-ears" }) });
    expect(await caller.next("error")).toMatchObject({ error: { param: "session.audio.input.transcription.model" } });
    expect((await far.next("session.update")).session).toEqual({ type: "realtime", audio: { input: {} } });
    for (const transcription of [null, { language: "de" }]) {
      caller.send({ type: "session.update", session: FORMS[0](transcription) });
      const expected = transcription && { language: "de", model: "whisper-live" };
      expect((await far.next("session.update")).session).toEqual(FORMS[0](expected));
    }
    caller.socket.close();
  });

  it("excludes OpenAI's own events of callers in a conversation", () => {
    expect(callerEventNames().length).toBeGreaterThan(10);
    const known = callerEventNames().filter((name) => !/^(?:transcription_)?session\./.test(name) || name === "session.update");

    expect(known.filter((name) => !CALLER_EVENTS.has(name))).toEqual([]);
  });
});

describe("a caller who leaves", () => {
  it("has the answer under way cancelled, and is charged its upstream's report of it", async () => {
    upstream.answersCancels = false;
    const { caller, far, id } = await open();
    caller.send({ type: "response.create", event_id: "mine" });
    await far.next("response.create");
    far.send({ type: "response.created", response: { id: "resp_1" } });
    far.send({ type: "response.output_text.delta", response_id: "resp_1", delta: "Hello" });
    await caller.next("response.output_text.delta");
    caller.socket.terminate();

    expect(await far.next("response.cancel")).toMatchObject({ response_id: "resp_1" });
    far.sendDone(USAGE, "resp_1");
    await far.closed;
    expect(await usageOf(id)).toMatchObject({ cost_usd: 2e-5, usage_source: "provider", status: "cancelled" });
  });

  it("before the answer has begun is charged its upstream's report of it", async () => {
    upstream.answersCancels = false;
    const { caller, far, id } = await open();
    caller.send({ type: "response.create" });
    await far.next("response.create");
    caller.socket.terminate();
    const { event_id } = await far.next("response.cancel");
    far.send({ type: "response.created", response: { id: "resp_1" } });
    far.sendDone(USAGE, "resp_1");
    far.send({ type: "error", error: { event_id } });
    await far.closed;

    expect(await usageOf(id)).toMatchObject({ cost_usd: 2e-5, status: "cancelled" });
  });

  it("is charged for an answer that their voice began and that they did not read", async () => {
    upstream.answersCancels = false;
    const { caller, far, id } = await open();
    appendSeconds(caller, 1);
    await far.next("input_audio_buffer.append");
    caller.socket.terminate();
    const { event_id } = await far.next("response.cancel");
    far.send({ type: "input_audio_buffer.committed", item_id: "item_1" });
    far.send({ type: "response.created", response: { id: "resp_1" } });
    far.sendDone(USAGE, "resp_1");
    far.send({ type: "error", error: { event_id } });
    await far.closed;

    expect(await usageOf(id)).toMatchObject({ cost_usd: 2e-5, usage_source: "provider", status: "cancelled" });
  });

  it("is charged the delivered and read part when no report arrives in time", async () => {
    upstream.answersCancels = false;
    times.reportMs = 20;
    const { caller, far, id } = await open().finally(() => delete times.reportMs);
    appendSeconds(caller, 1);
    caller.send({ type: "input_audio_buffer.commit" });
    await far.next("input_audio_buffer.commit");
    far.send({ type: "input_audio_buffer.committed", item_id: "item_1" });
    far.send({ type: "response.created", response: { id: "resp_1" } });
    far.send({ type: "response.output_text.delta", response_id: "resp_1", delta: "Hello there" });
    await caller.next("response.output_text.delta");
    caller.socket.terminate();

    await far.closed;
    const counted = { input_audio_tokens: 10, output_text_tokens: 2, usage_source: "partial", status: "cancelled" };
    expect(await usageOf(id)).toMatchObject(counted);
  });
});

describe("the hold", () => {
  it("covers the input of an answer before its upstream is called", async () => {
    // 0.012 credits are held at first.
    const { key } = await createKey(app, { creditBudget: 0.02 });
    const { caller, far } = await open(MODEL, { key });
    const text = "one two three four five ".repeat(10_000);
    const item = { type: "message", role: "user", content: [{ type: "input_text", text }] };
    caller.send({ type: "conversation.item.create", item });
    caller.send({ type: "response.create" });

    expect(await caller.next("error")).toMatchObject({ error: { code: "KEY_BUDGET_EXHAUSTED" } });
    expect((await caller.closed).code).toBe(1008);
    await far.closed;
    expect(far.received.some(({ type }) => type === "response.create")).toBe(false);
    expect((await client.get("/account/key", { key })).json()).toMatchObject({ creditBudget: 0.02 });
  });

  it("covers the audio that is handed in to be transcribed", async () => {
    // A minute at 0.01 is held beside the session's own.
    const { key } = await createKey(app, { creditBudget: 0.65 });
    const session = await open(MODEL, { key });
    const { caller, far } = session;
    await transcribe(session, "live/other-ears");
    far.send({ type: "session.updated", session: { audio: { input: { format: { type: "audio/pcmu" } } } } });
    await caller.next("session.updated");
    caller.send({ type: "input_audio_buffer.append", audio: Buffer.alloc(8_000 * 70).toString("base64") });
    caller.send({ type: "input_audio_buffer.commit" });

    expect(await caller.next("error")).toMatchObject({ error: { code: "KEY_BUDGET_EXHAUSTED" } });
    await far.closed;
    expect(far.received.some(({ type }) => type === "input_audio_buffer.commit")).toBe(false);
    expect((await client.get("/account/key", { key })).json()).toMatchObject({ creditBudget: 0.65 });
  });

  it("is needed before a transcription is set up", async () => {
    const { key } = await createKey(app, { creditBudget: 0.1 });
    const { caller, far } = await open(MODEL, { key });
    caller.send({ type: "session.update", session: FORMS[0]({ model: "live/other-ears" }) });

    expect(await caller.next("error")).toMatchObject({ error: { code: "KEY_BUDGET_EXHAUSTED" } });
    caller.socket.close();
    await far.closed;
    expect(far.received).toEqual([{ type: "session.update", session: { type: "realtime", audio: { input: {} } } }]);
  });

  it("is not outrun by an answer that comes all at once", async () => {
    const { key } = await createKey(app, { creditBudget: 25 });
    const { caller, far } = await open("?model=live/dear", { key });
    // A credit each.
    for (let index = 0; index < 60; index += 1)
      far.send({ type: "response.output_text.delta", response_id: "r", delta: " word".repeat(100) });

    expect(await caller.next("error")).toMatchObject({ error: { code: "KEY_BUDGET_EXHAUSTED" } });
    await far.closed;
    expect(caller.received.filter(({ type }) => type === "response.output_text.delta").length).toBeLessThanOrEqual(26);
    expect((await client.get("/account/key", { key })).json()).toMatchObject({ creditBudget: 0 });
  });
});

describe("the sandbox", () => {
  it("transcribes its input, at the price of the sandbox's transcription", async () => {
    const caller = await connectRealtime(app, "?model=sandbox/realtime-paid");
    const id = String(caller.headers["x-generation-id"]);
    caller.send({ type: "session.update", session: FORMS[0]({ model: "sandbox/transcription-paid" }) });
    expect(await caller.next("session.created")).toMatchObject({ session: { model: "sandbox/realtime-paid" } });
    const updated = await caller.next("session.updated");
    expect(updated).toMatchObject({ session: { audio: { input: { transcription: { model: "sandbox/transcription-paid" } } } } });
    appendSeconds(caller, 2);
    caller.send({ type: "input_audio_buffer.commit" });

    expect(await caller.next(TRANSCRIBED)).toMatchObject({ usage: { type: "duration", seconds: 2 } });
    caller.socket.close();
    expect(await transcriptionOf(id)).toMatchObject({ model: "sandbox/transcription-paid", cost_usd: 0.0002 });
  });
});
