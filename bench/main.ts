/**
 * Sluice beside a bare pass-through and another gateway, under the same load on the same machine (docs/performance.md).
 *
 *   npm run bench
 *   npm run bench -- --quick
 *   npm run bench -- --only json,sse --seconds 10 --rounds 5 --database postgres
 *   npm run bench -- --only json,sse --database postgres --peers none --before ../another-checkout
 *   npm run bench -- --only json --database postgres --peers none --workers 1,2,4
 *
 * All contenders of a measurement run at the same time and are driven in turn, round after round; every figure is the
 * median of the rounds and every ratio the median of the ratios of a round, so that a machine whose speed drifts cancels out.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { barePassThrough, buildPrograms, type Contender, sluiceEmbedded, sluiceOnPostgres, upstreamAlone } from "./contenders.js";
import { choosePeers, PEERS } from "./peers.js";
import { checkPrompts, measurePrompts, PROMPT_CHARS, promptsTable } from "./prompts.js";
import { checkTargets, loadTable, memoryTable, rateTable } from "./report.js";
import { checkSandbox, measureSandbox, sandboxTable } from "./sandbox.js";
import { type Load, measureLoads, measureMemory, measureRate, type Settings } from "./scenarios.js";
import { WORKLOADS, type Workload } from "./support/documents.js";
import { chooseLoadGenerator } from "./support/load.js";
import { checkUploads, measureUploads, uploadTable } from "./uploads.js";

const MEASUREMENTS = ["json", "sse", "image", "speech", "rate", "prompts", "memory", "uploads", "sandbox"] as const;
const TITLES: Record<Workload, string> = {
  json: "JSON chat",
  sse: "SSE chat, 20 chunks",
  image: "Pictures of 1 MB as base64 in JSON",
  speech: "Speech of 1 MB",
};
/** A typical model's time before it answers, beside an upstream that answers at once. */
const RATE_DELAYS_MS = [0, 20];

const DEFAULTS = {
  only: MEASUREMENTS.join(","),
  database: "embedded,postgres",
  peers: PEERS.map(({ id }) => id).join(","),
  seconds: "5",
  rounds: "3",
  connections: "32,256",
  rate: "200",
  streams: "1000",
  /** On PostgreSQL, a contender for each of these numbers; all serve one account. */
  workers: "1",
};
/** What `--quick` says unless the command line says something else: about a minute in all. */
const QUICK: Partial<typeof DEFAULTS> = { only: "json,sse", database: "postgres", peers: "none", seconds: "2", rounds: "2" };
/** Rounds of two seconds are too short to warm up in. */
const QUICK_WARM_UP_SECONDS = 3;

const { values } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    only: { type: "string" },
    database: { type: "string" },
    peers: { type: "string" },
    seconds: { type: "string" },
    rounds: { type: "string" },
    connections: { type: "string" },
    rate: { type: "string" },
    streams: { type: "string" },
    workers: { type: "string" },
    /** Another checkout with its packages installed, to be measured in the same run. */
    before: { type: "string" },
    /** Measures the gateway without its fast paths, too. */
    plain: { type: "boolean", default: false },
  },
});

const directory = mkdtempSync(join(tmpdir(), "sluice-bench-"));
const problems: string[] = [];
try {
  await run();
} finally {
  rmSync(directory, { recursive: true, force: true });
}
for (const problem of problems) console.error(`PROBLEM: ${problem}`);
if (problems.length > 0) {
  console.error("The figures above are not to be trusted.");
  process.exitCode = 1;
}

async function run(): Promise<void> {
  const only = chosen(option("only"), MEASUREMENTS);
  const connections = numbers("connections");
  const seconds = positive("seconds", option("seconds"));
  await buildPrograms();
  const settings: Settings = {
    directory,
    contenders: chooseContenders(),
    generator: await chooseLoadGenerator(directory),
    rounds: positive("rounds", option("rounds")),
    seconds,
    warmUpSeconds: values.quick ? Math.max(seconds, QUICK_WARM_UP_SECONDS) : seconds,
    requestsPerSecond: positive("rate", option("rate")),
    slowStreams: positive("streams", option("streams")),
    complain: (problem) => problems.push(problem),
  };
  const model = cpus()[0]?.model ?? "unknown processor";
  console.log(`${cpus().length} x ${model}, Node ${process.version}, load by ${settings.generator.name}`);
  console.log(`${settings.rounds} rounds of ${settings.seconds} s each, medians\n`);

  const workloads = WORKLOADS.filter((workload) => only.includes(workload));
  // Contenders start again for each workload, so that they do not carry the load of the one before; a quick run starts
  // them once, because starting takes longer than its loads.
  const groups = values.quick ? [workloads] : workloads.map((workload) => [workload]);
  for (const group of groups) await runLoads(settings, group, connections);
  if (only.includes("rate")) {
    for (const delayMs of RATE_DELAYS_MS) {
      const outcomes = await measureRate(settings, delayMs);
      const answering = delayMs === 0 ? "at once" : `after ${delayMs} ms`;
      print(`JSON chat at ${settings.requestsPerSecond} requests a second, upstream answering ${answering}`, rateTable(outcomes));
      console.log(checkTargets.rate(outcomes, delayMs));
    }
  }
  if (only.includes("prompts")) {
    const outcomes = await measurePrompts({ ...settings, contenders: withoutPeers(settings.contenders) });
    const title = `JSON chat at ${settings.requestsPerSecond} requests a second beside a caller of prompts of ${PROMPT_CHARS / 1_000} kB`;
    print(title, promptsTable(outcomes));
    console.log(checkPrompts(outcomes));
  }
  if (only.includes("memory")) {
    const outcomes = await measureMemory(settings);
    print(`${settings.slowStreams} concurrent SSE streams of 20 chunks, one each 500 ms`, memoryTable(outcomes));
    console.log(checkTargets.memory(outcomes));
  }
  if (only.includes("uploads")) {
    const outcomes = await measureUploads(settings);
    print("100 uploads of 10 MiB at once", uploadTable(outcomes));
    console.log(checkUploads(outcomes));
  }
  if (only.includes("sandbox")) {
    const outcomes = await measureSandbox(settings);
    print(`JSON chat at ${settings.requestsPerSecond} requests a second beside hostile agents`, sandboxTable(outcomes));
    console.log(checkSandbox(outcomes));
  }
}

async function runLoads(settings: Settings, workloads: readonly Workload[], connections: readonly number[]): Promise<void> {
  const loads: Load[] = workloads.flatMap((workload) => {
    const isEach = workload === "json" || (workload === "sse" && !values.quick);
    return connections.slice(0, isEach ? undefined : 1).map((count) => ({ workload, connections: count }));
  });
  if (loads.length === 0) return;
  const isMedia = workloads.some((workload) => workload === "image" || workload === "speech");
  const contenders = isMedia ? withoutPeers(settings.contenders) : settings.contenders;
  const outcomes = await measureLoads({ ...settings, contenders }, loads);
  for (const [index, load] of loads.entries()) {
    const ofLoad = outcomes[index] ?? [];
    print(`${TITLES[load.workload]}, ${load.connections} connections`, loadTable(ofLoad));
    console.log(checkTargets.load(ofLoad, load));
  }
}

function chooseContenders(): readonly Contender[] {
  const databases = chosen(option("database"), ["embedded", "postgres"]);
  // The time that a contender adds is measured against the upstream alone.
  const isUpstreamLeftOut = values.quick && !option("only").includes("rate");
  const contenders = isUpstreamLeftOut ? [barePassThrough] : [upstreamAlone, barePassThrough];
  if (databases.includes("embedded")) contenders.push(sluiceEmbedded);
  if (databases.includes("postgres")) {
    const onPostgres = numbers("workers").flatMap((workers) => sluiceOnPostgres({ workers }) ?? []);
    contenders.push(...onPostgres);
    if (onPostgres.length === 0) {
      console.log("PostgreSQL is not installed, so Sluice is measured on the embedded database only.");
      if (!databases.includes("embedded")) contenders.push(sluiceEmbedded);
    }
  }
  const before = values.before === undefined ? null : sluiceOnPostgres({ checkout: resolve(values.before) });
  if (before) contenders.push(before);
  const plain = values.plain ? sluiceOnPostgres({ isPlain: true }) : null;
  if (plain) contenders.push(plain);
  contenders.push(...choosePeers(chosen(option("peers"), [...PEERS.map(({ id }) => id), "none"])));
  return contenders;
}

function withoutPeers(contenders: readonly Contender[]): readonly Contender[] {
  return contenders.filter(({ id }) => !PEERS.some((peer) => peer.id === id));
}

function option(name: keyof typeof DEFAULTS): string {
  return values[name] ?? (values.quick ? QUICK[name] : undefined) ?? DEFAULTS[name];
}

/** A list of whole numbers, each once. */
function numbers(name: "connections" | "workers"): readonly number[] {
  return [...new Set(option(name).split(","))].map((text) => positive(name, text));
}

function chosen(list: string, allowed: readonly string[]): readonly string[] {
  const names = list.split(",").filter(Boolean);
  for (const name of names) if (!allowed.includes(name)) throw new Error(`"${name}" is not one of ${allowed.join(", ")}.`);
  return names;
}

function positive(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new Error(`--${name} takes whole numbers of 1 or more.`);
  return value;
}

function print(title: string, table: string): void {
  console.log(`\n## ${title}\n\n${table}\n`);
}
