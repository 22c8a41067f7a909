/**
 * The embedded database's thread: PGlite, and a queue before it. PGlite is one PostgreSQL session; every client here is a
 * message port that speaks PostgreSQL's protocol, and the queue gives them the session in turns, a pipeline at a time and
 * a transaction to its end.
 */
import { closeSync, fdatasyncSync, fstatSync, openSync, readSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { PGlite, protocol } from "@electric-sql/pglite";
import { syncToDisk } from "./sync-to-disk.js";
import { type Pipeline, PipelineReader } from "./wire-pipelines.js";

/** What the main thread sends. */
export type WorkerRequest = { readonly connect: MessagePort } | "ping" | "close";
/** What it hears back. */
export type WorkerReply = "ready" | "pong";

const SERVER_SETTINGS = {
  // PGlite's default is 160 MB, and all of it is taken at the start. What is not in here is in the system's cache.
  shared_buffers: "16MB",
  // The one method that reaches the file system below PGlite.
  wal_sync_method: "fsync",
  // Log segments that are kept for reuse.
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
  /** The client whose transaction or pipeline is open: nobody else gets a turn. */
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

  /** A client that went away in mid-transaction leaves nothing of it behind. */
  drop(client: MessagePort): void {
    this.#waiting = this.#waiting.filter((turn) => turn.client !== client);
    if (this.#owner !== client) return;
    const rollback = Buffer.concat([protocol.serialize.sync(), protocol.serialize.query("ROLLBACK")]);
    this.add(client, { state: "complete", bytes: rollback });
  }

  /** Resolves when nothing that could have a turn is waiting for one. */
  async idle(): Promise<void> {
    while (this.#isRunning) await this.#run;
  }

  /** A failure in here is PGlite's, not a statement's: it ends the thread, and the main thread starts another. */
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
    // PGlite swallows what PostgreSQL cannot recover from, such as a stack that overflows, and goes on with a session that is in ruins.
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

/** Takes up a client. The empty greeting tells it that this worker lives. */
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
      // -F turns fsync off, which would lose acknowledged commits with the power.
      ...PGlite.defaultStartParams.filter((parameter) => parameter !== "-F"),
      ...Object.entries(SERVER_SETTINGS).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
    ],
  });
}

const PAGE_BYTES = 65_536;

/**
 * PGlite's program. The file is read into pages of WebAssembly's: nine megabytes that malloc had given and got back would make it keep as
 * much of everything else that is freed, such as what V8 needs to optimise.
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
  /** Absent on a directory. */
  readonly nfd?: number;
}

/** Gives PostgreSQL's fsync its meaning: the file system that PGlite mounts the directory with leaves it out. */
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
  // Ends this thread only; clients that are still connected would keep it.
  process.exit();
});
mainThread.postMessage("ready" satisfies WorkerReply);
