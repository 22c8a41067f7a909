/**
 * Updates a code agent to the latest commit of its repository (docs/spec/agents.md#sync). Needs no credentials, so that a git host can call
 * it; runs at most once in 30 seconds, across all callers and processes.
 */

import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { notFound, rateLimited } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { isUuid } from "../../lib/ids.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import { admitAnybody } from "../access/permissions.js";
import type { ModelChange } from "../community-models/repository.js";
import { SYNC_INTERVAL_MS } from "./limits.js";
import type { CodeRepositories, RefreshedCode } from "./repositories.js";

export const syncAgentInput = z.strictObject({ id: z.string() });

export interface SyncedAgent {
  /** False: the commit was already deployed. The script is rebuilt all the same. */
  readonly updated: boolean;
  readonly deployedCommitSha: string;
}

export interface AgentSyncDependencies {
  readonly database: Database;
  readonly repositories: Pick<CodeRepositories, "refresh">;
  readonly events: Events;
  readonly clock: Clock;
}

/** One sync's claim on its agent, with the deployed commit at that time. */
interface Claim {
  readonly id: string;
  readonly syncedAt: Date;
  readonly deployedCommitSha: string | null;
}

export class AgentSync {
  constructor(private readonly deps: AgentSyncDependencies) {}

  /** A repository that cannot be fetched leaves the agent unchanged; the interval counts all the same. */
  async sync(ctx: RequestContext, id: string): Promise<SyncedAgent> {
    admitAnybody(ctx);
    const repository = await this.findRepository(id);
    const { begun, code } = await this.deps.repositories.refresh(repository, () => this.claim(id), ctx.signal);
    return this.deploy(begun, code);
  }

  private async findRepository(id: string): Promise<string> {
    const agent = isUuid(id) ? await this.agents.findUnique({ where: { id }, select: { repository: true } }) : null;
    if (!agent?.repository) throw notFound("code agent");
    return agent.repository;
  }

  /** One of several concurrent syncs changes the row. */
  private async claim(id: string): Promise<Claim> {
    const now = this.deps.clock.now();
    const since = new Date(now.getTime() - SYNC_INTERVAL_MS);
    const [claimed] = await this.agents.updateManyAndReturn({
      where: { id, OR: [{ syncedAt: null }, { syncedAt: { lte: since } }] },
      data: { syncedAt: now },
      select: { id: true, deployedCommitSha: true },
    });
    if (claimed !== undefined) return { ...claimed, syncedAt: now };
    const agent = await this.agents.findUnique({ where: { id }, select: { syncedAt: true } });
    if (agent === null) throw notFound("code agent");
    const waitMs = (agent.syncedAt ?? now).getTime() + SYNC_INTERVAL_MS - now.getTime();
    throw rateLimited("This agent was synced less than 30 seconds ago.", Math.min(waitMs, SYNC_INTERVAL_MS) / 1000);
  }

  private async deploy(
    { id, syncedAt, deployedCommitSha }: Claim,
    { commitSha, bundle, description }: RefreshedCode,
  ): Promise<SyncedAgent> {
    const isUpdated = deployedCommitSha !== commitSha;
    const accountId = await this.deps.database.prisma.$transaction(async (transaction) => {
      // Locks the two rows in the same order as update and delete.
      await transaction.$queryRaw`SELECT 1 FROM community_model WHERE id = ${id}::uuid FOR UPDATE`;
      // No row changes when another sync began later, or the agent was deleted.
      const { count } = await transaction.agent.updateMany({ where: { id, syncedAt }, data: { deployedCommitSha: commitSha, bundle } });
      if (count === 0) return null;
      const model = await transaction.communityModel.findUniqueOrThrow({ where: { id }, select: { accountId: true, description: true } });
      const described = description === undefined ? model.description : description;
      if (isUpdated || described !== model.description) {
        await transaction.communityModel.update({ where: { id }, data: { description: described }, select: { id: true } });
      }
      return model.accountId;
    });
    if (accountId === null) return this.deployedMeanwhile(id);
    const change: ModelChange = "updated";
    this.deps.events.publish("community-model-changed", { accountId, modelId: id, change });
    return { updated: isUpdated, deployedCommitSha: commitSha };
  }

  private async deployedMeanwhile(id: string): Promise<SyncedAgent> {
    const agent = await this.agents.findUnique({ where: { id }, select: { deployedCommitSha: true } });
    if (!agent?.deployedCommitSha) throw notFound("code agent");
    return { updated: false, deployedCommitSha: agent.deployedCommitSha };
  }

  private get agents() {
    return this.deps.database.prisma.agent;
  }
}
