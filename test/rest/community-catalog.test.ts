/**
 * Registered models as callers meet them: called, billed, listed and hidden (docs/spec/community-models.md,
 * docs/spec/models.md, docs/spec/credits.md).
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Caller, SessionCaller } from "../../src/context.js";
import { PENDING_CHANGE_MS } from "../../src/services/community-models/limits.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMovableClock } from "../support/clock.js";
import {
  changeModel,
  createMember,
  deleteModel,
  directoryOf,
  healthOf,
  type Member,
  type RegisteredFields,
  registerModel,
} from "../support/community-models.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { chatChunks } from "../support/openai-bodies.js";
import { errorReply, hang, json, type Reply, raw, sse } from "../support/upstream-replies.js";
import { type Answer, type Client, createClient, createKey, expectEnvelope } from "./client.js";

type Entry = Readonly<Record<string, unknown>>;

/** 10 prompt and 4 completion tokens at these are 0.00004 credits. */
const PRICES = { promptTextPrice: 2_000_000n, completionTextPrice: 5_000_000n };

const clock = createMovableClock();
let app: TestApp;
let owner: Member;
let other: Member;
let client: Client;

beforeAll(async () => {
  app = await createTestApp({ config: { upstreamAllowHosts: ["127.0.0.1"] }, clock });
  client = createClient(app.baseUrl, null);
  [owner, other] = await Promise.all([createMember(app, { handle: "owner-of-models", credits: 1 }), createMember(app)]);
});
beforeEach(() => app.upstream.replyAlways(null));
afterAll(async () => {
  const { pool } = app.database;
  expect(await findBrokenInvariants(pool, { isIdle: true })).toEqual({});
  await app.close();
});

function chat(model: string, { key }: Pick<Member, "key">, body: object = {}): Promise<Answer> {
  return client.post("/v1/chat/completions", { model, messages: [{ role: "user", content: "Hello" }], max_tokens: 100, ...body }, { key });
}

async function entryOf(modelId: string, key: string | null, query = ""): Promise<Entry | undefined> {
  return (await client.get(`/models${query}`, { key })).json<Entry[]>().find(({ name }) => name === modelId);
}

async function newestUsage({ key }: Member): Promise<Entry | undefined> {
  return (await client.get("/account/usage?limit=1", { key })).json<{ usage: Entry[] }>().usage[0];
}

const add = (fields: RegisteredFields = {}) => registerModel(app, owner, fields);
const inThreeHours = () => new Date(clock.now().getTime() + PENDING_CHANGE_MS);

describe("a call", () => {
  it("reaches the upstream that its owner named, with its owner's credential and its name there", async () => {
    const { id, modelId } = await add({ visibility: "public", bearerToken: "token-of-the-owner", upstreamModel: "their-model" });
    const asked = app.upstream.requests.length;

    const answer = await chat(modelId, other);

    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-model-used")).toBe(modelId);
    const request = app.upstream.requests[asked];
    expect(request?.headers.authorization).toBe("Bearer token-of-the-owner");
    expect(request?.path).toBe("/v1/chat/completions");
    expect(request?.json).toMatchObject({ model: "their-model" });
    await changeModel(app, owner, id, { upstreamModel: "renamed-there" });
    await chat(modelId, other);
    expect(app.upstream.requests.at(-1)?.json).toMatchObject({ model: "renamed-there" });
  });

  it("costs exactly the owner's prices for every caller, the owner included", async () => {
    const { modelId } = await add({ ...PRICES, visibility: "public" });

    for (const caller of [other, owner]) {
      expect((await chat(modelId, caller)).headers.get("x-cost")).toBe("0.00004");
      expect(await newestUsage(caller)).toMatchObject({ model: modelId, cost_usd: 0.00004, meter_source: "pack", input_text_tokens: 10 });
    }
  });

  it("of a private model is free to its owner, and skips its fallbacks", async () => {
    const poor = await createMember(app, { credits: 0 });
    const { modelId: fallback } = await registerModel(app, poor);
    const { modelId } = await registerModel(app, poor, { ...PRICES, paidOnly: true, fallbacks: [fallback] });

    const answer = await chat(modelId, poor);

    expect([answer.status, answer.headers.get("x-cost")]).toEqual([200, "0"]);
    expect(await newestUsage(poor)).toMatchObject({ model: modelId, cost_usd: 0 });
    app.upstream.replyNext(errorReply(503));
    expectEnvelope(await chat(modelId, poor), 502, "UPSTREAM_ERROR");
  });

  it("is served by the first permitted fallback, at the price of the requested model", async () => {
    const last = await add(PRICES);
    const fallback = await registerModel(app, other, { ...PRICES, visibility: "public", fallbacks: [last.modelId] });
    const dearer = await registerModel(app, other, { ...PRICES, completionTextPrice: 6_000_000n, visibility: "public" });
    const { modelId } = await add({ ...PRICES, visibility: "public", fallbacks: [dearer.modelId, fallback.modelId] });
    app.upstream.replyNext(errorReply(503));

    const answer = await chat(modelId, other);

    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-fallback")).toBe(fallback.modelId);
    expect(answer.headers.get("x-cost")).toBe("0.00004");
    expect(await newestUsage(other)).toMatchObject({ model: modelId });
    // A fallback's own are not followed.
    const asked = app.upstream.requests.length;
    app.upstream.replyNext(errorReply(503), errorReply(503));
    expectEnvelope(await chat(modelId, other), 502, "UPSTREAM_ERROR");
    expect(app.upstream.requests.length).toBe(asked + 2);
    await deleteModel(app, other, fallback.id);
    app.upstream.replyNext(errorReply(503));
    expectEnvelope(await chat(modelId, other), 502, "UPSTREAM_ERROR");
    expect(app.upstream.requests.length).toBe(asked + 3);
  });

  it("of a model with a limit of half a request a minute is admitted once in two minutes, for each account", async () => {
    const { modelId } = await add({ visibility: "public", perUserRpm: 0.5 });

    expect((await chat(modelId, other)).status).toBe(200);
    const refused = await chat(modelId, other);
    expectEnvelope(refused, 429, "RATE_LIMITED");
    expect(refused.headers.get("retry-after")).toBe("120");
    expect((await chat(modelId, owner)).status).toBe(200);
    clock.advance(120);

    expect((await chat(modelId, other)).status).toBe(200);
  });

  it("of a model that takes paid credits alone draws no tier credits", async () => {
    const { modelId } = await add({ ...PRICES, visibility: "public", paidOnly: true });
    const [gifted, paying] = await Promise.all([createMember(app, { bucket: "tier" }), createMember(app, { bucket: "crypto" })]);

    expectEnvelope(await chat(modelId, gifted), 402, "INSUFFICIENT_BALANCE");
    expect((await chat(modelId, paying)).status).toBe(200);
    expect(await newestUsage(paying)).toMatchObject({ meter_source: "crypto", cost_usd: 0.00004 });
  });
});

describe("another account's private model", () => {
  it("is answered like a missing one", async () => {
    const [hidden, known] = [await add({ name: "near-miss-1" }), await add({ name: "near-miss-2", visibility: "public" })];
    const unknown = `community/${owner.handle}/near-miss-0`;
    const waiting = await add({ name: "near-miss-3", pending: { visibility: "public" }, pendingEffectiveAt: inThreeHours() });
    const message = async (id: string, { key }: Pick<Member, "key">) => {
      const refused = await chat(id, { key });
      expectEnvelope(refused, 400, "BAD_REQUEST");
      const { error } = refused.json<{ error: { param: string; message: string } }>();
      expect(error.param).toBe("model");
      return error.message.replace(id, "...");
    };

    for (const { modelId } of [hidden, waiting]) {
      for (const refusal of [await message(unknown, other), await message(modelId, other)]) {
        expect(refusal).toMatch(/^There is no model "\.\.\."\. The closest are: /);
        expect(refusal).toContain(known.modelId);
        for (const secret of [hidden, waiting]) expect(refusal).not.toContain(secret.modelId);
      }
      expectEnvelope(await client.get(`/v1/models/${modelId}`, { key: other.key }), 404, "NOT_FOUND");
      expectEnvelope(await client.get(`/v1/models/${modelId}`), 404, "NOT_FOUND");
      expect(await entryOf(modelId, other.key, "?reliability=all")).toBeUndefined();
      expect((await client.get(`/v1/models/${modelId}`, { key: owner.key })).status).toBe(200);
      expect(await message(unknown, owner)).toContain(modelId);
    }
  });
});

describe("the three hours", () => {
  it("end without anything being written: private, waiting, public", async () => {
    const { modelId } = await add({ ...PRICES, pending: { visibility: "public" }, pendingEffectiveAt: inThreeHours() });
    const pending = {
      effective_at: inThreeHours().toISOString(),
      visibility: "public",
      pricing: expect.objectContaining({ currency: "credits" }),
    };

    expect(await entryOf(modelId, owner.key)).toMatchObject({ pending_change: pending, flags: { paid: false } });
    clock.advance(PENDING_CHANGE_MS / 1000 - 0.001);
    expect((await chat(modelId, owner)).headers.get("x-cost")).toBe("0");
    expectEnvelope(await chat(modelId, other), 400, "BAD_REQUEST");
    expect(await entryOf(modelId, null)).toBeUndefined();
    clock.advance(0.001);

    for (const caller of [other, owner]) expect((await chat(modelId, caller)).headers.get("x-cost")).toBe("0.00004");
    expect(await entryOf(modelId, null)).toMatchObject({ pending_change: null, flags: { paid: true }, owner: owner.handle });
  });

  it("bring another price, which is announced to all callers before", async () => {
    const pending = { paidOnly: true, prices: { completionTextPrice: "10000000" } };
    const { modelId } = await add({ ...PRICES, visibility: "public", pending, pendingEffectiveAt: inThreeHours() });

    const announced = await entryOf(modelId, null);
    expect(announced).toMatchObject({ pricing: { output_text_tokens: "0.000005" } });
    expect(announced?.pending_change).toEqual({
      effective_at: inThreeHours().toISOString(),
      paid_only: true,
      pricing: expect.objectContaining({ input_text_tokens: "0.000002", output_text_tokens: "0.00001" }),
    });
    clock.advance(PENDING_CHANGE_MS / 1000 - 0.001);
    expect((await chat(modelId, other)).headers.get("x-cost")).toBe("0.00004");
    clock.advance(0.001);

    expect((await chat(modelId, other)).headers.get("x-cost")).toBe("0.00006");
    expect(await entryOf(modelId, null)).toMatchObject({ pricing: { output_text_tokens: "0.00001" }, pending_change: null });
  });
});

describe("a model that its owner registers", () => {
  it("is callable at once, by others after three hours, and dearer three hours after it was repriced", async () => {
    const register = async () => {
      const body = {
        ...{ name: "from-the-start", title: "Registered", modality: "text", api: "chat_completions", visibility: "public" },
        ...{ url: `${app.upstream.baseUrl}/chat/completions`, bearerToken: "token", upstreamModel: "theirs" },
        ...{ promptTextPrice: 0.000002, completionTextPrice: 0.000005 },
      };
      return (await client.post("/account/my-models", body, { key: owner.key })).json<{ id: string; modelId: string }>();
    };
    const costs = async (modelId: string, caller: Member) => (await chat(modelId, caller)).headers.get("x-cost");
    const first = await register();
    expect(await costs(first.modelId, owner)).toBe("0");
    clock.advance(PENDING_CHANGE_MS / 1000 - 1);
    expect((await client.request("DELETE", `/account/my-models/${first.id}`, { key: owner.key })).status).toBe(200);
    expectEnvelope(await chat(first.modelId, owner), 400, "BAD_REQUEST");

    // Another one of the same name waits as long.
    const { id, modelId } = await register();
    clock.advance(PENDING_CHANGE_MS / 1000 - 0.001);
    expectEnvelope(await chat(modelId, other), 400, "BAD_REQUEST");
    clock.advance(0.001);
    expect(await costs(modelId, other)).toBe("0.00004");
    const path = `/account/my-models/${id}`;
    const change = (body: object) => client.request("PATCH", path, { key: owner.key, body });
    expect((await change({ completionTextPrice: 0.00001 })).status).toBe(200);
    expect(await costs(modelId, other)).toBe("0.00004");
    clock.advance(PENDING_CHANGE_MS / 1000 - 0.001);
    expect(await costs(modelId, owner)).toBe("0.00004");
    clock.advance(0.001);
    expect([await costs(modelId, other), await costs(modelId, owner)]).toEqual(["0.00006", "0.00006"]);
    expect((await change({ visibility: "private" })).status).toBe(200);

    expectEnvelope(await chat(modelId, other), 400, "BAD_REQUEST");
    expect(await costs(modelId, owner)).toBe("0");
  });
});

describe("the lists", () => {
  it("distinguish registered models from others", async () => {
    const { modelId } = await add({ visibility: "public", perUserRpm: 1.5, title: "Listed" });

    expect(await entryOf(modelId, null)).toMatchObject({
      ...{ aliases: [], publisher: "community", title: "Listed", category: "text", community: true, agent: false },
      ...{ owner: owner.handle, per_user_rpm: 1.5, health: { status: "unknown", success_rate: null, requests: 0 }, pending_change: null },
    });
    const names = async (path: string) => (await client.get(path)).json<Entry[]>().map(({ name }) => String(name));
    expect(await names("/models?community=false")).not.toContain(modelId);
    const registered = await names("/text/models?community=true");
    expect(registered).toContain(modelId);
    expect(registered.every((name) => name.startsWith("community/"))).toBe(true);
    const texts = await names("/text/models");
    expect(texts.slice(-registered.length)).toEqual(registered);
    expect(await names("/image/models")).not.toContain(modelId);
    const { data } = (await client.get("/v1/models")).json<{ data: Entry[] }>();
    expect(data.find(({ id }) => id === modelId)).toMatchObject({ object: "model", owned_by: "community" });
  });

  it("are cut to the key's models", async () => {
    const [{ modelId }, unnamed] = [await add({ visibility: "public" }), await add({ visibility: "public" })];
    const { key } = await createKey(app, { allowedModels: [modelId, "chat"] });

    expect((await client.get("/models", { key })).json<Entry[]>().map(({ name }) => name)).toEqual(["acme/chat", modelId]);
    expect((await chat(modelId, { key })).status).toBe(200);
    expectEnvelope(await chat(unnamed.modelId, { key }), 403, "FORBIDDEN");
    expectEnvelope(await client.get(`/v1/models/${unnamed.modelId}`, { key }), 404, "NOT_FOUND");
  });

  it("are those that an app may request: of private models, the person's own", async () => {
    const [open, hidden] = [await add({ visibility: "public" }), await add()];
    const { authorizations } = app.services;
    const check = (caller: Caller, modelId: string) => {
      const terms = { models: [modelId] };
      const input = { redirectUrl: "https://app.example/back", clientId: null, resource: null, terms, state: null, codeChallenge: null };
      return authorizations.check({ caller } as Parameters<typeof authorizations.check>[0], input);
    };
    const person: SessionCaller = { kind: "session", accountId: owner.accountId, isOperator: false, sessionId: "" };

    await check({ kind: "anonymous" }, open.modelId);
    await check(person, hidden.modelId);
    await expect(check({ kind: "anonymous" }, hidden.modelId)).rejects.toMatchObject({ code: "BAD_REQUEST", param: "models" });
  });

  it("follow the owner's handle", async () => {
    const renamed = await createMember(app);
    const { modelId } = await registerModel(app, renamed, { visibility: "public", name: "mine" });
    const caller: SessionCaller = { kind: "session", accountId: renamed.accountId, isOperator: false, sessionId: "" };
    const handle = `${renamed.handle}-x`;

    await app.services.profiles.update({ caller } as Parameters<typeof app.services.profiles.update>[0], { handle });
    await directoryOf(app).upToDate();

    expectEnvelope(await chat(modelId, other), 400, "BAD_REQUEST");
    expect((await chat(`community/${handle}/mine`, other)).status).toBe(200);
    expect(await entryOf(`community/${handle}/mine`, null)).toMatchObject({ owner: handle });
  });
});

describe("health", () => {
  it("takes failing models off the lists, and keeps them callable", async () => {
    const { id, modelId } = await add({ visibility: "public" });
    const call = async (count: number) => {
      for (let index = 0; index < count; index += 1) await chat(modelId, other);
    };
    await call(8);
    app.upstream.replyNext(errorReply(500), errorReply(429));
    await call(1);
    await healthOf(app).flush();
    await healthOf(app).upToDate();
    expect(await entryOf(modelId, null)).toMatchObject({ health: { status: "unknown", success_rate: 0.8889, requests: 9 } });

    await call(1);
    await healthOf(app).flush();
    await healthOf(app).upToDate();

    const shown = { status: "unreliable", success_rate: 0.8, requests: 10 };
    expect(await entryOf(modelId, null)).toBeUndefined();
    expect(await entryOf(modelId, other.key)).toBeUndefined();
    expect(await entryOf(modelId, owner.key)).toMatchObject({ health: shown });
    expect(await entryOf(modelId, null, "?reliability=all")).toMatchObject({ health: shown });
    expect((await client.get(`/v1/models/${modelId}`)).status).toBe(200);
    expect((await chat(modelId, other)).status).toBe(200);
    expect(healthOf(app).healthOf(id)).toMatchObject({ requests: 10 });
  });

  const embedding = {
    object: "list",
    data: [{ object: "embedding", index: 0, embedding: [1, 2] }],
    usage: { prompt_tokens: 2, total_tokens: 2 },
  };
  const sound = raw("ID3 sound", { headers: { "content-type": "audio/mpeg" } });
  const ask = (model: string) => chat(model, other);
  const stream = (model: string) => chat(model, other, { stream: true });
  const embed = (model: string) => client.post("/v1/embeddings", { model, input: "Hello" }, { key: other.key });
  const speak = (model: string) => client.post("/v1/audio/speech", { model, input: "Hello", voice: "alloy" }, { key: other.key });

  /** Each call with the upstream's answer, and its count: success or failure. */
  const COURSES: readonly [string, (modelId: string) => Promise<Answer>, readonly Reply[], [number, number], RegisteredFields?][] = [
    ["an answer", ask, [], [1, 0]],
    ["a streamed answer", stream, [], [1, 0]],
    ["an upstream's 500", ask, [errorReply(500)], [0, 1]],
    ["an upstream's 401", ask, [errorReply(401)], [0, 1]],
    ["an upstream's 504, streamed", stream, [errorReply(504)], [0, 1]],
    ["an invalid answer", ask, [json("nonsense")], [0, 1]],
    ["no server", ask, [], [0, 1], { url: "http://127.0.0.1:9/v1/chat/completions" }],
    ["a stream that is cut", stream, [sse(chatChunks(["a", "b"]).slice(0, 2), { end: "cut" })], [0, 1]],
    ["a caller's fault", ask, [errorReply(400)], [0, 0]],
    ["an unprocessable request", stream, [errorReply(422)], [0, 0]],
    ["a body that is refused here", (id) => chat(id, other, { temperature: 9 }), [], [0, 0]],
    ["one call too many", (id) => ask(id).then(() => ask(id)), [], [1, 0], { perUserRpm: 1 }],
    ["the owner's own", (id) => chat(id, owner), [errorReply(500)], [0, 0]],
    ["vectors", embed, [json(embedding)], [1, 0], { modality: "embedding" }],
    ["no vectors", embed, [errorReply(500)], [0, 1], { modality: "embedding" }],
    ["speech", speak, [sound], [1, 0], { modality: "speech" }],
    ["no speech", speak, [errorReply(502)], [0, 1], { modality: "speech" }],
  ];

  it.each(COURSES)("counts %s", async (_what, call, replies, [succeeded, failed], fields = {}) => {
    const media = fields.modality ? { url: app.upstream.baseUrl, api: null } : {};
    const { id, modelId } = await add({ visibility: "public", ...media, ...fields });
    app.upstream.replyNext(...replies);

    await call(modelId);
    await healthOf(app).flush();
    await healthOf(app).upToDate();

    const requests = succeeded + failed;
    expect(healthOf(app).healthOf(id)).toMatchObject({ requests, successRate: requests === 0 ? null : succeeded / requests });
  });

  it("counts each candidate for itself", async () => {
    const fallback = await add(PRICES);
    const { id, modelId } = await add({ ...PRICES, visibility: "public", fallbacks: [fallback.modelId] });
    app.upstream.replyNext(errorReply(503));

    expect((await chat(modelId, other, { stream: true })).status).toBe(200);
    await healthOf(app).flush();
    await healthOf(app).upToDate();

    expect(healthOf(app).healthOf(id)).toMatchObject({ successRate: 0, requests: 1 });
    expect(healthOf(app).healthOf(fallback.id)).toMatchObject({ successRate: 1, requests: 1 });
  });

  it("does not count callers who leave", async () => {
    const { id, modelId } = await add({ visibility: "public" });
    const asked = app.upstream.requests.length;
    app.upstream.replyNext(hang());
    const leaving = new AbortController();
    const body = JSON.stringify({ model: modelId, stream: true, messages: [{ role: "user", content: "Hello" }] });
    const headers = { Authorization: `Bearer ${other.key}`, "Content-Type": "application/json" };
    const left = fetch(`${app.baseUrl}/v1/chat/completions`, { method: "POST", body, headers, signal: leaving.signal }).catch(() => null);
    await expect.poll(() => app.upstream.requests.length).toBe(asked + 1);

    leaving.abort();
    await left;
    await app.upstream.requests[asked]?.closedByClient;
    await chat(modelId, other);
    await healthOf(app).flush();
    await healthOf(app).upToDate();

    expect(healthOf(app).healthOf(id)).toMatchObject({ successRate: 1, requests: 1 });
  });
});
