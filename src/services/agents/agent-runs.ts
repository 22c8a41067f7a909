/** Agents at work: the runtime for each type of agent that the gateway runs. */
import type { ChatProvider } from "../../providers/provider.js";
import type { Model } from "../catalog/model.js";
import type { AgentCall, AgentProviders } from "../generation/agent-providers.js";

export interface AgentRuntimes {
  readonly promptAgent: AgentProviders;
  readonly codeAgent: AgentProviders;
}

export class AgentRuns implements AgentProviders {
  /** Asked when an agent is called: the runtimes use services that are made after this. */
  constructor(private readonly runtimes: () => AgentRuntimes) {}

  chat(model: Model, call: AgentCall): ChatProvider {
    const { promptAgent, codeAgent } = this.runtimes();
    if (model.agentType === "prompt_agent") return promptAgent.chat(model, call);
    if (model.agentType === "code_agent") return codeAgent.chat(model, call);
    throw new Error(`${model.id} is no agent of the gateway's.`);
  }
}
