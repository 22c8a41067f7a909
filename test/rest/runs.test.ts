/** Runs: an envelope of credits and time for a series of calls (docs/spec/runs.md). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CREDITS_MAX, JOBS_PER_ACCOUNT_MAX, JOBS_PER_PROCESS_MAX } from "../../src/limits.js";
import { RUN_ASKED_MS_MAX, RUN_TTL_SECONDS_MAX } from "../../src/services/runs/limits.js";
import { CREDIT, createPayer, databaseOf } from "../e2e/money.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { eventually } from "../support/eventually.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { chatChunk, chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { gated, json, sse } from "../support/upstream-replies.js";
import { type Answer, type Client, createClient, createKey, expectEnvelope, type UsageJson } from "./client.js";

type Fields = Readonly<Record<string, unknown>>;
interface CreatedRun {
  readonly id: string;
  readonly key: string;
  readonly expires_at: string;
}

let app: TestApp;
let owner: Client;

beforeAll(async () => {
  app = await createTestApp({
    models: [
      {
        ...{ id: "acme/quarter", modality: "text", upstream: "acme", upstreamModel: "quarter", title: "A quarter of a credit each time" },
        prices: { promptTextPrice: "0", completionTextPrice: "0.25" },
      },
      {
        ...{ id: "acme/long", modality: "text", upstream: "acme", upstreamModel: "long", title: "Bills its prompt" },
        prices: { promptTextPrice: "0.001", completionTextPrice: "0" },
      },
    ],
  });
  app.upstream.replyAlways(json(chatCompletion({ usage: wireUsage(1, 1) })));
  owner = createClient(app.baseUrl, app.key);
});
afterAll(() => app.close());

const as = (key: string) => createClient(app.baseUrl, key);

async function createRun(body: Fields, client = owner): Promise<CreatedRun> {
  const answer = await client.post("/v1/runs", body);
  expect(answer.status, answer.text).toBe(200);
  return answer.json<CreatedRun>();
}

/** Costs a quarter of a credit. */
function spend(key: string, more: Fields = {}): Promise<Answer> {
  const messages = [{ role: "user", content: "Hi" }];
  return as(key).post("/v1/chat/completions", { model: "acme/quarter", max_tokens: 1, messages, ...more });
}

async function shown(id: string, client = owner): Promise<Fields> {
  return (await client.get(`/v1/runs/${id}`)).json();
}

/** `first`: the first bytes of the answer. */
async function openStream(key: string): Promise<{ readonly first: string; rest(): Promise<string> }> {
  const body = JSON.stringify({ model: "acme/quarter", stream: true, max_tokens: 4, messages: [{ role: "user", content: "Hi" }] });
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(`${app.baseUrl}/v1/chat/completions`, { method: "POST", headers, body });
  const chunks = (response.body as ReadableStream<Uint8Array>)[Symbol.asyncIterator]();
  const { value: first } = await chunks.next();
  const rest = async () => {
    const all: Uint8Array[] = [];
    for (let next = await chunks.next(); !next.done; next = await chunks.next()) all.push(next.value);
    return Buffer.concat(all).toString();
  };
  return { first: Buffer.from(first as Uint8Array).toString(), rest };
}

const isAsking = (id: string) => eventually(async () => expect((await shown(id)).asked).toBe(0.25));

describe("a run", () => {
  it("has a key whose calls cost at most its limit in all", async () => {
    const run = await createRun({ max_cost: 1, ttl: 600, label: "Night report" });

    const answers = await Promise.all(Array.from({ length: 12 }, () => spend(run.key)));

    expect(answers.filter(({ status }) => status === 200)).toHaveLength(4);
    for (const refused of answers.filter(({ status }) => status !== 200)) expectEnvelope(refused, 402, "KEY_BUDGET_EXHAUSTED");
    expect(await shown(run.id)).toEqual({
      ...{ id: run.id, label: "Night report", status: "open", parent_id: expect.any(String), on_limit: "refuse", asked: null },
      ...{ max_cost: 1, spent: 1, held: 0, left: 0, created_at: expect.any(String), expires_at: run.expires_at },
    });
    expect(await findBrokenInvariants(databaseOf(app).pool)).toEqual({});
  });

  it("is drawn on by the runs below it, at any depth, and its usage has theirs", async () => {
    const top = await createRun({ max_cost: 1 });
    const middle = await createRun({ max_cost: 0.75, label: "middle" }, as(top.key));
    const bottom = await createRun({ max_cost: 0.5 }, as(middle.key));

    const spent = [await spend(bottom.key), await spend(middle.key), await spend(top.key), await spend(bottom.key), await spend(top.key)];

    expect(spent.map(({ status }) => status)).toEqual([200, 200, 200, 200, 402]);
    expect([await shown(top.id), await shown(middle.id), await shown(bottom.id)]).toMatchObject([
      { spent: 1, left: 0 },
      { spent: 0.75, left: 0, parent_id: top.id },
      { spent: 0.5, left: 0, parent_id: middle.id },
    ]);
    const usageOf = async (id: string) => (await owner.get(`/account/usage?run=${id}`)).json<UsageJson>().count;
    expect([await usageOf(top.id), await usageOf(middle.id), await usageOf(bottom.id), await usageOf("none")]).toEqual([4, 3, 2, 0]);
    expect((await shown(bottom.id, as(bottom.key))).spent).toBe(0.5);
    expectEnvelope(await as(bottom.key).get(`/v1/runs/${top.id}`), 404, "NOT_FOUND");
  });

  it("is not charged beyond its limit by an answer that costs more than its hold", async () => {
    const run = await createRun({ max_cost: 0.5 });
    app.upstream.replyNext(json(chatCompletion({ usage: wireUsage(900, 1) })));

    const answer = await spend(run.key, { model: "acme/long" });

    expect(answer.status).toBe(200);
    expect(await shown(run.id)).toMatchObject({ spent: 0.5, left: 0, held: 0 });
  });

  it("takes no more calls, nor runs below it, when it was ended, and its running streams end", async () => {
    const run = await createRun({ max_cost: 5 });
    const below = await createRun({ max_cost: 1 }, as(run.key));
    app.upstream.replyNext(sse([chatChunk({ content: "One" })], { end: "hang" }));
    const stream = await openStream(below.key);
    expect(stream.first).toContain("One");

    const ended = await owner.post(`/v1/runs/${run.id}/end`, {});

    expect(ended.json()).toMatchObject({ id: run.id, status: "ended" });
    expect(await stream.rest()).toContain("run of this key was ended");
    expect(await shown(below.id)).toMatchObject({ status: "ended" });
    for (const { key } of [run, below]) expectEnvelope(await spend(key), 401, "UNAUTHORIZED");
    expectEnvelope(await as(run.key).post("/v1/runs", { max_cost: 1 }), 401, "UNAUTHORIZED");
    expect((await owner.post(`/v1/runs/${run.id}/end`, {})).status).toBe(200);
    expectEnvelope(await owner.post(`/v1/runs/${run.id}/approve`, { amount: 1 }), 409, "CONFLICT");
  });

  it("is ended with the key that created it", async () => {
    const key = await createKey(app);
    const run = await createRun({ max_cost: 1 }, as(key.key));
    await owner.request("DELETE", `/account/keys/${key.id}`);

    expectEnvelope(await spend(run.key), 401, "UNAUTHORIZED");
    expect(await shown(run.id)).toMatchObject({ status: "ended" });
  });

  it("is in the list of runs and not in that of keys", async () => {
    const key = await createKey(app);
    const [first, second] = [await createRun({ max_cost: 1 }, as(key.key)), await createRun({ max_cost: 1 }, as(key.key))];

    const page = (await as(key.key).get("/v1/runs?limit=1")).json<{ data: Fields[]; next_cursor: string }>();
    const next = (await as(key.key).get(`/v1/runs?limit=5&cursor=${page.next_cursor}`)).json<{ data: Fields[]; next_cursor: null }>();
    const keys = (await owner.get("/account/keys")).json<{ data: Fields[] }>().data.map(({ id }) => id);

    expect([page.data[0]?.id, ...next.data.map(({ id }) => id), next.next_cursor]).toEqual([second.id, first.id, null]);
    expect(keys).toContain(key.id);
    expect(keys).not.toContain(first.id);
  });
});

describe("a call at the limit of a run that asks", () => {
  it("waits until the payer approves more, and then goes on", async () => {
    const run = await createRun({ max_cost: 0.25, on_limit: "ask" });
    await spend(run.key);
    const waiting = spend(run.key);
    await isAsking(run.id);

    const approved = await owner.post(`/v1/runs/${run.id}/approve`, { amount: 0.25 });

    expect(approved.json()).toMatchObject({ max_cost: 0.5, asked: null });
    expect((await waiting).status).toBe(200);
    expect(await shown(run.id)).toMatchObject({ spent: 0.5, left: 0, asked: null });
  });

  it("waits on when too little is approved, and fails when the run is ended", async () => {
    const run = await createRun({ max_cost: 0.25, on_limit: "ask" });
    await spend(run.key);
    const waiting = spend(run.key);
    await isAsking(run.id);
    await owner.post(`/v1/runs/${run.id}/approve`, { amount: 0.1 });
    await eventually(async () => expect((await shown(run.id)).asked).toBe(0.15));

    await owner.post(`/v1/runs/${run.id}/end`, {});

    expectEnvelope(await waiting, 401, "UNAUTHORIZED");
  });

  it("goes on when another call of the run leaves enough unused", async () => {
    const run = await createRun({ max_cost: 0.25, on_limit: "ask" });
    const { reply, open } = gated(chatCompletion({ usage: wireUsage(1, 0), content: "" }));
    app.upstream.replyNext(reply);
    const first = spend(run.key);
    await eventually(async () => expect((await shown(run.id)).held).toBe(0.25));
    const waiting = spend(run.key);
    await isAsking(run.id);

    open();

    expect([(await first).status, (await waiting).status]).toEqual([200, 200]);
  });

  it("asks again after the process of another one has ended", async () => {
    const run = await createRun({ max_cost: 0.25, on_limit: "ask" });
    await spend(run.key);
    const abandoned = { askedNanocredits: CREDIT, askedAt: new Date(Date.now() - RUN_ASKED_MS_MAX) };
    await databaseOf(app).prisma.run.update({ where: { id: run.id }, data: abandoned });
    expect(await shown(run.id)).toMatchObject({ asked: null });

    const waiting = spend(run.key);
    await isAsking(run.id);

    await owner.post(`/v1/runs/${run.id}/end`, {});
    expectEnvelope(await waiting, 401, "UNAUTHORIZED");
  });

  it("waits before its recording is transcribed too", async () => {
    const run = await createRun({ max_cost: 0.000000001, on_limit: "ask" });
    const speech = await fetch(`${app.baseUrl}/audio/Hello?model=sandbox/speech&response_format=wav&key=${app.key}`);
    const form = new FormData();
    form.set("model", "sandbox/transcription-paid");
    form.set("file", new File([await speech.arrayBuffer()], "a.wav"));
    const headers = { authorization: `Bearer ${run.key}` };
    const waiting = fetch(`${app.baseUrl}/v1/audio/transcriptions`, { method: "POST", headers, body: form });
    await eventually(async () => expect((await shown(run.id)).asked).toBeGreaterThan(0));

    await owner.post(`/v1/runs/${run.id}/approve`, { amount: 1 });

    expect((await waiting).status).toBe(200);
  });

  it("leaves room for the videos of other accounts while it waits", async () => {
    const run = await createRun({ max_cost: 0.000000001, on_limit: "ask" });
    const video = { model: "sandbox/video-paid", prompt: "waves" };
    const waiting = Array.from({ length: JOBS_PER_ACCOUNT_MAX }, () => as(run.key).post("/v1/videos", video));
    await eventually(async () => expect((await shown(run.id)).asked).toBeGreaterThan(0));

    const more = Array.from({ length: JOBS_PER_PROCESS_MAX - JOBS_PER_ACCOUNT_MAX }, () => as(run.key).post("/v1/videos", video));
    for (const answer of await Promise.all(more)) expectEnvelope(answer, 429, "RATE_LIMITED");
    const { key } = await createPayer(app, { pack: CREDIT });
    expect((await as(key).post("/v1/videos", video)).status).toBe(200);

    await owner.post(`/v1/runs/${run.id}/end`, {});
    for (const answer of await Promise.all(waiting)) expectEnvelope(answer, 401, "UNAUTHORIZED");
  });

  it("is refused to keys below the payer", async () => {
    const run = await createRun({ max_cost: 1 });
    const below = await createRun({ max_cost: 1 }, as(run.key));
    const stranger = await createKey(app);

    expectEnvelope(await as(run.key).post(`/v1/runs/${run.id}/approve`, { amount: 1 }), 403, "FORBIDDEN");
    expectEnvelope(await as(below.key).post(`/v1/runs/${run.id}/approve`, { amount: 1 }), 404, "NOT_FOUND");
    expectEnvelope(await as(stranger.key).post(`/v1/runs/${run.id}/approve`, { amount: 1 }), 404, "NOT_FOUND");
    expect((await as(run.key).post(`/v1/runs/${below.id}/approve`, { amount: 1 })).status).toBe(200);
  });
});

describe("an approval with an Idempotency-Key", () => {
  const approve = (id: string, key: string, amount = 0.25) =>
    owner.post(`/v1/runs/${id}/approve`, { amount }, { headers: { "Idempotency-Key": key } });

  it("adds once, however often it is sent", async () => {
    const run = await createRun({ max_cost: 1 });

    const answers = await Promise.all(["a", "a", "a", "b"].map((key) => approve(run.id, key)));

    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(answers.filter(({ headers }) => headers.get("x-idempotent-replay") === "true")).toHaveLength(2);
    expect(await shown(run.id)).toMatchObject({ max_cost: 1.5 });
  });

  it("is known after the run has ended, and belongs to its run", async () => {
    const [run, other] = await Promise.all([createRun({ max_cost: 1 }), createRun({ max_cost: 1 })]);
    await approve(run.id, "a");
    await owner.post(`/v1/runs/${run.id}/end`, {});

    expect((await approve(run.id, "a")).json()).toMatchObject({ status: "ended", max_cost: 1.25 });
    expect((await approve(other.id, "a")).json()).toMatchObject({ max_cost: 1.25 });
    expectEnvelope(await approve(run.id, "b"), 409, "CONFLICT");
  });

  it("is refused for another amount, and when it is too long", async () => {
    const run = await createRun({ max_cost: 1 });
    await approve(run.id, "a");

    const refused = [await approve(run.id, "a", 0.5), await approve(run.id, "x".repeat(256))];

    const errors = refused.map((answer) => answer.json<{ error: { code: string; param: string } }>().error);
    expect(errors.map(({ code, param }) => [code, param])).toEqual([
      ["CONFLICT", "Idempotency-Key"],
      ["BAD_REQUEST", "Idempotency-Key"],
    ]);
    expect(await shown(run.id)).toMatchObject({ max_cost: 1.25 });
  });

  it("is free again when the approval failed", async () => {
    const run = await createRun({ max_cost: 1 });
    expectEnvelope(await approve(run.id, "a", CREDITS_MAX), 400, "BAD_REQUEST");

    expect((await approve(run.id, "a")).json()).toMatchObject({ max_cost: 1.25 });
  });
});

describe("bad input of runs", () => {
  it.each<[Fields, string]>([
    [{}, "max_cost"],
    [{ max_cost: 0 }, "max_cost"],
    [{ max_cost: -1 }, "max_cost"],
    [{ max_cost: 1e10 }, "max_cost"],
    [{ max_cost: 1, ttl: 0 }, "ttl"],
    [{ max_cost: 1, ttl: RUN_TTL_SECONDS_MAX + 1 }, "ttl"],
    [{ max_cost: 1, label: "" }, "label"],
    [{ max_cost: 1, on_limit: "stop" }, "on_limit"],
    [{ max_cost: 1, budget: 1 }, "budget"],
  ])("%j names %s", async (body, param) => {
    const answer = await owner.post("/v1/runs", body);

    expectEnvelope(answer, 400, "BAD_REQUEST");
    expect(answer.json<{ error: Fields }>().error.param).toBe(param);
  });

  it("refuses a limit above what the key has left, a time beyond its expiry, and publishable keys", async () => {
    const key = await createKey(app, { creditBudget: 0.5, expiresIn: 60 });
    const publishable = await createKey(app, { type: "publishable" });
    const refused = async (body: Fields) => (await as(key.key).post("/v1/runs", body)).json<{ error: Fields }>().error.param;

    expect(await refused({ max_cost: 0.500000001 })).toBe("max_cost");
    expect(await refused({ max_cost: 0.5, ttl: 61 })).toBe("ttl");
    expect((await as(key.key).post("/v1/runs", { max_cost: 0.5, ttl: 50 })).status).toBe(200);
    expectEnvelope(await as(publishable.key).post("/v1/runs", { max_cost: 1 }), 403, "FORBIDDEN");
  });
});
