/** Migrations: `prisma/migrations` applied in order by Prisma's schema engine, and booked in its ordinary `_prisma_migrations` table. */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { MigrationList } from "@prisma/schema-engine-wasm/schema_engine_bg";
import type pg from "pg";
import type { Logger } from "pino";
import { StartError } from "../lib/start-error.js";
import type { Database } from "./database.js";

/** The key of the lock that Prisma's own tools take, so that they and every starting process wait for each other. */
const MIGRATION_LOCK = 72_707_369;

/** PostgreSQL's error code for a table that is not there. */
const UNDEFINED_TABLE = "42P01";

/** No table and no enum is managed by somebody else. */
export const NO_FILTERS = { externalTables: [], externalEnums: [] };

export interface Migration {
  /** The folder's name, which begins with a timestamp: the order is the names' order. */
  readonly name: string;
  readonly sql: string;
}

interface AppliedMigration {
  readonly migration_name: string;
  readonly checksum: string;
  readonly finished_at: Date | null;
  readonly rolled_back_at: Date | null;
}

/** Brings the database to the newest migration. Cheap when it is there already: the engine is then not loaded. */
export async function migrate(database: Pick<Database, "openSession">, log: Logger, directory = migrationsDirectory()): Promise<void> {
  const migrations = readMigrations(directory);
  const session = database.openSession();
  try {
    if (findPending(migrations, await readApplied(session)).length === 0) return;
    await session.query("SELECT pg_advisory_lock($1)", [MIGRATION_LOCK]);
    // Whoever had the lock before may have applied them.
    const pending = findPending(migrations, await readApplied(session));
    if (pending.length === 0) return;
    await apply(session, migrations, pending, directory);
    log.info({ migrations: pending.map(({ name }) => name) }, "the database was migrated");
  } finally {
    // The lock goes with the session.
    await session.end();
  }
}

/** The migrations of the folder, oldest first. */
export function readMigrations(directory = migrationsDirectory()): Migration[] {
  return readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => ({ name, sql: readFileSync(join(directory, name, "migration.sql"), "utf8") }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** `prisma/migrations` of the project that this module is part of, bundled or not. */
export function migrationsDirectory(): string {
  const start = dirname(fileURLToPath(import.meta.url));
  for (let folder = start; folder !== dirname(folder); folder = dirname(folder)) {
    const candidate = join(folder, "prisma", "migrations");
    if (existsSync(candidate)) return candidate;
  }
  throw new Error(`There is no prisma/migrations folder above ${start}.`);
}

/** What the schema engine takes. */
export function toMigrationList(migrations: readonly Migration[], directory: string): MigrationList {
  return {
    baseDir: directory,
    lockfile: { path: "migration_lock.toml", content: readFileSync(join(directory, "migration_lock.toml"), "utf8") },
    shadowDbInitScript: "",
    migrationDirectories: migrations.map(({ name, sql }) => ({
      path: name,
      migrationFile: { path: "migration.sql", content: { tag: "ok", value: sql } },
    })),
  };
}

async function readApplied(session: pg.Pool): Promise<AppliedMigration[]> {
  try {
    const { rows } = await session.query<AppliedMigration>(
      "SELECT migration_name, checksum, finished_at, rolled_back_at FROM _prisma_migrations ORDER BY started_at",
    );
    return rows;
  } catch (error) {
    if ((error as pg.DatabaseError).code === UNDEFINED_TABLE) return [];
    throw error;
  }
}

/** The migrations that the database lacks. Throws when its history is not a beginning of ours. */
function findPending(migrations: readonly Migration[], applied: readonly AppliedMigration[]): Migration[] {
  const ours = new Map(migrations.map((migration) => [migration.name, migration]));
  const finished = new Set<string>();
  for (const row of applied) {
    if (row.rolled_back_at) continue;
    const name = row.migration_name;
    if (!row.finished_at) {
      throw new StartError(
        `The migration ${name} failed on this database. Find out why, undo what it did, and run: npx prisma migrate resolve --rolled-back ${name}`,
      );
    }
    const migration = ours.get(name);
    if (!migration) {
      throw new StartError(
        `The database has the migration ${name}, which this version does not know: a newer version of Sluice has used it.`,
      );
    }
    if (checksum(migration.sql) !== row.checksum) {
      throw new StartError(
        `The migration ${name} was changed after it was applied to this database. Restore it, and write a new migration instead.`,
      );
    }
    finished.add(name);
  }
  return migrations.filter(({ name }) => !finished.has(name));
}

/** As Prisma books it. */
function checksum(sql: string): string {
  return createHash("sha256").update(sql).digest("hex");
}

/**
 * Applies each migration in a transaction that books it too: a start that fails or is killed in between has changed
 * nothing, and the next one tries again.
 */
async function apply(session: pg.Pool, migrations: readonly Migration[], pending: readonly Migration[], directory: string): Promise<void> {
  // Loaded here only, because a start that has nothing to apply should not wait for it.
  const { createSchemaEngine } = await import("./schema-engine.js");
  const { engine, explain } = await createSchemaEngine(session);
  const waiting = new Set(pending);
  try {
    for (const migration of pending) {
      waiting.delete(migration);
      const migrationsList = toMigrationList(
        migrations.filter((candidate) => !waiting.has(candidate)),
        directory,
      );
      await session.query("BEGIN");
      try {
        await engine.applyMigrations({ migrationsList, filters: NO_FILTERS });
        await session.query("COMMIT");
      } catch (error) {
        await session.query("ROLLBACK");
        const cause = explain(error);
        throw new StartError(`The migration ${migration.name} failed: ${cause instanceof Error ? cause.message : String(cause)}`, {
          cause,
        });
      }
    }
  } finally {
    engine.free();
  }
}
