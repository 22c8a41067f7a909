/**
 * The database and the encryption key for a command that works on them itself: beside running gateways with PostgreSQL, and instead of the
 * gateway with the embedded database.
 */
import type { Logger } from "pino";
import { createId } from "../../lib/ids.js";
import { StartError } from "../../lib/start-error.js";
import { FLUSH_TIMEOUT_MS, HOLD_SECONDS } from "../../limits.js";
import { DataDirInUse, findSecret, openDataDir } from "../../store/data-dir.js";
import { type Database, openDatabase } from "../../store/database.js";
import type { Ledger } from "../../store/ledger.js";
import { migrate } from "../../store/migrations.js";
import { createLedger } from "../../store/sql-ledger.js";

export interface LocalSettings {
  readonly dataDir: string;
  /** Null: the embedded database. */
  readonly databaseUrl: string | null;
  readonly databaseDirectUrl: string | null;
  readonly redisUrl: string | null;
  /** Null: generated and stored under the data directory. */
  readonly encryptionKey: string | null;
  readonly encryptionKeyPrevious: string | null;
  readonly ownerCredits: bigint;
}

export interface LocalDatabase {
  readonly database: Database;
  readonly ledger: Ledger;
  readonly encryptionKey: string;
  /** Stores a generated key. */
  readonly keep: () => void;
}

/** Calls `use`, and closes the database after it. Rejects with a StartError that states the remedy. */
export async function withLocalDatabase<T>(settings: LocalSettings, log: Logger, use: (local: LocalDatabase) => Promise<T>): Promise<T> {
  const { encryptionKey, keep, release } = await openKey(settings);
  try {
    const database = await openDatabase({
      databaseUrl: settings.databaseUrl,
      directUrl: settings.databaseDirectUrl,
      dataDir: settings.dataDir,
      log,
    });
    try {
      await migrate(database, log);
      const ledger = createLedger(database.pool, {
        processId: createId(),
        holdSeconds: HOLD_SECONDS,
        timeoutMs: FLUSH_TIMEOUT_MS,
        freeSpendCap: null,
      });
      return await use({ database, ledger, encryptionKey, keep });
    } finally {
      await database.close();
    }
  } finally {
    await release();
  }
}

interface OpenedKey {
  readonly encryptionKey: string;
  readonly keep: () => void;
  release(): Promise<void>;
}

/** With PostgreSQL a running gateway may use the data directory, so its secrets are only read. */
async function openKey({ databaseUrl, dataDir, encryptionKey }: LocalSettings): Promise<OpenedKey> {
  if (databaseUrl !== null) {
    const known = encryptionKey ?? findSecret(dataDir, "encryptionKey");
    if (known !== null) return { encryptionKey: known, keep: () => undefined, release: async () => undefined };
  }
  try {
    const opened = await openDataDir(dataDir);
    const generated = encryptionKey === null ? opened.draftSecret("encryptionKey") : null;
    const keep = () => generated?.keep();
    return { encryptionKey: encryptionKey ?? generated?.value ?? "", keep, release: () => opened.release() };
  } catch (error) {
    if (!(error instanceof DataDirInUse)) throw error;
    throw new StartError(
      "The gateway is running, and its embedded database serves one process at a time: stop it, run this again, and start it again.",
      { cause: error },
    );
  }
}
