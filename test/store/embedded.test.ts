import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import type net from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openDatabase } from "../../src/store/database.js";
import { type EmbeddedServer, startEmbedded, startMaintenance } from "../../src/store/embedded.js";
import { compile } from "../support/compile.js";
import { createEmptyDir, createTestDatabase, createTestDataDir, silentLog, type TestDatabase } from "../support/database.js";

let test: TestDatabase;
let pool: pg.Pool;

beforeAll(async () => {
  test = await createTestDatabase();
  pool = test.database.pool;
});

afterAll(() => test.close());

async function connect(): Promise<{ readonly client: pg.PoolClient; close(): Promise<void> }> {
  const session = test.database.openSession();
  const client = await session.connect();
  return {
    client,
    close: async () => {
      client.release(true);
      await session.end();
    },
  };
}

describe("many connections on one session", () => {
  it("answers each with its own rows, however large the questions are", async () => {
    const connections = await Promise.all(Array.from({ length: 6 }, connect));
    const filler = "x".repeat(400_000);

    const answers = await Promise.all(
      connections.map(async ({ client }, index) => {
        const wrong = [];
        for (let turn = 0; turn < 20; turn += 1) {
          const value = index * 1_000 + turn;
          // Half of them send more than one chunk, with another number of parameters.
          const { rows } =
            index % 2 === 0
              ? await client.query(`SELECT $1::int AS v${index}, length($2) AS filler`, [value, filler])
              : await client.query(`SELECT $1::int AS v${index}`, [value]);
          if (rows[0]?.[`v${index}`] !== value) wrong.push(rows);
        }
        return wrong;
      }),
    );

    expect(answers.flat()).toEqual([]);
    await Promise.all(connections.map(({ close }) => close()));
  });

  it("keeps a transaction to the connection that began it", async () => {
    const [writer, reader] = await Promise.all([connect(), connect()]);
    await writer.client.query("BEGIN");
    await writer.client.query("INSERT INTO deployment_setting VALUES ('isolated', 'draft')");

    const seen = reader.client.query("SELECT value FROM deployment_setting WHERE name = 'isolated'");
    await writer.client.query("UPDATE deployment_setting SET value = 'final' WHERE name = 'isolated'");
    await writer.client.query("COMMIT");

    expect((await seen).rows).toEqual([{ value: "final" }]);
    await Promise.all([writer.close(), reader.close()]);
  });

  it("undoes the transaction of a connection that goes away", async () => {
    const leaver = await connect();
    await leaver.client.query("BEGIN");
    await leaver.client.query("INSERT INTO deployment_setting VALUES ('abandoned', '')");
    await leaver.close();

    const { rows } = await pool.query("SELECT 1 FROM deployment_setting WHERE name = 'abandoned'");

    expect(rows).toEqual([]);
  });

  it("goes on after a statement that fails in the middle of a transaction", async () => {
    await expect(
      test.database.prisma.$transaction([
        test.database.prisma.deploymentSetting.create({ data: { name: "twice", value: "" } }),
        test.database.prisma.deploymentSetting.create({ data: { name: "twice", value: "" } }),
      ]),
    ).rejects.toThrow("Unique constraint failed");

    await expect(test.database.prisma.deploymentSetting.count({ where: { name: "twice" } })).resolves.toBe(0);
  });

  it("keeps interactive transactions apart", async () => {
    const { prisma } = test.database;
    await prisma.deploymentSetting.create({ data: { name: "counter", value: "0" } });

    await Promise.all(
      Array.from({ length: 5 }, () =>
        prisma.$transaction(async (transaction) => {
          const row = await transaction.deploymentSetting.findUniqueOrThrow({ where: { name: "counter" } });
          await transaction.deploymentSetting.update({ where: { name: "counter" }, data: { value: String(Number(row.value) + 1) } });
        }),
      ),
    );

    await expect(prisma.deploymentSetting.findUniqueOrThrow({ where: { name: "counter" } })).resolves.toMatchObject({ value: "5" });
  });
});

describe("files", () => {
  it("syncs commits to the disk", async () => {
    const { rows } = await pool.query("SELECT current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS commit");

    expect(rows).toEqual([{ fsync: "on", commit: "on" }]);
  });

  it("has no database that cannot be vacuumed", async () => {
    const { rows } = await pool.query("SELECT datname FROM pg_database");

    expect(rows).toEqual([{ datname: "postgres" }]);
  });

  it("finds everything again after a close", async () => {
    const { dataDir, remove } = await createTestDataDir();
    const first = await openDatabase({ databaseUrl: null, dataDir, log: silentLog });
    await first.pool.query("INSERT INTO deployment_setting VALUES ('kept', 'yes')");
    await first.close();

    const second = await openDatabase({ databaseUrl: null, dataDir, log: silentLog });
    const { rows } = await second.pool.query("SELECT value FROM deployment_setting WHERE name = 'kept'");

    expect(rows).toEqual([{ value: "yes" }]);
    await second.close();
    await remove();
  });

  it("begins again what a killed first start left, and removes it", async () => {
    const dataDir = await createEmptyDir();
    const leftover = join(dataDir, "database.initializing-1234");
    mkdirSync(leftover);
    writeFileSync(join(leftover, "PG_VERSION"), "18\n");

    const database = await openDatabase({ databaseUrl: null, dataDir, log: silentLog });

    await expect(database.ping()).resolves.toBeUndefined();
    expect(existsSync(leftover)).toBe(false);
    await database.close();
    await rm(dataDir, { recursive: true });
  });

  it("loses no acknowledged commit to a kill", async () => {
    const { dataDir, remove } = await createTestDataDir();
    const { program, folder } = await compile(fileURLToPath(new URL("../support/programs/acknowledging-writer.ts", import.meta.url)));
    const acknowledged = new Set<string>();

    for (const commits of [50, 400, 1_000]) {
      const writer = spawn(process.execPath, [program, dataDir], { stdio: ["ignore", "pipe", "pipe"] });
      const [ended, complaints] = [once(writer, "exit"), text(writer.stderr)];
      let count = 0;
      for await (const name of createInterface(writer.stdout)) {
        acknowledged.add(name);
        count += 1;
        if (count === commits) writer.kill("SIGKILL");
      }
      expect(await ended, await complaints).toEqual([null, "SIGKILL"]);
      expect(count).toBeGreaterThanOrEqual(commits);
    }

    const database = await openDatabase({ databaseUrl: null, dataDir, log: silentLog });
    const { rows } = await database.pool.query<{ name: string }>("SELECT name FROM deployment_setting");
    const stored = new Set(rows.map(({ name }) => name));
    expect([...acknowledged].filter((name) => !stored.has(name))).toEqual([]);

    await database.close();
    await remove();
    await rm(folder, { recursive: true });
  });
});

describe("the worker", () => {
  const HANG_TIMEOUT_MS = 3_000;
  let server: EmbeddedServer;
  let clients: pg.Pool;
  let remove: () => Promise<void>;

  beforeEach(async () => {
    const files = await createTestDataDir();
    remove = files.remove;
    server = await startEmbedded(join(files.dataDir, "database"), silentLog, HANG_TIMEOUT_MS);
    clients = new pg.Pool({ user: "postgres", database: "postgres", ssl: false, stream: () => server.connect(), max: 2 });
    clients.on("error", () => undefined);
    clients.on("connect", (client) => client.on("error", () => undefined));
  });

  afterEach(async () => {
    await clients.end();
    await server.close();
    await remove();
  });

  it("is replaced when a statement never ends", async () => {
    await clients.query("INSERT INTO deployment_setting VALUES ('before', '')");

    await expect(clients.query("DO $$ BEGIN LOOP END LOOP; END $$")).rejects.toThrow("Connection terminated unexpectedly");

    const { rows } = await clients.query("SELECT name FROM deployment_setting");
    expect(rows).toEqual([{ name: "before" }]);
  });

  it("is replaced when PGlite breaks off in the middle of an answer", async () => {
    const brokenGreeting = Buffer.from([0, 0, 0, 8, 255, 255, 255, 255]);
    const stream = server.connect() as net.Socket;
    stream.connect({ path: "" }).resume();
    await once(stream, "connect");

    stream.write(brokenGreeting);
    await once(stream, "close");

    await expect(clients.query("SELECT 1")).resolves.toMatchObject({ rowCount: 1 });
  });

  it("refuses a text that nests a hundred thousand levels deep, and lives", async () => {
    await expect(clients.query("SELECT $1::jsonb", ["[".repeat(100_000)])).rejects.toThrow("invalid input syntax for type json");

    await expect(clients.query("SELECT 1")).resolves.toMatchObject({ rowCount: 1 });
  });
});

describe("maintenance", () => {
  const HOURS_MS = 3_600_000;
  let stop: () => Promise<void>;

  afterEach(() => stop());

  const checkpoint = async () => (await pool.query("SELECT redo_lsn FROM pg_control_checkpoint()")).rows[0]?.redo_lsn;
  const rewrite = async () => {
    await pool.query("INSERT INTO account (id, handle) VALUES ($1, $1::uuid::text)", [randomUUID()]);
    for (let turn = 0; turn < 20; turn += 1) await pool.query("UPDATE account SET name = $1", [`turn ${turn}`]);
  };

  it("removes the dead versions of rows that are rewritten", async () => {
    await rewrite();
    const vacuums = async () =>
      (await pool.query("SELECT vacuum_count::int AS n FROM pg_stat_user_tables WHERE relname = 'account'")).rows[0]?.n;
    const before = await vacuums();

    stop = startMaintenance(pool, silentLog, { lookMs: 20, vacuumMs: 50, analyzeMs: HOURS_MS, logBytesMax: 1e9 });

    await expect.poll(vacuums).toBeGreaterThan(before);
  });

  it("bounds the log that a start after a crash has to replay", async () => {
    const before = await checkpoint();
    await rewrite();

    stop = startMaintenance(pool, silentLog, { lookMs: 20, vacuumMs: HOURS_MS, analyzeMs: HOURS_MS, logBytesMax: 1_000 });

    await expect.poll(checkpoint).not.toBe(before);
  });

  it("leaves a database alone to which nothing is written", async () => {
    const statements: string[] = [];
    const watched = {
      query: (text: string) => {
        statements.push(text);
        return pool.query(text);
      },
    } as unknown as pg.Pool;
    await rewrite();

    stop = startMaintenance(watched, silentLog, { lookMs: 5, vacuumMs: 0, analyzeMs: 0, logBytesMax: 1 });

    await expect.poll(() => statements).toContain("CHECKPOINT");
    const onlyLooks = Array.from({ length: 10 }, () => expect.stringContaining("pg_current_wal_insert_lsn"));
    await expect.poll(() => statements.slice(-10)).toEqual(onlyLooks);
  });
});
