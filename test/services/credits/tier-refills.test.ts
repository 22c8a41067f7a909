/** When an account is refilled, and how rarely anything is asked for it. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { KnownBalances } from "../../../src/services/credits/known-balances.js";
import { Leases } from "../../../src/services/credits/leases.js";
import { TierRefills, Tiers } from "../../../src/services/credits/tiers.js";
import { createMemoryEvents, type Events } from "../../../src/store/events.js";
import { type Ledger, LedgerUnavailable } from "../../../src/store/ledger.js";
import { createTestDatabase, silentLog, type TestDatabase } from "../../support/database.js";
import { findBrokenInvariants } from "../../support/invariants.js";
import { type Balances, createAccount, createTestLedger, readAccount } from "../../support/ledger.js";

const TIERS = new Tiers([
  { name: "free", nanocredits: 10n, period: "day" },
  { name: "plus", nanocredits: 50n, period: "hour" },
  { name: "idle", nanocredits: 9n, period: null },
]);
const NOON = "2026-11-21T12:00:00.000Z";
const MIDNIGHT = "2026-11-22T00:00:00.000Z";

let test: TestDatabase;
let ledger: Ledger;
let events: Events;
let known: KnownBalances;
let refills: TierRefills;
let now: Date;
let refillsAsked: number;

beforeAll(async () => {
  test = await createTestDatabase();
});
beforeEach(() => {
  const real = createTestLedger(test.database);
  refillsAsked = 0;
  ledger = {
    ...real,
    refill: (refill) => {
      refillsAsked += 1;
      return real.refill(refill);
    },
  };
  events = createMemoryEvents(silentLog);
  known = new KnownBalances();
  now = new Date(NOON);
  refills = createRefills();
});
afterAll(async () => {
  const broken = await findBrokenInvariants(test.database.pool);
  await test.close();
  expect(broken).toEqual({});
});

function createRefills(of: Ledger = ledger): TierRefills {
  const leases = new Leases({ ledger: of.leases, database: test.database, processId: randomUUID(), events, log: silentLog });
  return new TierRefills({
    tiers: TIERS,
    ledger: of,
    leases,
    database: test.database,
    known,
    events,
    clock: { now: () => now },
    log: silentLog,
  });
}

async function accountOf(tier: string | null, resetsAt: string | null = null, balances: Balances = {}): Promise<string> {
  const id = await createAccount(test.database.pool, ledger, balances);
  await test.database.pool.query("UPDATE account SET tier = $2, tier_resets_at = $3 WHERE id = $1", [id, tier, resetsAt]);
  return id;
}

const read = (id: string) => test.database.prisma.account.findUniqueOrThrow({ where: { id } });
const tierBucket = async (id: string) => (await readAccount(test.database.pool, id)).buckets.tier;

describe("the refill check before a generation", () => {
  it("refills a new account, and then none until the boundary", async () => {
    const id = await accountOf("free");

    await refills.refillIfDue(id);

    expect(await tierBucket(id)).toBe(10n);
    expect(refills.refillIfDue(id)).toBeNull();
    now = new Date(Date.parse(MIDNIGHT) - 1);
    expect(refills.refillIfDue(id)).toBeNull();
    now = new Date(MIDNIGHT);
    await refills.refillIfDue(id);
    expect(refillsAsked).toBe(2);
  });

  it("reads nothing for an account that was just read", async () => {
    const id = await accountOf("free", MIDNIGHT);

    refills.learn({ id, tier: "free", tierResetsAt: new Date(MIDNIGHT) });

    expect(refills.refillIfDue(id)).toBeNull();
  });

  it("reads an unknown account, and refills it only when it is due", async () => {
    const ids = [await accountOf("free", MIDNIGHT), await accountOf(null), await accountOf("idle"), await accountOf("of last year")];

    for (const id of ids) {
      await refills.refillIfDue(id);
      expect(refills.refillIfDue(id)).toBeNull();
    }

    expect(refillsAsked).toBe(0);
  });

  it("refills once for a burst", async () => {
    const id = await accountOf("free");

    await Promise.all(Array.from({ length: 20 }, () => refills.refillIfDue(id)));

    expect(refillsAsked).toBe(1);
    expect(await tierBucket(id)).toBe(10n);
  });

  it("accepts that another process has refilled meanwhile", async () => {
    const id = await accountOf("free", NOON);
    await createRefills(createTestLedger(test.database)).refillIfDue(id);

    refills.learn({ id, tier: "free", tierResetsAt: new Date(NOON) });
    await refills.refillIfDue(id);

    expect(await tierBucket(id)).toBe(10n);
    expect(refills.refillIfDue(id)).toBeNull();
  });

  it("accepts that the tier has changed meanwhile", async () => {
    const id = await accountOf("plus", NOON);

    refills.learn({ id, tier: "free", tierResetsAt: new Date(NOON) });
    await refills.refillIfDue(id);

    expect(await tierBucket(id)).toBe(50n);
    expect((await read(id)).tierResetsAt).toEqual(new Date("2026-11-21T13:00:00.000Z"));
  });

  it("rejects with SERVICE_UNAVAILABLE when the database is away, and tries again the next time", async () => {
    const id = await accountOf("free");
    let isAway = true;
    const flaky = createRefills({
      ...ledger,
      refill: (refill) => (isAway ? Promise.reject(new LedgerUnavailable("away")) : ledger.refill(refill)),
    });

    await expect(flaky.refillIfDue(id)).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" });
    isAway = false;
    await flaky.refillIfDue(id);

    expect(await tierBucket(id)).toBe(10n);
  });

  it("passes for a deleted account", async () => {
    await expect(refills.refillIfDue(randomUUID())).resolves.toBeUndefined();
  });
});

describe("a refill", () => {
  it("sends an event, and can be spent at once", async () => {
    const id = await accountOf("free", NOON, { pack: 90n });
    const told: string[] = [];
    events.listenToAccount("balance-changed", id, ({ accountId }) => told.push(accountId));

    expect(await refills.bringUpToDate(await read(id))).toBe(true);

    expect(told).toEqual([id]);
    expect(known.freeOf([id])).toBe(100n);
    expect(await refills.bringUpToDate(await read(id))).toBe(false);
  });

  it("sends no event when it changes nothing", async () => {
    const id = await accountOf("free", NOON, { tier: 10n });
    let told = 0;
    events.listenToAccount("balance-changed", id, () => {
      told += 1;
    });

    expect(await refills.bringUpToDate(await read(id))).toBe(true);

    expect(told).toBe(0);
  });

  it("can be computed ahead without being made", async () => {
    const id = await accountOf("free", NOON, { tier: 3n });

    const seen = refills.preview(await read(id));

    expect(seen).toMatchObject({ tierNanocredits: 10n, tierResetsAt: new Date(MIDNIGHT) });
    expect(await tierBucket(id)).toBe(3n);
    await refills.bringUpToDate(await read(id));
    expect(refills.preview(await read(id))).toEqual(await read(id));
    expect(await read(id)).toMatchObject({ tierNanocredits: seen.tierNanocredits, tierResetsAt: seen.tierResetsAt });
  });

  it("is next due at the boundary of a tier that refills, and never without one", async () => {
    const tierResetsAt = new Date(MIDNIGHT);

    expect(refills.nextResetOf({ tier: "free", tierResetsAt })).toEqual(tierResetsAt);
    for (const tier of [null, "idle", "of last year"]) expect(refills.nextResetOf({ tier, tierResetsAt })).toBeNull();
  });
});

describe("a change of tier", () => {
  it("discards the rest of a period that is over", async () => {
    const id = await accountOf("free", NOON, { tier: 45n });

    await refills.setTier(await read(id), "plus");

    expect(await read(id)).toMatchObject({ tier: "plus", tierNanocredits: 50n, tierResetsAt: new Date("2026-11-21T13:00:00.000Z") });
  });

  it("to none ends refills, and the rest lapses at the boundary", async () => {
    const id = await accountOf("free", MIDNIGHT, { tier: 4n });

    await refills.setTier(await read(id), null);
    await refills.bringUpToDate(await read(id));

    expect(await tierBucket(id)).toBe(4n);
    now = new Date(MIDNIGHT);
    await refills.bringUpToDate(await read(id));
    expect(await read(id)).toMatchObject({ tier: null, tierNanocredits: 0n, tierResetsAt: null });
  });

  it("takes effect at once: the next generation ignores the old tier's boundary", async () => {
    const id = await accountOf("free", MIDNIGHT);
    refills.learn(await read(id));

    await refills.setTier(await read(id), "plus");
    now = new Date("2026-11-21T13:00:00.000Z");

    expect(refills.refillIfDue(id)).not.toBeNull();
  });
});
