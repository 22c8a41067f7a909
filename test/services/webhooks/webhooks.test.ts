/** How webhooks are delivered: signed, tried again, bounded, through the outbound guard, and by one of several processes. */
import { randomUUID } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  WEBHOOK_FAILING_DAYS_MAX,
  WEBHOOK_LOG_DAYS,
  WEBHOOK_PREVIOUS_SECRET_HOURS,
  WEBHOOK_RETRY_DELAYS_MS,
  WEBHOOK_TRIES_PER_HOST_MAX,
} from "../../../src/services/webhooks/limits.js";
import type { WebhookMessage } from "../../../src/services/webhooks/messages.js";
import type { TestDatabase } from "../../support/database.js";
import { createAccount, createTestLedger } from "../../support/ledger.js";
import { createAnyTestDatabase } from "../../support/shared-database.js";
import { startWebhookReceiver, verifyWebhook, type WebhookReceiver } from "../../support/webhook-receiver.js";
import { createEndpoint, openWebhookProcess, signedIn, type WebhookProcess } from "../../support/webhooks.js";

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;

let test: TestDatabase;
let receiver: WebhookReceiver;
let accountId: string;
let closers: (() => Promise<void>)[];

beforeAll(async () => {
  test = await createAnyTestDatabase();
});
beforeEach(async () => {
  closers = [];
  receiver = await startWebhookReceiver();
  closers.push(receiver.close);
  await test.database.prisma.webhookEndpoint.deleteMany();
  accountId = await createAccount(test.database.pool, createTestLedger(test.database));
});
afterEach(async () => {
  for (const close of closers.reverse()) await close();
});
afterAll(() => test.close());

async function open(options: Parameters<typeof openWebhookProcess>[1] = {}): Promise<WebhookProcess> {
  const process = await openWebhookProcess(test.database, options);
  closers.push(process.close);
  return process;
}

function message(more: Partial<WebhookMessage> = {}): WebhookMessage {
  return { event: "usage.recorded", key: randomUUID(), timestamp: new Date(), data: { cost_usd: 0.000012 }, ...more };
}

async function queueMessages(process: WebhookProcess, endpointId: string, count = 1): Promise<void> {
  await process.queue.add(Array.from({ length: count }, () => ({ endpointId, message: message() })));
  process.webhookWork.dispatcher.wake();
}

async function deliveriesOf(endpointId: string) {
  return test.database.prisma.webhookDelivery.findMany({ where: { endpointId }, orderBy: { createdAt: "asc" } });
}

async function onlyDelivery(endpointId: string) {
  const [delivery, ...others] = await deliveriesOf(endpointId);
  if (!delivery || others.length > 0) throw new Error(`${others.length + (delivery ? 1 : 0)} deliveries instead of one`);
  return delivery;
}

function endpointOf(id: string) {
  return test.database.prisma.webhookEndpoint.findUniqueOrThrow({ where: { id } });
}

describe("a message", () => {
  it("follows Standard Webhooks, and verifies with its library", async () => {
    const process = await open();
    const { id, secret } = await createEndpoint(process, accountId, `${receiver.url}?of=me`);
    const sent = message();

    await process.queue.add([{ endpointId: id, message: sent }]);
    await process.settled();

    const [webhook] = receiver.received;
    const delivery = await onlyDelivery(id);
    expect(webhook && verifyWebhook(secret, webhook)).toEqual({
      type: "usage.recorded",
      timestamp: sent.timestamp.toISOString(),
      data: { cost_usd: 0.000012 },
    });
    expect(webhook).toMatchObject({ method: "POST", path: "/hooks?of=me", headers: { "content-type": "application/json" } });
    expect(webhook?.headers["webhook-id"]).toBe(delivery.id);
    expect(delivery).toMatchObject({ status: "delivered", attempts: 1, lastStatus: 200, lastError: null, leasedUntil: null });
  });

  it("does not verify when a byte of it is changed, nor with another endpoint's secret", async () => {
    const process = await open();
    const { id, secret } = await createEndpoint(process, accountId, receiver.url);
    const other = await createEndpoint(process, accountId, receiver.url, ["balance.low"]);
    await queueMessages(process, id);
    await process.settled();

    const [webhook] = receiver.received;
    if (!webhook) throw new Error("nothing came");
    expect(() => verifyWebhook(secret, { ...webhook, body: webhook.body.replace("0.000012", "0.000013") })).toThrow(
      "No matching signature",
    );
    expect(() => verifyWebhook(other.secret, webhook)).toThrow("No matching signature");
  });

  it("is queued once for an endpoint, however often it is noticed", async () => {
    const process = await open();
    const { id } = await createEndpoint(process, accountId, receiver.url);
    const same = { endpointId: id, message: message() };

    const added = [await process.queue.add([same, same]), await process.queue.add([same])];
    await process.settled();

    expect(added).toEqual([1, 0]);
    expect(receiver.received).toHaveLength(1);
  });

  it("is skipped when its endpoint has been deleted meanwhile", async () => {
    const process = await open();
    const { id } = await createEndpoint(process, accountId, receiver.url);
    await process.webhooks.deleteEndpoint(signedIn(accountId), id);

    expect(await process.queue.add([{ endpointId: id, message: message() }])).toBe(0);
  });
});

describe("a failed attempt", () => {
  it("is repeated at growing intervals under the same id, with a fresh signature each time, until the delivery has failed", async () => {
    receiver.answer = 500;
    const process = await open();
    process.clock.stop();
    const { id, secret } = await createEndpoint(process, accountId, receiver.url);
    await queueMessages(process, id);
    await process.settled();

    for (const [index, delay] of WEBHOOK_RETRY_DELAYS_MS.entries()) {
      const tries = index + 1;
      expect(receiver.received).toHaveLength(tries);
      expect(await onlyDelivery(id)).toMatchObject({ status: "pending", attempts: tries, lastStatus: 500, finishedAt: null });
      // A millisecond before it is due, nothing is sent.
      process.clock.move(delay - 1);
      await process.settled();
      expect(receiver.received).toHaveLength(tries);
      process.clock.move(1);
      await process.settled();
    }

    expect(await onlyDelivery(id)).toMatchObject({ status: "failed", attempts: WEBHOOK_RETRY_DELAYS_MS.length + 1 });
    expect((await onlyDelivery(id)).finishedAt).not.toBeNull();
    expect(new Set(receiver.received.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
    expect(new Set(receiver.received.map(({ headers }) => headers["webhook-timestamp"])).size).toBe(receiver.received.length);
    expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1);
    const [first] = receiver.received;
    expect(first && verifyWebhook(secret, first).type).toBe("usage.recorded");
    process.clock.move(30 * DAY_MS);
    await process.settled();
    expect(receiver.received).toHaveLength(WEBHOOK_RETRY_DELAYS_MS.length + 1);
  });

  it("is forgotten once a later one succeeds", async () => {
    receiver.answer = 503;
    const process = await open();
    const { id } = await createEndpoint(process, accountId, receiver.url);
    await queueMessages(process, id);
    await process.settled();
    expect((await endpointOf(id)).failingSince).not.toBeNull();

    receiver.answer = 204;
    process.clock.move(WEBHOOK_RETRY_DELAYS_MS[0] ?? 0);
    await process.settled();

    expect(await onlyDelivery(id)).toMatchObject({ status: "delivered", attempts: 2, lastStatus: 204, lastError: null });
    expect((await endpointOf(id)).failingSince).toBeNull();
  });

  it("is one without an answer in time", async () => {
    receiver.answer = () => undefined;
    const process = await open({ timeoutMs: 200 });
    const { id } = await createEndpoint(process, accountId, receiver.url);
    await queueMessages(process, id);
    await process.settled();

    expect(await onlyDelivery(id)).toMatchObject({ status: "pending", lastStatus: null, lastError: "No answer within 200 ms." });
  });

  it("is one with a redirect, which is not followed", async () => {
    const elsewhere = await startWebhookReceiver();
    closers.push(elsewhere.close);
    receiver.answer = (response) => response.writeHead(307, { location: elsewhere.url }).end();
    const process = await open();
    const { id } = await createEndpoint(process, accountId, receiver.url);
    await queueMessages(process, id);
    await process.settled();

    expect(elsewhere.received).toEqual([]);
    expect(await onlyDelivery(id)).toMatchObject({
      status: "pending",
      lastStatus: 307,
      lastError: expect.stringContaining("not followed"),
    });
  });

  it.each([200, 299])("is none with the status %i", async (status) => {
    receiver.answer = status;
    const process = await open();
    const { id } = await createEndpoint(process, accountId, receiver.url);
    await queueMessages(process, id);
    await process.settled();

    expect(await onlyDelivery(id)).toMatchObject({ status: "delivered", lastStatus: status });
  });

  it.each([300, 400, 404, 429, 599])("is one with the status %i", async (status) => {
    receiver.answer = status;
    const process = await open();
    const { id } = await createEndpoint(process, accountId, receiver.url);
    await queueMessages(process, id);
    await process.settled();

    expect(await onlyDelivery(id)).toMatchObject({ status: "pending", lastStatus: status, attempts: 1 });
  });
});

describe("a receiver", () => {
  it("may answer without end: only the status is of interest", async () => {
    let isCut = false;
    receiver.answer = (response) => {
      response.once("close", () => {
        isCut = true;
      });
      const write = () => {
        while (!response.destroyed && response.write(Buffer.alloc(64 * 1024)));
      };
      response.writeHead(200).on("drain", write);
      write();
    };
    const process = await open();
    const { id } = await createEndpoint(process, accountId, receiver.url);
    await queueMessages(process, id);
    await process.settled();

    expect(await onlyDelivery(id)).toMatchObject({ status: "delivered", lastStatus: 200 });
    await expect.poll(() => isCut, { timeout: 10_000 }).toBe(true);
  });

  it("may answer 10 MB", async () => {
    receiver.answer = (response) => response.writeHead(200, { "content-length": 10_000_000 }).end(Buffer.alloc(10_000_000));
    const process = await open();
    const { id } = await createEndpoint(process, accountId, receiver.url);
    await queueMessages(process, id, 3);
    await process.settled();

    expect((await deliveriesOf(id)).map(({ status }) => status)).toEqual(["delivered", "delivered", "delivered"]);
  });

  it("that is gone (410) gets no more requests, and its waiting deliveries have failed", async () => {
    receiver.answer = 500;
    const process = await open();
    const { id } = await createEndpoint(process, accountId, receiver.url);
    await queueMessages(process, id, 2);
    await process.settled();
    receiver.answer = 410;
    process.clock.move(WEBHOOK_RETRY_DELAYS_MS[0] ?? 0);
    await process.settled();

    expect(await endpointOf(id)).toMatchObject({ isEnabled: false, disabledReason: "gone" });
    expect((await deliveriesOf(id)).map(({ status }) => status)).toEqual(["failed", "failed"]);
    const asked = receiver.received.length;
    await queueMessages(process, id);
    await process.settled();
    expect(receiver.received).toHaveLength(asked);
  });

  it("at which every attempt fails is disabled after some days, and not a moment before", async () => {
    receiver.answer = 500;
    const process = await open();
    const { id } = await createEndpoint(process, accountId, receiver.url);
    await queueMessages(process, id);
    await process.settled();
    await test.database.prisma.webhookEndpoint.update({
      where: { id },
      data: { failingSince: new Date(process.clock.now().getTime() - WEBHOOK_FAILING_DAYS_MAX * DAY_MS + HOUR_MS) },
    });

    await queueMessages(process, id);
    await process.settled();
    expect(await endpointOf(id)).toMatchObject({ isEnabled: true });
    process.clock.move(HOUR_MS);
    await process.settled();

    expect(await endpointOf(id)).toMatchObject({ isEnabled: false, disabledReason: "failing" });
    expect((await deliveriesOf(id)).every(({ status }) => status === "failed")).toBe(true);
  });

  it("that hangs has a few attempts at once, and delays no other", async () => {
    const quick = await startWebhookReceiver();
    closers.push(quick.close);
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    receiver.answer = (response) => void released.then(() => response.writeHead(200).end());
    const process = await open();
    const slow = await createEndpoint(process, accountId, receiver.url);
    const other = await createEndpoint(process, accountId, quick.url);

    await queueMessages(process, slow.id, 3 * WEBHOOK_TRIES_PER_HOST_MAX);
    await expect.poll(() => receiver.received.length, { timeout: 10_000 }).toBe(WEBHOOK_TRIES_PER_HOST_MAX);
    await queueMessages(process, other.id, 10);
    await expect.poll(() => quick.received.length, { timeout: 10_000 }).toBe(10);

    expect(receiver.received).toHaveLength(WEBHOOK_TRIES_PER_HOST_MAX);
    release();
    await process.settled();
    expect(receiver.received).toHaveLength(3 * WEBHOOK_TRIES_PER_HOST_MAX);
    expect(receiver.openMax).toBe(WEBHOOK_TRIES_PER_HOST_MAX);
  });
});

describe("the outbound guard", () => {
  it("refuses a private address at the registration", async () => {
    const process = await open({ outbound: { allowHosts: [], resolve: async () => [{ address: "10.0.0.7", family: 4 }] } });
    const create = (url: string) => createEndpoint(process, accountId, url);

    for (const url of [
      "http://example.com/",
      "https://127.0.0.1/",
      "https://[::1]/",
      "https://intern.example/",
      "https://u:p@example.com/",
    ]) {
      await expect(create(url), url).rejects.toMatchObject({ code: "BAD_REQUEST", param: "url" });
    }
  });

  it("refuses an address that has become private, at each attempt", async () => {
    let address = "93.184.215.14";
    const resolve = async () => [{ address, family: 4 }];
    const process = await open({ outbound: { allowHosts: [], resolve } });
    const { id } = await createEndpoint(process, accountId, `https://hooks.example:${receiver.port}/`);
    address = "127.0.0.1";

    await queueMessages(process, id);
    await process.settled();

    expect(receiver.received).toEqual([]);
    expect(await onlyDelivery(id)).toMatchObject({ lastStatus: null, lastError: expect.stringContaining("not public") });
  });

  it("judges again a host that was exempt when it was registered", async () => {
    const before = await open();
    const { id } = await createEndpoint(before, accountId, receiver.url);
    const process = await open({ outbound: { allowHosts: [] } });
    await queueMessages(process, id);
    await process.settled();

    expect(await onlyDelivery(id)).toMatchObject({ lastStatus: null, lastError: "The URL must be https." });
    expect(receiver.received).toEqual([]);
  });
});

describe("a rotated secret", () => {
  it("signs beside the one before it for a day, and alone afterwards", async () => {
    const process = await open();
    const { id, secret } = await createEndpoint(process, accountId, receiver.url);
    const rotated = await process.webhooks.rotateSecret(signedIn(accountId), id);
    await queueMessages(process, id);
    await process.settled();
    process.clock.move(WEBHOOK_PREVIOUS_SECRET_HOURS * HOUR_MS);
    await queueMessages(process, id);
    await process.settled();

    const [both, alone] = receiver.received;
    if (!both || !alone) throw new Error("two messages were expected");
    expect(rotated.secret).not.toBe(secret);
    expect([verifyWebhook(secret, both).type, verifyWebhook(rotated.secret, both).type]).toEqual(["usage.recorded", "usage.recorded"]);
    const sentAt = new Date(Number(alone.headers["webhook-timestamp"]) * 1000);
    const signature = new Webhook(rotated.secret).sign(String(alone.headers["webhook-id"]), sentAt, alone.body);
    expect(alone.headers["webhook-signature"]).toBe(signature);
    expect(String(both.headers["webhook-signature"]).split(" ")).toHaveLength(2);
  });

  it("is stored sealed, for its own row only", async () => {
    const process = await open();
    const first = await createEndpoint(process, accountId, receiver.url);
    const second = await createEndpoint(process, accountId, receiver.url);
    const stored = await endpointOf(first.id);
    expect(Buffer.from(stored.secret).includes(first.secret)).toBe(false);

    await test.database.prisma.webhookEndpoint.update({ where: { id: second.id }, data: { secret: stored.secret } });
    await queueMessages(process, second.id);
    await process.settled();

    expect(receiver.received).toEqual([]);
    expect(await onlyDelivery(second.id)).toMatchObject({ lastError: "The message could not be signed." });
  });
});

describe("the delivery log", () => {
  it("deletes finished deliveries after a month, and never waiting ones", async () => {
    const process = await open();
    const { id } = await createEndpoint(process, accountId, receiver.url);
    await queueMessages(process, id);
    await process.settled();
    receiver.answer = 500;
    await queueMessages(process, id);
    await process.settled();

    process.clock.move(WEBHOOK_LOG_DAYS * DAY_MS - HOUR_MS);
    expect(await process.queue.sweep()).toBe(0);
    process.clock.move(2 * HOUR_MS);
    expect(await process.queue.sweep()).toBe(1);

    expect((await deliveriesOf(id)).map(({ status }) => status)).toEqual(["pending"]);
  });
});
