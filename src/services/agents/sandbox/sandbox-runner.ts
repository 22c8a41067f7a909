/** Guests: scripts of code agents at work, each in a fresh process behind the strongest wall that stands on this machine. */
import { availableParallelism } from "node:os";
import type { Logger } from "pino";
import { serviceUnavailable } from "../../../errors.js";
import { resolveWorkerFile } from "../../../lib/worker-file.js";
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
} from "../../../limits-agents.js";
import type { UpstreamResponse } from "../../../providers/http.js";
import type { GuestHost } from "./guest-calls.js";
import { type GuestLimits, GuestProcess } from "./guest-process.js";
import { GuestRun, type GuestTask } from "./guest-run.js";
import { findDeno, listWalls, type Wall } from "./isolation.js";
import { RunSlots } from "./run-slots.js";

export interface GuestRunOptions {
  /** Whose agent it is: an account's handle. */
  readonly owner: string;
  readonly host: GuestHost;
  /** Aborted, it ends the run at once; its reason is thrown. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** Others than the usual ones. */
  readonly limits?: Partial<GuestLimits>;
}

export const GUEST_LIMITS: GuestLimits = {
  cpuMs: CODE_RUN_CPU_SECONDS * 1000,
  memoryBytes: CODE_RUN_MEMORY_BYTES_MAX,
  wallMs: CODE_RUN_WALL_MS,
  outputBytes: CODE_RUN_OUTPUT_BYTES_MAX,
  printBytes: CODE_RUN_PRINT_BYTES_MAX,
};

/** How many runs go on at once in this process. */
export function codeRunsMax(): number {
  return CODE_RUNS_PER_PROCESSOR_MAX * availableParallelism();
}

/** Unspecified: how long the try of a wall may take, on a machine that is busy. */
const TRY_MS = 20_000;
const STOPPING = "The gateway is stopping.";

export class Guests {
  private readonly slots = new RunSlots({
    runsMax: codeRunsMax(),
    runsPerOwnerMax: CODE_RUNS_PER_OWNER_MAX,
    waitingMax: CODE_RUNS_WAITING_MAX,
    waitingPerOwnerMax: CODE_RUNS_WAITING_PER_OWNER_MAX,
  });
  private readonly running = new Set<GuestRun>();
  private isClosed = false;
  private wall: Promise<Wall | null> | null = null;

  /** `choose`: which walls may be used, and as what; absent: all of them as they are. `restMs`: after a run that was ended at a limit. */
  constructor(
    private readonly log: Logger,
    private readonly choose: (walls: readonly Wall[]) => readonly Wall[] = (walls) => walls,
    private readonly restMs = CODE_RUN_REST_MS,
  ) {}

  /** The wall that stands, found out and logged the first time that it is asked for; null when no agent can be run here. Never rejects. */
  findWall(): Promise<Wall | null> {
    this.wall ??= this.tryWalls().catch((error: unknown) => {
      this.log.error({ err: error }, "code agents answer 503: no wall could be tried");
      return null;
    });
    return this.wall;
  }

  /**
   * Resolves with the agent's answer when that begins. Rejects with an AppError: SERVICE_UNAVAILABLE without a wall, INTERNAL_ERROR for
   * an agent that fails, UPSTREAM_TIMEOUT and UPSTREAM_ERROR for one that is ended at a limit.
   */
  async run(task: GuestTask, { owner, host, signal, log, limits }: GuestRunOptions): Promise<UpstreamResponse> {
    const wall = await this.findWall();
    if (wall === null) throw serviceUnavailable("Code agents cannot be run on this machine.");
    const giveBack = await this.slots.take(owner, signal);
    try {
      if (this.isClosed) throw serviceUnavailable(STOPPING);
      const run = new GuestRun(wall, task, host, { ...GUEST_LIMITS, ...limits }, signal, log);
      this.running.add(run);
      void run.over.then(({ reason }) => {
        this.running.delete(run);
        if (reason === "limit") setTimeout(giveBack, this.restMs).unref();
        else giveBack();
      });
      return run.begin();
    } catch (error) {
      // The system had no process to give.
      giveBack();
      throw error;
    }
  }

  /** Ends what runs. Call when nothing is generated any more. */
  async close(): Promise<void> {
    this.isClosed = true;
    await Promise.all(
      [...this.running].map((run) => {
        run.abort(serviceUnavailable(STOPPING));
        return run.over;
      }),
    );
  }

  private async tryWalls(): Promise<Wall | null> {
    const deno = findDeno();
    if (deno === null) {
      this.log.warn("code agents answer 503: there is no Deno for this machine");
      return null;
    }
    const guestProgram = await resolveWorkerFile("services/agents/sandbox/guest-program");
    for (const wall of this.choose(listWalls(deno, guestProgram))) {
      const problem = await tryWall(wall);
      if (problem === null) {
        this.log.info({ wall: wall.name, ...(wall.identity && { uid: wall.identity.uid }) }, `code agents run in ${wall.name}`);
        return wall;
      }
      this.log.debug({ wall: wall.name, problem }, "a wall for code agents does not stand");
    }
    this.log.warn("code agents answer 503: Deno cannot be run within limits on this machine");
    return null;
  }
}

/** Null when a guest's program runs behind the wall, and ends because nothing is said to it; else what was said. */
async function tryWall(wall: Wall): Promise<string | null> {
  const process = new GuestProcess(wall, { ...GUEST_LIMITS, wallMs: TRY_MS }, () => undefined);
  process.endInput();
  const end = await process.ended;
  return end.reason === "exit" && end.code === 0 ? null : `${JSON.stringify(end)} ${process.print}`;
}
