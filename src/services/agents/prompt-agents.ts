/** Prompt agents at work. */
import { serviceUnavailable } from "../../errors.js";
import type { ChatProvider } from "../../providers/provider.js";
import type { Model } from "../catalog/model.js";
import type { AgentCall, AgentProviders } from "./agent-providers.js";

export class PromptAgents implements AgentProviders {
  chat(model: Model, _call: AgentCall): ChatProvider {
    throw serviceUnavailable(`${model.id} cannot be run.`);
  }
}
