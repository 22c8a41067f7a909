/** A new migration: what the schema and the functions have beyond the migrations. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pino } from "pino";
import type { Database } from "../src/store/database.js";
import { migrate } from "../src/store/migrations.js";
import { diffSchema } from "./schema-diff.js";
import { diffFunctions } from "./sql-functions.js";

const NAME_PATTERN = /^[a-z0-9]+(?:[-_][a-z0-9]+)*$/;

/** Whether a folder can be called so. */
export function isMigrationName(name: string): boolean {
  return NAME_PATTERN.test(name);
}

/**
 * Applies `<folder>/migrations` to the database and writes the difference to `<folder>/schema.prisma` and `<folder>/functions` as one more
 * migration. Returns the new file's path, or null when there is no difference.
 */
export async function writeMigration(database: Pick<Database, "openSession">, folder: string, name: string): Promise<string | null> {
  const migrations = join(folder, "migrations");
  await migrate(database, pino({ level: "warn" }), migrations);
  const schema = await diffSchema(database, readFileSync(join(folder, "schema.prisma"), "utf8"));
  const functions = await diffFunctions(database, join(folder, "functions"), schema);
  const sql = [schema, functions].filter((part) => part !== null).join("\n");
  if (sql === "") return null;

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
