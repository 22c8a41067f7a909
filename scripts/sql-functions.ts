/** The SQL that turns a database's functions into those of `prisma/functions`. Comments are not compared. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type pg from "pg";
import type { Database } from "../src/store/database.js";

const EXTENSION = ".sql";
/** SQLSTATE of CREATE OR REPLACE FUNCTION for another return type or other names of parameters: the function is dropped first. */
const NOT_REPLACEABLE = "42P13";

interface SqlFunction {
  readonly name: string;
  /** As DROP FUNCTION takes it, with the types of its parameters. */
  readonly signature: string;
  readonly definition: string;
}

/** The files of the folder: one function each, named as the file. */
export function readFunctions(folder: string): ReadonlyMap<string, string> {
  const files = readdirSync(folder)
    .filter((name) => name.endsWith(EXTENSION))
    .sort();
  return new Map(files.map((file) => [file.slice(0, -EXTENSION.length), readFileSync(join(folder, file), "utf8")]));
}

/**
 * Null when the database has the functions of the folder. `schemaSql` is run before they are compared, because a function may need its
 * columns. The database is not changed. Throws when a file does not create the function that it is named after.
 */
export async function diffFunctions(
  database: Pick<Database, "openSession">,
  folder: string,
  schemaSql: string | null,
): Promise<string | null> {
  const files = readFunctions(folder);
  const session = database.openSession();
  const client = await session.connect();
  try {
    // Functions may call each other in any order.
    await client.query("BEGIN; SET LOCAL check_function_bodies = off");
    const before = await listFunctions(client);
    if (schemaSql !== null) await client.query(schemaSql);
    const statements = before.filter(({ name }) => !files.has(name)).map(toDrop);
    for (const [name, sql] of files) {
      const old = before.filter((each) => each.name === name);
      const drops = (await isReplaceable(client, sql)) ? [] : old.map(toDrop);
      if (drops.length > 0) await client.query([...drops, sql].join("\n"));
      const created = await listFunctions(client, name);
      // Other parameters make a second function beside the old one.
      if (created.length > old.length && old.length > 0) drops.push(...old.map(toDrop));
      if (created.length === 0) throw new Error(`${name}${EXTENSION} does not create the function ${name}.`);
      if (drops.length > 0 || created.length !== old.length || created.some((each, index) => !isSame(each, old[index]))) {
        statements.push(...drops, sql.trimEnd());
      }
    }
    return statements.length === 0 ? null : `${statements.join("\n\n")}\n`;
  } finally {
    await client.query("ROLLBACK");
    client.release();
    await session.end();
  }
}

/** Runs a file. False, with nothing changed, when the database refuses to replace the function. */
async function isReplaceable(client: pg.ClientBase, sql: string): Promise<boolean> {
  await client.query("SAVEPOINT file");
  try {
    await client.query(sql);
    return true;
  } catch (error) {
    if ((error as { readonly code?: unknown }).code !== NOT_REPLACEABLE) throw error;
    await client.query("ROLLBACK TO SAVEPOINT file");
    return false;
  }
}

/** Of the first schema of the search path, without those of extensions. */
async function listFunctions(client: pg.ClientBase, name: string | null = null): Promise<SqlFunction[]> {
  const { rows } = await client.query<SqlFunction>(
    `SELECT p.proname AS name, p.oid::regprocedure::text AS signature, pg_get_functiondef(p.oid) AS definition
      FROM pg_proc p
      WHERE p.pronamespace = current_schema()::regnamespace AND p.prokind = 'f' AND ($1::text IS NULL OR p.proname = $1)
        AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
      ORDER BY 1, 2`,
    [name],
  );
  return rows;
}

function toDrop({ signature }: SqlFunction): string {
  return `DROP FUNCTION ${signature};`;
}

function isSame(one: SqlFunction, other: SqlFunction | undefined): boolean {
  return other !== undefined && one.signature === other.signature && withoutComments(one.definition) === withoutComments(other.definition);
}

/** Without comments to the end of a line, and without the lines and spaces that they leave. Texts in quotes stay as they are. */
function withoutComments(sql: string): string {
  return sql
    .replace(/'[^']*'|--[^\n]*/g, (found) => (found.startsWith("--") ? "" : found))
    .split("\n")
    .map((line) => line.trimEnd())
    .filter((line) => line !== "")
    .join("\n");
}
