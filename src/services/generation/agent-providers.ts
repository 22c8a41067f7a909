/**
 * What answers a chat when its model is an agent that the gateway runs: in the place of an upstream, so that an agent's answer is
 * held, streamed, metered and recorded like any other. Only the models that the agent asks cost something.
 */
import type { RequestContext } from "../../context.js";
import type { ChatProvider } from "../../providers/provider.js";
import type { Model } from "../catalog/model.js";

/** The generation that the agent answers. */
export interface AgentCall {
  readonly ctx: RequestContext;
  readonly generationId: string;
}

export interface AgentProviders {
  /** The agent `model` at work on this call. Its `complete` and `stream` throw AppErrors and ProviderErrors. */
  chat(model: Model, call: AgentCall): ChatProvider;
}
