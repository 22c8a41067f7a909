/** Many processes on one PostgreSQL: the database decides, and they never wait for each other in a circle. */
import { randomInt, randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Ledger, LedgerOperation, LedgerOutcome } from "../../src/store/ledger.js";
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
  readKey,
  recover,
  release,
  settle,
  type TestPayer,
} from "../support/ledger.js";
import { isPostgresInstalled } from "../support/postgres.js";
import { openSharedTestDatabase } from "../support/shared-database.js";
import { createPostgresDatabase, type SuiteDatabase } from "../support/suite-server.js";

const PROCESSES = 4;
const FLUSHES_EACH = 40;
const OPERATIONS_MAX = 30;
const FLUSHES_BESIDE_WRITERS = 25;

describe.skipIf(!isPostgresInstalled)("Ledgers of several processes on one PostgreSQL", () => {
  let shared: SuiteDatabase;
  let processes: TestDatabase[];
  let ledgers: Ledger[];
  let first: { pool: TestDatabase["database"]["pool"]; ledger: Ledger };

  beforeAll(async () => {
    shared = await createPostgresDatabase();
    processes = [];
    for (let index = 0; index < PROCESSES; index++) processes.push(await openSharedTestDatabase(shared.url));
    ledgers = processes.map(({ database }) => createTestLedger(database));
    first = { pool: (processes[0] as TestDatabase).database.pool, ledger: ledgers[0] as Ledger };
  });
  afterAll(async () => {
    const broken = await findBrokenInvariants(first.pool);
    await Promise.all(processes.map((process) => process.close()));
    await shared.drop();
    expect(broken).toEqual({});
  });

  it("flush random batches over the same accounts at once, without a deadlock and without an overdraft", async () => {
    const payers = await createCrowd();
    const flushed: [LedgerOperation, LedgerOutcome][] = [];
    const run = async (ledger: Ledger): Promise<void> => {
      const open: LedgerOperation[] = [];
      for (let round = 0; round < FLUSHES_EACH; round++) {
        const batch = randomBatch(payers, open);
        const outcomes = await ledger.flush(batch);
        batch.forEach((operation, index) => {
          const outcome = outcomes[index] as LedgerOutcome;
          flushed.push([operation, outcome]);
          if (operation.kind === "hold" && outcome.outcome === "ok") open.push(operation);
        });
      }
    };

    // Two flushes of each process at once, as its settler and its recovery could.
    await Promise.all(ledgers.flatMap((ledger) => [run(ledger), run(ledger)]));

    const named = (kind: LedgerOperation["kind"], outcome: LedgerOutcome["outcome"]) =>
      flushed.filter(([operation, result]) => operation.kind === kind && result.outcome === outcome);
    // By generation: its final charge, which is that of its correction if it has one.
    const charges = new Map(
      [...named("recover", "ok"), ...named("settle", "ok"), ...named("settle", "corrected")].map(([{ id }, { charged }]) => [id, charged]),
    );
    const charged = [...charges.values()].reduce((sum, amount) => sum + amount, 0n);
    const { rows } = await first.pool.query("SELECT sum(cost_nanocredits)::text AS cost, count(*)::int AS n FROM usage_record");
    expect(rows[0]).toEqual({ cost: String(charged), n: charges.size });
    expect(await findBrokenInvariants(first.pool)).toEqual({});
    // The balances were small enough for both kinds of refusal, and large enough for holds and charges.
    for (const outcome of ["ok", "insufficient_balance", "key_budget_exhausted"] as const) expect(named("hold", outcome)).not.toEqual([]);
  });

  it("refuse no settlement while everything else that writes money is at work on the same accounts", async () => {
    const payers = await createCrowd();
    const one = () => payers[randomInt(payers.length)] as TestPayer;
    const flushes = async (ledger: Ledger): Promise<void> => {
      const open: LedgerOperation[] = [];
      for (let round = 0; round < FLUSHES_BESIDE_WRITERS; round++) {
        const batch = randomBatch(payers, open);
        // Rejects when the database refuses any operation of it.
        const outcomes = await ledger.flush(batch);
        batch.forEach((operation, index) => {
          if (operation.kind === "hold" && outcomes[index]?.outcome === "ok") open.push(operation);
        });
      }
    };
    const tier = (n: number) => ({ id: randomUUID(), accountId: one().accountId, tier: `tier-${n % 2}`, amount: BigInt(randomInt(900)) });
    const nextReset = () => new Date(Date.now() + randomInt(1, 1_000));
    const writers: readonly ((pool: TestDatabase["database"]["pool"], n: number) => Promise<unknown>)[] = [
      (pool) => setBudget(pool, one()),
      // As a key is updated: its budget first, then what else there is of it.
      async (pool) => {
        const client = await pool.connect();
        const payer = one();
        await client.query("BEGIN");
        await setBudget(client, payer);
        await client.query("UPDATE api_key SET name = 'renamed', revoked_at = now() WHERE id = $1", [payer.apiKeyId]);
        await client.query("COMMIT");
        client.release();
      },
      () => first.ledger.grant({ id: randomUUID(), accountId: one().accountId, bucket: "pack", amount: 50n, note: null }),
      (_, n) => first.ledger.refill({ ...tier(n), asOf: new Date(), nextReset: nextReset() }),
      (_, n) => first.ledger.setTier({ ...tier(n), nextReset: nextReset() }),
      (pool) => createKey(pool, one().accountId, 100n),
      (pool, n) => pool.query("UPDATE account SET low_balance_nanocredits = $2 WHERE id = $1", [one().accountId, n * 50]),
    ];
    let isFlushing = true;
    const write = async (writer: (typeof writers)[number], index: number): Promise<void> => {
      const { pool } = (processes[index % PROCESSES] as TestDatabase).database;
      for (let n = 0; isFlushing; n++) await writer(pool, n);
    };
    const written = writers.map(write);

    await Promise.all(ledgers.map(flushes)).finally(() => {
      isFlushing = false;
    });
    await Promise.all(written);

    expect(await findBrokenInvariants(first.pool)).toEqual({});
  });

  it("let 10 of 50 holds in at once on a key whose budget pays for 10", async () => {
    const payer = await createPayer(first.pool, first.ledger, { pack: 1_000n }, 100n);
    const held = Array.from({ length: 50 }, () => hold(payer, 10n));

    const outcomes = await Promise.all(held.map((operation, index) => (ledgers[index % PROCESSES] as Ledger).flush([operation])));

    expect(outcomes.flat().filter(({ outcome }) => outcome === "ok")).toHaveLength(10);
    expect(outcomes.flat().filter(({ outcome, isContended }) => outcome === "key_budget_exhausted" && isContended)).toHaveLength(40);
    expect(await readKey(first.pool, payer.apiKeyId ?? "")).toEqual({ budget: 100n, spent: 0n, held: 100n });
  });

  it("let 10 of 50 holds in at once on an account that pays for 10, through 5 keys", async () => {
    const accountId = await createAccount(first.pool, first.ledger, { tier: 35n, pack: 65n });
    const keys = await Promise.all([1, 2, 3, 4, 5].map(() => createKey(first.pool, accountId, null)));
    const held = Array.from({ length: 50 }, (_, index) => hold({ accountId, apiKeyId: keys[index % 5] as string }, 10n));

    const outcomes = await Promise.all(held.map((operation, index) => (ledgers[index % PROCESSES] as Ledger).flush([operation])));

    expect(outcomes.flat().filter(({ outcome }) => outcome === "ok")).toHaveLength(10);
    expect(await readAccount(first.pool, accountId)).toMatchObject({ held: { tier: 35n, pack: 65n } });
  });

  it("charge a generation once that all of them settle at once", async () => {
    const payer = await createPayer(first.pool, first.ledger, { pack: 100n });
    const held = hold(payer, 10n);
    await first.ledger.flush([held]);

    const outcomes = await Promise.all([...ledgers, ...ledgers].map((ledger) => ledger.flush([settle(held, 7n)])));

    expect(
      outcomes
        .flat()
        .map(({ outcome, charged }) => `${outcome} ${charged}`)
        .sort(),
    ).toEqual([...Array(7).fill("duplicate 7"), "ok 7"]);
    expect(await readAccount(first.pool, payer.accountId)).toMatchObject({ buckets: { pack: 93n }, held: { pack: 0n } });
  });

  it("grant once what all of them grant at once", async () => {
    const accountId = await createAccount(first.pool, first.ledger);
    const grant = { id: randomUUID(), accountId, bucket: "pack", amount: 5n, note: null } as const;

    const granted = await Promise.all(ledgers.map((ledger) => ledger.grant(grant)));

    expect(granted.filter((isNew) => isNew)).toHaveLength(1);
    expect(await readAccount(first.pool, accountId)).toMatchObject({ buckets: { pack: 5n } });
  });

  async function createCrowd(): Promise<TestPayer[]> {
    const crowd: TestPayer[] = [];
    for (let index = 0; index < 5; index++) {
      const accountId = await createAccount(first.pool, first.ledger, { tier: 2_000n, crypto: 1_000n, pack: 2_000n });
      crowd.push({ accountId, apiKeyId: null }, { accountId, apiKeyId: await createKey(first.pool, accountId, null) });
      crowd.push({ accountId, apiKeyId: await createKey(first.pool, accountId, 1_000n) });
    }
    return crowd;
  }
});

function setBudget(pool: Pick<TestDatabase["database"]["pool"], "query">, { accountId, apiKeyId }: TestPayer): Promise<unknown> {
  const remaining = randomInt(3) === 0 ? null : randomInt(400);
  return pool.query("SELECT credit_set_budget($1, $2, $3)", [accountId, apiKeyId, remaining]);
}

/** New holds, and any end of earlier ones, in any order of accounts. */
function randomBatch(payers: readonly TestPayer[], open: LedgerOperation[]): LedgerOperation[] {
  const batch = new Map<string, LedgerOperation>();
  const size = 1 + randomInt(OPERATIONS_MAX);
  for (let index = 0; index < size; index++) {
    const payer = payers[randomInt(payers.length)] as TestPayer;
    const held = randomInt(3) === 0 ? undefined : open[randomInt(open.length + 1)];
    const operation = held?.kind === "hold" ? randomSequel(held, open) : randomBeginning(payer);
    if (!batch.has(operation.id)) batch.set(operation.id, operation);
  }
  return [...batch.values()];
}

function randomBeginning(payer: TestPayer): LedgerOperation {
  const options = { paidOnly: randomInt(4) === 0 };
  return randomInt(8) === 0 ? settle(payer, BigInt(randomInt(40)), options) : hold(payer, BigInt(randomInt(60)), options);
}

function randomSequel(held: LedgerOperation & { kind: "hold" }, open: LedgerOperation[]): LedgerOperation {
  const kind = randomInt(4);
  if (kind === 0) return extend(held, BigInt(randomInt(60)), BigInt(randomInt(60)));
  // Now and then it stays in the list: it is then settled, released or extended once more.
  if (randomInt(5) > 0) open.splice(open.indexOf(held), 1);
  // Recovered generations are settled now and then, which corrects them.
  if (kind === 1 && randomInt(2) === 0) return recover(held, BigInt(randomInt(80)));
  return kind === 1 ? release(held) : settle(held, BigInt(randomInt(80)));
}
