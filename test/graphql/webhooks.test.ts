/** Webhooks and low balances over GraphQL. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createPayer, databaseOf, type Payer } from "../e2e/money.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { startWebhookReceiver, verifyWebhook, type WebhookReceiver } from "../support/webhook-receiver.js";
import { type Answer, codes, execute, field, type Loose, TRANSPORTS } from "./client.js";

const CREDIT = 1_000_000_000n;
const ENDPOINT = "id url events isEnabled disabledReason failingSince createdAt";
const DELIVERY = "id event status attempts nextAttemptAt lastStatus lastError message createdAt finishedAt";
const CHAT = `mutation { createChatCompletion(input: { model: "acme/chat", messages: [{ role: USER, content: "Hi" }] }) { receipt { cost } } }`;

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

const ask = (query: string, variables: Record<string, unknown> = {}, key: string | null = payer.key): Promise<Answer> =>
  execute({ ...app, key }, query, variables);

async function createEndpoint(events: string): Promise<{ id: string; secret: string }> {
  const query = `mutation($url: String!) { createWebhookEndpoint(input: { url: $url, events: [${events}] }) { endpoint { ${ENDPOINT} } secret } }`;
  const { endpoint, secret } = field<{ endpoint: { id: string }; secret: string }>(
    await ask(query, { url: receiver.url }),
    "createWebhookEndpoint",
  );
  return { id: endpoint.id, secret };
}

async function newestDelivery(endpointId: string): Promise<Loose | undefined> {
  const query = `query($id: ID!) { webhookDeliveries(endpointId: $id, first: 1) { edges { node { ${DELIVERY} } } } }`;
  return field(await ask(query, { id: endpointId }), "webhookDeliveries").edges?.[0]?.node;
}

describe("webhook endpoints", () => {
  it("are made, listed, changed, rotated and deleted", async () => {
    const { id, secret } = await createEndpoint("USAGE_RECORDED, API_KEY_CREATED");
    const list = `{ webhookEndpoints { ${ENDPOINT} } }`;
    const change = `mutation($id: ID!) { updateWebhookEndpoint(input: { id: $id, events: [BALANCE_LOW], isEnabled: false }) { events isEnabled } }`;
    const rotate = `mutation($id: ID!) { rotateWebhookSecret(input: { id: $id }) { endpoint { id } secret } }`;
    const remove = `mutation($id: ID!) { deleteWebhookEndpoint(input: { id: $id }) { id } }`;

    expect(field(await ask(list), "webhookEndpoints")).toEqual([
      {
        ...{ id, url: receiver.url, events: ["USAGE_RECORDED", "API_KEY_CREATED"], isEnabled: true },
        ...{ disabledReason: null, failingSince: null, createdAt: expect.any(String) },
      },
    ]);
    expect(field(await ask(change, { id }), "updateWebhookEndpoint")).toEqual({ events: ["BALANCE_LOW"], isEnabled: false });
    const rotated = field<{ secret: string }>(await ask(rotate, { id }), "rotateWebhookSecret");
    expect(rotated).toEqual({ endpoint: { id }, secret: expect.stringMatching(/^whsec_/) });
    expect(rotated.secret).not.toBe(secret);
    expect(field(await ask(remove, { id }), "deleteWebhookEndpoint")).toEqual({ id });
    expect(field(await ask(list), "webhookEndpoints")).toEqual([]);
  });

  it("are told, and their log shows how it went and sends anew", async () => {
    const { id, secret } = await createEndpoint("USAGE_RECORDED");
    const before = receiver.received.length;
    const again = `mutation($id: ID!, $delivery: ID!) { redeliverWebhook(input: { endpointId: $id, deliveryId: $delivery }) { id status attempts } }`;

    const cost = Number(field<{ receipt: { cost: string } }>(await ask(CHAT), "createChatCompletion").receipt.cost);
    await expect.poll(async () => (await newestDelivery(id))?.status, { timeout: 10_000 }).toBe("DELIVERED");
    const delivery = (await newestDelivery(id)) as unknown as { id: string; message: string };
    await ask(again, { id, delivery: delivery.id });
    await expect.poll(() => receiver.received.length, { timeout: 10_000 }).toBe(before + 2);

    const [first, second] = receiver.received.slice(before);
    expect(delivery).toMatchObject({ event: "usage.recorded", attempts: 1, nextAttemptAt: null, lastStatus: 200, lastError: null });
    expect(first && verifyWebhook(secret, first)).toEqual(JSON.parse(delivery.message));
    expect(JSON.parse(delivery.message)).toMatchObject({ type: "usage.recorded", data: { cost_usd: cost, model: "acme/chat" } });
    expect(second?.headers["webhook-id"]).toBe(delivery.id);
  });

  it("are sent a test event", async () => {
    const { id } = await createEndpoint("BALANCE_LOW");

    const sent = await ask(`mutation($id: ID!) { sendTestWebhook(input: { endpointId: $id }) { ${DELIVERY} } }`, { id });

    expect(field(sent, "sendTestWebhook")).toMatchObject({ event: "webhook.test", status: expect.toBeOneOf(["PENDING", "DELIVERED"]) });
    await expect.poll(async () => (await newestDelivery(id))?.status, { timeout: 10_000 }).toBe("DELIVERED");
  });

  it("are refused as on REST: a private URL, no events, a cursor made by hand", async () => {
    const { id } = await createEndpoint("BALANCE_LOW");
    const create = (input: string) => ask(`mutation { createWebhookEndpoint(input: { ${input} }) { secret } }`);

    const answers = [
      await create('url: "https://10.0.0.1/", events: [BALANCE_LOW]'),
      await create('url: "https://example.com/", events: []'),
      await ask(`{ webhookDeliveries(endpointId: "${id}", after: "made-up") { edges { cursor } } }`),
    ];

    expect(answers.flatMap(codes)).toEqual(["BAD_REQUEST", "BAD_REQUEST", "BAD_REQUEST"]);
    expect(answers.map(({ errors }) => errors?.[0]?.extensions.param)).toEqual(["url", "events", "after"]);
  });

  it("are nobody else's: no key, no permission, a publishable key, another account", async () => {
    const { id } = await createEndpoint("BALANCE_LOW");
    const operations = [
      "{ webhookEndpoints { id } }",
      `{ webhookDeliveries(endpointId: "${id}") { edges { cursor } } }`,
      'mutation { createWebhookEndpoint(input: { url: "https://example.com/", events: [BALANCE_LOW] }) { secret } }',
      `mutation { updateWebhookEndpoint(input: { id: "${id}", isEnabled: false }) { id } }`,
      `mutation { rotateWebhookSecret(input: { id: "${id}" }) { secret } }`,
      `mutation { sendTestWebhook(input: { endpointId: "${id}" }) { id } }`,
      `mutation { redeliverWebhook(input: { endpointId: "${id}", deliveryId: "${id}" }) { id } }`,
      `mutation { deleteWebhookEndpoint(input: { id: "${id}" }) { id } }`,
      'mutation { setLowBalanceThreshold(input: { threshold: "1" }) { threshold } }',
    ];
    const keyWith = async (input: string) =>
      field<{ key: string }>(await ask(`mutation { createApiKey(input: { name: "k", ${input} }) { key } }`), "createApiKey").key;
    const without = await keyWith("accountPermissions: [BALANCE, USAGE]");
    const publishable = await keyWith("type: PUBLISHABLE, accountPermissions: [BALANCE]");

    for (const operation of operations) {
      expect(codes(await ask(operation, {}, null)), operation).toEqual(["UNAUTHORIZED"]);
      expect(codes(await ask(operation, {}, without)), operation).toEqual(["FORBIDDEN"]);
      expect(codes(await ask(operation, {}, publishable)), operation).toEqual(["FORBIDDEN"]);
      if (operation.includes(id)) expect(codes(await ask(operation, {}, app.key)), operation).toEqual(["NOT_FOUND"]);
    }
    expect(field(await ask("{ webhookEndpoints { id isEnabled } }"), "webhookEndpoints")).toEqual([{ id, isEnabled: true }]);
  });
});

/** Resolves when a fall of the balance has been told to whoever listens. */
async function fallOnce(): Promise<void> {
  const setThreshold = "mutation($t: Credits) { setLowBalanceThreshold(input: { threshold: $t }) { threshold } }";
  await ask(setThreshold, { t: null });
  const { balance } = field<{ balance: { available: string } }>(await ask("{ me { balance { available } } }"), "me");
  await ask(setThreshold, { t: balance.available });
  await ask(CHAT);
  const { prisma } = databaseOf(app);
  const told = { id: payer.accountId, isLowBalanceTold: true, lowBalanceSince: { not: null } };
  await expect.poll(() => prisma.account.count({ where: told }), { timeout: 10_000 }).toBe(1);
}

describe("the low balance", () => {
  it("is shown in me, for the permission BALANCE", async () => {
    const set = await ask('mutation { setLowBalanceThreshold(input: { threshold: "2.5" }) { threshold since } }');

    expect(field(set, "setLowBalanceThreshold")).toEqual({ threshold: "2.5", since: expect.any(String) });
    expect(field(await ask("{ me { lowBalance { threshold since } } }"), "me").lowBalance).toEqual(field(set, "setLowBalanceThreshold"));
    const none = await ask("mutation { setLowBalanceThreshold(input: { threshold: null }) { threshold since } }");
    expect(field(none, "setLowBalanceThreshold")).toEqual({ threshold: null, since: null });
    await databaseOf(app).prisma.apiKey.update({ where: { id: payer.apiKeyId }, data: { permissions: ["usage", "keys"] } });
    app.infrastructure.events.publish("api-key-changed", { apiKeyId: payer.apiKeyId });
    expect(codes(await ask("{ me { lowBalance { threshold } } }"))).toEqual(["FORBIDDEN"]);
  });

  it.each([null, "-1", "1.0000000001", "1000000001"])("takes no threshold of %s that is not an amount", async (threshold) => {
    const answer = await ask("mutation($t: Credits) { setLowBalanceThreshold(input: { threshold: $t }) { threshold } }", { t: threshold });

    if (threshold === null) expect(field(answer, "setLowBalanceThreshold")).toEqual({ threshold: null });
    else expect(answer.errors?.length).toBe(1);
  });

  it.each(TRANSPORTS)("is told live when the balance falls, over %s", async (_name, subscribe) => {
    const live = subscribe({ ...app, key: payer.key }, { query: "subscription { balanceLow { balance threshold since } }" });
    let fall: Answer | null | undefined;
    void live.next().then((answer) => {
      fall = answer;
    });

    // A subscription begins at no moment that a test could see: the balance falls again and again until one fall is told.
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

    const told = field<{ balance: string; threshold: string; since: string }>(fall, "balanceLow");
    expect(Number(told.balance)).toBeLessThan(Number(told.threshold));
    expect(told.since).toMatch(/^\d{4}-.*Z$/);
  });

  it.each(TRANSPORTS)("is told to the permission BALANCE only, over %s", async (_name, subscribe) => {
    const query = "subscription { balanceLow { balance } }";
    const created = await ask('mutation { createApiKey(input: { name: "k", accountPermissions: [USAGE] }) { key } }');
    const { key } = field<{ key: string }>(created, "createApiKey");

    const answers = [await subscribe({ ...app, key }, { query }).rest(), await subscribe({ ...app, key: null }, { query }).rest()];

    expect(answers.flat().flatMap(codes)).toEqual(["FORBIDDEN", "UNAUTHORIZED"]);
  });
});
