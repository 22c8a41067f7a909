/** The contenders: each in a process of its own, in front of the same upstream, answering the same request. */
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { build, stop } from "esbuild";
import { request } from "undici";
import { createApiKeyText } from "../src/lib/api-key-format.js";
import { type Books, readBooks } from "./support/books.js";
import { pathOf, requestBody, SLUICE_PREFIX, UPSTREAM_PREFIX, type Workload } from "./support/documents.js";
import { type Flushes, readFlushes, readLagMs } from "./support/flushes.js";
import type { Target } from "./support/load.js";
import { MESSAGES_MODEL } from "./support/messages.js";
import { findPostgres, startPostgres } from "./support/postgres.js";
import {
  childrenOf,
  cpuMicroseconds,
  freePort,
  hasEnded,
  killTree,
  type Started,
  startProcess,
  stopProcess,
  waitForHttp,
  waitForPort,
  waitUntil,
} from "./support/process.js";

export interface Running {
  readonly name: string;
  readonly pid: number;
  /** Processor time from the start until it was ready; absent where it is not measured. */
  readonly startCpuMicroseconds?: number | null;
  /** The database server beside it, when it is a process of its own. */
  readonly databasePid: number | null;
  target(workload: Workload): Target;
  /** What its flushes have taken since it started; null for a contender that has none. */
  flushes(): Promise<Flushes | null>;
  /** How late its event loop was at most since this was last asked, in milliseconds; null of a contender that does not tell. */
  lagMs(): Promise<number | null>;
  /** Stops it. A contender that keeps books answers with them; the others with null. */
  stop(): Promise<Books | null>;
}

/** Other gateways. */
export type PeerId = "portkey" | "litellm" | "one-api";

export interface Contender {
  readonly id: "upstream" | "bare" | "sluice" | "sluice-postgres" | `sluice-postgres-${number}` | "before" | "plain" | PeerId;
  readonly name: string;
  /** How many processes share its load: each has to be warmed up. */
  readonly workers?: number;
  /** `directory` is empty and the contender's own. */
  start(directory: string, upstreamPort: number): Promise<Running>;
}

export interface UpstreamOptions {
  readonly chunks: number;
  readonly paceMs: number;
  readonly delayMs: number;
}

export interface Upstream {
  readonly port: number;
  stop(): Promise<void>;
}

export const projectRoot = process.cwd();
/** Below the project, so that the programs find its packages. */
const programs = join(projectRoot, "node_modules", ".cache", "sluice", "bench");

/** Bundles the programs of this folder that run as processes of their own, without anything that would weigh on them. */
export async function buildPrograms(): Promise<void> {
  await build({
    entryPoints: ["upstream.ts", "passthrough.ts", "prompter.ts"].map((file) => join(projectRoot, "bench", file)),
    outdir: programs,
    bundle: true,
    packages: "external",
    platform: "node",
    target: "node20",
    format: "esm",
    logLevel: "warning",
  });
  await stop();
}

export async function startUpstream(directory: string, options: UpstreamOptions): Promise<Upstream> {
  const args = ["--chunks", String(options.chunks), "--pace", String(options.paceMs), "--delay", String(options.delayMs)];
  const started = startProgram("upstream", args, directory);
  return { port: await waitForPort(started, "The upstream"), stop: () => stopProcess(started) };
}

/** No gateway at all: what the load generator and the upstream are good for, the bound of every other figure. */
export const upstreamAlone: Contender = {
  id: "upstream",
  name: "upstream alone",
  start: async (_directory, upstreamPort) => ({
    name: upstreamAlone.name,
    pid: 0,
    databasePid: null,
    target: (workload) => toTarget(upstreamPort, UPSTREAM_PREFIX, workload, { authorization: "Bearer bench" }),
    flushes: async () => null,
    lagMs: async () => null,
    stop: async () => null,
  }),
};

export const barePassThrough: Contender = {
  id: "bare",
  name: "bare node:http + undici",
  start: async (directory, upstreamPort) => {
    const started = startProgram("passthrough", ["--upstream", `http://127.0.0.1:${upstreamPort}`], directory);
    const port = await waitForPort(started, "The pass-through");
    return {
      name: barePassThrough.name,
      pid: started.pid,
      startCpuMicroseconds: cpuMicroseconds(started.pid),
      databasePid: null,
      target: (workload) => toTarget(port, UPSTREAM_PREFIX, workload, { authorization: "Bearer bench" }),
      flushes: async () => null,
      lagMs: async () => null,
      stop: async () => {
        await stopProcess(started);
        return null;
      },
    };
  },
};

export const sluiceEmbedded: Contender = {
  id: "sluice",
  name: "Sluice, embedded database",
  start: async (directory, upstreamPort) => {
    const gateway = await startSluiceAgain({ directory, upstreamPort });
    return { ...gateway, name: sluiceEmbedded.name, databasePid: null };
  },
};

/**
 * `checkout` is another one of the project, with its packages installed. `isPlain`: with FAST_PATHS=off. Null when PostgreSQL is not
 * installed.
 */
export function sluiceOnPostgres({ checkout = projectRoot, workers = 1, isPlain = false } = {}): Contender | null {
  const binaries = findPostgres();
  if (binaries === null) return null;
  const isThisOne = checkout === projectRoot;
  const name = `Sluice${isThisOne ? "" : " before"}${isPlain ? " without fast paths" : ""}, PostgreSQL${workers === 1 ? "" : `, ${workers} workers`}`;
  return {
    id: isPlain ? "plain" : !isThisOne ? "before" : workers === 1 ? "sluice-postgres" : `sluice-postgres-${workers}`,
    name,
    workers,
    start: async (directory, upstreamPort) => {
      const postgres = await startPostgres(binaries);
      const environment: Record<string, string> = isPlain ? { FAST_PATHS: "off" } : {};
      const options = { directory, upstreamPort, checkout, workers, databaseUrl: postgres.url(), environment };
      const gateway = await startSluiceAgain(options).catch(async (error: unknown) => {
        await postgres.stop();
        throw error;
      });
      return {
        ...gateway,
        name,
        databasePid: postgres.pid,
        stop: async () => {
          const books = await gateway.stop();
          await postgres.stop();
          return books;
        },
      };
    },
  };
}

export interface SluiceOptions {
  readonly directory: string;
  readonly upstreamPort: number;
  /** Absent: this one. */
  readonly checkout?: string;
  /** Absent: the embedded database. */
  readonly databaseUrl?: string;
  /** Absent: one process. */
  readonly workers?: number;
  readonly ownerKey?: string;
  readonly environment?: Readonly<Record<string, string>>;
}

export interface Sluice extends Omit<Running, "name" | "databasePid"> {
  readonly port: number;
  readonly ownerKey: string;
  /** Where its log goes. */
  readonly logFile: string;
  /** The processes of its workers; itself when it has none. */
  workerPids(): readonly number[];
  /** Resolves when as many workers serve as are wanted. */
  whenWhole(): Promise<unknown>;
  /** SIGKILL to it and all it started; resolves when they are gone. */
  kill(): Promise<void>;
  /** An orderly stop that leaves the books unread. */
  shutDown(): Promise<void>;
}

/** A first start, which builds and makes the database, then the one that is measured: as it runs every day but the first. */
async function startSluiceAgain(options: SluiceOptions): Promise<Sluice> {
  const first = await startSluice(options);
  await first.shutDown();
  return startSluice({ ...options, ownerKey: first.ownerKey });
}

/** Sluice as an operator starts it, every answer checked, held, metered, charged and durable. A restart on the same directory goes on with its data. */
export async function startSluice(options: SluiceOptions): Promise<Sluice> {
  const { directory, upstreamPort, databaseUrl, workers = 1, checkout = projectRoot, ownerKey = createApiKeyText("sk") } = options;
  const port = await freePort();
  const dataDirectory = join(directory, "data");
  const modelsFile = join(directory, "models.json");
  writeFileSync(modelsFile, JSON.stringify(toCatalog(upstreamPort)));
  const environment = {
    ...inheritedEnvironment(),
    NODE_ENV: "production",
    HOST: "127.0.0.1",
    PORT: String(port),
    DATA_DIR: dataDirectory,
    MODELS_FILE: modelsFile,
    UPSTREAM_ALLOW_HOSTS: "127.0.0.1",
    OWNER_API_KEY: ownerKey,
    OWNER_CREDITS: "1000000",
    ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
    ...(workers === 1 ? {} : { WORKERS: String(workers) }),
    ...options.environment,
  };
  const started = startProcess(
    process.execPath,
    ["--max-semi-space-size=32", join(checkout, "scripts", "start.mjs")],
    join(directory, "sluice.log"),
    {
      env: environment,
      cwd: checkout,
    },
  );
  await waitForHttp(started, "Sluice", `http://127.0.0.1:${port}/readyz`);
  const startCpuMicroseconds = cpuMicroseconds(started.pid);
  if (workers > 1) await waitForWorkers(started, port, workers);
  return {
    port,
    ownerKey,
    pid: started.pid,
    startCpuMicroseconds,
    logFile: started.logFile,
    workerPids: () => (workers === 1 ? [started.pid] : childrenOf(started.pid)),
    whenWhole: async () => workers === 1 || waitForWorkers(started, port, workers),
    target: (workload) => toTarget(port, SLUICE_PREFIX, workload, { authorization: `Bearer ${ownerKey}` }),
    flushes: () => readFlushes(port),
    lagMs: () => readLagMs(port),
    kill: async () => {
      if (hasEnded(started.child)) return;
      const ended = once(started.child, "exit");
      killTree(started.pid);
      await ended;
    },
    shutDown: () => stopProcess(started),
    stop: async () => {
      await stopProcess(started);
      return readBooks({ dataDirectory, databaseUrl: databaseUrl ?? null });
    },
  };
}

const WORKERS_START_MS_MAX = 120_000;

/** Resolves when so many workers serve behind the port. A connection to one that has just been killed breaks, which only means to ask again. */
function waitForWorkers(started: Started, port: number, workers: number): Promise<true> {
  return waitUntil(started, "The last worker", WORKERS_START_MS_MAX, async () => {
    try {
      const { body } = await request(`http://127.0.0.1:${port}/metrics`);
      const [, ready] = /^sluice_workers_ready (\d+)$/m.exec(await body.text()) ?? [];
      return Number(ready) === workers ? true : undefined;
    } catch {
      return undefined;
    }
  });
}

/** `log` is the name of its log, unless it is the program's. */
export function startProgram(name: string, args: readonly string[], directory: string, log = name): Started {
  return startProcess(process.execPath, [join(programs, `${name}.js`), ...args], join(directory, `${log}.log`));
}

export function toTarget(port: number, modelPrefix: string, workload: Workload, headers: Record<string, string>): Target {
  const allHeaders = { "content-type": "application/json", ...headers };
  return { url: `http://127.0.0.1:${port}${pathOf(workload)}`, headers: allHeaders, body: requestBody(workload, modelPrefix) };
}

function toCatalog(upstreamPort: number): object {
  const model = (name: string, modality: string, prices: object) => ({
    id: `${SLUICE_PREFIX}${name}`,
    modality,
    upstream: "bench",
    upstreamModel: `${UPSTREAM_PREFIX}${name}`,
    title: `Bench ${name}`,
    default: true,
    prices,
  });
  const chatPrices = { promptTextPrice: "0.00000015", promptCachedPrice: "0.000000075", completionTextPrice: "0.0000006" };
  return {
    upstreams: [
      { id: "bench", wireFormat: "openai", baseUrl: `http://127.0.0.1:${upstreamPort}/v1`, apiKey: "bench" },
      { id: "bench-messages", wireFormat: "ai-sdk:anthropic", baseUrl: `http://127.0.0.1:${upstreamPort}/v1`, apiKey: "bench" },
    ],
    models: [
      { ...model("chat", "text", chatPrices), contextLength: 128_000 },
      { ...model(MESSAGES_MODEL, "text", chatPrices), default: false, upstream: "bench-messages", contextLength: 128_000 },
      model("image", "image", { completionImagePrice: "0.0001" }),
      model("speech", "speech", { completionAudioPrice: "0.000001" }),
    ],
  };
}

/** Only what a program needs to run: a vendor's key in the caller's shell would change the catalog. */
export function inheritedEnvironment(): Record<string, string> {
  const names = ["PATH", "HOME", "LANG", "TMPDIR", "SystemRoot"];
  return Object.fromEntries(names.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])));
}
