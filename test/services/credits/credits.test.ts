/** What one generation may spend: its hold, its meter, its charge. */
import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import type pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { AppError } from "../../../src/errors.js";
import { METER_NOTE_MS, OUTPUT_TOKENS_ASSUMED } from "../../../src/limits.js";
import type { ChargeRequest } from "../../../src/services/credits/charge-request.js";
import { Credits, createCommitListener } from "../../../src/services/credits/credits.js";
import { KnownBalances } from "../../../src/services/credits/known-balances.js";
import { Leases } from "../../../src/services/credits/leases.js";
import type { OpenCharge } from "../../../src/services/credits/open-charge.js";
import { OutputEstimates } from "../../../src/services/credits/output-estimates.js";
import { RefusedFunds } from "../../../src/services/credits/refused-funds.js";
import { Settler } from "../../../src/services/credits/settler.js";
import { createMemoryEvents, type Events } from "../../../src/store/events.js";
import type { Ledger } from "../../../src/store/ledger.js";
import { openSettlementSpool } from "../../../src/store/settlement-spool.js";
import { createEmptyDir, createTestDatabase, silentLog, type TestDatabase } from "../../support/database.js";
import { eventually } from "../../support/eventually.js";
import { findBrokenInvariants } from "../../support/invariants.js";
import { countHolds, createPayer, createTestLedger, readAccount, readUsage, type TestPayer, usageRecord } from "../../support/ledger.js";
import { type SteeredLedger, steer } from "../../support/steered-ledger.js";

let test: TestDatabase;
let pool: pg.Pool;
let real: Ledger;
let ledger: SteeredLedger;
let settler: Settler;
let leases: Leases;
let credits: Credits;
let events: Events;
let dataDir: string;
/** The refill check of a charge's account: nothing is due, unless a test says otherwise. */
let refillIfDue: () => Promise<void> | null;

beforeAll(async () => {
  test = await createTestDatabase();
  pool = test.database.pool;
  real = createTestLedger(test.database);
});
beforeEach(async () => {
  dataDir = await createEmptyDir();
  ledger = steer(real);
  const known = new KnownBalances();
  events = createMemoryEvents(silentLog);
  leases = new Leases({ ledger: ledger.leases, database: test.database, processId: randomUUID(), events, log: silentLog });
  const onCommitted = createCommitListener(known, leases, events);
  settler = new Settler({ ledger, spool: await openSettlementSpool(dataDir), log: silentLog, onCommitted });
  refillIfDue = () => null;
  credits = new Credits(settler, known, { refillIfDue: () => refillIfDue() }, new RefusedFunds(test.database, null), leases);
});
afterEach(async () => {
  vi.useRealTimers();
  await settler.close();
  await leases.close();
  await rm(dataDir, { recursive: true });
  expect(await findBrokenInvariants(pool)).toEqual({});
});
afterAll(() => test.close());

const payerWith = (pack: bigint, budget: bigint | null = null) => createPayer(pool, real, { pack }, budget);
const backInService = () => eventually(() => expect(settler.isUnavailable).toBe(false));

/** Has the gateway know what the payer can hold, as after any commit of theirs. */
async function learnBalance(payer: TestPayer, more: Partial<ChargeRequest> = {}): Promise<void> {
  const charge = open(payer, 1n, more);
  await charge.held;
  await charge.release();
}

function open(payer: TestPayer, estimate: bigint, more: Partial<ChargeRequest> = {}): OpenCharge {
  return credits.open({
    generationId: randomUUID(),
    payer: { ...payer, hasBudget: false },
    estimate,
    paidOnly: false,
    isFree: false,
    // Each has a hold of its own: leases.test.ts is about the others.
    needsOwnHold: true,
    record: usageRecord({ status: "cancelled", usageSource: "partial" }),
    ...more,
  });
}

/** Every extension that was asked for so far has been decided, and its charge knows. */
async function extended(): Promise<void> {
  await settler.submit({ kind: "release", id: randomUUID(), accountId: randomUUID(), apiKeyId: null });
  await new Promise((resolve) => setImmediate(resolve));
}

describe("a charge", () => {
  it("holds its estimate, then charges its cost", async () => {
    const payer = await payerWith(100n);
    const generationId = randomUUID();
    const charge = open(payer, 60n, { generationId });
    await charge.held;
    expect(await readAccount(pool, payer.accountId)).toMatchObject({ held: { pack: 60n } });

    expect(await charge.settle(45n, usageRecord())).toEqual({ chargedNanocredits: 45n, meterSource: "pack" });

    expect(await readUsage(pool, generationId)).toMatchObject({ cost: 45n, status: "ok" });
    expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { pack: 55n }, held: { pack: 0n } });
  });

  it("charges nothing and records nothing when it is released", async () => {
    const payer = await payerWith(100n);
    const generationId = randomUUID();
    const charge = open(payer, 60n, { generationId });

    await charge.release();

    expect(await readUsage(pool, generationId)).toBeNull();
    expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { pack: 100n }, held: { pack: 0n } });
  });

  it.each([
    ["held", false],
    ["free", true],
  ])("holds nothing and records nothing before a refill that is due: %s", async (_what, isFree) => {
    const payer = await payerWith(1_000n);
    await learnBalance(payer);
    let finish = () => {};
    refillIfDue = () =>
      new Promise((resolve) => {
        finish = resolve;
      });
    const flushes = ledger.batches.length;

    const charge = open(payer, 1n, { isFree });
    let isHeld = false;
    charge.held.then(() => {
      isHeld = true;
    });
    await extended();

    // Free work has nothing to wait for before its upstream is called.
    expect(charge.isHeld).toBe(isFree);
    expect(isHeld).toBe(false);
    expect(ledger.batches.slice(flushes).flat()).toEqual([expect.objectContaining({ kind: "release" })]);
    finish();
    await charge.held;
    expect(await countHolds(pool, payer.accountId)).toBe(isFree ? 0 : 1);
    await charge.release();
  });

  it("fails with its refill, and leaves nothing behind", async () => {
    const payer = await payerWith(100n);
    refillIfDue = () => Promise.reject(new AppError("SERVICE_UNAVAILABLE", "not now"));

    const charge = open(payer, 1n);
    await expect(charge.held).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" });
    await charge.release();

    expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { pack: 100n }, held: { pack: 0n } });
  });

  it("requests no refill while the database is known to be away", async () => {
    const payer = await payerWith(100n);
    ledger.lose("network");
    await expect(open(payer, 1n).held).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" });
    let asked = 0;
    refillIfDue = () => {
      asked += 1;
      return null;
    };

    await expect(open(payer, 1n).held).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" });

    expect(asked).toBe(0);
    ledger.heal();
    await backInService();
  });

  it("names the lacking balance, budget or database in its refusal", async () => {
    const poor = await payerWith(5n);
    const limited = await payerWith(100n, 5n);

    await expect(open(poor, 6n).held).rejects.toMatchObject({ code: "INSUFFICIENT_BALANCE" });
    await expect(open(limited, 6n).held).rejects.toMatchObject({ code: "KEY_BUDGET_EXHAUSTED" });
    ledger.lose("network");
    await expect(open(limited, 1n).held).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" });
    ledger.heal();
    await backInService();
  });

  it("has nothing to release after its hold was refused", async () => {
    const payer = await payerWith(5n);
    const charge = open(payer, 6n);
    await expect(charge.held).rejects.toThrow();
    const flushes = ledger.batches.length;

    await charge.release();

    expect(ledger.batches).toHaveLength(flushes);
  });

  it("is settled or released once", async () => {
    const payer = await payerWith(100n);
    const charge = open(payer, 10n);
    expect(charge.isConcluded).toBe(false);
    await charge.settle(5n, usageRecord());

    expect(charge.isConcluded).toBe(true);
    await expect(charge.settle(5n, usageRecord())).rejects.toThrow(/twice/);
    await expect(charge.release()).rejects.toThrow(/twice/);

    expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { pack: 95n }, held: { pack: 0n } });
  });

  it("refuses an absurd estimate, and charges the whole balance for an absurd cost", async () => {
    const payer = await payerWith(100n);

    await expect(open(payer, 10n ** 40n).held).rejects.toMatchObject({ code: "INSUFFICIENT_BALANCE" });
    expect(await open(payer, 10n).settle(10n ** 40n, usageRecord())).toMatchObject({ chargedNanocredits: 100n });
  });

  it("holds nothing for free work, and records it", async () => {
    const payer = await payerWith(0n);
    const generationId = randomUUID();
    const charge = open(payer, 0n, { isFree: true, generationId });
    expect(charge.isHeld).toBe(true);
    await charge.held;
    charge.meter(0n, false, () => usageRecord());

    expect(await charge.settle(0n, usageRecord())).toMatchObject({ chargedNanocredits: 0n });

    expect(ledger.batches.flat().map(({ kind }) => kind)).toEqual(["settle"]);
    expect(await readUsage(pool, generationId)).toMatchObject({ cost: 0n });
  });

  it("does free work only while it can be recorded", async () => {
    const payer = await payerWith(0n);
    ledger.lose("network");
    await settler.submit({ kind: "release", id: randomUUID(), accountId: payer.accountId, apiKeyId: null });

    await expect(open(payer, 0n, { isFree: true }).held).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" });

    ledger.heal();
    await backInService();
  });
});

describe("a balance read earlier", () => {
  it("is ignored after a change by another process, until this one commits", () => {
    const known = new KnownBalances();
    for (const id of ["account", "key"]) known.learn(id, 1_000n);
    expect(known.freeOf(["account", "key"])).toBe(1_000n);

    known.drop("account");
    expect(known.freeOf(["account", "key"])).toBeNull();
    // A commit for another key says nothing of this one's budget.
    known.learn("account", 1_000n);
    expect(known.freeOf(["account", "key"])).toBeNull();
    known.learn("key", 900n);

    expect(known.freeOf(["account", "key"])).toBe(900n);
  });

  it("is ignored when the last commit is too long ago", async () => {
    const known = new KnownBalances(1);
    known.learn("account", 1_000n);

    await eventually(() => expect(known.freeOf(["account"])).toBeNull());
  });

  it("includes holds that are not committed yet", async () => {
    const known = new KnownBalances();
    known.learn("account", 1_000n);

    known.expectHold(["account"], 300n);
    expect(known.freeOf(["account"])).toBe(700n);
    known.forgetHold(["account"], 300n);

    expect(known.freeOf(["account"])).toBe(1_000n);
  });
});

describe("a separate hold", () => {
  it("is committed before its charge, even when the answer comes at once", async () => {
    const payer = await payerWith(1_000n);
    await learnBalance(payer);
    const before = ledger.batches.length;
    const charge = open(payer, 50n);

    await charge.held;
    await charge.settle(40n, usageRecord());

    const kinds = ledger.batches.slice(before).map((batch) => batch.map(({ kind }) => kind));
    expect(kinds).toEqual([["hold"], ["settle"]]);
    expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { pack: 960n }, held: { pack: 0n } });
  });

  it("leaves room for concurrent holds, so that nothing is written off", async () => {
    const payer = await payerWith(1_000n);
    await learnBalance(payer);
    const charges = Array.from({ length: 30 }, () => open(payer, 50n));

    const outcomes = await Promise.allSettled(
      charges.map(async (charge) => {
        await charge.held;
        return charge.settle(50n, usageRecord());
      }),
    );

    const charged = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value.chargedNanocredits] : []));
    expect(charged).toEqual(Array(20).fill(50n));
    expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { pack: 0n }, held: { pack: 0n } });
  });
});

describe("the meter", () => {
  it("extends the hold by its size at 80% of use", async () => {
    const payer = await payerWith(1_000n);
    const charge = open(payer, 100n);
    await charge.held;

    await charge.meter(79n, false, () => usageRecord());
    await extended();
    expect(charge.heldAmount).toBe(100n);
    await charge.meter(80n, false, () => usageRecord());
    await extended();
    expect(charge.heldAmount).toBe(200n);
    await charge.meter(160n, false, () => usageRecord());
    await extended();
    expect(charge.heldAmount).toBe(400n);

    expect(await readAccount(pool, payer.accountId)).toMatchObject({ held: { pack: 400n } });
    expect(await charge.settle(170n, usageRecord())).toMatchObject({ chargedNanocredits: 170n });
  });

  it("extends the hold to the delivered amount when that is more", async () => {
    const payer = await payerWith(1_000n);
    const charge = open(payer, 10n);
    await charge.held;

    await charge.meter(300n, false, () => usageRecord());

    expect(charge.heldAmount).toBe(310n);
    await charge.release();
  });

  it("extends nothing when the hold covers the most that can come", async () => {
    const payer = await payerWith(1_000n);
    const charge = open(payer, 100n);
    await charge.held;
    const flushes = ledger.batches.length;

    expect(await charge.meter(100n, true, () => usageRecord())).toBeNull();

    expect(ledger.batches).toHaveLength(flushes);
    await charge.release();
  });

  it("answers at once while the hold has room, and then waits for the extension", async () => {
    const payer = await payerWith(1_000n);
    const charge = open(payer, 100n);
    await charge.held;
    const isWaiting = ledger.pause();
    let answered = false;

    expect(await charge.meter(99n, false, () => usageRecord())).toBeNull();
    const metering = charge
      .meter(100n, false, () => usageRecord())
      .then((refusal) => {
        answered = true;
        return refusal;
      });
    await isWaiting;
    expect(answered).toBe(false);
    ledger.resume();

    expect(await metering).toBeNull();
    expect(charge.heldAmount).toBe(200n);
    await charge.release();
  });

  it("notes the position of the stream once a second", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const payer = await payerWith(1_000n);
    const generationId = randomUUID();
    const charge = open(payer, 100n, { generationId });
    await charge.held;
    const metered = async () => (await test.database.prisma.hold.findUniqueOrThrow({ where: { id: generationId } })).meteredNanocredits;

    vi.setSystemTime(Date.now() + METER_NOTE_MS - 1);
    await charge.meter(7n, true, () => usageRecord());
    await extended();
    expect(await metered()).toBe(0n);
    vi.setSystemTime(Date.now() + 1);
    expect(charge.isNoteDue).toBe(true);
    await charge.meter(8n, true, () => usageRecord());
    await extended();
    expect(await metered()).toBe(8n);
    await charge.meter(9n, true, () => usageRecord());
    await extended();
    expect(await metered()).toBe(8n);

    expect(charge.heldAmount).toBe(100n);
    await charge.release();
  });

  it("takes the rest when less is left than it requests, and stops the stream when that is used up", async () => {
    const payer = await payerWith(150n);
    const charge = open(payer, 100n);
    await charge.held;

    await charge.meter(80n, false, () => usageRecord());
    // Refused once, then granted.
    await extended();
    await extended();
    expect(charge.heldAmount).toBe(150n);
    expect(await charge.meter(149n, false, () => usageRecord())).toBeNull();
    await extended();
    expect(await charge.meter(150n, false, () => usageRecord())).toMatchObject({ code: "INSUFFICIENT_BALANCE" });

    expect(await charge.settle(160n, usageRecord())).toMatchObject({ chargedNanocredits: 150n });
  });

  it("stops the stream when the key's budget is used up", async () => {
    const payer = await payerWith(1_000n, 150n);
    const charge = open(payer, 100n);
    await charge.held;

    expect(await charge.meter(120n, false, () => usageRecord())).toBeNull();
    expect(charge.heldAmount).toBe(150n);
    expect(await charge.meter(150n, false, () => usageRecord())).toMatchObject({ code: "KEY_BUDGET_EXHAUSTED" });

    expect(await charge.settle(155n, usageRecord())).toMatchObject({ chargedNanocredits: 150n });
  });

  it("tries again after a second, and continues the stream when there is money again", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const payer = await payerWith(100n);
    const charge = open(payer, 100n);
    await charge.held;
    await charge.meter(80n, false, () => usageRecord());
    await extended();
    const flushes = ledger.batches.length;
    await charge.meter(81n, false, () => usageRecord());
    expect(ledger.batches).toHaveLength(flushes);

    await ledger.grant({ id: randomUUID(), accountId: payer.accountId, bucket: "crypto", amount: 100n, note: null });
    vi.setSystemTime(Date.now() + METER_NOTE_MS);

    expect(await charge.meter(100n, false, () => usageRecord())).toBeNull();
    expect(charge.heldAmount).toBe(200n);
    await charge.release();
  });

  it("lets the stream go on while the database is away", async () => {
    const payer = await payerWith(150n);
    const charge = open(payer, 100n);
    await charge.held;
    ledger.lose("network");

    expect(await charge.meter(100n, false, () => usageRecord())).toBeNull();
    expect(await charge.meter(120n, false, () => usageRecord())).toBeNull();

    expect(await charge.settle(120n, usageRecord())).toMatchObject({ chargedNanocredits: 120n });
    ledger.heal();
    await backInService();
    expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { pack: 30n }, held: { pack: 0n } });
  });

  it("requests again the extensions that were granted without the database, and stops the stream on a refusal", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const payer = await payerWith(150n);
    const charge = open(payer, 100n);
    await charge.held;
    ledger.lose("network");
    expect(await charge.meter(160n, false, () => usageRecord())).toBeNull();
    expect(charge.heldAmount).toBe(260n);
    ledger.heal();
    await backInService();

    vi.setSystemTime(Date.now() + METER_NOTE_MS);
    expect(await charge.meter(170n, false, () => usageRecord())).toBeNull();
    await extended();
    await extended();

    expect(charge.heldAmount).toBe(150n);
    expect(await charge.meter(170n, false, () => usageRecord())).toMatchObject({ code: "INSUFFICIENT_BALANCE" });
    expect(await charge.settle(170n, usageRecord())).toMatchObject({ chargedNanocredits: 150n });
  });

  it("keeps the extensions that were granted without the database when the balance covers them", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const payer = await payerWith(300n);
    const charge = open(payer, 100n);
    await charge.held;
    ledger.lose("network");
    expect(await charge.meter(120n, false, () => usageRecord())).toBeNull();
    ledger.heal();
    await backInService();

    vi.setSystemTime(Date.now() + METER_NOTE_MS);
    expect(await charge.meter(120n, true, () => usageRecord())).toBeNull();
    await extended();

    expect(charge.heldAmount).toBe(220n);
    expect(await readAccount(pool, payer.accountId)).toMatchObject({ held: { pack: 220n } });
    await charge.release();
  });

  it("stops the stream at the first refusal, however late the database answers", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const payer = await payerWith(100n);
    const charge = open(payer, 100n);
    await charge.held;
    const flush = ledger.flush.bind(ledger);
    ledger.flush = (operations) => {
      vi.setSystemTime(Date.now() + METER_NOTE_MS);
      return flush(operations);
    };

    expect(await charge.meter(100n, false, () => usageRecord())).toMatchObject({ code: "INSUFFICIENT_BALANCE" });
    await charge.release();
  });

  it("still charges when the ledger cannot store a note", async () => {
    const payer = await payerWith(150n);
    const charge = open(payer, 100n);
    await charge.held;
    // PostgreSQL's JSON knows no NUL.
    const impossible = () => usageRecord({ model: "\0" });

    expect(await charge.meter(90n, false, impossible)).toBeNull();
    await extended();
    expect(await charge.meter(100n, false, impossible)).toMatchObject({ code: "SERVICE_UNAVAILABLE" });
    expect(await charge.settle(105n, usageRecord())).toMatchObject({ chargedNanocredits: 105n });

    expect(await countHolds(pool, payer.accountId)).toBe(0);
  });
});

describe("events after a commit", () => {
  it("reach their listeners: the row once, the balance when it changed", async () => {
    const payer = await payerWith(100n);
    const told: [string, unknown][] = [];
    events.listen("usage-recorded", (event) => told.push(["usage", event]));
    events.listen("balance-changed", (event) => told.push(["balance", event]));
    const [paid, free] = [randomUUID(), randomUUID()];

    await open(payer, 10n).release();
    expect(told.splice(0)).toEqual([["balance", { accountId: payer.accountId }]]);
    await open(payer, 10n, { generationId: paid }).settle(5n, usageRecord());
    await open(payer, 0n, { generationId: free, isFree: true }).settle(0n, usageRecord());

    expect(told).toEqual([
      ["usage", { accountId: payer.accountId, usageId: paid }],
      ["balance", { accountId: payer.accountId }],
      ["usage", { accountId: payer.accountId, usageId: free }],
    ]);
  });
});

describe("the output estimate of a request without a limit", () => {
  it("is a constant at first, then a mean of the account's answers that weighs the newest most", () => {
    const estimates = new OutputEstimates();
    expect(estimates.of("me", "acme/chat").mean).toBe(OUTPUT_TOKENS_ASSUMED);

    for (let answer = 0; answer < 3; answer += 1) estimates.of("me", "acme/chat").learn(100);
    expect(estimates.of("me", "acme/chat").mean).toBe(100);
    estimates.of("me", "acme/chat").learn(205);
    expect(estimates.of("me", "acme/chat").mean).toBe(111);
    estimates.of("me", "acme/chat").learn(0);
    expect(estimates.of("me", "acme/chat").mean).toBe(100);
    expect(estimates.of("me", "acme/other").mean).toBe(OUTPUT_TOKENS_ASSUMED);
  });

  it("starts at the mean of other accounts, one vote each, within bounds", () => {
    const estimates = new OutputEstimates();
    for (let answer = 0; answer < 1_000; answer += 1) estimates.of("steering", "acme/chat").learn(1);
    expect(estimates.of("me", "acme/chat").mean).toBe(OUTPUT_TOKENS_ASSUMED / 4);

    estimates.of("honest", "acme/chat").learn(2_000);
    expect(estimates.of("me", "acme/chat").mean).toBe(1_001);
    for (let answer = 0; answer < 3; answer += 1) estimates.of("me", "acme/chat").learn(700);
    expect(estimates.of("me", "acme/chat").mean).toBe(700);
    for (let account = 0; account < 100; account += 1) estimates.of(`inflating ${account}`, "acme/chat").learn(1_000_000);
    expect(estimates.of("another", "acme/chat").mean).toBe(OUTPUT_TOKENS_ASSUMED * 4);
    expect(estimates.of("me", "acme/chat").mean).toBe(700);
  });
});

describe("charges under one cost limit", () => {
  /** Settles at the cost, up to the request's limit, as a generation does. */
  const settle = (charge: OpenCharge, cost: bigint) => {
    const most = charge.chargeMost ?? cost;
    return charge.settle(cost < most ? cost : most, usageRecord());
  };

  it("stay within the limit when they are settled at once", async () => {
    const payer = await payerWith(1_000n);
    const maxCost = { nanocredits: 100n };
    const charges = [open(payer, 40n, { maxCost }), open(payer, 40n, { maxCost })];
    for (const { held } of charges) await held;

    const settlements = await Promise.all(charges.map((charge) => settle(charge, 70n)));

    expect(settlements.map(({ chargedNanocredits }) => chargedNanocredits)).toEqual([60n, 40n]);
    expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { pack: 900n }, held: { pack: 0n } });
    await expect(open(payer, 1n, { maxCost }).held).rejects.toMatchObject({ code: "MAX_COST_EXCEEDED" });
  });

  it("cost all that they used while their hold is being extended", async () => {
    const payer = await payerWith(1_000n);
    const charge = open(payer, 50n, { maxCost: { nanocredits: 100n } });
    await charge.held;
    const asked = ledger.pause();
    const metered = charge.meter(45n, false, usageRecord);
    await asked;

    const settled = settle(charge, 95n);
    ledger.resume();

    expect(await metered).toBeNull();
    expect((await settled).chargedNanocredits).toBe(95n);
    expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { pack: 905n }, held: { pack: 0n } });
  });
});
