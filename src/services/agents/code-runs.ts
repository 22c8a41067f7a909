/**
 * The log of a code agent's last runs, for its owner.
 *
 * 1. A finished run is noted in memory; at intervals the notes are stored and older runs deleted.
 * 2. An agent's output and errors may repeat its caller's input, so they are kept for the owner's own calls only. Of other calls the
 *    owner sees time, duration and outcome.
 */
import type { Logger } from "pino";
import type { RequestContext } from "../../context.js";
import type { Clock } from "../../lib/clock.js";
import { createId } from "../../lib/ids.js";
import { toStorable } from "../../lib/storable-text.js";
import type { Database } from "../../store/database.js";
import type { AgentRunOutcome } from "../../store/generated/prisma/enums.js";
import type { AgentRunModel } from "../../store/generated/prisma/models.js";
import { requireKeyManager } from "../access/permissions.js";
import type { Model } from "../catalog/model.js";
import { CODE_RUN_LOG_BYTES_MAX, CODE_RUNS_FLUSH_MS, CODE_RUNS_KEPT_MAX, CODE_RUNS_UNWRITTEN_MAX } from "./limits.js";
import type { GuestOutcome, GuestReport } from "./sandbox/guest-run.js";

export interface CodeRunsDependencies {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  /** The account of a registered model; null when it was deleted. */
  readonly ownerOf: (model: Pick<Model, "communityModelId">) => string | null;
}

export type CodeRun = Omit<AgentRunModel, "id" | "agentId">;

const OUTCOMES: Readonly<Record<GuestOutcome, AgentRunOutcome>> = {
  answered: "answered",
  failed: "failed",
  cancelled: "cancelled",
  cpu: "processor_time",
  wall: "time",
  memory: "memory",
  output: "sent",
  print: "printed",
};

export class CodeRuns {
  /** Oldest first. */
  private unwritten: AgentRunModel[] = [];
  private timer: NodeJS.Timeout | null = null;
  private flushing: Promise<void> = Promise.resolve();

  constructor(private readonly deps: CodeRunsDependencies) {}

  /** Begins a run; the returned function records its report. */
  begin(model: Pick<Model, "communityModelId">, callerId: string, generationId: string): (report: GuestReport) => void {
    const { clock, ownerOf } = this.deps;
    const startedAt = clock.now();
    return ({ outcome, status, detail, print }) => {
      const owner = ownerOf(model);
      if (owner === null || model.communityModelId === null) return;
      const isOwn = owner === callerId;
      this.note({
        id: createId(),
        agentId: model.communityModelId,
        startedAt,
        durationMs: clock.now().getTime() - startedAt.getTime(),
        outcome: OUTCOMES[outcome],
        status,
        generationId: isOwn ? generationId : null,
        error: isOwn ? toText(detail) : null,
        output: isOwn ? toText(print) : null,
      });
    };
  }

  /** The last runs by agent, newest first; none of another account's agents. */
  async listOf(ctx: RequestContext, agentIds: readonly string[]): Promise<ReadonlyMap<string, readonly CodeRun[]>> {
    const { accountId } = requireKeyManager(ctx);
    const rows = await this.deps.database.prisma.agentRun.findMany({
      where: { agentId: { in: [...agentIds] }, agent: { model: { accountId } } },
      orderBy: [{ startedAt: "desc" }, { id: "desc" }],
      omit: { id: true },
    });
    const byAgent = new Map<string, CodeRun[]>();
    for (const { agentId, ...run } of rows) {
      const runs = byAgent.get(agentId) ?? [];
      byAgent.set(agentId, [...runs, run]);
    }
    return byAgent;
  }

  async close(): Promise<void> {
    await this.flush();
    if (this.timer) clearTimeout(this.timer);
  }

  /** Stores the notes so far. Never rejects: a lost run only misses from the log. */
  flush(): Promise<void> {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
    const { database, log } = this.deps;
    const runs = this.unwritten;
    this.unwritten = [];
    if (runs.length > 0) {
      this.flushing = this.flushing
        .then(() => write(database, runs))
        .catch((error: unknown) => log.warn({ err: error }, "runs of code agents could not be written down"));
    }
    return this.flushing;
  }

  private note(run: AgentRunModel): void {
    this.unwritten.push(run);
    if (this.unwritten.length > CODE_RUNS_UNWRITTEN_MAX) this.unwritten.shift();
    this.timer ??= setTimeout(() => void this.flush(), CODE_RUNS_FLUSH_MS).unref();
  }
}

/** Skips deleted agents. Sorted, so that two processes cannot deadlock. */
async function write({ prisma }: Database, runs: readonly AgentRunModel[]): Promise<void> {
  const noted = [...new Set(runs.map(({ agentId }) => agentId))].sort();
  await prisma.$transaction(async (transaction) => {
    const there = await transaction.$queryRaw<{ id: string }[]>`
      SELECT id FROM agent WHERE id = ANY(${noted}::uuid[]) ORDER BY id FOR NO KEY UPDATE`;
    const known = new Set(there.map(({ id }) => id));
    await transaction.agentRun.createMany({ data: runs.filter(({ agentId }) => known.has(agentId)) });
    await transaction.$executeRaw`
      DELETE FROM agent_run USING (
        SELECT id, row_number() OVER (PARTITION BY agent_id ORDER BY started_at DESC, id DESC) AS place
        FROM agent_run WHERE agent_id = ANY(${noted}::uuid[])
      ) AS placed
      WHERE placed.id = agent_run.id AND placed.place > ${CODE_RUNS_KEPT_MAX}`;
  });
}

/** Text that the database can store, or null when empty. */
function toText(said: string | null): string | null {
  const text = toStorable((said ?? "").slice(0, CODE_RUN_LOG_BYTES_MAX));
  return text === "" ? null : text;
}
