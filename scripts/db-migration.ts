/**
 * `npm run db:migration -- <name>`: writes the migration that brings the database from the last migration to
 * prisma/schema.prisma. What the schema cannot state (checks, triggers, functions) is added to the file by hand.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { pino } from "pino";
import { openDatabase } from "../src/store/database.js";
import { migrate } from "../src/store/migrations.js";
import { diffSchema } from "./schema-diff.js";

const NAME_PATTERN = /^[a-z0-9]+(?:[-_][a-z0-9]+)*$/;

const [name] = process.argv.slice(2);
if (!name || !NAME_PATTERN.test(name)) {
  console.error("usage: npm run db:migration -- <name>, in lower case letters, digits and dashes");
  process.exit(2);
}

// npm runs scripts in the project's root.
const migrations = resolve("prisma/migrations");
const sql = await diffAgainstThrowAway(readFileSync(join(migrations, "../schema.prisma"), "utf8"));
if (sql === null) {
  console.log("The migrations already produce prisma/schema.prisma: there is nothing to write.");
} else {
  const folder = join(migrations, `${timestamp(new Date())}_${name.replaceAll("-", "_")}`);
  mkdirSync(folder);
  writeFileSync(join(folder, "migration.sql"), sql);
  console.log(`wrote ${relative(process.cwd(), join(folder, "migration.sql"))}; read it before you commit it`);
}

async function diffAgainstThrowAway(schema: string): Promise<string | null> {
  const dataDir = mkdtempSync(join(tmpdir(), "sluice-migration-"));
  const log = pino({ level: "warn" });
  try {
    const database = await openDatabase({ databaseUrl: null, dataDir, log });
    await migrate(database, log, migrations);
    const difference = await diffSchema(database, schema);
    await database.close();
    return difference;
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** `20261121134501`, as Prisma's own tool names its folders. */
function timestamp(date: Date): string {
  return date.toISOString().replaceAll(/\D/g, "").slice(0, 14);
}
