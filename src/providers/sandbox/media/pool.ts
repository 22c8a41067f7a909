/**
 * The sandbox's threads: started when they are first needed, given back when they have rested for a while. A job belongs to one
 * thread and goes forward a step at a time, when its reader asks for it: a reader that is slow holds no thread up, and one that has
 * left costs no more than the step under way.
 */
import { availableParallelism } from "node:os";
import {
  SANDBOX_CLOSE_MS,
  SANDBOX_JOBS_MAX,
  SANDBOX_JOBS_PER_THREAD,
  SANDBOX_THREADS_MAX,
  SANDBOX_WHOLE_SPEECH_JOBS_MAX,
} from "../../../limits.js";
import { ProviderError } from "../../provider.js";
import { refuse } from "../refusal.js";
import { isSentWhole, type Job, type JobKind, type JobOf, type JobResults, type JobRun } from "./jobs.js";
import { Place, Places } from "./places.js";
import { MediaThread } from "./thread.js";

export class MediaPool {
  /** Those that take jobs. */
  private readonly threads = new Set<MediaThread>();
  private readonly threadsMax = Math.max(1, Math.min(SANDBOX_THREADS_MAX, availableParallelism() - 1));
  private readonly places = new Places(this.threadsMax * SANDBOX_JOBS_PER_THREAD);
  /** For speech that is in memory until its reader has taken it. */
  private readonly wholes = new Places(SANDBOX_WHOLE_SPEECH_JOBS_MAX);
  /** Under way, waiting, or resting until their reader asks for more. */
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
          // Its reader may take its time, and others need the place.
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

  /** One more thread is started while all have work and there may be more. */
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
