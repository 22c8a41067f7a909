/**
 * A gateway of several processes behind one port (docs/decisions/workers.md). The primary takes the port and the data directory, starts the
 * workers, and serves nothing itself:
 *
 * 1. The first worker starts alone: it migrates the database and does the work of a first start. When it cannot start, none can.
 * 2. The others follow. One that dies is replaced, at once if it has served, else after growing delays.
 * 3. On a signal it takes connections for SHUTDOWN_DELAY_MS, in which no worker is ready; then it stops accepting and lets the workers
 *    drain. A second signal, or a timeout, kills them.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { addressesOf, type Config } from "../config/config.js";
import { systemClock } from "../lib/clock.js";
import { EXIT_CONFIG } from "../lib/start-error.js";
import { LEAVING, STOPPING } from "../lib/stop-words.js";
import { resolveWorkerFile } from "../lib/worker-file.js";
import { DRAIN_TIMEOUT_MS } from "../limits.js";
import { METRICS_QUESTION } from "../services/composition/worker-link.js";
import { type FamilyOfProcess, toEnded } from "../services/metrics/several-processes.js";
import { MemoryCounters } from "../store/counters.js";
import { type DataDir, openDataDir } from "../store/data-dir.js";
import { connectionsOf } from "../store/pool-sizes.js";
import { Connections } from "./connections.js";
import type { CounterRequest, ToPrimary } from "./messages.js";
import { type WorkerEnd, WorkerProcess } from "./worker-process.js";

/** Time for a worker's drain beyond its streams: jobs, answers whose clients have disconnected, the last commits. */
const STOP_MS = DRAIN_TIMEOUT_MS + 20_000;
/** A worker that served this long did not fail at its start. */
const STEADY_MS = 10_000;
const RESTART_MS_FIRST = 1_000;
const RESTART_MS_MAX = 30_000;
const PING_MS = 1_000;
/** Time to read the rest of an ended worker's log. */
const LOG_REST_MS = 1_000;

export interface PrimaryOptions {
  readonly config: Config;
  readonly log: Logger;
  /** Writes whole lines to the log. */
  readonly write: (lines: string) => void;
  /** Called when the gateway serves. */
  readonly onReady: (baseUrl: string, newOwnerKey: string | null) => void;
}

/** Resolves with the exit code at the end. Rejects with a StartError when the port or the data directory is not available. */
export async function runWorkers(options: PrimaryOptions): Promise<number> {
  const { config, log } = options;
  const program = await resolveWorkerFile("workers/gateway-worker");
  const primary = new Primary(program, options);
  const stop = (signal: NodeJS.Signals) => primary.stop(signal);
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
  log.info({ workers: config.workers, databaseConnectionsMax: connectionsOf(config.workers) }, "starting several workers");
  return primary.run();
}

/** A place for one worker and its replacements. */
interface Seat {
  readonly number: number;
  worker: WorkerProcess | null;
  /** Consecutive failures of workers that did not serve for long. */
  failures: number;
  timer?: NodeJS.Timeout;
}

class Primary {
  private readonly seats: readonly Seat[];
  private readonly connections = new Connections(() => this.serving());
  private readonly counters = new MemoryCounters(systemClock);
  private readonly running = new Set<WorkerProcess>();
  /** Ended workers whose log is still being read. */
  private readonly closing = new Set<WorkerProcess>();
  private port = 0;
  private restarts = 0;
  private hasServed = false;
  private isStopping = false;
  private exitCode = 0;
  /** Counts of ended workers. */
  private ended: Promise<FamilyOfProcess[]> = Promise.resolve([]);
  private resolveEnd: () => void = () => undefined;
  private readonly over = new Promise<void>((resolve) => {
    this.resolveEnd = resolve;
  });

  constructor(
    private readonly program: string,
    private readonly options: PrimaryOptions,
  ) {
    this.seats = Array.from({ length: options.config.workers }, (_, index) => ({ number: index + 1, worker: null, failures: 0 }));
  }

  async run(): Promise<number> {
    const { host, port } = this.options.config;
    this.port = await this.connections.listen(host, port);
    const dataDir = await this.openDataDir();
    const [first] = this.seats;
    if (first && !this.isStopping) this.start(first);
    const pinging = setInterval(() => this.ping(), PING_MS);
    await this.over;
    clearInterval(pinging);
    await dataDir.release();
    return this.exitCode;
  }

  stop(signal: NodeJS.Signals): void {
    if (this.isStopping) {
      this.endAll();
      return;
    }
    const { log, config } = this.options;
    this.isStopping = true;
    for (const seat of this.seats) clearTimeout(seat.timer);
    if (config.shutdownDelayMs === 0) {
      this.drain(signal);
      return;
    }
    log.info({ signal, delayMs: config.shutdownDelayMs }, LEAVING);
    this.announce();
    setTimeout(() => this.drain(signal), config.shutdownDelayMs).unref();
    this.endWhenEmpty();
  }

  private drain(signal: NodeJS.Signals): void {
    this.options.log.info({ signal }, STOPPING);
    this.connections.stop();
    for (const worker of this.running) worker.drain();
    setTimeout(() => this.endAll(), STOP_MS).unref();
    this.endWhenEmpty();
  }

  /** Draining workers are not pinged, as draining has its own bound. */
  private ping(): void {
    if (this.isStopping) return;
    for (const worker of this.answering()) {
      if (worker.ping()) continue;
      this.options.log.error({ worker: worker.seat.number, workerPid: worker.pid }, "a worker does not answer any more: it is killed");
      worker.kill();
    }
  }

  private endAll(): void {
    if (this.running.size > 0) this.exitCode = 1;
    for (const worker of this.running) worker.kill();
  }

  /** Locks the data directory against other gateways. The first worker stores a generated secret, which the others read. */
  private async openDataDir(): Promise<DataDir> {
    try {
      return await openDataDir(this.options.config.dataDir);
    } catch (error) {
      this.connections.stop();
      throw error;
    }
  }

  private serving(): readonly WorkerProcess[] {
    return [...this.running].filter(({ isServing }) => isServing);
  }

  /** Draining workers included. */
  private answering(): readonly WorkerProcess[] {
    return [...this.running].filter(({ isAnswering }) => isAnswering);
  }

  private start(seat: Seat): void {
    try {
      this.fork(seat);
    } catch (error) {
      this.options.log.error({ err: error, worker: seat.number }, "a worker cannot be started");
      this.startLater(seat, null);
    }
  }

  private fork(seat: Seat): void {
    const { workers } = this.options.config;
    const place = { number: seat.number, workers, port: this.port, isPrimaryReporter: !this.hasServed };
    const worker = new WorkerProcess(this.program, place, {
      onReady: (newOwnerKey) => this.welcome(worker, newOwnerKey),
      onChange: () => this.announce(),
      onSignalled: () => {
        if (!this.isStopping) worker.drain();
      },
      onRequest: (request) => void this.serve(worker, request),
      onReturned: (socket) => this.connections.give(socket),
      onLog: (lines) => this.options.write(lines),
      onEnd: (end) => void this.bury(seat, worker, end),
    });
    seat.worker = worker;
    this.running.add(worker);
  }

  private welcome(worker: WorkerProcess, newOwnerKey: string | null): void {
    const { config, log, onReady } = this.options;
    log.info({ worker: worker.seat.number, workerPid: worker.pid }, "a worker is ready");
    const isFirst = !this.hasServed;
    this.hasServed = true;
    this.announce();
    if (this.isStopping) return;
    if (isFirst) {
      onReady(addressesOf(config, this.port).baseUrl, newOwnerKey);
      for (const seat of this.seats) if (!seat.worker) this.start(seat);
    }
    const { length: ready } = this.serving();
    if (ready === config.workers) log.info({ workers: ready }, "all workers are ready");
  }

  private announce(): void {
    const standing = { ready: this.serving().length, restarts: this.restarts, isLeaving: this.isStopping };
    for (const worker of this.serving()) worker.announce(standing);
  }

  private async bury(seat: Seat, worker: WorkerProcess, { code, signal, servedMs, error }: WorkerEnd): Promise<void> {
    if (error) this.options.log.error({ err: error, worker: seat.number }, "a worker cannot be started");
    this.keepCounts(worker);
    this.running.delete(worker);
    seat.worker = null;
    this.closing.add(worker);
    await Promise.race([worker.closed, sleep(LOG_REST_MS, undefined, { ref: false })]);
    this.closing.delete(worker);
    if (this.isStopping) {
      // One that was still starting had nothing to drain.
      if (code !== 0 && servedMs !== null) this.exitCode = 1;
      return this.endWhenEmpty();
    }
    if (!this.hasServed) {
      // It has printed the reason to standard error, which would be the same for the others.
      this.exitCode = code === EXIT_CONFIG ? EXIT_CONFIG : 1;
      this.isStopping = true;
      this.connections.stop();
      return this.endWhenEmpty();
    }
    this.restarts += 1;
    const afterMs = this.startLater(seat, servedMs);
    const report = { worker: seat.number, workerPid: worker.pid, code, signal, afterMs };
    if (code === 0) this.options.log.info(report, "a worker has stopped: another takes its place");
    else this.options.log.error(report, "a worker has died: another takes its place");
    this.announce();
  }

  /** Starts a worker at once, or after the returned number of milliseconds. */
  private startLater(seat: Seat, servedMs: number | null): number {
    seat.failures = servedMs !== null && servedMs >= STEADY_MS ? 0 : seat.failures + 1;
    const afterMs = seat.failures <= 1 ? 0 : Math.min(RESTART_MS_MAX, RESTART_MS_FIRST * 2 ** (seat.failures - 2));
    seat.timer = setTimeout(() => this.start(seat), afterMs);
    return afterMs;
  }

  private endWhenEmpty(): void {
    if (this.running.size === 0 && this.closing.size === 0) this.resolveEnd();
  }

  private async serve(worker: WorkerProcess, message: Extract<ToPrimary, { kind: "count" | "ask" }>): Promise<void> {
    const { kind, id } = message;
    if (kind === "count") worker.answer({ kind: "counted", id, waitMs: await this.count(message.request) });
    else worker.answer({ kind: "answers", id, answers: await this.askAll(message) });
  }

  /** Counters may forget: a failed one lets its caller through. */
  private count(request: CounterRequest): Promise<number> {
    const { rule, name } = request;
    const counted =
      request.method === "count"
        ? this.counters.count(request.rule, name)
        : this.counters.take(request.rule, name, request.units, request.needed);
    return counted.catch((error: unknown) => {
      this.options.log.warn({ err: error, rule }, "a request could not be counted");
      return 0;
    });
  }

  private async askAll({ question, body, timeoutMs }: Extract<ToPrimary, { kind: "ask" }>): Promise<unknown[]> {
    const isMetrics = question === METRICS_QUESTION;
    const polled = await Promise.all(
      this.answering().map(async (worker) => ({ worker, answer: await worker.ask(question, body, timeoutMs) })),
    );
    if (!isMetrics) return polled.flatMap(({ answer }) => (answer === undefined ? [] : [answer]));
    // Uses the last answer of a worker that is too busy, so that sums do not fall. Workers that ended meanwhile are in `ended`.
    const answers = polled.flatMap(({ worker }) => (this.running.has(worker) ? [worker.lastAnswers.get(question) ?? []] : []));
    return [...answers, await this.ended];
  }

  /** Keeps the last known counts of an ended worker. */
  private keepCounts(worker: WorkerProcess): void {
    const last = worker.lastAnswers.get(METRICS_QUESTION) as FamilyOfProcess[] | undefined;
    if (last) this.ended = this.ended.then((ended) => toEnded([ended, last]).catch(() => ended));
  }
}
