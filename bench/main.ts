/**
 * Sluice beside a bare pass-through and another gateway, under the same load on the same machine (docs/performance.md).
 *
 *   npm run bench
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
import {
  barePassThrough,
  buildPrograms,
  type Contender,
  installPortkey,
  portkey,
  sluiceEmbedded,
  sluiceOnPostgres,
  upstreamAlone,
} from "./contenders.js";
import { checkTargets, loadTable, memoryTable, rateTable } from "./report.js";
import { checkSandbox, measureSandbox, sandboxTable } from "./sandbox.js";
import { measureLoad, measureMemory, measureRate, type Settings } from "./scenarios.js";
import { WORKLOADS, type Workload } from "./support/documents.js";
import { chooseLoadGenerator } from "./support/load.js";
import { checkUploads, measureUploads, uploadTable } from "./uploads.js";

const MEASUREMENTS = ["json", "sse", "image", "speech", "rate", "memory", "uploads", "sandbox"] as const;
const TITLES: Record<Workload, string> = {
  json: "JSON chat",
  sse: "SSE chat, 20 chunks",
  image: "Pictures of 1 MB as base64 in JSON",
  speech: "Speech of 1 MB",
};
/** A typical model's time before it answers, beside an upstream that answers at once. */
const RATE_DELAYS_MS = [0, 20];

const { values } = parseArgs({
  options: {
    only: { type: "string", default: MEASUREMENTS.join(",") },
    database: { type: "string", default: "embedded,postgres" },
    peers: { type: "string", default: "portkey" },
    seconds: { type: "string", default: "5" },
    rounds: { type: "string", default: "3" },
    connections: { type: "string", default: "32" },
    rate: { type: "string", default: "200" },
    streams: { type: "string", default: "1000" },
    /** On PostgreSQL, a contender for each of these numbers; all serve one account. */
    workers: { type: "string", default: "1" },
    /** Another checkout with its packages installed, to be measured in the same run. */
    before: { type: "string" },
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
  const only = chosen(values.only, MEASUREMENTS);
  await buildPrograms();
  const settings: Settings = {
    directory,
    contenders: chooseContenders(),
    generator: await chooseLoadGenerator(directory),
    rounds: positive("rounds", values.rounds),
    seconds: positive("seconds", values.seconds),
    connections: positive("connections", values.connections),
    requestsPerSecond: positive("rate", values.rate),
    slowStreams: positive("streams", values.streams),
    complain: (problem) => problems.push(problem),
  };
  const model = cpus()[0]?.model ?? "unknown processor";
  console.log(`${cpus().length} x ${model}, Node ${process.version}, load by ${settings.generator.name}`);
  console.log(`${settings.rounds} rounds of ${settings.seconds} s each, medians\n`);

  for (const workload of WORKLOADS) {
    if (!only.includes(workload)) continue;
    const isMedia = workload === "image" || workload === "speech";
    const contenders = settings.contenders.filter(({ id }) => !isMedia || id !== "portkey");
    const outcomes = await measureLoad({ ...settings, contenders }, workload);
    print(`${TITLES[workload]}, ${settings.connections} connections`, loadTable(outcomes));
    if (workload === "json") console.log(checkTargets.json(outcomes));
    if (isMedia) console.log(checkTargets.media(outcomes));
  }
  if (only.includes("rate")) {
    for (const delayMs of RATE_DELAYS_MS) {
      const outcomes = await measureRate(settings, delayMs);
      const answering = delayMs === 0 ? "at once" : `after ${delayMs} ms`;
      print(`JSON chat at ${settings.requestsPerSecond} requests a second, upstream answering ${answering}`, rateTable(outcomes));
      console.log(checkTargets.rate(outcomes));
    }
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

function chooseContenders(): readonly Contender[] {
  const databases = chosen(values.database, ["embedded", "postgres"]);
  const contenders = [upstreamAlone, barePassThrough];
  if (databases.includes("embedded")) contenders.push(sluiceEmbedded);
  if (databases.includes("postgres")) {
    const counts = values.workers.split(",").map((count) => positive("workers", count));
    const onPostgres = counts.flatMap((workers) => sluiceOnPostgres({ workers }) ?? []);
    contenders.push(...onPostgres);
    if (onPostgres.length === 0) console.log("PostgreSQL is not installed, so Sluice is measured on the embedded database only.");
  }
  const before = values.before === undefined ? null : sluiceOnPostgres({ checkout: resolve(values.before) });
  if (before) contenders.push(before);
  if (chosen(values.peers, ["portkey", "none"]).includes("portkey") && installPortkey()) contenders.push(portkey);
  return contenders;
}

function chosen(list: string, allowed: readonly string[]): readonly string[] {
  const names = list.split(",").filter(Boolean);
  for (const name of names) if (!allowed.includes(name)) throw new Error(`"${name}" is not one of ${allowed.join(", ")}.`);
  return names;
}

function positive(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new Error(`--${name} must be a whole number of 1 or more.`);
  return value;
}

function print(title: string, table: string): void {
  console.log(`\n## ${title}\n\n${table}\n`);
}
