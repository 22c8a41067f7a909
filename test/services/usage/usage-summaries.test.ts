/** Roll-ups of usage match their rows on both databases, through changes while they are made. */
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import fc from "fast-check";
import type pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { quantilesOf, readHistogram } from "../../../src/services/usage/usage-roll-ups.js";
import { UsageRoller } from "../../../src/services/usage/usage-roller.js";
import { UsageSummaries, type UsageSummaryQuery } from "../../../src/services/usage/usage-summaries.js";
import { silentLog, type TestDatabase } from "../../support/database.js";
import { findBrokenInvariants } from "../../support/invariants.js";
import {
  createAccount,
  createKey,
  createTestLedger,
  emptyBooks,
  hold,
  recover,
  settle,
  type TestPayer,
  usageRecord,
} from "../../support/ledger.js";
import { UNSHARED_DATABASE_KINDS } from "../../support/shared-database.js";

const NOW = new Date("2026-11-21T12:34:56.789Z");
const HOUR_MS = 3_600_000;
const clock = { now: () => NOW };

describe.each(UNSHARED_DATABASE_KINDS)("usage roll-ups on $name", ({ isAbsent, open }) => {
  describe.skipIf(isAbsent)("", () => {
    let test: TestDatabase;
    let ledger: ReturnType<typeof createTestLedger>;
    let summaries: UsageSummaries;

    beforeAll(async () => {
      test = await open();
      ledger = createTestLedger(test.database);
      summaries = new UsageSummaries(test.database, clock);
    });
    afterEach(async () => {
      expect(await findBrokenInvariants(test.database.pool)).toEqual({});
      await emptyBooks(test.database.pool);
    });
    afterAll(() => test.close());

    const pool = () => test.database.pool;
    const roll = (rowsMax = 1_000) => pool().query("SELECT * FROM usage_roll($1)", [rowsMax]);
    /** Older transactions hold the rest back for as long as they take, such as those of autovacuum. */
    const everythingRolled = () =>
      expect
        .poll(async () => {
          await roll();
          return (await pool().query("SELECT count(*)::int AS n FROM usage_unrolled()")).rows[0].n;
        })
        .toBe(0);
    const intact = async () => expect(await findBrokenInvariants(pool())).toEqual({});
    const payer = async (): Promise<TestPayer> => {
      const accountId = await createAccount(pool(), ledger, { pack: 10n ** 12n });
      return { accountId, apiKeyId: await createKey(pool(), accountId, null) };
    };
    const ask = (accountId: string, query: UsageSummaryQuery) => {
      const caller = { kind: "session", accountId } as Parameters<UsageSummaries["summary"]>[0]["caller"];
      return summaries.summary({ caller } as Parameters<UsageSummaries["summary"]>[0], query);
    };
    const at = (hours: number) => new Date(NOW.getTime() - hours * HOUR_MS).toISOString();

    it("add up to the rows under any order of charges, recoveries, corrections, deletions and rolls", async () => {
      const [one, other] = [await payer(), await payer()];
      const charge = fc.record({
        kind: fc.constantFrom("settle" as const, "recover" as const),
        isOther: fc.boolean(),
        hours: fc.integer({ min: 0, max: 50 }),
        model: fc.constantFrom("acme/a", "acme/b"),
        amount: fc.bigInt({ min: 0n, max: 1_000n }),
        responseTimeMs: fc.integer({ min: 0, max: 90_000 }),
        isCancelled: fc.boolean(),
      });
      const step = fc.oneof(
        { weight: 4, arbitrary: charge },
        { weight: 3, arbitrary: fc.record({ kind: fc.constant("roll" as const), rowsMax: fc.constantFrom(1, 3, 1_000) }) },
        { weight: 1, arbitrary: fc.record({ kind: fc.constant("delete" as const) }) },
        { weight: 2, arbitrary: fc.record({ kind: fc.constant("correct" as const), with: charge }) },
      );
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 18 }), async (steps) => {
          const recovered: ReturnType<typeof hold>[] = [];
          const recordOf = ({ hours, model, responseTimeMs, isCancelled }: typeof charge extends fc.Arbitrary<infer C> ? C : never) =>
            usageRecord({
              timestamp: at(hours),
              model,
              responseTimeMs,
              timeToFirstTokenMs: isCancelled ? null : responseTimeMs,
              status: isCancelled ? "cancelled" : "ok",
            });
          for (const each of steps) {
            if (each.kind === "roll") await roll(each.rowsMax);
            else if (each.kind === "delete")
              await pool().query(
                "DELETE FROM usage_record WHERE id = (SELECT min(id::text)::uuid FROM usage_record WHERE is_recovered IS NULL)",
              );
            else if (each.kind === "correct") {
              const held = recovered.shift();
              if (held) await ledger.flush([settle(held, each.with.amount, { id: held.id, record: recordOf(each.with) })]);
            } else {
              const of = each.isOther ? other : one;
              if (each.kind === "settle") await ledger.flush([settle(of, each.amount, { record: recordOf(each) })]);
              else {
                const held = hold(of, each.amount, { record: recordOf(each) });
                await ledger.flush([held]);
                await ledger.flush([recover(held, each.amount)]);
                recovered.push(held);
              }
            }
          }
          await intact();
        }),
        { numRuns: 4 },
      );
      await everythingRolled();
    });

    it("follow a row that is changed or deleted, rolled up or not", async () => {
      const of = await payer();
      const ids = [randomUUID(), randomUUID(), randomUUID()];
      for (const id of ids) await ledger.flush([settle(of, 5n, { id, record: usageRecord({ timestamp: at(1) }) })]);
      await roll(1);

      for (const isRolled of [false, true]) {
        if (isRolled) await roll();
        await pool().query("UPDATE usage_record SET model = 'acme/moved', timestamp = timestamp - interval '1 day' WHERE id = ANY ($1)", [
          ids.slice(0, 2),
        ]);
        const broken = await findBrokenInvariants(pool());
        expect(Object.keys(broken).filter((name) => name.startsWith("I15"))).toEqual([]);
        await pool().query("UPDATE usage_record SET model = 'acme/chat', timestamp = timestamp + interval '1 day' WHERE id = ANY ($1)", [
          ids,
        ]);
        await pool().query("UPDATE usage_record SET timestamp = timestamp - interval '1 day' WHERE id = $1", [ids[2]]);
        await intact();
      }
    });

    it("include earlier rows, in pieces", async () => {
      const of = await payer();
      for (let n = 0; n < 7; n++) await ledger.flush([settle(of, BigInt(n), { record: usageRecord({ timestamp: at(n) }) })]);
      await pool().query("ALTER TABLE usage_record DISABLE TRIGGER usage_record_note_change");
      await pool().query("UPDATE usage_record SET written_in = 0");
      await pool().query("ALTER TABLE usage_record ENABLE TRIGGER usage_record_note_change");
      await pool().query("UPDATE usage_roll_state SET filled_to = '00000000-0000-0000-0000-000000000000'");
      await intact();

      await roll(2);
      await ledger.flush([settle(of, 9n, { record: usageRecord({ timestamp: at(1) }) })]);
      await pool().query("UPDATE usage_record SET model = 'acme/chat' WHERE written_in = 0");
      await intact();
      while ((await roll(2)).rows[0].is_behind) await intact();

      const [sums] = await ask(of.accountId, { groupBy: [] });
      expect(sums).toMatchObject({ requests: 8, costNanocredits: 30n });
      expect((await pool().query("SELECT filled_to FROM usage_roll_state")).rows).toEqual([{ filled_to: null }]);
    });

    it("have weeks of the days from before there were weeks", async () => {
      const of = await payer();
      for (let n = 0; n < 6; n++) await ledger.flush([settle(of, BigInt(n), { record: usageRecord({ timestamp: at(n * 50) }) })]);
      await everythingRolled();
      await pool().query("DELETE FROM usage_day_rollup WHERE level >= 4");
      expect(await findBrokenInvariants(pool())).not.toEqual({});
      const migration = await readFile("prisma/migrations/20261123042300_usage_weeks/migration.sql", "utf8");

      await pool().query(/^INSERT[^;]*;/m.exec(migration)?.[0] ?? "");

      await intact();
    });

    it("continue in a database that numbers its transactions from one again", async () => {
      const of = await payer();
      await ledger.flush([settle(of, 1n, { record: usageRecord({ timestamp: at(1) }) })]);
      await roll();
      await pool().query("UPDATE usage_roll_state SET watermark = 1000000000000");

      await pool().query("SELECT usage_roll_open()");
      await ledger.flush([settle(of, 2n, { record: usageRecord({ timestamp: at(1) }) })]);
      await intact();
      await everythingRolled();
      expect((await ask(of.accountId, { groupBy: [] }))[0]).toMatchObject({ requests: 2, costNanocredits: 3n });
    });

    it("answer a summary exactly as the rows would, for any time, filter and groups", async () => {
      const of = await payer();
      const second = { accountId: of.accountId, apiKeyId: await createKey(pool(), of.accountId, null) };
      const operations = Array.from({ length: 120 }, (_, n) =>
        settle([of, second][n % 2] as TestPayer, BigInt(n + 1), {
          record: usageRecord({
            // Half of them within three days, half within four weeks.
            timestamp: new Date(NOW.getTime() - ((n * 37) % 100) * (n % 4 < 2 ? 41 : 397) * 60_000).toISOString(),
            model: `acme/${n % 3}`,
            modality: n % 5 === 0 ? "image" : "text",
            status: n % 7 === 0 ? "cancelled" : "ok",
            responseTimeMs: n * 10,
          }),
        }),
      );
      await ledger.flush(operations.slice(0, 80));
      await roll();
      await ledger.flush(operations.slice(80));

      const minutesAgo = fc.oneof(fc.integer({ min: 0, max: 4_200 }), fc.integer({ min: 0, max: 40_000 }));
      const hours = minutesAgo.map((minutes) => new Date(NOW.getTime() - minutes * 60_000));
      const query = fc.record({
        times: fc.tuple(fc.option(hours, { nil: undefined }), fc.option(hours, { nil: undefined })),
        apiKeyIds: fc.constantFrom<string[] | undefined>(undefined, [of.apiKeyId as string], [randomUUID()]),
        modelIds: fc.constantFrom<string[] | undefined>(undefined, ["acme/1"], ["acme/0", "acme/2"]),
        modalities: fc.constantFrom<"image"[] | undefined>(undefined, ["image"]),
        statuses: fc.constantFrom<"cancelled"[] | undefined>(undefined, ["cancelled"]),
        search: fc.constantFrom(undefined, "CME/2"),
        groupBy: fc.subarray(["model", "key", "status", "modality"] as const),
        unit: fc.constantFrom("hour", "day", null),
      });
      await fc.assert(
        fc.asyncProperty(query, async ({ times, groupBy, unit, ...filter }) => {
          const [from, to] = [...times].sort((one, other) => (one && other ? Number(one) - Number(other) : 0));
          const asked = {
            filter: { ...filter, from, to },
            groupBy: [...groupBy, ...(unit ? [unit] : [])] as UsageSummaryQuery["groupBy"],
            first: 1_000,
          };
          // A cost that every row has makes the rows be read, one by one.
          const byRows = await ask(of.accountId, { ...asked, filter: { ...asked.filter, minCost: 1n } });
          const byRollUps = await ask(of.accountId, { ...asked, filter: { ...asked.filter } });
          const toComparable = (groups: typeof byRows) =>
            groups.map(({ errorRate: _, ...group }) =>
              JSON.stringify(group, (_key, value) => (typeof value === "bigint" ? String(value) : value)),
            );
          expect(toComparable(byRollUps)).toEqual(toComparable(byRows));
        }),
        // A time zone that does not exist: it could be answered only from rows that are not rolled up yet.
        { numRuns: 20, examples: [[{ times: [NOW, NOW], groupBy: [], unit: null }]] as never },
      );
    });

    it("count generations that failed beside the rows", async () => {
      const of = await payer();
      const roller = new UsageRoller(test.database, clock, silentLog);
      await ledger.flush([settle(of, 1n, { record: usageRecord({ timestamp: NOW.toISOString() }) })]);
      for (let n = 0; n < 3; n++) roller.noteFailure({ ...of, model: "acme/chat", modality: "text" });
      roller.noteFailure({ ...of, apiKeyId: null, model: "acme/other", modality: "text" });
      await roller.settled();

      for (let isRolled = 0; isRolled < 2; isRolled++) {
        const groups = await ask(of.accountId, { groupBy: ["model"] });
        expect(groups.map(({ model, requests, failedRequests, errorRate }) => ({ model, requests, failedRequests, errorRate }))).toEqual([
          { model: "acme/chat", requests: 1, failedRequests: 3, errorRate: 0.75 },
          { model: "acme/other", requests: 0, failedRequests: 1, errorRate: 1 },
        ]);
        await roll();
      }
      expect((await ask(of.accountId, { groupBy: ["status"] }))[0]).toMatchObject({
        status: "ok",
        requests: 1,
        failedRequests: 0,
        errorRate: null,
      });
      await pool().query("DELETE FROM usage_event");
      await pool().query("DELETE FROM usage_hour_rollup WHERE outcome = 'failed'");
    });

    it("tell times to five in a hundred", async () => {
      const times = [0, 1, 2, 3, 7, 10, 99, 100, 1_000, 12_345, 600_000, 2_147_483_647];
      const { rows } = await pool().query("SELECT ms, usage_time_digit(ms)::text AS digit FROM unnest($1::int[]) AS ms", [times]);

      for (const { ms, digit } of rows)
        expect(Math.abs((quantilesOf(readHistogram(digit), [0.5])?.[0] ?? -1) - ms), String(ms)).toBeLessThanOrEqual(ms * 0.05);
    });
  });
});

describe.skipIf(UNSHARED_DATABASE_KINDS[1]?.isAbsent)("rolls beside writers", () => {
  it("count each charge once, though rollers are killed and transactions end out of order", async () => {
    const test = await UNSHARED_DATABASE_KINDS[1]?.open();
    if (!test) return;
    const { pool } = test.database;
    const ledger = createTestLedger(test.database);
    const payers = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const accountId = await createAccount(pool, ledger, { pack: 10n ** 12n });
        return { accountId, apiKeyId: await createKey(pool, accountId, null) };
      }),
    );
    const sessions = Array.from({ length: 4 }, () => test.database.openSession());
    const writers = payers.map(async (of, index) => {
      const own = createTestLedger({ ...test.database, pool: sessions[index] as pg.Pool });
      for (let n = 0; n < 12; n++) {
        const held = hold(of, 5n, { record: usageRecord({ timestamp: NOW.toISOString() }) });
        await own.flush([held, settle(of, 3n, { record: usageRecord({ timestamp: NOW.toISOString() }) })]);
        await own.flush([recover(held, 2n)]);
        if (n % 3 === 0) await own.flush([settle(held, 4n, { id: held.id })]);
      }
    });
    let isWriting = true;
    const rollers = [0, 1].map(async () => {
      while (isWriting) {
        const session = test.database.openSession();
        session.on("error", () => undefined);
        const client = await session.connect();
        client.on("error", () => undefined);
        await client.query("BEGIN");
        await client.query("SELECT usage_roll(7)");
        // Killed before it could commit.
        await pool.query("SELECT pg_terminate_backend($1)", [(client as unknown as { processID: number }).processID]);
        client.release(true);
        await session.end();
        await pool.query("SELECT usage_roll(7)");
      }
    });
    await Promise.all(writers);
    isWriting = false;
    await Promise.all(rollers);

    expect(await findBrokenInvariants(pool)).toEqual({});
    while ((await pool.query("SELECT is_behind FROM usage_roll(50)")).rows[0].is_behind);
    expect(await findBrokenInvariants(pool)).toEqual({});
    await Promise.all(sessions.map((session) => session.end()));
    await test.close();
  });
});
