/**
 * Makes an owner key from the command line, for an operator who lost theirs. It works on the database itself: beside running gateways with
 * PostgreSQL, and instead of the gateway with the embedded database.
 */
import type { Logger } from "pino";
import { createId } from "../../lib/ids.js";
import { StartError } from "../../lib/start-error.js";
import { FLUSH_TIMEOUT_MS, HOLD_SECONDS } from "../../limits.js";
import { DataDirInUse, findSecret, openDataDir } from "../../store/data-dir.js";
import { openDatabase } from "../../store/database.js";
import { openEvents } from "../../store/events/open.js";
import { migrate } from "../../store/migrations.js";
import { createLedger } from "../../store/sql-ledger.js";
import { hashApiKey, pepperOf, secretsOf } from "../secrets/deployment-secrets.js";
import { addOwnerKey, type MadeOwnerKey } from "./owner.js";

interface Settings {
  readonly dataDir: string;
  /** Null: the embedded database. */
  readonly databaseUrl: string | null;
  readonly databaseDirectUrl: string | null;
  readonly redisUrl: string | null;
  /** Null: generated and stored under the data directory. */
  readonly encryptionKey: string | null;
  readonly ownerCredits: bigint;
}

export interface OwnerKeyOptions {
  readonly revokesOthers: boolean;
  readonly log: Logger;
}

/** Rejects with a StartError that states the remedy. */
export async function makeOwnerKey(settings: Settings, { revokesOthers, log }: OwnerKeyOptions): Promise<MadeOwnerKey> {
  const { encryptionKey, keep, release } = await openSecrets(settings);
  try {
    const database = await openDatabase({
      databaseUrl: settings.databaseUrl,
      directUrl: settings.databaseDirectUrl,
      dataDir: settings.dataDir,
      log,
    });
    try {
      await migrate(database, log);
      const pepper = await pepperOf(secretsOf(encryptionKey), database, keep);
      const ledger = createLedger(database.pool, {
        processId: createId(),
        holdSeconds: HOLD_SECONDS,
        timeoutMs: FLUSH_TIMEOUT_MS,
        freeSpendCap: null,
      });
      const options = { nanocredits: settings.ownerCredits, revokesOthers, now: new Date() };
      const made = await addOwnerKey(database, ledger, { hash: (key) => hashApiKey(pepper, key) }, options);
      if (made.endedIds.length > 0) {
        // Running gateways cache keys.
        const events = await openEvents({ redisUrl: settings.redisUrl, database, log });
        for (const apiKeyId of made.endedIds) {
          events.publish("api-key-changed", { accountId: made.accountId, apiKeyId, change: "revoked" });
        }
        await events.close();
      }
      return made;
    } finally {
      await database.close();
    }
  } finally {
    await release();
  }
}

interface OpenedSecrets {
  readonly encryptionKey: string;
  readonly keep: () => void;
  release(): Promise<void>;
}

/** With PostgreSQL a running gateway may use the data directory, so its secrets are only read. */
async function openSecrets({ databaseUrl, dataDir, encryptionKey }: Settings): Promise<OpenedSecrets> {
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
