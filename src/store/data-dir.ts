/**
 * DATA_DIR: locked by one process at a time, with an identity that outlives it and generated secrets. Locked with a shared database too,
 * because the settlement spool is here.
 *
 * With several workers their primary holds the lock, and each worker locks a directory below for files of one process
 * (docs/decisions/workers.md):
 *
 *   workers/<n>/instance-id, workers/<n>/spool
 *
 * A worker takes the first directory that no living process has locked, so that a dead one's successor finds its files.
 */
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, statSync, writeSync } from "node:fs";
import { mkdir, readdir, realpath, rm, statfs } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { z } from "zod";
import { PassingStartError, StartError } from "../lib/start-error.js";
import { WORKERS_MAX } from "../limits.js";
import { syncToDisk } from "./sync-to-disk.js";

const SECRET_BYTES = 32;
const OWNER_ANSWER_TIMEOUT_MS = 500;
const WORKERS_FOLDER = "workers";
/** Twice the number of workers: those of a dead primary may still be draining. */
const WORKER_DIRS_MAX = 2 * WORKERS_MAX;

export interface DataDir {
  /** Absolute, with symbolic links resolved. */
  readonly path: string;
  /** The directory that only this process writes to: the same, or a worker's directory below it. */
  readonly ownPath: string;
  /** A UUID made with `ownPath`. The holder of its lock knows that every earlier process on it is dead. */
  readonly instanceId: string;
  /** Null, or the number of the worker's directory. */
  readonly workerNumber: number | null;
  /** The named secret, 32 random bytes as base64; generated and stored in `secrets.json` if missing. */
  secret(name: string): string;
  /** As `secret`, but a generated one is stored by `keep` only. */
  draftSecret(name: string): DraftSecret;
  /** Releases the lock. */
  release(): Promise<void>;
}

export interface DraftSecret {
  readonly value: string;
  keep(): void;
}

/** Another living process has the directory. */
export class DataDirInUse extends PassingStartError {
  override readonly name: string = "DataDirInUse";
}

/** Reads a named secret of a directory that another process may have locked; null when it does not exist. */
export function findSecret(dataDir: string, name: string): string | null {
  return new Map(Object.entries(readSecrets(join(dataDir, "secrets.json")))).get(name) ?? null;
}

/** Locks the directory, making it when absent. Throws when another living process has it. */
export async function openDataDir(dataDir: string): Promise<DataDir> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const path = await realpath(dataDir);
  const lock = await tryLock(path);
  if ("owner" in lock) {
    const holder = lock.owner === null ? "another process" : `the process ${lock.owner}`;
    throw new DataDirInUse(`The data directory ${path} is in use by ${holder}. Stop it, or set DATA_DIR to another directory.`);
  }
  return openLocked(lock, path, path, null);
}

/** Locks a worker's directory: that of its number, or the first free one while a worker of a dead primary still has that. */
export async function openWorkerDir(dataDir: string, number: number): Promise<DataDir> {
  const path = await realpath(dataDir);
  const numbers = Array.from({ length: WORKER_DIRS_MAX }, (_, index) => index + 1);
  for (const candidate of [number, ...numbers.filter((each) => each !== number)]) {
    const ownPath = join(path, WORKERS_FOLDER, String(candidate));
    await mkdir(ownPath, { recursive: true, mode: 0o700 });
    const lock = await tryLock(ownPath);
    if (!("owner" in lock)) return openLocked(lock, path, ownPath, candidate);
  }
  throw new DataDirInUse(`Every directory for a worker below ${join(path, WORKERS_FOLDER)} is in use. Stop the processes that have them.`);
}

/**
 * Calls `take` with each `wanted` directory that only dead processes have written to: for a worker the directory above its own, which has
 * no writers while there are workers, and unlocked directories of workers. Locks them meanwhile.
 */
export async function visitLeftBehind(
  { path, ownPath }: Pick<DataDir, "path" | "ownPath">,
  wanted: (directory: string) => Promise<boolean>,
  take: (directory: string) => Promise<void>,
): Promise<void> {
  if (path !== ownPath && (await wanted(path))) await take(path);
  for (const name of await readdir(join(path, WORKERS_FOLDER)).catch(() => [])) {
    const directory = join(path, WORKERS_FOLDER, name);
    if (directory === ownPath || !/^\d{1,3}$/.test(name) || !(await wanted(directory))) continue;
    const lock = await tryLock(directory);
    if (!("owner" in lock)) await take(directory).finally(() => closeServer(lock));
  }
}

async function openLocked(lock: Server, path: string, ownPath: string, workerNumber: number | null): Promise<DataDir> {
  try {
    const instanceId = readInstanceId(join(ownPath, "instance-id"));
    const draftSecret = openSecrets(join(path, "secrets.json"));
    const secret = (name: string) => {
      const draft = draftSecret(name);
      draft.keep();
      return draft.value;
    };
    return { path, ownPath, workerNumber, instanceId, secret, draftSecret, release: () => closeServer(lock) };
  } catch (error) {
    await closeServer(lock);
    throw error;
  }
}

/**
 * The lock is a listening socket, which the operating system closes with the process, however it ends; a file could be stale. Its name
 * derives from the directory's device and inode, so that every path to the directory gives the same lock.
 */
async function tryLock(path: string): Promise<Server | { readonly owner: string | null }> {
  const address = lockAddress(path);
  const taken = await listen(address);
  if (taken) return taken;

  const owner = await askOwner(address);
  if (owner === null && !isKernelName(address)) {
    // An unanswered socket file was left by a dead process.
    await rm(address, { force: true });
    const retaken = await listen(address);
    if (retaken) return retaken;
  }
  return { owner };
}

function lockAddress(path: string): string {
  const { dev, ino } = statSync(path, { bigint: true });
  const name = `sluice-${createHash("sha256").update(`${dev}:${ino}`).digest("hex").slice(0, 32)}`;
  if (process.platform === "linux") return `\0${name}`;
  if (process.platform === "win32") return `\\\\.\\pipe\\${name}`;
  return join(tmpdir(), `${name}.sock`);
}

/** Names without a file: Linux's abstract sockets and Windows' pipes. They are never stale. */
function isKernelName(address: string): boolean {
  return address.startsWith("\0") || address.startsWith("\\\\");
}

/** Null when the address is taken. */
function listen(address: string): Promise<Server | null> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => {
      socket.on("error", () => socket.destroy());
      socket.end(String(process.pid));
    });
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE") resolve(null);
      else reject(error);
    });
    server.listen({ path: address }, () => {
      server.unref();
      resolve(server);
    });
  });
}

/** The process id of the lock's holder; null without an answer. */
function askOwner(address: string): Promise<string | null> {
  return new Promise((resolve) => {
    let answer = "";
    const socket = connect({ path: address });
    socket.setTimeout(OWNER_ANSWER_TIMEOUT_MS, () => socket.destroy());
    socket.setEncoding("latin1");
    socket.on("data", (text) => {
      answer += text;
    });
    socket.on("error", () => socket.destroy());
    socket.on("close", () => resolve(/^\d{1,10}$/.test(answer) ? answer : null));
  });
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}

function readInstanceId(file: string): string {
  const text = readIfPresent(file);
  if (text === null) {
    const instanceId = randomUUID();
    writeDurably(file, `${instanceId}\n`);
    return instanceId;
  }
  const parsed = z.uuid().safeParse(text.trim());
  if (!parsed.success) throw new StartError(`${file} does not hold a UUID. Restore it, or remove it to give the directory a new identity.`);
  return parsed.data;
}

const secretsFile = z.record(z.string(), z.string().regex(/^[A-Za-z0-9+/]{43}=$/));

function openSecrets(file: string): (name: string) => DraftSecret {
  const secrets = new Map(Object.entries(readSecrets(file)));
  return (name) => {
    const known = secrets.get(name);
    if (known !== undefined) return { value: known, keep: () => undefined };
    const value = randomBytes(SECRET_BYTES).toString("base64");
    const keep = () => {
      if (secrets.has(name)) return;
      secrets.set(name, value);
      writeDurably(file, `${JSON.stringify(Object.fromEntries(secrets), null, 2)}\n`);
    };
    return { value, keep };
  };
}

/** A damaged file stops the start: new secrets would make everything sealed with the old ones unreadable. */
function readSecrets(file: string): Record<string, string> {
  const text = readIfPresent(file);
  if (text === null) return {};
  try {
    return secretsFile.parse(JSON.parse(text));
  } catch {
    throw new StartError(
      `${file} is damaged: it must be a JSON object of base64 secrets of ${SECRET_BYTES} bytes. Restore it from a backup.`,
    );
  }
}

function readIfPresent(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/** Writes a temporary file and renames it, so that a crash leaves the old or the new text. Readable only by the owner. */
function writeDurably(file: string, text: string): void {
  const draft = `${file}.draft`;
  const handle = openSync(draft, "w", 0o600);
  try {
    writeSync(handle, text);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  renameSync(draft, file);
  syncToDisk(dirname(file));
}

// Free disk space of a directory for this process, without the superuser's reserve.

/** In bytes. */
export async function freeBytesOf(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}
