/** A Redis server of its own for a test file, from Debian's package. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { continueProcess, stopProcess } from "./stopped-process.js";

const READY_LINE = "Ready to accept connections";

/** What to say when `startRedis` answers null. */
export const REDIS_ABSENT = "no redis-server in PATH: apt-get install redis-server";
export const isRedisInstalled = canRun("redis-server");

export interface TestRedis {
  readonly url: string;
  /** For a proxy that stands between. */
  readonly port: number;
  /** Ends the server as a crash does. */
  kill9(): Promise<void>;
  /** Starts it again on the same port after `kill9`. */
  restart(): Promise<void>;
  /** Stops the process where it is: connections stand and are made, and nothing is answered, until `thaw`. */
  freeze(): void;
  thaw(): void;
  /** Stops it and removes its files. */
  stop(): Promise<void>;
}

export interface TestRedisOptions {
  readonly password?: string;
}

/** Null when Redis is not installed. Keeps nothing on disk. */
export async function startRedis({ password }: TestRedisOptions = {}): Promise<TestRedis | null> {
  if (!isRedisInstalled) return null;
  const directory = mkdtempSync(join(tmpdir(), "sluice-redis-"));
  const port = await findFreePort();
  const settings = {
    bind: "127.0.0.1",
    port: String(port),
    dir: directory,
    save: "",
    appendonly: "no",
    ...(password && { requirepass: password }),
  };
  const options = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  let server = await startServer();

  async function startServer() {
    const child = spawn("redis-server", options, { stdio: ["ignore", "pipe", "ignore"] });
    const onExit = () => child.kill("SIGKILL");
    process.once("exit", onExit);
    child.once("exit", () => process.off("exit", onExit));
    const lines = createInterface(child.stdout);
    await new Promise<void>((resolve, reject) => {
      lines.on("line", (line) => line.includes(READY_LINE) && resolve());
      child.once("exit", (code) => reject(new Error(`redis-server ended with code ${code} before it was ready`)));
    });
    return child;
  }

  const end = async () => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const exited = once(server, "exit");
    server.kill("SIGKILL");
    await exited;
  };

  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    kill9: end,
    restart: async () => {
      server = await startServer();
    },
    freeze: () => stopProcess(server.pid as number),
    thaw: () => continueProcess(server.pid as number),
    stop: async () => {
      await end();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("The system gave no port.");
  return address.port;
}

function canRun(program: string): boolean {
  try {
    execFileSync(program, ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
