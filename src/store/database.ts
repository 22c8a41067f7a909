/**
 * The database: PostgreSQL at DATABASE_URL, or an embedded one below DATA_DIR. Both are accessed through `pg`, so there is one SQL dialect,
 * one driver and one migration history.
 */
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { PrismaPg } from "@prisma/adapter-pg";
import pg from "pg";
import type { Logger } from "pino";
import { serviceUnavailable } from "../errors.js";
import { DATABASE_PING_MS, DatabaseSilent, DatabaseWatch } from "./database-watch.js";
import { startEmbedded, startMaintenance, WASM_TIERING } from "./embedded.js";
import { PrismaClient } from "./generated/prisma/client.js";
import { MONEY_CONNECTIONS_MAX, sharedConnectionsOf, WATCH_CONNECTIONS } from "./pool-sizes.js";
import { assertSameDatabase, findMissingTimeouts, Sessions, toStartError } from "./pooler.js";

/** The embedded database answers one query at a time: more connections only hide latency. */
const EMBEDDED_CONNECTIONS_MAX = 4;
const CONNECT_TIMEOUT_MS = 5_000;
/** The embedded database accepts connections between statements, so a late answer means that it is busy; one that hangs is restarted. */
const EMBEDDED_CONNECT_TIMEOUT_MS = 30_000;
const IDLE_CONNECTION_MS = 60_000;
const KEEP_ALIVE_DELAY_MS = 10_000;
const PING_TIMEOUT_MS = 2_000;
const WATCH_TIMEOUT_MS = 2 * DATABASE_PING_MS;
/** A connection without an answer for this long is closed, and its queries fail. DatabaseWatch notices an unresponsive database sooner. */
const QUERY_TIMEOUT_MS = 20_000;
/** How long a transaction of several statements may wait for a connection: long enough that a burst of writes fails no key or upload. */
const TRANSACTION_WAIT_MS = 10_000;
/** Below the session's own bound on idle transactions. */
const TRANSACTION_TIMEOUT_MS = 10_000;

export interface Database {
  /** Rejects with SERVICE_UNAVAILABLE when the database does not answer. */
  readonly prisma: DatabaseClient;
  /** Embedded: no other process can use it. */
  readonly isExclusive: boolean;
  /** DATABASE_URL leads through a connection pooler. */
  readonly isPooled: boolean;
  /** Whether the connection has its own session of the server, so that prepared statements stay. */
  hasOwnSession(client: pg.ClientBase): boolean;
  /** For the settler's statement and for maintenance; Prisma has its own connections. */
  readonly pool: pg.Pool;
  connections(): readonly PoolUse[];
  /**
   * A pool of one connection for work that needs a session, such as LISTEN. Direct where DATABASE_DIRECT_URL is set. The caller ends it.
   */
  openSession(): pg.Pool;
  /** Resolves when the database answers; rejects within seconds when it does not. */
  ping(): Promise<void>;
  /** Notices a silent server. Null: embedded, where busy and hanging cannot be distinguished. */
  readonly watch: DatabaseWatch | null;
  close(): Promise<void>;
}

export interface PoolUse {
  /** money: the settler and maintenance. shared: everything else. */
  readonly name: "money" | "shared";
  readonly open: number;
  readonly idle: number;
  readonly waiting: number;
}

export interface DatabaseOptions {
  /** Null: the embedded database. */
  readonly databaseUrl: string | null;
  /** Address past the pooler of DATABASE_URL; null: the same address. */
  readonly directUrl?: string | null;
  /** An existing directory locked by this process; the embedded database is its `database` folder. */
  readonly dataDir: string;
  readonly log: Logger;
  readonly poolConnectionsMax?: number;
}

/** Opens the database and waits until it answers. Migrations may be missing: see `migrate`. */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  setFlagsFromString(WASM_TIERING);
  return options.databaseUrl === null ? openEmbedded(options) : openShared(options, options.databaseUrl);
}

async function openEmbedded({ dataDir, log, poolConnectionsMax = EMBEDDED_CONNECTIONS_MAX }: DatabaseOptions): Promise<Database> {
  const server = await startEmbedded(join(dataDir, "database"), log);
  // All connections share one session, and named statements belong to it: queries must not be named.
  const config: pg.PoolConfig = {
    user: "postgres",
    database: "postgres",
    ssl: false,
    stream: () => server.connect(),
    connectionTimeoutMillis: EMBEDDED_CONNECT_TIMEOUT_MS,
  };
  const database = connect(config, { isExclusive: true, connectionsMax: poolConnectionsMax, log });
  const stopMaintenance = startMaintenance(database.pool, log);
  return {
    ...database,
    close: async () => {
      await stopMaintenance();
      await database.close();
      await server.close();
    },
  };
}

async function openShared(
  { log, directUrl = null, poolConnectionsMax = sharedConnectionsOf(1) }: DatabaseOptions,
  connectionString: string,
): Promise<Database> {
  const sessions = new Sessions();
  const config: pg.PoolConfig = {
    connectionString,
    application_name: "sluice",
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
    onConnect: (client) => sessions.prepare(client),
  };
  const direct = directUrl === null ? config : { ...config, connectionString: directUrl };
  const database = connect(config, { isExclusive: false, connectionsMax: poolConnectionsMax, log, sessions, direct });
  try {
    await ping(database.pool).catch((error: Error) => {
      throw toStartError("DATABASE_URL", error);
    });
    const isPooled = await database.pool.connect().then((client) => {
      client.release();
      return !sessions.isOwn(client);
    });
    if (isPooled) await warnOfPooler(database, log);
    if (directUrl !== null) await checkDirectUrl(database);
    return { ...database, isPooled };
  } catch (error) {
    await database.close();
    throw error;
  }
}

async function warnOfPooler({ pool }: Database, log: Logger): Promise<void> {
  log.info("DATABASE_URL leads through a connection pooler: no statements are kept prepared");
  const missing = await findMissingTimeouts(pool);
  if (missing !== null) log.warn(missing);
}

async function checkDirectUrl(database: Database): Promise<void> {
  const session = database.openSession();
  await assertSameDatabase(database.pool, session).finally(() => session.end());
}

export type DatabaseClient = ReturnType<typeof createPrisma>;

function createPrisma(pool: pg.Pool, watch: DatabaseWatch | null) {
  const watched = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    try {
      return await (watch ? watch.call(work) : work());
    } catch (error) {
      throw isAway(error) ? serviceUnavailable("The gateway cannot reach its database. Try again in a moment.", { cause: error }) : error;
    }
  };
  const client = new PrismaClient({
    adapter: new PrismaPg(pool),
    transactionOptions: { maxWait: TRANSACTION_WAIT_MS, timeout: TRANSACTION_TIMEOUT_MS },
  }).$extends({
    query: { $allOperations: ({ args, query }) => watched(() => query(args)) },
  });
  // Begin and end of a transaction are not operations.
  const transact = client.$transaction.bind(client) as unknown as (work: unknown, options: unknown) => Promise<unknown>;
  const $transaction = (work: unknown, options: unknown) => watched(() => transact(work, options));
  return new Proxy(client, {
    get: (target, name) => (name === "$transaction" ? $transaction : Reflect.get(target, name)),
  });
}

/**
 * Prisma's codes for a missing or failing database: all of P1000-P1017 but those for a wrong name or password, and the timeouts of its
 * pool; and PostgreSQL's codes where Prisma has none, such as a pooler's for an unreachable server. An error unknown to the driver is a
 * broken connection too.
 */
function isAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, meta } = error as {
    readonly code?: unknown;
    readonly meta?: { readonly driverAdapterError?: { readonly cause?: unknown } };
  };
  const { originalCode } = (meta?.driverAdapterError?.cause ?? {}) as { readonly originalCode?: unknown };
  return (
    error instanceof DatabaseSilent ||
    AWAY_CODE.test(String(code)) ||
    AWAY_CODE.test(String(originalCode)) ||
    /timeout exceeded|Connection terminated|Can't reach database|Query read timeout/i.test(error.message)
  );
}
const AWAY_CODE = /^(?:P10(?:01|02|08|11|17)|P2024|P2028|P2037|57P0[123]|08\w{3}|E[A-Z]+)$/;

/** Prisma's code for a violated unique constraint. */
export function isUniqueViolation(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "P2002";
}

interface ConnectOptions {
  readonly isExclusive: boolean;
  readonly connectionsMax: number;
  readonly log: Logger;
  /** Absent: no connection has its own session. */
  readonly sessions?: Sessions;
  /** For sessions; default: as all others. */
  readonly direct?: pg.PoolConfig;
}

function connect(config: pg.PoolConfig, { isExclusive, connectionsMax, log, sessions, direct = config }: ConnectOptions): Database {
  const pool = createPool({ ...config, max: MONEY_CONNECTIONS_MAX }, log);
  const prismaPool = createPool({ ...config, max: connectionsMax, query_timeout: QUERY_TIMEOUT_MS }, log);
  const watch = isExclusive ? null : createWatch(config, log);
  const prisma = createPrisma(prismaPool, watch?.watch ?? null);
  return {
    prisma,
    isExclusive,
    isPooled: false,
    hasOwnSession: (client) => sessions?.isOwn(client) ?? false,
    pool,
    connections: () => [useOf("money", pool), useOf("shared", prismaPool)],
    openSession: () => createPool({ ...direct, max: 1 }, log),
    ping: () => (watch ? watch.watch.call(() => ping(pool)) : ping(pool)),
    watch: watch?.watch ?? null,
    close: async () => {
      watch?.watch.close();
      await prisma.$disconnect();
      await Promise.all([pool.end(), prismaPool.end(), watch?.pool.end()]);
    },
  };
}

async function ping(pool: pg.Pool, timeoutMs = PING_TIMEOUT_MS): Promise<void> {
  const query: pg.QueryConfig & { query_timeout: number } = { text: "SELECT 1", query_timeout: timeoutMs };
  await pool.query(query);
}

/**
 * Opens its connection when a statement has waited for a while, and prepares no session, which would also have to be awaited. Its own
 * timeouts, which are no answers, are longer than the watch's.
 */
function createWatch({ onConnect: _, ...config }: pg.PoolConfig, log: Logger): { readonly watch: DatabaseWatch; readonly pool: pg.Pool } {
  const pool = createPool({ ...config, max: WATCH_CONNECTIONS, connectionTimeoutMillis: WATCH_TIMEOUT_MS }, log);
  const onChange = (isSilent: boolean) => {
    if (isSilent) log.error("the database does not answer: what needs it is refused");
    else log.info("the database answers again");
  };
  return { watch: new DatabaseWatch({ ping: () => ping(pool, WATCH_TIMEOUT_MS), onChange }), pool };
}

function useOf(name: PoolUse["name"], { totalCount: open, idleCount: idle, waitingCount: waiting }: pg.Pool): PoolUse {
  return { name, open, idle, waiting };
}

/** A pool replaces broken connections by itself; the listener only prevents a crash. */
function createPool(config: pg.PoolConfig, log: Logger): pg.Pool {
  const pool = new pg.Pool({ connectionTimeoutMillis: CONNECT_TIMEOUT_MS, ...config, idleTimeoutMillis: IDLE_CONNECTION_MS });
  const onError = (error: Error) => log.warn({ err: error }, "a database connection broke");
  // The pool reports idle connections; one in use reports its own errors, which crash the process without a listener.
  pool.on("error", () => undefined);
  pool.on("connect", (client) => client.on("error", onError));
  return pool;
}

/** Locks an account's row. It is the first lock of a transaction that changes the account's rows, as of those that charge it. */
export async function lockAccountRow(client: Pick<DatabaseClient, "$queryRaw">, id: string): Promise<void> {
  await client.$queryRaw`SELECT 1 FROM account WHERE id = ${id}::uuid FOR NO KEY UPDATE`;
}

/** Runs `write`, which rejects with `refusal` when another row has its unique value. */
export async function refusingTaken<Result>(write: () => Promise<Result>, refusal: () => Error): Promise<Result> {
  try {
    return await write();
  } catch (error) {
    throw isUniqueViolation(error) ? refusal() : error;
  }
}

/** Locks a name until the transaction ends, so that others wait that lock the same one. No row need exist, and charges never wait for it. */
export async function lockName(client: Pick<DatabaseClient, "$queryRaw">, name: string): Promise<void> {
  await client.$queryRaw`SELECT pg_advisory_xact_lock(hashtextextended(${name}, 0))::text`;
}
