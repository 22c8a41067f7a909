/** A new migration: what the schema has that the migrations do not make yet. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pino } from "pino";
import type { Database } from "../src/store/database.js";
import { migrate } from "../src/store/migrations.js";
import { diffSchema } from "./schema-diff.js";

const NAME_PATTERN = /^[a-z0-9]+(?:[-_][a-z0-9]+)*$/;

/** Whether a folder can be called so. */
export function isMigrationName(name: string): boolean {
  return NAME_PATTERN.test(name);
}

/**
 * Applies `<folder>/migrations` to the database and writes what `<folder>/schema.prisma` has beyond them as one more of them.
 * Returns the new file's path, or null when there is nothing to write.
 */
export async function writeMigration(database: Pick<Database, "openSession">, folder: string, name: string): Promise<string | null> {
  const migrations = join(folder, "migrations");
  await migrate(database, pino({ level: "warn" }), migrations);
  const sql = await diffSchema(database, readFileSync(join(folder, "schema.prisma"), "utf8"));
  if (sql === null) return null;

  const migration = join(migrations, `${timestamp(new Date())}_${name.replaceAll("-", "_")}`);
  mkdirSync(migration);
  const file = join(migration, "migration.sql");
  writeFileSync(file, sql);
  return file;
}

/** `20261121134501`, as Prisma's own tool names its folders. */
function timestamp(date: Date): string {
  return date.toISOString().replaceAll(/\D/g, "").slice(0, 14);
}
