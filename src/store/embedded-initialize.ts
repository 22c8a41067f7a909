/**
 * A program, `node embedded-initialize.js <directory>`, that makes a new embedded database. PostgreSQL's initdb runs in its own process
 * because it leaves some hundred megabytes allocated.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { PGlite } from "@electric-sql/pglite";
import { syncToDisk } from "./sync-to-disk.js";

/** Below PostgreSQL's default of 16: a new database is 12 MB smaller. */
const WAL_SEGMENT_MEGABYTES = 4;

const [, , directory] = process.argv;
if (!directory) throw new Error("usage: embedded-initialize <directory>");

const db = await PGlite.create(directory, { initDbStartParams: [`--wal-segsize=${WAL_SEGMENT_MEGABYTES}`] });
// Two thirds of the files; and without connections they could never be vacuumed, which would stop the server at 2^31 transactions.
await db.exec("UPDATE pg_database SET datistemplate = false WHERE datname <> current_database()");
await db.exec("DROP DATABASE template0");
await db.exec("DROP DATABASE template1");
await db.exec("CHECKPOINT");
await db.close();
for (const entry of readdirSync(directory, { recursive: true, encoding: "utf8" })) syncToDisk(join(directory, entry));
