/**
 * The cost limit of an agent's run (docs/spec/agents.md#run-budget): the caller's own limit, else a tenth of their available credits at its
 * start.
 */
import type { AgentRun, RequestContext } from "../../context.js";
import { requireCaller } from "../access/permissions.js";
import type { Accounts } from "../accounts/accounts.js";
import type { AgentCall } from "../generation/upstreams.js";
import { RUN_SHARE } from "./limits.js";

export interface BoundedRun extends AgentRun {
  readonly maxCost: bigint;
}

export class RunLimits {
  constructor(private readonly accounts: Pick<Accounts, "spendable">) {}

  async begin({ ctx, generationId, safetyFeatures }: AgentCall): Promise<BoundedRun> {
    return { parentRequestId: generationId, maxCost: await this.maxCostOf(ctx), safetyFeatures };
  }

  async maxCostOf(ctx: RequestContext): Promise<bigint> {
    return ctx.maxCost?.nanocredits ?? (await this.accounts.spendable(requireCaller(ctx))) / RUN_SHARE;
  }
}
