import { rm } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Database, openDatabase } from "../../src/store/database.js";
import { migrate } from "../../src/store/migrations.js";
import { createEmptyDir, silentLog } from "../support/database.js";
import { isPostgresInstalled, POSTGRES_ABSENT, startPostgres, type TestPostgres } from "../support/postgres.js";

if (!isPostgresInstalled) console.warn(`skipped: ${POSTGRES_ABSENT}`);

describe.skipIf(!isPostgresInstalled)("a database at DATABASE_URL", () => {
  let server: TestPostgres;
  let database: Database;
  let dataDir: string;

  const open = (databaseUrl: string) => openDatabase({ databaseUrl, dataDir, log: silentLog });

  beforeAll(async () => {
    const started = await startPostgres();
    if (!started) throw new Error(POSTGRES_ABSENT);
    server = started;
    dataDir = await createEmptyDir();
    database = await open(server.url);
    await migrate(database, silentLog);
  });

  afterAll(async () => {
    await database.close();
    await server.stop();
    await rm(dataDir, { recursive: true });
  });

  it("is shared with other processes", () => {
    expect(database.isExclusive).toBe(false);
  });

  it("has sessions that count days in UTC, compile nothing, and end hanging statements", async () => {
    const { rows } = await database.pool.query(
      "SELECT name, setting FROM pg_settings WHERE name IN ('jit', 'TimeZone', 'statement_timeout', 'idle_in_transaction_session_timeout') ORDER BY name",
    );

    expect(rows).toEqual([
      { name: "TimeZone", setting: "UTC" },
      { name: "idle_in_transaction_session_timeout", setting: "15000" },
      { name: "jit", setting: "off" },
      { name: "statement_timeout", setting: "60000" },
    ]);
  });

  it("survives the loss of idle connections", async () => {
    await Promise.all([database.pool.query("SELECT 1"), database.prisma.account.count()]);

    await server.killBackends();

    await expect(database.pool.query("SELECT 1")).resolves.toMatchObject({ rowCount: 1 });
    await expect(database.prisma.account.count()).resolves.toBe(0);
  });

  it("rejects the query of a connection that is lost, and goes on", async () => {
    const underWay = Promise.allSettled([
      database.pool.query("SELECT pg_sleep(60)"),
      database.prisma.$queryRaw`SELECT 1 FROM pg_sleep(60)`,
    ]);
    await waitForSleepers(2);

    await server.killBackends();

    expect((await underWay).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    await expect(database.ping()).resolves.toBeUndefined();
    await expect(database.prisma.account.count()).resolves.toBe(0);
  });

  it("survives the loss of a connection in the middle of a transaction", async () => {
    const transaction = database.prisma.$transaction(async (client) => {
      await client.deploymentSetting.create({ data: { name: "half", value: "" } });
      await server.killBackends();
      await client.deploymentSetting.create({ data: { name: "whole", value: "" } });
    });

    await expect(transaction).rejects.toThrow();
    await expect(database.prisma.deploymentSetting.count()).resolves.toBe(0);
  });

  it("works again once a server that crashed is back", async () => {
    await database.ping();

    await server.kill9();
    await expect(database.ping()).rejects.toThrow();
    await expect(database.prisma.account.count()).rejects.toThrow();
    await server.restart();

    await expect(database.ping()).resolves.toBeUndefined();
    await expect(database.prisma.account.count()).resolves.toBe(0);
  });

  it("reports a missing server at the start", async () => {
    await expect(open("postgresql://nobody@127.0.0.1:1/nothing")).rejects.toThrow("The database at DATABASE_URL does not answer: ");
  });

  it("does not keep a charge waiting for reports", async () => {
    const reports = Promise.allSettled(Array.from({ length: 12 }, () => database.prisma.$queryRaw`SELECT 1 FROM pg_sleep(60)`));
    await waitForSleepers(10);

    await expect(database.pool.query("SELECT 1")).resolves.toMatchObject({ rowCount: 1 });

    await server.killBackends();
    await waitForSleepers(2);
    await server.killBackends();
    await reports;
  });

  /** Asks until that many statements sleep on the server. */
  async function waitForSleepers(count: number): Promise<void> {
    const asleep = "SELECT count(*)::int AS asleep FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    await expect.poll(async () => (await database.pool.query(asleep)).rows[0]?.asleep).toBe(count);
  }
});
