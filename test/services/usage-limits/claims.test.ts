/** Limits that renew, on several processes of one database: never over, and used to the last nanocredit. */
import { randomUUID } from "node:crypto";
import type pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import type { CallerLimit } from "../../../src/context.js";
import type { ChargeRequest } from "../../../src/services/credits/charge-request.js";
import type { Ledger, LedgerRecord } from "../../../src/store/ledger.js";
import { createMovableClock, type MovableClock } from "../../support/clock.js";
import { createTestDatabase, type TestDatabase } from "../../support/database.js";
import { findBrokenInvariants } from "../../support/invariants.js";
import { createKey, createPayer, createTestLedger, type TestPayer, usageRecord } from "../../support/ledger.js";
import { createMoneyProcess, type MoneyProcess } from "../../support/money-process.js";

let test: TestDatabase;
let pool: pg.Pool;
let ledger: Ledger;
let clock: MovableClock;
let processes: MoneyProcess[] = [];

beforeAll(async () => {
  test = await createTestDatabase();
  pool = test.database.pool;
  ledger = createTestLedger(test.database);
});
afterEach(async () => {
  await Promise.all(processes.map((one) => one.close()));
  processes = [];
  expect(await findBrokenInvariants(pool, { isIdle: true })).toEqual({});
});
afterAll(() => test.close());

async function start(): Promise<MoneyProcess> {
  const one = await createMoneyProcess(test.database, { clock, contendedHoldWaitMs: 2_000 });
  processes.push(one);
  return one;
}

interface LimitTerms {
  readonly amount: bigint;
  readonly metric?: CallerLimit["metric"];
  readonly period?: "hour" | "day" | "week" | "month" | null;
  readonly minutes?: number | null;
  readonly isRolling?: boolean;
  readonly model?: string | null;
  readonly raiseAmount?: bigint;
  readonly raiseUntil?: Date | null;
}

async function addLimit(payer: TestPayer, { period = "day", metric = "credits", ...terms }: LimitTerms): Promise<CallerLimit> {
  const { accountId, apiKeyId } = payer;
  const id = randomUUID();
  const window = terms.minutes === undefined ? { period } : { minutes: terms.minutes };
  await test.database.prisma.usageLimit.create({ data: { id, accountId, apiKeyId, metric, ...terms, ...window } });
  return { id, accountId, metric, isOfKey: apiKeyId !== null, model: terms.model ?? null, rollingMs: null, hasAlerts: false };
}

function open(one: MoneyProcess, payer: TestPayer, estimate: bigint, limits: readonly CallerLimit[], more: Partial<ChargeRequest> = {}) {
  return one.credits.open({
    generationId: randomUUID(),
    payer: { ...payer, hasBudget: false },
    estimate,
    paidOnly: false,
    isFree: false,
    model: "acme/chat",
    limits,
    record: record(),
    ...more,
  });
}

const record = (more: Partial<LedgerRecord> = {}) => usageRecord({ timestamp: clock.now().toISOString(), ...more });

/** The charge, or the refusal. */
async function spend(one: MoneyProcess, payer: TestPayer, estimate: bigint, cost: bigint, limits: readonly CallerLimit[]) {
  const charge = open(one, payer, estimate, limits);
  try {
    await charge.held;
  } catch (error) {
    await charge.release();
    return { refusal: error as Error & { code: string; details: unknown } };
  }
  return { charged: (await charge.settle(cost, record())).chargedNanocredits };
}

async function spentOf(apiKeyId: string | null): Promise<bigint> {
  const { rows } = await pool.query("SELECT coalesce(sum(cost_nanocredits), 0)::text AS spent FROM usage_record WHERE api_key_id = $1", [
    apiKeyId,
  ]);
  return BigInt(rows[0].spent);
}

const claimsOf = async ({ id }: CallerLimit) =>
  (await pool.query("SELECT amount::text FROM usage_limit_claim WHERE limit_id = $1", [id])).rows.map(({ amount }) => amount);

describe("the last nanocredits of a window", () => {
  it("are spent by forty parallel requests on two processes, and never more", async () => {
    clock = createMovableClock(new Date("2026-11-28T12:00:00Z"));
    const payer = await createPayer(pool, ledger, { pack: 1_000_000n });
    const limit = await addLimit(payer, { amount: 100n });
    const [one, two] = [await start(), await start()];

    const results = await Promise.all(
      Array.from({ length: 80 }, (_, index) => spend(index % 2 ? one : two, payer, 3n, BigInt(1 + (index % 3)), [limit])),
    );

    expect(await spentOf(payer.apiKeyId)).toBeLessThanOrEqual(100n);
    expect(results.some(({ refusal }) => refusal?.code === "KEY_BUDGET_EXHAUSTED")).toBe(true);
    // What the last holds left can still be spent, to the last one.
    for (let more = true; more; ) more = (await spend(one, payer, 1n, 1n, [limit])).refusal === undefined;
    expect(await spentOf(payer.apiKeyId)).toBe(100n);
    const { refusal } = await spend(two, payer, 1n, 1n, [limit]);
    expect(refusal).toMatchObject({
      code: "KEY_BUDGET_EXHAUSTED",
      details: {
        bound: "key_limit",
        limit: { id: limit.id, amount: "0.0000001", spent: "0.0000001", renewsAt: "2026-11-29T00:00:00.000Z" },
        required: "0.000000001",
        available: "0",
      },
    });
    clock.advance(12 * 3600);
    expect(await spend(two, payer, 60n, 60n, [limit])).toEqual({ charged: 60n });
  });

  it("bound an answer that costs more than its hold", async () => {
    clock = createMovableClock();
    const payer = await createPayer(pool, ledger, { pack: 1_000_000n });
    const limit = await addLimit(payer, { amount: 100n });
    const one = await start();

    expect(await spend(one, payer, 40n, 1_000n, [limit])).toEqual({ charged: 100n });
    expect(await spentOf(payer.apiKeyId)).toBe(100n);
  });

  it("let a stream run until they are used", async () => {
    clock = createMovableClock();
    const payer = await createPayer(pool, ledger, { pack: 1_000_000n });
    const limit = await addLimit(payer, { amount: 100n });
    const charge = open(await start(), payer, 20n, [limit]);
    await charge.held;

    let delivered = 0n;
    let refusal = null;
    while (refusal === null) {
      delivered += 5n;
      refusal = await charge.meter(delivered, false, record);
    }
    await charge.settle(delivered, record());

    expect(delivered).toBe(100n);
    expect(refusal).toMatchObject({ code: "KEY_BUDGET_EXHAUSTED", details: { bound: "key_limit" } });
    expect(await spentOf(payer.apiKeyId)).toBe(100n);
  });
});

describe("a limit", () => {
  it("counts descendants of its key, and one model only", async () => {
    clock = createMovableClock();
    const payer = await createPayer(pool, ledger, { pack: 1_000_000n });
    const child = { ...payer, apiKeyId: await createKey(pool, payer.accountId, null, randomUUID(), null, payer.apiKeyId) };
    const limit = await addLimit(payer, { amount: 10n, model: "acme/chat" });
    const [one, two] = [await start(), await start()];

    expect(await spend(one, child, 7n, 7n, [limit])).toEqual({ charged: 7n });
    expect(await spend(two, payer, 4n, 4n, [limit])).toMatchObject({ refusal: { code: "KEY_BUDGET_EXHAUSTED" } });
    const other = open(two, payer, 400n, [limit], { model: "acme/other" });
    await other.held;
    await other.settle(400n, record({ model: "acme/other" }));
    expect(await spend(two, payer, 3n, 3n, [limit])).toEqual({ charged: 3n });
  });

  it("is raised for a time", async () => {
    clock = createMovableClock(new Date("2026-11-28T12:00:00Z"));
    const payer = await createPayer(pool, ledger, { pack: 1_000_000n });
    const limit = await addLimit(payer, { amount: 100n, raiseAmount: 50n, raiseUntil: new Date("2026-11-28T13:00:00Z") });
    const one = await start();

    expect(await spend(one, payer, 110n, 110n, [limit])).toEqual({ charged: 110n });
    expect(await spend(one, payer, 1n, 1n, [limit])).toEqual({ charged: 1n });
    clock.advance(3600);
    expect(await spend(one, payer, 1n, 1n, [limit])).toMatchObject({ refusal: { code: "KEY_BUDGET_EXHAUSTED" } });
  });

  it("counts requests, tokens and generations at once, with RATE_LIMITED", async () => {
    clock = createMovableClock();
    const payer = await createPayer(pool, ledger, { pack: 1_000_000n });
    const requests = await addLimit(payer, { amount: 2n, metric: "requests", minutes: 1, isRolling: true });
    const [one, two] = [await start(), await start()];

    expect(await spend(one, payer, 1n, 1n, [requests])).toEqual({ charged: 1n });
    clock.advance(20);
    expect(await spend(two, payer, 1n, 1n, [requests])).toEqual({ charged: 1n });
    const { refusal } = await spend(one, payer, 1n, 1n, [requests]);
    expect(refusal).toMatchObject({ code: "RATE_LIMITED", retryAfterSeconds: 40, details: { limit: { metric: "requests", spent: "2" } } });
    clock.advance(40);
    expect(await spend(two, payer, 1n, 1n, [requests])).toEqual({ charged: 1n });

    const atOnce = await addLimit(payer, { amount: 1n, metric: "concurrency", period: null });
    const first = open(one, payer, 1n, [atOnce]);
    await first.held;
    expect(await spend(two, payer, 1n, 1n, [atOnce])).toMatchObject({ refusal: { code: "RATE_LIMITED", retryAfterSeconds: 1 } });
    await first.release();
    expect(await spend(two, payer, 1n, 1n, [atOnce])).toEqual({ charged: 1n });

    const tokens = await addLimit(payer, { amount: 100n, metric: "tokens", minutes: 1 });
    const counted = open(one, payer, 1n, [tokens], { tokens: 30 });
    await counted.held;
    await counted.settle(1n, record({ usage: { ...usageRecord().usage, inputTextTokens: 60, outputTextTokens: 39 } }));
    const last = open(two, payer, 1n, [tokens], { tokens: 2 });
    await expect(last.held).rejects.toMatchObject({ code: "RATE_LIMITED", details: { limit: { spent: "99" }, available: "1" } });
    await last.release();
  });

  it("loses the claim of a process that died, and keeps its charges", async () => {
    clock = createMovableClock();
    const payer = await createPayer(pool, ledger, { pack: 1_000_000n });
    const limit = await addLimit(payer, { amount: 100n });
    const [one, two] = [await start(), await start()];
    expect(await spend(one, payer, 10n, 10n, [limit])).toEqual({ charged: 10n });
    expect(await claimsOf(limit)).not.toEqual([]);

    processes = [two];
    await pool.query("UPDATE usage_limit_claim SET amount = 90 WHERE limit_id = $1", [limit.id]);
    await pool.query("DELETE FROM gateway_process WHERE id = $1", [one.processId]);

    expect(await spend(two, payer, 90n, 90n, [limit])).toEqual({ charged: 90n });
    await one.close();
  });
});

describe("exact claims", () => {
  it("count requests of agents as usage records do, and not as generations at once", async () => {
    clock = createMovableClock();
    const payer = await createPayer(pool, ledger, { pack: 1_000_000n });
    const requests = await addLimit(payer, { amount: 2n, metric: "requests" });
    const atOnce = await addLimit(payer, { amount: 1n, metric: "concurrency", period: null });
    const one = await start();
    const limits = [requests, atOnce].sort((first, second) => (first.id < second.id ? -1 : 1));
    const run = { parentRequestId: randomUUID(), maxCost: 1_000n, safetyFeatures: [] };
    const callOfAgent = () => open(one, payer, 1n, limits, { payer: { ...payer, hasBudget: false, run } });
    const call = open(one, payer, 1n, limits);
    await call.held;

    const child = callOfAgent();
    await child.held;
    const tooMany = callOfAgent();
    await expect(tooMany.held).rejects.toMatchObject({ code: "RATE_LIMITED", details: { limit: { metric: "requests" } } });

    await Promise.all([child.settle(1n, record()), call.settle(1n, record()), tooMany.release()]);
  });

  it("keep requests and tokens whose usage records are on disk only", async () => {
    clock = createMovableClock();
    const payer = await createPayer(pool, ledger, { pack: 1_000_000n });
    const requests = await addLimit(payer, { amount: 1n, metric: "requests" });
    const [one, two] = [await start(), await start()];
    const charge = open(one, payer, 1n, [requests]);
    await charge.held;
    one.ledger.lose("network");
    await charge.settle(1n, record());

    expect(await spend(two, payer, 1n, 1n, [requests])).toMatchObject({ refusal: { code: "RATE_LIMITED" } });

    one.ledger.heal();
    await expect.poll(() => spentOf(payer.apiKeyId)).toBe(1n);
    expect(await spend(two, payer, 1n, 1n, [requests])).toMatchObject({ refusal: { code: "RATE_LIMITED" } });
  });

  it("are not used after a pause in which the process counted as dead", async () => {
    clock = createMovableClock();
    const payer = await createPayer(pool, ledger, { pack: 1_000_000n });
    const limit = await addLimit(payer, { amount: 100n });
    const [one, two] = [await start(), await start()];
    expect(await spend(one, payer, 1n, 1n, [limit])).toEqual({ charged: 1n });
    expect(Number((await claimsOf(limit))[0])).toBeGreaterThan(0);
    await pool.query("UPDATE gateway_process SET heartbeat_at = now() - interval '1 hour' WHERE id = $1", [one.processId]);
    expect(await spend(two, payer, 99n, 99n, [limit])).toEqual({ charged: 99n });

    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3_600_000 });
    try {
      expect(await spend(one, payer, 1n, 1n, [limit])).toHaveProperty("refusal");
      one.claims.noteAlive();
      expect(await spend(one, payer, 1n, 1n, [limit])).toMatchObject({ refusal: { code: "KEY_BUDGET_EXHAUSTED" } });
    } finally {
      vi.useRealTimers();
      one.claims.noteAlive();
    }
    expect(await spentOf(payer.apiKeyId)).toBe(100n);
  });

  it("put a charge into the window for which it was claimed", async () => {
    clock = createMovableClock(new Date("2026-11-28T12:59:59.999Z"));
    const payer = await createPayer(pool, ledger, { pack: 1_000_000n });
    const limit = await addLimit(payer, { amount: 100n, period: "hour" });
    const one = await start();
    expect(await spend(one, payer, 60n, 60n, [limit])).toEqual({ charged: 60n });
    const charge = open(one, payer, 30n, [limit]);
    await charge.held;
    const beforeTheHour = record();
    clock.advance(1);

    await charge.settle(90n, beforeTheHour);

    const { rows } = await pool.query(
      `SELECT date_trunc('hour', timestamp) AS hour, sum(cost_nanocredits)::integer AS spent FROM usage_record WHERE api_key_id = $1 GROUP BY 1`,
      [payer.apiKeyId],
    );
    for (const { spent } of rows) expect(spent).toBeLessThanOrEqual(100);
  });
});

describe("use without usage records", () => {
  it("counts failed requests for which an upstream was called, on every process, until they leave the window", async () => {
    clock = createMovableClock();
    const payer = await createPayer(pool, ledger, { pack: 1_000_000n });
    const requests = await addLimit(payer, { amount: 2n, metric: "requests", minutes: 1, isRolling: true });
    const tokens = await addLimit(payer, { amount: 10n, metric: "tokens", minutes: 1, isRolling: true });
    const limits = [requests, tokens].sort((first, second) => (first.id < second.id ? -1 : 1));
    const [one, two] = [await start(), await start()];
    const fail = async (process: MoneyProcess, wasCalled: boolean) => {
      const charge = open(process, payer, 1n, limits, { tokens: 8 });
      await charge.held;
      await charge.release(wasCalled);
    };

    for (let count = 0; count < 3; count += 1) await fail(one, false);
    await fail(one, true);
    await fail(two, true);

    expect(await spend(one, payer, 1n, 1n, limits)).toMatchObject({
      refusal: { code: "RATE_LIMITED", details: { limit: { spent: "2" } } },
    });
    expect(await spend(two, payer, 1n, 1n, limits)).toHaveProperty("refusal");
    clock.advance(62);
    expect(await spend(two, payer, 1n, 1n, limits)).toEqual({ charged: 1n });
  });

  it("counts another model that the caller named and that served, and no model that did not", async () => {
    clock = createMovableClock();
    const payer = await createPayer(pool, ledger, { pack: 1_000_000n });
    const limits = [
      await addLimit(payer, { amount: 10n, model: "acme/other" }),
      await addLimit(payer, { amount: 2n, metric: "requests", model: "acme/other" }),
    ].sort((first, second) => (first.id < second.id ? -1 : 1));
    const [one, two] = [await start(), await start()];
    const call = async (process: MoneyProcess, modelUsed: string) => {
      const charge = open(process, payer, 6n, limits, { otherModels: ["acme/other"] });
      try {
        await charge.held;
      } catch (error) {
        await charge.release();
        return (error as { code: string }).code;
      }
      return (await charge.settle(6n, record({ modelUsed }))).chargedNanocredits;
    };

    expect([await call(one, "acme/chat"), await call(two, "acme/chat")]).toEqual([6n, 6n]);
    expect(await call(one, "acme/other")).toBe(6n);
    expect([await call(two, "acme/other"), await call(one, "acme/chat")]).toEqual(["KEY_BUDGET_EXHAUSTED", "KEY_BUDGET_EXHAUSTED"]);
  });
});

describe("a limit of a model", () => {
  async function addModelLimit(
    amount: bigint,
    terms: Pick<LimitTerms, "metric" | "minutes" | "period" | "isRolling">,
  ): Promise<CallerLimit> {
    const { metric = "requests" } = terms;
    const id = randomUUID();
    await test.database.prisma.usageLimit.create({ data: { id, model: "acme/chat", amount, metric, ...terms } });
    return { id, accountId: null, metric, isOfKey: false, model: "acme/chat", rollingMs: null, hasAlerts: false };
  }

  it.each([{ minutes: 1, isRolling: true }, { minutes: 1 }])("is kept over accounts, processes and a death: %j", async (terms) => {
    clock = createMovableClock(new Date("2026-11-28T12:00:05Z"));
    const payers = [await createPayer(pool, ledger, { pack: 1_000_000n }), await createPayer(pool, ledger, { pack: 1_000_000n })];
    const limit = await addModelLimit(20n, terms);
    const [one, two] = [await start(), await start()];
    const callMany = (processesOf: readonly MoneyProcess[]) =>
      Promise.all(
        Array.from({ length: 40 }, (_, index) =>
          spend(processesOf[index % processesOf.length] as MoneyProcess, payers[index % 2] as TestPayer, 1n, 1n, [limit]),
        ),
      );
    const served = (results: Awaited<ReturnType<typeof callMany>>) => results.filter(({ refusal }) => refusal === undefined).length;

    const first = await callMany([one, two]);
    expect(served(first)).toBeGreaterThan(0);
    expect(served(first)).toBeLessThanOrEqual(20);
    expect(first.find(({ refusal }) => refusal)?.refusal).toMatchObject({
      code: "RATE_LIMITED",
      details: { bound: "model_limit", limit: { metric: "requests", amount: "20", model: "acme/chat" } },
    });
    // It has reported nothing of the last requests yet.
    await pool.query("DELETE FROM gateway_process WHERE id = $1", [one.processId]);
    const second = await callMany([two]);
    expect(served(first) + served(second)).toBeLessThanOrEqual(20);

    clock.advance(62);
    const third = await callMany([two]);
    expect(served(third)).toBe(20);
    processes = [two];
    await one.close();
  });

  it("counts tokens after an answer, and generations at once", async () => {
    clock = createMovableClock();
    const payer = await createPayer(pool, ledger, { pack: 1_000_000n });
    const tokens = await addModelLimit(100n, { metric: "tokens", minutes: 1 });
    const [one, two] = [await start(), await start()];
    const counted = open(one, payer, 1n, [tokens], { tokens: 30 });
    await counted.held;
    await counted.settle(1n, record({ usage: { ...usageRecord().usage, inputTextTokens: 60, outputTextTokens: 39 } }));
    const uses = async () => (await test.database.prisma.usageLimitUse.findFirst({ where: { limitId: tokens.id } }))?.amount;
    await expect.poll(uses, { interval: 5 }).toBe(99n);
    const last = open(two, payer, 1n, [tokens], { tokens: 2 });
    await expect(last.held).rejects.toMatchObject({ code: "RATE_LIMITED", details: { bound: "model_limit" } });
    await last.release();

    const atOnce = await addModelLimit(1n, { metric: "concurrency", period: null });
    const running = open(one, payer, 1n, [atOnce]);
    await running.held;
    expect(await spend(two, payer, 1n, 1n, [atOnce])).toMatchObject({ refusal: { code: "RATE_LIMITED", retryAfterSeconds: 1 } });
    await running.release();
    expect(await spend(two, payer, 1n, 1n, [atOnce])).toEqual({ charged: 1n });
  });
});

describe("rolling and calendar windows together", () => {
  it("are never over, whenever they are looked at", async () => {
    clock = createMovableClock(new Date("2026-11-27T20:00:00Z"));
    const payer = await createPayer(pool, ledger, { pack: 1_000_000_000n });
    const limits = [
      await addLimit(payer, { amount: 1_000n, minutes: 90, isRolling: true }),
      await addLimit(payer, { amount: 700n, period: "hour" }),
      await addLimit({ ...payer, apiKeyId: null }, { amount: 4_000n, period: "day", isRolling: true }),
      await addLimit(payer, { amount: 20n, metric: "requests", minutes: 15, isRolling: true }),
    ];
    const all = [await start(), await start(), await start()];
    let state = 7;
    const random = (below: number) => {
      state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
      return state % below;
    };

    for (let round = 0; round < 100; round += 1) {
      await Promise.all(
        Array.from({ length: 1 + random(8) }, () => {
          const estimate = BigInt(1 + random(150));
          return spend(all[random(3)] as MoneyProcess, payer, estimate, BigInt(random(200)), limits);
        }),
      );
      clock.advance(random(900));
    }

    const { rows } = await pool.query(
      "SELECT timestamp AS at, cost_nanocredits::integer AS cost FROM usage_record WHERE account_id = $1 ORDER BY timestamp",
      [payer.accountId],
    );
    const charges: { at: Date; cost: number }[] = rows;
    expect(charges.length).toBeGreaterThan(30);
    const sum = (isIn: (at: number) => boolean) => charges.reduce((total, { at, cost }) => (isIn(at.getTime()) ? total + cost : total), 0);
    const hour = (at: number) => Math.floor(at / 3_600_000);
    const most = { rolling: 0, hourly: 0, daily: 0, requests: 0 };
    for (const end of charges.map(({ at }) => at.getTime())) {
      const within = (minutes: number) => (at: number) => at <= end && at > end - minutes * 60_000;
      most.rolling = Math.max(most.rolling, sum(within(90)));
      most.hourly = Math.max(
        most.hourly,
        sum((at) => hour(at) === hour(end)),
      );
      most.daily = Math.max(most.daily, sum(within(24 * 60)));
      most.requests = Math.max(most.requests, charges.filter(({ at }) => within(15)(at.getTime())).length);
    }
    expect(most.rolling).toBeLessThanOrEqual(1_000);
    expect(most.hourly).toBeLessThanOrEqual(700);
    expect(most.daily).toBeLessThanOrEqual(4_000);
    expect(most.requests).toBeLessThanOrEqual(20);
    // They were in the way.
    expect(most.rolling).toBeGreaterThan(800);
    expect(most.daily).toBeGreaterThan(3_500);
  });
});
