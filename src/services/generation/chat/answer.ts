/**
 * The call of one candidate for a chat, within the length that the hold affords, and the presentation of its answer: under the requested
 * name, cut to the hold, with usage.
 */

import { type Pulled, type PulledIterator, pullFrom } from "../../../fast/pull.js";
import {
  type ChatBody,
  type ChatChunkObject,
  type ChatCompletion,
  type ChatDelta,
  plainText,
  REASONING_NAMES,
  reasoningIn,
} from "../../../formats/openai-chat/schema.js";
import type { ChatChunkBatch } from "../../../formats/openai-chat/stream.js";
import { ProviderError } from "../../../formats/upstream-error.js";
import { AnswerName } from "../../../lib/answer-name.js";
import { toCreditsNumber } from "../../../lib/money.js";
import { withFields } from "../../../lib/own-values.js";
import { countTextTokens } from "../../../lib/tokenizer.js";
import type { UsageQuantities } from "../../../lib/usage.js";
import type { CallEnd, ChatAnswer, ChatCall, ChatProvider } from "../../../providers/provider.js";
import type { Route } from "../../catalog/route.js";
import type { OutputEstimate } from "../../credits/output-estimates.js";
import type { CutReason, Receipt } from "../receipt.js";
import type { ChatPlan } from "./planned.js";

/** A stream whose first batch has arrived, so that no fallback follows. */
export interface BegunStream {
  readonly first: Pulled<ChatChunkBatch>;
  readonly rest: PulledIterator<ChatChunkBatch>;
  /** See `Bound`. */
  readonly cap: number | null;
}

/** An answer, and the gateway's token limit on a choice that its upstream got; null: none. */
interface Bound<Answer> {
  readonly answer: Answer;
  readonly cap: number | null;
}

export type BoundAnswer = Bound<ChatAnswer>;

export interface ChatAttempt {
  readonly body: ChatBody;
  readonly cancellation: CallEnd;
  /** Output tokens that the hold affords; null: no limit needed. */
  readonly outputTokensMax: number | null;
  /** Receives the limit that an upstream accepted after refusing a larger one. */
  readonly output: OutputEstimate;
}

/** The request with the gateway's token limit: in place of a larger one that it states, or beside it. */
export function withinCap(plan: Pick<ChatPlan, "body" | "statedCap">, cap: number | null): Pick<ChatAttempt, "body" | "outputTokensMax"> {
  const { body, statedCap } = plan;
  if (cap === null || statedCap === null) return { body, outputTokensMax: cap };
  const stated = body.max_completion_tokens == null ? "max_tokens" : "max_completion_tokens";
  return { body: withFields(body, { [stated]: cap }), outputTokensMax: null };
}

/** The answer has `name`, whichever candidate gave it. */
export async function completionOf(provider: ChatProvider, asked: ChatAttempt, route: Route, name: string): Promise<BoundAnswer> {
  const { answer, cap } = await withinLimit(asked, route, (bounded) => provider.complete(bounded));
  return { answer: namedAnswer(answer, new AnswerName(name)), cap };
}

/** `onAccepted` is called when the upstream has accepted the request, even if it fails later. */
export async function streamOf(provider: ChatProvider, asked: ChatAttempt, route: Route, onAccepted: () => void): Promise<BegunStream> {
  const { answer: batches, cap } = await withinLimit(asked, route, (bounded) => provider.stream(bounded));
  onAccepted();
  const rest = batches[Symbol.asyncIterator]();
  return { first: await pullFrom(rest), rest, cap };
}

/** Common output limits of models. */
const USUAL_LIMITS = [32_768, 16_384, 8_192, 4_096, 1_024];

/** Retries with a smaller limit when an upstream refuses ours as too large, because not every catalog entry has the model's limit. */
async function withinLimit<Answer>(asked: ChatAttempt, route: Route, ask: (call: ChatCall) => Promise<Answer>): Promise<Bound<Answer>> {
  const { body, cancellation, outputTokensMax, output } = asked;
  const { upstreamModel, dialect } = route;
  let smaller: number[] | null = null;
  for (let bound = outputTokensMax; ; ) {
    try {
      const answer = await ask({ upstreamModel, body, signal: cancellation, outputTokensMax: bound, dialect });
      if (bound !== null && bound !== outputTokensMax) output.learnLimit(bound);
      return { answer, cap: bound };
    } catch (error) {
      if (bound === null || !isBoundRefused(error)) throw error;
      smaller ??= USUAL_LIMITS.filter((limit) => limit < (outputTokensMax ?? 0));
      const next = smaller.shift();
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

function namedAnswer(answer: ChatAnswer, name: AnswerName): ChatAnswer {
  const { usage, warnings } = answer;
  const completion = name.inObject(answer.completion);
  const bytes = name.inBytes(answer.bytes, answer.completion) ?? Buffer.from(JSON.stringify(completion));
  return warnings ? { bytes, completion, usage, warnings } : { bytes, completion, usage };
}

// Cuts a chat's answer to its hold, for upstreams that ignore their limit or send a stream in one piece.

/** For an answer without a limit in the request. */
export function cutWarning(tokens: number, cut?: CutReason): string {
  if (cut) return `The answer was cut at ${tokens} output tokens, which is what max_cost covers. State a larger max_cost for a longer one.`;
  return `The answer was cut at ${tokens} output tokens, the amount held for it. Set max_tokens, or add credits, for a longer one.`;
}

/** The answer with at most that many tokens, reasoning first; tool calls that do not fit are dropped whole. */
export function cutCompletion(completion: ChatCompletion, tokens: number): ChatCompletion {
  const budget = { tokens };
  const choices = completion.choices?.map((choice) => {
    const message = choice.message ? cutDelta(choice.message, budget) : null;
    return message === choice.message ? choice : { ...choice, message, finish_reason: "length" };
  });
  return { ...completion, ...(choices && { choices }) };
}

/** The same for a chunk of a stream, whose end the stream handles. */
export function cutChunk(chunk: ChatChunkObject, tokens: number): ChatChunkObject {
  const budget = { tokens };
  const choices = chunk.choices?.map(({ finish_reason: _, ...choice }) => ({
    ...choice,
    delta: choice.delta ? cutDelta(choice.delta, budget) : null,
    finish_reason: null,
  }));
  const { usage: _, ...rest } = chunk;
  return { ...rest, ...(choices && { choices }) };
}

/** Reasoning first. */
const TEXTS = [...REASONING_NAMES, "content", "refusal"] as const;

function cutDelta(delta: ChatDelta, budget: { tokens: number }): ChatDelta {
  const written = JSON.stringify([
    reasoningIn(delta),
    delta.content,
    delta.refusal,
    delta.tool_calls,
    delta.function_call,
    delta.audio,
    delta.images,
  ]);
  const whole = countTextTokens(written);
  if (whole <= budget.tokens) {
    budget.tokens -= whole;
    return delta;
  }
  // Fields that repeat the text, and fields that cannot be cut.
  const {
    reasoning_details: _details,
    audio: _audio,
    images: _images,
    annotations: _annotations,
    tool_calls: _calls,
    function_call: _call,
    ...said
  } = delta;
  const texts = TEXTS.filter((name) => said[name] != null).map((name) => [name, cutText(plainText(said[name]), budget)]);
  return { ...said, ...Object.fromEntries(texts) };
}

/** Cuts by proportion, then further until it fits. */
function cutText(text: string, budget: { tokens: number }): string {
  let kept = text;
  let tokens = countTextTokens(kept);
  while (tokens > budget.tokens && kept !== "") {
    kept = kept.slice(0, Math.max(0, Math.floor((kept.length * Math.max(0, budget.tokens)) / tokens) - 1));
    tokens = kept === "" ? 0 : countTextTokens(kept);
  }
  budget.tokens -= tokens;
  return kept;
}

export function toReportedUsage(usage: UsageQuantities): Record<string, unknown> {
  const cached = usage.inputCachedTokens + usage.inputCacheWriteTokens;
  const promptTokens = usage.inputTextTokens + cached + usage.inputAudioTokens + usage.inputImageTokens;
  const completionTokens = usage.outputTextTokens + usage.outputReasoningTokens + usage.outputAudioTokens + usage.outputImageTokens;
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    ...(usage.inputCachedTokens > 0 && { prompt_tokens_details: { cached_tokens: usage.inputCachedTokens } }),
    completion_tokens_details: { reasoning_tokens: usage.outputReasoningTokens },
  };
}

type Charged = Pick<Receipt, "usage" | "costNanocredits" | "childCostNanocredits">;

/**
 * Adds the cost in credits to a stream's usage, because the headers are sent before it is known; for an agent also the cost of its
 * generations.
 */
export function withCost(reported: unknown, { usage, costNanocredits, childCostNanocredits }: Charged): Record<string, unknown> {
  const base = reported && typeof reported === "object" ? reported : toReportedUsage(usage);
  const cost = toCreditsNumber(costNanocredits);
  return withFields(base, childCostNanocredits === undefined ? { cost } : { cost, child_cost: toCreditsNumber(childCostNanocredits) });
}

/** A whole answer as one chunk of a stream. */
export function asChunk(completion: ChatCompletion): ChatChunkObject {
  const [choice] = completion.choices ?? [];
  if (!choice) return { choices: [] };
  const { message, ...end } = choice;
  return { choices: [{ ...end, index: 0, delta: message ?? null, finish_reason: choice.finish_reason ?? null }] };
}
