/** Chat, of the first candidate that answers. */
import type { ChatAnswer, ChatChunkBatch, ChatProvider } from "../../providers/provider.js";
import type { Model } from "../catalog/model.js";
import { servable } from "../safety/features.js";
import { type Answered, attempt } from "./attempts.js";
import type { ChatPlan } from "./chat-plan.js";

/** Who answers for a model: its upstream, or the agent that it is. */
export type ProviderOf = (model: Model) => ChatProvider;

/** Told of each candidate that did not answer. */
export type OnFailure = (model: Model, error: unknown) => void;

/** A stream that has begun: its first batch has come, so nobody else may answer from here on. */
export interface BegunStream {
  readonly first: IteratorResult<ChatChunkBatch>;
  readonly rest: AsyncIterator<ChatChunkBatch>;
}

export function completeChat(
  plan: ChatPlan,
  providerOf: ProviderOf,
  signal: AbortSignal,
  onFailure: OnFailure,
): Promise<Answered<ChatAnswer>> {
  const call = (model: Model) => providerOf(model).complete({ upstreamModel: model.upstreamModel, body: plan.body, signal });
  return attempt(servable(plan.candidates, plan.safety?.applied), signal, call, onFailure);
}

/** `onAccepted` is told of each upstream that has taken the request on, whatever comes of it. */
export function openChatStream(
  plan: ChatPlan,
  providerOf: ProviderOf,
  signal: AbortSignal,
  onAccepted: (model: Model) => void,
  onFailure: OnFailure,
): Promise<Answered<BegunStream>> {
  const call = async (model: Model) => {
    const batches = await providerOf(model).stream({ upstreamModel: model.upstreamModel, body: plan.body, signal });
    onAccepted(model);
    const rest = batches[Symbol.asyncIterator]();
    return { first: await rest.next(), rest };
  };
  return attempt(servable(plan.candidates, plan.safety?.applied), signal, call, onFailure);
}
