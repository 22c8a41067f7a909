/**
 * Events through PostgreSQL's LISTEN and NOTIFY, on a separate connection: no statement that moves money notifies, so the lock that orders
 * notifications delays no charge.
 */
import pg from "pg";
import { StartError } from "../../lib/start-error.js";
import type { Database } from "../database.js";
import {
  ANSWER_TIMEOUT_MS,
  type EventTransport,
  HEARTBEAT_MS,
  type OpenTransport,
  reconnectDelayMs,
  type TransportListener,
} from "./transport.js";

const CHANNEL = "sluice_events";
const NOTIFY = `SELECT pg_notify('${CHANNEL}', message) FROM unnest($1::text[]) AS message`;
/** To connect, authenticate and prepare the session. */
const CONNECT_TIMEOUT_MS = 5_000;

/** A message without events. */
const PROBE = '{"from":"start","events":[]}';

/**
 * A pooler gives an idle session to other clients. So the probe is sent from another connection while the listening one is silent: only a
 * session of its own receives it.
 */
export async function assertNotificationsArrive(database: Pick<Database, "openSession">): Promise<void> {
  const [listening, speaking] = [database.openSession(), database.openSession()];
  let timer: NodeJS.Timeout | undefined;
  try {
    const client = await listening.connect();
    const heard = new Promise<boolean>((resolve) => client.once("notification", () => resolve(true)));
    await client.query(`LISTEN ${CHANNEL}`);
    await speaking.query(NOTIFY, [[PROBE]]);
    const silence = new Promise<boolean>((resolve) => {
      timer = setTimeout(resolve, ANSWER_TIMEOUT_MS, false);
    });
    const isHeard = await Promise.race([heard, silence]);
    client.release(true);
    if (!isHeard) throw new StartError(UNHEARD);
  } finally {
    clearTimeout(timer);
    await Promise.all([listening.end(), speaking.end()]);
  }
}

const UNHEARD =
  "DATABASE_URL leads through a connection pooler that passes no notifications on, so this process would not hear of keys that others revoke: set REDIS_URL, or DATABASE_DIRECT_URL to an address of the database itself.";

export function postgresTransport(database: Pick<Database, "openSession">): OpenTransport {
  return (listener) => new PostgresTransport(database, listener);
}

class PostgresTransport implements EventTransport {
  private session: Session | null = null;
  private attempts = 0;
  private retryTimer: NodeJS.Timeout | undefined;
  private connecting: Promise<void>;
  private isClosed = false;

  constructor(
    private readonly database: Pick<Database, "openSession">,
    private readonly listener: TransportListener,
  ) {
    this.connecting = this.connect();
  }

  async send(messages: readonly string[]): Promise<void> {
    if (!this.session) throw new Error("the connection to the database is closed");
    await this.session.query(NOTIFY, [messages]);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    clearTimeout(this.retryTimer);
    await this.connecting;
    await this.session?.end();
  }

  private async connect(): Promise<void> {
    this.attempts += 1;
    const session = new Session(this.database.openSession(), {
      onMessage: (text) => this.listener.onMessage(text),
      onAlive: (sentAt) => this.listener.onAlive(sentAt),
      onLost: (error) => this.lose(session, error),
    });
    try {
      await session.open();
      if (session.isOver) return;
      this.session = session;
      this.attempts = 0;
      if (!this.isClosed) this.listener.onUp();
    } catch (error) {
      session.abandon(error);
    }
  }

  private lose(session: Session, error: unknown): void {
    if (this.session === session) this.session = null;
    if (this.isClosed) return;
    this.listener.onDown(error);
    this.retryTimer = setTimeout(
      () => {
        this.connecting = this.connect();
      },
      reconnectDelayMs(this.attempts + 1),
    );
  }
}

interface SessionListener {
  onMessage(text: string): void;
  onAlive(sentAt: number): void;
  /** Called once, and not after `end`. */
  onLost(error: unknown): void;
}

/** One connection, from open to close. */
class Session {
  isOver = false;
  private client: pg.PoolClient | null = null;
  private heartbeat: NodeJS.Timeout | undefined;
  private isAsking = false;
  /** The last statement sent; the next waits for it. */
  private last: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly pool: pg.Pool,
    private readonly listener: SessionListener,
  ) {}

  async open(): Promise<void> {
    const client = await this.takeClient();
    client.on("error", (error) => this.abandon(error));
    client.on("end", () => this.abandon(new Error("the database closed the connection")));
    client.on("notification", ({ payload }) => {
      if (payload !== undefined) this.listener.onMessage(payload);
    });
    this.client = client;
    await this.query(`LISTEN ${CHANNEL}`);
    this.heartbeat = setInterval(() => void this.ask(), HEARTBEAT_MS);
  }

  /** Notifications arrive before the answer to a later statement. */
  private async ask(): Promise<void> {
    if (this.isAsking) return;
    this.isAsking = true;
    const sentAt = performance.now();
    await this.query("SELECT 1").then(
      () => this.listener.onAlive(sentAt),
      () => undefined,
    );
    this.isAsking = false;
  }

  /** Rejects for a statement that the server refuses; any other failure also ends the connection. */
  async query(text: string, values: unknown[] = []): Promise<void> {
    const { client } = this;
    if (!client) throw new Error("the connection to the database is closed");
    const statement: pg.QueryConfig & { query_timeout: number } = { text, values, query_timeout: ANSWER_TIMEOUT_MS };
    const run = this.last.then(() => client.query(statement));
    this.last = run.catch(() => undefined);
    try {
      await run;
    } catch (error) {
      if (!(error instanceof pg.DatabaseError)) this.abandon(error);
      throw error;
    }
  }

  /** Drops the connection in any state. */
  abandon(error: unknown): void {
    if (this.isOver) return;
    void this.end();
    this.listener.onLost(error);
  }

  async end(): Promise<void> {
    this.isOver = true;
    clearInterval(this.heartbeat);
    this.client?.release(true);
    this.client = null;
    await settledWithin(ANSWER_TIMEOUT_MS, this.pool.end());
  }

  /** The pool's own timeout does not cover the statements that prepare a session. */
  private async takeClient(): Promise<pg.PoolClient> {
    const connecting = this.pool.connect();
    if (await settledWithin(CONNECT_TIMEOUT_MS, connecting)) return connecting;
    connecting.then((late) => late.release(true)).catch(() => undefined);
    throw new Error(`the database did not answer within ${CONNECT_TIMEOUT_MS} ms`);
  }
}

/** False on a timeout. */
async function settledWithin(milliseconds: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), milliseconds);
  });
  const settled = work.then(
    () => true,
    () => true,
  );
  return Promise.race([settled, timeout]).finally(() => clearTimeout(timer));
}
