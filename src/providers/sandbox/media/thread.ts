/** One of the sandbox's threads, seen from the gateway's: jobs are opened in it, asked for their next step, and closed. */
import { Worker } from "node:worker_threads";
import { resolveWorkerFile } from "../../../lib/worker-file.js";
import { SANDBOX_IDLE_MS, SANDBOX_STEP_MAX_MS } from "../../../limits.js";
import { ProviderError } from "../../provider.js";
import type { Job, Reply, Request } from "./jobs.js";

/** Whoever waits for the thread's reply. */
interface Waiter {
  resolve(reply: Reply): void;
  reject(error: unknown): void;
}

export class MediaThread {
  /** The jobs that it has taken on, with what waits for their next reply. */
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
    // What the libraries print is no log of ours.
    worker.stdout.resume();
    worker.stderr.resume();
    worker.unref();
    worker.on("message", (reply: Reply) => this.receive(reply));
    worker.on("error", (error) => this.lose(error));
    worker.on("exit", () => this.lose(new Error("The thread ended.")));
  }

  static async start(onRetired: (thread: MediaThread) => void): Promise<MediaThread> {
    const file = await resolveWorkerFile("providers/sandbox/media/sandbox-worker");
    return new MediaThread(new Worker(file, { name: "sandbox", stdout: true, stderr: true }), onRetired);
  }

  get jobCount(): number {
    return this.jobs.size;
  }

  open(id: number, job: Job): void {
    this.jobs.set(id, null);
    // A job under way keeps the process alive, a resting thread does not.
    this.worker.ref();
    if (this.idleTimer) clearTimeout(this.idleTimer);
    this.idleTimer = null;
    this.post({ id, do: "open", job });
  }

  /** The job's next step. Rejects with the signal's reason when that is aborted, with a ProviderError when the thread breaks down. */
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

  /** Takes no more jobs, and ends after those that it has: a library that has failed once may not work again. */
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

  /** Somebody left in the middle of a step. A thread that then answers nobody for too long will not come back. */
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
