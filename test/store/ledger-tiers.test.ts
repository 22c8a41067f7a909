/** What fills the tier bucket, and the traffic of apps, in the ledger itself, on both databases. */
import { randomUUID } from "node:crypto";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Ledger, TierChange, TierOutcome } from "../../src/store/ledger.js";
import type { TestDatabase } from "../support/database.js";
import { findBrokenInvariants } from "../support/invariants.js";
import {
  type Balances,
  createAccount,
  createKey,
  createTestLedger,
  hold,
  readAccount,
  readEntries,
  release,
  settle,
  type TestPayer,
  usageRecord,
} from "../support/ledger.js";
import { DATABASE_KINDS } from "../support/shared-database.js";

const NOON = new Date("2026-11-21T12:00:00.000Z");
const MIDNIGHT = new Date("2026-11-22T00:00:00.000Z");
const NEXT_MIDNIGHT = new Date("2026-11-23T00:00:00.000Z");

describe.each(DATABASE_KINDS)("D the ledger on $name", ({ isAbsent, open }) => {
  describe.skipIf(isAbsent)("", () => {
    let test: TestDatabase;
    let pool: pg.Pool;
    let ledger: Ledger;

    beforeAll(async () => {
      test = await open();
      pool = test.database.pool;
      ledger = createTestLedger(test.database);
    });
    afterAll(async () => {
      const broken = await findBrokenInvariants(pool);
      await test.close();
      expect(broken).toEqual({});
    });

    /** An account of the tier free, with these buckets, next refilled at midnight unless said. */
    const freeAccount = async (balances: Balances = {}, resetsAt: Date | null = MIDNIGHT): Promise<string> => {
      const accountId = await createAccount(pool, ledger, balances);
      await pool.query("UPDATE account SET tier = 'free', tier_resets_at = $2 WHERE id = $1", [accountId, resetsAt?.toISOString() ?? null]);
      return accountId;
    };
    const payer = (accountId: string): TestPayer => ({ accountId, apiKeyId: null });
    const refill = (accountId: string, asOf: Date, more: Partial<TierChange> = {}): Promise<TierOutcome> =>
      ledger.refill({ id: randomUUID(), accountId, tier: "free", amount: 10n, nextReset: NEXT_MIDNIGHT, asOf, ...more });
    const setTier = (accountId: string, tier: string | null, more: Partial<TierChange> = {}): Promise<TierOutcome> =>
      ledger.setTier({ id: randomUUID(), accountId, tier, amount: 50n, nextReset: NEXT_MIDNIGHT, ...more });
    const refillsOf = async (accountId: string): Promise<bigint[]> => {
      const { rows } = await pool.query(
        "SELECT amount_nanocredits FROM ledger_entry WHERE account_id = $1 AND kind = 'refill' AND book = 'tier' ORDER BY created_at, transaction_id",
        [accountId],
      );
      return rows.map((row) => BigInt(row.amount_nanocredits));
    };

    describe("D refills", () => {
      it("fill a new account, at once, and once", async () => {
        const accountId = await freeAccount({ pack: 5n }, null);
        const id = randomUUID();

        const first = await refill(accountId, NOON, { id, nextReset: MIDNIGHT });
        const second = await refill(accountId, NOON, { nextReset: MIDNIGHT });

        expect(first).toEqual({ outcome: "refilled", change: 10n, tier: "free", resetsAt: MIDNIGHT, available: 15n });
        expect(second).toEqual({ outcome: "not_due", change: 0n, tier: "free", resetsAt: MIDNIGHT, available: 15n });
        expect(await readEntries(pool, id)).toEqual([
          ["tier", 10n],
          ["issued", -10n],
        ]);
        expect(await refillsOf(accountId)).toEqual([10n]);
      });

      it("come at the boundary, and not a millisecond before", async () => {
        const accountId = await freeAccount();

        expect(await refill(accountId, new Date(MIDNIGHT.getTime() - 1))).toMatchObject({ outcome: "not_due", resetsAt: MIDNIGHT });
        expect(await refill(accountId, MIDNIGHT)).toMatchObject({ outcome: "refilled", change: 10n, resetsAt: NEXT_MIDNIGHT });
      });

      it("set the bucket to the tier's amount and do not stack: the rest counts, and more than the amount is dropped", async () => {
        const [some, more] = [await freeAccount({ tier: 4n, crypto: 1n }), await freeAccount({ tier: 14n, crypto: 1n })];

        expect(await refill(some, MIDNIGHT)).toMatchObject({ change: 6n, available: 11n });
        expect(await refill(more, MIDNIGHT)).toMatchObject({ change: -4n, available: 11n });
      });

      it("write no line when the bucket is full, and move the boundary all the same", async () => {
        const accountId = await freeAccount({ tier: 10n });

        expect(await refill(accountId, MIDNIGHT)).toMatchObject({ outcome: "refilled", change: 0n, resetsAt: NEXT_MIDNIGHT });
        expect(await refillsOf(accountId)).toEqual([]);
      });

      it("take no held credits away", async () => {
        const accountId = await freeAccount({ tier: 30n });
        const held = hold(payer(accountId), 25n);
        await ledger.flush([held]);

        expect(await refill(accountId, MIDNIGHT)).toMatchObject({ outcome: "refilled", change: -5n, available: 0n });
        expect(await readAccount(pool, accountId)).toMatchObject({ buckets: { tier: 25n }, held: { tier: 25n } });
        const [outcome] = await ledger.flush([settle(held, 25n)]);
        expect(outcome).toMatchObject({ charged: 25n, writtenOff: 0n, meterSource: "tier" });
      });

      it("come once, however many processes request them at once", async () => {
        const accountId = await freeAccount();
        const others = Array.from({ length: 8 }, () => createTestLedger(test.database));

        const outcomes = await Promise.all(
          others.map((other) =>
            other.refill({ id: randomUUID(), accountId, tier: "free", amount: 10n, asOf: MIDNIGHT, nextReset: NEXT_MIDNIGHT }),
          ),
        );

        expect(outcomes.filter(({ outcome }) => outcome === "refilled")).toHaveLength(1);
        expect(await refillsOf(accountId)).toEqual([10n]);
      });

      it("do not move the boundary back, when another process's clock is behind", async () => {
        const accountId = await freeAccount();
        await refill(accountId, MIDNIGHT);

        expect(await refill(accountId, NOON, { nextReset: MIDNIGHT })).toMatchObject({ outcome: "not_due", resetsAt: NEXT_MIDNIGHT });
      });

      it("ignore the rules of a tier that the account no longer has", async () => {
        const accountId = await freeAccount();

        expect(await refill(accountId, MIDNIGHT, { tier: "plus", amount: 50n })).toMatchObject({ outcome: "tier_changed", tier: "free" });
        expect(await refill(accountId, MIDNIGHT, { tier: null, amount: 0n })).toMatchObject({ outcome: "tier_changed", tier: "free" });
        expect(await refillsOf(accountId)).toEqual([]);
      });

      it("give nothing to an account without a tier that refills, whose rest lapses at its last boundary", async () => {
        const [never, lapsing] = [await freeAccount({ tier: 3n }, null), await freeAccount({ tier: 3n, pack: 1n })];
        const nothing = { amount: 0n, nextReset: null };

        expect(await refill(never, MIDNIGHT, nothing)).toMatchObject({ outcome: "not_due", change: 0n, available: 3n });
        expect(await refill(lapsing, NOON, nothing)).toMatchObject({ outcome: "not_due", available: 4n });
        expect(await refill(lapsing, MIDNIGHT, nothing)).toMatchObject({ outcome: "refilled", change: -3n, resetsAt: null, available: 1n });
        expect(await refill(lapsing, MIDNIGHT, nothing)).toMatchObject({ outcome: "not_due", resetsAt: null });
      });

      it("report a missing account, and refuse a boundary that is not ahead and an amount below 0", async () => {
        const accountId = await freeAccount();

        expect(await refill(randomUUID(), MIDNIGHT)).toEqual({ outcome: "missing", change: 0n, tier: null, resetsAt: null, available: 0n });
        await expect(refill(accountId, MIDNIGHT, { nextReset: MIDNIGHT })).rejects.toMatchObject({ code: "23514" });
        await expect(refill(accountId, MIDNIGHT, { amount: -1n })).rejects.toMatchObject({ code: "23514" });
      });
    });

    describe("a change of tier", () => {
      it("fills up to the new tier's amount, at once", async () => {
        const accountId = await freeAccount({ tier: 4n });
        const id = randomUUID();

        expect(await setTier(accountId, "plus", { id })).toEqual({
          outcome: "set",
          change: 46n,
          tier: "plus",
          resetsAt: NEXT_MIDNIGHT,
          available: 50n,
        });
        expect(await readEntries(pool, id)).toEqual([
          ["tier", 46n],
          ["issued", -46n],
        ]);
      });

      it("gives once: the same tier again changes nothing", async () => {
        const accountId = await freeAccount();
        await setTier(accountId, "plus");
        await ledger.flush([settle(payer(accountId), 20n)]);

        expect(await setTier(accountId, "plus")).toMatchObject({ outcome: "unchanged", change: 0n, available: 30n });
      });

      it("keeps credits above the new amount until the next boundary", async () => {
        const accountId = await freeAccount({ tier: 9n });

        expect(await setTier(accountId, "small", { amount: 2n })).toMatchObject({ outcome: "set", change: 0n, resetsAt: NEXT_MIDNIGHT });
        expect(
          await refill(accountId, NEXT_MIDNIGHT, { tier: "small", amount: 2n, nextReset: new Date(NEXT_MIDNIGHT.getTime() + 1) }),
        ).toMatchObject({ change: -7n, available: 2n });
      });

      it("to none keeps the rest until the next boundary", async () => {
        const accountId = await freeAccount({ tier: 9n });

        expect(await setTier(accountId, null, { amount: 0n, nextReset: null })).toMatchObject({
          outcome: "set",
          change: 0n,
          tier: null,
          resetsAt: MIDNIGHT,
          available: 9n,
        });
        expect(await setTier(accountId, null, { amount: 0n, nextReset: null })).toMatchObject({ outcome: "unchanged" });
      });

      it("reports a missing account", async () => {
        expect(await setTier(randomUUID(), "plus")).toMatchObject({ outcome: "missing" });
      });
    });

    describe("the traffic of an app", () => {
      const appPayer = async (appKeyId: string | null, balances: Balances = { pack: 1_000n }): Promise<TestPayer> => {
        const accountId = await createAccount(pool, ledger, balances);
        return { accountId, apiKeyId: await createKey(pool, accountId, null, randomUUID(), appKeyId) };
      };
      const readApp = async (appKeyId: string): Promise<unknown[]> => {
        const { rows } = await pool.query(
          "SELECT day::text, model, requests, cost_nanocredits::text AS cost FROM app_usage_daily WHERE app_key_id = $1 ORDER BY day, model",
          [appKeyId],
        );
        return rows;
      };

      it("is summed up by day and model over all accounts, in the transaction that charges", async () => {
        const app = randomUUID();
        const [first, second] = [await appPayer(app), await appPayer(app)];
        const yesterday = usageRecord({ timestamp: "2026-11-20T23:59:59.999Z" });
        const other = usageRecord({ model: "acme/other" });

        await ledger.flush([settle(first, 3n), settle(second, 4n), settle(first, 5n, { record: yesterday })]);
        await ledger.flush([settle(second, 6n), settle(second, 7n, { record: other })]);

        expect(await readApp(app)).toEqual([
          { day: "2026-11-20", model: "acme/chat", requests: 1, cost: "5" },
          { day: "2026-11-21", model: "acme/chat", requests: 3, cost: "13" },
          { day: "2026-11-21", model: "acme/other", requests: 1, cost: "7" },
        ]);
      });

      it("counts charged generations, free ones too, and nothing twice", async () => {
        const app = randomUUID();
        const poor = await appPayer(app, { pack: 2n });
        const charge = settle(poor, 9n);

        await ledger.flush([charge]);
        await ledger.flush([charge]);
        await ledger.flush([settle(poor, 0n)]);

        expect(await readApp(app)).toEqual([{ day: "2026-11-21", model: "acme/chat", requests: 2, cost: "2" }]);
      });

      it("is of keys that were granted to an app alone, and of settlements alone, wherever they stand in a batch", async () => {
        const app = randomUUID();
        const [granted, own] = [await appPayer(app), await appPayer(null)];
        const held = hold(granted, 5n);

        await ledger.flush([settle(own, 1n), held, settle(granted, 2n), settle({ ...granted, apiKeyId: null }, 4n)]);
        await ledger.flush([release(held), settle(own, 1n)]);

        expect(await readApp(app)).toEqual([{ day: "2026-11-21", model: "acme/chat", requests: 1, cost: "2" }]);
      });

      it("blocks no batch: batches of several processes on the same apps, in any order, all commit", async () => {
        const apps = [randomUUID(), randomUUID(), randomUUID()];
        const processes = await Promise.all(
          Array.from({ length: 4 }, async () => ({
            ledger: createTestLedger(test.database),
            payers: await Promise.all(apps.map((app) => appPayer(app))),
          })),
        );

        await Promise.all(
          processes.map(async ({ ledger: own, payers }, index) => {
            const order = index % 2 === 0 ? payers : payers.toReversed();
            for (let round = 0; round < 10; round += 1) await own.flush(order.map((one) => settle(one, 1n)));
          }),
        );

        for (const app of apps) expect(await readApp(app)).toEqual([{ day: "2026-11-21", model: "acme/chat", requests: 40, cost: "40" }]);
      });
    });
  });
});
