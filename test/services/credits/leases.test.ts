/** Leases: their owner, the charges that they pay, and their release. */
import { randomUUID } from "node:crypto";
import type pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { HEARTBEAT_DEAD_MS, LEASE_ESTIMATES_LEAST, LEASE_IDLE_MS, METER_NOTE_MS } from "../../../src/limits.js";
import type { ChargeRequest } from "../../../src/services/credits/charge-request.js";
import type { OpenCharge } from "../../../src/services/credits/open-charge.js";
import type { Ledger } from "../../../src/store/ledger.js";
import { createTestDatabase, type TestDatabase } from "../../support/database.js";
import { findBrokenInvariants } from "../../support/invariants.js";
import {
  countHolds,
  createKey,
  createPayer,
  createTestLedger,
  readAccount,
  readEntries,
  readUsage,
  type TestPayer,
  usageRecord,
} from "../../support/ledger.js";
import { createMoneyProcess, type MoneyProcess } from "../../support/money-process.js";

let test: TestDatabase;
let pool: pg.Pool;
let ledger: Ledger;
let processes: MoneyProcess[] = [];

beforeAll(async () => {
  test = await createTestDatabase();
  pool = test.database.pool;
  ledger = createTestLedger(test.database);
});
afterEach(async () => {
  vi.useRealTimers();
  await Promise.all(processes.map((one) => one.close()));
  processes = [];
  expect(await findBrokenInvariants(pool, { isIdle: true })).toEqual({});
  expect(await leasesOf()).toEqual([]);
});
afterAll(() => test.close());

async function start(freeSpendCap: bigint | null = null): Promise<MoneyProcess> {
  const one = await createMoneyProcess(test.database, { freeSpendCap });
  processes.push(one);
  return one;
}

const payerWith = (pack: bigint, budget: bigint | null = null) => createPayer(pool, ledger, { pack }, budget);

function open(one: MoneyProcess, payer: TestPayer, estimate: bigint, more: Partial<ChargeRequest> = {}): OpenCharge {
  return one.credits.open({
    generationId: randomUUID(),
    payer: { ...payer, hasBudget: false },
    estimate,
    paidOnly: false,
    isFree: false,
    record: usageRecord({ status: "cancelled", usageSource: "partial" }),
    ...more,
  });
}

/** As any request of this payer: a lease is there afterwards, when the payer has enough for one. */
async function spend(one: MoneyProcess, payer: TestPayer, amount: bigint, more: Partial<ChargeRequest> = {}): Promise<void> {
  const charge = open(one, payer, amount, more);
  await charge.held;
  await charge.settle(amount, usageRecord());
}

async function leasesOf(accountId: string | null = null): Promise<{ id: string; pack: string; paid: string }[]> {
  const { rows } = await pool.query(
    `SELECT id::text, pack_nanocredits::text AS pack, pack_paid_nanocredits::text AS paid FROM credit_lease WHERE $1::uuid IS NULL OR account_id = $1 ORDER BY id`,
    [accountId],
  );
  return rows;
}

describe("a lease", () => {
  it("has room for 64 holds like the first, and grants them without a write", async () => {
    const one = await start();
    const payer = await payerWith(100_000n);
    await spend(one, payer, 10n);
    const before = one.ledger.batches.length;

    const charges = Array.from({ length: 20 }, () => open(one, payer, 10n));

    expect(charges.every(({ isHeld }) => isHeld)).toBe(true);
    expect(one.ledger.batches.length).toBe(before);
    expect(await leasesOf(payer.accountId)).toMatchObject([{ pack: "630", paid: "10" }]);
    await Promise.all(charges.map((charge) => charge.settle(7n, usageRecord())));
    expect((await readAccount(pool, payer.accountId)).buckets.pack).toBe(100_000n - 150n);
  });

  it("takes at most a quarter of the available balance, and at least four estimates", async () => {
    const one = await start();
    const enough = await payerWith(4n * LEASE_ESTIMATES_LEAST * 10n);
    const less = await payerWith(4n * LEASE_ESTIMATES_LEAST * 10n - 1n);

    await Promise.all([spend(one, enough, 10n), spend(one, less, 10n)]);

    expect(await leasesOf(enough.accountId)).toMatchObject([{ pack: "30", paid: "10" }]);
    expect(await leasesOf(less.accountId)).toEqual([]);
  });

  it("stays within the budgets of the key and of its parent keys", async () => {
    const one = await start();
    const payer = await payerWith(100_000n, 400n);
    const child = { ...payer, apiKeyId: await createKey(pool, payer.accountId, null, randomUUID(), null, payer.apiKeyId) };

    await spend(one, child, 10n, { payer: { ...child, hasBudget: true } });

    expect(await leasesOf(payer.accountId)).toMatchObject([{ pack: "90", paid: "10" }]);
  });

  it("is extended in the background while it is used up", async () => {
    const one = await start();
    const payer = await payerWith(1_000_000n);
    await spend(one, payer, 10n);

    const charges = Array.from({ length: 40 }, () => open(one, payer, 10n));

    expect(charges.every(({ isHeld }) => isHeld)).toBe(true);
    // Of 64 there are 23 left, and twice as many are to be free.
    await expect.poll(async () => (await leasesOf(payer.accountId))[0]?.pack).toBe(String(10 * (40 + 128)));
    await Promise.all(charges.map((charge) => charge.release()));
  });

  it("is extended to at most twice its last size, however fast it is used up", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const one = await start();
    // A quarter of it, which a lease has at most, is less than is asked for.
    const payer = await payerWith(4_000n);

    while (one.ledger.takes.length < 12) {
      await spend(one, payer, 100n);
      await ledger.grant({ id: randomUUID(), accountId: payer.accountId, bucket: "pack", amount: 100n, note: null });
    }

    for (const { target } of one.ledger.takes) expect(target).toBeLessThanOrEqual(66n * 100n);
    expect(one.logged).toEqual([]);
  });

  it("requests amounts within the database's range, even for an unbounded answer", async () => {
    const one = await start();
    const payer = await payerWith(200n);
    const charge = open(one, payer, 2n ** 61n);

    await expect(charge.held).rejects.toMatchObject({ code: "INSUFFICIENT_BALANCE" });

    expect(one.ledger.takes.length).toBeGreaterThan(0);
    expect(one.logged).toEqual([]);
  });

  it("pays from buckets in their order: tier, crypto, pack", async () => {
    const one = await start();
    const payer = await createPayer(pool, ledger, { tier: 5n, crypto: 3n, pack: 1_000n });
    const generationId = randomUUID();

    await spend(one, payer, 12n, { generationId });

    expect(await readEntries(pool, generationId)).toEqual([
      ["tier", -5n],
      ["crypto", -3n],
      ["pack", -4n],
      ["revenue", 12n],
    ]);
    expect(await readUsage(pool, generationId)).toMatchObject({ cost: 12n, source: "tier" });
  });

  it("takes no tier credits of a tier that caps all holds", async () => {
    const one = await start(1_000_000n);
    const payer = await createPayer(pool, ledger, { tier: 5n, pack: 10_000n });

    await spend(one, payer, 2n);
    expect(await leasesOf(payer.accountId)).toEqual([]);
    await spend(one, payer, 3n);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 2_000 });
    one.leases.noteAlive();
    await spend(one, payer, 2n);

    expect(await leasesOf(payer.accountId)).toMatchObject([{ paid: "2" }]);
  });

  it("still reports a balance below the account's threshold", async () => {
    const one = await start();
    const payer = await payerWith(1_000n);
    await pool.query("UPDATE account SET low_balance_nanocredits = 990 WHERE id = $1", [payer.accountId]);
    const isLow = async () =>
      (await pool.query("SELECT low_balance_since IS NOT NULL AS low FROM account WHERE id = $1", [payer.accountId])).rows[0].low;

    await spend(one, payer, 2n);
    await spend(one, payer, 8n);
    expect(await isLow()).toBe(false);
    await spend(one, payer, 1n);

    expect(await isLow()).toBe(true);
  });
});

describe("a process releases its lease", () => {
  it("after five seconds without use", async () => {
    const one = await start();
    const payer = await payerWith(10_000n);
    await spend(one, payer, 10n);
    expect(await leasesOf(payer.accountId)).toHaveLength(1);

    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + LEASE_IDLE_MS });

    await expect.poll(() => leasesOf(payer.accountId)).toEqual([]);
  });

  it("for a hold in another process that needs its credits", async () => {
    const [one, other] = [await start(), await start()];
    const payer = await payerWith(1_000n);
    await spend(one, payer, 10n);
    const kept = open(one, payer, 10n);

    const all = open(other, payer, 980n);
    await all.held;

    expect(await readAccount(pool, payer.accountId)).toMatchObject({ held: { pack: 980n } });
    await all.settle(980n, usageRecord());
    await kept.settle(10n, usageRecord());
    expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { pack: 0n } });
  });

  it("for a stream in another process that needs more than it holds", async () => {
    const [one, other] = [await start(), await start()];
    const payer = await payerWith(1_000n);
    const stream = open(other, payer, 400n);
    await stream.held;
    await spend(one, payer, 10n);

    expect(await stream.meter(400n, false, () => usageRecord())).toBeNull();
    expect(await stream.settle(990n, usageRecord())).toMatchObject({ chargedNanocredits: 990n });
  });

  it("before another process writes off a charge", async () => {
    const [one, other] = [await start(), await start()];
    const payer = await payerWith(1_000n);
    await spend(one, payer, 10n);
    const generationId = randomUUID();
    const charge = open(other, payer, 20n, { generationId });
    await charge.held;

    expect(await charge.settle(990n, usageRecord())).toMatchObject({ chargedNanocredits: 990n });
    expect((await readEntries(pool, generationId)).map(([book]) => book)).not.toContain("write_off");
  });

  it("before a budget is set, so that the budget is exact", async () => {
    const [one, other] = [await start(), await start()];
    const payer = await payerWith(10_000n, 5_000n);
    const withBudget = { payer: { ...payer, hasBudget: true } };
    await spend(one, payer, 10n, withBudget);

    await other.leases.recall(payer.accountId);
    await pool.query("SELECT credit_set_budget($1, $2, 25)", [payer.accountId, payer.apiKeyId]);

    await spend(one, payer, 20n, withBudget);
    await expect(open(one, payer, 6n, withBudget).held).rejects.toMatchObject({ code: "KEY_BUDGET_EXHAUSTED" });
    await spend(other, payer, 5n, withBudget);
  });
});

describe("two processes that empty one account", () => {
  it("spend it to the last estimate, and no more", async () => {
    const both = [await start(), await start()];
    const payer = await payerWith(1_000n);
    let charged = 0n;
    const work = async (one: MoneyProcess): Promise<void> => {
      for (;;) {
        const charge = open(one, payer, 7n);
        const isHeld = await charge.held.then(
          () => true,
          () => false,
        );
        if (!isHeld) return;
        const { chargedNanocredits } = await charge.settle(7n, usageRecord());
        charged += chargedNanocredits;
      }
    };

    await Promise.all(both.flatMap((one) => Array.from({ length: 4 }, () => work(one))));

    expect(charged).toBe(994n);
    expect((await readAccount(pool, payer.accountId)).buckets.pack).toBe(6n);
  });
});

describe("a deleted lease", () => {
  it("loses nothing: its work is charged without it, the loss is logged, and a new lease is taken", async () => {
    const one = await start();
    const payer = await payerWith(10_000n);
    await spend(one, payer, 10n);
    const charge = open(one, payer, 10n);
    const [lost] = await leasesOf(payer.accountId);

    await pool.query("DELETE FROM credit_lease WHERE account_id = $1", [payer.accountId]);
    expect(await charge.settle(10n, usageRecord())).toMatchObject({ chargedNanocredits: 10n, meterSource: "pack" });
    const { accountId } = payer;
    const msg = "a lease is gone from the database; its work goes on without it";
    expect(one.logged).toEqual([{ level: 40, leaseId: lost?.id, accountId, msg }]);
    await spend(one, payer, 10n);

    const [taken] = await leasesOf(payer.accountId);
    expect(taken?.id).toBeDefined();
    expect(taken?.id).not.toBe(lost?.id);
    expect((await readAccount(pool, payer.accountId)).buckets.pack).toBe(10_000n - 30n);
  });
});

describe("a lease that is deleted before it is extended", () => {
  it("is not taken again with less than its process has granted", async () => {
    const one = await start();
    const payer = await payerWith(10_000n);
    await spend(one, payer, 10n);
    const [lost] = await leasesOf(payer.accountId);
    await pool.query("DELETE FROM credit_lease WHERE account_id = $1", [payer.accountId]);

    const charges = Array.from({ length: 40 }, () => open(one, payer, 10n));
    await expect.poll(() => one.leases.ids).not.toContain(lost?.id);
    await Promise.all(charges.map((charge) => charge.held));
    const settled = await Promise.all(charges.map((charge) => charge.settle(10n, usageRecord())));

    expect(settled.map(({ chargedNanocredits }) => chargedNanocredits)).toEqual(Array(40).fill(10n));
    expect((await readAccount(pool, payer.accountId)).buckets.pack).toBe(10_000n - 410n);
  });
});

describe("while the database is away", () => {
  it("a lease grants nothing, and pays the work under way afterwards", async () => {
    const one = await start();
    const payer = await payerWith(10_000n);
    await spend(one, payer, 10n);
    const charge = open(one, payer, 10n);

    one.ledger.lose("network");
    expect(await charge.settle(9n, usageRecord())).toMatchObject({ chargedNanocredits: 9n });
    await expect(open(one, payer, 10n).held).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" });
    one.ledger.heal();
    await expect.poll(() => one.settler.isUnavailable).toBe(false);

    expect((await readAccount(pool, payer.accountId)).buckets.pack).toBe(10_000n - 19n);
  });

  it("a settlement whose answer was lost is charged once", async () => {
    const one = await start();
    const payer = await payerWith(10_000n);
    await spend(one, payer, 10n);
    const charge = open(one, payer, 10n);

    one.ledger.lose("answer");
    await charge.settle(9n, usageRecord());
    one.ledger.heal();
    await expect.poll(() => one.settler.isUnavailable).toBe(false);

    expect((await readAccount(pool, payer.accountId)).buckets.pack).toBe(10_000n - 19n);
  });
});

describe("a process that dies", () => {
  it("loses its leases, and the noted progress of its streams is charged", async () => {
    const [one, other] = [await start(), await start()];
    const payer = await payerWith(10_000n);
    await spend(one, payer, 10n);
    const generationId = randomUUID();
    const stream = open(one, payer, 100n, { generationId });
    await stream.held;
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + METER_NOTE_MS });
    await stream.meter(40n, false, () => usageRecord({ status: "cancelled", usageSource: "partial" }));
    await expect.poll(() => countHolds(pool, payer.accountId)).toBe(1);

    await one.crash();
    processes = [other];
    await other.recovery.sweep();

    expect(await readUsage(pool, generationId)).toMatchObject({ cost: 40n, status: "cancelled", usageSource: "partial" });
    expect(await leasesOf(payer.accountId)).toEqual([]);
    expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { pack: 9_950n }, held: { pack: 0n } });
  });

  it("grants nothing from a lease after a long silence", async () => {
    const one = await start();
    const payer = await payerWith(10_000n);
    await spend(one, payer, 10n);
    const before = open(one, payer, 10n);
    expect(before.isHeld).toBe(true);
    await before.release();

    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + HEARTBEAT_DEAD_MS / 2 + 1 });
    const late = open(one, payer, 10n);

    expect(late.isHeld).toBe(false);
    await late.held;
    expect(await countHolds(pool, payer.accountId)).toBe(1);
    await late.release();
  });
});
