/** The ledger, case by case, on both databases. `ledger-properties.test.ts` asks for anything in any order. */
import { randomUUID } from "node:crypto";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NO_USAGE } from "../../src/lib/usage.js";
import { type Ledger, type LedgerOperation, type LedgerOutcome, LedgerUnavailable } from "../../src/store/ledger.js";
import type { TestDatabase } from "../support/database.js";
import { findBrokenInvariants } from "../support/invariants.js";
import {
  createAccount,
  createKey,
  createPayer,
  createTestLedger,
  extend,
  hold,
  readAccount,
  readEntries,
  readKey,
  readUsage,
  recover,
  release,
  settle,
  usageRecord,
} from "../support/ledger.js";
import { DATABASE_KINDS } from "../support/shared-database.js";

const HUGE = 2n ** 62n;

describe.each(DATABASE_KINDS)("the ledger on $name", ({ isAbsent, open }) => {
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

    const one = async (operation: LedgerOperation): Promise<LedgerOutcome> => {
      const [outcome] = await ledger.flush([operation]);
      if (!outcome) throw new Error("no outcome");
      return outcome;
    };
    const payerWith = (balances: Parameters<typeof createPayer>[2], budget: bigint | null = null) =>
      createPayer(pool, ledger, balances, budget);

    it("holds, charges, and returns the rest", async () => {
      const payer = await payerWith({ pack: 100n }, 60n);
      const held = hold(payer, 50n);

      expect(await one(held)).toMatchObject({ outcome: "ok", isContended: false, available: 50n, keyAvailable: 10n });
      expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { pack: 100n }, held: { pack: 50n } });
      expect(await one(settle(held, 30n))).toEqual({
        outcome: "ok",
        isContended: false,
        charged: 30n,
        writtenOff: 0n,
        meterSource: "pack",
        available: 70n,
        keyAvailable: 30n,
      });

      expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { pack: 70n }, held: { pack: 0n } });
      expect(await readKey(pool, payer.apiKeyId ?? "")).toEqual({ budget: 60n, spent: 30n, held: 0n });
      expect(await readUsage(pool, held.id)).toEqual({ cost: 30n, source: "pack", status: "ok", usageSource: "provider" });
      expect(await readEntries(pool, held.id)).toEqual([
        ["pack", -30n],
        ["revenue", 30n],
      ]);
    });

    it("writes the usage record unchanged", async () => {
      const payer = await payerWith({ pack: 5n });
      const parentRequestId = randomUUID();
      const usage = {
        inputTextTokens: 1,
        inputCachedTokens: 2,
        inputCacheWriteTokens: 3,
        inputAudioTokens: 4,
        inputImageTokens: 5,
        outputTextTokens: 6,
        outputReasoningTokens: 7,
        outputAudioTokens: 8,
        outputImageTokens: 9,
        outputVideoMilliseconds: 10,
        outputAudioMilliseconds: 2_147_483_647,
      };
      const course = { heldNanocredits: "7000000000000", upstreamUs: 3_600_000_000, gatewayUs: 412 };
      const attempts = [{ upstream: 'o"ne', route: "one#2", code: "rate_limited", ms: 7 }];
      const route = { upstream: "two", route: "two/b", costNanocredits: "9000000000000", attempts };
      const stated = { modelUsed: "acme/chat-b", timeToFirstTokenMs: 3, status: "cancelled", parentRequestId } as const;
      const record = usageRecord({ usage, ...stated, course, route });
      const settlement = settle(payer, 5n, { record });

      await one(settlement);

      const row = await test.database.prisma.usageRecord.findUniqueOrThrow({ where: { id: settlement.id } });
      expect(row).toEqual({
        id: settlement.id,
        accountId: payer.accountId,
        apiKeyId: payer.apiKeyId,
        apiKeyName: "Test",
        apiKeyType: "secret",
        timestamp: new Date("2026-11-21T12:00:00.000Z"),
        modality: "text",
        model: "acme/chat",
        modelUsed: "acme/chat-b",
        meterSource: "pack",
        isRecovered: false,
        ...usage,
        costNanocredits: 5n,
        responseTimeMs: 12,
        timeToFirstTokenMs: 3,
        status: "cancelled",
        usageSource: "provider",
        parentRequestId,
        heldNanocredits: 7_000_000_000_000n,
        upstreamUs: 3_600_000_000n,
        gatewayUs: 412n,
        upstream: "two",
        route: "two/b",
        upstreamCostNanocredits: 9_000_000_000_000n,
        attempts,
        appMarginNanocredits: null,
        writtenIn: expect.any(BigInt),
      });
    });

    it("corrects a recovery by the real settlement, once, to a higher or lower charge", async () => {
      const app = randomUUID();
      const accountId = await createAccount(pool, ledger, { tier: 3n, pack: 100n });
      const payer = { accountId, apiKeyId: await createKey(pool, accountId, 50n, randomUUID(), app) };
      const noted = usageRecord({ status: "cancelled", usageSource: "partial", model: "acme/noted" });
      const real = usageRecord({
        usage: { ...NO_USAGE, outputTextTokens: 9 },
        course: { heldNanocredits: "10", upstreamUs: 5, gatewayUs: 1 },
        route: { upstream: "two", route: "two", costNanocredits: null, attempts: null },
      });
      const [more, less] = [hold(payer, 10n), hold(payer, 10n)];
      await ledger.flush([more, less]);

      expect(await ledger.flush([recover(more, 5n, noted), recover(less, 8n, noted)])).toMatchObject([{ charged: 5n }, { charged: 8n }]);
      expect(await one(recover(more, 9n, noted))).toMatchObject({ outcome: "duplicate", charged: 5n });
      const rowOf = (id: string) => test.database.prisma.usageRecord.findUniqueOrThrow({ where: { id } });
      expect(await rowOf(more.id)).toMatchObject({ heldNanocredits: null, upstreamUs: null, gatewayUs: null });
      const settlements = [settle(more, 20n, { record: real }), settle(less, 1n, { record: real })];
      expect(await ledger.flush([hold(payer, 1n), ...settlements])).toMatchObject([
        { outcome: "ok" },
        { outcome: "corrected", charged: 20n, writtenOff: 0n, meterSource: "pack" },
        { outcome: "corrected", charged: 1n, writtenOff: 0n, meterSource: "pack" },
      ]);
      expect(await ledger.flush(settlements)).toMatchObject([
        { outcome: "duplicate", charged: 20n },
        { outcome: "duplicate", charged: 1n },
      ]);

      expect(await readAccount(pool, accountId)).toMatchObject({ buckets: { tier: 0n, pack: 82n }, held: { pack: 1n } });
      expect(await readKey(pool, payer.apiKeyId)).toEqual({ budget: 50n, spent: 21n, held: 1n });
      expect((await readEntries(pool, less.id)).slice(-2)).toEqual([
        ["pack", 7n],
        ["revenue", -7n],
      ]);
      expect(await rowOf(more.id)).toMatchObject({
        ...{ model: "acme/chat", outputTextTokens: 9, costNanocredits: 20n, status: "ok", usageSource: "provider", isRecovered: false },
        ...{ heldNanocredits: 10n, upstreamUs: 5n, gatewayUs: 1n, upstream: "two", upstreamCostNanocredits: null, attempts: null },
      });
      const daily = await test.database.prisma.appUsageDaily.findMany({ where: { appKeyId: app } });
      expect(daily.map(({ model, requests, costNanocredits }) => [model, requests, costNanocredits])).toEqual([["acme/chat", 2, 21n]]);
    });

    it("writes off the part that a correction cannot charge, and refunds that first when the charge turns out lower", async () => {
      const payer = await payerWith({ pack: 10n });
      const [more, less] = [hold(payer, 5n), hold(payer, 5n)];
      await ledger.flush([more, less]);
      await ledger.flush([recover(more, 5n), recover(less, 8n)]);

      expect(await one(settle(more, 12n))).toMatchObject({ outcome: "corrected", charged: 5n, writtenOff: 7n });
      expect(await one(settle(less, 6n))).toMatchObject({ outcome: "corrected", charged: 5n, writtenOff: -2n });
    });

    it("never sets a key's budget below the most that its open holds may cost", async () => {
      const payer = await payerWith({ pack: 100n }, 50n);
      const held = hold(payer, 20n);
      await ledger.flush([held, settle(payer, 5n)]);
      const setBudget = (remaining: bigint | null, accountId = payer.accountId) =>
        pool.query("SELECT credit_set_budget($1, $2, $3) AS found", [accountId, payer.apiKeyId, remaining?.toString() ?? null]);

      expect((await setBudget(0n)).rows).toEqual([{ found: true }]);
      expect(await readKey(pool, payer.apiKeyId ?? "")).toEqual({ budget: 25n, spent: 5n, held: 20n });
      expect(await one(settle(held, 20n))).toMatchObject({ charged: 20n, writtenOff: 0n, keyAvailable: 0n });
      expect((await setBudget(null, randomUUID())).rows).toEqual([{ found: false }]);
      await expect(setBudget(-1n)).rejects.toThrow(/0 or more/);
      await setBudget(null);
      expect(await one(hold(payer, 60n))).toMatchObject({ outcome: "ok", keyAvailable: null });
    });

    it("caps the daily spending of all tiers together, and charges delivered answers", async () => {
      const { rows } = await pool.query("SELECT coalesce(sum(tier_nanocredits), 0) AS spent FROM free_spend_daily");
      const open = await pool.query("SELECT coalesce(sum(tier_nanocredits), 0) AS held FROM hold");
      const freeSpendCap = BigInt(rows[0].spent) + BigInt(open.rows[0].held) + 10n;
      const [first, second] = [createTestLedger(test.database, { freeSpendCap }), createTestLedger(test.database, { freeSpendCap })];
      const [a, b] = [await payerWith({ tier: 100n }), await payerWith({ tier: 100n, pack: 5n })];
      const held = hold(a, 7n);

      expect(await first.flush([held])).toMatchObject([{ outcome: "ok", available: 3n }]);
      // Holds count, for every process; amounts beyond the cap come from other buckets.
      expect(await second.flush([hold(a, 4n), hold(b, 9n)])).toMatchObject([
        { outcome: "free_spend_exhausted", isContended: false, available: 3n },
        { outcome: "free_spend_exhausted", isContended: false, available: 8n },
      ]);
      const split = hold(b, 8n);
      expect(await second.flush([split])).toMatchObject([{ outcome: "ok", available: 0n }]);
      expect(await second.flush([settle(split, 8n), settle(held, 9n)])).toMatchObject([
        { outcome: "ok", charged: 8n },
        { outcome: "ok", charged: 9n },
      ]);
      // Delivered answers are charged, also beyond the cap when no other bucket covers them.
      expect((await readAccount(pool, a.accountId)).buckets).toMatchObject({ tier: 91n });
      expect((await readAccount(pool, b.accountId)).buckets).toMatchObject({ tier: 97n, pack: 0n });
      expect(await first.flush([hold(a, 1n)])).toMatchObject([{ outcome: "free_spend_exhausted", available: 0n }]);
      expect(await one(hold(a, 1n))).toMatchObject({ outcome: "ok" });
    });

    it("keeps any text as it is", async () => {
      const payer = await payerWith({ pack: 100n });
      const texts = [
        "",
        "NULL",
        "null",
        " a ",
        "a,b",
        "{a}",
        '"',
        '\\"',
        "\\",
        "\\\\",
        "a\nb\r\tc",
        "'; DROP TABLE account; --",
        "🜂 é",
        "\u2028",
      ];
      const settlements = texts.map((text) =>
        settle(payer, 1n, { record: usageRecord({ apiKeyName: text, model: text, modelUsed: text }) }),
      );
      const held = texts.map((text) => hold(payer, 1n, { record: usageRecord({ apiKeyName: text, model: text }) }));

      await ledger.flush([...settlements, ...held]);

      const rows = await test.database.prisma.usageRecord.findMany({ where: { id: { in: settlements.map(({ id }) => id) } } });
      const textOf = (id: string) =>
        rows.filter((row) => row.id === id).map(({ apiKeyName, model, modelUsed }) => [apiKeyName, model, modelUsed]);
      expect(settlements.flatMap(({ id }) => textOf(id))).toEqual(texts.map((text) => [text, text, text]));
      const holds = await test.database.prisma.hold.findMany({ where: { id: { in: held.map(({ id }) => id) } } });
      expect(held.map(({ id }) => holds.find((row) => row.id === id)?.record)).toEqual(held.map(({ record }) => record));
    });

    it("draws tier, then crypto, then pack, and calls the bucket that paid most the source", async () => {
      const split = async (amount: bigint, paidOnly = false) => {
        const payer = await payerWith({ tier: 3n, crypto: 5n, pack: 90n });
        const settlement = settle(payer, amount, { paidOnly });
        const { meterSource } = await one(settlement);
        const { buckets } = await readAccount(pool, payer.accountId);
        return [meterSource, buckets.tier, buckets.crypto, buckets.pack];
      };

      expect(await split(3n)).toEqual(["tier", 0n, 5n, 90n]);
      expect(await split(6n)).toEqual(["tier", 0n, 2n, 90n]);
      expect(await split(7n)).toEqual(["crypto", 0n, 1n, 90n]);
      expect(await split(13n)).toEqual(["crypto", 0n, 0n, 85n]);
      expect(await split(14n)).toEqual(["pack", 0n, 0n, 84n]);
      expect(await split(5n, true)).toEqual(["crypto", 3n, 0n, 90n]);
      expect(await split(11n, true)).toEqual(["pack", 3n, 0n, 84n]);
    });

    it("names as the source of a free charge the first bucket that would have paid", async () => {
      const sourceOf = async (balances: Parameters<typeof createPayer>[2], paidOnly = false) => {
        const settlement = settle(await payerWith(balances), 0n, { paidOnly });
        const outcome = await one(settlement);
        expect(await readEntries(pool, settlement.id)).toEqual([]);
        expect(await readUsage(pool, settlement.id)).toMatchObject({ cost: 0n, source: outcome.meterSource });
        return outcome.meterSource;
      };

      expect(await sourceOf({ tier: 1n, crypto: 1n, pack: 1n })).toBe("tier");
      expect(await sourceOf({ tier: 1n, crypto: 1n, pack: 1n }, true)).toBe("crypto");
      expect(await sourceOf({ crypto: 1n, pack: 1n })).toBe("crypto");
      expect(await sourceOf({ tier: 1n, pack: 1n }, true)).toBe("pack");
      expect(await sourceOf({})).toBe("pack");
    });

    it("never draws the tier bucket for a paid-only model", async () => {
      const payer = await payerWith({ tier: 100n, pack: 4n });

      expect(await one(hold(payer, 5n, { paidOnly: true }))).toMatchObject({ outcome: "insufficient_balance", isContended: false });
      expect(await one(settle(payer, 5n, { paidOnly: true }))).toMatchObject({ charged: 4n, writtenOff: 1n, meterSource: "pack" });

      expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { tier: 100n, pack: 0n } });
    });

    it("refuses a hold that does not fit, to the nanocredit", async () => {
      const payer = await payerWith({ tier: 1n, crypto: 1n, pack: 1n });
      const poor = await payerWith({ pack: 100n }, 3n);

      expect(await one(hold(payer, 4n))).toMatchObject({ outcome: "insufficient_balance", isContended: false, available: 3n });
      expect(await one(hold(payer, 3n))).toMatchObject({ outcome: "ok", available: 0n });
      expect(await one(hold(poor, 4n))).toMatchObject({ outcome: "key_budget_exhausted", isContended: false, keyAvailable: 3n });
      expect(await one(hold(poor, 3n))).toMatchObject({ outcome: "ok", available: 97n, keyAvailable: 0n });
    });

    it("says of a refusal whether releases of other holds could turn it", async () => {
      const account = await payerWith({ tier: 1n, pack: 9n });
      const budget = await payerWith({ pack: 100n }, 10n);
      await ledger.flush([hold(account, 6n), hold(budget, 6n)]);

      expect(await one(hold(account, 10n))).toMatchObject({ outcome: "insufficient_balance", isContended: true });
      expect(await one(hold(account, 11n))).toMatchObject({ outcome: "insufficient_balance", isContended: false });
      expect(await one(hold(account, 10n, { paidOnly: true }))).toMatchObject({ outcome: "insufficient_balance", isContended: false });
      expect(await one(hold(account, 9n, { paidOnly: true }))).toMatchObject({ outcome: "insufficient_balance", isContended: true });
      expect(await one(hold(budget, 10n))).toMatchObject({ outcome: "key_budget_exhausted", isContended: true });
      expect(await one(hold(budget, 11n))).toMatchObject({ outcome: "key_budget_exhausted", isContended: false });
    });

    it("lets a hold of nothing in at balance 0", async () => {
      const payer = await payerWith({}, 0n);
      const held = hold(payer, 0n);

      expect(await one(held)).toMatchObject({ outcome: "ok", available: 0n, keyAvailable: 0n });
      expect(await one(settle(held, 0n))).toMatchObject({ outcome: "ok", charged: 0n, writtenOff: 0n });
    });

    it("frees credits before it holds them, in any order within a batch", async () => {
      const payer = await payerWith({ pack: 10n });
      const first = hold(payer, 10n);
      await one(first);

      const outcomes = await ledger.flush([hold(payer, 6n), settle(first, 3n), hold(payer, 2n)]);

      expect(outcomes.map(({ outcome, available }) => [outcome, available])).toEqual([
        ["ok", 1n],
        ["ok", 7n],
        ["insufficient_balance", 1n],
      ]);
    });

    it("charges more than the hold as far as the balance goes, and writes the rest off", async () => {
      const payer = await payerWith({ tier: 2n, pack: 10n });
      const other = hold(payer, 3n);
      const held = hold(payer, 4n);
      await ledger.flush([other, held]);

      expect(await one(settle(held, 20n))).toMatchObject({ outcome: "ok", charged: 9n, writtenOff: 11n, available: 0n });

      // The other hold's 3 are not touched: it held 2 of tier and 1 of pack.
      expect(await readEntries(pool, held.id)).toEqual([
        ["pack", -9n],
        ["write_off", -11n],
        ["revenue", 20n],
      ]);
      expect(await one(settle(other, 3n))).toMatchObject({ charged: 3n, writtenOff: 0n });
      expect(await readAccount(pool, payer.accountId)).toMatchObject({ buckets: { tier: 0n, pack: 0n } });
    });

    it("charges no more than the key's budget, and writes the rest off", async () => {
      const payer = await payerWith({ pack: 100n }, 10n);
      const other = hold(payer, 3n);
      await one(other);

      const settlement = settle(payer, 9n);
      expect(await one(settlement)).toMatchObject({ charged: 7n, writtenOff: 2n, keyAvailable: 0n });
      expect(await one(settle(other, 5n))).toMatchObject({ charged: 3n, writtenOff: 2n, keyAvailable: 0n });

      expect(await readKey(pool, payer.apiKeyId ?? "")).toEqual({ budget: 10n, spent: 10n, held: 0n });
      expect(await readUsage(pool, settlement.id)).toMatchObject({ cost: 7n });
    });

    it("charges a settlement that never had a hold", async () => {
      const payer = await payerWith({ pack: 10n }, null);

      expect(await one(settle(payer, 4n))).toMatchObject({ outcome: "ok", charged: 4n, writtenOff: 0n, keyAvailable: null });
    });

    it("changes nothing when an operation is repeated", async () => {
      const payer = await payerWith({ tier: 4n, pack: 6n }, 10n);
      const held = hold(payer, 8n);
      const settlement = settle(held, 5n);

      expect(await one(held)).toMatchObject({ outcome: "ok", available: 2n });
      expect(await one(held)).toMatchObject({ outcome: "ok", available: 2n, keyAvailable: 2n });
      expect(await one(settlement)).toMatchObject({ outcome: "ok", charged: 5n, meterSource: "tier", available: 5n });
      expect(await one(settlement)).toMatchObject({ outcome: "duplicate", charged: 5n, meterSource: "tier", available: 5n });
      expect(await one({ ...settlement, amount: 9n })).toMatchObject({ outcome: "duplicate", charged: 5n });
      expect(await one(held)).toMatchObject({ outcome: "duplicate", available: 5n, keyAvailable: 5n });
      expect(await one(release(held))).toMatchObject({ outcome: "missing", available: 5n });
      expect(await one(extend(held, 1n, 1n))).toMatchObject({ outcome: "missing", available: 5n });
    });

    it("releases a hold once, and holds again under the same id", async () => {
      const payer = await payerWith({ pack: 5n });
      const held = hold(payer, 5n);
      await one(held);

      expect(await one(release(held))).toMatchObject({ outcome: "ok", available: 5n });
      expect(await one(release(held))).toMatchObject({ outcome: "missing", available: 5n });
      expect(await one(held)).toMatchObject({ outcome: "ok", available: 0n });
    });

    it("extends a hold from the available buckets, and notes the meter even when it is refused", async () => {
      const payer = await payerWith({ tier: 3n, crypto: 2n, pack: 5n });
      const held = hold(payer, 2n);
      await one(held);
      const record = usageRecord({ status: "cancelled", usageSource: "partial" });

      expect(await one(extend(held, 4n, 2n, record))).toMatchObject({ outcome: "ok", available: 4n });
      expect(await one(extend(held, 5n, 6n, record))).toMatchObject({ outcome: "insufficient_balance", isContended: false, available: 4n });
      expect(await one(extend(held, 0n, 5n, record))).toMatchObject({ outcome: "ok", available: 4n });

      expect(await test.database.prisma.hold.findUniqueOrThrow({ where: { id: held.id } })).toMatchObject({
        tierNanocredits: 3n,
        cryptoNanocredits: 2n,
        packNanocredits: 1n,
        meteredNanocredits: 6n,
        record: { status: "cancelled", usageSource: "partial" },
      });
    });

    it("postpones a hold's expiry with each extension", async () => {
      const payer = await payerWith({ pack: 5n });
      const held = hold(payer, 1n);
      const shortLived = createTestLedger(test.database, { holdSeconds: 60 });
      const expiry = async () => (await test.database.prisma.hold.findUniqueOrThrow({ where: { id: held.id } })).expiresAt.getTime();

      await shortLived.flush([held]);
      const before = await expiry();
      await one(extend(held, 0n, 0n));

      expect((await expiry()) - before).toBeGreaterThan(800_000);
    });

    it("answers missing for an account that does not exist", async () => {
      const nobody = { accountId: randomUUID(), apiKeyId: null };
      const settlement = settle(nobody, 5n);

      expect(await ledger.flush([hold(nobody, 0n), settlement])).toMatchObject([{ outcome: "missing" }, { outcome: "missing" }]);
      expect(await readUsage(pool, settlement.id)).toBeNull();
    });

    it("answers in the order of the operations, over many accounts", async () => {
      const payers = await Promise.all([1n, 2n, 3n, 4n].map((pack) => payerWith({ pack })));

      const outcomes = await ledger.flush(payers.toReversed().flatMap((payer) => [hold(payer, 2n), hold(payer, 2n)]));

      expect(outcomes.map(({ outcome }) => outcome === "ok")).toEqual([true, true, true, false, true, false, false, false]);
    });

    it("flushes nothing", async () => {
      expect(await ledger.flush([])).toEqual([]);
    });

    it("adds up the day, by the day on which a generation was made and by the bucket that paid", async () => {
      const payer = await payerWith({ tier: 3n, pack: 100n });
      const at = (timestamp: string, amount: bigint) => settle(payer, amount, { record: usageRecord({ timestamp }) });

      await ledger.flush([at("2026-11-20T23:59:59.999Z", 3n), at("2026-11-21T00:00:00.000Z", 5n), at("2026-11-21T23:59:59.999+00:00", 7n)]);
      await one(at("2026-11-20T12:00:00.000Z", 11n));
      await one(at("2026-11-21T22:00:00.000-05:00", 1n));

      const rows = await test.database.prisma.usageDaily.findMany({
        where: { accountId: payer.accountId },
        orderBy: [{ day: "asc" }, { costNanocredits: "asc" }],
      });
      expect(
        rows.map(({ day, meterSource, requests, costNanocredits }) => [
          day.toISOString().slice(0, 10),
          meterSource,
          requests,
          costNanocredits,
        ]),
      ).toEqual([
        ["2026-11-20", "tier", 1, 3n],
        ["2026-11-20", "pack", 1, 11n],
        ["2026-11-21", "pack", 2, 12n],
        ["2026-11-22", "pack", 1, 1n],
      ]);
    });

    it("counts with amounts up to 2^62", async () => {
      const payer = await payerWith({ pack: HUGE }, HUGE);
      const held = hold(payer, HUGE);

      expect(await one(hold(payer, HUGE + 1n))).toMatchObject({ outcome: "key_budget_exhausted", isContended: false });
      expect(await one(held)).toMatchObject({ outcome: "ok", available: 0n, keyAvailable: 0n });
      expect(await one(settle(held, HUGE))).toMatchObject({ outcome: "ok", charged: HUGE, writtenOff: 0n, available: 0n });
      expect(await one(settle(payer, HUGE))).toMatchObject({ outcome: "ok", charged: 0n, writtenOff: HUGE, available: 0n });
    });

    it("grants once for each id, and nothing that is not more than 0", async () => {
      const accountId = await createAccount(pool, ledger);
      const grant = { id: randomUUID(), accountId, bucket: "crypto", amount: 7n, note: "welcome" } as const;

      expect(await ledger.grant(grant)).toBe(true);
      expect(await ledger.grant(grant)).toBe(false);
      expect(await ledger.grant({ ...grant, amount: 9n, bucket: "pack" })).toBe(false);
      await expect(ledger.grant({ ...grant, id: randomUUID(), amount: 0n })).rejects.toThrow(/more than 0/);
      await expect(ledger.grant({ ...grant, id: randomUUID(), amount: -1n })).rejects.toThrow(/more than 0/);
      await expect(ledger.grant({ ...grant, id: randomUUID(), accountId: randomUUID() })).rejects.toThrow(/no account/);

      expect((await readAccount(pool, accountId)).buckets).toEqual({ tier: 0n, crypto: 7n, pack: 0n });
      expect(await readEntries(pool, grant.id)).toEqual([
        ["crypto", 7n],
        ["issued", -7n],
      ]);
    });

    it("applies none of a batch in which one operation is impossible, and says that the batch is at fault", async () => {
      const payer = await payerWith({ pack: 10n });
      const good = settle(payer, 1n);
      const impossible = settle(payer, 1n, { record: usageRecord({ timestamp: "no time" }) });

      const refusal = await ledger.flush([good, impossible]).catch((error: unknown) => error);

      expect(refusal).toBeInstanceOf(Error);
      expect(refusal).not.toBeInstanceOf(LedgerUnavailable);
      expect(await readUsage(pool, good.id)).toBeNull();
      expect(await one(good)).toMatchObject({ outcome: "ok", charged: 1n });
    });

    it("refuses to change, remove or empty its entries", async () => {
      const payer = await payerWith({ pack: 10n });
      await one(settle(payer, 1n));

      await expect(pool.query("UPDATE ledger_entry SET amount_nanocredits = 0")).rejects.toThrow(/append-only/);
      await expect(pool.query("DELETE FROM ledger_entry")).rejects.toThrow(/append-only/);
      await expect(pool.query("TRUNCATE ledger_entry")).rejects.toThrow(/append-only/);
      await expect(pool.query("SET session_replication_role = replica; DELETE FROM ledger_entry")).rejects.toThrow(/append-only/);
      await pool.query("RESET session_replication_role");
    });

    it("cannot write an overdraft, a budget that is overdrawn, or a negative hold, even by hand", async () => {
      const payer = await payerWith({ pack: 10n }, 5n);
      await one(hold(payer, 5n));
      const account = [payer.accountId];
      const key = [payer.apiKeyId];

      await expect(pool.query("UPDATE account SET pack_nanocredits = 4 WHERE id = $1", account)).rejects.toThrow(/account_pack_check/);
      await expect(pool.query("UPDATE account SET tier_held_nanocredits = 1 WHERE id = $1", account)).rejects.toThrow(/account_tier_check/);
      await expect(pool.query("UPDATE account SET pack_held_nanocredits = -1 WHERE id = $1", account)).rejects.toThrow(
        /account_pack_check/,
      );
      await expect(pool.query("UPDATE api_key SET spent_nanocredits = 1 WHERE id = $1", key)).rejects.toThrow(/api_key_budget_check/);
      await expect(pool.query("UPDATE hold SET pack_nanocredits = -1 WHERE account_id = $1", account)).rejects.toThrow(
        /hold_amounts_check/,
      );
    });
  });
});
