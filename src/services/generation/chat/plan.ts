/**
 * What must be known of a chat before an upstream is called: what was asked for, which body, what it may cost
 * (docs/architecture.md#a-generation-end-to-end).
 */
import { randomInt } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { z } from "zod";
import type { ChatBody } from "../../../lib/chat-format.js";
import { readChat } from "../../../lib/chat-prompt.js";
import { inUnit } from "../../../lib/issue-words.js";
import { ChatCount, countInTurns } from "../../../lib/tokenizer.js";
import { amountsOf, NO_USAGE, USAGE_AMOUNT_MAX, type UsageQuantities } from "../../../lib/usage.js";
import { CHAT_MESSAGES_MAX, EXTEND_AT_PERCENT, TEMPERATURE_MAX, TEMPERATURE_MIN } from "../../../limits.js";
import type { Model } from "../../catalog/model.js";
import { holdFor } from "../../catalog/pricing.js";
import type { OutputEstimate, OutputEstimates } from "../../credits/output-estimates.js";
import { parsedOften } from "../../requests/input.js";
import { safeInput } from "../../safety/features.js";
import type { GenerationTask } from "../admission.js";

/** Seeds are drawn below 2^31, which every upstream takes. */
const RANDOM_SEED_MAX = 2 ** 31 - 1;

export interface ChatPlan extends GenerationTask {
  readonly body: ChatBody;
  readonly promptTokens: number;
  /** What is known of the model's answers to the caller's account. */
  readonly output: OutputEstimate;
  /** Output tokens of one choice that were expected. */
  readonly mean: number;
  /** How many answers were asked for. */
  readonly choices: number;
  /** Output tokens that the caller lets one choice have; null: none were stated. */
  readonly statedCap: number | null;
  /** The caller stated how long the answer may be, so the hold covers all of it. */
  readonly isCapped: boolean;
  /** One of the candidates puts out what is not seen before its usage is reported. */
  readonly isHidden: boolean;
  readonly hold: ChatHold;
}

/** `input` is the chat as its safety features have left it. A promise for a long prompt, whose tokens are counted in turns with everybody else. */
export function planChat(
  task: GenerationTask,
  input: ChatCompletionInput,
  estimates: OutputEstimates,
  isStreamed: boolean,
): ChatPlan | Promise<ChatPlan> {
  if (task.request.hasLargeInput) return nextTurn().then(() => planInTurn(task, input, estimates, isStreamed));
  return planInTurn(task, input, estimates, isStreamed);
}

function planInTurn(
  task: GenerationTask,
  input: ChatCompletionInput,
  estimates: OutputEstimates,
  isStreamed: boolean,
): ChatPlan | Promise<ChatPlan> {
  const prompt = new ChatCount();
  readChat(input, prompt);
  const counting = countInTurns(prompt.texts);
  const toPlan = (textTokens: number) => planCounted(task, input, estimates, isStreamed, prompt, textTokens);
  return typeof counting === "number" ? toPlan(counting) : counting.then(toPlan);
}

function planCounted(
  task: GenerationTask,
  input: ChatCompletionInput,
  estimates: OutputEstimates,
  isStreamed: boolean,
  prompt: ChatCount,
  textTokens: number,
): ChatPlan {
  const promptTokens = prompt.tokens + textTokens;
  const { caller, model, candidates } = task;
  const output = estimates.of(caller.accountId, model.id);
  const { mean, limit } = output;
  const statedCap = outputCapOf(input);
  const isHidden = candidates.some((candidate) => hidesOutput(candidate, estimates));
  const length = { model, candidates, isReadAsItComes: isStreamed && !isHidden, statedCap, mean, limit };
  // Field by field: an object that is spread costs every request several microseconds.
  return {
    generationId: task.generationId,
    request: task.request,
    caller,
    limitedAs: task.limitedAs,
    model,
    candidates,
    isFree: task.isFree,
    notes: task.notes,
    safety: task.safety,
    startedAt: task.startedAt,
    body: toBody(input),
    promptTokens,
    output,
    mean,
    choices: input.n ?? 1,
    statedCap,
    isCapped: statedCap !== null,
    isHidden,
    hold: sizeHold(length, promptToHold(prompt, promptTokens), input),
  };
}

/** -1 asks for a random seed; one that was not sent is not forwarded (docs/spec/generation.md#seeds). */
function toBody(input: ChatCompletionInput): ChatBody {
  if (input.safe === undefined && input.seed !== -1) return input;
  const { safe: _, ...body } = input;
  return input.seed === -1 ? { ...body, seed: randomInt(RANDOM_SEED_MAX) } : body;
}

// What is held for a chat, and how much its model may write for that (docs/spec/credits.md#holds): nobody receives more than what is
// held for them.
//
// 1. An answer whose length the caller has stated: all of it is held.
// 2. A stream that is read as it comes holds a mean output. It asks for more on its way, and is cut when that is refused.
// 3. What nobody can read as it comes, a whole answer or what a model thinks and speaks in hidden, holds four mean outputs, or a tenth
//    of what is free where that is more, and never more than the longest answer costs. Where it does not cover that one, the upstream
//    is asked for no more than it affords.

/** See docs/spec/credits.md#holds. */
const MEAN_OUTPUTS_HELD = 4;

interface ChatHold {
  /** Nanocredits, held at least. */
  readonly estimate: bigint;
  /** Nanocredits: what a run of an agent that has no more left may hold instead; undefined: the estimate. */
  readonly least?: bigint | undefined;
  /** Nanocredits: what more may be held of what is free; undefined when the estimate is all. */
  readonly most: bigint | undefined;
  /** Output tokens that the estimate covers. */
  readonly outputTokens: number;
  /** Output tokens of one choice that a hold of so much affords; null when the upstream needs no cap. */
  capFor(heldNanocredits: bigint): number | null;
}

interface ChatLength {
  /** The model that was asked for, whose prices apply. */
  readonly model: Model;
  /** All that may answer. */
  readonly candidates: readonly Model[];
  /** Nothing of it is hidden until its end. */
  readonly isReadAsItComes: boolean;
  /** Output tokens of one choice that the caller has stated at most; null: none. */
  readonly statedCap: number | null;
  /** Output tokens of one choice. */
  readonly mean: number;
  /** Output tokens that the upstream was found to take at most; null: none was refused. */
  readonly limit: number | null;
}

function sizeHold(length: ChatLength, prompt: UsageQuantities, input: ChatCompletionInput): ChatHold {
  const { model, candidates, isReadAsItComes, statedCap, mean, limit } = length;
  const choices = input.n ?? 1;
  const kind = dearestOutput(model, input);
  const costWith = (tokens: number) => {
    const usage = amountsOf(prompt);
    usage[kind] = tokens * choices;
    return holdFor(usage, model.rates);
  };
  const fixed = (tokens: number): ChatHold => {
    return { estimate: costWith(tokens), most: undefined, outputTokens: tokens * choices, capFor: () => null };
  };
  if (model.rates.isFree) return { ...fixed(statedCap ?? mean), estimate: 0n };
  if (statedCap !== null) return fixed(statedCap);
  if (isReadAsItComes) return fixed(mean);

  return new UnstatedHold(costWith, length, choices, longestOutput(candidates, prompt, limit));
}

/** Of an answer whose length nobody has stated. A class for its getter: see docs/decisions/garbage.md. */
class UnstatedHold implements ChatHold {
  readonly estimate: bigint;
  readonly most: bigint;
  readonly outputTokens: number;
  private readonly tokens: number;
  /** What the longest answer costs, if that is known. */
  private readonly whole: bigint | undefined;

  constructor(
    /** In nanocredits, with so many output tokens of each choice. */
    private readonly costWith: (tokens: number) => bigint,
    private readonly length: ChatLength,
    choices: number,
    private readonly longest: number | null,
  ) {
    this.tokens = Math.min(MEAN_OUTPUTS_HELD * length.mean, longest ?? Number.POSITIVE_INFINITY);
    this.whole = longest === null ? undefined : costWith(longest);
    this.estimate = costWith(this.tokens);
    this.most = this.whole ?? AS_MUCH_AS_IS_FREE;
    this.outputTokens = this.tokens * choices;
  }

  get least(): bigint {
    return this.costWith(Math.min(this.length.mean, this.tokens));
  }

  capFor(held: bigint): number | null {
    const { costWith, length, whole, longest } = this;
    // What the upstream was found to take at most may have been for want of room beside another prompt.
    if (length.limit === null && whole !== undefined && held >= whole) return null;
    const promptCost = costWith(0);
    const costOfMillion = costWith(1_000_000) - promptCost;
    if (costOfMillion === 0n) return null;
    const afforded = ((held - promptCost) * 1_000_000n) / costOfMillion;
    return Math.max(1, Math.min(Number(afforded), longest ?? USAGE_AMOUNT_MAX, USAGE_AMOUNT_MAX));
  }
}

/** A share of anything that can be free is below it. */
const AS_MUCH_AS_IS_FREE = 2n ** 62n;

/** A model some of whose output is not seen before its usage is reported: as its entry says, or as its reports have shown. */
function hidesOutput({ id, capabilities, outputModalities }: Model, { hidden }: OutputEstimates): boolean {
  return capabilities.includes("reasoning") || outputModalities.includes("audio") || hidden.has(id);
}

/** Tokens of one choice that none of the models writes more than; null when that is not known of one. */
function longestOutput(candidates: readonly Model[], prompt: UsageQuantities, limit: number | null): number | null {
  let longest = 0;
  for (const { maxOutputTokens, contextLength } of candidates) {
    const most = maxOutputTokens ?? (contextLength === null ? limit : Math.max(1, contextLength - prompt.inputTextTokens));
    if (most === null) return null;
    longest = Math.max(longest, most);
  }
  return limit === null ? longest : Math.min(longest, limit);
}

/** Which kind of output costs most of those that this answer can have. */
function dearestOutput({ rates, capabilities, prices, outputModalities }: Model, { modalities }: ChatCompletionInput): OutputKind {
  const kinds: OutputKind[] = ["outputTextTokens"];
  if (capabilities.includes("reasoning") || prices.completionReasoningPrice !== undefined) kinds.push("outputReasoningTokens");
  const isSpoken = !Array.isArray(modalities) || modalities.includes("audio");
  if (outputModalities.includes("audio") && isSpoken) kinds.push("outputAudioTokens");
  if (outputModalities.includes("image")) kinds.push("outputImageTokens");
  return kinds.reduce((dearest, kind) => (rates[kind] > rates[dearest] ? kind : dearest));
}

type OutputKind = "outputTextTokens" | "outputReasoningTokens" | "outputAudioTokens" | "outputImageTokens";

/** Unspecified: what a part may count for beside what it is counted as (`lib/tokenizer`), by what it holds. */
const IMAGE_TOKENS_MORE = 835;
const UNSEEN_FILE_TOKENS = 30_000;
const UNSEEN_VIDEO_TOKENS = 60_000;
/** Unspecified: base64 letters of a token, from a text in a document, sound of few bits and moving pictures of few bits. */
const FILE_CHARS_PER_TOKEN = 8;
export const AUDIO_CHARS_PER_TOKEN = 40;
const VIDEO_CHARS_PER_TOKEN = 32;

/**
 * What a prompt may cost beyond the count of its texts: what a model reads of pictures, sound, films and documents only its upstream
 * can tell, so as much is held as their size allows. Fields that nobody here knows travel on and may be read, so their text is counted too.
 */
function promptToHold({ parts, unknowns }: ChatCount, promptTokens: number): UsageQuantities {
  const more = amountsOf(NO_USAGE);
  more.inputTextTokens = promptTokens;
  for (const part of parts) addPart(part, more);
  for (const value of unknowns) more.inputTextTokens += unknownTokens(value);
  return more;
}

/** Of text that is not looked at any further. */
const UNKNOWN_CHARS_PER_TOKEN = 3;

function unknownTokens(value: unknown): number {
  if (!value || (typeof value !== "string" && typeof value !== "object")) return 0;
  return Math.ceil((typeof value === "string" ? value : JSON.stringify(value)).length / UNKNOWN_CHARS_PER_TOKEN);
}

type ContentPart = Readonly<Record<string, unknown>>;
interface Counted {
  inputTextTokens: number;
  inputAudioTokens: number;
  inputImageTokens: number;
}

function addPart(part: ContentPart, more: Counted): void {
  switch (part.type) {
    case "image_url":
      more.inputImageTokens += IMAGE_TOKENS_MORE;
      break;
    case "input_audio":
      more.inputAudioTokens += Math.ceil(dataChars(part.input_audio) / AUDIO_CHARS_PER_TOKEN);
      break;
    case "file":
      more.inputTextTokens += bounded(dataChars(part.file), FILE_CHARS_PER_TOKEN, UNSEEN_FILE_TOKENS);
      break;
    case "video_url":
      more.inputImageTokens += bounded(dataChars(part.video_url), VIDEO_CHARS_PER_TOKEN, UNSEEN_VIDEO_TOKENS);
      break;
  }
}

function bounded(chars: number, charsPerToken: number, unseen: number): number {
  return chars === 0 ? unseen : Math.ceil(chars / charsPerToken);
}

/** Of what stands in the request itself; 0 for what is only named. */
export function dataChars(holder: unknown): number {
  if (typeof holder !== "object" || holder === null) return 0;
  const { data, file_data: fileData, url } = holder as Record<string, unknown>;
  for (const value of [data, fileData, url]) {
    if (typeof value === "string" && (value !== url || value.startsWith("data:"))) return value.length;
  }
  return 0;
}

/**
 * The output tokens at which a running stream's hold is looked at next: at 80% of it if the answer goes on costing what it has cost a
 * token so far. From there on soon, and not after the hold is used up: what is delivered beyond it may find nobody to pay.
 */
export function nextCheck(tokens: number, cost: bigint, held: bigint): number {
  const soon = tokens + 16;
  if (cost === 0n) return soon;
  const tokensAt = (percent: bigint) => Math.floor((tokens * Number((held * percent) / cost)) / 100);
  const next = cost * 100n < held * EXTEND_AT_PERCENT ? tokensAt(EXTEND_AT_PERCENT) : Math.min(soon, tokensAt(100n));
  return Math.max(tokens + 1, next);
}

// A chat-completions request (docs/spec/chat.md#chat-completions): the documented fields are checked exactly, unknown ones
// travel on to the upstream untouched. One schema for REST and GraphQL.

const textPart = z.looseObject({ type: z.literal("text"), text: z.string() });
const otherPart = z.looseObject({
  type: z.enum(["image_url", "input_audio", "file", "video_url", "refusal"]),
  text: z.string().optional(),
});
const content = z.union([z.string(), z.array(z.discriminatedUnion("type", [textPart, otherPart]))]);
const optionalFields = { name: z.string().optional(), tool_calls: z.array(z.looseObject({})).nullish() };

const message = z.discriminatedUnion("role", [
  z.looseObject({ role: z.enum(["system", "developer", "user", "tool", "function"]), content, ...optionalFields }),
  // Who only calls tools says nothing.
  z.looseObject({ role: z.literal("assistant"), content: content.nullish(), ...optionalFields }),
]);

const responseFormat = z.discriminatedUnion("type", [
  z.looseObject({ type: z.enum(["text", "json_object"]), json_schema: z.looseObject({ name: z.string() }).optional() }),
  z.looseObject({ type: z.literal("json_schema"), json_schema: z.looseObject({ name: z.string() }) }),
]);

const penalty = z.number().min(-2).max(2).nullish();
const tokenCap = inUnit(z.int().min(1).max(USAGE_AMOUNT_MAX), "tokens").nullish();

export const chatCompletionInput = parsedOften(
  z
    .looseObject({
      model: z.string().min(1).max(253).nullish(),
      messages: z.array(message).min(1).max(CHAT_MESSAGES_MAX),
      stream: z.boolean().nullish(),
      stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
      temperature: z.number().min(TEMPERATURE_MIN).max(TEMPERATURE_MAX).nullish(),
      top_p: z.number().min(0).max(1).nullish(),
      n: z.int().min(1).max(128).nullish(),
      seed: z.int().min(-1).nullish(),
      max_tokens: tokenCap,
      max_completion_tokens: tokenCap,
      presence_penalty: penalty,
      frequency_penalty: penalty,
      stop: z.union([z.string(), z.array(z.string())]).nullish(),
      logprobs: z.boolean().nullish(),
      top_logprobs: z.int().min(0).max(20).nullish(),
      tools: z.array(z.looseObject({ type: z.string() })).nullish(),
      tool_choice: z.union([z.string(), z.looseObject({})]).nullish(),
      response_format: responseFormat.nullish(),
      reasoning_effort: z.string().nullish(),
      /** For the gateway alone: no upstream sees it. */
      safe: safeInput,
    })
    .refine((input) => !input.max_tokens || !input.max_completion_tokens || input.max_tokens === input.max_completion_tokens, {
      message: "differs from max_tokens: state one of the two",
      path: ["max_completion_tokens"],
    }),
);

export type ChatCompletionInput = z.output<typeof chatCompletionInput>;

/** The most output tokens that the caller lets one choice have; null: no limit was stated. */
function outputCapOf(input: ChatCompletionInput): number | null {
  return input.max_completion_tokens ?? input.max_tokens ?? null;
}
