/** Limits that renew, on requests (docs/spec/usage-limits.md). */
import { randomUUID } from "node:crypto";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CREDIT, createPayer } from "../e2e/money.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { chatChunks, chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { errorReply, gated, json, sse } from "../support/upstream-replies.js";
import { type Answer, type Client, createClient, createKey, expectEnvelope } from "./client.js";

type Fields = Readonly<Record<string, unknown>>;
interface LimitJson extends Fields {
  readonly id: string;
  readonly usage: { readonly spent: string; readonly remaining: string; readonly percent: number; readonly renewsAt: string | null };
}

let app: TestApp;
let owner: Client;

beforeAll(async () => {
  app = await createTestApp({
    models: ["quarter", "other"].map((name) => ({
      ...{ id: `acme/${name}`, modality: "text", upstream: "acme", upstreamModel: name, title: "A quarter of a credit each time" },
      prices: { promptTextPrice: "0", completionTextPrice: "0.25" },
    })),
  });
  app.upstream.replyAlways(json(chatCompletion({ usage: wireUsage(1, 1) })));
  owner = createClient(app.baseUrl, app.key);
});
afterAll(() => app.close());

/** Costs a quarter of a credit. */
function spend(key: string, more: Fields = {}): Promise<Answer> {
  const messages = [{ role: "user", content: "Hi" }];
  return createClient(app.baseUrl, key).post("/v1/chat/completions", { model: "acme/quarter", max_tokens: 1, messages, ...more });
}

async function newKey(): Promise<{ readonly id: string; readonly key: string }> {
  const { id, key } = (await owner.post("/account/keys", { name: "limited" })).json<{ id: string; key: string }>();
  return { id, key };
}

async function limit(apiKeyId: string, terms: Fields): Promise<LimitJson> {
  const answer = await owner.post("/account/usage-limits", { apiKeyId, ...terms });
  expect(answer.status, answer.text).toBe(200);
  return answer.json<LimitJson>();
}

function change(id: string, terms: Fields): Promise<Answer> {
  return owner.request("PATCH", `/account/usage-limits/${id}`, { body: terms });
}

describe("a budget by the day", () => {
  it("refuses with 402, says which limit and when it renews, and applies changes at once", async () => {
    const { id: apiKeyId, key } = await newKey();
    expect((await spend(key)).status).toBe(200);
    const { id, ...created } = await limit(apiKeyId, { metric: "credits", amount: 0.75, period: "day", timeZone: "Europe/Berlin" });
    expect(created).toMatchObject({
      ...{ apiKeyId, metric: "credits", amount: "0.75", period: "day", minutes: null, rolling: false, timeZone: "Europe/Berlin" },
      // Earlier charges count.
      usage: { spent: "0.25", remaining: "0.5", percent: 33 },
    });
    expect((await spend(key)).status).toBe(200);
    expect((await spend(key)).status).toBe(200);

    const refused = await spend(key);

    expectEnvelope(refused, 402, "KEY_BUDGET_EXHAUSTED");
    const { details } = refused.json<{ error: { details: Fields } }>().error;
    expect(details).toMatchObject({ bound: "key_limit", required: "0.25", available: "0" });
    expect(details.limit).toEqual({
      ...{ id, metric: "credits", model: null, amount: "0.75", spent: "0.75", held: "0", renewsAt: created.usage.renewsAt },
    });
    expect(Date.parse(String(created.usage.renewsAt)) - Date.now()).toBeLessThanOrEqual(25 * 3_600_000);

    expect((await change(id, { amount: "1" })).json()).toMatchObject({ amount: "1" });
    expect((await spend(key)).status).toBe(200);
    expect((await spend(key)).status).toBe(402);
    const until = new Date(Date.now() + 60_000).toISOString();
    const raised = await change(id, { raise: { amount: 0.25, until } });
    expect(raised.json()).toMatchObject({ amount: "1", raise: { amount: "0.25", until }, usage: { spent: "1", remaining: "0.25" } });
    expect((await spend(key)).status).toBe(200);
    expect((await spend(key)).status).toBe(402);
    expect((await owner.request("DELETE", `/account/usage-limits/${id}`)).json()).toEqual({ id, deleted: true });
    expect((await spend(key)).status).toBe(200);
  });

  it("charges a whole answer and a stream no more than the rest", async () => {
    const { id: apiKeyId, key } = await newKey();
    const { id } = await limit(apiKeyId, { metric: "credits", amount: 1, period: "month" });
    app.upstream.replyNext(json(chatCompletion({ usage: wireUsage(1, 9) })));
    // The upstream ignores its cap of one token: the rest is charged for it at most.
    expect((await spend(key)).headers.get("x-cost")).toMatch(/^(?:0\.25|0\.5|0\.75|1)$/);
    app.upstream.replyNext(sse(chatChunks(Array.from({ length: 12 }, () => "word "))));
    await spend(key, { stream: true, max_tokens: undefined });

    const shown = (await owner.get(`/account/usage-limits/${id}`)).json<LimitJson>();

    expect(Number(shown.usage.spent)).toBeLessThanOrEqual(1);
  });
});

describe("limits of requests", () => {
  it("refuse with 429 and Retry-After, for one model", async () => {
    const { id: apiKeyId, key } = await newKey();
    await limit(apiKeyId, { metric: "requests", amount: 2, minutes: 1, rolling: true, model: "acme/quarter" });
    expect([(await spend(key)).status, (await spend(key)).status]).toEqual([200, 200]);

    const refused = await spend(key);

    expectEnvelope(refused, 429, "RATE_LIMITED");
    expect(refused.headers.get("x-ratelimit-remaining-requests")).toBe("0");
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(50);
    expect((await spend(key, { model: "acme/other" })).status).toBe(200);
  });
});

describe("headers", () => {
  it("show the rest of requests and tokens as clients of OpenAI read them, on streams too", async () => {
    const { id: apiKeyId, key } = await newKey();
    expect((await spend(key)).headers.get("x-ratelimit-limit-requests")).toBeNull();
    await limit(apiKeyId, { metric: "requests", amount: 10, minutes: 1, rolling: true });
    await limit(apiKeyId, { metric: "tokens", amount: 5_000, minutes: 6, rolling: true });

    const answers = [await spend(key), await spend(key)];
    app.upstream.replyNext(sse(chatChunks(["word"])));
    const stream = await spend(key, { stream: true });

    // One was spent before, as its window is the last minute. A claim under way counts a charge twice, until the next one.
    const rest = [...answers, stream].map(({ headers }) => Number(headers.get("x-ratelimit-remaining-requests")));
    expect(rest).toEqual([8, 7, 6].map((left) => expect.toBeOneOf([left, left - 1])));
    expect(stream.headers.get("x-ratelimit-limit-requests")).toBe("10");
    expect(stream.headers.get("x-ratelimit-reset-requests")).toBe("1m0s");
    expect(stream.headers.get("x-ratelimit-limit-tokens")).toBe("5000");
    expect(Number(stream.headers.get("x-ratelimit-remaining-tokens"))).toBeLessThan(5_000);
    expect(stream.headers.get("x-ratelimit-reset-tokens")).toBe("6m0s");
  });
});

describe("OpenAI's client", () => {
  it("reads the rest of a limit, and retries a refusal until there is room", async () => {
    const { id: apiKeyId, key } = await newKey();
    await limit(apiKeyId, { metric: "concurrency", amount: 1 });
    await limit(apiKeyId, { metric: "requests", amount: 5, minutes: 1, rolling: true });
    const client = new OpenAI({ baseURL: `${app.baseUrl}/v1`, apiKey: key, maxRetries: 2 });
    const waiting = gated(chatCompletion({ content: "First", usage: wireUsage(1, 1) }));
    app.upstream.replyNext(waiting.reply);
    const body = { model: "acme/quarter", messages: [{ role: "user" as const, content: "Hi" }], max_completion_tokens: 1 };
    const calls = app.upstream.requests.length;
    const first = client.chat.completions.create(body).withResponse();
    await expect.poll(() => app.upstream.requests.length).toBe(calls + 1);
    const refused = await client.chat.completions.create(body, { maxRetries: 0 }).catch((error: unknown) => error);
    const second = client.chat.completions.create(body).withResponse();
    waiting.open();

    expect(refused).toMatchObject({ status: 429, code: "RATE_LIMITED" });
    expect((refused as { headers: Headers }).headers.get("retry-after")).toBe("1");
    expect((await first).data.choices[0]?.message.content).toBe("First");
    const { response } = await second;
    expect(response.status).toBe(200);
    expect(response.headers.get("x-ratelimit-limit-requests")).toBe("5");
    // Refused requests do not count.
    expect(response.headers.get("x-ratelimit-remaining-requests")).toBe("3");
  });
});

describe("percentages", () => {
  it("are announced once each, by the subscription's event", async () => {
    const { id: apiKeyId, key } = await newKey();
    const reached: unknown[] = [];
    const { events } = app.infrastructure;
    const stop = events.listen("usage-limit-reached", ({ accountId: _, at: __, ...rest }) => reached.push(rest));
    const { id: limitId } = await limit(apiKeyId, { metric: "credits", amount: 1, period: "day", alertAt: [100, 50] });
    const same = { limitId, apiKeyId, model: null, metric: "credits", amount: "1" };

    for (let paid = 1; paid <= 2; paid += 1) expect((await spend(key)).status).toBe(200);
    await expect.poll(() => reached).toEqual([{ ...same, percent: 50, spent: "0.5" }]);
    for (let paid = 3; paid <= 4; paid += 1) expect((await spend(key)).status).toBe(200);

    await expect.poll(() => reached.at(-1)).toEqual({ ...same, percent: 100, spent: "1" });
    expect(reached).toHaveLength(2);
    stop();
  });
});

describe("limits of accounts", () => {
  it("are the operator's to change, and the account's to see", async () => {
    const payer = await createPayer(app, { pack: 10n * CREDIT });
    const { id } = (
      await owner.post("/account/usage-limits", { accountId: payer.accountId, metric: "credits", amount: "0.5", period: "hour" })
    ).json<LimitJson>();
    expect((await spend(payer.key)).status).toBe(200);
    expect((await spend(payer.key)).status).toBe(200);

    const refused = await spend(payer.key);

    expectEnvelope(refused, 402, "INSUFFICIENT_BALANCE");
    expect(refused.json()).toMatchObject({ error: { details: { bound: "account_limit", limit: { id } } } });
    const { key } = await createKey(app, { accountPermissions: ["usage"] });
    expect((await createClient(app.baseUrl, key).request("DELETE", `/account/usage-limits/${id}`)).status).toBe(403);
  });
});

describe("limits of models", () => {
  it("count all accounts together, are the operator's to set, and tell callers nothing of others", async () => {
    const [one, two] = [await createPayer(app, { pack: 10n * CREDIT, permissions: ["keys"] }), await createPayer(app, { pack: CREDIT })];
    const terms = { allAccounts: true, model: "acme/other", metric: "requests", amount: 2, minutes: 1, rolling: true };
    const stranger = createClient(app.baseUrl, one.key);
    expect((await stranger.post("/account/usage-limits", terms)).status).toBe(403);
    expect((await stranger.get("/account/usage-limits?allAccounts=true")).status).toBe(403);

    const created = await owner.post("/account/usage-limits", terms);

    expect(created.status, created.text).toBe(200);
    expect(created.json()).toMatchObject({ accountId: null, apiKeyId: null, model: "acme/other", metric: "requests", amount: "2" });
    const { id } = created.json<LimitJson>();
    const call = (key: string) => spend(key, { model: "acme/other" });
    app.upstream.replyNext(errorReply(500), json(chatCompletion({ usage: wireUsage(1, 1) })));
    const statuses = [(await call(one.key)).status, (await call(two.key)).status];
    expect(statuses).toEqual([502, 200]);
    const refused = await call(one.key);
    expectEnvelope(refused, 429, "RATE_LIMITED");
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(30);
    expect(refused.headers.get("x-ratelimit-limit-requests")).toBeNull();
    const { message, details } = refused.json<{ error: { message: string; details: Fields } }>().error;
    expect(message).toMatch(/^The model acme\/other is at its limit of this gateway: 2 requests in a minute, of all accounts together/);
    expect(details).toEqual({
      bound: "model_limit",
      limit: { metric: "requests", amount: "2", model: "acme/other", renewsAt: expect.any(String) },
    });
    expect((await spend(one.key)).status).toBe(200);
    const named = { models: ["acme/other"] };
    expect((await spend(one.key, named)).status).toBe(429);

    expect((await owner.get("/account/usage-limits?allAccounts=true")).json()).toMatchObject({ data: [{ id, usage: { spent: "2" } }] });
    for (const path of [`/account/usage-limits/${id}`, "/account/usage-limits"]) {
      expect((await stranger.get(path)).text).not.toContain("acme/other");
    }
    expect((await stranger.request("DELETE", `/account/usage-limits/${id}`)).status).toBe(404);
    expect((await change(id, { amount: 3 })).status).toBe(200);
    expect((await call(two.key)).status).toBe(200);
    expect((await owner.request("DELETE", `/account/usage-limits/${id}`)).status).toBe(200);
    expect((await call(two.key)).status).toBe(200);
    const acts = await app.database.prisma.auditEntry.findMany({ where: { objectId: id }, orderBy: { createdAt: "asc" } });
    expect(acts.map(({ act, accountId }) => [act, accountId])).toEqual(
      ["create_usage_limit", "update_usage_limit", "delete_usage_limit"].map((act) => [act, null]),
    );
  });

  it.each<[Fields, string]>([
    [{ allAccounts: true, metric: "requests" }, "model"],
    [{ allAccounts: true, metric: "credits", model: "acme/other" }, "metric"],
    [{ allAccounts: true, metric: "requests", model: "acme/other", alertAt: [50] }, "alertAt"],
    [{ allAccounts: true, metric: "requests", model: "acme/other", apiKeyId: randomUUID() }, "apiKeyId"],
  ])("%j names %s", async (terms, param) => {
    const refused = await owner.post("/account/usage-limits", { amount: 1, minutes: 1, ...terms });
    expectEnvelope(refused, 400, "BAD_REQUEST");
    expect(refused.json()).toMatchObject({ error: { param } });
  });
});

describe("limits of revoked keys", () => {
  it("make room for others, once no process claims a part of them", async () => {
    const { prisma } = app.database;
    const payer = await createPayer(app, { pack: CREDIT, permissions: ["keys"] });
    const client = createClient(app.baseUrl, payer.key);
    const create = async () => (await client.post("/account/keys", { name: "child" })).json<{ id: string }>().id;
    const [revoked, kept] = [await create(), await create()];
    const common = { accountId: payer.accountId, apiKeyId: revoked, metric: "requests", amount: 1n, minutes: 1 } as const;
    await prisma.usageLimit.createMany({ data: Array.from({ length: 200 }, () => ({ id: randomUUID(), ...common })) });
    const add = () => client.post("/account/usage-limits", { apiKeyId: kept, metric: "requests", amount: 1, minutes: 1 });
    expectEnvelope(await add(), 409, "CONFLICT");

    expect((await client.request("DELETE", `/account/keys/${revoked}`)).status).toBe(200);
    const claimed = await prisma.usageLimit.findFirstOrThrow({ where: { apiKeyId: revoked }, select: { id: true } });
    await prisma.usageLimitClaim.create({ data: { limitId: claimed.id, processId: randomUUID(), amount: 1n, held: 1n } });

    expect((await add()).status).toBe(200);
    const left = await prisma.usageLimit.findMany({ where: { accountId: payer.accountId }, select: { apiKeyId: true } });
    expect(left.map(({ apiKeyId }) => apiKeyId).sort()).toEqual([revoked, kept].sort());
  });
});

describe("concurrent changes of a limit", () => {
  it("do not undo each other", async () => {
    const { id: apiKeyId } = await newKey();
    const { id } = await limit(apiKeyId, { metric: "credits", amount: 1, period: "day" });

    for (let amount = 2; amount < 8; amount += 1) {
      const alertAt = [amount];
      await Promise.all([change(id, { amount }), change(id, { alertAt })]);
      expect((await owner.get(`/account/usage-limits/${id}`)).json()).toMatchObject({ amount: `${amount}`, alertAt });
    }
  });
});

describe("bad terms", () => {
  it.each<[Fields, string]>([
    [{ metric: "credits", amount: 1, minutes: 0 }, "minutes"],
    [{ metric: "credits", amount: 1, minutes: 10_000 * 24 * 60 }, "minutes"],
    [{ metric: "credits", amount: 1 }, "period"],
    [{ metric: "credits", amount: 1, period: "day", minutes: 5 }, "period"],
    [{ metric: "credits", amount: 0, period: "day" }, "amount"],
    [{ metric: "credits", amount: -1, period: "day" }, "amount"],
    [{ metric: "requests", amount: 1.5, minutes: 1 }, "amount"],
    [{ metric: "concurrency", amount: 1, minutes: 1 }, "minutes"],
    [{ metric: "credits", amount: 1, period: "day", timeZone: "Mars/Olympus" }, "timeZone"],
    [{ metric: "credits", amount: 1, period: "day", timeZone: "+02:00" }, "timeZone"],
    [{ metric: "credits", amount: 1, period: "day", model: "acme/none" }, "model"],
    [{ metric: "credits", amount: 1, period: "day", alertAt: [101] }, "alertAt.0"],
    [{ metric: "credits", amount: 1, period: "day", raise: { amount: 1, until: "2020-01-01T00:00:00Z" } }, "raise.until"],
  ])("%j names %s", async (terms, param) => {
    const { id: apiKeyId } = await newKey();
    const refused = await owner.post("/account/usage-limits", { apiKeyId, ...terms });
    expectEnvelope(refused, 400, "BAD_REQUEST");
    expect(refused.json()).toMatchObject({ error: { param } });
  });
});
