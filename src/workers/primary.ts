/**
 * A gateway of several processes behind one port (docs/decisions/workers.md). Their primary takes the port and the data directory, starts
 * them and serves nothing itself:
 *
 * 1. The first worker is started alone: it migrates the database and makes what a first start makes. When it cannot start, nobody can.
 * 2. The others follow. One that dies is replaced, at once where it has served, else after ever longer.
 * 3. Told to stop, it takes connections for SHUTDOWN_DELAY_MS, in which no worker is ready; then it takes no more and tells each worker to
 *    drain. Told so again, or when that takes too long, it ends them.
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

/** What a worker's drain may take beside that of its streams: jobs, answers whose callers have left, the last commits. */
const STOP_MS = DRAIN_TIMEOUT_MS + 20_000;
/** Who has served for so long does not die of its start. */
const STEADY_MS = 10_000;
const RESTART_MS_FIRST = 1_000;
const RESTART_MS_MAX = 30_000;
const PING_MS = 1_000;
/** The rest of the log of a worker that has ended. */
const LOG_REST_MS = 1_000;

export interface PrimaryOptions {
  readonly config: Config;
  readonly log: Logger;
  /** Where the log goes, whole lines at a time. */
  readonly write: (lines: string) => void;
  /** The gateway serves. */
  readonly onReady: (baseUrl: string, newOwnerKey: string | null) => void;
}

/** Resolves with the exit code when all has ended. Rejects with a StartError when the port or the data directory cannot be had. */
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

/** The place of one worker after the other. */
interface Seat {
  readonly number: number;
  worker: WorkerProcess | null;
  /** In a row, of workers that have not served for long. */
  failures: number;
  timer?: NodeJS.Timeout;
}

class Primary {
  private readonly seats: readonly Seat[];
  private readonly connections = new Connections(() => this.serving());
  private readonly counters = new MemoryCounters(systemClock);
  private readonly running = new Set<WorkerProcess>();
  /** Ended, and the rest of its log is still being read. */
  private readonly closing = new Set<WorkerProcess>();
  private port = 0;
  private restarts = 0;
  private hasServed = false;
  private isStopping = false;
  private exitCode = 0;
  /** What workers that have ended had counted. */
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

  /** One that drains may be held up: how long that takes has a bound of its own. */
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

  /** Held, so that nobody else starts workers on it, with the secret that all of them read. */
  private async openDataDir(): Promise<DataDir> {
    const { dataDir, encryptionKey } = this.options.config;
    try {
      const opened = await openDataDir(dataDir);
      if (encryptionKey === null) opened.secret("encryptionKey");
      return opened;
    } catch (error) {
      this.connections.stop();
      throw error;
    }
  }

  private serving(): readonly WorkerProcess[] {
    return [...this.running].filter(({ isServing }) => isServing);
  }

  /** Those that drain, too. */
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
    const place = { number: seat.number, workers, port: this.port, isSpokesman: !this.hasServed };
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
    for (const worker of this.serving()) worker.tell(standing);
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
      // It has said on standard error why, and so would every other.
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

  /** At once, or after the milliseconds that it returns. */
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

  /** Counters may forget: one that fails lets its caller in. */
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
    const asked = await Promise.all(
      this.answering().map(async (worker) => ({ worker, answer: await worker.ask(question, body, timeoutMs) })),
    );
    if (!isMetrics) return asked.flatMap(({ answer }) => (answer === undefined ? [] : [answer]));
    // Of a worker that is too busy to answer, what it said before: a sum must not fall. One that has ended by now is among those.
    const told = asked.flatMap(({ worker }) => (this.running.has(worker) ? [worker.lastAnswers.get(question) ?? []] : []));
    return [...told, await this.ended];
  }

  /** What a worker that has ended was last heard to have counted is told on. */
  private keepCounts(worker: WorkerProcess): void {
    const last = worker.lastAnswers.get(METRICS_QUESTION) as FamilyOfProcess[] | undefined;
    if (last) this.ended = this.ended.then((ended) => toEnded([ended, last]).catch(() => ended));
  }
}
