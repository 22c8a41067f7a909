import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { isWellFormedApiKey } from "../../../src/lib/api-key-format.js";
import { systemClock } from "../../../src/lib/clock.js";
import { ensureOwner, type OwnerOptions } from "../../../src/services/accounts/owner.js";
import { ApiKeyCache } from "../../../src/services/api-keys/api-key-cache.js";
import type { Database } from "../../../src/store/database.js";
import { createMemoryEvents } from "../../../src/store/events.js";
import { OWNER_KEY } from "../../support/app.js";
import { createTestDatabase, silentLog, type TestDatabase } from "../../support/database.js";
import { findBrokenInvariants } from "../../support/invariants.js";
import { createTestLedger, emptyBooks } from "../../support/ledger.js";
import { isPostgresInstalled } from "../../support/postgres.js";
import { openSharedTestDatabase } from "../../support/shared-database.js";
import { createPostgresDatabase, type SuiteDatabase } from "../../support/suite-server.js";

const HUNDRED_CREDITS = 100_000_000_000n;
const PEPPER = Buffer.alloc(32, 7);

function directoryOf(database: Database): ApiKeyCache {
  return new ApiKeyCache(
    database,
    PEPPER,
    systemClock,
    createMemoryEvents(silentLog),
    () => undefined,
    () => undefined,
  );
}

/** As a process that starts does. */
function start(database: Database, options: Partial<OwnerOptions> = {}): Promise<string | null> {
  return ensureOwner(database, createTestLedger(database), directoryOf(database), {
    apiKey: null,
    nanocredits: HUNDRED_CREDITS,
    ...options,
  });
}

async function readOwners({ prisma }: Database) {
  return prisma.account.findMany({ where: { handle: "owner" }, include: { apiKeys: { orderBy: { createdAt: "asc" } } } });
}

describe("The owner", () => {
  let test: TestDatabase;
  let database: Database;

  beforeAll(async () => {
    test = await createTestDatabase();
    database = test.database;
  });
  beforeEach(() => emptyBooks(database.pool));
  afterEach(async () => expect(await findBrokenInvariants(database.pool, { isIdle: true })).toEqual({}));
  afterAll(() => test.close());

  it("is made on the first start, an operator with a key that may do everything, and its first credits", async () => {
    const key = await start(database);

    expect(key).toMatch(/^sk_/);
    expect(isWellFormedApiKey(key ?? "")).toBe(true);
    const [owner, ...others] = await readOwners(database);
    expect(others).toEqual([]);
    expect(owner).toMatchObject({ isOperator: true, tier: null, packNanocredits: HUNDRED_CREDITS, tierNanocredits: 0n });
    expect(owner?.apiKeys).toMatchObject([
      {
        type: "secret",
        budgetNanocredits: null,
        expiresAt: null,
        restrictsModels: false,
        permissions: ["profile", "balance", "usage", "keys"],
      },
    ]);
    expect(await directoryOf(database).authenticate(key)).toMatchObject({ kind: "key", accountId: owner?.id });
  });

  it("is left as it is by every later start", async () => {
    const key = await start(database);
    await database.prisma.account.updateMany({ data: { name: "Ada" } });

    expect(await start(database)).toBeNull();
    expect(await start(database, { nanocredits: 5n * HUNDRED_CREDITS })).toBeNull();

    const [owner] = await readOwners(database);
    expect(owner).toMatchObject({ name: "Ada", packNanocredits: HUNDRED_CREDITS });
    expect(owner?.apiKeys).toHaveLength(1);
    expect(await directoryOf(database).authenticate(key)).toMatchObject({ kind: "key" });
  });

  it("gets the key that is preset, once, and says nothing of it later", async () => {
    expect(await start(database, { apiKey: OWNER_KEY })).toBe(OWNER_KEY);
    expect(await start(database, { apiKey: OWNER_KEY })).toBeNull();
    expect(await start(database)).toBeNull();

    expect((await readOwners(database))[0]?.apiKeys).toHaveLength(1);
    expect(await directoryOf(database).authenticate(OWNER_KEY)).toMatchObject({ kind: "key" });
  });

  it("gets a preset key beside the one that was made before", async () => {
    const made = await start(database);
    expect(await start(database, { apiKey: OWNER_KEY })).toBe(OWNER_KEY);

    for (const key of [made, OWNER_KEY]) expect(await directoryOf(database).authenticate(key)).toMatchObject({ kind: "key" });
  });

  it("is finished by the next start when the first one died half-way", async () => {
    await database.prisma.account.create({ data: { id: randomUUID(), handle: "owner", isOperator: true } });

    expect(await start(database)).toMatch(/^sk_/);

    expect(await readOwners(database)).toMatchObject([{ packNanocredits: HUNDRED_CREDITS, apiKeys: [{ type: "secret" }] }]);
  });

  it("may begin with nothing", async () => {
    await start(database, { nanocredits: 0n });

    expect(await readOwners(database)).toMatchObject([{ packNanocredits: 0n }]);
  });

  it.each(["sk_short", "pk_OwnerOfAllTests01234", OWNER_KEY.replace(/.$/, "x")])(
    "refuses %s as its key, and makes nothing",
    async (apiKey) => {
      await expect(start(database, { apiKey })).rejects.toThrow(/OWNER_API_KEY/);

      expect(await readOwners(database)).toEqual([]);
    },
  );
});

describe.skipIf(!isPostgresInstalled)("The owner of a database that several processes start on at once", () => {
  let shared: SuiteDatabase;
  let processes: TestDatabase[];

  beforeAll(async () => {
    shared = await createPostgresDatabase();
    processes = [];
    while (processes.length < 4) processes.push(await openSharedTestDatabase(shared.url));
  });
  beforeEach(() => emptyBooks(first().pool));
  afterAll(async () => {
    await Promise.all(processes.map((process) => process.close()));
    await shared.drop();
  });

  const first = () => (processes[0] as TestDatabase).database;

  it("is made once, with one key and one first balance", async () => {
    const keys = await Promise.all(processes.map(({ database }) => start(database)));

    expect(keys.filter((key) => key !== null)).toHaveLength(1);
    expect(await readOwners(first())).toMatchObject([{ packNanocredits: HUNDRED_CREDITS, apiKeys: [{ type: "secret" }] }]);
    expect(await findBrokenInvariants(first().pool, { isIdle: true })).toEqual({});
  });

  it("has a preset key once", async () => {
    await Promise.all(processes.map(({ database }) => start(database, { apiKey: OWNER_KEY })));

    const [owner] = await readOwners(first());
    expect(owner?.apiKeys.map(({ start: beginning }) => beginning)).toEqual([OWNER_KEY.slice(0, 10)]);
  });
});
