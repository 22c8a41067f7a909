/** The two kinds of database that the money path must be right on. */
import { rm } from "node:fs/promises";
import { openDatabase } from "../../src/store/database.js";
import { migrate } from "../../src/store/migrations.js";
import { createEmptyDir, createTestDatabase, silentLog, type TestDatabase } from "./database.js";
import { isPostgresInstalled, POSTGRES_ABSENT, startPostgres, type TestPostgres } from "./postgres.js";
import { createPostgresDatabase, createSuiteDatabase, type SuiteDatabase } from "./suite-server.js";

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
    open: async () => openSuiteDatabase(await createPostgresDatabase()),
  },
];

/**
 * A migrated, empty database for tests that run on any kind: on the suite's server where there is one, else an embedded
 * one.
 */
export async function createAnyTestDatabase(): Promise<TestDatabase> {
  const suite = await createSuiteDatabase();
  return suite ? openSuiteDatabase(suite) : createTestDatabase();
}

async function openSuiteDatabase({ url, drop }: SuiteDatabase): Promise<TestDatabase> {
  const test = await openSharedTestDatabase(url);
  return {
    ...test,
    close: async () => {
      await test.close();
      await drop();
    },
  };
}

/** A server of a test's own, which it may stop. */
export async function requirePostgres(): Promise<TestPostgres> {
  const postgres = await startPostgres();
  if (!postgres) throw new Error(POSTGRES_ABSENT);
  return postgres;
}

/**
 * The two kinds, with a PostgreSQL server that no other test uses. A snapshot of PostgreSQL knows the transactions of all databases of its
 * server: what waits for older transactions to end, such as the roll-ups of usage, would wait for those of other tests too.
 */
export const UNSHARED_DATABASE_KINDS: readonly DatabaseKind[] = DATABASE_KINDS.map((kind) =>
  kind.open === createTestDatabase ? kind : { ...kind, open: openDatabaseOnOwnServer },
);

async function openDatabaseOnOwnServer(): Promise<TestDatabase> {
  const server = await requirePostgres();
  const test = await openSharedTestDatabase(server.url);
  return {
    ...test,
    close: async () => {
      await test.close();
      await server.stop();
    },
  };
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
