/**
 * Reads a stopped gateway's ledger from its database, to compare the served answers of a benchmark with the charges.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { PGlite } from "@electric-sql/pglite";
import { Client } from "pg";

export interface DatabaseLocation {
  readonly dataDirectory: string;
  /** Null: the embedded database, which must not be in use, under the data directory. */
  readonly databaseUrl: string | null;
}

export type Query = <Row>(sql: string) => Promise<readonly Row[]>;

export interface Books {
  readonly usageRows: number;
  /** Rows billed because the caller left before the end. */
  readonly cancelledRows: number;
  /** Unsettled holds and unreleased leases. Zero after an orderly stop. */
  readonly openHolds: number;
}

export function readBooks(location: DatabaseLocation): Promise<Books> {
  return withDatabase(location, async (query) => {
    const [books] = await query<Books>(`SELECT
      (SELECT count(*)::int FROM usage_record) AS "usageRows",
      (SELECT count(*)::int FROM usage_record WHERE status = 'cancelled') AS "cancelledRows",
      (SELECT count(*)::int FROM hold) AS "openHolds"`);
    if (books === undefined) throw new Error("The database did not answer.");
    // Another checkout of before may know no leases.
    const [known] = await query<{ name: string | null }>("SELECT to_regclass('credit_lease')::text AS name");
    const [leases] = known?.name ? await query<{ count: number }>("SELECT count(*)::int AS count FROM credit_lease") : [];
    return { ...books, openHolds: books.openHolds + (leases?.count ?? 0) };
  });
}

/** Opens the database, hands `work` a way to ask it, and closes it. */
export async function withDatabase<T>(location: DatabaseLocation, work: (query: Query) => Promise<T>): Promise<T> {
  if (location.databaseUrl !== null) {
    const client = new Client({ connectionString: location.databaseUrl });
    // A connection that breaks between two questions fails the next one; without a listener it would end this process.
    client.on("error", () => undefined);
    await client.connect();
    try {
      return await work(async <Row>(sql: string) => (await client.query(sql)).rows as Row[]);
    } finally {
      await client.end();
    }
  }
  const database = await PGlite.create(findCluster(location.dataDirectory));
  try {
    return await work(async <Row>(sql: string) => (await database.query<Row>(sql)).rows);
  } finally {
    await database.close();
  }
}

/** The directory that holds a PostgreSQL cluster: itself, or a folder in it. */
function findCluster(directory: string): string {
  const candidates = [directory, ...readdirSync(directory, { withFileTypes: true }).map((entry) => join(directory, entry.name))];
  const found = candidates.find((candidate) => existsSync(join(candidate, "PG_VERSION")));
  if (found === undefined) throw new Error(`${directory} holds no embedded database.`);
  return found;
}
