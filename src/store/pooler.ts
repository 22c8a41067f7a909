/**
 * A connection pooler between a gateway and PostgreSQL, such as PgBouncer in transaction mode (docs/decisions/poolers.md): each transaction
 * may meet another session of the server, so that nothing of a session can be relied on beyond it.
 */
import type pg from "pg";
import { PassingStartError, StartError } from "../lib/start-error.js";

/**
 * jit: every statement here is short, compiling it costs more than it saves. The time-outs free the locks of a process that hangs in
 * mid-transaction, and end a query that nobody can be waiting for any more.
 */
const SETTINGS = { jit: "off", statement_timeout: "60s", idle_in_transaction_session_timeout: "15s" };

/**
 * A pooler makes up the number under which it can be asked to cancel, PostgreSQL gives its process's. Days are UTC days, and Prisma's
 * adapter takes every time for UTC: poolers keep this one setting for each of their clients. The others would be left to strangers.
 */
const PREPARE = `SELECT pg_backend_pid() = $1::integer AS is_own, set_config('TimeZone', 'UTC', false),
  CASE WHEN pg_backend_pid() = $1::integer THEN (${Object.entries(SETTINGS)
    .map(([name, value]) => `set_config('${name}', '${value}', false)`)
    .join(", ")}) END`;

/** The pool's own time-out ends with the connecting. */
const PREPARE_TIMEOUT_MS = 5_000;

/** What the types of `pg` leave out. */
type Connection = pg.ClientBase & { readonly processID: number | null };

/** Prepares connections, and knows which of them have a session of the server to themselves. */
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

/** Behind a pooler settings are the role's. The sentence for the log when the role has no time-outs; null when it has. */
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

/** Rejects with a StartError when what a direct connection reaches is another database than the one that the pool is connected to. */
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

/** SQLSTATE of a name, a password or a database that is wrong. */
const REFUSED_CODE = /^(?:28...|3D000)$/;

export function toStartError(variable: string, error: Error & { readonly code?: string }): StartError {
  const Failure = REFUSED_CODE.test(error.code ?? "") ? StartError : PassingStartError;
  return new Failure(`The database at ${variable} does not answer: ${error.message}`, { cause: error });
}
