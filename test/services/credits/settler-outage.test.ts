/** The settler when its database really goes: silent, resetting, killed, its pool closed. */
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { pino } from "pino";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { Settler } from "../../../src/services/credits/settler.js";
import { openDatabase } from "../../../src/store/database.js";
import type { HoldOperation, Ledger } from "../../../src/store/ledger.js";
import { openSettlementSpool } from "../../../src/store/settlement-spool.js";
import { createEmptyDir, createTestDatabase, silentLog, type TestDatabase } from "../../support/database.js";
import { eventually } from "../../support/eventually.js";
import { type FaultProxy, startFaultProxy } from "../../support/fault-proxy.js";
import { findBrokenInvariants } from "../../support/invariants.js";
import { createPayer, createTestLedger, hold, readAccount, readUsage, settle, type TestPayer } from "../../support/ledger.js";
import { isPostgresInstalled, type TestPostgres } from "../../support/postgres.js";
import { openSharedTestDatabase, requirePostgres } from "../../support/shared-database.js";

const TIMEOUT_MS = 1_000;

const backInService = (settler: Settler) => eventually(() => expect(settler.isUnavailable).toBe(false));
const openSettler = async (ledger: Ledger, dataDir: string) =>
  new Settler({ ledger, spool: await openSettlementSpool(dataDir), log: pino({ level: "silent" }) });

describe.skipIf(!isPostgresInstalled)("PostgreSQL behind a proxy that breaks", () => {
  let postgres: TestPostgres;
  /** Past the proxy. */
  let direct: TestDatabase;
  let real: Ledger;
  let proxy: FaultProxy;
  let pool: pg.Pool;
  let settler: Settler;
  let dataDir: string;

  beforeAll(async () => {
    postgres = await requirePostgres();
    direct = await openSharedTestDatabase(postgres.url);
    real = createTestLedger(direct.database);
  });
  beforeEach(async () => {
    proxy = await startFaultProxy({ path: postgres.socketPath });
    pool = new pg.Pool({ host: "127.0.0.1", port: proxy.port, user: "postgres", database: databaseOf(postgres.url), max: 2 });
    pool.on("error", () => undefined);
    pool.on("connect", (client) => client.on("error", () => undefined));
    dataDir = await createEmptyDir();
    settler = await openSettler(createTestLedger({ pool, isExclusive: false }, { timeoutMs: TIMEOUT_MS }), dataDir);
  });
  afterEach(async () => {
    await settler.close();
    await pool.end();
    await proxy.close();
    await rm(dataDir, { recursive: true });
    expect(await findBrokenInvariants(direct.database.pool)).toEqual({});
  });
  afterAll(async () => {
    await direct.close();
    await postgres.stop();
  });

  const payerWith = (pack: bigint) => createPayer(direct.database.pool, real, { pack });
  const openHolds = async (payer: TestPayer, count: number): Promise<HoldOperation[]> => {
    const held = Array.from({ length: count }, () => hold(payer, 10n));
    const outcomes = await Promise.all(held.map((operation) => settler.submit(operation)));
    expect(outcomes.every(({ outcome }) => outcome === "ok")).toBe(true);
    return held;
  };

  it.each([
    ["falls silent", () => proxy.blackHole()],
    [
      "resets its connections and refuses new ones",
      () => {
        proxy.refuse();
        proxy.resetAll();
      },
    ],
  ])("refuses new work and charges each settlement once when it %s", async (_, breakIt) => {
    const payer = await payerWith(1_000n);
    const held = await openHolds(payer, 20);

    breakIt();
    const doubtful = Promise.allSettled(Array.from({ length: 5 }, () => settler.submit(hold(payer, 10n))));
    const settled = await Promise.all(held.map((operation) => settler.submit(settle(operation, 7n))));

    expect(settled.every(({ outcome, charged }) => outcome === "ok" && charged === 7n)).toBe(true);
    for (const result of await doubtful) expect(result).toMatchObject({ status: "rejected", reason: { code: "SERVICE_UNAVAILABLE" } });
    expect((await readFile(join(dataDir, "spool/settlements.ndjson"), "utf8")).match(/"settle"/g)).toHaveLength(20);
    for (const { id } of held) expect(await readUsage(direct.database.pool, id)).toBeNull();

    proxy.heal();
    await backInService(settler);

    for (const { id } of held) expect(await readUsage(direct.database.pool, id)).toMatchObject({ cost: 7n });
    expect(await settler.submit(hold(payer, 10n))).toMatchObject({ outcome: "ok" });
    expect(await readAccount(direct.database.pool, payer.accountId)).toMatchObject({ buckets: { pack: 860n }, held: { pack: 10n } });
  });

  it("charges once when the connection breaks between the commit and its answer", async () => {
    const payer = await payerWith(1_000n);
    const [held] = (await openHolds(payer, 1)) as [HoldOperation];

    // The server takes the settlement, and the first byte of its answer breaks the connection.
    proxy.cutAfter(1);
    await settler.submit(settle(held, 7n));
    await eventually(async () => expect(await readUsage(direct.database.pool, held.id)).toMatchObject({ cost: 7n }));
    proxy.heal();
    await backInService(settler);

    expect(await readAccount(direct.database.pool, payer.accountId)).toMatchObject({ buckets: { pack: 993n }, held: { pack: 0n } });
  });

  it("takes an answer that is slow, within the time-out", async () => {
    const payer = await payerWith(1_000n);

    proxy.delayBy(TIMEOUT_MS / 10);
    await openHolds(payer, 1);

    expect(settler.isUnavailable).toBe(false);
  });

  it("is back after the server has crashed and recovered", async () => {
    const payer = await payerWith(1_000n);
    const held = await openHolds(payer, 20);
    await direct.close();

    await postgres.kill9();
    const settled = await Promise.all(held.map((operation) => settler.submit(settle(operation, 7n))));
    expect(settled.every(({ charged }) => charged === 7n)).toBe(true);
    await postgres.restart();
    await backInService(settler);
    direct = await openSharedTestDatabase(postgres.url);
    real = createTestLedger(direct.database);

    expect(await readAccount(direct.database.pool, payer.accountId)).toMatchObject({ buckets: { pack: 860n }, held: { pack: 0n } });
  });

  it("stays in service when another process's sessions are ended and it can reconnect", async () => {
    const payer = await payerWith(1_000n);
    const [held] = (await openHolds(payer, 1)) as [HoldOperation];

    await postgres.killBackends();
    await settler.submit(settle(held, 7n));
    await backInService(settler);

    await eventually(async () => expect(await readUsage(direct.database.pool, held.id)).toMatchObject({ cost: 7n }));
  });
});

describe("The embedded database, closed under the settler", () => {
  it("spools operations that it cannot commit, and the next process on the directory commits them", async () => {
    const test: TestDatabase = await createTestDatabase();
    const settler = await openSettler(createTestLedger(test.database), test.dataDir);
    const payer = await createPayer(test.database.pool, createTestLedger(test.database), { pack: 100n });
    const held = hold(payer, 10n);
    await settler.submit(held);

    await test.database.close();
    expect(await settler.submit(settle(held, 7n))).toMatchObject({ outcome: "ok", charged: 7n });
    await expect(settler.submit(hold(payer, 10n))).rejects.toMatchObject({ code: "SERVICE_UNAVAILABLE" });
    await settler.close();

    const database = await openDatabase({ databaseUrl: null, dataDir: test.dataDir, log: silentLog });
    const next = await openSettler(createTestLedger(database), test.dataDir);
    await next.replaySpool();
    expect(await readUsage(database.pool, held.id)).toMatchObject({ cost: 7n });
    expect(await findBrokenInvariants(database.pool, { isIdle: true })).toEqual({});
    await next.close();
    await database.close();
    await rm(test.dataDir, { recursive: true });
  });
});

function databaseOf(url: string): string {
  return new URL(url).pathname.slice(1);
}
