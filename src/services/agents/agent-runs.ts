/** The runtimes of agents, by type. */
import type { RequestContext } from "../../context.js";
import type { ChatProvider } from "../../providers/provider.js";
import type { Model } from "../catalog/model.js";
import type { AgentCall, AgentProviders } from "../generation/upstreams.js";
import type { RunLimits } from "./run-limits.js";

export interface AgentRuntimes {
  readonly promptAgent: Pick<AgentProviders, "chat">;
  readonly codeAgent: Pick<AgentProviders, "chat">;
  readonly runLimits: Pick<RunLimits, "maxCostOf">;
}

export class AgentRuns implements AgentProviders {
  private runtimes: AgentRuntimes | null = null;

  /** Called once, before anything is generated: runtimes request chats, whose models may be agents. */
  runBy(runtimes: AgentRuntimes): void {
    this.runtimes = runtimes;
  }

  chat(model: Model, call: AgentCall): ChatProvider {
    if (model.agentType === "prompt_agent" && this.runtimes) return this.runtimes.promptAgent.chat(model, call);
    if (model.agentType === "code_agent" && this.runtimes) return this.runtimes.codeAgent.chat(model, call);
    throw new Error(`${model.id} is no agent of the gateway's.`);
  }

  async runCostMost(ctx: RequestContext): Promise<bigint> {
    return (await this.runtimes?.runLimits.maxCostOf(ctx)) ?? 0n;
  }
}
