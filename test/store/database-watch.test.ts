/** Slow statements are waited for, those of a database that answers nothing are not. On PostgreSQL, whose processes are stopped. */
import { rm } from "node:fs/promises";
import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { openDatabase } from "../../src/store/database.js";
import { DatabaseSilent, DatabaseWatch } from "../../src/store/database-watch.js";
import { createEmptyDir, silentLog } from "../support/database.js";
import { eventually } from "../support/eventually.js";
import { isPostgresInstalled, type TestPostgres } from "../support/postgres.js";
import { requirePostgres } from "../support/shared-database.js";

describe.skipIf(!isPostgresInstalled)("PostgreSQL", () => {
  let postgres: TestPostgres;
  let dataDir: string;

  beforeAll(async () => {
    postgres = await requirePostgres();
    dataDir = await createEmptyDir();
  });
  afterEach(() => postgres.thaw());
  afterAll(async () => {
    await postgres.stop();
    await rm(dataDir, { recursive: true });
  });

  const open = () => openDatabase({ databaseUrl: postgres.url, dataDir, log: silentLog });
  const AWAY = { code: "SERVICE_UNAVAILABLE" };

  it("that is stopped ends waiting work before connections time out, and later work at once", async () => {
    const database = await open();
    const { prisma } = database;
    await prisma.$queryRaw`SELECT 1`;
    postgres.freeze();

    const waiting = await Promise.allSettled([
      prisma.$queryRaw`SELECT 1`,
      prisma.account.count(),
      prisma.$transaction((transaction) => transaction.account.count()),
      prisma.$transaction([prisma.account.count()]),
      database.ping(),
    ]);

    // The connections still wait: it is no time-out of theirs that has ended the statements.
    const shared = database.connections().find(({ name }) => name === "shared");
    expect(shared && shared.open - shared.idle).toBeGreaterThan(0);
    expect(waiting.slice(0, 4)).toEqual(Array(4).fill({ status: "rejected", reason: expect.objectContaining(AWAY) }));
    expect(waiting[4]?.status).toBe("rejected");
    expect(database.watch?.isSilent).toBe(true);
    await expect(prisma.$queryRaw`SELECT 1`).rejects.toMatchObject(AWAY);
    postgres.thaw();
    await eventually(async () => expect(await prisma.$queryRaw`SELECT 1 AS one`).toEqual([{ one: 1 }]));
    await database.close();
  });

  it("that is merely slow is waited for, through any number of requests", async () => {
    const pool = new pg.Pool({ connectionString: postgres.url });
    let pings = 0;
    const watch = new DatabaseWatch({
      ping: () => {
        pings += 1;
        return pool.query("SELECT 1");
      },
      lookMs: 10,
      pingMs: 20_000,
    });
    const [locking, locked] = await Promise.all([pool.connect(), pool.connect()]);
    await locking.query("SELECT pg_advisory_lock(1)");

    const slow = watch.call(() => locked.query("SELECT pg_advisory_lock(1)"));
    await eventually(() => expect(pings).toBeGreaterThan(3));
    await locking.query("SELECT pg_advisory_unlock(1)");

    await slow;
    expect(watch.isSilent).toBe(false);
    for (const client of [locking, locked]) client.release(true);
    watch.close();
    await pool.end();
  });

  it("that answers a ping with an error is not silent", async () => {
    const watch = new DatabaseWatch({ ping: () => Promise.reject(new Error("too many clients")), lookMs: 1, pingMs: 20_000 });
    let answer: (value: string) => void = () => undefined;
    const waiting = watch.call(() => new Promise<string>((resolve) => (answer = resolve)));
    const other = new DatabaseWatch({ ping: () => new Promise(() => undefined), lookMs: 1, pingMs: 1 });

    await expect(other.call(() => new Promise(() => undefined))).rejects.toThrow(DatabaseSilent);
    answer("late");

    expect(await waiting).toBe("late");
    for (const each of [watch, other]) each.close();
  });
});
