/** The two kinds of database that the money path must be right on. */
import { rm } from "node:fs/promises";
import { openDatabase } from "../../src/store/database.js";
import { migrate } from "../../src/store/migrations.js";
import { createEmptyDir, createTestDatabase, silentLog, type TestDatabase } from "./database.js";
import { isPostgresInstalled, POSTGRES_ABSENT, startPostgres, type TestPostgres } from "./postgres.js";

export interface DatabaseKind {
  readonly name: string;
  readonly isAbsent: boolean;
  open(): Promise<TestDatabase>;
}

/** For `describe.each`; each kind's tests are to be skipped where it is absent. */
export const DATABASE_KINDS: readonly DatabaseKind[] = [
  { name: "the embedded database", isAbsent: false, open: createTestDatabase },
  {
    name: isPostgresInstalled ? "PostgreSQL" : `PostgreSQL (${POSTGRES_ABSENT})`,
    isAbsent: !isPostgresInstalled,
    open: createPostgresTestDatabase,
  },
];

/** A migrated, empty database on a PostgreSQL server of its own. */
async function createPostgresTestDatabase(): Promise<TestDatabase> {
  const postgres = await requirePostgres();
  const test = await openSharedTestDatabase(postgres.url);
  return {
    ...test,
    close: async () => {
      await test.close();
      await postgres.stop();
    },
  };
}

export async function requirePostgres(): Promise<TestPostgres> {
  const postgres = await startPostgres();
  if (!postgres) throw new Error(POSTGRES_ABSENT);
  return postgres;
}

/** Opens and migrates the database at a URL, as a process of the gateway does. */
export async function openSharedTestDatabase(databaseUrl: string): Promise<TestDatabase> {
  const dataDir = await createEmptyDir();
  const database = await openDatabase({ databaseUrl, dataDir, log: silentLog });
  await migrate(database, silentLog);
  return {
    database,
    dataDir,
    close: async () => {
      await database.close();
      await rm(dataDir, { recursive: true });
    },
  };
}
