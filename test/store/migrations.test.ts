import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Database, openDatabase } from "../../src/store/database.js";
import { migrate, migrationsDirectory, readMigrations } from "../../src/store/migrations.js";
import { createEmptyDir, createTestDatabase, silentLog, type TestDatabase } from "../support/database.js";
import { isPostgresInstalled, POSTGRES_ABSENT, startPostgres, type TestPostgres } from "../support/postgres.js";

describe("migrate", () => {
  let test: TestDatabase;
  let database: Database;
  let directory: string;

  beforeEach(async () => {
    test = await createTestDatabase();
    database = test.database;
    directory = join(test.dataDir, "migrations");
    cpSync(migrationsDirectory(), directory, { recursive: true });
  });

  afterEach(() => test.close());

  function addMigration(name: string, sql: string): void {
    mkdirSync(join(directory, name));
    writeFileSync(join(directory, name, "migration.sql"), sql);
  }

  async function booked(): Promise<string[]> {
    const { rows } = await database.pool.query("SELECT migration_name FROM _prisma_migrations WHERE finished_at IS NOT NULL ORDER BY 1");
    return rows.map((row) => row.migration_name);
  }

  it("applies new migrations, in order, and records them as Prisma does", async () => {
    addMigration("29990101000000_first", "CREATE TABLE step (name TEXT);");
    addMigration("29990101000001_second", "INSERT INTO step VALUES ('second');");

    await migrate(database, silentLog, directory);

    expect(await booked()).toEqual([...readMigrations().map(({ name }) => name), "29990101000000_first", "29990101000001_second"]);
    expect((await database.pool.query("SELECT name FROM step")).rows).toEqual([{ name: "second" }]);
  });

  it("takes function bodies, which hold semicolons, as they are", async () => {
    addMigration(
      "29990101000000_function",
      "CREATE FUNCTION twice(n INT) RETURNS INT LANGUAGE plpgsql AS $$ BEGIN n := n * 2; RETURN n; END $$;",
    );

    await migrate(database, silentLog, directory);

    expect((await database.pool.query("SELECT twice(21) AS answer")).rows).toEqual([{ answer: 42 }]);
  });

  it("changes nothing when a migration fails, and tries again at the next start", async () => {
    addMigration("29990101000000_good", "CREATE TABLE good (id INT);");
    addMigration("29990101000001_bad", "CREATE TABLE half (id INT); CREATE TABLE account (id INT);");
    await expect(migrate(database, silentLog, directory)).rejects.toThrow(/29990101000001_bad failed:.*account.* already exists/s);
    expect((await database.pool.query("SELECT to_regclass('good') AS good, to_regclass('half') AS half")).rows).toEqual([
      { good: "good", half: null },
    ]);

    writeFileSync(join(directory, "29990101000001_bad", "migration.sql"), "CREATE TABLE half (id INT);");
    await migrate(database, silentLog, directory);

    expect(await booked()).toContain("29990101000001_bad");
  });

  it("refuses a database that a newer version has used", async () => {
    addMigration("29990101000000_future", "CREATE TABLE future (id INT);");
    await migrate(database, silentLog, directory);

    await expect(migrate(database, silentLog)).rejects.toThrow("29990101000000_future, which this version does not know");
  });

  it("refuses a migration that was changed after it was applied", async () => {
    const [first] = readMigrations();
    writeFileSync(join(directory, first?.name ?? "", "migration.sql"), "-- nothing");

    await expect(migrate(database, silentLog, directory)).rejects.toThrow("was changed after it was applied");
  });

  it("refuses a database in which another tool's migration failed", async () => {
    await database.pool.query("UPDATE _prisma_migrations SET finished_at = NULL");

    await expect(migrate(database, silentLog)).rejects.toThrow("failed on this database");
  });
});

if (!isPostgresInstalled) console.warn(`skipped: ${POSTGRES_ABSENT}`);

describe.skipIf(!isPostgresInstalled)("migrate on a shared database", () => {
  let server: TestPostgres;
  let dataDir: string;

  beforeAll(async () => {
    const started = await startPostgres();
    if (!started) throw new Error(POSTGRES_ABSENT);
    server = started;
    dataDir = await createEmptyDir();
  });

  afterAll(async () => {
    await server.stop();
    await rm(dataDir, { recursive: true });
  });

  it("lets many processes start at once on an empty database", async () => {
    const open = () => openDatabase({ databaseUrl: server.url, dataDir, log: silentLog });
    const databases = await Promise.all(Array.from({ length: 5 }, open));

    await Promise.all(databases.map((database) => migrate(database, silentLog)));

    const { rows } = await (databases[0] as Database).pool.query("SELECT migration_name FROM _prisma_migrations ORDER BY started_at");
    expect(rows.map((row) => row.migration_name)).toEqual(readMigrations().map(({ name }) => name));
    await Promise.all(databases.map((database) => database.close()));
  });
});
