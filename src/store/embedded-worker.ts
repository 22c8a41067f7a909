/**
 * The embedded database's thread: PGlite, and a queue in front of it. PGlite is one PostgreSQL session; each client is a message port that
 * speaks PostgreSQL's protocol, and the queue gives clients the session in turn, by pipeline, and by whole transaction.
 */
import { closeSync, fdatasyncSync, fstatSync, openSync, readSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { PGlite, protocol } from "@electric-sql/pglite";
import { syncToDisk } from "./sync-to-disk.js";
import { type Pipeline, PipelineReader } from "./wire-pipelines.js";

export type WorkerRequest = { readonly connect: MessagePort } | "ping" | "close";
/** Messages to the main thread. */
export type WorkerReply = "ready" | "pong";

const SERVER_SETTINGS = {
  // PGlite's default is 160 MB, allocated at the start. Other pages are in the system's cache.
  shared_buffers: "16MB",
  // The only method that reaches the file system below PGlite.
  wal_sync_method: "fsync",
  // Log segments kept for reuse.
  max_wal_size: "32MB",
  min_wal_size: "16MB",
} as const;

/** The last message of every complete answer (PostgreSQL protocol 3.0, "ReadyForQuery"). */
const READY_FOR_QUERY = 0x5a;
const READY_FOR_QUERY_BYTES = 6;

interface Turn {
  readonly client: MessagePort;
  readonly pipeline: Pipeline;
}

class SessionQueue {
  readonly #db: PGlite;
  #waiting: Turn[] = [];
  /** The client with an open transaction or pipeline: no other client gets a turn. */
  #owner: MessagePort | null = null;
  #isRunning = false;
  #run: Promise<void> = Promise.resolve();

  constructor(db: PGlite) {
    this.#db = db;
  }

  add(client: MessagePort, pipeline: Pipeline): void {
    this.#waiting.push({ client, pipeline });
    if (!this.#isRunning) this.#run = this.#takeTurns();
  }

  /** Rolls back the open transaction of a client that has gone. */
  drop(client: MessagePort): void {
    this.#waiting = this.#waiting.filter((turn) => turn.client !== client);
    if (this.#owner !== client) return;
    const rollback = Buffer.concat([protocol.serialize.sync(), protocol.serialize.query("ROLLBACK")]);
    this.add(client, { state: "complete", bytes: rollback });
  }

  /** Resolves when no client that could have a turn waits. */
  async idle(): Promise<void> {
    while (this.#isRunning) await this.#run;
  }

  /** A failure here is PGlite's, not a statement's: it ends the thread, and the main thread starts another. */
  async #takeTurns(): Promise<void> {
    this.#isRunning = true;
    for (let turn = this.#next(); turn; turn = this.#next()) await this.#take(turn);
    this.#isRunning = false;
  }

  #next(): Turn | undefined {
    if (!this.#owner) return this.#waiting.shift();
    const index = this.#waiting.findIndex((turn) => turn.client === this.#owner);
    return index === -1 ? undefined : this.#waiting.splice(index, 1)[0];
  }

  async #take({ client, pipeline }: Turn): Promise<void> {
    const answer = await execute(this.#db, pipeline.bytes);
    // PGlite ignores PostgreSQL's fatal errors, such as a stack overflow, and continues with a broken session.
    if (pipeline.state === "complete" && answer.at(-READY_FOR_QUERY_BYTES) !== READY_FOR_QUERY) {
      throw new Error("The embedded database broke off in the middle of an answer.");
    }
    this.#owner = pipeline.state === "open" || this.#db.isInTransaction() ? client : null;
    if (answer.length > 0) client.postMessage(answer, [answer.buffer]);
  }
}

async function execute(db: PGlite, bytes: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  await db.execProtocolRawStream(bytes, {
    syncToFs: false,
    // The bytes are a view of the session's memory, which the next part overwrites.
    onRawData: (part) => parts.push(part.slice()),
  });
  const answer = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    answer.set(part, offset);
    offset += part.length;
  }
  return answer;
}

/** Serves a client. The empty message tells it that this worker is alive. */
function serve(client: MessagePort, queue: SessionQueue): void {
  client.postMessage(new Uint8Array());
  const reader = new PipelineReader();
  client.on("message", (chunk: Uint8Array) => {
    for (const pipeline of reader.push(chunk)) {
      if (pipeline.state !== "end") queue.add(client, pipeline);
    }
  });
  client.on("close", () => queue.drop(client));
}

async function openDatabase(directory: string): Promise<PGlite> {
  return PGlite.create(directory, {
    pgliteWasmModule: await compileProgram(),
    startParams: [
      // -F turns fsync off, which would lose acknowledged commits in a power failure.
      ...PGlite.defaultStartParams.filter((parameter) => parameter !== "-F"),
      ...Object.entries(SERVER_SETTINGS).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
    ],
  });
}

const PAGE_BYTES = 65_536;

/**
 * PGlite's program. The file is read into WebAssembly's own pages: nine megabytes allocated and freed by malloc would raise its threshold,
 * so that it would keep more of all other freed memory, such as V8's for optimising.
 */
async function compileProgram(): Promise<WebAssembly.Module> {
  const file = openSync(join(dirname(createRequire(import.meta.url).resolve("@electric-sql/pglite")), "pglite.wasm"), "r");
  const { size } = fstatSync(file);
  const { buffer } = new WebAssembly.Memory({ initial: Math.ceil(size / PAGE_BYTES) });
  const bytes = new Uint8Array(buffer, 0, size);
  for (let read = 0; read < size; ) read += readSync(file, bytes, { offset: read });
  closeSync(file);
  return WebAssembly.compile(bytes);
}

interface MountedFile {
  readonly node: unknown;
  /** Absent for a directory. */
  readonly nfd?: number;
}

/** Makes PostgreSQL's fsync effective, which PGlite's file system omits. */
function syncFilesToDisk(db: PGlite): void {
  const nodeFs = db.Module.FS.filesystems?.NODEFS;
  if (!nodeFs?.stream_ops || !nodeFs.realPath) throw new Error("This release of PGlite has no NODEFS whose writes could be made durable.");
  nodeFs.stream_ops.fsync = (file: MountedFile): number => {
    if (file.nfd === undefined) syncToDisk(nodeFs.realPath(file.node));
    else fdatasyncSync(file.nfd);
    return 0;
  };
}

const mainThread = parentPort;
if (!mainThread) throw new Error("embedded-worker runs as a worker thread only.");

const db = await openDatabase(workerData.directory);
syncFilesToDisk(db);
const queue = new SessionQueue(db);
mainThread.on("message", async (request: WorkerRequest) => {
  if (request === "ping") return mainThread.postMessage("pong" satisfies WorkerReply);
  if (request !== "close") return serve(request.connect, queue);
  await queue.idle();
  await execute(db, protocol.serialize.query("CHECKPOINT"));
  await db.close();
  // Ends this thread only; connected clients would keep it alive.
  process.exit();
});
mainThread.postMessage("ready" satisfies WorkerReply);
