/**
 * Any sequence of batches has the results of plain arithmetic (test/support/ledger-model.ts), and keeps every invariant
 * of the books. More runs than usual: `LEDGER_RUNS=5000 npx vitest run test/store/ledger-properties`; a failure prints
 * its seed and path, which `LEDGER_SEED` and `LEDGER_PATH` repeat.
 */
import fc from "fast-check";
import type pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { BucketName, Ledger, LedgerRecord } from "../../src/store/ledger.js";
import { createTestDatabase, type TestDatabase } from "../support/database.js";
import { INVARIANTS } from "../support/invariants.js";
import {
  createAccount,
  createKey,
  createTestLedger,
  emptyBooks,
  extend,
  hold,
  recover,
  release,
  settle,
  type TestPayer,
  usageRecord,
} from "../support/ledger.js";
import { type HeldOperation, LedgerModel, type ModelUsage } from "../support/ledger-model.js";

const RUNS = Number(process.env.LEDGER_RUNS ?? 25);
const MS_PER_RUN_MAX = 2_000;
const HUGE = 2n ** 62n;

let test: TestDatabase;
let pool: pg.Pool;
let ledger: Ledger;

beforeAll(async () => {
  test = await createTestDatabase();
  pool = test.database.pool;
  await prepareChecks();
});
afterAll(() => test.close());

const bucket = fc.constantFrom<BucketName>("tier", "crypto", "pack");
const upTo = (max: number) => fc.integer({ min: 0, max }).map(BigInt);
const amount = fc.oneof({ weight: 30, arbitrary: upTo(9) }, { weight: 1, arbitrary: fc.constant(HUGE) });

/**
 * An operation is planned from the present state: a new generation, one whose hold is open, or one that has been
 * settled, released or refused.
 */
const PAYERS = 8;
const fresh = fc.record({
  finds: fc.constant("nothing" as const),
  kind: fc.constantFrom<Kind>("hold", "hold", "hold", "hold", "hold", "settle", "recover", "extend", "release"),
  payer: fc.nat(PAYERS - 1),
  paidOnly: fc.boolean(),
  usage: fc.record({ model: fc.nat(1), day: fc.nat(1) }),
});
const known = fc.record({
  finds: fc.constantFrom("hold", "hold", "hold", "past"),
  kind: fc.constantFrom<Kind>("hold", "extend", "extend", "settle", "settle", "settle", "recover", "recover", "release"),
  which: fc.nat(1_000),
});
const operation = fc.record({ target: fc.oneof(fresh, known), amount, metered: upTo(9) });

const HOUR_MS = 3_600_000;
const DAWN = Date.UTC(2026, 10, 22);
const tier = fc.constantFrom(null, "free", "plus");
/** Hours; clocks of processes need not agree. A refill is mostly asked for by who knows the tier. */
const tierStep = fc.record({
  do: fc.constantFrom("refill" as const, "refill" as const, "set-tier" as const),
  account: fc.nat(2),
  tier: fc.option(tier, { nil: "as it is" as const }),
  amount: upTo(25),
  hour: fc.nat(9),
  hours: fc.option(fc.integer({ min: 1, max: 4 }), { nil: null }),
});

const step = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({ do: fc.constant("flush" as const), operations: fc.array(operation, { minLength: 1, maxLength: 8 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("repeat" as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("grant" as const), grant: fc.nat(6), account: fc.nat(1), bucket, amount: upTo(20) }),
  },
  { weight: 4, arbitrary: tierStep },
);

const world = fc.record({
  /** Of the two accounts, tier, crypto and pack. */
  balances: fc.array(upTo(25), { minLength: 6, maxLength: 6 }),
  budgets: fc.array(fc.option(upTo(40), { nil: null }), { minLength: 5, maxLength: 5 }),
  freeSpendCap: fc.option(upTo(40), { nil: null }),
  steps: fc.array(step, { minLength: 6, maxLength: 25, size: "max" }),
});
type Kind = HeldOperation["kind"];
type World = typeof world extends fc.Arbitrary<infer Value> ? Value : never;
type TierStep = typeof tierStep extends fc.Arbitrary<infer Value> ? Value : never;
type Plan = typeof operation extends fc.Arbitrary<infer Value> ? Value : never;

interface Generation {
  readonly id: string;
  readonly payer: TestPayer;
  readonly paidOnly: boolean;
  readonly record: LedgerRecord;
}

it(
  "answers and keeps the results of plain arithmetic, for any operations in any order",
  async () => {
    const { LEDGER_SEED: seed, LEDGER_PATH: path } = process.env;
    await fc.assert(fc.asyncProperty(world, play), { numRuns: RUNS, ...(seed && { seed: Number(seed) }), ...(path && { path }) });
  },
  20_000 + RUNS * MS_PER_RUN_MAX,
);

/** One run, from empty books. */
async function play({ balances, budgets, freeSpendCap, steps }: World): Promise<void> {
  await emptyBooks(pool);
  const model = new LedgerModel(freeSpendCap);
  ledger = createTestLedger(test.database, { freeSpendCap });
  const nextId = countIds();
  const payers = await createPayers(model, nextId, balances, budgets);
  const generations: Generation[] = [];
  const grantIds = Array.from({ length: 7 }, nextId);
  let last: HeldOperation[] = [];

  for (const current of steps) {
    if (current.do === "grant") {
      const { accountId } = at(payers, current.account);
      const grant = { id: at(grantIds, current.grant), accountId, bucket: current.bucket, amount: current.amount + 1n, note: null };
      expect(await ledger.grant(grant)).toBe(model.grant(grant));
    } else if (current.do === "refill" || current.do === "set-tier") {
      await changeTier(current, model, nextId(), at(payers, TIER_PAYERS[current.account] ?? 0).accountId);
    } else {
      if (current.do === "flush") last = toBatch(current.operations, generations, payers, model, nextId);
      expect(await ledger.flush(last)).toEqual(model.flush(last));
    }
    expect(await readBooks()).toEqual({ books: expectedBooks(model), brokenInvariants: {} });
  }
}

/** Payers of the two accounts, and of the one that does not exist. */
const TIER_PAYERS = [0, 1, 5];

async function changeTier(step: TierStep, model: LedgerModel, id: string, accountId: string): Promise<void> {
  const asOf = new Date(DAWN + step.hour * HOUR_MS);
  const nextReset = step.hours === null ? null : new Date(asOf.getTime() + step.hours * HOUR_MS);
  const tierName = step.tier === "as it is" ? (model.tiers.get(accountId)?.tier ?? null) : step.tier;
  const change = { id, accountId, tier: tierName, amount: step.amount, nextReset };
  if (step.do === "set-tier") expect(await ledger.setTier(change)).toEqual(model.setTier(change));
  else expect(await ledger.refill({ ...change, asOf })).toEqual(model.refill({ ...change, asOf }));
}

/** Two accounts; of the keys two belong to the first, and a third and fourth descend from the first of those. One payer's account does not exist. */
async function createPayers(
  model: LedgerModel,
  nextId: () => string,
  balances: readonly bigint[],
  budgets: readonly (bigint | null)[],
): Promise<TestPayer[]> {
  const accounts: string[] = [];
  for (const first of [0, 3]) {
    const accountId = await createAccount(pool, ledger, {}, nextId());
    model.addAccount(accountId);
    accounts.push(accountId);
    for (const [index, bucketName] of (["tier", "crypto", "pack"] as const).entries()) {
      const grant = { id: nextId(), accountId, bucket: bucketName, amount: at(balances, first + index) + 1n, note: null };
      expect(await ledger.grant(grant)).toBe(model.grant(grant));
    }
  }
  const [first, second] = accounts as [string, string];
  const keys: string[] = [];
  const app = nextId();
  for (const [index, accountId] of [first, second, first].entries()) {
    // Two keys of two accounts were granted to one app.
    const key = await createKey(pool, accountId, at(budgets, index), nextId(), index < 2 ? app : null);
    model.addKey(key, at(budgets, index));
    keys.push(key);
  }
  const [a, b, c] = keys as [string, string, string];
  const child = await createKey(pool, first, at(budgets, 3), nextId(), null, a);
  model.addKey(child, at(budgets, 3), a);
  const grandchild = await createKey(pool, first, at(budgets, 4), nextId(), null, child);
  model.addKey(grandchild, at(budgets, 4), child);
  return [
    { accountId: first, apiKeyId: a },
    { accountId: second, apiKeyId: b },
    { accountId: first, apiKeyId: c },
    { accountId: first, apiKeyId: null },
    { accountId: second, apiKeyId: null },
    { accountId: nextId(), apiKeyId: null },
    { accountId: first, apiKeyId: child },
    { accountId: first, apiKeyId: grandchild },
  ];
}

/** Operations on generations as they stand before the batch; an id stands in it once. */
function toBatch(
  plans: readonly Plan[],
  generations: Generation[],
  payers: readonly TestPayer[],
  model: LedgerModel,
  nextId: () => string,
): HeldOperation[] {
  const batch = new Map<string, HeldOperation>();
  const before = { hold: generations.filter(({ id }) => model.holds.has(id)), past: generations.filter(({ id }) => !model.holds.has(id)) };
  for (const { target, amount: of, metered } of plans) {
    const generation = findTarget(target);
    if (!generation || batch.has(generation.id)) continue;
    const { id, payer, paidOnly, record } = generation;
    const held = hold(payer, of, { id, paidOnly, record });
    const made = {
      hold: held,
      extend: extend(held, of, metered),
      settle: settle(held, of),
      recover: recover(held, of),
      release: release(held),
    };
    batch.set(id, made[target.kind]);
  }
  return [...batch.values()];

  function findTarget(target: Plan["target"]): Generation | undefined {
    if (target.finds !== "nothing") return before[target.finds][target.which % before[target.finds].length];
    const record = usageRecord({ model: `acme/${target.usage.model}`, timestamp: `2026-11-2${target.usage.day}T23:59:59.999Z` });
    const generation = { id: nextId(), payer: at(payers, target.payer), paidOnly: target.paidOnly, record };
    generations.push(generation);
    return generation;
  }
}

/** The same ids in each run, so that a failure shrinks: accounts and keys are served in the order of their ids. */
function countIds(): () => string {
  let count = 0;
  return () => `00000000-0000-4000-8000-${String(count++).padStart(12, "0")}`;
}

function at<Item>(items: readonly Item[], index: number): Item {
  if (index >= items.length) throw new Error(`no item ${index} of ${items.length}`);
  return items[index] as Item;
}

/** What the database holds, by table and id, in the form that `expectedBooks` gives the model. */
const BOOKS = {
  account: `SELECT id, ARRAY[tier_nanocredits, crypto_nanocredits, pack_nanocredits,
    tier_held_nanocredits, crypto_held_nanocredits, pack_held_nanocredits]::text[] || tier || (extract(epoch FROM tier_resets_at) * 1000)::bigint::text
    AS value FROM account`,
  refill: `SELECT transaction_id AS id, array_agg(book || ' ' || amount_nanocredits ORDER BY line) AS value
    FROM ledger_entry WHERE kind = 'refill' GROUP BY 1`,
  key: "SELECT id, ARRAY[spent_nanocredits, held_nanocredits]::text[] AS value FROM api_key",
  hold: `SELECT id, ARRAY[tier_nanocredits, crypto_nanocredits, pack_nanocredits, metered_nanocredits]::text[] AS value FROM hold`,
  usage: `SELECT id, ARRAY[cost_nanocredits::text, meter_source::text, CASE WHEN is_recovered THEN 'recovered' ELSE 'real' END] AS value
    FROM usage_record`,
  charge: `SELECT transaction_id AS id, array_agg(book || ' ' || amount_nanocredits ORDER BY line) AS value
    FROM ledger_entry WHERE kind = 'charge' GROUP BY 1`,
  "free spend": "SELECT 'all' AS id, ARRAY[coalesce(sum(tier_nanocredits), 0)::text] AS value FROM free_spend_daily",
};
type Books = Record<keyof typeof BOOKS, Record<string, readonly (string | null)[]>>;

/**
 * Prepared by name, which the embedded database keeps for all of its connections: planning is most of the cost of these
 * statements.
 */
async function prepareChecks(): Promise<void> {
  const queries = [...Object.values(BOOKS), ...Object.values(INVARIANTS)];
  for (const [index, query] of queries.entries()) await pool.query(`PREPARE check_${index} AS ${query}`);
}

async function readBooks(): Promise<{ books: Books; brokenInvariants: Record<string, unknown[]> }> {
  const tables = Object.keys(BOOKS);
  const names = [...tables, ...Object.keys(INVARIANTS)];
  const answer: unknown = await pool.query(names.map((_, index) => `EXECUTE check_${index}`).join(";"));
  const results = (answer as pg.QueryResult[]).map(({ rows }, index) => [names[index] as string, rows] as const);
  const books = results.slice(0, tables.length).map(([name, rows]) => [name, Object.fromEntries(rows.map(({ id, value }) => [id, value]))]);
  const broken = results.slice(tables.length).filter(([, rows]) => rows.length > 0);
  return { books: Object.fromEntries(books), brokenInvariants: Object.fromEntries(broken) };
}

function expectedBooks(model: LedgerModel): Books {
  const table = <Value>(map: ReadonlyMap<string, Value>, toRow: (value: Value, id: string) => readonly (bigint | string | null)[]) =>
    Object.fromEntries([...map].map(([id, value]) => [id, toRow(value, id).map((cell) => (cell === null ? null : String(cell)))]));
  return {
    account: table(model.balances, ({ tier, crypto, pack }, id) => {
      const held = model.heldOf(id);
      const { tier: name = null, resetsAt = null } = model.tiers.get(id) ?? {};
      return [tier, crypto, pack, held.tier, held.crypto, held.pack, name, resetsAt && BigInt(resetsAt.getTime())];
    }),
    refill: table(model.refills, (change) => [`tier ${change}`, `issued ${-change}`]),
    key: table(model.budgets, (_, id) => [model.keySpent(id), model.keyHeld(id)]),
    hold: table(model.holds, ({ parts, metered }) => [parts.tier, parts.crypto, parts.pack, metered]),
    usage: table(model.usage, ({ cost, source, isRecovered }) => [cost, source, isRecovered ? "recovered" : "real"]),
    charge: table(
      new Map([...model.usage].map(([id, usage]) => [id, linesOf(usage)] as const).filter(([, lines]) => lines.length > 0)),
      (lines) => lines,
    ),
    "free spend": { all: [String(model.freeSpendCap === null ? 0n : model.tierSpent)] },
  };
}

/** Those of the charge, and behind them those of its correction. */
function linesOf({ paid, writtenOff, correction }: ModelUsage): string[] {
  const changes = [{ paid, writtenOff }, ...(correction ? [correction] : [])];
  return changes.flatMap((change) =>
    [
      ["tier", -change.paid.tier] as const,
      ["crypto", -change.paid.crypto] as const,
      ["pack", -change.paid.pack] as const,
      ["write_off", -change.writtenOff] as const,
      ["revenue", change.paid.tier + change.paid.crypto + change.paid.pack + change.writtenOff] as const,
    ]
      .filter(([, amount]) => amount !== 0n)
      .map(([book, amount]) => `${book} ${amount}`),
  );
}
