/** The server as it is shipped, `dist/main.js`, in a process of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { projectRoot } from "../../scripts/build.mjs";
import { OWNER_KEY } from "./app.js";

export interface LogLine {
  readonly level: number;
  readonly pid: number;
  readonly msg: string;
  readonly [field: string]: unknown;
}

export interface BuiltServer {
  readonly baseUrl: string;
  readonly child: ChildProcess;
  /** The lines logged so far. */
  readonly log: readonly LogLine[];
  /** Resolves with the first line of this message, which may have been logged already. */
  logged(message: RegExp): Promise<LogLine>;
  /** Resolves when the process has ended. */
  readonly ended: Promise<ServerEnd>;
  /** Sends SIGTERM, and resolves when the process has ended. */
  stop(): Promise<ServerEnd>;
}

export interface ServerEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Standard error. */
  readonly error: string;
}

export interface BuiltServerOptions {
  /** Where it is started, too, so that no `.env` of a developer is read. */
  readonly dataDir: string;
  /** Beside a port of the system's choice and the tests' owner key. */
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Resolves when the server, with all of its workers, logs that it is ready; rejects with its output when it ends
 * before.
 */
export async function startBuiltServer({ dataDir, env = {} }: BuiltServerOptions): Promise<BuiltServer> {
  const child = spawn(process.execPath, [join(projectRoot, "dist/main.js")], {
    cwd: dataDir,
    env: { PATH: process.env.PATH, PORT: "0", DATA_DIR: dataDir, OWNER_API_KEY: OWNER_KEY, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const onExit = () => child.kill("SIGKILL");
  process.once("exit", onExit);
  let error = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    error += text;
  });
  const log: LogLine[] = [];
  const waiting = new Set<() => void>();
  let baseUrl = "";
  createInterface(child.stdout).on("line", (line) => {
    baseUrl ||= /ready at\s+(\S+)/.exec(line)?.[1] ?? "";
    if (line.startsWith("{")) log.push(JSON.parse(line));
    for (const look of waiting) look();
  });
  const ended = once(child, "close").then(([code, signal]): ServerEnd => {
    process.off("exit", onExit);
    return { code, signal, error };
  });
  const until = <Found>(find: () => Found | undefined): Promise<Found> =>
    new Promise((resolve, reject) => {
      const look = () => {
        const found = find();
        if (found === undefined) return;
        waiting.delete(look);
        resolve(found);
      };
      waiting.add(look);
      look();
      void ended.then(({ code }) =>
        reject(new Error(`the server ended with code ${code} before that: ${error || JSON.stringify(log.at(-1))}`)),
      );
    });
  const logged = (message: RegExp) => until(() => log.find(({ msg }) => message.test(msg)));
  await until(() => baseUrl || undefined);
  if (Number(env.WORKERS ?? 1) > 1) await logged(/^all workers are ready/);
  return {
    ...{ baseUrl, child, log, logged, ended },
    stop: () => {
      child.kill("SIGTERM");
      return ended;
    },
  };
}
