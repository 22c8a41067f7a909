/** A connection pooler in front of PostgreSQL for a test file: PgBouncer, from Debian's package. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { serverUser } from "./postgres.js";

/** What to say when it is not installed. */
export const PGBOUNCER_ABSENT = "no pgbouncer in PATH nor in /usr/sbin: apt-get install pgbouncer";
const program = ["pgbouncer", "/usr/sbin/pgbouncer"].find(canRun);
export const isPgBouncerInstalled = program !== undefined;

const READY_LINE = "process up";
/** Of its Unix socket's name. */
const PORT = 6432;

export interface TestPgBouncer {
  /** The same database, through it. */
  through(databaseUrl: string): string;
  stop(): Promise<void>;
}

export interface TestPgBouncerOptions {
  /** A database of the server that it leads to; the others are reached as well. */
  readonly databaseUrl: string;
  readonly mode: "transaction" | "session";
  /** Sessions of the server, for each database. */
  readonly sessionsMax?: number;
  /** How long a query waits for one. */
  readonly waitSecondsMax?: number;
}

export async function startPgBouncer({
  databaseUrl,
  mode,
  sessionsMax = 20,
  waitSecondsMax = 60,
}: TestPgBouncerOptions): Promise<TestPgBouncer> {
  if (program === undefined) throw new Error(PGBOUNCER_ABSENT);
  const owner = serverUser();
  const directory = mkdtempSync(join(tmpdir(), "sluice-pgbouncer-"));
  const settings = {
    unix_socket_dir: directory,
    listen_port: PORT,
    pool_mode: mode,
    default_pool_size: sessionsMax,
    query_wait_timeout: waitSecondsMax,
    max_client_conn: 500,
    // Seconds until it tries a server again that was away.
    server_login_retry: 1,
    auth_type: "trust",
    auth_file: join(directory, "users.txt"),
  };
  const file = join(directory, "pgbouncer.ini");
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
  const server = String(new URL(databaseUrl).searchParams.get("host"));
  writeFileSync(settings.auth_file, '"postgres" ""\n');
  writeFileSync(file, ["[databases]", `* = host=${server}`, "[pgbouncer]", ...lines, ""].join("\n"));
  if (owner) for (const path of [directory, settings.auth_file, file]) chownSync(path, owner.uid, owner.gid);
  const child = spawn(program, [file], { ...owner, cwd: directory, stdio: ["ignore", "ignore", "pipe"] });
  const onExit = () => child.kill("SIGKILL");
  process.once("exit", onExit);
  const said: string[] = [];
  await new Promise<void>((resolve, reject) => {
    createInterface(child.stderr).on("line", (line) => {
      said.push(line);
      if (line.includes(READY_LINE)) resolve();
    });
    child.once("exit", (code) => reject(new Error(`pgbouncer ended with code ${code} before it was ready: ${said.join("\n")}`)));
  });
  return {
    through: (url) => {
      const pooled = new URL(url);
      pooled.searchParams.set("host", directory);
      pooled.port = String(PORT);
      return pooled.href;
    },
    stop: async () => {
      process.off("exit", onExit);
      if (child.exitCode === null && child.signalCode === null) {
        const exited = once(child, "exit");
        child.kill("SIGKILL");
        await exited;
      }
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function canRun(candidate: string): boolean {
  try {
    execFileSync(candidate, ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
