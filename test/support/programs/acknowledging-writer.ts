/**
 * `acknowledging-writer <data directory>`: writes rows as fast as it can, several at a time, and prints each row's name
 * once its commit was answered. Runs until it is killed.
 */
import { randomUUID } from "node:crypto";
import { writeSync } from "node:fs";
import { pino } from "pino";
import { openDatabase } from "../../../src/store/database.js";

const WRITERS = 4;
const STDOUT = 1;

const [dataDir = ""] = process.argv.slice(2);
const { pool } = await openDatabase({ databaseUrl: null, dataDir, log: pino({ level: "silent" }) });

async function write(): Promise<never> {
  for (;;) {
    const name = randomUUID();
    await pool.query("INSERT INTO deployment_setting (name, value) VALUES ($1, $2)", [name, "written"]);
    // Synchronous, so that a line that was printed has left the process.
    writeSync(STDOUT, `${name}\n`);
  }
}

await Promise.all(Array.from({ length: WRITERS }, write));
