/** What happens reaches the queue: at once when this process did it, and in any case later. */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  WEBHOOK_CATCH_UP_DAYS_MAX,
  WEBHOOK_CATCH_UP_OVERLAP_MS,
  WEBHOOK_QUEUED_AT_ONCE_MAX,
} from "../../../src/services/webhooks/limits.js";
import type { TestDatabase } from "../../support/database.js";
import { createKey, createPayer, createTestLedger, settle, type TestPayer, usageRecord } from "../../support/ledger.js";
import { createAnyTestDatabase } from "../../support/shared-database.js";
import { startWebhookReceiver, type WebhookReceiver } from "../../support/webhook-receiver.js";
import { createEndpoint, openWebhookProcess, signedIn, type WebhookProcess } from "../../support/webhooks.js";

const DAY_MS = 24 * 60 * 60 * 1000;
const HOUR_MS = 60 * 60 * 1000;

let test: TestDatabase;
let receiver: WebhookReceiver;
let payer: TestPayer;
let closers: (() => Promise<void>)[];

beforeAll(async () => {
  test = await createAnyTestDatabase();
  receiver = await startWebhookReceiver();
});
beforeEach(async () => {
  closers = [];
  await test.database.prisma.webhookEndpoint.deleteMany();
  await test.database.prisma.deploymentSetting.deleteMany();
  payer = await createPayer(test.database.pool, createTestLedger(test.database), { pack: 1_000_000n });
});
afterEach(async () => {
  for (const close of closers.reverse()) await close();
});
afterAll(async () => {
  await receiver.close();
  await test.close();
});

async function open(options: Parameters<typeof openWebhookProcess>[1] = {}): Promise<WebhookProcess> {
  const process = await openWebhookProcess(test.database, options);
  closers.push(process.close);
  return process;
}

/** Charges `count` generations like a process that is killed before it announces them. Returns their ids. */
async function charge(count: number, at: Date = new Date()): Promise<string[]> {
  const ledger = createTestLedger(test.database);
  const record = usageRecord({ timestamp: at.toISOString() });
  const operations = Array.from({ length: count }, () => settle(payer, 10n, { record }));
  for (let start = 0; start < count; start += 250) await ledger.flush(operations.slice(start, start + 250));
  return operations.map(({ id }) => id);
}

/** As if a process had looked through the books at that time, and none since. */
async function noteCaughtUp(at: Date): Promise<void> {
  const setting = { name: "webhooks-caught-up-to", value: at.toISOString() };
  await test.database.prisma.deploymentSetting.upsert({ where: { name: setting.name }, create: setting, update: setting });
}

async function queuedKeys(event = "usage.recorded"): Promise<string[]> {
  const rows = await test.database.prisma.webhookDelivery.findMany({ where: { event }, select: { eventKey: true } });
  return rows.map(({ eventKey }) => eventKey).sort();
}

describe("a charge of this process", () => {
  it("is queued for each listening endpoint once, however often it is announced", async () => {
    const process = await open();
    await createEndpoint(process, payer.accountId, receiver.url);
    const [usageId = ""] = await charge(1);

    for (let told = 0; told < 3; told += 1) process.ownEvents.publish("usage-recorded", { accountId: payer.accountId, usageId });
    await process.settled();
    process.ownEvents.publish("usage-recorded", { accountId: payer.accountId, usageId });
    await process.settled();

    expect(await queuedKeys()).toEqual([usageId]);
  });

  it("is queued for each endpoint of its account that listens to usage, and for no other", async () => {
    const process = await open();
    const stranger = await createPayer(test.database.pool, createTestLedger(test.database), {});
    const endpoints = [
      await createEndpoint(process, payer.accountId, receiver.url),
      await createEndpoint(process, payer.accountId, receiver.url),
    ];
    await createEndpoint(process, payer.accountId, receiver.url, ["balance.low", "api_key.created"]);
    await createEndpoint(process, stranger.accountId, receiver.url);
    const [usageId = ""] = await charge(1);

    process.ownEvents.publish("usage-recorded", { accountId: payer.accountId, usageId });
    await process.settled();

    const rows = await test.database.prisma.webhookDelivery.findMany({ where: { eventKey: usageId } });
    expect(rows.map(({ endpointId }) => endpointId).sort()).toEqual(endpoints.map(({ id }) => id).sort());
  });

  it("reads nothing from the database when no endpoint of its account listens", async () => {
    const process = await open();
    const stranger = await createPayer(test.database.pool, createTestLedger(test.database), {});
    await createEndpoint(process, stranger.accountId, receiver.url);
    await process.settled();
    const noticed = () => process.webhookWork.notices.noticed;

    process.ownEvents.publish("usage-recorded", { accountId: payer.accountId, usageId: randomUUID() });
    expect(noticed()).toBe(0);
    process.ownEvents.publish("usage-recorded", { accountId: stranger.accountId, usageId: randomUUID() });
    expect(noticed()).toBe(1);
  });
});

describe("a charge without an announcement", () => {
  it("is found by the next process that starts, by however many at once, and queued once", async () => {
    const before = await open();
    await createEndpoint(before, payer.accountId, receiver.url);
    await before.close();
    const ids = await charge(5);

    const processes = [await open(), await open()];
    await Promise.all(processes.map((process) => process.settled()));

    expect(await queuedKeys()).toEqual(ids.sort());
  });

  it("is found after every process was away for longer than usual", async () => {
    const before = await open();
    const { id } = await createEndpoint(before, payer.accountId, receiver.url);
    await before.close();
    const hours = (count: number) => new Date(Date.now() - count * HOUR_MS);
    await test.database.prisma.webhookEndpoint.update({ where: { id }, data: { listensSince: hours(200) } });
    await noteCaughtUp(hours(30));
    const [earlier] = await charge(1, new Date(hours(30).getTime() - WEBHOOK_CATCH_UP_OVERLAP_MS - 1_000));
    const [found = ""] = await charge(1, hours(29));

    const process = await open();
    await process.settled();

    expect(await queuedKeys()).toEqual([found]);
    expect(earlier).not.toBe(found);
  });

  it("is given up after some days", async () => {
    const before = await open();
    const { id } = await createEndpoint(before, payer.accountId, receiver.url);
    await before.close();
    const ago = (ms: number) => new Date(Date.now() - ms);
    await test.database.prisma.webhookEndpoint.update({ where: { id }, data: { listensSince: ago(30 * DAY_MS) } });
    await noteCaughtUp(ago(20 * DAY_MS));
    await charge(1, ago(WEBHOOK_CATCH_UP_DAYS_MAX * DAY_MS + HOUR_MS));
    const [within = ""] = await charge(1, ago(WEBHOOK_CATCH_UP_DAYS_MAX * DAY_MS - HOUR_MS));

    const process = await open();
    await process.settled();

    expect(await queuedKeys()).toEqual([within]);
  });

  it("is found among more than are queued at once", async () => {
    const before = await open();
    await createEndpoint(before, payer.accountId, receiver.url, ["usage.recorded"]);
    await before.close();
    await charge(2 * WEBHOOK_QUEUED_AT_ONCE_MAX + 1);

    const process = await open();
    await process.webhookWork.notices.settled();

    expect(await queuedKeys()).toHaveLength(2 * WEBHOOK_QUEUED_AT_ONCE_MAX + 1);
  });

  it("is not for an endpoint that did not listen when it happened", async () => {
    const process = await open();
    const { id } = await createEndpoint(process, payer.accountId, receiver.url);
    const ctx = signedIn(payer.accountId);
    await process.webhooks.updateEndpoint(ctx, id, { isEnabled: false });
    await charge(1);
    await process.webhooks.updateEndpoint(ctx, id, { isEnabled: true });
    const [after = ""] = await charge(1);

    process.webhookWork.notices.catchUp(HOUR_MS);
    await process.settled();

    expect(await queuedKeys()).toEqual([after]);
  });
});

describe("a key", () => {
  const EVENTS = ["api_key.created", "api_key.revoked"] as const;

  it("is announced when it is made and when it is revoked, each once", async () => {
    const process = await open();
    await createEndpoint(process, payer.accountId, receiver.url, EVENTS);
    const apiKeyId = await createKey(test.database.pool, payer.accountId, null);

    process.events.publish("api-key-changed", { accountId: payer.accountId, apiKeyId, change: "updated" });
    await process.settled();
    await test.database.prisma.apiKey.update({ where: { id: apiKeyId }, data: { revokedAt: new Date() } });
    process.events.publish("api-key-changed", { accountId: payer.accountId, apiKeyId, change: "updated" });
    process.events.publish("api-key-changed", { accountId: payer.accountId, apiKeyId, change: "updated" });
    await process.settled();

    expect([await queuedKeys("api_key.created"), await queuedKeys("api_key.revoked")]).toEqual([[apiKeyId], [apiKeyId]]);
  });

  it("is found without an announcement", async () => {
    const before = await open();
    await createEndpoint(before, payer.accountId, receiver.url, EVENTS);
    await before.close();
    const made = await createKey(test.database.pool, payer.accountId, null);
    const revoked = await createKey(test.database.pool, payer.accountId, null);
    await test.database.prisma.apiKey.update({ where: { id: revoked }, data: { revokedAt: new Date() } });

    const process = await open();
    await process.settled();

    expect(await queuedKeys("api_key.created")).toEqual([made, revoked].sort());
    expect(await queuedKeys("api_key.revoked")).toEqual([revoked]);
  });

  it("that is older than the endpoint is announced only when it is revoked", async () => {
    const process = await open();
    const apiKeyId = await createKey(test.database.pool, payer.accountId, null);
    // The endpoint may be made in the same millisecond, and gets every event from then on.
    await test.database.prisma.apiKey.update({ where: { id: apiKeyId }, data: { createdAt: new Date(Date.now() - 1_000) } });
    await createEndpoint(process, payer.accountId, receiver.url, EVENTS);
    await test.database.prisma.apiKey.update({ where: { id: apiKeyId }, data: { revokedAt: new Date() } });

    process.events.publish("api-key-changed", { accountId: payer.accountId, apiKeyId, change: "updated" });
    await process.settled();

    expect([await queuedKeys("api_key.created"), await queuedKeys("api_key.revoked")]).toEqual([[], [apiKeyId]]);
  });
});

describe("the list of listening endpoints", () => {
  it("reaches other processes as soon as they are notified", async () => {
    const first = await open();
    const second = await open({ events: first.events });
    await createEndpoint(first, payer.accountId, receiver.url);
    const [usageId = ""] = await charge(1);
    await second.webhookWork.notices.settled();

    await expect
      .poll(
        async () => {
          second.ownEvents.publish("usage-recorded", { accountId: payer.accountId, usageId });
          await second.settled();
          return queuedKeys();
        },
        { timeout: 10_000 },
      )
      .toEqual([usageId]);
  });
});
