/** Chat, of the first candidate that answers. */
import type { ChatAnswer, ChatChunkBatch, ChatProvider } from "../../providers/provider.js";
import type { Model } from "../catalog/model.js";
import { servable } from "../safety/features.js";
import { type Answered, attempt } from "./attempts.js";
import type { ChatPlan } from "./chat-plan.js";

/** Who answers for a model: its upstream, or the agent that it is. */
export type ProviderOf = (model: Model) => ChatProvider;

/** A stream that has begun: its first batch has come, so nobody else may answer from here on. */
export interface BegunStream {
  readonly first: IteratorResult<ChatChunkBatch>;
  readonly rest: AsyncIterator<ChatChunkBatch>;
}

export function completeChat(plan: ChatPlan, providerOf: ProviderOf, signal: AbortSignal): Promise<Answered<ChatAnswer>> {
  return attempt(servable(plan.candidates, plan.safety?.applied), signal, (model) =>
    providerOf(model).complete({ upstreamModel: model.upstreamModel, body: plan.body, signal }),
  );
}

/** `onAccepted` is told of each upstream that has taken the request on, whatever comes of it. */
export function openChatStream(
  plan: ChatPlan,
  providerOf: ProviderOf,
  signal: AbortSignal,
  onAccepted: (model: Model) => void,
): Promise<Answered<BegunStream>> {
  return attempt(servable(plan.candidates, plan.safety?.applied), signal, async (model) => {
    const batches = await providerOf(model).stream({ upstreamModel: model.upstreamModel, body: plan.body, signal });
    onAccepted(model);
    const rest = batches[Symbol.asyncIterator]();
    return { first: await rest.next(), rest };
  });
}
