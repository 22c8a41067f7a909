/**
 * The sandbox's threads: started on demand, ended when idle. A job belongs to one thread and advances a step at a time, on its reader's
 * request: a slow reader blocks no thread, and one that disconnects costs at most the current step.
 */
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { ProviderError } from "../../../formats/upstream-error.js";
import { resolveWorkerFile } from "../../../lib/worker-file.js";
import {
  SANDBOX_CLOSE_MS,
  SANDBOX_IDLE_MS,
  SANDBOX_JOBS_MAX,
  SANDBOX_JOBS_PER_THREAD,
  SANDBOX_STEP_MAX_MS,
  SANDBOX_THREADS_MAX,
  SANDBOX_WHOLE_SPEECH_JOBS_MAX,
} from "../limits.js";
import { refuse } from "../refusal.js";
import { isSentWhole, type Job, type JobKind, type JobOf, type JobResults, type JobRun, type Reply, type Request } from "./jobs.js";

// Bounds concurrent jobs: waiting jobs get places in order of arrival.

export class Places {
  private readonly queue: (() => void)[] = [];

  constructor(private free: number) {}

  /** Rejects with the signal's reason when that is aborted first. */
  async take(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.free > 0) {
      this.free -= 1;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const onAbort = () => {
        this.queue.splice(this.queue.indexOf(take), 1);
        reject(signal.reason);
      };
      const take = () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.queue.push(take);
    });
  }

  /** Hands the place to the next waiter without freeing it in between. */
  give(): void {
    const next = this.queue.shift();
    if (next) next();
    else this.free += 1;
  }
}

/** One job's place, which it can take and give back repeatedly. */
export class Place {
  private isTaken = false;

  constructor(private readonly places: Places) {}

  async take(signal: AbortSignal): Promise<void> {
    if (this.isTaken) return;
    await this.places.take(signal);
    this.isTaken = true;
  }

  give(): void {
    if (!this.isTaken) return;
    this.isTaken = false;
    this.places.give();
  }
}

// One of the sandbox's threads, from the gateway's side: jobs are opened, advanced and closed.

interface Waiter {
  resolve(reply: Reply): void;
  reject(error: unknown): void;
}

class MediaThread {
  /** Its jobs, each with the caller that waits for its reply. */
  private readonly jobs = new Map<number, Waiter | null>();
  private idleTimer: NodeJS.Timeout | null = null;
  private lastReplyAt = 0;
  private lost: ProviderError | null = null;
  private isRetired = false;

  private constructor(
    private readonly worker: Worker,
    /** Called once, when it takes no more jobs. */
    private readonly onRetired: (thread: MediaThread) => void,
  ) {
    // Output of libraries is dropped.
    worker.stdout.resume();
    worker.stderr.resume();
    worker.unref();
    worker.on("message", (reply: Reply) => this.receive(reply));
    worker.on("error", (error) => this.lose(error));
    worker.on("exit", () => this.lose(new Error("The thread ended.")));
  }

  static async start(onRetired: (thread: MediaThread) => void): Promise<MediaThread> {
    const file = await resolveWorkerFile("../packages/sandbox/src/sandbox-worker");
    return new MediaThread(new Worker(file, { name: "sandbox", stdout: true, stderr: true }), onRetired);
  }

  get jobCount(): number {
    return this.jobs.size;
  }

  open(id: number, job: Job): void {
    this.jobs.set(id, null);
    // Only a job under way keeps the process alive.
    this.worker.ref();
    if (this.idleTimer) clearTimeout(this.idleTimer);
    this.idleTimer = null;
    this.post({ id, do: "open", job });
  }

  /** The job's next step. Rejects with the signal's reason when that is aborted, with a ProviderError when the thread crashes. */
  async next(id: number, signal: AbortSignal): Promise<Reply> {
    signal.throwIfAborted();
    if (this.lost) throw this.lost;
    return new Promise((resolve, reject) => {
      const onAbort = () => settle(() => reject(signal.reason));
      const settle = (finish: () => void) => {
        signal.removeEventListener("abort", onAbort);
        finish();
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.jobs.set(id, { resolve: (reply) => settle(() => resolve(reply)), reject: (error) => settle(() => reject(error)) });
      this.post({ id, do: "next" });
    });
  }

  close(id: number): void {
    if (this.jobs.get(id)) this.watch();
    this.post({ id, do: "close" });
    this.jobs.delete(id);
    if (this.jobs.size > 0 || this.lost) return;
    this.worker.unref();
    if (this.isRetired) void this.end();
    else this.idleTimer = setTimeout(() => void this.end(), SANDBOX_IDLE_MS).unref();
  }

  /** Takes no more jobs, and ends after its last one: a library that failed once may not work again. */
  retire(): void {
    if (this.isRetired) return;
    this.isRetired = true;
    this.onRetired(this);
  }

  async end(): Promise<void> {
    this.lose(new Error("The thread was ended."));
    await this.worker.terminate();
  }

  private receive(reply: Reply): void {
    this.lastReplyAt = performance.now();
    const waiter = this.jobs.get(reply.id);
    if (!waiter) return;
    this.jobs.set(reply.id, null);
    waiter.resolve(reply);
  }

  /** Ends the thread if it does not answer in time after a client left within a step. */
  private watch(): void {
    const leftAt = performance.now();
    setTimeout(() => {
      if (this.lastReplyAt < leftAt && this.jobs.size > 0) void this.end();
    }, SANDBOX_STEP_MAX_MS).unref();
  }

  private lose(cause: unknown): void {
    this.retire();
    if (this.idleTimer) clearTimeout(this.idleTimer);
    this.lost ??= new ProviderError("network", "The sandbox's thread broke down.", { cause });
    for (const waiter of this.jobs.values()) waiter?.reject(this.lost);
  }

  private post(request: Request): void {
    this.worker.postMessage(request);
  }
}

export class MediaPool {
  private readonly threads = new Set<MediaThread>();
  private readonly threadsMax = Math.max(1, Math.min(SANDBOX_THREADS_MAX, availableParallelism() - 1));
  private readonly places = new Places(this.threadsMax * SANDBOX_JOBS_PER_THREAD);
  /** For speech held in memory until its reader has taken it. */
  private readonly wholes = new Places(SANDBOX_WHOLE_SPEECH_JOBS_MAX);
  /** Running, waiting, or paused for their reader. */
  private openJobs = 0;
  private starting: Promise<MediaThread> | null = null;
  private nextId = 1;
  private isClosed = false;
  private onIdle: () => void = () => {};

  /** The steps of a job; `return()` abandons it. Rejects with a ProviderError, or with the signal's reason when that is aborted. */
  async *open<Kind extends JobKind>(job: JobOf<Kind>, signal: AbortSignal): JobRun<JobResults[Kind]> {
    this.admit();
    const place = new Place(this.places);
    const whole = new Place(this.wholes);
    try {
      if (isKeptWhole(job)) await whole.take(signal);
      await place.take(signal);
      const thread = await this.leastBusyThread();
      const id = this.nextId++;
      thread.open(id, job as Job);
      try {
        for (;;) {
          await place.take(signal);
          const reply = await thread.next(id, signal);
          // Its reader may be slow, and other jobs need the place.
          if (job.kind === "speech") place.give();
          if ("step" in reply) yield reply.step;
          else if ("result" in reply) return reply.result as JobResults[Kind];
          else if ("refusal" in reply) throw refuse(reply.refusal.message, reply.refusal.param);
          else {
            thread.retire();
            throw new ProviderError("network", "The sandbox failed.", { cause: new Error(reply.failure) });
          }
        }
      } finally {
        thread.close(id);
      }
    } finally {
      place.give();
      whole.give();
      this.openJobs -= 1;
      if (this.openJobs === 0) this.onIdle();
    }
  }

  /** Refuses new jobs and waits a while for those under way. */
  async close(): Promise<void> {
    this.isClosed = true;
    if (this.openJobs > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, SANDBOX_CLOSE_MS);
        this.onIdle = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    await Promise.all([...this.threads].map((thread) => thread.end()));
  }

  private admit(): void {
    if (this.isClosed) throw new ProviderError("network", "The sandbox is closed.");
    if (this.openJobs >= SANDBOX_JOBS_MAX) {
      const upstreamMessage = "The sandbox has too much to do.";
      throw new ProviderError("status", upstreamMessage, { status: 503, upstreamMessage });
    }
    this.openJobs += 1;
  }

  /** Starts another thread while all are busy and more are allowed. */
  private async leastBusyThread(): Promise<MediaThread> {
    if (this.starting) await this.starting;
    const [idlest] = [...this.threads].sort((one, other) => one.jobCount - other.jobCount);
    if (idlest && (idlest.jobCount === 0 || this.threads.size >= this.threadsMax)) return idlest;
    this.starting ??= this.start().finally(() => {
      this.starting = null;
    });
    return this.starting;
  }

  private async start(): Promise<MediaThread> {
    const thread = await MediaThread.start((retired) => this.threads.delete(retired));
    this.threads.add(thread);
    return thread;
  }
}

function isKeptWhole(job: Job): boolean {
  return job.kind === "speech" && isSentWhole(job.format);
}
