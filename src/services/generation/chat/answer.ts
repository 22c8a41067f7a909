/**
 * What one candidate is asked for a chat, within the length that the hold affords, and how its answer goes on: under the name that was
 * asked for, cut to what is held, with its usage.
 */
import { AnswerName } from "../../../lib/answer-name.js";
import type { ChatBody, ChatChunkObject, ChatCompletion, ChatDelta } from "../../../lib/chat-format.js";
import { toCreditsNumber } from "../../../lib/money.js";
import { withFields } from "../../../lib/own-values.js";
import { type Pulled, type PulledIterator, pullFrom } from "../../../lib/pull.js";
import { countTextTokens } from "../../../lib/tokenizer.js";
import type { UsageQuantities } from "../../../lib/usage.js";
import { type ChatAnswer, type ChatCall, type ChatChunkBatch, type ChatProvider, ProviderError } from "../../../providers/provider.js";
import type { Model } from "../../catalog/model.js";
import type { OutputEstimate } from "../../credits/output-estimates.js";
import type { Cancellation } from "../cancellation.js";
import type { Receipt } from "../receipt.js";

/** A stream that has begun: its first batch has come, so nobody else may answer from here on. */
export interface BegunStream {
  readonly first: Pulled<ChatChunkBatch>;
  readonly rest: PulledIterator<ChatChunkBatch>;
  /** See `Bound`. */
  readonly cap: number | null;
}

/** An answer, and the gateway's bound that its upstream was sent, in output tokens of one choice; null: none was. */
interface Bound<Answer> {
  readonly answer: Answer;
  readonly cap: number | null;
}

export type BoundAnswer = Bound<ChatAnswer>;

/** What every candidate is asked. */
export interface ChatAttempt {
  readonly body: ChatBody;
  readonly cancellation: Cancellation;
  /** Output tokens that the hold affords; null: the upstream needs no bound. */
  readonly outputTokensMax: number | null;
  /** Told of the bound that an upstream took after it had refused a larger one. */
  readonly output: OutputEstimate;
}

/** The answer bears `name`, the id of the model that was asked for, whoever gave it. */
export async function completionOf(provider: ChatProvider, asked: ChatAttempt, model: Model, name: string): Promise<BoundAnswer> {
  const { answer, cap } = await withinLimit(asked, model, (bounded) => provider.complete(bounded));
  return { answer: namedAnswer(answer, new AnswerName(name)), cap };
}

/** `onAccepted` is told when the upstream has taken the request on, whatever comes of it. */
export async function streamOf(provider: ChatProvider, asked: ChatAttempt, model: Model, onAccepted: () => void): Promise<BegunStream> {
  const { answer: batches, cap } = await withinLimit(asked, model, (bounded) => provider.stream(bounded));
  onAccepted();
  const rest = batches[Symbol.asyncIterator]();
  return { first: await pullFrom(rest), rest, cap };
}

/** Lengths that models commonly end at. */
const USUAL_LIMITS = [32_768, 16_384, 8_192, 4_096, 1_024];

/** Not every catalog entry says how much its model writes: where an upstream refuses our bound as too large, it is asked for less. */
async function withinLimit<Answer>(asked: ChatAttempt, model: Model, ask: (call: ChatCall) => Promise<Answer>): Promise<Bound<Answer>> {
  const { body, cancellation, outputTokensMax, output } = asked;
  const { upstreamModel } = model;
  let smaller: number[] | null = null;
  for (let bound = outputTokensMax; ; ) {
    try {
      const answer = await ask({ upstreamModel, body, signal: cancellation, outputTokensMax: bound });
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

/** A chat's answer under the name that it was asked by (see `AnswerName`). */
function namedAnswer(answer: ChatAnswer, name: AnswerName): ChatAnswer {
  const { usage, warnings } = answer;
  const completion = name.inObject(answer.completion);
  const bytes = name.inBytes(answer.bytes, answer.completion) ?? Buffer.from(JSON.stringify(completion));
  return warnings ? { bytes, completion, usage, warnings } : { bytes, completion, usage };
}

// Cuts what a chat's model has written to what is held for it: an upstream that does not heed its bound, or sends a stream in one
// piece, gives nobody more than they can pay.

/** Of an answer that its caller did not bound. */
export function cutWarning(tokens: number): string {
  return `The answer was cut at ${tokens} output tokens, which is what was held for it. State max_tokens, or add credits, to have a longer one.`;
}

/** The same answer with at most so many tokens of what it says, thoughts first; tool calls that do not fit are left out whole. */
export function cutCompletion(completion: ChatCompletion, tokens: number): ChatCompletion {
  const budget = { tokens };
  const choices = completion.choices?.map((choice) => {
    const message = choice.message ? cutDelta(choice.message, budget) : null;
    return message === choice.message ? choice : { ...choice, message, finish_reason: "length" };
  });
  return { ...completion, ...(choices && { choices }) };
}

/** A chunk of a stream, likewise; what ends it is the stream's own affair. */
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

/** Thoughts first. */
const TEXTS = ["reasoning_content", "reasoning", "content", "refusal"] as const;

function cutDelta(delta: ChatDelta, budget: { tokens: number }): ChatDelta {
  const written = JSON.stringify([
    delta.reasoning_content ?? delta.reasoning,
    delta.content,
    delta.refusal,
    delta.tool_calls,
    delta.audio,
    delta.images,
  ]);
  const whole = countTextTokens(written);
  if (whole <= budget.tokens) {
    budget.tokens -= whole;
    return delta;
  }
  // What holds more of the same, and what cannot be cut.
  const { reasoning_details: _details, audio: _audio, images: _images, annotations: _annotations, tool_calls: _calls, ...said } = delta;
  const texts = TEXTS.filter((name) => said[name] != null).map((name) => [name, cutText(plainText(said[name]), budget)]);
  return { ...said, ...Object.fromEntries(texts) };
}

/** By proportion, then ever less until it fits. */
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

/** The `usage` object of a chat completion, as OpenAI's format has it, for an upstream that reported none. */
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

/** A stream's headers have gone when its cost is known, so its usage carries the cost, in credits, and an agent's what it asked for. */
export function withCost(reported: unknown, { usage, costNanocredits, childCostNanocredits }: Charged): Record<string, unknown> {
  const base = reported && typeof reported === "object" ? reported : toReportedUsage(usage);
  const cost = toCreditsNumber(costNanocredits);
  return withFields(base, childCostNanocredits === undefined ? { cost } : { cost, child_cost: toCreditsNumber(childCostNanocredits) });
}

/** The text of a message's content, which is a string, or parts of which some are text. */
export function plainText(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part) => (part && typeof part === "object" && typeof part.text === "string" ? part.text : "")).join("");
}
