/** The four measurements. Each starts fresh contenders in front of a fresh upstream, stops them, and looks at their books. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { request } from "undici";
import { type Contender, type Running, startUpstream, type UpstreamOptions } from "./contenders.js";
import { MP3_START, mediaBytes, PNG_START, type Workload } from "./support/documents.js";
import { type Flushes, flushesBetween } from "./support/flushes.js";
import type { LoadGenerator } from "./support/load.js";
import { runAtFixedRate } from "./support/open-loop.js";
import { cpuMicroseconds, memory, resetPeakMemory } from "./support/process.js";
import { runSlowStreams } from "./support/slow-streams.js";

const STREAM_CHUNKS = 20;
const SLOW_STREAM_PACE_MS = 500;
const SLOW_STREAM_RAMP_MS = 3_000;
const MEMORY_SAMPLE_MS = 250;
/** Between two rounds, so that one contender's leftovers (commits, collections) are not the next one's load. */
const REST_MS = 300;

export interface Settings {
  readonly directory: string;
  readonly contenders: readonly Contender[];
  readonly generator: LoadGenerator;
  readonly rounds: number;
  readonly seconds: number;
  /** Length of the warm-up of a load, for each worker. */
  readonly warmUpSeconds: number;
  readonly requestsPerSecond: number;
  readonly slowStreams: number;
  /** Told of everything that makes a figure worthless: failed answers, books that do not agree. */
  readonly complain: (problem: string) => void;
}

export interface Round {
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Null where there is no /proc. */
  readonly cpuMicroseconds: number | null;
  readonly databaseCpuMicroseconds: number | null;
  /** Null of a contender that has none. */
  readonly flushes: Flushes | null;
}

/** As many callers as there are connections, who ask for the same again as soon as they are answered. */
export interface Load {
  readonly workload: Workload;
  readonly connections: number;
}

export interface LoadOutcome {
  readonly contender: Contender;
  readonly rounds: readonly Round[];
  readonly peakMb: number | null;
}

/** The loads one after the other, on the same contenders: how many requests each gets answered. The outcomes come in the loads' order. */
export async function measureLoads(settings: Settings, loads: readonly Load[]): Promise<readonly (readonly LoadOutcome[])[]> {
  const upstreamOptions = { chunks: STREAM_CHUNKS, paceMs: 0, delayMs: 0 };
  const workloads = [...new Set(loads.map(({ workload }) => workload))];
  return withContenders(settings, upstreamOptions, workloads, async (entries) => {
    const outcomes: (readonly LoadOutcome[])[] = [];
    for (const load of loads) outcomes.push(await measureLoad(settings, entries, load));
    return outcomes;
  });
}

async function measureLoad(settings: Settings, entries: readonly Entry[], load: Load): Promise<readonly LoadOutcome[]> {
  for (const entry of entries) {
    if (entry.running.pid !== 0) resetPeakMemory(entry.running.pid);
    const warmUps = entry.contender.workers ?? 1;
    for (let round = 0; round < warmUps; round++) await runRound(settings, entry, load, settings.warmUpSeconds);
  }
  const rounds = entries.map((): Round[] => []);
  for (let round = 0; round < settings.rounds; round++) {
    for (const [index, entry] of entries.entries()) rounds[index]?.push(await runRound(settings, entry, load, settings.seconds));
  }
  return entries.map(({ contender, running }, index) => ({ contender, rounds: rounds[index] ?? [], peakMb: peakOf(running) }));
}

export interface RateOutcome {
  readonly contender: Contender;
  /** Every answer's latency, round by round. */
  readonly rounds: readonly (readonly number[])[];
}

/** A fixed rate far below what any contender can do: what each adds to an answer's latency. */
export async function measureRate(settings: Settings, delayMs: number): Promise<readonly RateOutcome[]> {
  return withContenders(settings, { chunks: STREAM_CHUNKS, paceMs: 0, delayMs }, ["json"], async (entries) => {
    for (const entry of entries) await runRateRound(settings, entry);
    const rounds = entries.map((): (readonly number[])[] => []);
    for (let round = 0; round < settings.rounds; round++) {
      for (const [index, entry] of entries.entries()) rounds[index]?.push(await runRateRound(settings, entry));
    }
    return entries.map(({ contender }, index) => ({ contender, rounds: rounds[index] ?? [] }));
  });
}

export interface MemoryOutcome {
  readonly contender: Contender;
  /** Of the start that was measured, on a database that an earlier start has made. */
  readonly startCpuMicroseconds: number | null;
  readonly idleMb: number | null;
  readonly peakMb: number | null;
  readonly cpuMicroseconds: number | null;
  readonly firstByteMs: readonly number[];
  readonly completed: number;
}

/** Many slow streams at once, one contender after the other, each in a process that has served nothing before. */
export async function measureMemory(settings: Settings): Promise<readonly MemoryOutcome[]> {
  const outcomes: MemoryOutcome[] = [];
  const upstreamOptions = { chunks: STREAM_CHUNKS, paceMs: SLOW_STREAM_PACE_MS, delayMs: 0 };
  for (const contender of settings.contenders.filter(({ id }) => id !== "upstream")) {
    const [outcome] = await withContenders({ ...settings, contenders: [contender] }, upstreamOptions, ["sse"], async ([entry]) =>
      entry === undefined ? [] : [await runSlowStreamsOnce(settings, entry)],
    );
    if (outcome !== undefined) outcomes.push(outcome);
  }
  return outcomes;
}

/** A running contender, and how many answers its books must show. */
export interface Entry {
  readonly contender: Contender;
  readonly running: Running;
  /** Answers that were received whole. */
  completed: number;
  /** Requests with an uncertain charge: a load generator drops its running requests when its time is up. */
  uncertain: number;
}

export async function withContenders<T>(
  settings: Settings,
  options: UpstreamOptions,
  workloads: readonly Workload[],
  measure: (entries: readonly Entry[]) => Promise<T>,
): Promise<T> {
  const directory = join(settings.directory, `run-${Date.now()}`);
  mkdirSync(directory);
  const upstream = await startUpstream(directory, options);
  const entries: Entry[] = [];
  try {
    for (const contender of settings.contenders) {
      const own = join(directory, contender.id);
      mkdirSync(own);
      entries.push({ contender, running: await contender.start(own, upstream.port), completed: 0, uncertain: 0 });
    }
    for (const entry of entries) {
      await probe(entry, workloads);
      if (entry.running.pid !== 0) resetPeakMemory(entry.running.pid);
    }
    return await measure(entries);
  } finally {
    for (const entry of entries) await stopAndCheck(settings, entry);
    await upstream.stop();
  }
}

/** One answer of each kind that is measured, so that a contender that answers nonsense quickly is not. */
async function probe(entry: Entry, workloads: readonly Workload[]): Promise<void> {
  for (const workload of workloads) {
    const { url, headers, body } = entry.running.target(workload);
    const answer = await request(url, { method: "POST", headers: { ...headers }, body });
    const bytes = Buffer.from(await answer.body.arrayBuffer());
    if (answer.statusCode !== 200 || !isWhole(bytes, workload))
      throw new Error(`${entry.contender.name} answered ${answer.statusCode}: ${bytes.toString("utf8", 0, 500)}`);
    entry.completed++;
  }
}

function isWhole(answer: Buffer, workload: Workload): boolean {
  if (workload === "speech") return answer.equals(mediaBytes(MP3_START));
  const text = answer.toString();
  if (workload === "image") return JSON.parse(text).data[0].b64_json === mediaBytes(PNG_START).toString("base64");
  return workload === "sse" ? text.trimEnd().endsWith("data: [DONE]") : text.includes('"finish_reason":"stop"');
}

async function runRound(settings: Settings, entry: Entry, { workload, connections }: Load, seconds: number): Promise<Round> {
  const { running } = entry;
  await sleep(REST_MS);
  const flushesBefore = await running.flushes();
  const cpuBefore = cpuOf(running.pid);
  const databaseCpuBefore = cpuOf(running.databasePid);
  const result = await settings.generator.run(running.target(workload), connections, seconds);
  const [cpuAfter, databaseCpuAfter] = [cpuOf(running.pid), cpuOf(running.databasePid)];
  const flushes = flushesBetween(flushesBefore, await running.flushes());
  const perAnswer = (before: number | null, after: number | null): number | null =>
    before === null || after === null || result.completed === 0 ? null : (after - before) / result.completed;
  if (result.failures > 0) settings.complain(`${entry.contender.name}: ${result.failures} requests failed.`);
  entry.completed += result.completed;
  entry.uncertain += connections + result.failures;
  return {
    requestsPerSecond: result.completed / result.seconds,
    p50Ms: result.p50Ms,
    p99Ms: result.p99Ms,
    cpuMicroseconds: perAnswer(cpuBefore, cpuAfter),
    databaseCpuMicroseconds: perAnswer(databaseCpuBefore, databaseCpuAfter),
    flushes,
  };
}

export async function runRateRound(settings: Settings, entry: Entry): Promise<readonly number[]> {
  await sleep(REST_MS);
  const result = await runAtFixedRate(entry.running.target("json"), settings.requestsPerSecond, settings.seconds);
  if (result.failures > 0) settings.complain(`${entry.contender.name}: ${result.failures} requests failed.`);
  entry.completed += result.latenciesMs.length;
  return result.latenciesMs;
}

async function runSlowStreamsOnce(settings: Settings, entry: Entry): Promise<MemoryOutcome> {
  const { contender, running } = entry;
  await sleep(1_000);
  const idleMb = memory(running.pid)?.residentMb ?? null;
  const cpuBefore = cpuOf(running.pid);
  // Several processes peak at different times, so the sum is also sampled while it happens.
  let sampledMb = 0;
  const sampler = setInterval(() => {
    sampledMb = Math.max(sampledMb, memory(running.pid)?.residentMb ?? 0);
  }, MEMORY_SAMPLE_MS);
  const result = await runSlowStreams(running.target("sse"), settings.slowStreams, SLOW_STREAM_RAMP_MS);
  clearInterval(sampler);
  if (result.failures > 0)
    settings.complain(`${contender.name}: ${result.failures} of ${settings.slowStreams} streams did not end with [DONE].`);
  entry.completed += result.completed;
  entry.uncertain += result.failures;
  const cpuAfter = cpuOf(running.pid);
  return {
    contender,
    startCpuMicroseconds: running.startCpuMicroseconds ?? null,
    idleMb,
    peakMb: idleMb === null ? null : Math.max(sampledMb, peakOf(running) ?? 0),
    cpuMicroseconds: cpuBefore === null || cpuAfter === null ? null : (cpuAfter - cpuBefore) / Math.max(1, result.completed),
    firstByteMs: result.firstByteMs,
    completed: result.completed,
  };
}

/** Every whole answer has its usage row, and no row is without a request. */
async function stopAndCheck(settings: Settings, entry: Entry): Promise<void> {
  const books = await entry.running.stop();
  if (books === null) return;
  const { completed, uncertain, contender } = entry;
  const rows = `${contender.name}: ${books.usageRows} usage rows for ${completed} whole answers`;
  if (books.usageRows < completed || books.usageRows > completed + uncertain)
    settings.complain(`${rows} (at most ${uncertain} more were under way).`);
  else console.log(`${rows} and up to ${uncertain} that the load generator let go of: the books agree.`);
  if (books.openHolds > 0) settings.complain(`${contender.name}: ${books.openHolds} holds were left open.`);
}

function cpuOf(pid: number | null): number | null {
  return pid === null || pid === 0 ? null : cpuMicroseconds(pid);
}

function peakOf(running: Running): number | null {
  return running.pid === 0 ? null : (memory(running.pid)?.peakMb ?? null);
}
