/**
 * One PostgreSQL server for all test files, where it is installed: a test's gateway then starts in half the time that
 * one on the embedded database takes, and queries its database in half the processor time. Its databases are copies of
 * a migrated one. `SUITE_DATABASE=embedded npm test` uses it only for tests about PostgreSQL
 * (docs/decisions/tests-share-one-postgresql.md).
 */
import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import pg from "pg";
import { inject } from "vitest";
import { openDatabase } from "../../src/store/database.js";
import { migrate } from "../../src/store/migrations.js";
import { createEmptyDir, silentLog } from "./database.js";
import { POSTGRES_ABSENT, startPostgres } from "./postgres.js";

/** Of all gateways that tests run at the same time. */
const CONNECTIONS_MAX = 600;

/** Where tests find it. */
export interface SuiteServerPlace {
  readonly administration: string;
  readonly template: string;
}

declare module "vitest" {
  export interface ProvidedContext {
    suiteServer: SuiteServerPlace | null;
  }
}

/** Null where PostgreSQL is not installed. */
export async function startSuiteServer(): Promise<{ readonly place: SuiteServerPlace; stop(): Promise<void> } | null> {
  const server = await startPostgres({ connectionsMax: CONNECTIONS_MAX });
  if (!server) return null;
  const dataDir = await createEmptyDir();
  const database = await openDatabase({ databaseUrl: server.url, dataDir, log: silentLog });
  await migrate(database, silentLog);
  await database.close();
  await rm(dataDir, { recursive: true });
  const template = new URL(server.url).pathname.slice(1);
  const place = { administration: server.url.replace(template, "postgres"), template };
  return { place, stop: server.stop };
}

/** A migrated, empty database of a test's own. */
export interface SuiteDatabase {
  readonly url: string;
  drop(): Promise<void>;
}

/**
 * Connections of a test's own. Dropping the database notifies a closing one with an error, which is no error of the
 * test.
 */
export function createTestPool(url: string, max: number): pg.Pool {
  return new pg.Pool({ connectionString: url, max }).on("error", () => undefined);
}

/**
 * For tests that run on any kind of database. Null without a server, and with SUITE_DATABASE=embedded: the embedded one
 * is to be used.
 */
export async function createSuiteDatabase(): Promise<SuiteDatabase | null> {
  return process.env.SUITE_DATABASE === "embedded" || !inject("suiteServer") ? null : createPostgresDatabase();
}

/** For tests about PostgreSQL. */
export async function createPostgresDatabase(): Promise<SuiteDatabase> {
  const place = inject("suiteServer");
  if (!place) throw new Error(POSTGRES_ABSENT);
  const name = `test_${randomUUID().replaceAll("-", "")}`;
  const administer = async (sql: string) => {
    const client = new pg.Client({ connectionString: place.administration });
    await client.connect();
    await client.query(sql).finally(() => client.end());
  };
  await administer(`CREATE DATABASE ${name} TEMPLATE ${place.template}`);
  return {
    url: place.administration.replace("/postgres?", `/${name}?`),
    drop: () => administer(`DROP DATABASE ${name} WITH (FORCE)`),
  };
}
