/** Webhooks and low balances through the whole gateway: events reach a receiver as REST shows them. */
import { createHmac } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { WEBHOOK_ENDPOINTS_PER_ACCOUNT_MAX } from "../../src/services/webhooks/limits.js";
import { createPayer, databaseOf, type Payer } from "../e2e/money.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type ReceivedWebhook, startWebhookReceiver, verifyWebhook, type WebhookReceiver } from "../support/webhook-receiver.js";
import { MovedClock } from "../support/webhooks.js";
import { type Answer, type Client, type CreatedKey, createClient, createKey, expectEnvelope } from "./client.js";

const CREDIT = 1_000_000_000n;
const UNKNOWN = "0199f000-0000-7000-8000-000000000001";
const CHAT = { model: "acme/chat", messages: [{ role: "user", content: "a prompt that nobody else may see" }] };

const clock = new MovedClock();
let app: TestApp;
let receiver: WebhookReceiver;
let owner: Client;
/** An account with a key that manages its keys. */
let payer: Payer;
let client: Client;

beforeAll(async () => {
  const config = { upstreamAllowHosts: ["127.0.0.1"] };
  [app, receiver] = await Promise.all([createTestApp({ config, clock }), startWebhookReceiver()]);
  owner = createClient(app.baseUrl, app.key);
});
beforeEach(async () => {
  payer = await createPayer(app, { pack: CREDIT });
  await databaseOf(app).prisma.apiKey.update({ where: { id: payer.apiKeyId }, data: { permissions: ["balance", "usage", "keys"] } });
  client = createClient(app.baseUrl, payer.key);
  receiver.answer = 200;
});
afterAll(async () => {
  await app.close();
  await receiver.close();
});

interface Endpoint {
  readonly id: string;
  readonly secret: string;
  readonly path: string;
}

/** One that has a path of its own at the receiver. */
async function createEndpoint(events: readonly string[]): Promise<Endpoint> {
  const path = `/hooks/${payer.accountId}/${events.join("+")}`;
  const answer = await client.post("/account/webhooks", { url: new URL(path, receiver.url).href, events });
  expect(answer.status).toBe(200);
  return { ...answer.json<{ id: string; secret: string }>(), path };
}

function receivedBy({ path }: Endpoint): readonly ReceivedWebhook[] {
  return receiver.received.filter((webhook) => webhook.path === path);
}

async function next(endpoint: Endpoint, count = 1): Promise<ReceivedWebhook> {
  await expect.poll(() => receivedBy(endpoint).length, { timeout: 10_000 }).toBe(count);
  return receivedBy(endpoint)[count - 1] as ReceivedWebhook;
}

async function deliveries(endpoint: Endpoint, query = ""): Promise<{ data: Record<string, unknown>[]; nextCursor: string | null }> {
  return (await client.get(`/account/webhooks/${endpoint.id}/deliveries${query}`)).json();
}

describe("events", () => {
  it("are sent once for each top-up, refund and failed payment", async () => {
    const endpoint = await createEndpoint(["top_up.completed", "top_up.failed", "top_up.refunded"]);
    const price = { accountId: payer.accountId, processor: "development", nanocredits: 5n * CREDIT, currency: "usd", amountCents: 500n };
    const [paid, failed] = [crypto.randomUUID(), crypto.randomUUID()];
    const { prisma } = databaseOf(app);
    await prisma.topUp.createMany({ data: [paid, failed].map((id) => ({ id, ...price, expiresAt: clock.now() })) });
    const { topUps, autoTopUps } = app.services;

    const report = { topUpId: paid, cents: 500n, currency: "usd" };
    await Promise.all([topUps.bookPayment("development", report), topUps.bookPayment("development", report)]);
    for (const cents of [200n, 200n]) await topUps.bookRefund(paid, cents, null);
    await prisma.autoTopUp.create({
      data: {
        ...{ accountId: payer.accountId, isEnabled: true, attemptId: failed },
        ...{ thresholdNanocredits: 1n, amountNanocredits: 1n, monthlyNanocredits: 1n },
      },
    });
    for (let i = 0; i < 2; i += 1) await autoTopUps.fail(failed, "The card was declined.");

    await next(endpoint, 3);
    const messages = receivedBy(endpoint).map((webhook) => verifyWebhook(endpoint.secret, webhook));
    const facts = { credits: 5, amount: "5.00", currency: "usd", processor: "development", is_automatic: false };
    const change = { change: "refund", change_credits: 2, moved_credits: 2, lost_credits: 2 };
    expect(new Map(messages.map(({ type, data }) => [type, data]))).toEqual(
      new Map<string, object>([
        ["top_up.completed", { id: paid, ...facts }],
        ["top_up.refunded", { id: paid, ...facts, ...change }],
        ["top_up.failed", { id: failed, ...facts, failure: "The card was declined." }],
      ]),
    );
    expect((await deliveries(endpoint)).data).toHaveLength(3);
  });

  it("are sent for usage, as GET /account/usage shows it, without prompt and answer", async () => {
    const endpoint = await createEndpoint(["usage.recorded"]);

    const answer = await client.post("/v1/chat/completions", CHAT);
    const webhook = await next(endpoint);

    const [row] = (await client.get("/account/usage")).json<{ usage: { id: string; timestamp: string; cost_usd: number }[] }>().usage;
    expect(verifyWebhook(endpoint.secret, webhook)).toEqual({ type: "usage.recorded", timestamp: row?.timestamp, data: row });
    expect(row?.id).toBe(answer.headers.get("x-generation-id"));
    expect(row?.cost_usd).toBeGreaterThan(0);
    expect(webhook.body).not.toContain("nobody else may see");
    expect(webhook.body).not.toContain(payer.key);
  });

  it("are sent for keys, when they are made and when they are revoked, without their value", async () => {
    const endpoint = await createEndpoint(["api_key.created", "api_key.revoked"]);

    const made = (await client.post("/account/keys", { name: "told", creditBudget: 0.25 })).json<{ id: string; key: string }>();
    const created = await next(endpoint);
    await client.request("DELETE", `/account/keys/${made.id}`);
    const revoked = await next(endpoint, 2);

    expect(verifyWebhook(endpoint.secret, created)).toMatchObject({
      type: "api_key.created",
      data: { id: made.id, name: "told", type: "secret", start: made.key.slice(0, 10), creditBudget: 0.25, allowedModels: null },
    });
    expect(verifyWebhook(endpoint.secret, revoked)).toMatchObject({
      type: "api_key.revoked",
      data: { id: made.id, revokedAt: expect.any(String) },
    });
    expect(created.body + revoked.body).not.toContain(made.key);
  });

  it("are sent for a balance that falls below its threshold, once", async () => {
    const endpoint = await createEndpoint(["balance.low"]);
    const set = await client.request("PATCH", "/account/balance/threshold", { body: { threshold: 1 } });
    expect([set.status, set.json()]).toEqual([200, { threshold: 1, since: null }]);

    await client.post("/v1/chat/completions", CHAT);
    const { type, data } = verifyWebhook(endpoint.secret, await next(endpoint));
    await client.post("/v1/chat/completions", CHAT);
    const state = (await client.get("/account/balance/threshold")).json<{ threshold: number; since: string }>();

    expect({ type, data }).toEqual({ type: "balance.low", data: { balance: expect.any(Number), threshold: 1 } });
    expect(data.balance).toBeLessThan(1);
    expect(data.balance).toBeGreaterThan(0.99);
    expect(state).toEqual({ threshold: 1, since: expect.stringMatching(/Z$/) });
    expect((await deliveries(endpoint)).data).toHaveLength(1);
  });

  it("are not sent to others", async () => {
    const endpoint = await createEndpoint(["usage.recorded", "balance.low", "api_key.created", "api_key.revoked"]);

    await owner.post("/v1/chat/completions", CHAT);
    await owner.post("/account/keys", { name: "the owner's" });
    const test = await client.post(`/account/webhooks/${endpoint.id}/test`, {});
    await next(endpoint);

    expect((await deliveries(endpoint)).data.map(({ id }) => id)).toEqual([test.json().id]);
  });
});

describe("endpoints", () => {
  it("are made, listed, changed and removed; the secret is shown once", async () => {
    const url = receiver.url;
    const created = await client.post("/account/webhooks", { url, events: ["usage.recorded"] });
    const { secret, ...shown } = created.json<Record<string, unknown> & { id: string }>();
    const path = `/account/webhooks/${shown.id}`;

    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(created.headers.get("cache-control")).toBe("no-store");
    expect(shown).toEqual({
      ...{ id: expect.any(String), url, events: ["usage.recorded"], isEnabled: true },
      ...{ disabledReason: null, failingSince: null, createdAt: expect.any(String) },
    });
    expect((await client.get("/account/webhooks")).json()).toEqual({ data: [shown] });
    const changed = await client.request("PATCH", path, { body: { events: ["balance.low"], isEnabled: false } });
    expect(changed.json()).toEqual({ ...shown, events: ["balance.low"], isEnabled: false });
    expect((await client.request("DELETE", path)).json()).toEqual({ id: shown.id, deleted: true });
    expect((await client.get("/api/account/webhooks")).json()).toEqual({ data: [] });
    expectEnvelope(await client.request("DELETE", path), 404, "NOT_FOUND");
  });

  it("are ten at most, even for concurrent requests", async () => {
    const create = () => client.post("/account/webhooks", { url: receiver.url, events: ["balance.low"] });
    const answers = await Promise.all(Array.from({ length: WEBHOOK_ENDPOINTS_PER_ACCOUNT_MAX + 2 }, create));

    expect(answers.filter(({ status }) => status === 200)).toHaveLength(WEBHOOK_ENDPOINTS_PER_ACCOUNT_MAX);
    for (const refused of answers.filter(({ status }) => status !== 200)) expectEnvelope(refused, 409, "CONFLICT");
    const [first] = (await client.get("/account/webhooks")).json<{ data: { id: string }[] }>().data;
    await client.request("DELETE", `/account/webhooks/${first?.id}`);
    expect((await create()).status).toBe(200);
  });

  it.each([
    ["no URL", { events: ["balance.low"] }, "url"],
    ["an empty URL", { url: "", events: ["balance.low"] }, "url"],
    ["a URL of another scheme", { url: "ftp://example.com/", events: ["balance.low"] }, "url"],
    ["http", { url: "http://example.com/", events: ["balance.low"] }, "url"],
    ["credentials", { url: "https://me:secret@example.com/", events: ["balance.low"] }, "url"],
    ["a fragment", { url: "https://example.com/#a", events: ["balance.low"] }, "url"],
    ["a private address", { url: "https://10.0.0.1/", events: ["balance.low"] }, "url"],
    ["a private address in disguise", { url: "https://[::ffff:7f00:1]/", events: ["balance.low"] }, "url"],
    ["the metadata service", { url: "https://169.254.169.254/latest", events: ["balance.low"] }, "url"],
    ["a URL that is too long", { url: `https://example.com/${"a".repeat(2_048)}`, events: ["balance.low"] }, "url"],
    ["no events", { url: "https://example.com/" }, "events"],
    ["an empty list of events", { url: "https://example.com/", events: [] }, "events"],
    ["an unknown event", { url: "https://example.com/", events: ["usage.deleted"] }, "events.0"],
    ["the test event", { url: "https://example.com/", events: ["webhook.test"] }, "events.0"],
    ["an event twice", { url: "https://example.com/", events: ["balance.low", "balance.low"] }, "events.1"],
    ["an unknown field", { url: "https://example.com/", events: ["balance.low"], secret: "whsec_mine" }, "secret"],
  ])("are refused with %s", async (_name, body, param) => {
    const answer = await client.post("/account/webhooks", body);

    expectEnvelope(answer, 400, "BAD_REQUEST");
    expect(answer.json<{ error: { param: string } }>().error.param).toBe(param);
    expect((await client.get("/account/webhooks")).json()).toEqual({ data: [] });
  });

  it("keep their URL when another one is refused", async () => {
    const endpoint = await createEndpoint(["balance.low"]);

    expectEnvelope(
      await client.request("PATCH", `/account/webhooks/${endpoint.id}`, { body: { url: "https://127.0.0.2/" } }),
      400,
      "BAD_REQUEST",
    );

    const [kept] = (await client.get("/account/webhooks")).json<{ data: { url: string }[] }>().data;
    expect(kept?.url).toContain(endpoint.path);
  });

  it("sign with two secrets after a rotation, which shows the new one once", async () => {
    const endpoint = await createEndpoint(["balance.low"]);
    const rotated = await client.post(`/account/webhooks/${endpoint.id}/rotate-secret`, {});
    const { secret } = rotated.json<{ secret: string }>();

    await client.post(`/account/webhooks/${endpoint.id}/test`, {});
    const webhook = await next(endpoint);

    expect(rotated.headers.get("cache-control")).toBe("no-store");
    expect(secret).not.toBe(endpoint.secret);
    for (const good of [secret, endpoint.secret]) expect(verifyWebhook(good, webhook).type).toBe("webhook.test");
    // By hand too: what the documents say of the signature.
    const key = Buffer.from(secret.slice("whsec_".length), "base64");
    const { headers, body } = webhook;
    const signature = createHmac("sha256", key).update(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`).digest("base64");
    expect(String(headers["webhook-signature"]).split(" ")).toContain(`v1,${signature}`);
  });
});

describe("the delivery log", () => {
  it("shows each message and its attempts", async () => {
    const endpoint = await createEndpoint(["balance.low"]);
    receiver.answer = 500;

    const test = (await client.post(`/account/webhooks/${endpoint.id}/test`, {})).json();
    await next(endpoint);
    await expect.poll(async () => (await deliveries(endpoint)).data[0]?.lastStatus, { timeout: 10_000 }).toBe(500);

    expect(test).toMatchObject({ event: "webhook.test", status: "pending" });
    expect((await deliveries(endpoint)).data).toEqual([
      {
        ...{ id: test.id, event: "webhook.test", status: "pending", attempts: 1, lastStatus: 500, finishedAt: null },
        ...{ nextAttemptAt: expect.any(String), lastError: "The URL answers with the status 500.", createdAt: expect.any(String) },
        message: { type: "webhook.test", timestamp: expect.any(String), data: { endpointId: endpoint.id } },
      },
    ]);
  });

  it("sends a message again under its id, whether it was delivered or waits for its next attempt", async () => {
    const endpoint = await createEndpoint(["balance.low"]);
    receiver.answer = 500;
    const { id } = (await client.post(`/account/webhooks/${endpoint.id}/test`, {})).json();
    const path = `/account/webhooks/${endpoint.id}/deliveries/${id}/redeliver`;
    await expect.poll(async () => (await deliveries(endpoint)).data[0]?.lastStatus, { timeout: 10_000 }).toBe(500);

    receiver.answer = 200;
    expect((await client.post(path, {})).json()).toMatchObject({ id, status: "pending", attempts: 0 });
    await expect.poll(async () => (await deliveries(endpoint)).data[0]?.status, { timeout: 10_000 }).toBe("delivered");
    await client.post(path, {});
    await next(endpoint, 3);

    expect(receivedBy(endpoint).map(({ headers }) => headers["webhook-id"])).toEqual([id, id, id]);
    expect(new Set(receivedBy(endpoint).map(({ body }) => body)).size).toBe(1);
  });

  it("is paged, newest first", async () => {
    const endpoint = await createEndpoint(["usage.recorded"]);
    for (let count = 0; count < 3; count += 1) await client.post("/v1/chat/completions", { ...CHAT, model: "acme/free" });
    await next(endpoint, 3);

    const all = await deliveries(endpoint);
    const first = await deliveries(endpoint, "?limit=2");
    const second = await deliveries(endpoint, `?limit=2&cursor=${first.nextCursor}`);

    expect(all.nextCursor).toBeNull();
    expect([...first.data, ...second.data].map(({ id }) => id)).toEqual(all.data.map(({ id }) => id));
    expect(first.data).toHaveLength(2);
    expect(second).toMatchObject({ nextCursor: null, hasMore: false });
    for (const query of ["?limit=0", "?limit=101", "?cursor=made-up", "?limit=x"]) {
      expectEnvelope(await client.get(`/account/webhooks/${endpoint.id}/deliveries${query}`), 400, "BAD_REQUEST");
    }
    expect((await client.get(`/account/webhooks/${endpoint.id}/deliveries?limit=100`)).status).toBe(200);
  });

  it("takes one test event at a time, and none of a disabled endpoint", async () => {
    const endpoint = await createEndpoint(["balance.low"]);
    const path = `/account/webhooks/${endpoint.id}/test`;
    clock.stop();
    const [sent, ...atOnce] = await Promise.all(Array.from({ length: 5 }, () => client.post(path, {}))).then((answers) =>
      answers.sort((one, other) => one.status - other.status),
    );
    const { id } = sent?.json() ?? {};
    expect([sent?.status, ...atOnce.map(({ status }) => status)]).toEqual([200, 429, 429, 429, 429]);

    const again = await client.post(path, {});
    expectEnvelope(again, 429, "RATE_LIMITED");
    expect(again.headers.get("retry-after")).toBe("5");
    clock.goOn();
    clock.move(5_000);
    expect((await client.post(path, {})).status).toBe(200);
    await client.request("PATCH", `/account/webhooks/${endpoint.id}`, { body: { isEnabled: false } });
    expectEnvelope(await client.post(path, {}), 409, "CONFLICT");
    expectEnvelope(await client.post(`/account/webhooks/${endpoint.id}/deliveries/${id}/redeliver`, {}), 409, "CONFLICT");
  });
});

describe("the threshold", () => {
  it.each([
    [{}],
    [{ threshold: -1 }],
    [{ threshold: "1" }],
    [{ threshold: 1e10 }],
    [{ threshold: 0.0000000001 }],
    [{ threshold: 1, more: 1 }],
  ])("refuses %j", async (body) => {
    expectEnvelope(await client.request("PATCH", "/account/balance/threshold", { body }), 400, "BAD_REQUEST");
  });

  it.each([0, 0.000000001, 1e9, null])("takes %d", async (threshold) => {
    const answer = await client.request("PATCH", "/account/balance/threshold", { body: { threshold } });

    expect(answer.status).toBe(200);
    expect((await client.get("/api/account/balance/threshold")).json()).toMatchObject({ threshold });
  });
});

describe("refusals", () => {
  const OPERATIONS: readonly (readonly [method: string, path: string, body?: object])[] = [
    ["GET", "/account/webhooks"],
    ["POST", "/account/webhooks", { url: "https://example.com/", events: ["balance.low"] }],
    ["PATCH", "/account/webhooks/ID", { isEnabled: false }],
    ["DELETE", "/account/webhooks/ID"],
    ["POST", "/account/webhooks/ID/rotate-secret"],
    ["POST", "/account/webhooks/ID/test"],
    ["GET", "/account/webhooks/ID/deliveries"],
    ["POST", "/account/webhooks/ID/deliveries/DELIVERY/redeliver"],
    ["PATCH", "/account/balance/threshold", { threshold: 1 }],
  ];

  let endpoint: Endpoint;
  let deliveryId: string;
  let without: CreatedKey;
  let publishable: CreatedKey;
  const ask = (method: string, path: string, body: unknown, key: string | null): Promise<Answer> =>
    client.request(method, path.replace("ID", endpoint.id).replace("DELIVERY", deliveryId), { key, ...(body !== undefined && { body }) });

  beforeEach(async () => {
    endpoint = await createEndpoint(["balance.low"]);
    const test = await client.post(`/account/webhooks/${endpoint.id}/test`, {});
    deliveryId = String(test.json().id);
  });

  beforeAll(async () => {
    without = await createKey(app, { accountPermissions: ["balance", "usage", "profile"] });
    publishable = await createKey(app, { type: "publishable", accountPermissions: ["balance"] });
  });

  it.each(OPERATIONS.map(([method, path, body]) => ({ method, path, body })))("$method $path", async ({ method, path, body }) => {
    expectEnvelope(await ask(method, path, body, null), 401, "UNAUTHORIZED");
    expectEnvelope(await ask(method, path, body, without.key), 403, "FORBIDDEN");
    expectEnvelope(await ask(method, path, body, publishable.key), 403, "FORBIDDEN");
    // Another account, with every permission on its own.
    if (path.includes("ID")) expectEnvelope(await ask(method, path, body, app.key), 404, "NOT_FOUND");
    expect((await client.get("/account/webhooks")).json<{ data: { isEnabled: boolean }[] }>().data).toMatchObject([{ isEnabled: true }]);
  });

  it("GET /account/balance/threshold needs the permission balance", async () => {
    const other = await createKey(app, { accountPermissions: ["usage"] });
    const allowed = await createKey(app, { accountPermissions: ["balance"] });

    expectEnvelope(await client.get("/account/balance/threshold", { key: null }), 401, "UNAUTHORIZED");
    expectEnvelope(await client.get("/account/balance/threshold", { key: other.key }), 403, "FORBIDDEN");
    expect((await client.get("/account/balance/threshold", { key: allowed.key })).status).toBe(200);
  });

  it.each(["not-an-id", UNKNOWN, "%00"])("an endpoint or a delivery called %s", async (id) => {
    for (const path of [`/account/webhooks/${id}/test`, `/account/webhooks/${endpoint.id}/deliveries/${id}/redeliver`]) {
      const answer = await client.post(path, {});
      expect(answer.status).toBe(id === "%00" ? 400 : 404);
    }
  });
});
