/** Several processes on one database share the queue of webhooks. */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { WEBHOOK_LEASE_MS } from "../../../src/services/webhooks/limits.js";
import type { WebhookMessage } from "../../../src/services/webhooks/messages.js";
import type { TestDatabase } from "../../support/database.js";
import { createAccount, createTestLedger } from "../../support/ledger.js";
import { DATABASE_KINDS } from "../../support/shared-database.js";
import { startWebhookReceiver, type WebhookReceiver } from "../../support/webhook-receiver.js";
import { createEndpoint, MovedClock, openWebhookProcess, type WebhookProcess } from "../../support/webhooks.js";

describe.each(DATABASE_KINDS)("several processes on $name", (kind) => {
  let test: TestDatabase;
  let receiver: WebhookReceiver;
  let accountId: string;
  let closers: (() => Promise<void>)[];

  if (!kind.isAbsent) {
    beforeAll(async () => {
      test = await kind.open();
    });
    beforeEach(async () => {
      receiver = await startWebhookReceiver();
      closers = [receiver.close];
      await test.database.prisma.webhookEndpoint.deleteMany();
      accountId = await createAccount(test.database.pool, createTestLedger(test.database));
    });
    afterEach(async () => {
      for (const close of closers.reverse()) await close();
    });
    afterAll(() => test.close());
  }

  const it_ = it.skipIf(kind.isAbsent);

  async function open(options: Parameters<typeof openWebhookProcess>[1] = {}): Promise<WebhookProcess> {
    const process = await openWebhookProcess(test.database, options);
    closers.push(process.close);
    return process;
  }

  const message = (): WebhookMessage => ({ event: "usage.recorded", key: randomUUID(), timestamp: new Date(), data: { cost_usd: 1 } });

  function onlyDelivery(endpointId: string) {
    return test.database.prisma.webhookDelivery.findFirstOrThrow({ where: { endpointId } });
  }

  it_("deliver each message once", async () => {
    const clock = new MovedClock();
    const processes = [await open({ clock }), await open({ clock }), await open({ clock })];
    const [first] = processes;
    if (!first) throw new Error("no process");
    const { id } = await createEndpoint(first, accountId, receiver.url);

    await first.queue.add(Array.from({ length: 24 }, () => ({ endpointId: id, message: message() })));
    await Promise.all(processes.map((process) => process.settled()));
    await expect.poll(() => test.database.prisma.webhookDelivery.count({ where: { status: "pending" } }), { timeout: 10_000 }).toBe(0);

    expect(receiver.received).toHaveLength(24);
    expect(new Set(receiver.received.map(({ headers }) => headers["webhook-id"])).size).toBe(24);
    expect(
      (await test.database.prisma.webhookDelivery.findMany({ where: { endpointId: id } })).every(
        ({ attempts, status }) => attempts === 1 && status === "delivered",
      ),
    ).toBe(true);
  });

  it_("take over what one was sending when it was killed, once its lease has run out", async () => {
    const killed = await open({ isOpen: false });
    const process = await open({ clock: killed.clock });
    const { id } = await createEndpoint(process, accountId, receiver.url);
    await killed.queue.add([{ endpointId: id, message: message() }]);
    const due = await killed.queue.findDue([], 10);
    expect(await killed.queue.lease(due.map((delivery) => delivery.id))).toHaveLength(1);

    await process.settled();
    expect(receiver.received).toEqual([]);
    killed.clock.move(WEBHOOK_LEASE_MS);
    await process.settled();

    expect(receiver.received).toHaveLength(1);
    expect(await onlyDelivery(id)).toMatchObject({ status: "delivered", attempts: 2 });
  });

  it_("do not let a process that was believed dead undo what another has done", async () => {
    const late = await open({ isOpen: false });
    const process = await open({ clock: late.clock });
    const { id } = await createEndpoint(process, accountId, receiver.url);
    await late.queue.add([{ endpointId: id, message: message() }]);
    const [leased] = await late.queue.lease((await late.queue.findDue([], 10)).map((delivery) => delivery.id));
    late.clock.move(WEBHOOK_LEASE_MS);
    await process.settled();

    if (leased) await late.queue.conclude(leased, { status: 500, error: "late" });

    expect(await onlyDelivery(id)).toMatchObject({ status: "delivered", lastError: null });
  });

  it_("are left what one could not finish when it was stopped", async () => {
    receiver.answer = () => undefined;
    const stopped = await openWebhookProcess(test.database);
    const { id } = await createEndpoint(stopped, accountId, receiver.url);
    await stopped.queue.add([{ endpointId: id, message: message() }]);
    stopped.webhookWork.dispatcher.wake();
    await expect.poll(() => receiver.received.length, { timeout: 10_000 }).toBe(1);
    await stopped.close();
    expect(await onlyDelivery(id)).toMatchObject({ status: "pending", attempts: 0, leasedUntil: null });

    receiver.answer = 200;
    const process = await open();
    await process.settled();

    expect(await onlyDelivery(id)).toMatchObject({ status: "delivered", attempts: 1 });
  });
});
