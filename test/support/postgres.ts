/** A PostgreSQL server of its own for a test file, from the binaries that Debian's package installs. */
import { execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay, setImmediate as nextTurn } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { continueProcess, stopProcess } from "./stopped-process.js";

const BINARIES = "/usr/lib/postgresql";
/** The files of a new server, by its version; they last as long as the installed packages. */
const templates = fileURLToPath(new URL("../../node_modules/.cache/sluice/postgres/", import.meta.url));
/** How long a stopping server waits for forgotten connections. */
const LEAVE_TIMEOUT_MS = 3_000;
const READY_LINE = "database system is ready to accept connections";

/** What to say when `startPostgres` answers null. */
export const POSTGRES_ABSENT = `no PostgreSQL below ${BINARIES}: apt-get install postgresql`;
export const isPostgresInstalled = findBinaries() !== null;

export interface TestPostgres {
  /** An empty database. */
  readonly url: string;
  /** The server's Unix socket, for a proxy that stands between. */
  readonly socketPath: string;
  /** Another empty database on the same server. */
  createDatabase(): Promise<string>;
  /** Ends every session but its own, as a failover does; resolves when this process has heard of it. */
  killBackends(): Promise<void>;
  /** Stops the server like a crash: no flush, no notice to its clients. */
  kill9(): Promise<void>;
  /** Starts it again after `kill9`; resolves when it accepts connections. */
  restart(): Promise<void>;
  /** Stops all of its processes where they are: connections stand and are made, and nothing is answered, until `thaw`. */
  freeze(): void;
  thaw(): void;
  /** Stops it and removes its files. */
  stop(): Promise<void>;
}

/** Null when PostgreSQL is not installed. Takes about a second. */
export async function startPostgres({ connectionsMax = 100 } = {}): Promise<TestPostgres | null> {
  const binaries = findBinaries();
  if (!binaries) return null;

  const owner = serverUser();
  const directory = mkdtempSync(join(tmpdir(), "sluice-pg-"));
  if (owner) chownSync(directory, owner.uid, owner.gid);
  const data = join(directory, "data");
  layOut(binaries, data, owner);

  let server = await startServer();
  const urlOf = (database: string) => `postgresql://postgres@localhost/${database}?host=${encodeURIComponent(directory)}`;
  const administer = async (sql: string) => {
    const client = new pg.Client({ connectionString: urlOf("postgres") });
    await client.connect();
    return client.query(sql).finally(() => client.end());
  };
  const createDatabase = async () => {
    const name = `test_${randomUUID().replaceAll("-", "")}`;
    await administer(`CREATE DATABASE "${name}"`);
    return urlOf(name);
  };

  async function startServer() {
    const settings = { listen_addresses: "", unix_socket_directories: directory, fsync: "off", max_connections: String(connectionsMax) };
    const options = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const child = spawn(join(binaries ?? "", "postgres"), ["-D", data, ...options], {
      ...owner,
      cwd: directory,
      stdio: ["ignore", "ignore", "pipe"],
    });
    const onExit = () => child.kill("SIGKILL");
    process.once("exit", onExit);
    child.once("exit", () => process.off("exit", onExit));
    const lines = createInterface(child.stderr);
    await new Promise<void>((resolve, reject) => {
      lines.on("line", (line) => line.includes(READY_LINE) && resolve());
      child.once("exit", (code) => reject(new Error(`postgres ended with code ${code} before it was ready`)));
    });
    return child;
  }

  const end = async (signal: "SIGTERM" | "SIGKILL") => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const exited = once(server, "exit");
    server.kill(signal);
    const insist = setTimeout(() => server.kill("SIGINT"), LEAVE_TIMEOUT_MS);
    await exited.finally(() => clearTimeout(insist));
  };

  return {
    url: await createDatabase(),
    socketPath: join(directory, ".s.PGSQL.5432"),
    createDatabase,
    killBackends: async () => {
      const { rows } = await administer(
        "SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'",
      );
      await Promise.all(rows.map(({ pid }) => gone(pid)));
      await hearWhatWasSent();
    },
    kill9: async () => {
      // Its children outlive it by a moment, in which they still answer: a crash takes them all.
      const children = childrenOf(server.pid);
      await end("SIGKILL");
      for (const child of children) killIfThere(child);
      await Promise.all(children.map(gone));
    },
    restart: async () => {
      server = await startServer();
    },
    freeze: () => {
      // The parent first, so that it starts no further child.
      stopProcess(server.pid as number);
      for (const child of childrenOf(server.pid)) stopProcess(child);
    },
    thaw: () => {
      for (const child of childrenOf(server.pid)) continueProcess(child);
      continueProcess(server.pid as number);
    },
    stop: async () => {
      // A pool's end() resolves while its connections are still saying goodbye; a server that cut them off then would have each
      // of them throw out of no test's call. SIGTERM lets them leave first.
      await end("SIGTERM");
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function findBinaries(): string | null {
  if (!existsSync(BINARIES)) return null;
  const versions = readdirSync(BINARIES).sort((a, b) => Number(b) - Number(a));
  return versions.map((version) => join(BINARIES, version, "bin")).find((folder) => existsSync(join(folder, "initdb"))) ?? null;
}

/** Makes a new server's files. Every one after the first is a copy: initdb takes a second of processor time. */
function layOut(binaries: string, data: string, owner: ServerUser | null): void {
  const version = basename(dirname(binaries));
  const template = join(templates, version);
  if (existsSync(template)) {
    execFileSync("cp", ["-pR", template, data]);
    return;
  }
  const settings = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N"];
  execFileSync(join(binaries, "initdb"), ["-D", data, ...settings], { ...owner, cwd: dirname(data), stdio: "pipe" });
  mkdirSync(templates, { recursive: true });
  const draft = mkdtempSync(join(templates, "draft-"));
  execFileSync("cp", ["-pR", data, join(draft, version)]);
  try {
    renameSync(join(draft, version), template);
  } catch (error) {
    // Another process made it at the same time.
    if (!existsSync(template)) throw error;
  }
  rmSync(draft, { recursive: true });
}

function childrenOf(parent: number | undefined): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && statOf(Number(name))?.parent === parent)
    .map(Number);
}

/** Null when there is no such process. The name, the second field, is in parentheses and may hold anything. */
function statOf(pid: number): { state: string; parent: number } | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [state = "", parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { state, parent: Number(parent) };
  } catch {
    return null;
  }
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It ended by itself.
  }
}

/** Resolves when the process has ended; a zombie (Z), which its parent has not waited for yet, has ended too. */
async function gone(pid: number): Promise<void> {
  for (let stat = statOf(pid); stat && stat.state !== "Z"; stat = statOf(pid)) await delay(5);
}

/**
 * One whole turn of the event loop: all bytes that had arrived at any socket are handled. The first tick may end a turn
 * half gone.
 */
async function hearWhatWasSent(): Promise<void> {
  await nextTurn();
  await nextTurn();
}

export interface ServerUser {
  readonly uid: number;
  readonly gid: number;
}

/**
 * PostgreSQL and PgBouncer refuse to run as root; Debian's package made a user for them. Null: as the user who runs the
 * tests.
 */
export function serverUser(): ServerUser | null {
  if (userInfo().uid !== 0) return null;
  const idOf = (option: string) => Number(execFileSync("id", [option, "postgres"], { encoding: "utf8" }));
  return { uid: idOf("-u"), gid: idOf("-g") };
}
