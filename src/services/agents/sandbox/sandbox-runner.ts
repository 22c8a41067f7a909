/** Runs scripts of code agents, the guests, each in a fresh process in the strongest isolation of this machine. */
import { availableParallelism } from "node:os";
import type { Logger } from "pino";
import { serviceUnavailable } from "../../../errors.js";
import { resolveWorkerFile } from "../../../lib/worker-file.js";
import type { UpstreamResponse } from "../../../providers/upstream-response.js";
import {
  CODE_RUN_CPU_SECONDS,
  CODE_RUN_MEMORY_BYTES_MAX,
  CODE_RUN_OUTPUT_BYTES_MAX,
  CODE_RUN_PRINT_BYTES_MAX,
  CODE_RUN_REST_MS,
  CODE_RUN_WALL_MS,
  CODE_RUNS_PER_OWNER_MAX,
  CODE_RUNS_PER_PROCESSOR_MAX,
  CODE_RUNS_WAITING_MAX,
  CODE_RUNS_WAITING_PER_OWNER_MAX,
} from "../limits.js";
import type { GuestHost } from "./guest-calls.js";
import { type GuestLimits, GuestProcess } from "./guest-process.js";
import { type GuestReport, GuestRun, type GuestTask } from "./guest-run.js";
import { findDeno, type Isolation, listIsolations } from "./isolation.js";
import { RunSlots } from "./run-slots.js";

export interface GuestRunOptions {
  /** The agent's owner: an account's handle. */
  readonly owner: string;
  readonly host: GuestHost;
  /** Aborting it ends the run at once; its reason is thrown. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** Called once, when the run is over. */
  readonly onEnd?: (report: GuestReport) => void;
  /** Overrides of the default limits. */
  readonly limits?: Partial<GuestLimits>;
}

export const GUEST_LIMITS: GuestLimits = {
  cpuMs: CODE_RUN_CPU_SECONDS * 1000,
  memoryBytes: CODE_RUN_MEMORY_BYTES_MAX,
  wallMs: CODE_RUN_WALL_MS,
  outputBytes: CODE_RUN_OUTPUT_BYTES_MAX,
  printBytes: CODE_RUN_PRINT_BYTES_MAX,
};

/** Concurrent runs in each of `processes` gateway processes. */
export function codeRunsMax(processes = 1): number {
  return Math.max(1, Math.floor((CODE_RUNS_PER_PROCESSOR_MAX * availableParallelism()) / processes));
}

/** Unspecified: timeout for trying an isolation on a busy machine. */
const TRY_MS = 20_000;
const STOPPING = "The gateway is stopping.";

export class SandboxRunner {
  private readonly slots: RunSlots;
  private readonly running = new Set<GuestRun>();
  private isClosed = false;
  private isolation: Promise<Isolation | null> | null = null;

  /**
   * `choose` selects isolations; absent: all. `restMs`: pause of a slot after a run that ended at a limit. `processes`: of the gateway on
   * this machine.
   */
  constructor(
    private readonly log: Logger,
    private readonly choose: (isolations: readonly Isolation[]) => readonly Isolation[] = (isolations) => isolations,
    private readonly restMs = CODE_RUN_REST_MS,
    processes = 1,
  ) {
    this.slots = new RunSlots({
      runsMax: codeRunsMax(processes),
      runsPerOwnerMax: CODE_RUNS_PER_OWNER_MAX,
      waitingMax: CODE_RUNS_WAITING_MAX,
      waitingPerOwnerMax: CODE_RUNS_WAITING_PER_OWNER_MAX,
    });
  }

  /** The working isolation, found and logged on first use; null when agents cannot run here. Never rejects. */
  findIsolation(): Promise<Isolation | null> {
    this.isolation ??= this.tryIsolations().catch((error: unknown) => {
      this.log.error({ err: error }, "code agents answer 503: no wall could be tried");
      return null;
    });
    return this.isolation;
  }

  /**
   * Resolves with the head of the agent's answer. Rejects with an AppError: SERVICE_UNAVAILABLE without an isolation, INTERNAL_ERROR for an
   * agent that fails, UPSTREAM_TIMEOUT and UPSTREAM_ERROR for one ended at a limit.
   */
  async run(task: GuestTask, { owner, host, signal, log, onEnd, limits }: GuestRunOptions): Promise<UpstreamResponse> {
    const isolation = await this.findIsolation();
    if (isolation === null) throw serviceUnavailable("Code agents cannot be run on this machine.");
    const giveBack = await this.slots.take(owner, signal);
    try {
      if (this.isClosed) throw serviceUnavailable(STOPPING);
      const run = new GuestRun(isolation, task, host, { ...GUEST_LIMITS, ...limits }, signal, log);
      this.running.add(run);
      void run.over.then(({ end, report }) => {
        this.running.delete(run);
        onEnd?.(report);
        if (end.reason === "limit") setTimeout(giveBack, this.restMs).unref();
        else giveBack();
      });
      return run.begin();
    } catch (error) {
      // The system could not start a process.
      giveBack();
      throw error;
    }
  }

  /** Ends all runs. Call when nothing is generated any more. */
  async close(): Promise<void> {
    this.isClosed = true;
    await Promise.all(
      [...this.running].map((run) => {
        run.abort(serviceUnavailable(STOPPING));
        return run.over;
      }),
    );
  }

  private async tryIsolations(): Promise<Isolation | null> {
    const deno = findDeno();
    if (deno === null) {
      this.log.warn("code agents answer 503: there is no Deno for this machine");
      return null;
    }
    const guestProgram = await resolveWorkerFile("services/agents/sandbox/guest-program");
    for (const isolation of this.choose(listIsolations(deno, guestProgram))) {
      const problem = await tryIsolation(isolation);
      if (problem === null) {
        this.log.info(
          { isolation: isolation.name, ...(isolation.identity && { uid: isolation.identity.uid }) },
          `code agents run in ${isolation.name}`,
        );
        return isolation;
      }
      this.log.debug({ isolation: isolation.name, problem }, "a wall for code agents does not stand");
    }
    this.log.warn("code agents answer 503: Deno cannot be run within limits on this machine");
    return null;
  }
}

/** Null when a guest's program runs in the isolation and ends with its input; else its error output. */
async function tryIsolation(isolation: Isolation): Promise<string | null> {
  const process = new GuestProcess(isolation, { ...GUEST_LIMITS, wallMs: TRY_MS }, () => undefined);
  process.endInput();
  const end = await process.ended;
  return end.reason === "exit" && end.code === 0 ? null : `${JSON.stringify(end)} ${process.print}`;
}
