/**
 * The other gateways, each installed on first use below bench/peers at a version of its own, and with keys and quotas on where it has them.
 * One that cannot be installed here is left out, and said so.
 */
import { type SpawnSyncOptions, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { request } from "undici";
import { type Contender, inheritedEnvironment, type PeerId, projectRoot, type Running, toTarget } from "./contenders.js";
import { UPSTREAM_PREFIX } from "./support/documents.js";
import { freePort, killTree, type Started, startProcess, stopProcess, waitForHttp } from "./support/process.js";

export interface Peer extends Contender {
  readonly id: PeerId;
  /** In the heads of the tables. */
  readonly shortName: string;
  /** What must be there before it can start. */
  readonly program: string;
  /** Puts it there. Throws with the reason when that is not possible. */
  install(): void;
}

const peersDirectory = join(projectRoot, "bench", "peers");
const installed = join(peersDirectory, ".cache");
const START_MS_MAX = 300_000;

const portkey: Peer = {
  id: "portkey",
  name: "@portkey-ai/gateway 1.15.2",
  shortName: "Portkey",
  program: join(peersDirectory, "node_modules", "@portkey-ai", "gateway", "build", "start-server.js"),
  install: () => void run("npm", ["ci", "--no-audit", "--no-fund"], { cwd: peersDirectory }),
  start: async (directory, upstreamPort) => {
    const port = await freePort();
    const args = [portkey.program, "--headless", `--port=${port}`];
    const env = { ...process.env, NODE_ENV: "production" };
    const started = startProcess(process.execPath, args, join(directory, "portkey.log"), { env, cwd: directory });
    await waitForHttp(started, portkey.name, `http://127.0.0.1:${port}/`);
    return toRunning(portkey, started, port, {
      authorization: "Bearer bench",
      "x-portkey-provider": "openai",
      "x-portkey-custom-host": `http://127.0.0.1:${upstreamPort}/v1`,
    });
  },
};

const LITELLM_VERSION = "1.106.2";
const litellmDirectory = join(installed, "litellm");

/** Keys of its own, with budgets, it has only with a database, whose client fetches a program when it is installed; its master key needs none. */
const litellm: Peer = {
  id: "litellm",
  name: `LiteLLM ${LITELLM_VERSION}, master key, no database`,
  shortName: "LiteLLM",
  program: join(litellmDirectory, "bin", "litellm"),
  install: () => {
    run("python3", ["-m", "venv", litellmDirectory]);
    run(join(litellmDirectory, "bin", "pip"), ["install", "--quiet", `litellm[proxy]==${LITELLM_VERSION}`]);
  },
  start: async (directory, upstreamPort) => {
    const port = await freePort();
    const key = `sk-${randomBytes(16).toString("hex")}`;
    const served = { model: `openai/${UPSTREAM_PREFIX}chat`, api_base: `http://127.0.0.1:${upstreamPort}/v1`, api_key: "bench" };
    const config = {
      model_list: [{ model_name: `${UPSTREAM_PREFIX}chat`, litellm_params: served }],
      general_settings: { master_key: key },
    };
    // YAML takes JSON as it is.
    writeFileSync(join(directory, "config.yaml"), JSON.stringify(config));
    const args = ["--config", "config.yaml", "--host", "127.0.0.1", "--port", String(port), "--num_workers", "1", "--telemetry", "False"];
    const env = { ...inheritedEnvironment(), LITELLM_MODE: "PRODUCTION", LITELLM_LOG: "ERROR", LITELLM_LOCAL_MODEL_COST_MAP: "True" };
    const started = startProcess(litellm.program, args, join(directory, "litellm.log"), { env, cwd: directory });
    await waitForHttp(started, litellm.name, `http://127.0.0.1:${port}/health/liveliness`, START_MS_MAX);
    return toRunning(litellm, started, port, { authorization: `Bearer ${key}` });
  },
};

const ONE_API = "github.com/songquanpeng/one-api@v0.6.10";
const oneApiDirectory = join(installed, "one-api");
/** Its pages are made by tools of their own, and it does not build without any. */
const ONE_API_THEMES = ["default", "berry", "air"];

const oneApi: Peer = {
  id: "one-api",
  name: "one-api 0.6.10, SQLite, token with quota",
  shortName: "one-api",
  program: join(oneApiDirectory, "one-api"),
  install: () => {
    mkdirSync(oneApiDirectory, { recursive: true });
    const { Dir: module } = JSON.parse(run("go", ["mod", "download", "-json", ONE_API])) as { readonly Dir: string };
    const source = join(oneApiDirectory, "source");
    cpSync(module, source, { recursive: true });
    // What Go has downloaded cannot be written to.
    run("chmod", ["-R", "u+w", source]);
    for (const theme of ONE_API_THEMES) {
      const pages = join(source, "web", "build", theme);
      mkdirSync(pages, { recursive: true });
      writeFileSync(join(pages, "index.html"), "<!doctype html><title>one-api</title>\n");
    }
    run("go", ["build", "-o", oneApi.program, "."], { cwd: source, env: { ...process.env, CGO_ENABLED: "1" } });
  },
  start: async (directory, upstreamPort) => {
    const port = await freePort();
    const accessToken = randomBytes(16).toString("hex");
    const env = {
      ...inheritedEnvironment(),
      GIN_MODE: "release",
      INITIAL_ROOT_ACCESS_TOKEN: accessToken,
      SQLITE_PATH: join(directory, "one-api.db"),
      ...encodingsOfLitellm(),
    };
    const args = ["--port", String(port), "--log-dir", join(directory, "logs")];
    const started = startProcess(oneApi.program, args, join(directory, "one-api.log"), { env, cwd: directory });
    await waitForHttp(started, oneApi.name, `http://127.0.0.1:${port}/api/status`, START_MS_MAX);
    try {
      const ask = (path: string, body: object) => administer(`http://127.0.0.1:${port}${path}`, accessToken, body);
      const base_url = `http://127.0.0.1:${upstreamPort}`;
      await ask("/api/channel/", { type: 1, name: "bench", key: "bench", base_url, models: `${UPSTREAM_PREFIX}chat`, group: "default" });
      const { key } = await ask("/api/token/", { name: "bench", remain_quota: 10 ** 12, unlimited_quota: false, expired_time: -1 });
      return toRunning(oneApi, started, port, { authorization: `Bearer sk-${key}` });
    } catch (error) {
      killTree(started.pid);
      throw error;
    }
  },
};

export const PEERS: readonly Peer[] = [portkey, litellm, oneApi];

/** Those of these names that are installed or can be; why another cannot is printed. */
export function choosePeers(names: readonly string[]): readonly Peer[] {
  return PEERS.filter((peer) => names.includes(peer.id) && isInstalled(peer));
}

function isInstalled({ id, name, program, install }: Peer): boolean {
  if (existsSync(program)) return true;
  console.log(`Installing ${name} below bench/peers ...`);
  try {
    install();
    return existsSync(program);
  } catch (error) {
    console.log(`${name} cannot be installed, so it is left out: ${error instanceof Error ? error.message : String(error)}`);
    // A half of it would look like all of it.
    rmSync(join(installed, id), { recursive: true, force: true });
    return false;
  }
}

/** Returns the output. Throws with the end of the error output. */
function run(command: string, args: readonly string[], options: SpawnSyncOptions = {}): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { ...options, encoding: "utf8" });
  if (error) throw new Error(`${command} cannot be run (${error.message}).`);
  if (status !== 0) throw new Error(`${command} ${args[0]} failed:\n${String(stderr).trim().slice(-1_000)}`);
  return String(stdout);
}

/** It counts tokens with encodings that it fetches when it starts, unless they are here: LiteLLM brings the same ones along. */
function encodingsOfLitellm(): Record<string, string> {
  const script = "import litellm.litellm_core_utils.tokenizers as it; print(list(it.__path__)[0])";
  const { status, stdout } = spawnSync(join(litellmDirectory, "bin", "python"), ["-c", script], { encoding: "utf8" });
  return status === 0 ? { TIKTOKEN_CACHE_DIR: stdout.trim() } : {};
}

/** What one-api's own API answers as `data`. */
async function administer(url: string, accessToken: string, body: object): Promise<{ readonly key?: string }> {
  const headers = { authorization: accessToken, "content-type": "application/json" };
  const answer = await request(url, { method: "POST", headers, body: JSON.stringify(body) });
  const said = (await answer.body.json()) as { success: boolean; message: string; data?: { readonly key?: string } };
  if (!said.success) throw new Error(`one-api refused ${url}: ${said.message}`);
  return said.data ?? {};
}

function toRunning({ name }: Peer, started: Started, port: number, headers: Record<string, string>): Running {
  return {
    name,
    pid: started.pid,
    databasePid: null,
    target: (workload) => toTarget(port, UPSTREAM_PREFIX, workload, headers),
    flushes: async () => null,
    lagMs: async () => null,
    stop: async () => {
      await stopProcess(started);
      return null;
    },
  };
}
