/** The housekeeping that PostgreSQL's background processes do, and that the embedded database, being one process, lacks. */

import type pg from "pg";
import type { Logger } from "pino";
import { Repeated } from "../lib/repeated.js";

/** Rewritten by nearly every flush: without VACUUM their dead versions pile up. */
const HOT_TABLES = ["hold", "account", "api_key", "usage_daily"] as const;
/** PostgreSQL's own autovacuum_freeze_max_age: beyond it every table is vacuumed, because transaction ids run out at 2^31. */
const TRANSACTION_AGE_MAX = 200_000_000;

export interface MaintenanceSchedule {
  /** How often to look whether something is due. */
  readonly lookMs: number;
  /** Hot tables are vacuumed this long after something was written. */
  readonly vacuumMs: number;
  /** Statistics of the tables that only grow are brought up to date this often. */
  readonly analyzeMs: number;
  /** Log that is not in the tables' files yet. A start after a crash replays it, at 20 to 50 ms a megabyte. */
  readonly logBytesMax: number;
}

const SCHEDULE: MaintenanceSchedule = {
  lookMs: 1_000,
  vacuumMs: 60_000,
  analyzeMs: 6 * 60 * 60 * 1000,
  logBytesMax: 32 * 1024 * 1024,
};

/** Keeps the database in order while something is written. Returns how to stop, which waits for what is under way. */
export function startMaintenance(pool: pg.Pool, log: Logger, schedule = SCHEDULE): () => Promise<void> {
  let checkpointAt = 0;
  let vacuumedAt = Date.now();
  let analyzedAt = Date.now();

  const look = async () => {
    const now = Date.now();
    const written = (await logPosition(pool)) - checkpointAt;
    if (written === 0) return;
    const isVacuumDue = now - vacuumedAt >= schedule.vacuumMs;
    if (!isVacuumDue && written < schedule.logBytesMax) return;

    if (isVacuumDue) {
      await vacuumHotTables(pool);
      vacuumedAt = now;
    }
    if (now - analyzedAt >= schedule.analyzeMs) {
      await pool.query("ANALYZE");
      await vacuumWhenOld(pool);
      analyzedAt = now;
    }
    await pool.query("CHECKPOINT");
    checkpointAt = await logPosition(pool);
  };

  const looks = new Repeated(look, log, "maintenance of the embedded database failed").every(schedule.lookMs);
  return () => looks.close();
}

/** A statement for each table, so that flushes get their turns in between. */
async function vacuumHotTables(pool: pg.Pool): Promise<void> {
  for (const table of HOT_TABLES) await pool.query(`VACUUM (ANALYZE) "${table}"`);
}

async function vacuumWhenOld(pool: pg.Pool): Promise<void> {
  const { rows } = await pool.query("SELECT age(datfrozenxid) AS age FROM pg_database WHERE datname = current_database()");
  if (Number(rows[0]?.age) > TRANSACTION_AGE_MAX) await pool.query("VACUUM");
}

/** Where the write-ahead log ends, in bytes since the database was made. */
async function logPosition(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query("SELECT pg_current_wal_insert_lsn() - '0/0' AS position");
  return Number(rows[0]?.position);
}
