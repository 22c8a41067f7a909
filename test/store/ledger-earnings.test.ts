/** Shares of owners of models and apps, grants that expire, and the rest of sold credits: on both databases. */
import { randomUUID } from "node:crypto";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Earners, Ledger, LedgerOperation, LedgerOutcome } from "../../src/store/ledger.js";
import type { TestDatabase } from "../support/database.js";
import { findBrokenInvariants } from "../support/invariants.js";
import {
  createAccount,
  createTestLedger,
  hold,
  readAccount,
  readEntries,
  recover,
  settle,
  type TestPayer,
  usageRecord,
} from "../support/ledger.js";
import { DATABASE_KINDS } from "../support/shared-database.js";

const TODAY = new Date().toISOString().slice(0, 10);

describe.each(DATABASE_KINDS)("earnings on $name", ({ isAbsent, open }) => {
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

    const within = () => test.database.prisma;
    const one = async (operation: LedgerOperation): Promise<LedgerOutcome> => {
      const [outcome] = await ledger.flush([operation]);
      if (!outcome) throw new Error("no outcome");
      return outcome;
    };
    const buy = async (accountId: string, amount: bigint, bucket: "pack" | "crypto" = "pack") => {
      const id = randomUUID();
      await pool.query(
        `INSERT INTO top_up (id, account_id, processor, status, nanocredits, currency, amount_cents, expires_at) VALUES ($1, $2, 'test', 'paid', $3, 'usd', $3, now())`,
        [id, accountId, amount.toString()],
      );
      await ledger.purchase({ id, accountId, bucket, amount, note: null }, within());
      return id;
    };
    const refund = async (topUpId: string, accountId: string, amount: bigint) => {
      await pool.query("UPDATE top_up SET refunded_cents = refunded_cents + $2 WHERE id = $1", [topUpId, amount.toString()]);
      const id = randomUUID();
      const taken = await ledger.refund({ id, accountId, bucket: "pack", amount, note: null }, within());
      await pool.query(
        "INSERT INTO top_up_reversal (id, top_up_id, account_id, kind, amount_cents, nanocredits, moved_nanocredits) VALUES ($1, $2, $3, 'refund', $4, $4, $5)",
        [id, topUpId, accountId, amount.toString(), taken.toString()],
      );
      return taken;
    };
    const give = (accountId: string, amount: bigint, expiry?: { expiresAt: Date; priority: number }) => {
      const id = randomUUID();
      return ledger.grant({ id, accountId, bucket: "pack", amount, note: null, expiry }).then(() => id);
    };
    const mature = async (accountId: string) => {
      for (const table of ["earning", "earning_daily"]) {
        await pool.query(`UPDATE ${table} SET day = day - 8 WHERE account_id = $1 AND day > now() - interval '5 days'`, [accountId]);
      }
      return ledger.mature(accountId, TODAY);
    };
    const payerOf = (accountId: string): TestPayer => ({ accountId, apiKeyId: null });
    const ofModel = (accountId: string, percent = 75, most?: string): Earners => ({
      model: { accountId, source: "community/owner/model", percent: `${percent}`, most },
    });
    const charge = (payer: string, amount: bigint, earners: Earners) => {
      const operation = settle(payerOf(payer), amount, { record: usageRecord({ earners }) });
      return one(operation).then((outcome) => ({ id: operation.id, outcome }));
    };
    const earned = async (accountId: string) => {
      const { rows } = await pool.query(
        `SELECT a.earned_nanocredits::text AS matured,
           coalesce((SELECT sum(d.nanocredits) FROM earning_daily d WHERE d.account_id = a.id AND d.matured_at IS NULL), 0)::text AS pending
         FROM account a WHERE a.id = $1`,
        [accountId],
      );
      return { matured: BigInt(rows[0].matured), pending: BigInt(rows[0].pending) };
    };

    it("splits a charge of sold credits, once", async () => {
      const [payer, owner] = [await createAccount(pool, ledger), await createAccount(pool, ledger)];
      await buy(payer, 1_000n);
      const settlement = settle(payerOf(payer), 101n, { record: usageRecord({ earners: ofModel(owner) }) });

      expect(await one(settlement)).toMatchObject({ outcome: "ok", charged: 101n, earned: { app: 0n, model: 75n } });
      expect(await one(settlement)).toMatchObject({ outcome: "duplicate", charged: 101n });

      expect(await readEntries(pool, settlement.id)).toEqual([
        ["pack", -101n],
        ["revenue", 101n],
        ["earnings", 75n],
        ["revenue", -75n],
      ]);
      expect(await earned(owner)).toEqual({ matured: 0n, pending: 75n });
    });

    it("takes an app's margin off the charge first, and the model's share of the price", async () => {
      const [payer, owner, app] = [await createAccount(pool, ledger), await createAccount(pool, ledger), await createAccount(pool, ledger)];
      await buy(payer, 1_000n);
      const earners = { ...ofModel(owner), app: { accountId: app, source: randomUUID(), percent: "20" } };

      const { outcome } = await charge(payer, 120n, earners);

      expect(outcome).toMatchObject({ charged: 120n, earned: { app: 20n, model: 75n } });
    });

    it("takes a model's share of the counted amounts, if the upstream reported more", async () => {
      const [payer, owner] = [await createAccount(pool, ledger), await createAccount(pool, ledger)];
      await buy(payer, 1_000n);

      expect((await charge(payer, 100n, ofModel(owner, 75, "40"))).outcome).toMatchObject({
        charged: 100n,
        earned: { app: 0n, model: 30n },
      });
      expect((await charge(payer, 100n, ofModel(owner, 75, "400"))).outcome.earned).toEqual({ app: 0n, model: 75n });
    });

    it("earns nothing from granted credits, tier credits, the payer and linked accounts", async () => {
      const owner = await createAccount(pool, ledger);
      const given = await createAccount(pool, ledger, { tier: 100n, crypto: 100n, pack: 100n });
      expect((await charge(given, 300n, ofModel(owner))).outcome.earned).toBeUndefined();
      await buy(owner, 100n);
      expect((await charge(owner, 100n, ofModel(owner))).outcome.earned).toBeUndefined();
      const linked = await createAccount(pool, ledger);
      await buy(linked, 100n);
      const group = randomUUID();
      await pool.query("UPDATE account SET earning_group_id = $1 WHERE id = ANY ($2)", [group, [owner, linked]]);
      expect((await charge(linked, 100n, ofModel(owner))).outcome.earned).toBeUndefined();
      expect(await earned(owner)).toEqual({ matured: 0n, pending: 0n });
    });

    it("spends granted credits before sold ones, however they came", async () => {
      const [payer, owner] = [await createAccount(pool, ledger), await createAccount(pool, ledger)];
      await give(payer, 50n);
      await buy(payer, 100n);
      expect((await charge(payer, 80n, ofModel(owner, 100))).outcome.earned).toEqual({ app: 0n, model: 30n });
      await give(payer, 10n);
      expect((await charge(payer, 10n, ofModel(owner, 100))).outcome.earned).toBeUndefined();
      expect((await charge(payer, 70n, ofModel(owner, 100))).outcome.earned).toEqual({ app: 0n, model: 70n });
      await give(payer, 30n);
      expect((await charge(payer, 30n, ofModel(owner, 100))).outcome.earned).toBeUndefined();
    });

    it("counts what leases have paid before", async () => {
      const [payer, owner] = [await createAccount(pool, ledger), await createAccount(pool, ledger)];
      await give(payer, 60n);
      await buy(payer, 60n);
      const lease = randomUUID();
      await ledger.leases.take({ id: lease, accountId: payer, apiKeyId: null, target: 60n, least: 60n, isReliedOn: false });
      const leased = { ...settle(payerOf(payer), 60n), lease: { leaseId: lease, tier: 0n, crypto: 0n, pack: 60n } };
      expect(await one(leased)).toMatchObject({ outcome: "ok", charged: 60n });

      expect((await charge(payer, 60n, ofModel(owner, 100))).outcome.earned).toEqual({ app: 0n, model: 60n });
    });

    it("corrects the shares of a recovered charge, up and down", async () => {
      const [payer, owner] = [await createAccount(pool, ledger), await createAccount(pool, ledger)];
      await buy(payer, 1_000n);
      for (const [recovered, real] of [
        [40n, 100n],
        [100n, 41n],
        [50n, 0n],
      ] as const) {
        const before = (await earned(owner)).pending;
        const held = hold(payerOf(payer), 100n, { record: usageRecord({ earners: ofModel(owner) }) });
        await one(held);
        await one(recover(held, recovered));
        expect(await one(settle(held, real))).toMatchObject({ outcome: "corrected", charged: real });
        expect((await earned(owner)).pending - before).toBe((real * 75n) / 100n);
      }
    });

    it("takes back shares of credits that were refunded after they were spent, the newest first", async () => {
      const [payer, owner, other] = [
        await createAccount(pool, ledger),
        await createAccount(pool, ledger),
        await createAccount(pool, ledger),
      ];
      const bought = await buy(payer, 100n);
      const first = await charge(payer, 40n, ofModel(other, 100));
      await charge(payer, 40n, ofModel(owner, 50));
      await pool.query("UPDATE earning SET created_at = created_at - interval '1 hour' WHERE generation_id = $1", [first.id]);

      expect(await refund(bought, payer, 70n)).toBe(20n);

      expect(await earned(owner)).toEqual({ matured: 0n, pending: 0n });
      expect(await earned(other)).toEqual({ matured: 0n, pending: 30n });
      expect((await readAccount(pool, payer)).buckets.pack).toBe(0n);
    });

    it("takes back shares of refunded credits that were spent, also where granted credits cover the refund", async () => {
      const [payer, owner] = [await createAccount(pool, ledger), await createAccount(pool, ledger)];
      const bought = await buy(payer, 100n);
      await charge(payer, 40n, ofModel(owner));
      await give(payer, 60n);

      expect(await refund(bought, payer, 100n)).toBe(100n);

      expect(await earned(owner)).toEqual({ matured: 0n, pending: 0n });
      expect((await readAccount(pool, payer)).buckets.pack).toBe(20n);
    });

    it("takes back the same shares by many refunds as by one", async () => {
      for (const parts of [[70n], [35n, 35n], [10n, 50n, 10n], [55n, 10n, 5n], [69n, 1n], Array.from({ length: 70 }, () => 1n)]) {
        const [payer, owner, app] = [
          await createAccount(pool, ledger),
          await createAccount(pool, ledger),
          await createAccount(pool, ledger),
        ];
        const bought = await buy(payer, 100n);
        const earners = { ...ofModel(owner, 100), app: { accountId: app, source: randomUUID(), percent: "50" } };
        for (const [index, amount] of [30n, 30n, 40n].entries()) {
          const { id } = await charge(payer, amount, earners);
          await pool.query("UPDATE earning SET created_at = created_at - make_interval(hours => $2) WHERE generation_id = $1", [
            id,
            3 - index,
          ]);
        }
        expect((await earned(owner)).pending).toBe(67n);
        for (const part of parts) await refund(bought, payer, part);
        // The oldest charge is left.
        expect([`${parts}`, (await earned(owner)).pending, (await earned(app)).pending]).toEqual([`${parts}`, 20n, 10n]);
      }
    });

    it("takes back the other owners' shares by a refund after one owner's were taken back", async () => {
      const [payer, owner, app] = [await createAccount(pool, ledger), await createAccount(pool, ledger), await createAccount(pool, ledger)];
      const bought = await buy(payer, 120n);
      await charge(payer, 120n, { ...ofModel(owner), app: { accountId: app, source: randomUUID(), percent: "20" } });
      await ledger.reverseEarnings({ id: randomUUID(), payerId: payer, earnerId: owner, note: null }, within());
      await refund(bought, payer, 60n);
      expect(await earned(owner)).toEqual({ matured: 0n, pending: 0n });
      expect(await earned(app)).toEqual({ matured: 0n, pending: 10n });
    });

    it("does not earn more from mixed credits by an inflated report", async () => {
      for (const margin of [undefined, "20"]) {
        const sums = [];
        for (const [charged, most] of [
          [60n, undefined],
          [120n, "50"],
        ] as const) {
          const [payer, owner, app] = [
            await createAccount(pool, ledger),
            await createAccount(pool, ledger),
            await createAccount(pool, ledger),
          ];
          await give(payer, 48n);
          await buy(payer, 200n);
          const price = margin === undefined ? (charged * 5n) / 6n : charged;
          const earners = {
            ...ofModel(owner, 100, most),
            ...(margin && { app: { accountId: app, source: randomUUID(), percent: margin } }),
          };
          await charge(payer, price, earners);
          sums.push([(await earned(owner)).pending, (await earned(app)).pending]);
        }
        expect(sums[1]).toEqual(sums[0]);
      }
    });

    it("takes back shares of a corrected charge whose credits count as granted since", async () => {
      const [payer, owner] = [await createAccount(pool, ledger), await createAccount(pool, ledger)];
      await buy(payer, 100n);
      const held = hold(payerOf(payer), 100n, { record: usageRecord({ earners: ofModel(owner) }) });
      await one(held);
      await one(recover(held, 100n));
      await give(payer, 10n);
      expect(await one(settle(held, 20n))).toMatchObject({ outcome: "corrected", charged: 20n });
      expect(await earned(owner)).toEqual({ matured: 0n, pending: 15n });
    });

    it("forfeits shares of a deleted account when they mature", async () => {
      const [payer, owner] = [await createAccount(pool, ledger), await createAccount(pool, ledger)];
      await buy(payer, 100n);
      await charge(payer, 100n, ofModel(owner));
      await pool.query("UPDATE account SET handle = 'deleted-' || md5(handle) WHERE id = $1", [owner]);
      await pool.query("INSERT INTO account_deletion (account_id, deleted_at, finished_at) VALUES ($1, now(), now())", [owner]);
      await mature(owner);
      expect(await earned(owner)).toEqual({ matured: 0n, pending: 0n });
      const { rows } = await pool.query(
        "SELECT book::text, amount_nanocredits::int AS amount FROM ledger_entry WHERE account_id = $1 AND kind = 'forfeit' ORDER BY line",
        [owner],
      );
      expect(rows).toEqual([
        { book: "earnings", amount: -75 },
        { book: "issued", amount: 75 },
      ]);
    });

    it("does not take back shares that have matured", async () => {
      const [payer, owner] = [await createAccount(pool, ledger), await createAccount(pool, ledger)];
      const bought = await buy(payer, 100n);
      await charge(payer, 100n, ofModel(owner));
      expect(await ledger.mature(owner, "2000-01-01")).toBe(0n);
      // The clock of a process is wrong.
      expect(await ledger.mature(owner, "9999-01-01")).toBe(0n);
      expect(await mature(owner)).toBe(75n);
      expect(await mature(owner)).toBe(0n);
      await refund(bought, payer, 100n);
      expect(await earned(owner)).toEqual({ matured: 75n, pending: 0n });
    });

    it("takes back all shares from a payer, once", async () => {
      const [payer, owner, other] = [
        await createAccount(pool, ledger),
        await createAccount(pool, ledger),
        await createAccount(pool, ledger),
      ];
      await buy(payer, 100n);
      await charge(payer, 40n, ofModel(owner));
      await charge(payer, 40n, ofModel(other));
      const reversal = { id: randomUUID(), payerId: payer, earnerId: owner, note: "farmed" };
      expect(await ledger.reverseEarnings(reversal, within())).toBe(30n);
      expect(await ledger.reverseEarnings(reversal, within())).toBe(30n);
      expect(await earned(owner)).toEqual({ matured: 0n, pending: 0n });
      expect(await earned(other)).toEqual({ matured: 0n, pending: 30n });
    });

    it("turns matured shares into granted credits or pays them out, no more than there are", async () => {
      const [payer, owner, other] = [
        await createAccount(pool, ledger),
        await createAccount(pool, ledger),
        await createAccount(pool, ledger),
      ];
      await buy(payer, 100n);
      await charge(payer, 100n, ofModel(owner));
      const use = (amount: bigint) => ({ id: randomUUID(), accountId: owner, amount, note: null });
      expect(await ledger.convertEarnings(use(1n), within())).toBeNull();
      await mature(owner);
      const converted = use(50n);
      expect(await ledger.convertEarnings(converted, within())).toBe(50n);
      expect(await ledger.convertEarnings(converted, within())).toBe(50n);
      expect(await ledger.payOut(use(26n), within())).toBeNull();
      expect(await ledger.payOut(use(25n), within())).toBe(25n);
      expect(await earned(owner)).toEqual({ matured: 0n, pending: 0n });
      expect((await charge(owner, 50n, ofModel(other))).outcome).toMatchObject({ charged: 50n });
      expect(await earned(other)).toEqual({ matured: 0n, pending: 0n });
    });

    it("expires the rest of a grant, after the part that is spent", async () => {
      const account = await createAccount(pool, ledger);
      const past = new Date(Date.now() - 1_000);
      const later = await give(account, 30n, { expiresAt: new Date(Date.now() + 86_400_000), priority: 0 });
      const first = await give(account, 40n, { expiresAt: past, priority: 0 });
      await give(account, 50n);
      await buy(account, 60n);
      await one(settle(payerOf(account), 25n));

      expect(await ledger.expire(randomUUID(), later)).toBe(0n);
      const held = hold(payerOf(account), 150n);
      await one(held);
      // The hold leaves 5 credits.
      expect(await ledger.expire(randomUUID(), first)).toBe(5n);
      await one({ kind: "release", id: held.id, ...payerOf(account) });
      expect(await ledger.expire(randomUUID(), first)).toBe(10n);
      expect(await ledger.expire(randomUUID(), first)).toBe(0n);

      expect((await readAccount(pool, account)).buckets.pack).toBe(140n);
      await one(settle(payerOf(account), 90n));
      const { rows } = await pool
        .query("SELECT credit_mark($1), 1", [account])
        .then(() => pool.query("SELECT left_nanocredits::int AS left FROM expiring_grant WHERE id = $1", [later]));
      expect(rows).toEqual([{ left: 0 }]);
    });

    it("spends grants of smaller numbers first", async () => {
      const account = await createAccount(pool, ledger);
      const soon = await give(account, 10n, { expiresAt: new Date(Date.now() + 1_000_000), priority: 5 });
      const urgent = await give(account, 10n, { expiresAt: new Date(Date.now() + 9_000_000), priority: 1 });
      await one(settle(payerOf(account), 12n));
      await pool.query("SELECT credit_mark($1)", [account]);
      const { rows } = await pool.query("SELECT id, left_nanocredits::int AS left FROM expiring_grant WHERE account_id = $1", [account]);
      expect(new Map(rows.map(({ id, left }) => [id, left]))).toEqual(
        new Map([
          [soon, 8],
          [urgent, 0],
        ]),
      );
    });
  });
});
