/** Charges, refunds, reversals, maturing, conversions and payouts of the same accounts at once, by two processes on PostgreSQL. */
import { randomUUID } from "node:crypto";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Ledger } from "../../src/store/ledger.js";
import type { TestDatabase } from "../support/database.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { createAccount, createTestLedger, settle, usageRecord } from "../support/ledger.js";
import { DATABASE_KINDS } from "../support/shared-database.js";

const TODAY = new Date().toISOString().slice(0, 10);
const ROUNDS = 30;

describe.each(DATABASE_KINDS.filter(({ name }) => name === "PostgreSQL"))("earnings under load on $name", ({ isAbsent, open }) => {
  describe.skipIf(isAbsent)("", () => {
    let test: TestDatabase;
    let pool: pg.Pool;
    let ledgers: readonly [Ledger, Ledger];

    beforeAll(async () => {
      test = await open();
      pool = test.database.pool;
      ledgers = [createTestLedger(test.database), createTestLedger(test.database)];
    });
    afterAll(() => test.close());

    /** Makes the shares of today as old as that, so that they can mature. */
    const makeOld = async (days: number) => {
      for (const table of ["earning", "earning_daily"]) {
        await pool.query(`UPDATE ${table} SET day = day - $1::integer WHERE day > now() - interval '5 days'`, [days]);
      }
    };

    it("stay exact, without a deadlock", async () => {
      const [ledger] = ledgers;
      const accounts = await Promise.all([1, 2, 3, 4].map(() => createAccount(pool, ledger)));
      const topUps: { id: string; accountId: string }[] = [];
      for (const accountId of accounts) {
        const id = randomUUID();
        await pool.query(
          "INSERT INTO top_up (id, account_id, processor, status, nanocredits, currency, amount_cents, expires_at) VALUES ($1, $2, 'test', 'paid', 100000, 'usd', 100000, now())",
          [id, accountId],
        );
        await ledger.purchase({ id, accountId, bucket: "pack", amount: 100_000n, note: null }, test.database.prisma);
        topUps.push({ id, accountId });
      }
      const at = <Value>(values: readonly Value[], index: number) => values[index % values.length] as Value;
      // Everyone earns of everyone, models and apps in both orders.
      const charges = (round: number, process: number) =>
        at(ledgers, process).flush(
          accounts.map((accountId, index) => {
            const [model, app] = [at(accounts, index + 1 + (round % 3)), at(accounts, index + 2 + (round % 2))];
            const earners = {
              model: { accountId: model, source: "community/a/b", percent: "75" },
              app: { accountId: app, source: "app", percent: "20" },
            };
            return settle({ accountId, apiKeyId: null }, BigInt(100 + round), { record: usageRecord({ earners }) });
          }),
        );
      const refund = ({ id: topUpId, accountId }: (typeof topUps)[number]) =>
        test.database.prisma.$transaction(async (transaction) => {
          const id = randomUUID();
          await transaction.$queryRaw`SELECT 1 FROM account WHERE id = ${accountId}::uuid FOR NO KEY UPDATE`;
          await transaction.$executeRaw`UPDATE top_up SET refunded_cents = refunded_cents + 900 WHERE id = ${topUpId}::uuid`;
          const moved = await ledger.refund({ id, accountId, bucket: "pack", amount: 900n, note: null }, transaction);
          await transaction.$executeRaw`
            INSERT INTO top_up_reversal (id, top_up_id, account_id, kind, amount_cents, nanocredits, moved_nanocredits)
            VALUES (${id}::uuid, ${topUpId}::uuid, ${accountId}::uuid, 'refund', 900, 900, ${moved})`;
        });
      const use = (accountId: string, amount: bigint) => ({ id: randomUUID(), accountId, amount, note: null });
      const within = test.database.prisma;
      const acts = Array.from({ length: ROUNDS }, (_, round) => [
        () => charges(round, 0),
        () => charges(round, 1),
        () => refund(at(topUps, round)),
        () => ledger.reverseEarnings({ id: randomUUID(), payerId: at(accounts, round), earnerId: null, note: null }, within),
        () => ledger.mature(at(accounts, round + 1), TODAY),
        () => ledger.convertEarnings(use(at(accounts, round + 1), 7n), within),
        () => ledger.payOut(use(at(accounts, round + 1), 5n), within),
      ]).flat();
      const results: PromiseSettledResult<unknown>[] = [];
      for (let next = 0; next < acts.length; next += 14) {
        await makeOld(next + 8);
        results.push(...(await Promise.allSettled(acts.slice(next, next + 14).map((act) => act()))));
      }

      expect(results.flatMap((result) => (result.status === "rejected" ? [String(result.reason)] : []))).toEqual([]);
      expect(await findBrokenInvariants(pool, { isIdle: true })).toEqual({});
    });

    it("are taken once by parallel conversions and payouts", async () => {
      const [ledger] = ledgers;
      const [payer, owner] = [await createAccount(pool, ledger), await createAccount(pool, ledger)];
      const id = randomUUID();
      await pool.query(
        "INSERT INTO top_up (id, account_id, processor, status, nanocredits, currency, amount_cents, expires_at) VALUES ($1, $2, 'test', 'paid', 400, 'usd', 400, now())",
        [id, payer],
      );
      await ledger.purchase({ id, accountId: payer, bucket: "pack", amount: 400n, note: null }, test.database.prisma);
      const earners = { model: { accountId: owner, source: "community/a/b", percent: "75" } };
      await ledger.flush([settle({ accountId: payer, apiKeyId: null }, 400n, { record: usageRecord({ earners }) })]);
      await makeOld(8);
      await Promise.all(ledgers.map((each) => each.mature(owner, TODAY)));
      const [same, within] = [randomUUID(), test.database.prisma];
      const taken = await Promise.all(
        Array.from({ length: 24 }, (_, index) => {
          const use = { id: index % 3 === 0 ? same : randomUUID(), accountId: owner, amount: 50n, note: null };
          return index % 2 === 0 && index % 3 !== 0 ? ledger.payOut(use, within) : ledger.convertEarnings(use, within);
        }),
      );
      const others = taken.filter((amount, index) => index % 3 !== 0 && amount !== null);
      expect(taken.filter((_, index) => index % 3 === 0)).toEqual(Array.from({ length: 8 }, () => taken[0]));
      expect(others.length + (taken[0] === null ? 0 : 1)).toBe(6);
      expect(await findBrokenInvariants(pool, { isIdle: true })).toEqual({});
    });
  });
});
