/** Migrations: Prisma's schema engine applies `prisma/migrations` in order, recorded in the usual `_prisma_migrations` table. */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { MigrationList } from "@prisma/schema-engine-wasm/schema_engine_bg";
import type pg from "pg";
import type { Logger } from "pino";
import { PassingStartError, StartError } from "../lib/start-error.js";
import type { Database } from "./database.js";

/** The key of the lock of Prisma's own tools, so that they and starting processes wait for each other. */
const MIGRATION_LOCK = 72_707_369;
/** SQLSTATE classes unrelated to the migration: connections, deadlocks, resources, locks, shutdowns. */
const PASSING_CODE = /^(?:08|40|53|55|57)/;

/** All tables and enums are managed here. */
export const NO_FILTERS = { externalTables: [], externalEnums: [] };

export interface Migration {
  /** The folder's name, which begins with a timestamp: names sort by age. */
  readonly name: string;
  readonly sql: string;
}

interface AppliedMigration {
  readonly migration_name: string;
  readonly checksum: string;
  readonly finished_at: Date | null;
  readonly rolled_back_at: Date | null;
}

/** Applies missing migrations. Cheap without any: the engine is then not loaded. */
export async function migrate(database: Pick<Database, "openSession">, log: Logger, directory = migrationsDirectory()): Promise<void> {
  const migrations = readMigrations(directory);
  const session = database.openSession();
  try {
    if (findPending(migrations, await readApplied(session)).length === 0) return;
    const applied = await applyAll(session, migrations, directory);
    if (applied.length > 0) log.info({ migrations: applied }, "the database was migrated");
  } finally {
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

/** `prisma/migrations` of this project, bundled or not. */
export function migrationsDirectory(): string {
  const start = dirname(fileURLToPath(import.meta.url));
  for (let folder = start; folder !== dirname(folder); folder = dirname(folder)) {
    const candidate = join(folder, "prisma", "migrations");
    if (existsSync(candidate)) return candidate;
  }
  throw new Error(`There is no prisma/migrations folder above ${start}.`);
}

/** The schema engine's input. */
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

/** Checks that the table exists first, as an error would end the transaction. */
async function readApplied(session: pg.Pool): Promise<AppliedMigration[]> {
  const { rows: tables } = await session.query<{ is_there: boolean }>("SELECT to_regclass('_prisma_migrations') IS NOT NULL AS is_there");
  if (!tables[0]?.is_there) return [];
  const { rows } = await session.query<AppliedMigration>(
    "SELECT migration_name, checksum, finished_at, rolled_back_at FROM _prisma_migrations ORDER BY started_at",
  );
  return rows;
}

/** The missing migrations. Throws when the history is not a prefix of ours. */
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

/** As Prisma computes it. */
function checksum(sql: string): string {
  return createHash("sha256").update(sql).digest("hex");
}

/**
 * Applies each migration in a transaction that also records it: a failed or killed start has changed nothing, and the next one tries again.
 * Resolves with the applied names.
 */
async function applyAll(session: pg.Pool, migrations: readonly Migration[], directory: string): Promise<string[]> {
  // Loaded only here, because a start without migrations should not wait for it.
  const { createSchemaEngine } = await import("./schema-engine.js");
  const { engine, explain } = await createSchemaEngine(session);
  const applied: string[] = [];
  try {
    for (let next = await applyNext(); next !== null; next = await applyNext()) applied.push(next);
    return applied;
  } finally {
    engine.free();
  }

  async function applyNext(): Promise<string | null> {
    await session.query("BEGIN");
    try {
      // A transaction's lock, because a pooler gives sessions to others between transactions.
      await session.query("SELECT pg_advisory_xact_lock($1)", [MIGRATION_LOCK]);
      // Another process may have applied it while holding the lock.
      const [next] = findPending(migrations, await readApplied(session));
      if (next) await applyOne(next);
      await session.query("COMMIT");
      return next?.name ?? null;
    } catch (error) {
      await session.query("ROLLBACK");
      throw error;
    }
  }

  async function applyOne(migration: Migration): Promise<void> {
    const migrationsList = toMigrationList(migrations.slice(0, migrations.indexOf(migration) + 1), directory);
    try {
      await engine.applyMigrations({ migrationsList, filters: NO_FILTERS });
    } catch (error) {
      const cause = explain(error);
      const Failure = PASSING_CODE.test((cause as pg.DatabaseError).code ?? "") ? PassingStartError : StartError;
      throw new Failure(`The migration ${migration.name} failed: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    }
  }
}
