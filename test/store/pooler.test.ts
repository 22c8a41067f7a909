/** PostgreSQL behind a connection pooler, which gives each transaction any free session of the server. */
import { rm } from "node:fs/promises";
import type pg from "pg";
import { type Logger, pino } from "pino";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Database, openDatabase } from "../../src/store/database.js";
import { openEvents } from "../../src/store/events/open.js";
import { migrate, readMigrations } from "../../src/store/migrations.js";
import { createTestApp, OWNER_KEY, type TestApp } from "../support/app.js";
import { createEmptyDir, silentLog } from "../support/database.js";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { findBrokenInvariants, findUnbilled } from "../support/invariants.js";
import { isPgBouncerInstalled, PGBOUNCER_ABSENT, startPgBouncer, type TestPgBouncer } from "../support/pgbouncer.js";
import { isPostgresInstalled, POSTGRES_ABSENT, startPostgres, type TestPostgres } from "../support/postgres.js";
import { isRedisInstalled, REDIS_ABSENT, startRedis, type TestRedis } from "../support/redis.js";
import { createPostgresDatabase, createTestPool, type SuiteDatabase } from "../support/suite-server.js";

/** Fewer than a gateway has connections: they have to take turns. */
const SESSIONS = 3;
const ENCRYPTION_KEY = "the same for every process of a deployment";
const GATEWAYS = 2;
const CALLERS = 8;
const REQUESTS_EACH = 20;

const absence = !isPostgresInstalled ? POSTGRES_ABSENT : isPgBouncerInstalled ? null : PGBOUNCER_ABSENT;
if (absence !== null) console.warn(`skipped, a connection pooler: ${absence}`);
if (!isRedisInstalled) console.warn(`skipped, gateways behind a connection pooler: ${REDIS_ABSENT}`);

function capture(): { readonly log: Logger; readonly said: string[] } {
  const said: string[] = [];
  return { log: pino({}, { write: (line: string) => void said.push(JSON.parse(line).msg) }), said };
}

describe.skipIf(absence !== null)("a database behind a connection pooler", () => {
  let server: TestPostgres;
  let pooler: TestPgBouncer;
  let dataDir: string;
  /** Past the pooler. */
  let administration: pg.Pool;
  const opened: Database[] = [];

  beforeAll(async () => {
    const started = await startPostgres();
    if (!started) throw new Error(POSTGRES_ABSENT);
    server = started;
    pooler = await startPgBouncer({ databaseUrl: server.url, mode: "transaction", sessionsMax: SESSIONS });
    dataDir = await createEmptyDir();
    administration = createTestPool(server.url, 1);
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((database) => database.close()));
  });
  afterAll(async () => {
    await administration.end();
    await pooler.stop();
    await server.stop();
    await rm(dataDir, { recursive: true });
  });

  async function open(options: { databaseUrl?: string; directUrl?: string; log?: Logger } = {}): Promise<Database> {
    const database = await openDatabase({ databaseUrl: pooler.through(server.url), dataDir, log: silentLog, ...options });
    opened.push(database);
    return database;
  }

  /** Each setting as the session has it that answers. */
  async function settingsOf(pool: pg.Pool): Promise<Record<string, string>> {
    const names = ["TimeZone", "jit", "statement_timeout", "idle_in_transaction_session_timeout"];
    const { rows } = await pool.query(`SELECT ${names.map((name) => `current_setting('${name}') AS "${name}"`).join(", ")}`);
    return rows[0];
  }

  it("is recognized as one", async () => {
    expect((await open()).isPooled).toBe(true);
    expect((await open({ databaseUrl: server.url })).isPooled).toBe(false);
  });

  it("is migrated by many processes at once, which leave no lock behind", async () => {
    const databases = await Promise.all(Array.from({ length: 3 }, () => open()));

    await Promise.all(databases.map((database) => migrate(database, silentLog)));

    const { rows } = await administration.query("SELECT migration_name FROM _prisma_migrations ORDER BY started_at");
    expect(rows.map((row) => row.migration_name)).toEqual(readMigrations().map(({ name }) => name));
    expect((await administration.query("SELECT FROM pg_locks WHERE locktype = 'advisory'")).rowCount).toBe(0);
  });

  it("is used in UTC, with any time zone of its own, and its sessions keep no other state", async () => {
    await administration.query(
      "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone = ''America/New_York''', current_database()); END $$",
    );
    const own = await startPgBouncer({ databaseUrl: server.url, mode: "transaction", sessionsMax: SESSIONS });
    const database = await open({ databaseUrl: own.through(server.url) });
    const before = new Date();

    const settings = await Promise.all(Array.from({ length: 4 * SESSIONS }, () => settingsOf(database.pool)));
    const now = await Promise.all(Array.from({ length: SESSIONS }, () => database.prisma.$queryRaw<{ now: Date }[]>`SELECT now()`));

    const defaults = { jit: "on", statement_timeout: "0", idle_in_transaction_session_timeout: "0" };
    expect(settings).toEqual(settings.map(() => ({ TimeZone: "UTC", ...defaults })));
    for (const [row] of now) expect(Math.abs(Number(row?.now) - Number(before))).toBeLessThan(30 * 60_000);
    await own.stop();
    await administration.query("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET timezone', current_database()); END $$");
  });

  it("whose role cannot end hanging statements is warned of, with the command to run", async () => {
    const { log, said } = capture();
    await open({ log });

    const statements = /Run once: (.*)$/.exec(said.at(-1) ?? "")?.[1] ?? "";
    expect(statements).toBe(
      "ALTER ROLE postgres SET jit = 'off'; ALTER ROLE postgres SET statement_timeout = '60s'; ALTER ROLE postgres SET idle_in_transaction_session_timeout = '15s';",
    );

    await administration.query(statements);
    const own = await startPgBouncer({ databaseUrl: server.url, mode: "transaction" });
    const again = capture();
    const database = await open({ databaseUrl: own.through(server.url), log: again.log });
    expect(again.said).toEqual(["DATABASE_URL leads through a connection pooler: no statements are kept prepared"]);
    expect(await settingsOf(database.pool)).toMatchObject({
      jit: "off",
      statement_timeout: "1min",
      idle_in_transaction_session_timeout: "15s",
    });
    await own.stop();
    await administration.query("ALTER ROLE postgres RESET ALL");
  });

  it("without Redis is refused, as one that passes no notifications on", async () => {
    const database = await open();

    await expect(openEvents({ redisUrl: null, database, log: silentLog })).rejects.toThrow(
      "so this process would not hear of keys that others revoke: set REDIS_URL, or DATABASE_DIRECT_URL to an address of the database itself.",
    );
  });

  it.each<[string, () => Promise<{ database: Database; stop?: () => Promise<void> }>]>([
    ["past which sessions go", async () => ({ database: await open({ directUrl: server.url }) })],
    [
      "that keeps sessions",
      async () => {
        const own = await startPgBouncer({ databaseUrl: server.url, mode: "session" });
        return { database: await open({ databaseUrl: own.through(server.url) }), stop: own.stop };
      },
    ],
  ])("%s lets processes hear each other without Redis", async (_, start) => {
    const { database, stop } = await start();
    const [one, other] = await Promise.all([1, 2].map(() => openEvents({ redisUrl: null, database, log: silentLog })));
    const heard: unknown[] = [];
    other?.listen("balance-changed", (payload) => heard.push(payload));

    one?.publish("balance-changed", { accountId: "a1" });

    await expect.poll(() => heard).toEqual([{ accountId: "a1" }]);
    await Promise.all([one?.close(), other?.close()]);
    await stop?.();
  });

  it("counts as away when the pooler cannot reach it, and works again when it can", async () => {
    const own = await startPgBouncer({ databaseUrl: server.url, mode: "transaction", waitSecondsMax: 1 });
    const database = await open({ databaseUrl: own.through(server.url) });

    await server.kill9();
    // The first may be asked on a session that has just ended.
    await expect.poll(() => database.prisma.account.count().catch(({ code }) => code)).toBe("SERVICE_UNAVAILABLE");
    expect(await database.prisma.account.count().catch(({ code }) => code)).toBe("SERVICE_UNAVAILABLE");
    await server.restart();

    await expect.poll(() => database.prisma.account.count().catch(({ code }) => code)).toBe(0);
    await own.stop();
  });

  it("whose DATABASE_DIRECT_URL leads elsewhere is refused", async () => {
    const elsewhere = await server.createDatabase();

    await expect(open({ directUrl: elsewhere })).rejects.toThrow("DATABASE_DIRECT_URL must lead to the same database as DATABASE_URL.");
    await expect(open({ directUrl: "postgresql://nobody@127.0.0.1:1/none" })).rejects.toThrow(
      /^The database at DATABASE_DIRECT_URL does not answer: /,
    );
  });
});

describe.skipIf(absence !== null || !isRedisInstalled)("gateways behind a connection pooler", () => {
  let suite: SuiteDatabase;
  let pooler: TestPgBouncer;
  let redis: TestRedis | null;
  let upstream: FakeUpstream;
  let pool: pg.Pool;
  const apps: TestApp[] = [];

  beforeAll(async () => {
    [suite, redis, upstream] = await Promise.all([createPostgresDatabase(), startRedis(), startFakeUpstream()]);
    pooler = await startPgBouncer({ databaseUrl: suite.url, mode: "transaction", sessionsMax: SESSIONS });
    pool = createTestPool(suite.url, 1);
    for (let number = 0; number < GATEWAYS; number += 1) {
      const config = { databaseUrl: pooler.through(suite.url), redisUrl: redis?.url ?? null, encryptionKey: ENCRYPTION_KEY };
      apps.push(await createTestApp({ upstream, dataDir: await createEmptyDir(), config }));
    }
  });
  afterAll(async () => {
    for (const app of apps) {
      await app.close();
      await rm(app.dataDir, { recursive: true });
    }
    await Promise.all([upstream.close(), redis?.stop(), pool.end(), pooler.stop()]);
    await suite.drop();
  });

  it("answer and charge every request, though none of them has a session to itself", async () => {
    const ids: string[] = [];
    const failures: string[] = [];
    const ask = async (caller: number, stream: boolean) => {
      const response = await fetch(`${apps[caller % GATEWAYS]?.baseUrl}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${OWNER_KEY}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "acme/chat", stream, messages: [{ role: "user", content: "Hi" }] }),
      });
      const text = await response.text();
      if (response.status === 200 && !text.includes('"error":{')) ids.push(response.headers.get("x-generation-id") ?? "");
      else failures.push(`${response.status} ${text}`);
    };

    await Promise.all(
      Array.from({ length: CALLERS }, async (_, caller) => {
        for (let count = 0; count < REQUESTS_EACH; count += 1) await ask(caller, count % 2 === 0);
      }),
    );

    expect(failures).toEqual([]);
    expect(ids).toHaveLength(CALLERS * REQUESTS_EACH);
    await expect.poll(() => findUnbilled(pool, ids)).toEqual([]);
    expect(await findBrokenInvariants(pool)).toEqual({});
    const prepared = await Promise.all(apps.flatMap(({ database }) => Array.from({ length: SESSIONS }, () => namesPreparedIn(database))));
    expect(prepared.flat()).toEqual([]);
  });

  async function namesPreparedIn({ pool: pooled }: Database): Promise<string[]> {
    const { rows } = await pooled.query<{ name: string }>("SELECT name FROM pg_prepared_statements");
    return rows.map(({ name }) => name);
  }
});

describe.skipIf(!isPostgresInstalled)("a gateway that is connected to its database itself", () => {
  it("prepares the statements of charges once on each connection", async () => {
    const suite = await createPostgresDatabase();
    const app = await createTestApp({ config: { databaseUrl: suite.url } });
    const chat = () =>
      fetch(`${app.baseUrl}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${OWNER_KEY}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "acme/chat", messages: [{ role: "user", content: "Hi" }] }),
      }).then((response) => response.status);

    expect([await chat(), await chat()]).toEqual([200, 200]);

    const names = async () =>
      (await app.database.pool.query<{ name: string }>("SELECT name FROM pg_prepared_statements")).rows.map(({ name }) => name);
    await expect.poll(names).toEqual(expect.arrayContaining([expect.stringMatching(/^credit_/)]));
    await app.close();
    await suite.drop();
  });
});
