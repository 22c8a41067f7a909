/** Client secrets: credentials with which a browser opens realtime sessions as the key that made them. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { REALTIME_SECRET_SESSION_BYTES_MAX } from "../../src/limits.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMovableClock } from "../support/clock.js";
import { type FakeRealtime, type FakeRealtimeSession, startFakeRealtime } from "../support/fake-realtime.js";
import { type Answer, type Client, createClient, createKey, expectEnvelope, waitForUsage } from "./client.js";
import { connectRealtime, type RealtimeClient, refuseRealtime } from "./realtime-client.js";

const PATH = "/v1/realtime/client_secrets";

interface Secret {
  readonly value: string;
  readonly expires_at: number;
  readonly session: Record<string, unknown>;
}

const clock = createMovableClock();
let app: TestApp;
let upstream: FakeRealtime;
let client: Client;

beforeAll(async () => {
  upstream = await startFakeRealtime();
  const voice = { modality: "realtime", upstream: "live", title: "Voice" };
  app = await createTestApp({
    clock,
    upstreams: [{ id: "live", wireFormat: "openai", baseUrl: upstream.baseUrl, apiKey: "live-secret-key" }],
    models: [
      { ...voice, id: "live/voice", aliases: ["voice"], upstreamModel: "gpt-live", prices: { completionTextPrice: "0.000002" } },
      { ...voice, id: "live/dear", upstreamModel: "gpt-dear", prices: { completionTextPrice: "0.01" } },
    ],
  });
  client = createClient(app.baseUrl, app.key);
});
afterAll(async () => {
  await app.close();
  await upstream.close();
});

async function make(body: unknown = {}, key = app.key): Promise<Secret> {
  const answer = await client.post(PATH, body, { key });
  expect(answer.status, answer.text).toBe(200);
  return answer.json<Secret>();
}

/** As a browser, which can send the secret in the subprotocol alone. */
const inProtocol = ({ value }: Secret) => ({ key: null, protocols: ["realtime", `openai-insecure-api-key.${value}`] });

async function open(secret: Secret, query = ""): Promise<{ readonly caller: RealtimeClient; readonly far: FakeRealtimeSession }> {
  const [caller, far] = await Promise.all([connectRealtime(app, query, inProtocol(secret)), upstream.nextSession()]);
  return { caller, far };
}

function refuse(secret: Pick<Secret, "value">, query = "?model=live/voice"): Promise<Answer> {
  return refuseRealtime(app, query, inProtocol(secret as Secret));
}

const now = () => Math.floor(clock.now().getTime() / 1000);

describe("a client secret", () => {
  it("is not to be kept by caches", async () => {
    const answer = await client.post(PATH, {});

    expect(answer.headers.get("cache-control")).toBe("no-store");
  });

  it.each([
    ["session.prompt", { model: "voice", prompt: { id: "p" } }],
    ["session.prompt", { prompt: { id: "p" } }],
    ["session.tools.0.type", { tools: [{ type: "mcp", server_label: "s" }] }],
    ["session.tools", { model: "voice", tools: "all" }],
    ["session.service_tier", { model: "voice", service_tier: "priority" }],
  ])("is not made with settings that no session may have: %s", async (param, session) => {
    const answer = await client.post(PATH, { session: { instructions: "Be kind.", ...session } });

    expectEnvelope(answer, 400, "BAD_REQUEST");
    expect(answer.json<{ error: { param: string } }>().error.param).toBe(param);
  });

  it("opens no session without its settings: one whose settings the model refuses is closed", async () => {
    const { caller } = await open(await make({ session: { service_tier: "priority" } }), "?model=live/voice");

    await expect(caller.closed).resolves.toMatchObject({ code: 1008 });
  });

  it("opens sessions that are charged to its key, which begin with its settings and its model", async () => {
    const { key } = await createKey(app, { name: "voices", allowedModels: ["live/voice"] });
    const tools = [{ type: "function", name: "f", parameters: { $schema: "http://json-schema.org/draft-07/schema#", type: "object" } }];
    const secret = await make({ session: { type: "realtime", model: "voice", instructions: "Be kind.", tools } }, key);

    expect(secret).toEqual({
      value: expect.stringMatching(/^ek_[A-Za-z0-9_-]+$/),
      expires_at: now() + 600,
      session: { type: "realtime", object: "realtime.session", model: "live/voice", instructions: "Be kind.", tools },
    });
    expect(Buffer.from(secret.value, "base64url").includes("Be kind.")).toBe(false);
    const { caller, far } = await open(secret);
    expect(await far.next("session.update")).toEqual({
      type: "session.update",
      session: { type: "realtime", instructions: "Be kind.", tools },
    });
    far.sendDone({ input_tokens: 1, output_tokens: 5, total_tokens: 6 });
    await caller.next("response.done");
    caller.socket.close();

    const row = await waitForUsage(client, ({ request_id }) => request_id === caller.headers["x-generation-id"]);
    expect(row).toMatchObject({ model: "live/voice", api_key: "voices", output_text_tokens: 5 });
  });

  it("is taken as a bearer token, for any model of its key unless it names one", async () => {
    const { value } = await make();
    const [caller, far] = await Promise.all([connectRealtime(app, "?model=live/dear", { key: value }), upstream.nextSession()]);
    caller.socket.close();
    await far.closed;
    expect(far.received).toEqual([]);

    const bound = await make({ session: { model: "live/voice" } });
    expectEnvelope(await refuse(bound, "?model=live/dear"), 400, "BAD_REQUEST");
    const again = await open(bound, "?model=voice");
    again.caller.socket.close();
  });

  it("has no more rights than its key: models, budget", async () => {
    const narrow = await createKey(app, { allowedModels: ["live/voice"] });
    expectEnvelope(await client.post(PATH, { session: { model: "live/dear" } }, { key: narrow.key }), 403, "FORBIDDEN");
    expectEnvelope(await refuse(await make({}, narrow.key), "?model=live/dear"), 403, "FORBIDDEN");
    const poor = await createKey(app, { creditBudget: 0 });
    expectEnvelope(await refuse(await make({}, poor.key)), 402, "KEY_BUDGET_EXHAUSTED");
  });

  it("opens nothing else", async () => {
    const { value: key } = await make();

    for (const answer of [
      await client.post(PATH, {}, { key }),
      await client.get("/v1/models", { key }),
      await client.post("/v1/chat/completions", { messages: [{ role: "user", content: "Hi" }] }, { key }),
      await client.get("/account/key", { key }),
    ]) {
      expectEnvelope(answer, 401, "UNAUTHORIZED");
      expect(answer.text).toContain("client secret");
    }
  });

  it("expires as stated, and its open sessions go on", async () => {
    const secret = await make({ expires_after: { anchor: "created_at", seconds: 10 } });
    expect(secret.expires_at).toBe(now() + 10);
    const { caller, far } = await open(secret, "?model=live/voice");
    clock.advance(10);

    expectEnvelope(await refuse(secret), 401, "UNAUTHORIZED");
    far.send({ type: "session.updated", session: {} });
    await caller.next("session.updated");
    caller.socket.close();
  });

  it("expires no later than its key", async () => {
    const { key } = await createKey(app, { expiresIn: 60 });

    expect((await make({}, key)).expires_at).toBeLessThanOrEqual(now() + 60);
  });

  it("ends with its key, and so do its sessions", async () => {
    const { key, id } = await createKey(app);
    const secret = await make({}, key);
    const { caller } = await open(secret, "?model=live/voice");

    expect((await client.request("DELETE", `/account/keys/${id}`)).status).toBe(200);

    expect((await caller.closed).code).toBe(1008);
    expectEnvelope(await refuse(secret), 401, "UNAUTHORIZED");
  });

  it("is refused when it was changed or made up", async () => {
    const { value } = await make();
    const middle = Math.floor(value.length / 2);
    const changed = value.slice(0, middle) + (value[middle] === "A" ? "B" : "A") + value.slice(middle + 1);

    for (const bad of [changed, "ek_", "ek_x", value.slice(0, -4)]) expectEnvelope(await refuse({ value: bad }), 401, "UNAUTHORIZED");
  });

  it.each([
    [{ expires_after: { seconds: 9 } }, "expires_after.seconds"],
    [{ expires_after: { seconds: 7_201 } }, "expires_after.seconds"],
    [{ expires_after: { anchor: "now" } }, "expires_after.anchor"],
    [{ session: { type: "transcription" } }, "session.type"],
    [{ session: { model: "none/such" } }, "model"],
    [{ session: { instructions: "x".repeat(REALTIME_SECRET_SESSION_BYTES_MAX) } }, "session"],
  ])("is not made of %j", async (body, param) => {
    expect((await client.post(PATH, body)).json()).toMatchObject({ status: 400, error: { param } });
  });

  it("carries the largest settings in a handshake", async () => {
    const instructions = "x".repeat(REALTIME_SECRET_SESSION_BYTES_MAX - '{"instructions":""}'.length);
    const { caller, far } = await open(await make({ session: { model: "live/voice", instructions } }));

    expect((await far.next("session.update")).session).toEqual({ type: "realtime", instructions });
    caller.socket.close();
  });

  it("is made by a key alone", async () => {
    expectEnvelope(await client.post(PATH, {}, { key: null }), 401, "UNAUTHORIZED");
  });
});
