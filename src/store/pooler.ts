/**
 * A connection pooler in front of PostgreSQL, such as PgBouncer in transaction mode (docs/decisions/poolers.md): each transaction may use
 * another session, so session state cannot be relied on.
 */
import type pg from "pg";
import { PassingStartError, StartError } from "../lib/start-error.js";

/**
 * jit: statements are short, so compiling costs more than it saves. The timeouts free the locks of a process that hangs within a
 * transaction, and end queries that no client can still await.
 */
const SETTINGS = { jit: "off", statement_timeout: "60s", idle_in_transaction_session_timeout: "15s" };

/**
 * A pooler invents the number for cancel requests, PostgreSQL uses its process's. Days are UTC days, and Prisma's adapter takes every time
 * for UTC: poolers keep this one setting per client. Other settings would leak to other clients.
 */
const PREPARE = `SELECT pg_backend_pid() = $1::integer AS is_own, set_config('TimeZone', 'UTC', false),
  CASE WHEN pg_backend_pid() = $1::integer THEN (${Object.entries(SETTINGS)
    .map(([name, value]) => `set_config('${name}', '${value}', false)`)
    .join(", ")}) END`;

/** The pool's own timeout only covers connecting. */
const PREPARE_TIMEOUT_MS = 5_000;

/** Fields that the types of `pg` lack. */
type Connection = pg.ClientBase & { readonly processID: number | null };

/** Prepares connections, and knows which have a session of their own. */
export class Sessions {
  private readonly own = new WeakSet<pg.ClientBase>();

  /** For `onConnect` of a pool. */
  async prepare(client: pg.ClientBase): Promise<void> {
    const query: pg.QueryConfig & { query_timeout: number } = {
      text: PREPARE,
      values: [(client as Connection).processID],
      query_timeout: PREPARE_TIMEOUT_MS,
    };
    const { rows } = await client.query<{ is_own: boolean }>(query);
    if (rows[0]?.is_own) this.own.add(client);
  }

  isOwn(client: pg.ClientBase): boolean {
    return this.own.has(client);
  }
}

/** Behind a pooler settings belong to the role. The log message when the role has no timeouts; null when it has. */
export async function findMissingTimeouts(pool: pg.Pool): Promise<string | null> {
  const { rows } = await pool.query<{ role: string; statement: string; idle: string }>(
    `SELECT quote_ident(current_user) AS role, current_setting('statement_timeout') AS statement,
       current_setting('idle_in_transaction_session_timeout') AS idle`,
  );
  const [found] = rows;
  if (!found || (found.statement !== "0" && found.idle !== "0")) return null;
  const changes = Object.entries(SETTINGS).map(([name, value]) => `ALTER ROLE ${found.role} SET ${name} = '${value}';`);
  return `DATABASE_URL leads through a connection pooler, where settings are the role's, and this role ends no statement that hangs. Run once: ${changes.join(" ")}`;
}

/** Rejects with a StartError when the direct connection reaches another database than the pool. */
export async function assertSameDatabase(pool: pg.Pool, direct: pg.Pool): Promise<void> {
  const client = await direct.connect().catch((error: Error) => {
    throw toStartError("DATABASE_DIRECT_URL", error);
  });
  try {
    const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
    const seen = await pool.query("SELECT FROM pg_stat_activity WHERE pid = $1 AND datname = current_database()", [rows[0]?.pid]);
    if (seen.rowCount === 0) throw new StartError("DATABASE_DIRECT_URL must lead to the same database as DATABASE_URL.");
  } finally {
    client.release();
  }
}

/** SQLSTATE of a wrong name, password or database. */
const REFUSED_CODE = /^(?:28...|3D000)$/;

export function toStartError(variable: string, error: Error & { readonly code?: string }): StartError {
  const Failure = REFUSED_CODE.test(error.code ?? "") ? StartError : PassingStartError;
  return new Failure(`The database at ${variable} does not answer: ${error.message}`, { cause: error });
}
