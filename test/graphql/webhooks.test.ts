/** Webhooks and low balances over GraphQL. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createPayer, databaseOf, type Payer } from "../e2e/money.js";
import {
  BalanceLowDocument,
  type BalanceLowSubscription,
  ChatReceiptDocument,
  CreateApiKeyDocument,
  type CreateApiKeyInput,
  CreateWebhookEndpointDocument,
  type CreateWebhookEndpointInput,
  DeleteWebhookEndpointDocument,
  MyBalanceDocument,
  MyLowBalanceDocument,
  MyWebhookEndpointsDocument,
  NodeByIdDocument,
  RedeliverWebhookDocument,
  RotateWebhookSecretDocument,
  SendTestWebhookDocument,
  SetLowBalanceThresholdDocument,
  UpdateWebhookEndpointDocument,
  WebhookDeliveriesOfDocument,
  type WebhookEvent,
} from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { startWebhookReceiver, verifyWebhook, type WebhookReceiver } from "../support/webhook-receiver.js";
import { type Answer, codes, execute, ok, type Target, TRANSPORTS } from "./client.js";

const CREDIT = 1_000_000_000n;

let app: TestApp;
let receiver: WebhookReceiver;
let payer: Payer;

beforeAll(async () => {
  [app, receiver] = await Promise.all([createTestApp({ config: { upstreamAllowHosts: ["127.0.0.1"] } }), startWebhookReceiver()]);
});
beforeEach(async () => {
  payer = await createPayer(app, { tier: CREDIT, pack: CREDIT });
  await databaseOf(app).prisma.apiKey.update({ where: { id: payer.apiKeyId }, data: { permissions: ["balance", "usage", "keys"] } });
});
afterAll(async () => {
  await app.close();
  await receiver.close();
});

const asPayer = () => ({ ...app, key: payer.key });

async function createEndpoint(...events: WebhookEvent[]): Promise<{ id: string; restId: string; secret: string }> {
  const made = ok(await execute(asPayer(), CreateWebhookEndpointDocument, { input: { url: receiver.url, events } }));
  const { webhookEndpoint, secret } = made.createWebhookEndpoint;
  return { id: webhookEndpoint.id, restId: webhookEndpoint.restId, secret };
}

async function newestDelivery(endpointId: string) {
  const { node } = ok(await execute(asPayer(), WebhookDeliveriesOfDocument, { endpointId, first: 1 }));
  return node.__typename === "WebhookEndpoint" ? node.deliveries?.nodes[0] : undefined;
}

describe("webhook endpoints", () => {
  it("are made, listed, changed, rotated and deleted", async () => {
    const { id, restId, secret } = await createEndpoint("USAGE_RECORDED", "API_KEY_CREATED");
    const listed = async () => ok(await execute(asPayer(), MyWebhookEndpointsDocument)).me.webhookEndpoints;

    expect(await listed()).toEqual({
      totalCount: 1,
      nodes: [
        {
          ...{ id, restId, url: receiver.url, events: ["USAGE_RECORDED", "API_KEY_CREATED"], isEnabled: true },
          ...{ disabledReason: null, failingSince: null, createdAt: expect.any(String), deliveries: { totalCount: 0, nodes: [] } },
        },
      ],
    });
    const changed = ok(
      await execute(asPayer(), UpdateWebhookEndpointDocument, { input: { id, events: ["BALANCE_LOW"], isEnabled: false } }),
    );
    expect(changed.updateWebhookEndpoint.webhookEndpoint).toEqual({ events: ["BALANCE_LOW"], isEnabled: false });
    const rotated = ok(await execute(asPayer(), RotateWebhookSecretDocument, { id })).rotateWebhookSecret;
    expect(rotated).toEqual({ webhookEndpoint: { restId }, secret: expect.stringMatching(/^whsec_/) });
    expect(rotated.secret).not.toBe(secret);
    expect(ok(await execute(asPayer(), DeleteWebhookEndpointDocument, { id })).deleteWebhookEndpoint).toEqual({ deletedId: restId });
    expect(await listed()).toEqual({ totalCount: 0, nodes: [] });
  });

  it("get events, and their log shows the attempts and sends again", async () => {
    const { id, secret } = await createEndpoint("USAGE_RECORDED");
    const before = receiver.received.length;

    const cost = Number(ok(await execute(asPayer(), ChatReceiptDocument)).createChatCompletion.receipt.cost);
    await expect.poll(async () => (await newestDelivery(id))?.status, { timeout: 10_000 }).toBe("DELIVERED");
    const delivery = await newestDelivery(id);
    if (!delivery) throw new Error("Nothing was sent.");
    ok(await execute(asPayer(), RedeliverWebhookDocument, { endpointId: id, deliveryId: delivery.id }));
    await expect.poll(() => receiver.received.length, { timeout: 10_000 }).toBe(before + 2);

    const [first, second] = receiver.received.slice(before);
    expect(delivery).toMatchObject({ event: "usage.recorded", attempts: 1, nextAttemptAt: null, lastStatus: 200, lastError: null });
    expect(delivery.endpoint).toEqual({ url: receiver.url });
    expect(first && verifyWebhook(secret, first)).toEqual(JSON.parse(delivery.message));
    expect(JSON.parse(delivery.message)).toMatchObject({ type: "usage.recorded", data: { cost_usd: cost, model: "acme/chat" } });
    expect(second?.headers["webhook-id"]).toBe(delivery.restId);
    const found = ok(await execute(asPayer(), NodeByIdDocument, { id: delivery.id })).node;
    expect(found).toMatchObject({ __typename: "WebhookDelivery", restId: delivery.restId });
  });

  it("are sent a test event", async () => {
    const { id } = await createEndpoint("BALANCE_LOW");

    const sent = ok(await execute(asPayer(), SendTestWebhookDocument, { endpointId: id })).sendTestWebhook.webhookDelivery;

    expect(sent).toMatchObject({ event: "webhook.test", status: expect.toBeOneOf(["PENDING", "DELIVERED"]) });
    await expect.poll(async () => (await newestDelivery(id))?.status, { timeout: 10_000 }).toBe("DELIVERED");
  });

  it("are refused as on REST: a private URL, no events, a cursor made by hand", async () => {
    const { id } = await createEndpoint("BALANCE_LOW");
    const create = (input: CreateWebhookEndpointInput) => execute(asPayer(), CreateWebhookEndpointDocument, { input });

    const answers = [
      await create({ url: "https://10.0.0.1/", events: ["BALANCE_LOW"] }),
      await create({ url: "https://example.com/", events: [] }),
      await execute(asPayer(), WebhookDeliveriesOfDocument, { endpointId: id, after: "made-up" }),
    ];

    expect(answers.flatMap(codes)).toEqual(["BAD_REQUEST", "BAD_REQUEST", "BAD_REQUEST"]);
    expect(answers.map(({ errors }) => errors?.[0]?.extensions.param)).toEqual(["url", "events", "after"]);
  });

  it("are hidden from callers without a key or the permission, publishable keys and other accounts", async () => {
    const { id, restId } = await createEndpoint("BALANCE_LOW");
    const own: ((target: Target) => Promise<Answer<unknown>>)[] = [
      (target) => execute(target, MyWebhookEndpointsDocument),
      (target) => execute(target, CreateWebhookEndpointDocument, { input: { url: "https://example.com/", events: ["BALANCE_LOW"] } }),
      (target) => execute(target, SetLowBalanceThresholdDocument, { threshold: "1" }),
    ];
    const ofTheEndpoint: ((target: Target) => Promise<Answer<unknown>>)[] = [
      (target) => execute(target, UpdateWebhookEndpointDocument, { input: { id, isEnabled: false } }),
      (target) => execute(target, RotateWebhookSecretDocument, { id }),
      (target) => execute(target, SendTestWebhookDocument, { endpointId: id }),
      (target) => execute(target, RedeliverWebhookDocument, { endpointId: id, deliveryId: restId }),
      (target) => execute(target, DeleteWebhookEndpointDocument, { id }),
    ];
    const keyWith = async (input: Partial<CreateApiKeyInput>) =>
      ok(await execute(asPayer(), CreateApiKeyDocument, { input: { name: "k", ...input } })).createApiKey.key;
    const without = await keyWith({ accountPermissions: ["BALANCE", "USAGE"] });
    const publishable = await keyWith({ type: "PUBLISHABLE", accountPermissions: ["BALANCE"] });

    for (const ask of [...own, ...ofTheEndpoint]) {
      expect(codes(await ask({ ...app, key: null }))).toEqual(["UNAUTHORIZED"]);
      expect(codes(await ask({ ...app, key: without }))).toEqual(["FORBIDDEN"]);
      expect(codes(await ask({ ...app, key: publishable }))).toEqual(["FORBIDDEN"]);
    }
    for (const ask of ofTheEndpoint) expect(codes(await ask(app))).toEqual(["NOT_FOUND"]);
    expect(await execute(app, NodeByIdDocument, { id })).toMatchObject({ data: { node: null } });
    expect(ok(await execute(asPayer(), MyWebhookEndpointsDocument)).me.webhookEndpoints?.nodes).toMatchObject([
      { restId, isEnabled: true },
    ]);
  });
});

const setThreshold = (threshold: string | null) => execute(asPayer(), SetLowBalanceThresholdDocument, { threshold });

/** Resolves when a fall of the balance has reached the subscribers. */
async function fallOnce(): Promise<void> {
  await setThreshold(null);
  const { balance } = ok(await execute(asPayer(), MyBalanceDocument)).me;
  await setThreshold(balance?.available ?? null);
  await execute(asPayer(), ChatReceiptDocument);
  const { prisma } = databaseOf(app);
  const told = { id: payer.accountId, isLowBalanceTold: true, lowBalanceSince: { not: null } };
  await expect.poll(() => prisma.account.count({ where: told }), { timeout: 10_000 }).toBe(1);
}

describe("the low balance", () => {
  it("is shown in me, for the permission BALANCE", async () => {
    const set = ok(await setThreshold("2.5")).setLowBalanceThreshold.lowBalance;

    expect(set).toEqual({ threshold: "2.5", since: expect.any(String) });
    expect(ok(await execute(asPayer(), MyLowBalanceDocument)).me.lowBalance).toEqual(set);
    expect(ok(await setThreshold(null)).setLowBalanceThreshold.lowBalance).toEqual({ threshold: null, since: null });
    await databaseOf(app).prisma.apiKey.update({ where: { id: payer.apiKeyId }, data: { permissions: ["usage", "keys"] } });
    app.infrastructure.events.publish("api-key-changed", { ...payer, change: "updated" });
    expect(codes(await execute(asPayer(), MyLowBalanceDocument))).toEqual(["FORBIDDEN"]);
  });

  it.each(["-1", "1.0000000001", "1000000001"])("takes no threshold of %s that is not an amount", async (threshold) => {
    expect((await setThreshold(threshold)).errors).toHaveLength(1);
  });

  it.each(TRANSPORTS)("is reported live when the balance falls, over %s", async (_name, subscribe) => {
    const live = subscribe(asPayer(), BalanceLowDocument);
    let fall: Answer<BalanceLowSubscription> | null | undefined;
    void live.next().then((answer) => {
      fall = answer;
    });

    // The start of a subscription cannot be observed: the balance falls until one fall is reported.
    await expect
      .poll(
        async () => {
          await fallOnce();
          return fall !== undefined;
        },
        { timeout: 30_000, interval: 20 },
      )
      .toBe(true);
    live.leave();

    const told = ok(fall ?? null).balanceLow;
    expect(Number(told.balance)).toBeLessThan(Number(told.threshold));
    expect(told.since).toMatch(/^\d{4}-.*Z$/);
  });

  it.each(TRANSPORTS)("is reported with the permission BALANCE only, over %s", async (_name, subscribe) => {
    const created = await execute(asPayer(), CreateApiKeyDocument, { input: { name: "k", accountPermissions: ["USAGE"] } });
    const { key } = ok(created).createApiKey;

    const answers = [
      await subscribe({ ...app, key }, BalanceLowDocument).rest(),
      await subscribe({ ...app, key: null }, BalanceLowDocument).rest(),
    ];

    expect(answers.flat().flatMap(codes)).toEqual(["FORBIDDEN", "UNAUTHORIZED"]);
  });
});
