/**
 * The faults of `npm run bench:faults`: each fault, the required results of callers during it, and the state of the
 * ledger afterwards.
 */
import { mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";
import { createApiKeyText } from "../src/lib/api-key-format.js";
import { startFaultProxy } from "../test/support/fault-proxy.js";
import { INVARIANTS } from "../test/support/invariants.js";
import { type Sluice, startSluice, startUpstream } from "./contenders.js";
import { type DatabaseLocation, withDatabase } from "./support/books.js";
import { pathOf } from "./support/documents.js";
import { startPostgres } from "./support/postgres.js";
import { readCharges, reconcile } from "./support/reconcile.js";
import { type Answer, RecordedLoad } from "./support/recorded-load.js";
import { format, percentile } from "./support/statistics.js";

const JSON_CALLERS = 24;
const STREAM_CALLERS = 24;
/** Streams of 20 chunks that last 0.2 s: a kill finds some at every stage. */
const KILL_PACE_MS = 10;
const KILL_AFTER_MS = { min: 700, max: 2_200 };
/** Streams of 20 chunks that last 10 s: they span the database's absence. */
const OUTAGE_PACE_MS = 500;
const OUTAGE_STREAMS = 40;
const BEFORE_MS = 2_000;
const OPENED_MS_MAX = 60_000;
const AFTER_MS = 3_000;
/** A request that begins this long after the database went must be told so, and within this time. */
const NOTICE_MS = 5_000;
const RECOVERY_MS_MAX = 10_000;
const RECOVERY_POLL_MS = 50;

export interface FaultReport {
  readonly title: string;
  readonly facts: readonly string[];
  readonly problems: readonly string[];
}

export interface KillOptions {
  readonly directory: string;
  /** Where PostgreSQL's binaries are; null: the embedded database. */
  readonly postgres: string | null;
  readonly kills: number;
}

/** SIGKILL under load, `kills` times on the same data, then an orderly start and stop. */
export async function killUnderLoad({ directory: parent, postgres: binaries, kills }: KillOptions): Promise<FaultReport> {
  const directory = mkdtempSync(join(parent, "kill-"));
  const database = binaries === null ? null : await startPostgres(binaries);
  const upstream = await startUpstream(directory, { chunks: 20, paceMs: KILL_PACE_MS, delayMs: 0 });
  const options = {
    directory,
    upstreamPort: upstream.port,
    ownerKey: createApiKeyText("sk"),
    ...(database ? { databaseUrl: database.url() } : {}),
  };
  const answers: Answer[] = [];
  const startsMs: number[] = [];
  let running: Sluice | null = null;
  const start = async (): Promise<Sluice> => {
    const startedAt = performance.now();
    const sluice = await startSluice(options);
    startsMs.push(performance.now() - startedAt);
    running = sluice;
    return sluice;
  };
  try {
    for (let kill = 0; kill < kills; kill++) {
      const sluice = await start();
      const load = new RecordedLoad(sluice.target);
      load.start(JSON_CALLERS, false);
      load.start(STREAM_CALLERS, true);
      await sleep(KILL_AFTER_MS.min + Math.random() * (KILL_AFTER_MS.max - KILL_AFTER_MS.min));
      await sluice.kill();
      await load.stop();
      answers.push(...load.answers);
    }
    const books = await (await start()).stop();
    const location = { dataDirectory: join(directory, "data"), databaseUrl: database?.url() ?? null };
    const { facts, problems } = await examine(location, answers, books?.openHolds ?? 0);
    const restarts = startsMs.slice(1);
    return {
      title: `SIGKILL under load, ${kills} times, ${binaries === null ? "embedded database" : "PostgreSQL"}`,
      facts: [...facts, `ready again after ${format(Math.max(...restarts))} ms at most`],
      problems,
    };
  } finally {
    await killWhatRuns(running);
    await upstream.stop();
    await database?.stop();
  }
}

/** When a bench has failed, its gateway has not been stopped. */
export async function killWhatRuns(sluice: Sluice | null): Promise<void> {
  await sluice?.kill();
}

const WORKERS = 4;

interface WorkerFaultOptions extends KillOptions {
  /** SIGSTOP: its event loop hangs, until its primary finds that out and kills it. */
  readonly signal: "SIGKILL" | "SIGSTOP";
}

/** One of four workers dies, or hangs, under load, `kills` times, each after the one before has been replaced. */
export async function killWorkers({ directory: parent, postgres: binaries, kills, signal }: WorkerFaultOptions): Promise<FaultReport> {
  const directory = mkdtempSync(join(parent, "worker-"));
  if (binaries === null) throw new Error("Several workers need PostgreSQL.");
  const database = await startPostgres(binaries);
  const upstream = await startUpstream(directory, { chunks: 20, paceMs: KILL_PACE_MS, delayMs: 0 });
  let sluice: Sluice | null = null;
  try {
    sluice = await startSluice({ directory, upstreamPort: upstream.port, databaseUrl: database.url(), workers: WORKERS });
    const load = new RecordedLoad(sluice.target);
    load.start(JSON_CALLERS, false);
    load.start(STREAM_CALLERS, true);
    const killed = new Set<number>();
    const replacedMs: number[] = [];
    for (let kill = 0; kill < kills; kill++) {
      await sleep(KILL_AFTER_MS.min + Math.random() * (KILL_AFTER_MS.max - KILL_AFTER_MS.min));
      const pids = sluice.workerPids();
      const victim = pids[Math.floor(Math.random() * pids.length)];
      if (victim === undefined) throw new Error("No worker is left to be killed.");
      killed.add(victim);
      const killedAt = performance.now();
      process.kill(victim, signal);
      // Until then the successor has no process; the next victim must be a worker that serves.
      do await sleep(KILL_AFTER_MS.min);
      while (sluice.workerPids().includes(victim));
      await sluice.whenWhole();
      replacedMs.push(performance.now() - killedAt);
    }
    await load.stop();
    const books = await sluice.stop();

    const examined = await examine(
      { dataDirectory: join(directory, "data"), databaseUrl: database.url() },
      load.answers,
      books?.openHolds ?? 0,
    );
    const broken = load.answers.filter(({ isWhole }) => !isWhole);
    const problems = [...judgeWorkerKills(broken, killed, readFileSync(sluice.logFile, "utf8")), ...examined.problems];
    return {
      title: `${signal} to one of ${WORKERS} workers under load, ${kills === 1 ? "once" : `${kills} times`}, PostgreSQL`,
      facts: [
        ...examined.facts,
        `broken off: ${broken.length} in all, of ${JSON_CALLERS + STREAM_CALLERS} callers at each kill`,
        `replaced after ${format(Math.max(...replacedMs))} ms at most`,
      ],
      problems,
    };
  } finally {
    await killWhatRuns(sluice);
    await upstream.stop();
    await database.stop();
  }
}

/** What broke off was the dead worker's: no other has told of an answer that was cut or refused, and no caller was refused. */
function judgeWorkerKills(broken: readonly Answer[], killed: ReadonlySet<number>, log: string): readonly string[] {
  const problems: string[] = [];
  const refused = broken.filter(({ status }) => status !== null && status !== 200);
  if (refused.length > 0) problems.push(`${refused.length} requests were refused: ${describe(refused)}.`);
  const fairShare = Math.ceil((JSON_CALLERS + STREAM_CALLERS) / WORKERS);
  // Connections are shared evenly, but for those that come while a worker is missing.
  const bound = 2 * fairShare * killed.size;
  if (broken.length > bound) problems.push(`${broken.length} answers broke off, more than ${bound}.`);
  const brokenIds = new Set(broken.flatMap(({ generationId }) => generationId ?? []));
  const elsewhere = log.split("\n").filter((line) => {
    if (!line.startsWith("{") || !line.includes('"msg":"request"')) return false;
    const { pid, route, generationId, status, isLeft } = JSON.parse(line);
    // The readiness probe may fail.
    return !killed.has(pid) && route === pathOf("json") && (brokenIds.has(generationId) || isLeft === true || status >= 400);
  });
  if (elsewhere.length > 0) problems.push(`${elsewhere.length} requests failed at other workers, the first: ${elsewhere[0]}`);
  return problems;
}

interface OutageOptions {
  readonly directory: string;
  readonly postgres: string;
  readonly fault: "blackhole" | "reset";
  readonly outageMs: number;
}

/** The database goes away for a while under load: silently, or with every connection reset and new ones refused. */
export async function loseDatabase({ directory: parent, postgres: binaries, fault, outageMs }: OutageOptions): Promise<FaultReport> {
  const directory = mkdtempSync(join(parent, `${fault}-`));
  const database = await startPostgres(binaries);
  const proxy = await startFaultProxy({ port: database.port });
  const upstream = await startUpstream(directory, { chunks: 20, paceMs: OUTAGE_PACE_MS, delayMs: 0 });
  const problems: string[] = [];
  let sluice: Sluice | null = null;
  try {
    sluice = await startSluice({ directory, upstreamPort: upstream.port, databaseUrl: database.url(proxy.port) });
    const load = new RecordedLoad(sluice.target);
    load.start(JSON_CALLERS, false);
    const streams = load.startOnce(OUTAGE_STREAMS, true);
    await untilOpened(load, OUTAGE_STREAMS);
    await sleep(BEFORE_MS);

    const lostAt = performance.now();
    if (fault === "blackhole") proxy.blackHole();
    else {
      proxy.refuse();
      proxy.resetAll();
    }
    await sleep(outageMs);
    const healedAt = performance.now();
    proxy.heal();

    const recoveryMs = await untilServed(load, healedAt);
    await sleep(AFTER_MS);
    const streamed = await streams;
    await load.stop();
    const books = await sluice.stop();

    const during = load.answers.filter(({ startedAt, stream }) => !stream && startedAt > lostAt + NOTICE_MS && startedAt < healedAt);
    const early = load.answers.filter(({ startedAt, stream }) => !stream && startedAt >= lostAt && startedAt <= lostAt + NOTICE_MS);
    problems.push(...judgeRefusals(during));
    const strange = load.answers.filter(({ status }) => status !== 200 && status !== 503);
    if (strange.length > 0) problems.push(`${strange.length} requests were answered neither 200 nor 503: ${describe(strange)}.`);
    const cut = streamed.filter(({ isWhole }) => !isWhole);
    const unfinished = cut.length;
    if (unfinished > 0) problems.push(`${unfinished} of ${OUTAGE_STREAMS} streams did not end with [DONE]: ${describe(cut)}.`);
    if (recoveryMs > RECOVERY_MS_MAX) problems.push(`Nothing was served for ${format(recoveryMs)} ms after the database was back.`);
    const location = { dataDirectory: join(directory, "data"), databaseUrl: database.url() };
    const examined = await examine(location, load.answers, books?.openHolds ?? 0);
    const endedMeanwhile = streamed.filter(({ isWhole, endedAt }) => isWhole && endedAt < healedAt).length;
    return {
      title: `${fault === "blackhole" ? "The database falls silent" : "The database resets every connection"} for ${outageMs / 1_000} s under load`,
      facts: [
        ...examined.facts,
        `requests that began within ${NOTICE_MS / 1_000} s of the loss: ${describe(early)}`,
        `requests that began later, while the database was away: ${describe(during)}`,
        `of ${OUTAGE_STREAMS} streams under way, ${OUTAGE_STREAMS - unfinished} ended whole, ${endedMeanwhile} of them before the database was back`,
        `served again ${format(recoveryMs)} ms after the database was back`,
      ],
      problems: [...problems, ...examined.problems],
    };
  } finally {
    await killWhatRuns(sluice);
    await upstream.stop();
    await proxy.close();
    await database.stop();
  }
}

/** A machine that has much else to do takes long to begin the first ones. */
async function untilOpened(load: RecordedLoad, streams: number): Promise<void> {
  const since = performance.now();
  while (load.openedStreams < streams && performance.now() - since < OPENED_MS_MAX) await sleep(RECOVERY_POLL_MS);
}

/** Milliseconds from `healedAt` to the first whole answer of a request that began after it. */
async function untilServed(load: RecordedLoad, healedAt: number): Promise<number> {
  for (;;) {
    const served = load.answers.find(({ isWhole, startedAt }) => isWhole && startedAt >= healedAt);
    if (served !== undefined) return served.endedAt - healedAt;
    if (performance.now() - healedAt > 3 * RECOVERY_MS_MAX) return Number.POSITIVE_INFINITY;
    await sleep(RECOVERY_POLL_MS);
  }
}

/** New work, once the loss is noticed, is refused with 503 and a time to come back, and soon. */
function judgeRefusals(answers: readonly Answer[]): readonly string[] {
  const problems: string[] = [];
  if (answers.length === 0) problems.push("No request began while the database was away, so nothing was learned about refusals.");
  const served = answers.filter(({ status }) => status === 200);
  if (served.length > 0)
    problems.push(`${served.length} requests that began while the database was away were served: ${describe(served)}.`);
  const silent = answers.filter(({ status, retryAfter }) => status === 503 && retryAfter === null);
  if (silent.length > 0) problems.push(`${silent.length} answers of 503 carried no Retry-After.`);
  const slow = answers.filter(({ startedAt, endedAt }) => endedAt - startedAt > NOTICE_MS);
  if (slow.length > 0) problems.push(`${slow.length} requests waited more than ${NOTICE_MS} ms for their refusal.`);
  return problems;
}

/** Status codes with their counts, and how long they took. */
export function describe(answers: readonly Answer[]): string {
  const counts = new Map<string, number>();
  for (const { status } of answers) counts.set(String(status ?? "broken"), (counts.get(String(status ?? "broken")) ?? 0) + 1);
  const waits = answers.map(({ startedAt, endedAt }) => endedAt - startedAt);
  const list = [...counts].map(([status, count]) => `${count} x ${status}`).join(", ");
  return answers.length === 0 ? "none" : `${list} (p50 ${format(percentile(waits, 50), 1)} ms, longest ${format(Math.max(...waits))} ms)`;
}

/** The books of a gateway that has stopped, against what its callers received. */
export async function examine(
  location: DatabaseLocation,
  answers: readonly Answer[],
  openHolds: number,
): Promise<{ readonly facts: readonly string[]; readonly problems: readonly string[] }> {
  return withDatabase(location, async (query) => {
    const result = reconcile(answers, await readCharges(query));
    const problems = [...result.problems];
    if (openHolds > 0) problems.push(`${openHolds} holds were left open.`);
    for (const [name, sql] of Object.entries(INVARIANTS)) {
      const broken = await query(sql);
      if (broken.length > 0)
        problems.push(`${name}: broken by ${broken.length} rows, the first ${inspect(broken[0], { breakLength: 200 })}`);
    }
    const facts = [
      `${answers.length} requests, ${result.acknowledged} answers received whole, ${result.rows} usage rows, ${result.unacknowledgedRows} of them of answers that were cut off`,
    ];
    return { facts, problems };
  });
}
