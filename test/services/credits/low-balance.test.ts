/** Reports a balance below the account's threshold once for each fall. */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createMemoryEvents, type EventChannels, type Events } from "../../../src/store/events.js";
import { silentLog, type TestDatabase } from "../../support/database.js";
import { createPayer, createTestLedger, settle, type TestPayer } from "../../support/ledger.js";
import { DATABASE_KINDS } from "../../support/shared-database.js";
import { startWebhookReceiver, verifyWebhook, type WebhookReceiver } from "../../support/webhook-receiver.js";
import { createEndpoint, openWebhookProcess, signedIn, type WebhookProcess } from "../../support/webhooks.js";

const CREDIT = 1_000_000_000n;

describe.each(DATABASE_KINDS)("low balances on $name", (kind) => {
  let test: TestDatabase;
  let receiver: WebhookReceiver;
  let events: Events;
  let told: EventChannels["balance-low"][];
  let payer: TestPayer;
  let processes: WebhookProcess[];

  if (!kind.isAbsent) {
    beforeAll(async () => {
      [test, receiver] = await Promise.all([kind.open(), startWebhookReceiver()]);
    });
    beforeEach(async () => {
      processes = [];
      told = [];
      events = createMemoryEvents(silentLog);
      events.listen("balance-low", (event) => told.push(event));
      payer = await createPayer(test.database.pool, createTestLedger(test.database), { tier: CREDIT, pack: CREDIT });
    });
    afterEach(async () => {
      for (const process of processes) await process.close();
    });
    afterAll(async () => {
      await receiver.close();
      await test.close();
    });
  }

  const it_ = it.skipIf(kind.isAbsent);

  async function open(options: Parameters<typeof openWebhookProcess>[1] = {}): Promise<WebhookProcess> {
    const process = await openWebhookProcess(test.database, { events, ...options });
    processes.push(process);
    return process;
  }

  const setThreshold = (process: WebhookProcess, threshold: bigint | null) =>
    process.lowBalance.setThreshold(signedIn(payer.accountId), { threshold });
  const state = (process: WebhookProcess) => process.lowBalance.get(signedIn(payer.accountId));

  async function charge(amount: bigint): Promise<void> {
    await createTestLedger(test.database).flush([settle(payer, amount)]);
    events.publish("balance-changed", { accountId: payer.accountId });
  }

  async function grant(amount: bigint): Promise<void> {
    const { accountId } = payer;
    await createTestLedger(test.database).grant({ id: randomUUID(), accountId, bucket: "pack", amount, note: null });
    events.publish("balance-changed", { accountId });
  }

  const untold = () => test.database.prisma.account.count({ where: { isLowBalanceTold: false } });
  /** Waits until every due report is sent. */
  const allTold = () => expect.poll(untold, { timeout: 10_000 }).toBe(0);
  const toldOnes = () => expect.poll(() => told.map(({ balance, threshold }) => [BigInt(balance), BigInt(threshold)]), { timeout: 10_000 });

  it_("are sent when the sum of the buckets falls below the threshold, not when it reaches it", async () => {
    const process = await open();
    await setThreshold(process, CREDIT);

    await charge(CREDIT);
    expect([await untold(), (await state(process)).since]).toEqual([0, null]);
    await charge(1n);

    await toldOnes().toEqual([[CREDIT - 1n, CREDIT]]);
    expect((await state(process)).since).toBeInstanceOf(Date);
  });

  it_("are sent once for each fall, and again after the balance was up", async () => {
    const process = await open();
    await setThreshold(process, CREDIT);
    for (let round = 1; round <= 3; round += 1) {
      await charge(CREDIT + 1n);
      await toldOnes().toHaveLength(round);
      await charge(1n);
      await charge(1n);
      await allTold();
      await grant(CREDIT + 3n);
      expect((await state(process)).since).toBeNull();
    }

    expect(told).toHaveLength(3);
    expect(new Set(told.map(({ since }) => since)).size).toBe(3);
  });

  it_("are not told of when the threshold is set above the balance, but after the next fall", async () => {
    const process = await open();
    expect(await setThreshold(process, 3n * CREDIT)).toMatchObject({ threshold: 3n * CREDIT, since: expect.any(Date) });
    await charge(1n);
    expect(await untold()).toBe(0);

    await grant(2n * CREDIT);
    await charge(2n * CREDIT);

    await toldOnes().toEqual([[2n * CREDIT - 1n, 3n * CREDIT]]);
  });

  it_("are not sent without a threshold", async () => {
    const process = await open();
    await setThreshold(process, CREDIT);
    expect(await setThreshold(process, null)).toEqual({ threshold: null, since: null });

    await charge(2n * CREDIT);

    expect([await untold(), (await state(process)).since]).toEqual([0, null]);
  });

  it_("are sent by one of several processes, with one webhook", async () => {
    const all = [await open(), await open(), await open()] as const;
    const { secret } = await createEndpoint(all[0], payer.accountId, receiver.url, ["balance.low"]);
    await setThreshold(all[0], CREDIT);
    const before = receiver.received.length;

    await charge(CREDIT + CREDIT / 2n);
    await toldOnes().toEqual([[CREDIT / 2n, CREDIT]]);
    await expect.poll(() => receiver.received.length, { timeout: 10_000 }).toBe(before + 1);
    for (const process of all) await process.settled();

    const webhook = receiver.received.at(-1);
    expect(told).toHaveLength(1);
    expect(receiver.received).toHaveLength(before + 1);
    expect(webhook && verifyWebhook(secret, webhook)).toEqual({
      type: "balance.low",
      timestamp: told[0]?.since,
      data: { balance: 0.5, threshold: 1 },
    });
  });

  it_("are sent by another process when the one that charged is killed before", async () => {
    const killed = await open({ isOpen: false });
    await setThreshold(killed, CREDIT);
    await createTestLedger(test.database).flush([settle(payer, 2n * CREDIT)]);
    expect(await untold()).toBe(1);

    await open();

    await toldOnes().toEqual([[0n, CREDIT]]);
  });

  it_("are found whichever of an account's many charges at once made it fall", async () => {
    const process = await open();
    await setThreshold(process, CREDIT);

    await Promise.all(Array.from({ length: 20 }, () => charge(CREDIT / 10n)));

    await toldOnes().toHaveLength(1);
    await allTold();
    expect(told).toHaveLength(1);
  });
});
