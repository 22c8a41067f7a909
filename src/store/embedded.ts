/**
 * The embedded database from the main thread: a worker that runs PGlite, and connections to it in the form of the socket that `pg` would
 * open. A connection is a message channel between the threads, so no other process and no other user of the machine can reach the database.
 */
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { MessageChannel, type MessagePort, Worker } from "node:worker_threads";
import type pg from "pg";
import type { Logger } from "pino";
import { Repeated } from "../lib/repeated.js";
import { resolveWorkerFile as resolveFile } from "../lib/worker-file.js";
import type { WorkerReply, WorkerRequest } from "./embedded-worker.js";
import { syncToDisk } from "./sync-to-disk.js";

/**
 * How much a WebAssembly function runs before V8 optimises it. With the default, a thousandth of this, V8 optimises functions of the
 * embedded database and of Prisma's query compiler that only run at the start: a second of processor time for each, and 80 MB of code.
 * Functions of a load reach this after some hundred statements.
 */
export const WASM_TIERING = "--wasm-tiering-budget=2000000000";
/** Enough stack that deep recursion in a statement meets PostgreSQL's own limit first. */
const WORKER_STACK_MEGABYTES = 64;
/** For the database's thread, whose own objects are the messages that it passes on. */
const WORKER_YOUNG_GENERATION_MEGABYTES = 12;
/** A longer statement hangs: the embedded PostgreSQL has no timers to end it. */
const HANG_TIMEOUT_MS = 120_000;
const PINGS_UNTIL_HANG = 4;
/** Delay before a worker is restarted when the last restart failed. */
const RESTART_DELAY_MS = 1_000;
/** How long the worker may take to write everything to disk. */
const CLOSE_TIMEOUT_MS = 10_000;

export interface EmbeddedServer {
  /** A connection for `pg`'s `stream` option. */
  connect(): Duplex;
  /** Finishes queued work, writes everything to disk and stops the worker. */
  close(): Promise<void>;
}

interface RunningWorker {
  readonly worker: Worker;
  /** Resolves when it has ended, after its successor was started. */
  readonly exited: Promise<void>;
}

/** Opens the database in `directory`, making it when absent (some seconds). Resolves when it answers. */
export async function startEmbedded(directory: string, log: Logger, hangTimeoutMs = HANG_TIMEOUT_MS): Promise<EmbeddedServer> {
  await initialize(directory, log);
  const file = await resolveWorkerFile("embedded-worker");
  let isClosing = false;
  let running: Promise<RunningWorker> = launch();

  async function launch(): Promise<RunningWorker> {
    const resourceLimits = { stackSizeMb: WORKER_STACK_MEGABYTES, maxYoungGenerationSizeMb: WORKER_YOUNG_GENERATION_MEGABYTES };
    const worker = new Worker(file, { workerData: { directory }, resourceLimits });
    await waitUntilReady(worker);
    const stopWatching = watch(worker, hangTimeoutMs, log);
    worker.on("error", (error) => log.error({ err: error }, "the embedded database failed"));
    const exited = new Promise<void>((resolve) => {
      worker.once("exit", () => {
        stopWatching();
        if (!isClosing) running = relaunch();
        resolve();
      });
    });
    return { worker, exited };
  }

  /** Its clients' connections break; new ones wait for the restart. */
  async function relaunch(): Promise<RunningWorker> {
    log.error("the embedded database stopped; starting it again");
    for (;;) {
      try {
        return await launch();
      } catch (error) {
        log.error({ err: error }, "the embedded database does not start");
        await delay(RESTART_DELAY_MS);
        if (isClosing) throw error;
      }
    }
  }

  /** A port that a worker serves. If the worker dies before, its successor is used. */
  async function openPort(): Promise<MessagePort> {
    for (;;) {
      const { worker, exited } = await running;
      const { port1, port2 } = new MessageChannel();
      const greeted = once(port1, "message").then(() => true);
      worker.postMessage({ connect: port2 } satisfies WorkerRequest, [port2]);
      if (await Promise.race([greeted, exited.then(() => false)])) return port1;
      if (isClosing) throw new Error("The embedded database is closed.");
    }
  }

  await running;
  return {
    connect: () => new ChannelStream(openPort),
    close: async () => {
      isClosing = true;
      const last = await running.catch(() => null);
      if (!last) return;
      last.worker.postMessage("close" satisfies WorkerRequest);
      const hasExited = await Promise.race([last.exited.then(() => true), delay(CLOSE_TIMEOUT_MS, false, { ref: false })]);
      // Commits are in the log on disk; a hard stop only costs the next start a replay.
      if (!hasExited) await last.worker.terminate();
    },
  };
}

/** Makes missing database files, first under another name, so that an interrupted start leaves nothing that looks like a database. */
async function initialize(directory: string, log: Logger): Promise<void> {
  const parent = dirname(directory);
  const draftPrefix = `${basename(directory)}.initializing-`;
  for (const name of readdirSync(parent)) {
    if (name.startsWith(draftPrefix)) rmSync(join(parent, name), { recursive: true, force: true });
  }
  if (existsSync(directory)) return;

  log.info({ directory }, "making the embedded database; this takes some seconds, once");
  const draft = join(parent, `${draftPrefix}${randomUUID()}`);
  await promisify(execFile)(process.execPath, [WASM_TIERING, await resolveWorkerFile("embedded-initialize"), draft]);
  renameSync(draft, directory);
  syncToDisk(parent);
}

function waitUntilReady(worker: Worker): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (error: Error | null) => {
      worker.off("message", onMessage).off("error", settle).off("exit", onExit);
      if (error) reject(error);
      else resolve();
    };
    const onMessage = (reply: WorkerReply) => {
      if (reply === "ready") settle(null);
    };
    const onExit = (code: number) => settle(new Error(`The embedded database's worker ended with code ${code} before it was ready.`));
    worker.on("message", onMessage).on("error", settle).on("exit", onExit);
  });
}

/** Stops a worker that has not answered for `hangTimeoutMs`. Counts pings instead of time, which jumps after a suspension. */
function watch(worker: Worker, hangTimeoutMs: number, log: Logger): () => void {
  let unanswered = 0;
  worker.on("message", (reply: WorkerReply) => {
    if (reply === "pong") unanswered = 0;
  });
  const timer = setInterval(() => {
    if (unanswered === PINGS_UNTIL_HANG) {
      log.error({ hangTimeoutMs }, "the embedded database hangs; stopping it");
      void worker.terminate();
    }
    unanswered += 1;
    worker.postMessage("ping" satisfies WorkerRequest);
  }, hangTimeoutMs / PINGS_UNTIL_HANG);
  timer.unref();
  return () => clearInterval(timer);
}

// Paths of the code of the database's thread and of its first start.

/** The file of `src/store/<name>.ts` that Node can load. */
function resolveWorkerFile(name: "embedded-worker" | "embedded-initialize"): Promise<string> {
  return resolveFile(`store/${name}`);
}

// A message port as a socket.

/** The part of `net.Socket` that `pg` uses, over a message port. */
class ChannelStream extends Duplex {
  readonly #open: () => Promise<MessagePort>;
  #port: MessagePort | null = null;

  constructor(open: () => Promise<MessagePort>) {
    // As for a socket: this side ends when the other one does.
    super({ allowHalfOpen: false });
    this.#open = open;
  }

  connect(): this {
    this.#open().then(
      (port) => this.#attach(port),
      (error: Error) => this.destroy(error),
    );
    return this;
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  ref(): this {
    this.#port?.ref();
    return this;
  }

  unref(): this {
    this.#port?.unref();
    return this;
  }

  #attach(port: MessagePort): void {
    if (this.destroyed) {
      port.close();
      return;
    }
    this.#port = port;
    port.on("message", (answer: Uint8Array) => this.push(Buffer.from(answer.buffer, answer.byteOffset, answer.byteLength)));
    port.on("close", () => this.push(null));
    this.emit("connect");
  }

  override _read(): void {
    // Answers are pushed as they arrive: each is complete and was requested.
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#port?.postMessage(chunk);
    done();
  }

  override _writev(chunks: readonly { readonly chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this.#port?.postMessage(Buffer.concat(chunks.map(({ chunk }) => chunk)));
    done();
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#port?.close();
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#port?.close();
    done(error);
  }
}

// Maintenance that PostgreSQL does in background processes, which the embedded database lacks.

/** Nearly every flush rewrites these: without VACUUM dead rows accumulate. */
const HOT_TABLES = ["hold", "account", "api_key", "usage_daily"] as const;
/** PostgreSQL's own autovacuum_freeze_max_age: beyond it every table is vacuumed, because transaction ids run out at 2^31. */
const TRANSACTION_AGE_MAX = 200_000_000;

interface MaintenanceSchedule {
  /** Interval of looking for due work. */
  readonly lookMs: number;
  /** Hot tables are vacuumed this long after a write. */
  readonly vacuumMs: number;
  /** Interval of analyzing append-only tables. */
  readonly analyzeMs: number;
  /** Log not yet in the tables' files. A start after a crash replays it, at 20 to 50 ms a megabyte. */
  readonly logBytesMax: number;
}

const SCHEDULE: MaintenanceSchedule = {
  lookMs: 1_000,
  vacuumMs: 60_000,
  analyzeMs: 6 * 60 * 60 * 1000,
  logBytesMax: 32 * 1024 * 1024,
};

/** Maintains the database while there are writes. Returns how to stop, which waits for work under way. */
export function startMaintenance(pool: pg.Pool, log: Logger, schedule = SCHEDULE): () => Promise<void> {
  let checkpointAt = 0;
  let vacuumedAt = Date.now();
  let analyzedAt = Date.now();

  const look = async () => {
    const now = Date.now();
    const written = (await logPosition(pool)) - checkpointAt;
    if (written === 0) return;
    const isVacuumDue = now - vacuumedAt >= schedule.vacuumMs;
    if (!isVacuumDue && written < schedule.logBytesMax) return;

    if (isVacuumDue) {
      await vacuumHotTables(pool);
      vacuumedAt = now;
    }
    if (now - analyzedAt >= schedule.analyzeMs) {
      await pool.query("ANALYZE");
      await vacuumWhenOld(pool);
      analyzedAt = now;
    }
    await pool.query("CHECKPOINT");
    checkpointAt = await logPosition(pool);
  };

  const looks = new Repeated(look, log, "maintenance of the embedded database failed").every(schedule.lookMs);
  return () => looks.close();
}

/** One statement per table, so that flushes get turns in between. */
async function vacuumHotTables(pool: pg.Pool): Promise<void> {
  for (const table of HOT_TABLES) await pool.query(`VACUUM (ANALYZE) "${table}"`);
}

async function vacuumWhenOld(pool: pg.Pool): Promise<void> {
  const { rows } = await pool.query("SELECT age(datfrozenxid) AS age FROM pg_database WHERE datname = current_database()");
  if (Number(rows[0]?.age) > TRANSACTION_AGE_MAX) await pool.query("VACUUM");
}

/** The end of the write-ahead log, in bytes since the database was made. */
async function logPosition(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query("SELECT pg_current_wal_insert_lsn() - '0/0' AS position");
  return Number(rows[0]?.position);
}
