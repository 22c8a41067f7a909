/** A fresh PostgreSQL cluster in a directory of its own, from the binaries that are installed here, with fsync on. */
import { execFileSync } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { freePort, type Started, startProcess, stopProcess, waitUntil } from "./process.js";

const DEBIAN_ROOT = "/usr/lib/postgresql";
const DATABASE = "sluice";
const USER = "sluice";

export interface PostgresServer {
  readonly pid: number;
  readonly port: number;
  /** For any host and port in front of the server, such as a fault proxy. */
  url(port?: number): string;
  stop(): Promise<void>;
}

/** Where the server binaries are, or null when PostgreSQL is not installed. */
export function findPostgres(): string | null {
  if (existsSync(DEBIAN_ROOT)) {
    const versions = readdirSync(DEBIAN_ROOT).sort((a, b) => Number(b) - Number(a));
    for (const version of versions) {
      const directory = join(DEBIAN_ROOT, version, "bin");
      if (existsSync(join(directory, "initdb"))) return directory;
    }
  }
  try {
    return execFileSync("pg_config", ["--bindir"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return null;
  }
}

/** Makes and starts a cluster. PostgreSQL refuses to run as root, so root runs it as user `postgres`. */
export async function startPostgres(binaries: string): Promise<PostgresServer> {
  const identity = unprivilegedIdentity();
  const directory = mkdtempSync(join(tmpdir(), "sluice-postgres-"));
  if (identity !== null) chownSync(directory, identity.uid, identity.gid);
  const data = join(directory, "cluster");
  const options = { cwd: directory, ...identity };
  execFileSync(join(binaries, "initdb"), ["-D", data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C"], {
    ...options,
    stdio: "pipe",
  });
  const port = await freePort();
  const settings = [
    `port=${port}`,
    "listen_addresses=127.0.0.1",
    `unix_socket_directories=${directory}`,
    "fsync=on",
    "synchronous_commit=on",
  ];
  const args = ["-D", data, ...settings.flatMap((setting) => ["-c", setting])];
  const started = startProcess(join(binaries, "postgres"), args, join(directory, "postgres.log"), options);
  await createDatabase(started, port);
  return {
    pid: started.pid,
    port,
    url: (through = port) => `postgresql://${USER}@127.0.0.1:${through}/${DATABASE}`,
    // SIGINT is PostgreSQL's fast shutdown: open connections are closed.
    stop: async () => {
      await stopProcess(started, "SIGINT");
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

async function createDatabase(started: Started, port: number): Promise<void> {
  const client = await waitUntil(started, "PostgreSQL", 30_000, async () => {
    const attempt = new Client({ host: "127.0.0.1", port, user: USER, database: "postgres" });
    // A connection that breaks while nothing is asked would otherwise end this process.
    attempt.on("error", () => undefined);
    try {
      await attempt.connect();
      return attempt;
    } catch {
      return undefined;
    }
  });
  await client.query(`CREATE DATABASE ${DATABASE}`);
  await client.end();
}

function unprivilegedIdentity(): { readonly uid: number; readonly gid: number } | null {
  if (process.getuid?.() !== 0) return null;
  const idOf = (flag: string): number => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  return { uid: idOf("-u"), gid: idOf("-g") };
}
