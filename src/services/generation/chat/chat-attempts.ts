/** What one candidate is asked for a chat, within the length that the hold affords. */
import { AnswerName } from "../../../lib/answer-name.js";
import { type ChatAnswer, type ChatCall, type ChatChunkBatch, type ChatProvider, ProviderError } from "../../../providers/provider.js";
import type { Model } from "../../catalog/model.js";
import { namedAnswer } from "./chat-name.js";
import type { ChatPlan } from "./chat-plan.js";

/** Who answers for a model: its upstream, or the agent that it is. */
export type ProviderOf = (model: Model) => ChatProvider;

/** A stream that has begun: its first batch has come, so nobody else may answer from here on. */
export interface BegunStream {
  readonly first: IteratorResult<ChatChunkBatch>;
  readonly rest: AsyncIterator<ChatChunkBatch>;
}

export interface ChatAttempt {
  readonly plan: ChatPlan;
  readonly providerOf: ProviderOf;
  readonly signal: AbortSignal;
  /** Output tokens that the hold affords; null: the upstream needs no bound. */
  readonly outputTokensMax: number | null;
  /** Told of the bound that an upstream took after it had refused a larger one. */
  readonly onLimit: (outputTokensMax: number) => void;
}

/** The answer bears the id of the model that was asked for, whoever gave it. */
export async function completionOf(asked: ChatAttempt, model: Model): Promise<ChatAnswer> {
  const answer = await withinLimit(asked, model, (bounded) => asked.providerOf(model).complete(bounded));
  return namedAnswer(answer, new AnswerName(asked.plan.model.id));
}

/** `onAccepted` is told when the upstream has taken the request on, whatever comes of it. */
export async function streamOf(asked: ChatAttempt, model: Model, onAccepted: () => void): Promise<BegunStream> {
  const batches = await withinLimit(asked, model, (bounded) => asked.providerOf(model).stream(bounded));
  onAccepted();
  const rest = batches[Symbol.asyncIterator]();
  return { first: await rest.next(), rest };
}

/** Lengths that models commonly end at. */
const USUAL_LIMITS = [32_768, 16_384, 8_192, 4_096, 1_024];

/** Not every catalog entry says how much its model writes: where an upstream refuses our bound as too large, it is asked for less. */
async function withinLimit<Answer>(
  { plan, signal, outputTokensMax, onLimit }: ChatAttempt,
  { upstreamModel }: Model,
  ask: (call: ChatCall) => Promise<Answer>,
): Promise<Answer> {
  const { body } = plan;
  const smaller = outputTokensMax === null ? [] : USUAL_LIMITS.filter((limit) => limit < outputTokensMax);
  for (let bound = outputTokensMax; ; ) {
    try {
      const answer = await ask({ upstreamModel, body, outputTokensMax: bound, signal });
      if (bound !== null && bound !== outputTokensMax) onLimit(bound);
      return answer;
    } catch (error) {
      const next = isBoundRefused(error) ? smaller.shift() : undefined;
      if (next === undefined) throw error;
      bound = next;
    }
  }
}

const BOUND_NAMES = ["max_tokens", "max_completion_tokens", "max_output_tokens", "maxoutputtokens", "maximum context length"];

function isBoundRefused(error: unknown): boolean {
  if (!(error instanceof ProviderError) || (error.status !== 400 && error.status !== 422)) return false;
  const said = `${error.upstreamParam ?? ""} ${error.upstreamMessage ?? ""}`.toLowerCase();
  return BOUND_NAMES.some((name) => said.includes(name));
}
