/**
 * Leases beside exact holds: three processes open, settle, release, extend and abandon charges. Nothing is overdrawn,
 * charged twice or lost, and a hold is refused exactly when the money is not there. More runs than usual:
 * `LEASE_RUNS=2000 npx vitest run test/services/credits/leases-properties`; a failure prints its seed and path, which
 * `LEASE_SEED` and `LEASE_PATH` repeat.
 */
import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { AppError } from "../../../src/errors.js";
import type { OpenCharge } from "../../../src/services/credits/open-charge.js";
import type { BucketName } from "../../../src/store/ledger.js";
import { createTestDatabase, type TestDatabase } from "../../support/database.js";
import { findBrokenInvariants } from "../../support/invariants.js";
import {
  createAccount,
  createKey,
  createTestLedger,
  emptyBooks,
  readAccount,
  readKey,
  readUsage,
  usageRecord,
} from "../../support/ledger.js";
import { createMoneyProcess, type MoneyProcess } from "../../support/money-process.js";

const RUNS = Number(process.env.LEASE_RUNS ?? 6);
const MS_PER_RUN_MAX = 10_000;
const PROCESSES = 3;
const ACCOUNTS = 2;
const CHECKED_EVERY = 8;

let test: TestDatabase;

beforeAll(async () => {
  test = await createTestDatabase();
});
afterAll(() => test.close());

const upTo = (max: number) => fc.integer({ min: 0, max }).map(BigInt);
const which = fc.nat(1_000);
const step = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constant("open" as const),
      process: fc.nat(PROCESSES - 1),
      payer: fc.nat(ACCOUNTS * 4 - 1),
      estimate: fc.integer({ min: 1, max: 12 }).map(BigInt),
      most: fc.option(upTo(30), { nil: undefined, freq: 4 }),
      paidOnly: fc.boolean(),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant("settle" as const), which, percent: fc.constantFrom(0n, 30n, 100n, 100n, 100n, 130n) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("release" as const), which }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("meter" as const), which, percent: fc.constantFrom(50n, 90n, 100n) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("crash" as const), process: fc.nat(PROCESSES - 1) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("want" as const), process: fc.nat(PROCESSES - 1), account: fc.nat(ACCOUNTS - 1) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("fold" as const), process: fc.nat(PROCESSES - 1), account: fc.nat(ACCOUNTS - 1) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("grant" as const),
      account: fc.nat(ACCOUNTS - 1),
      bucket: fc.constantFrom<BucketName>("tier", "crypto", "pack"),
      amount: upTo(200).map((amount) => amount + 1n),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("set-budget" as const),
      process: fc.nat(PROCESSES - 1),
      account: fc.nat(ACCOUNTS - 1),
      remaining: fc.option(upTo(300), { nil: null }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("lose" as const), which }) },
);
const world = fc.record({
  balances: fc.array(fc.constantFrom(0n, 3n, 40n, 400n, 3_000n), { minLength: ACCOUNTS * 3, maxLength: ACCOUNTS * 3 }),
  budgets: fc.array(fc.constantFrom(5n, 60n, 600n), { minLength: ACCOUNTS, maxLength: ACCOUNTS }),
  steps: fc.array(step, { minLength: 10, maxLength: 50, size: "max" }),
});
type World = typeof world extends fc.Arbitrary<infer Value> ? Value : never;

interface Opened {
  readonly id: string;
  readonly charge: OpenCharge;
  readonly process: MoneyProcess;
  readonly accountId: string;
  /** Its place among the payers. */
  readonly payer: number;
}

it(
  "are spent, enlarged, taken back and left behind as if every hold were exact",
  async () => {
    const { LEASE_SEED: seed, LEASE_PATH: path } = process.env;
    await fc.assert(fc.asyncProperty(world, live), {
      numRuns: RUNS,
      endOnFailure: true,
      ...(seed !== undefined && { seed: Number(seed) }),
      ...(path !== undefined && { path }),
    });
  },
  RUNS * MS_PER_RUN_MAX,
);

async function live({ balances, budgets, steps }: World): Promise<void> {
  const { pool } = test.database;
  await emptyBooks(pool);
  const ledger = createTestLedger(test.database);
  const accounts: string[] = [];
  const payers: { readonly accountId: string; readonly apiKeyId: string | null; readonly hasBudget: boolean }[] = [];
  const budgeted: string[] = [];
  const granted = new Map<string, bigint>();
  for (let index = 0; index < ACCOUNTS; index += 1) {
    const [tier = 0n, crypto = 0n, pack = 0n] = balances.slice(index * 3);
    const accountId = await createAccount(pool, ledger, { tier, crypto, pack });
    const plain = await createKey(pool, accountId, null);
    const root = await createKey(pool, accountId, budgets[index] ?? null);
    const child = await createKey(pool, accountId, null, randomUUID(), null, root);
    accounts.push(accountId);
    budgeted.push(root);
    granted.set(accountId, tier + crypto + pack);
    payers.push({ accountId, apiKeyId: null, hasBudget: false }, { accountId, apiKeyId: plain, hasBudget: false });
    payers.push({ accountId, apiKeyId: root, hasBudget: true }, { accountId, apiKeyId: child, hasBudget: true });
  }
  const processes = await Promise.all(Array.from({ length: PROCESSES }, () => createMoneyProcess(test.database)));
  let open: Opened[] = [];
  const charged = new Map<string, { readonly accountId: string; readonly amount: bigint }>();

  for (const [index, each] of steps.entries()) {
    await take(each);
    if (index % CHECKED_EVERY === 0) expect(await findBrokenInvariants(pool)).toEqual({});
  }
  for (const opened of open) await settle(opened, 100n);
  await Promise.all(processes.map((one) => one.close()));

  expect(await findBrokenInvariants(pool, { isIdle: true })).toEqual({});
  expect((await pool.query("SELECT id FROM credit_lease")).rows).toEqual([]);
  for (const accountId of accounts) {
    const { buckets, held } = await readAccount(pool, accountId);
    const spent = [...charged.values()].filter((one) => one.accountId === accountId).reduce((sum, { amount }) => sum + amount, 0n);
    const recovered = await recoveredOf(accountId);
    expect(buckets.tier + buckets.crypto + buckets.pack).toBe((granted.get(accountId) ?? 0n) - spent - recovered);
    expect(held).toEqual({ tier: 0n, crypto: 0n, pack: 0n });
  }

  async function take(one: World["steps"][number]): Promise<void> {
    switch (one.do) {
      case "open":
        return openCharge(one);
      case "settle": {
        const opened = pick(one.which);
        return opened && settle(opened, one.percent);
      }
      case "release": {
        const opened = pick(one.which);
        if (!opened) return;
        open = open.filter((other) => other !== opened);
        return opened.charge.release();
      }
      case "meter": {
        const opened = pick(one.which);
        await opened?.charge.meter((opened.charge.heldAmount * one.percent) / 100n, false, () =>
          usageRecord({ status: "cancelled", usageSource: "partial" }),
        );
        return;
      }
      case "crash": {
        const gone = at(processes, one.process);
        await gone.crash();
        open = open.filter(({ process }) => process !== gone);
        processes[processes.indexOf(gone)] = await createMoneyProcess(test.database);
        await at(processes, one.process + 1).recovery.sweep();
        return;
      }
      case "want":
        return at(processes, one.process).leases.recall(at(accounts, one.account));
      case "fold":
        await at(processes, one.process).leases.fold([at(accounts, one.account)]);
        return;
      case "grant": {
        const accountId = at(accounts, one.account);
        await ledger.grant({ id: randomUUID(), accountId, bucket: one.bucket, amount: one.amount, note: null });
        granted.set(accountId, (granted.get(accountId) ?? 0n) + one.amount);
        return;
      }
      case "set-budget": {
        const accountId = at(accounts, one.account);
        await at(processes, one.process).leases.recall(accountId);
        await pool.query("SELECT credit_set_budget($1, $2, $3)", [accountId, at(budgeted, one.account), one.remaining?.toString() ?? null]);
        return;
      }
      case "lose": {
        const { rows } = await pool.query<{ id: string }>("SELECT id FROM credit_lease ORDER BY id");
        const lost = rows[one.which % Math.max(rows.length, 1)];
        if (lost) await pool.query("DELETE FROM credit_lease WHERE id = $1", [lost.id]);
      }
    }
  }

  async function openCharge(one: Extract<World["steps"][number], { do: "open" }>): Promise<void> {
    const { estimate, most, paidOnly } = one;
    const process = at(processes, one.process);
    const payer = at(payers, one.payer);
    const fits = estimate <= (await freeOf(one.payer, paidOnly));
    // It would wait in vain for the open holds of others.
    if (!fits && open.some(({ accountId }) => accountId === payer.accountId)) return;
    const id = randomUUID();
    const record = usageRecord({ status: "cancelled", usageSource: "partial" });
    const charge = process.credits.open({ generationId: id, payer, estimate, most, paidOnly, isFree: false, record });
    const refusal = await charge.held.then(
      () => null,
      (error: unknown) => error,
    );
    // A hold is refused exactly when the payer cannot cover it.
    expect(refusal === null).toBe(fits);
    if (refusal === null) open.push({ id, charge, process, accountId: payer.accountId, payer: one.payer });
    else expect(refusal).toBeInstanceOf(AppError);
    if (refusal !== null) await charge.release();
  }

  /** What a payer can hold: of the account, and of the budget that it draws on. */
  async function freeOf(index: number, paidOnly: boolean): Promise<bigint> {
    const { accountId, hasBudget } = at(payers, index);
    const { buckets } = await readAccount(pool, accountId);
    const heldBy = (isMeant: (other: Opened) => boolean) =>
      open.filter((other) => other.accountId === accountId && isMeant(other)).reduce((sum, { charge }) => sum + charge.heldAmount, 0n);
    // What of the open ones draws on the tier is not known here: at most all of it.
    const free = (paidOnly ? 0n : buckets.tier) + buckets.crypto + buckets.pack - heldBy(() => true);
    if (!hasBudget) return free;
    const { budget, spent } = await readKey(pool, at(budgeted, Math.floor(index / 4)));
    if (budget === null) return free;
    const left = budget - spent - heldBy((other) => at(payers, other.payer).hasBudget);
    return left < free ? left : free;
  }

  async function settle(opened: Opened, percent: bigint): Promise<void> {
    open = open.filter((other) => other !== opened);
    const held = opened.charge.heldAmount;
    const cost = (held * percent) / 100n;
    const { chargedNanocredits } = await opened.charge.settle(cost, usageRecord());
    if (cost <= held) expect(chargedNanocredits).toBe(cost);
    expect((await readUsage(pool, opened.id))?.cost).toBe(chargedNanocredits);
    expect(charged.has(opened.id)).toBe(false);
    charged.set(opened.id, { accountId: opened.accountId, amount: chargedNanocredits });
  }

  async function recoveredOf(accountId: string): Promise<bigint> {
    const { rows } = await pool.query(
      "SELECT coalesce(sum(cost_nanocredits), 0)::text AS cost FROM usage_record WHERE account_id = $1 AND is_recovered",
      [accountId],
    );
    return BigInt(rows[0].cost);
  }

  function pick(index: number): Opened | undefined {
    return open[index % Math.max(open.length, 1)];
  }
}

function at<Item>(items: readonly Item[], index: number): Item {
  return items[index % items.length] as Item;
}
