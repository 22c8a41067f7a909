/**
 * A program, `node embedded-initialize.js <directory>`: makes a new embedded database and ends. PostgreSQL's initdb runs in
 * a process of its own because it leaves some hundred megabytes behind, which a server would keep for its life.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { PGlite } from "@electric-sql/pglite";
import { syncToDisk } from "./sync-to-disk.js";

/** Smaller than PostgreSQL's default of 16: a new database is 12 MB smaller. */
const WAL_SEGMENT_MEGABYTES = 4;

const [, , directory] = process.argv;
if (!directory) throw new Error("usage: embedded-initialize <directory>");

const db = await PGlite.create(directory, { initDbStartParams: [`--wal-segsize=${WAL_SEGMENT_MEGABYTES}`] });
// Two thirds of the files; and nobody can connect to them to vacuum them, which would stop the server at 2^31 transactions.
await db.exec("UPDATE pg_database SET datistemplate = false WHERE datname <> current_database()");
await db.exec("DROP DATABASE template0");
await db.exec("DROP DATABASE template1");
await db.exec("CHECKPOINT");
await db.close();
for (const entry of readdirSync(directory, { recursive: true, encoding: "utf8" })) syncToDisk(join(directory, entry));
