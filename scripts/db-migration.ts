/**
 * `npm run db:migration -- <name>`: writes the migration from the last migration to prisma/schema.prisma and prisma/functions.
 * Checks, triggers and changes of data are added to the file by hand.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { pino } from "pino";
import { openDatabase } from "../src/store/database.js";
import { isMigrationName, writeMigration } from "./write-migration.js";

const [name] = process.argv.slice(2);
if (!name || !isMigrationName(name)) {
  console.error("usage: npm run db:migration -- <name>, in lower case letters, digits and dashes");
  process.exit(2);
}

// On a database that is thrown away.
const dataDir = mkdtempSync(join(tmpdir(), "sluice-migration-"));
try {
  const database = await openDatabase({ databaseUrl: null, dataDir, log: pino({ level: "warn" }) });
  // npm runs scripts in the project's root.
  const file = await writeMigration(database, resolve("prisma"), name);
  await database.close();
  console.log(
    file === null
      ? "The migrations already produce prisma/schema.prisma and prisma/functions: there is nothing to write."
      : `wrote ${relative(process.cwd(), file)}; read it before you commit it`,
  );
} finally {
  rmSync(dataDir, { recursive: true, force: true });
}
